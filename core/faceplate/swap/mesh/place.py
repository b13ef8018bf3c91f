"""Where a face is worked on, and how coarse the grid of its smooth fields is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...face import Points
from ...faces import topology
from ...frame import Box
from ..base import FaceCrop

_COARSE_FACE = 96.0
"""Face width in samples that the coarse grid keeps at least, where the face has them."""
_MAX_STEP = 8
_GOES_OVER = 0.9
"""Part of the width at which the step doubles where it begins to."""
_MARGIN, _LEAST_MARGIN = 0.015, 2.0
"""Plate around the oval, face widths and px: the matte's edge ends within them."""
_WARP_REACH = 0.20
"""Plate around the oval where the shape moves it, face widths."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where in its crop a face is worked on.

    Attributes:
        rows, columns: of the crop.
        landmarks: (478, 3) px from the corner of the place.
        face_px: face width, in rows.
        aspect: pixel aspect.
        step: fine pixels a coarse sample.
        coarser: 0..1, how far the result is that of twice the step: it goes over, so that a face that grows meets no
            frame in which it changes at once.
    """

    rows: slice
    columns: slice
    landmarks: Points
    face_px: float
    aspect: float
    step: int
    coarser: float

    @property
    def height(self) -> int:
        return int(self.rows.stop - self.rows.start)

    @property
    def width(self) -> int:
        return int(self.columns.stop - self.columns.start)


def window(landmarks: Points, moves: bool) -> Box:
    """What the engine needs of the plate for a face with these landmarks, plate px: its bounds and a little more; a lot
    more where the shape moves the plate around it.
    """
    extent = landmarks[: topology.FACE_POINTS, :2]
    # in a squeezed picture no side is longer than the face is wide where it is not
    face_px = _face_px(landmarks, 1.0)
    low, high = _bounds(landmarks, _reach(float(np.ptp(extent, axis=0).max()) if moves else face_px, moves), 1.0)
    high = high + -(high - low) % (2 * _step(face_px))
    return Box(*low.tolist(), *high.tolist())


def _face_px(landmarks: Points, aspect: float) -> float:
    """`Observation.width_px` in rows."""
    points = landmarks[: topology.FACE_POINTS, :2] * np.array([aspect, 1.0], np.float32)
    axis = points[263] - points[33]
    along = points @ (axis / max(float(np.hypot(*axis)), 1e-6))
    return float(along.max() - along.min())


def _step(face_px: float) -> int:
    """Of the coarse grid, px."""
    step = 1
    while step < _MAX_STEP and face_px / (2 * step) >= _COARSE_FACE:
        step *= 2
    return step


def _coarser(face_px: float, step: int) -> float:
    """`Place.coarser`: rises over the last tenth of the widths that have this step."""
    share = (face_px / (2 * step * _COARSE_FACE) - _GOES_OVER) / (1.0 - _GOES_OVER)
    share = min(max(share, 0.0), 1.0) if step < _MAX_STEP else 0.0
    return share * share * (3.0 - 2.0 * share)


def _reach(size: float, moves: bool) -> float:
    return (_WARP_REACH if moves else _MARGIN) * size + _LEAST_MARGIN


def _bounds(landmarks: Points, reach: float, aspect: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Corners of the face and `reach` rows around it, px."""
    points, around = landmarks[: topology.FACE_POINTS, :2], reach / np.array([min(aspect, 1.0), 1.0])
    low, high = np.floor(points.min(0) - around), np.ceil(points.max(0) + around)
    return low.astype(np.int64), high.astype(np.int64)


def find_place(crop: FaceCrop) -> Place | None:
    """The part of the crop that the face and its surroundings fill; None when it lies outside."""
    face_px = _face_px(crop.landmarks, crop.pixel_aspect)
    step = _step(face_px)
    low, high = _bounds(crop.landmarks, _reach(face_px, crop.settings.shape > 0), crop.pixel_aspect)
    height, width = crop.view.shape[1:]
    low, high = np.maximum(low, 0), np.minimum(high, [width, height])
    if (high - low < 2).any() or face_px < 4.0:
        return None
    # whole blocks, where the crop has room, so that all coarse grids share one enlargement
    room = np.minimum(-(high - low) % (2 * step), np.array([width, height]) - high)
    high = high + room
    landmarks = crop.landmarks - np.array([low[0], low[1], 0], np.float32)
    return Place(
        slice(int(low[1]), int(high[1])),
        slice(int(low[0]), int(high[0])),
        landmarks.astype(np.float32),
        face_px,
        crop.pixel_aspect,
        step,
        _coarser(face_px, step),
    )
