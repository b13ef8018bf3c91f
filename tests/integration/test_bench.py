"""The figure that promises bits can fail: a spoilt result is counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from faceplate.bench import figures
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


def test_what_a_movie_costs(identity: Path, tmp_path: Path) -> None:
    bench = open_workbench(device="cpu", threads=1)
    spec = DemoPlateSpec(frames=2, width=320, height=180, overscan=0)
    with bench.nets:
        found = movie_cost(spec, identity, bench, tmp_path, runs=1, short=1)
    # of one small frame, so that on a busy machine either may come out as next to nothing; the quotient is theirs
    job, alone = found["job ms of processor a frame"], found["decode + encode ms of processor a frame"]
    if min(abs(job), abs(alone)) > 1:
        assert found["decode + encode / job"] == pytest.approx(alone / job, rel=0.15)
    assert len(list(tmp_path.glob("job0-*/out.mov"))) == 2
