"""Media for timelines: short movies with and without timecode, and pictures that are only names."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from faceplate.jobs.timeline.plan import TimelinePlan, outputs, plan_timeline
from faceplate.jobs.timeline.run import result_of
from faceplate.jobs.timeline.spec import RenderJob
from faceplate.jobs.timeline.write import write_timelines
from faceplate.jobs.words import ApplyWords
from faceplate.media.timelines.files import Document, open_timeline
from faceplate.media.timelines.place import Result
from tests.support.movies import Clip

FRAMES = 60
CODE = 86400


@pytest.fixture(scope="session")
def media(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A001.mov: 60 frames from 01:00:00:00; B 002.mov: 60 without timecode; N001.mov at 23.976; sh010.1001-1060.exr."""
    folder = tmp_path_factory.mktemp("media")
    one = Clip("mpeg4", "yuv420p", 32, 32)
    pictures = one.noise(1) * FRAMES
    Clip("mpeg4", "yuv420p", 32, 32, timecode="01:00:00:00", audio=True).write(folder / "A001.mov", pictures)
    one.write(folder / "B 002.mov", pictures)
    rate = Fraction(24000, 1001)
    Clip("mpeg4", "yuv420p", 32, 32, rate=rate, timecode="01:00:00:00").write(folder / "N001.mov", pictures)
    for number in range(1001, 1061):
        (folder / f"sh010.{number}.exr").touch()
    return folder


def render_job(path: Path, out: Path, **options: Any) -> RenderJob:
    """A job as the command line makes it."""
    words = ApplyWords(plate=str(path), output=str(out), identity=(), missing=options.pop("missing", "error"))
    return RenderJob(path, out, words, **options)


def planned(path: Path, out: Path, **options: Any) -> tuple[RenderJob, TimelinePlan]:
    """A timeline's plan."""
    job = render_job(path, out, **options)
    return job, plan_timeline(open_timeline(path, job.rate, job.name, out), job)


def placed(job: RenderJob, plan: TimelinePlan) -> list[tuple[Any, Result]]:
    """Results for all clips of a plan, as if they were rendered."""
    found = []
    for shot in plan.shots:
        made = outputs(shot, job.output, job.suffix)
        found += [(clip.item, result_of(shot, made, clip)) for clip in shot.clips]
    return found


def handed_back(path: Path, out: Path, **options: Any) -> tuple[list[Path], list[str], TimelinePlan]:
    """(files written, what was said, plan) of a render whose pictures are not rendered."""
    out.mkdir(exist_ok=True)
    job, plan = planned(path, out, **options)
    assert plan.problems == ()
    said: list[str] = []
    written = write_timelines(job, plan.document, placed(job, plan), lambda event: said.append(event["text"]))
    return written, said, plan


def shown(plan: TimelinePlan) -> dict[str, list[tuple[int, int]]]:
    """Shown plate frames of each clip by the source's name."""
    return {shot.name: [clip.shown for clip in shot.clips] for shot in plan.shots}


def names(document: Document) -> Sequence[str]:
    return [clip.name for clip in document.timeline.find_clips()]
