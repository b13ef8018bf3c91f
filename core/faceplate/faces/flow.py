"""How far each landmark moved between two frames, by optical flow between two face-aligned crops."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from . import topology
from .crop import Roi
from .view import Affine, Picture, PlateView

CROP = 320
_SURROUND = 1.25
_WINDOW = (17, 17)
_PYRAMID = 2
_RETURN_PX = 0.22
_ENOUGH = 0.1
_DETAIL_PX = 8.0
_CONTRAST_PX = 49
_NOISE = np.float32(0.02)
"""Contrast below which nothing is amplified: grain."""
_GREY = np.array([[0.2126, 0.7152, 0.0722]], np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class FlowPatch:
    """A face as flow sees it.

    Attributes:
        picture: (320, 320, 3), display-encoded.
        grey: (320, 320) uint8, the detail of its luma, see `_levelled`.
        matrix: (2, 3) crop px to plate px.
        roi: the square that it was made for; it shows a quarter more.
    """

    picture: Picture
    grey: NDArray[np.uint8]
    matrix: Affine
    roi: Roi

    def cut(self, roi: Roi, size: int, pixel_aspect: float) -> Picture:
        """A square that lies about within the patch, (size, size, 3), resampled once more."""
        matrix = roi.matrix(size, pixel_aspect)
        inverse = np.linalg.inv(self.matrix[:, :2])
        linear = inverse @ matrix[:, :2]
        # cv2 counts from the centre of the first pixel.
        offset = inverse @ (matrix[:, 2] - self.matrix[:, 2]) + linear @ (0.5, 0.5) - 0.5
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        picture = cv2.warpAffine(
            self.picture,
            np.hstack([linear, offset[:, None]]),
            (size, size),
            flags=flags,
            borderMode=cv2.BORDER_REPLICATE,
        )
        return np.asarray(picture, np.float32)


def flow_patch(view: PlateView, roi: Roi) -> FlowPatch:
    """The crop around the landmark net's square."""
    matrix = replace(roi, side=roi.side * _SURROUND).matrix(CROP, view.pixel_aspect)
    picture = view.sample(matrix, (CROP, CROP))
    grey = np.asarray(cv2.transform(picture, _GREY), np.float32)
    return FlowPatch(picture, _levelled(grey), matrix, roi)


def _levelled(grey: Picture) -> NDArray[np.uint8]:
    """Fine detail at an even contrast: Lucas-Kanade would take light that changes for motion.

    Args:
        grey: (320, 320) float32 0..1.
    """
    small = cv2.resize(grey, (CROP // 2, CROP // 2), interpolation=cv2.INTER_AREA)
    coarse = cv2.resize(cv2.GaussianBlur(small, (0, 0), _DETAIL_PX / 2), (CROP, CROP), interpolation=cv2.INTER_LINEAR)
    fine = grey - coarse
    power = cv2.boxFilter(fine * fine, -1, (_CONTRAST_PX, _CONTRAST_PX))
    contrast = np.sqrt(np.maximum(power, 0.0)) + _NOISE
    level = fine / contrast * np.float32(40) + np.float32(128)
    return np.asarray(np.clip(level, 0, 255).astype(np.uint8))


def point_flow(
    before: FlowPatch, after: FlowPatch, points: NDArray[np.floating[Any]], guess: NDArray[np.floating[Any]]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Lucas-Kanade there and back.

    Args:
        before: the earlier crop.
        after: the later crop.
        points: (P, 2) plate px in the earlier frame.
        guess: (P, 2) plate px, about where they are in the later one.

    Returns:
        (P, 2) float32 motion in plate px, and (P,) float32 reliability 0..1 from how well the way back ends where it
        began.
    """
    start = _to_crop(points, before.matrix)
    # Face-aligned crops: what remains is small, and zero is the guess that is exact at rest.
    first = _to_crop(guess, after.matrix)
    there, found, _ = _track(before.grey, after.grey, start, first, _PYRAMID)
    # The way back starts where it should end: the finest level tells whether it stays there.
    back, returned, _ = _track(after.grey, before.grey, there, start, 0)
    miss = np.hypot(*(back - start).T)
    reliability = np.exp(-((miss / _RETURN_PX) ** 2)) * (found[:, 0] & returned[:, 0])
    end = _to_plate(there, after.matrix)
    return (end - _to_plate(start, before.matrix)).astype(np.float32), reliability.astype(np.float32)


def steady(
    points: NDArray[np.floating[Any]], flow: NDArray[np.float32], reliability: NDArray[np.float32]
) -> NDArray[np.float32]:
    """The flow of the 468 face points made to agree with their neighbours; those of the iris stay as they are.

    What an affine motion of the whole face leaves over is averaged along the edges of the mesh, by reliability; open
    eyes and mouth are gaps over which nothing is averaged.

    Args:
        points: (478, 2) plate px.
        flow: (478, 2) plate px.
        reliability: (478,) 0..1.
    """
    face = slice(0, topology.FACE_POINTS)
    weight = reliability[face].astype(np.float64)
    if weight.sum() < _ENOUGH * topology.FACE_POINTS:
        return flow
    centred = points[face] - points[face].mean(0)
    basis = np.column_stack([centred / max(float(np.abs(centred).max()), 1e-6), np.ones(topology.FACE_POINTS)])
    affine = np.linalg.solve(basis.T @ (basis * weight[:, None]), (basis * weight[:, None]).T @ flow[face])
    rest = flow[face] - basis @ affine
    # A point that the flow lost follows its neighbours.
    near, weight = _neighbours(), weight[:, None] + 1e-3
    total = near @ weight
    for _ in range(2):
        rest = near @ (rest * weight) / total
    out = flow.copy()
    out[face] = basis @ affine + rest
    return out


@cache
def _neighbours() -> csr_array:
    """(468, 468), 1 where points share an edge of the skin or are the same."""
    corners = topology.triangles(holes_filled=False)
    matrix = np.eye(topology.FACE_POINTS)
    for a, b in ((0, 1), (1, 2), (2, 0)):
        matrix[corners[:, a], corners[:, b]] = matrix[corners[:, b], corners[:, a]] = 1.0
    return csr_array(matrix)


def _track(
    a: NDArray[np.uint8],
    b: NDArray[np.uint8],
    points: NDArray[np.float32],
    guess: NDArray[np.float32],
    levels: int,
) -> Any:
    return cv2.calcOpticalFlowPyrLK(
        a,
        b,
        points,
        guess.copy(),
        winSize=_WINDOW,
        maxLevel=levels,
        criteria=(cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_COUNT, 20, 0.005),
        flags=cv2.OPTFLOW_USE_INITIAL_FLOW,
        minEigThreshold=1e-4,
    )


def _to_crop(points: NDArray[np.floating[Any]], matrix: Affine) -> NDArray[np.float32]:
    # cv2 counts from the centre of the first pixel.
    return ((points - matrix[:, 2]) @ np.linalg.inv(matrix[:, :2]).T - 0.5).astype(np.float32)


def _to_plate(points: NDArray[np.float32], matrix: Affine) -> NDArray[np.float64]:
    return np.asarray((points.astype(np.float64) + 0.5) @ matrix[:, :2].T + matrix[:, 2])
