"""Named points that a person moved in a host's tracker: the whole face follows them.

A sidecar may hold, written by hand or by a host's plug-in:

    "corrections": {"1": {"1010": {"chin": [812.5, 640.25], "nose tip": [...]}}}      track, frame, point, plate px

They are applied whenever the sidecar is read, and stay in it, so that they outlive a new analysis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import RBFInterpolator

from ..errors import SidecarError
from ..face import Observation, Origin, Track
from .pose import yaw_degrees
from .shot import quantise

KEY = "corrections"
NAMED: Mapping[str, int] = MappingProxyType(
    {
        "forehead": 10,
        "chin": 152,
        "right cheek": 234,
        "left cheek": 454,
        "right brow": 105,
        "left brow": 334,
        "right eye outer": 33,
        "right eye inner": 133,
        "left eye inner": 362,
        "left eye outer": 263,
        "nose tip": 1,
        "right mouth corner": 61,
        "left mouth corner": 291,
        "upper lip": 13,
        "lower lip": 14,
    }
)
"""Points that a person can find in a picture, by their place in the mesh. Left and right are the subject's own."""
STILL_PX = 0.01
"""Less than this is no correction: what a host's own numbers round to."""
_FAR = 1e6

_Points64 = NDArray[np.float64]
Corrections = Mapping[int, Mapping[int, Mapping[str, tuple[float, float]]]]


def parse_corrections(value: Any, name: str) -> Corrections:
    """Check what stands in a sidecar.

    Args:
        value: of the key.
        name: of the file, for messages.

    Raises:
        SidecarError: not as the head of this module says.
    """
    found: dict[int, dict[int, dict[str, tuple[float, float]]]] = {}
    for track, frames in _items(value, name, KEY):
        for frame, points in _items(frames, name, f"{KEY}.{track}"):
            where = f"{KEY}.{track}.{frame}"
            for point, place in _items(points, name, where):
                if point not in NAMED:
                    raise SidecarError(
                        f"{name}: {where} names no point of a face", expected=", ".join(NAMED), found=repr(point)
                    )
                xy = found.setdefault(_number(track, name, KEY), {}).setdefault(_number(frame, name, where), {})
                xy[point] = _place(place, name, f"{where}.{point}")
    return found


def correct(tracks: tuple[Track, ...], corrections: Corrections, pixel_aspect: float, name: str) -> tuple[Track, ...]:
    """Tracks with their corrections; frames that changed have the origin EDITED.

    Args:
        tracks: as analysis found them.
        corrections: from `parse_corrections`.
        pixel_aspect: of the plate.
        name: of the file, for messages.

    Raises:
        SidecarError: a correction of a track or frame in which there is no face.
    """
    known = {track.id: track for track in tracks}
    for track_id, frames in corrections.items():
        gone = sorted(frame for frame in frames if track_id not in known or frame not in known[track_id].observations)
        if gone:
            raise SidecarError(
                f"{name}: track {track_id} is corrected where it has no face",
                found=f"frames {', '.join(map(str, gone[:10]))}",
                hint=f'take them out of "{KEY}"',
            )
    return tuple(_corrected(one, corrections[one.id], pixel_aspect) if one.id in corrections else one for one in tracks)


def _corrected(track: Track, frames: Mapping[int, Mapping[str, tuple[float, float]]], pixel_aspect: float) -> Track:
    observations = dict(track.observations)
    for frame, points in frames.items():
        observations[frame] = _moved(observations[frame], points, pixel_aspect)
    return replace(track, observations=observations)


def _moved(seen: Observation, points: Mapping[str, tuple[float, float]], pixel_aspect: float) -> Observation:
    """The face with its named points where they should be; those that are not named hold their place."""
    before = seen.landmarks[:, :2].astype(np.float64)
    anchors = before[list(NAMED.values())]
    targets = np.array([points.get(name, tuple(before[index])) for name, index in NAMED.items()])
    shift = targets - anchors
    if float(np.abs(shift).max()) < STILL_PX:
        return seen
    landmarks = seen.landmarks.copy()
    landmarks[:, :2] = before + _spread(anchors, shift, before)
    landmarks = quantise(landmarks)
    yaw = round(yaw_degrees(landmarks, pixel_aspect), 2)
    return replace(seen, landmarks=landmarks, origin=Origin.EDITED, yaw_deg=yaw, cover=None)


def _spread(anchors: _Points64, shift: _Points64, places: _Points64) -> _Points64:
    """The displacement at all points: a thin-plate spline through the named ones.

    Exact where all move alike, turn or grow: its polynomial part is affine.
    """
    spline = RBFInterpolator(anchors, shift, kernel="thin_plate_spline", degree=1)
    result: _Points64 = spline(places)
    return result


def _items(value: Any, name: str, where: str) -> Any:
    if not isinstance(value, dict):
        raise SidecarError(f"{name}: {where} is wrong", expected="an object", found=type(value).__name__)
    return value.items()


def _number(text: str, name: str, where: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 10):
        raise SidecarError(f"{name}: {where} has a key that is no number", found=repr(text))
    return int(text)


def _place(value: Any, name: str, where: str) -> tuple[float, float]:
    good = isinstance(value, list) and len(value) == 2
    if not good or any(isinstance(v, bool) or not isinstance(v, int | float) or abs(v) > _FAR for v in value):
        raise SidecarError(f"{name}: {where} is wrong", expected="[x, y] in plate px", found=str(value)[:60])
    return float(value[0]), float(value[1])
