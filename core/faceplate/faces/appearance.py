"""What a track's face usually looks like, in canonical UV: the reference against which occluders show."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ..face import Appearance
from . import rectify, topology
from .crop import roi_from_landmarks, unsqueeze
from .view import Affine, PlateView

SIZE = 96
MOST_FRAMES = 64
FEWEST_FRAMES = 5
FLOOR = 2.0**-10
"""Linear light below which the logarithm stops."""

_CROP = 160
_FACING = 0.2


def log_texture(view: PlateView, landmarks: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """(96, 96, 3) float32, log2 of linear Rec.709 light in face UV with zero mean over the seen skin per channel; NaN
    off the face, on the far side and outside the picture.

    Args:
        view: the frame.
        landmarks: (478, 3) plate px.
    """
    roi = roi_from_landmarks(landmarks, view.pixel_aspect)
    matrix = roi.matrix(_CROP, view.pixel_aspect)
    crop = view.sample_linear(matrix, (_CROP, _CROP))
    inside = (landmarks[: topology.FACE_POINTS, :2] - matrix[:, 2]) @ np.linalg.inv(matrix[:, :2]).T
    spread = rectify.interpolate(np.hstack([inside, _facing(landmarks, view.pixel_aspect)]), SIZE)
    at = spread[..., :2] - np.float32(0.5)
    light = cv2.remap(crop, at[..., 0], at[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    texture = np.log2(np.maximum(np.asarray(light, np.float32), np.float32(FLOOR)))
    seen = rectify.coverage(SIZE) & (spread[..., 2] > _FACING) & _in_picture(spread[..., :2], matrix, view)
    texture[~seen] = np.nan
    return texture - texture[seen].mean(0) if seen.any() else texture


def _facing(landmarks: NDArray[np.floating[Any]], pixel_aspect: float) -> NDArray[np.float64]:
    """(468, 1), cosine between each point's normal and the direction to the camera."""
    points = unsqueeze(landmarks[: topology.FACE_POINTS], pixel_aspect)
    corners = topology.triangles()
    a, b, c = (points[corners[:, index]] for index in range(3))
    normals = np.cross(b - a, c - a)
    sums = [
        np.bincount(corners.T.ravel(), np.tile(normals[:, axis], 3), minlength=topology.FACE_POINTS)
        for axis in range(3)
    ]
    at_points = np.stack(sums, -1)
    return np.asarray(-at_points[:, 2:] / np.maximum(np.linalg.norm(at_points, axis=1, keepdims=True), 1e-9))


def _in_picture(at: NDArray[np.float32], matrix: Affine, view: PlateView) -> NDArray[np.bool_]:
    plate = at @ matrix[:, :2].T + (matrix[:, 2] - view.origin)
    return np.asarray(((plate >= 0) & (plate <= (view.width, view.height))).all(-1))


@dataclass(slots=True, eq=False)
class AppearanceSampler:
    """Collects textures of a track while it is followed; keeps at most 64, evenly spread over the frames."""

    _every: int = 1
    _textures: dict[int, NDArray[np.float16]] = field(default_factory=dict)

    def add(self, frame: int, view: PlateView, landmarks: NDArray[np.floating[Any]]) -> None:
        """Take a frame, unless it falls between those kept."""
        if frame % self._every == 0:
            self._textures[frame] = log_texture(view, landmarks).astype(np.float16)
            self._thin()

    def merge(self, other: AppearanceSampler) -> None:
        """Take over what another track of the same face collected."""
        self._every = max(self._every, other._every)
        self._textures = {
            frame: texture
            for frame, texture in sorted({**self._textures, **other._textures}.items())
            if frame % self._every == 0
        }
        self._thin()

    def _thin(self) -> None:
        while len(self._textures) > MOST_FRAMES:
            self._every *= 2
            self._textures = {frame: texture for frame, texture in self._textures.items() if frame % self._every == 0}

    def result(self, frames: frozenset[int]) -> Appearance | None:
        """Median and spread over those of `frames` that were kept; None where they are fewer than 5."""
        chosen = [texture for frame, texture in sorted(self._textures.items()) if frame in frames]
        return build_appearance(chosen) if len(chosen) >= FEWEST_FRAMES else None


def build_appearance(textures: list[NDArray[np.float16]]) -> Appearance:
    """Robust centre and deviation, texel by texel; a texel seen in less than a quarter of the frames stays NaN.

    Args:
        textures: as `log_texture` gives them.
    """
    stack = np.stack(textures).astype(np.float32)
    count = np.isfinite(stack[..., 0]).sum(0)
    known = count * 4 >= len(textures)
    median = np.full(stack.shape[1:], np.nan, np.float32)
    spread = np.full(stack.shape[1:3], np.nan, np.float32)
    values = stack[:, known]
    median[known] = np.nanmedian(values, axis=0)
    spread[known] = 1.4826 * np.nanmedian(np.abs(values - median[known]), axis=0).mean(-1)
    # The sidecar keeps half floats: the same numbers before and after.
    return Appearance(median.astype(np.float16).astype(np.float32), spread.astype(np.float16).astype(np.float32))
