"""The figure that promises bits can fail: a spoilt result is counted."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from faceplate.bench import figures, movies
from faceplate.bench.movies import movie_cost
from faceplate.bench.shot import make_shot
from faceplate.cli.options import open_workbench
from faceplate.deliver import write_frame
from faceplate.demo.plate import DemoPlateSpec
from faceplate.jobs import apply as jobs_apply
from faceplate.jobs import frames as jobs_frames


def test_bits_outside_the_matte_are_counted(identity: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = open_workbench(device="cpu", threads=2)
    spec = DemoPlateSpec(frames=2, width=640, height=360, overscan=4)
    with bench.nets:
        shot = make_shot(spec, tmp_path / "shot", bench)
        counted = figures.outside_bits(shot, identity, bench, tmp_path / "whole")
        assert counted["differing bits"] == 0
        assert counted["pixels compared"] > 1.5 * 640 * 360

        def spoil(path: Path, plate: object, frame: object, swapped: object, delivery: object) -> None:
            swapped.pixels.view(np.uint16)[0, 0, 0] ^= 0b11  # type: ignore[attr-defined]
            write_frame(path, plate, frame, swapped, delivery)  # type: ignore[arg-type]

        for module in (jobs_apply, jobs_frames):
            monkeypatch.setattr(module, "write_frame", spoil)
        assert figures.outside_bits(shot, identity, bench, tmp_path / "spoilt")["differing bits"] == 2 * spec.frames


def test_what_a_movie_costs(identity: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # real jobs of one small frame by a clock of our own, since that frame's real times drown in the machine's noise
    spent = (0.9, 0.5, 0.6, 0.3)  # job of the long and the short clip, then decode and encode of both
    readings = iter([reading for seconds in spent for reading in (0.0, seconds)])
    monkeypatch.setattr(movies, "time", SimpleNamespace(process_time=lambda: next(readings)))
    bench = open_workbench(device="cpu", threads=1)
    spec = DemoPlateSpec(frames=2, width=320, height=180, overscan=0)
    with bench.nets:
        found = movie_cost(spec, identity, bench, tmp_path, runs=1, short=1)
    assert found["job ms of processor a frame"] > found["decode + encode ms of processor a frame"] > 0
    assert 0 < found["decode + encode / job"] < 1
    assert list(found.values()) == [400.0, 300.0, 0.75]
    assert next(readings, None) is None
    assert len(list(tmp_path.glob("job0-*/out.mov"))) == 2
