"""What a movie costs: a whole job of it over decoding and encoding it alone."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..deliver import parse_layers
from ..demo.plate import DemoPlateSpec, write_plate
from ..job import Assignment, KeyedSettings
from ..jobs.analyse import AnalyseJob, run_analyse
from ..jobs.apply import run_apply
from ..jobs.cancel import CancelToken
from ..jobs.movie_plan import plan_movie
from ..jobs.spec import ApplyJob, MovieOutput, Workbench
from ..media.movies.encode import MovieWriter
from ..plate import open_plate
from ..report.values import MAX_THUMBNAILS
from .figures import Figures

_CODEC = "prores_422hq"
_SHORT = MAX_THUMBNAILS
"""Frames of the short clip: both clips have a whole contact sheet, whose frames cost more than others."""
_LAYERS = parse_layers(None)


def _quiet(_: Mapping[str, Any]) -> None:
    return None


def movie_cost(
    spec: DemoPlateSpec, person: Path, bench: Workbench, folder: Path, runs: int, short: int = _SHORT
) -> Figures:
    """Processor time of a further frame of a ProRes 422 HQ job over that of decoding and encoding a frame, interleaved.

    Each is the difference between a long clip and a short one, so that what a job costs once (samples, report) is left
    out. The faces are known.

    Args:
        spec: plate of the long clip.
        person: identity file.
        bench: nets, colour, threads.
        folder: for the clips.
        runs: of each.
        short: frames of the short clip.
    """
    clips = [_clip(spec, count, person, bench, folder / f"clip{count}") for count in (spec.frames, short)]
    for clip in clips:
        run_analyse(AnalyseJob(str(clip)), bench, _quiet, CancelToken())
    further = spec.frames - short
    rows = []
    for run in range(runs):
        outputs = [folder / f"job{run}-{index}" / "out.mov" for index in range(len(clips))]
        job = [_job(clip, person, bench, output) for clip, output in zip(clips, outputs, strict=True)]
        alone = [_recode(clip, folder / "alone.mov", bench) for clip in clips]
        rows.append(((job[0] - job[1]) / further, (alone[0] - alone[1]) / further))
    whole, plain = (statistics.median(column) for column in zip(*rows, strict=True))
    return {
        "job ms of processor a frame": round(1000 * whole, 1),
        "decode + encode ms of processor a frame": round(1000 * plain, 1),
        "decode + encode / job": round(statistics.median(row[1] / row[0] for row in rows), 3),
    }


def _clip(spec: DemoPlateSpec, count: int, person: Path, bench: Workbench, folder: Path) -> Path:
    """The first frames of a demo plate as a ProRes clip."""
    plate = write_plate(spec, folder / "plate", count=count)
    clip = folder / "clip.mov"
    unchanged = KeyedSettings.parse({"strength": 0})
    made = MovieOutput(codec=_CODEC, rate=Fraction(24))
    job = ApplyJob(plate, str(clip), (Assignment(person),), layers=_LAYERS, settings=unchanged, movie=made)
    run_apply(job, bench, _quiet, CancelToken())
    return clip


def _recode(clip: Path, output: Path, bench: Workbench) -> float:
    """Decode and encode, as the job does both; processor seconds of all threads."""
    start = time.process_time()
    plate = open_plate(str(clip), bench.config)
    assert plate.movie is not None
    sources = plate.sources(None, "error")
    nobody = (Assignment(clip),)
    plan = plan_movie(
        ApplyJob(str(clip), str(output), nobody, layers=_LAYERS, movie=MovieOutput(codec=_CODEC)), plate, sources
    )
    times = plan.times
    with MovieWriter(output, output, plan.made, None) as writer:
        for source, stamp, duration in zip(times.shown, times.stamps, times.durations, strict=True):
            writer.write(plate.movie.picture(source.source).planes, stamp, duration)
    return time.process_time() - start


def _job(clip: Path, person: Path, bench: Workbench, output: Path) -> float:
    """The job, faces known; processor seconds of all threads."""
    job = ApplyJob(str(clip), str(output), (Assignment(person),), layers=_LAYERS, movie=MovieOutput(codec=_CODEC))
    start = time.process_time()
    run_apply(job, bench, _quiet, CancelToken())
    return time.process_time() - start
