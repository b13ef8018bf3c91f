"""How far the plate's face moves towards the identity's proportions, point by point."""

from __future__ import annotations

from functools import cache

import cv2
import numpy as np
from numpy.typing import NDArray

from ...face import Points
from ...faces import topology
from .facing import neighbour_mean

_OVAL_SHARE = 0.35
"""Part of the move that the outline makes; the plate around the face has to follow it."""
_MOUTH_SHARE, _EYE_SHARE = 0.7, 0.5
_ROUNDS = 12


def fit_similarity(shape: NDArray[np.floating], to: NDArray[np.floating], on: tuple[int, ...]) -> NDArray[np.float64]:
    """Rotate, scale and move (Procrustes, no mirroring) a shape onto another by the points `on`.

    Args:
        shape: (N, 3).
        to: (N, 3).
        on: indices.

    Returns:
        (N, 3) float64.
    """
    a, b = np.asarray(shape, np.float64), np.asarray(to, np.float64)
    index = list(on)
    centre_a, centre_b = a[index].mean(0), b[index].mean(0)
    left, size, right = np.linalg.svd((a[index] - centre_a).T @ (b[index] - centre_b))
    sign = np.array([1.0, 1.0, np.sign(np.linalg.det(left @ right))])
    scale = float((size * sign).sum() / ((a[index] - centre_a) ** 2).sum())
    return np.asarray((a - centre_a) @ (left * sign @ right) * scale + centre_b, np.float64)


def displacement(landmarks: Points, shape: Points, amount: float, pixel_aspect: float) -> NDArray[np.float32]:
    """Where the plate's points move for the identity's proportions.

    The lips move as one and so do the eyes, so that expression and gaze stay the plate's; the outline moves little.

    Args:
        landmarks: (468 or more, 3) px.
        shape: (468, 3) the identity's face, any pose and scale.
        amount: 0..1.
        pixel_aspect: width / height of a pixel.

    Returns:
        (468, 2) float32 px.
    """
    square = np.asarray(landmarks[: topology.FACE_POINTS], np.float64) * [pixel_aspect, 1.0, 1.0]
    move = amount * (fit_similarity(shape, square, topology.RIGID) - square)[:, :2]
    fixed = np.zeros(topology.FACE_POINTS, bool)
    lips = list(dict.fromkeys((*topology.OUTER_LIPS, *topology.INNER_LIPS, *_between_lips())))
    for group, share in ((lips, _MOUTH_SHARE), (topology.RIGHT_EYE, _EYE_SHARE), (topology.LEFT_EYE, _EYE_SHARE)):
        move[list(group)] = move[list(group)].mean(0) * share
        fixed[list(group)] = True
    oval = list(topology.FACE_OVAL)
    move[oval] *= _OVAL_SHARE
    fixed[oval] = True
    held = move.copy()
    for _ in range(_ROUNDS):
        move = np.where(fixed[:, None], held, 0.5 * move + 0.5 * neighbour_mean() @ move)
    return np.asarray(move / [pixel_aspect, 1.0], np.float32)


@cache
def _between_lips() -> tuple[int, ...]:
    """Points inside the outer outline of the lips in UV: the lips' own."""
    outline = topology.uv()[list(topology.OUTER_LIPS)][:, None]
    return tuple(
        index
        for index, point in enumerate(topology.uv())
        if cv2.pointPolygonTest(outline, (float(point[0]), float(point[1])), False) >= 0
    )
