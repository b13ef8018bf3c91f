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
from .view import PlateView

SIZE = 96
MOST_FRAMES = 64
FEWEST_FRAMES = 5
FLOOR = 2.0**-10
"""Linear light below which the logarithm stops."""

Texture = NDArray[np.float32]

_LOWEST, _CODES = -10.0, 20.0
"""Of a stored texture: the stops of code 1, and codes a stop; 0 is not seen."""
_CROP = 160
_FACING = 0.2


def light_texture(view: PlateView, landmarks: NDArray[np.floating[Any]]) -> Texture:
    """(96, 96, 3) float32, log2 of linear Rec.709 light in face UV; NaN off the face, on the far side and outside the
    picture.

    Args:
        view: the frame.
        landmarks: (478, 3) plate px.
    """
    roi = roi_from_landmarks(landmarks, view.pixel_aspect)
    matrix = roi.matrix(_CROP, view.pixel_aspect)
    crop = view.sample_linear(matrix, (_CROP, _CROP))
    to_crop = np.linalg.inv(matrix[:, :2]).T
    inside = (landmarks[: topology.FACE_POINTS, :2] - matrix[:, 2]) @ to_crop
    spread = rectify.interpolate(np.hstack([inside, _facing(landmarks, view.pixel_aspect)]), SIZE)
    at = spread[..., :2] - np.float32(0.5)
    light = cv2.remap(crop, at[..., 0], at[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    texture = np.log2(np.maximum(np.asarray(light, np.float32), np.float32(FLOOR)))
    seen = rectify.coverage(SIZE) & (spread[..., 2] > _FACING)
    if not _in_picture(landmarks[: topology.FACE_POINTS, :2], view).all():
        seen &= _in_picture(spread[..., :2] @ matrix[:, :2].T + matrix[:, 2], view)
    texture[~seen] = np.nan
    return texture


def log_texture(view: PlateView, landmarks: NDArray[np.floating[Any]]) -> Texture:
    """`light_texture` with zero mean over the seen skin per channel."""
    return centred(light_texture(view, landmarks))


def centred(texture: Texture) -> Texture:
    """A texture without its mean, channel by channel."""
    seen = np.isfinite(texture[..., 0])
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


def _in_picture(points: NDArray[np.floating[Any]], view: PlateView) -> NDArray[np.bool_]:
    """Of points in plate px, (..., 2)."""
    at = points - np.asarray(view.origin)
    return np.asarray(((at >= 0) & (at <= (view.width, view.height))).all(-1))


@dataclass(slots=True, eq=False)
class AppearanceSampler:
    """Collects textures of a track while it is followed, one a frame, in twentieths of a stop: 20 kB."""

    _codes: dict[int, NDArray[np.uint8]] = field(default_factory=dict)

    def add(self, frame: int, texture: Texture) -> None:
        """Take what `light_texture` saw in a frame."""
        known = texture[rectify.coverage(SIZE)]
        codes = np.clip(np.rint((known - _LOWEST) * _CODES) + 1.0, 1.0, 255.0)
        self._codes[frame] = np.where(np.isfinite(known), codes, 0.0).astype(np.uint8)

    def merge(self, other: AppearanceSampler) -> None:
        """Take over what another track of the same face collected."""
        self._codes = dict(sorted({**self._codes, **other._codes}.items()))

    def texture(self, frame: int) -> Texture | None:
        """What `add` was given, rounded; None for a frame that was not seen."""
        if frame not in self._codes:
            return None
        codes = self._codes[frame].astype(np.float32)
        texture = np.full((SIZE, SIZE, 3), np.nan, np.float32)
        texture[rectify.coverage(SIZE)] = np.where(codes > 0, (codes - 1.0) / np.float32(_CODES) + _LOWEST, np.nan)
        return texture

    def result(self, frames: frozenset[int]) -> Appearance | None:
        """Median and spread over at most 64 of `frames`, evenly spread; None where fewer than 5 were seen."""
        chosen, every = sorted(frames & self._codes.keys()), 1
        while sum(frame % every == 0 for frame in chosen) > MOST_FRAMES:
            every *= 2
        textures = [self.texture(frame) for frame in chosen if frame % every == 0]
        seen = [centred(texture).astype(np.float16) for texture in textures if texture is not None]
        return build_appearance(seen) if len(seen) >= FEWEST_FRAMES else None


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
    median[known] = _middle(values)
    spread[known] = 1.4826 * _middle(np.abs(values - median[known])).mean(-1)
    # The sidecar keeps half floats: the same numbers before and after.
    return Appearance(median.astype(np.float16).astype(np.float32), spread.astype(np.float16).astype(np.float32))


def _middle(values: Texture) -> Texture:
    """Median along the first axis, NaN left out, of (frames, n, 3) that has a number for each texel somewhere."""
    # numpy's own takes seven times as long; sorting puts NaN last.
    rising = np.sort(values, axis=0)
    last = np.isfinite(values).sum(0)[None] - 1
    low, high = (np.take_along_axis(rising, at, 0)[0] for at in (last // 2, (last + 1) // 2))
    return np.asarray((low + high) / np.float32(2.0), np.float32)
