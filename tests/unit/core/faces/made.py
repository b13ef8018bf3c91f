"""Views of synthetic plates and the shipped nets, for the tests of this folder."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from faceplate.demo.portrait import REC709_TO_AP1
from faceplate.face import Observation, Origin, Track
from faceplate.faces.nets import FaceNets
from faceplate.faces.pose import yaw_degrees
from faceplate.faces.shot import quantise
from faceplate.faces.view import LinearPlateView
from faceplate.models.sessions import SessionPool
from tests.support.plates import SyntheticPlate

TO_REC709 = np.linalg.inv(REC709_TO_AP1)


@functools.cache
def nets() -> FaceNets:
    return FaceNets.load(SessionPool(device="cpu", threads=1))


def view(plate: SyntheticPlate, frame: int = 1001, pixels: NDArray[np.float16] | None = None) -> LinearPlateView:
    return LinearPlateView(
        plate.frame(frame) if pixels is None else pixels,
        plate.data_window,
        pixel_aspect=plate.pixel_aspect,
        to_rec709=TO_REC709,
    )


def mean_error(found: NDArray[np.floating], truth: NDArray[np.floating]) -> float:
    """Mean distance of the 468 face points, px."""
    return float(np.hypot(*(found[:468, :2] - truth[:468, :2]).T).mean())


def observation(landmarks: NDArray[np.floating], frame: int, origin: Origin = Origin.DETECTED) -> Observation:
    points = quantise(landmarks)
    return Observation(frame, points, 0.98, origin, round(yaw_degrees(points, 1.0), 2))


def made_track(track_id: int, frames: range, *, x: float = 200.0, width: float = 100.0, label: str = "") -> Track:
    """A canonical face that stands at x."""
    from faceplate.faces.topology import canonical

    face = np.vstack([canonical(), np.zeros((10, 3))]) * width + (x, 150.0, 0.0)
    seen: Mapping[int, Observation] = MappingProxyType({frame: observation(face, frame) for frame in frames})
    return Track(track_id, seen, label=label)
