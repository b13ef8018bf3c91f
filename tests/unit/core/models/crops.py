"""The shortest way from a picture to the nets' inputs and back, for comparing with MediaPipe."""

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from faceplate.models.sessions import Net

SIDE = 192
Picture = NDArray[np.uint8]
Points = NDArray[np.float64]


def mesh_points(
    net: Net, picture: Picture, centre: Points, side: float, angle_deg: float, corner: float
) -> tuple[Points, float]:
    """Landmarks (P, 3) in px of the picture and the presence logit, from a square crop turned clockwise by the angle.

    `corner` is where the corner of a picture lies in the coordinates of the sampling: -0.5 when pixel centres are whole
    numbers, as is right; 0 to sample as MediaPipe does on the CPU, which maps corners to the first pixel's centre.
    """
    angle = math.radians(angle_deg)
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    linear = turn * (side / SIDE)
    shift = centre - linear @ np.full(2, SIDE / 2 + corner) + corner
    crop = cv2.warpAffine(
        picture,
        np.hstack([linear, shift[:, None]]),
        (SIDE, SIDE),
        flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_REPLICATE,
    )
    result = net.run({"image": (np.asarray(crop, np.float32) / np.float32(255)).transpose(2, 0, 1)[None]})
    found = result["landmarks"][0].astype(np.float64)
    plane = (found[:, :2] - SIDE / 2) @ linear.T + centre
    return np.column_stack([plane, found[:, 2] * side / SIDE]), float(result["presence"][0, 0])


def best_face(detector: Net, picture: Picture) -> tuple[Points, float, float]:
    """Centre px, side px and angle in degrees of the crop around the face with the best score of a square picture."""
    scale = SIDE / picture.shape[0]
    small = cv2.resize(picture, (SIDE, SIDE), interpolation=cv2.INTER_AREA).astype(np.float32) / 127.5 - 1
    result = detector.run({"image": small.transpose(2, 0, 1)[None]})
    best = int(result["scores"][0, :, 0].argmax())
    row, column = divmod(best, 48)
    cell = np.array([column + 0.5, row + 0.5]) * 4
    pairs = result["regressors"][0, best].reshape(8, 2).astype(np.float64)
    right_eye, left_eye = pairs[2], pairs[3]
    angle = math.degrees(math.atan2(left_eye[1] - right_eye[1], left_eye[0] - right_eye[0]))
    return (cell + pairs[0]) / scale, 1.5 * float(pairs[1].max()) / scale, angle
