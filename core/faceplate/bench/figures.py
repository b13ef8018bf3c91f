"""The figures, each a mapping of name to number that prints as it is."""

from __future__ import annotations

import resource
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from ..deliver import parse_layers
from ..demo.plate import DemoPlateSpec
from ..face import Identity
from ..faces.measure import landmark_jitter
from ..faces.nets import FaceNets
from ..faces.shot import AnalyseSettings
from ..job import Assignment, SwapSettings
from ..jobs.apply import run_apply
from ..jobs.cancel import CancelToken
from ..jobs.engines import make_engine, torch_device
from ..jobs.plan import make_plan
from ..jobs.spec import ApplyJob, Workbench
from ..media.exr import write_exr
from ..media.matte import read_matte
from ..media.read import read_image
from ..pipeline import FacePipeline, FaceTask
from .shot import BenchShot, make_shot

Figures = Mapping[str, Any]


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def frame_cost(spec: DemoPlateSpec, identity: Identity, bench: Workbench, folder: Path, runs: int) -> Figures:
    """Compute of one frame over EXR zip read and write of that frame, one thread each, interleaved.

    Compute is all but file I/O: the frame's share of the analysis of the shot, searches included, and the swap from the
    plate's pixels in memory to the result's. I/O is the plate as it lies on disk, RGBA half.
    """
    shot = make_shot(spec, folder, bench)
    nets = FaceNets.load(bench.nets)
    faces = shot.analyse(nets)
    track = max(faces.tracks, key=lambda one: one.weight)
    middle = spec.numbers[len(spec.numbers) // 2]
    planned = make_plan(shot.plate, {track.id: identity}, [track]).planned[0]
    seen = planned.seen(middle)
    task = FaceTask(track.id, seen, identity, SwapSettings(), planned.exposure, track.appearance)
    pipeline = FacePipeline(bench.config, make_engine("mesh", bench), torch_device(bench))
    frame, out = shot.frames[middle], folder / "again.exr"
    stored = read_image(shot.source(middle).path or out, middle)
    pipeline.process(frame, [task])
    rows = []
    for _ in range(runs):
        write = _timed(lambda: write_exr(out, stored.pixels, image=stored))
        read = _timed(lambda: read_image(out, middle))
        swap = _timed(lambda: pipeline.process(frame, [task]))
        analyse = _timed(lambda: shot.analyse(nets)) / spec.frames
        rows.append((read + write, swap, analyse))
    io, swap, analyse = (statistics.median(column) for column in zip(*rows, strict=True))
    return {
        "face width px": round(seen.width_px),
        "swap ms": round(1000 * swap, 1),
        "analysis ms": round(1000 * analyse, 1),
        "EXR zip read + write ms": round(1000 * io, 1),
        "swap / io": round(statistics.median(row[1] / row[0] for row in rows), 3),
        "compute / io": round(statistics.median((row[1] + row[2]) / row[0] for row in rows), 3),
    }


def steadiness(shot: BenchShot, bench: Workbench) -> Figures:
    """Landmarks against truth on a demo plate, scaled to a face 400 px wide; see `landmark_jitter` for the words."""
    nets = FaceNets.load(bench.nets)
    figures: dict[str, Any] = {}
    for name, settings in (("smoothed", AnalyseSettings()), ("unsmoothed", AnalyseSettings(smoothing=0))):
        faces = shot.analyse(nets, settings)
        track = max(faces.tracks, key=lambda one: one.weight)
        found = np.stack([track.observations[number].landmarks for number in sorted(track.observations)])
        truth = shot.truth()[[number - shot.spec.first for number in sorted(track.observations)]]
        width = statistics.mean(seen.width_px for seen in track.observations.values())
        measured = landmark_jitter(found, truth)
        figures[f"{name}: jitter px rms at 400 px"] = round(measured.jitter_px * 400 / width, 4)
        figures[f"{name}: flicker px rms at 400 px"] = round(measured.flicker_px * 400 / width, 4)
        if name == "smoothed":
            figures["mean error px at 400 px"] = round(measured.mean_error_px * 400 / width, 2)
            figures["lag frames"] = round(measured.lag_frames, 4)
            figures["lag correlation"] = round(measured.lag_correlation, 3)
            figures["drops"] = len(shot.spec.numbers) - len(track.observations)
    return figures


def _job(shot: BenchShot, person: Path, out: Path, layers: str | None = None) -> ApplyJob:
    return ApplyJob(
        plate=shot.plate.pattern,
        output=str(out / "out.####.exr"),
        assignments=(Assignment(person),),
        layers=parse_layers(layers),
    )


def _quiet(_: Mapping[str, Any]) -> None:
    return None


def _copy_all(shot: BenchShot, threads: int, out: Path, source: Path | None) -> None:
    """Read every frame, and write it (or the finished result `source` holds) with as many threads as a job has."""
    out.mkdir(exist_ok=True)

    def copy(number: int) -> None:
        path = shot.plate.sequence.path(number) if source is None else source / f"out.{number:04d}.exr"
        image = read_image(path, number)
        write_exr(out / f"copy.{number:04d}.exr", image.pixels, image=image)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(copy, shot.plate.sequence.frames))


