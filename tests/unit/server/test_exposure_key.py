"""A track's exposure is kept by all that it depends on."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest

from faceplate.colour.spaces import ColourConfig
from faceplate.face import Observation, Origin, Track
from faceplate.jobs.plan import exposure_frames
from faceplate.plate import Plate, open_plate
from faceplate_server.frames.faces import exposure_key
from tests.support.exr import write_flat


@pytest.fixture
def plate(tmp_path: Path) -> Plate:
    grey = np.full((8, 8), 0.18, np.float16)
    for number in range(1, 21):
        write_flat(tmp_path / f"p.{number:04d}.exr", dict.fromkeys("RGB", grey))
    return open_plate(str(tmp_path / "p.####.exr"), ColourConfig.open(), None)


def track(count: int, shift: float = 0.0, at: int = 5) -> Track:
    points = np.zeros((478, 3), np.float32)
    moved = points + np.float32(shift)
    return Track(
        1,
        {
            frame: Observation(frame, moved if frame == at else points, 1.0, Origin.DETECTED, 0.0)
            for frame in range(1, count + 1)
        },
    )


def test_what_changes_the_exposure_changes_the_key(plate: Plate) -> None:
    key = exposure_key(plate, track(9), {})
    assert key == exposure_key(plate, track(9), {})
    assert key != exposure_key(plate, track(8), {})
    assert key != exposure_key(plate, track(9, shift=1.0), {}), "landmarks that were corrected by hand"
    path = plate.sequence.path(7)
    before = path.stat()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert key != exposure_key(plate, track(9), {}), "a frame in mid-shot that was rendered anew"
    other = dataclasses.replace(plate, decision=dataclasses.replace(plate.decision, space="ACES2065-1"))
    assert exposure_key(other, track(9), {}) != exposure_key(plate, track(9), {})


def test_what_does_not_count_leaves_the_key(plate: Plate) -> None:
    whole = track(20)
    unused = next(frame for frame in range(1, 21) if frame not in exposure_frames(plate, whole))
    key = exposure_key(plate, whole, {})
    assert exposure_key(plate, track(20, shift=1.0, at=unused), {}) == key
    plate.sequence.path(unused).touch()
    assert exposure_key(plate, whole, {}) == key