def throughput(shot: BenchShot, person: Path, bench: Workbench, folder: Path, runs: int) -> Figures:
    """Frames a second of `apply` over those of reading and writing alone, same threads, interleaved.

    The plate alone is written as it came, RGBA; with the same layers, as `apply` writes it.
    """
    rows = []
    for run in range(runs):
        out = folder / f"apply{run}"
        fresh = _timed(lambda: run_apply(_job(shot, person, out), bench, _quiet, CancelToken()))  # noqa: B023
        for path in out.glob("*.exr"):
            path.unlink()
        known = _timed(lambda: run_apply(_job(shot, person, out), bench, _quiet, CancelToken()))  # noqa: B023
        plain = _timed(lambda: _copy_all(shot, bench.threads, folder / "plain", None))
        layered = _timed(lambda: _copy_all(shot, bench.threads, folder / "layered", out))  # noqa: B023
        rows.append((fresh, known, plain, layered))
        shutil.rmtree(out)
    count = len(shot.plate.sequence.frames)
    fresh, known, plain, layered = (statistics.median(column) for column in zip(*rows, strict=True))
    return {
        "apply frames/s": round(count / known, 2),
        "apply, faces unknown, frames/s": round(count / fresh, 2),
        "read + write frames/s": round(count / plain, 2),
        "apply / (read + write the plate)": round(statistics.median(r[2] / r[1] for r in rows), 3),
        "apply / (read + write with the same layers)": round(statistics.median(r[3] / r[1] for r in rows), 3),
        "fresh / (read + write the plate)": round(statistics.median(r[2] / r[0] for r in rows), 3),
    }


def outside_bits(shot: BenchShot, person: Path, bench: Workbench, folder: Path) -> Figures:
    """Bits of the written files that differ from the plate's where the written matte is 0."""
    out = folder / "bits"
    run_apply(_job(shot, person, out), bench, _quiet, CancelToken())
    differing = compared = 0
    for number in shot.plate.sequence.frames:
        written = out / f"out.{number:04d}.exr"
        matte, *_ = read_matte(written, "matte")
        before = shot.frames[number].pixels.view(np.uint16)
        after = read_image(written, number).pixels.view(np.uint16)
        outside = matte == 0
        differing += int(np.bitwise_count(before[outside] ^ after[outside]).sum())
        compared += int(outside.sum())
    return {"pixels compared": compared, "differing bits": differing}


def soak(frames: int, shot: BenchShot, person: Path, bench: Workbench, folder: Path) -> Figures:
    """Resident memory while a long shot is rendered: the frames of `shot` over and over."""
    plate = folder / "long"
    plate.mkdir()
    originals = [shot.plate.sequence.path(number) for number in shot.plate.sequence.frames]
    for index in range(frames):
        back_and_forth = index % (2 * len(originals) - 2) if len(originals) > 1 else 0
        step = back_and_forth if back_and_forth < len(originals) else 2 * len(originals) - 2 - back_and_forth
        (plate / f"long.{index + 1:06d}.exr").hardlink_to(originals[step])
    seen: list[float] = []

    def watch(event: Mapping[str, Any]) -> None:
        if event["event"] == "frame":
            seen.append(_resident_mib())

    job = ApplyJob(
        plate=str(plate / "long.######.exr"),
        output=str(folder / "soak" / "out.######.exr"),
        assignments=(Assignment(person),),
        layers=parse_layers(None),
    )
    run_apply(job, bench, watch, CancelToken())
    tenth = max(1, len(seen) // 10)
    return {
        "frames": len(seen),
        "MiB, second tenth": round(statistics.median(seen[tenth : 2 * tenth]), 1),
        "MiB, last tenth": round(statistics.median(seen[-tenth:]), 1),
        "peak MiB": round(
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 2**20), 1
        ),
    }


def _resident_mib() -> float:
    """Resident memory of this process, MiB; 0 where the system does not tell."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * resource.getpagesize() / 2**20 if status.exists() else 0.0
