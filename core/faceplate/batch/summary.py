"""One page over all shots of a queue."""

from __future__ import annotations

import datetime
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import cv2
import numpy as np

from ..job import FrameState
from ..jobs.reporting import THUMBS_FOLDER
from ..media.atomic import atomic_write
from ..report.batch import BatchPage, ShotLine, render_batch
from .queue import JobQueue, QueuedJob
from .state import JobState, States

SUMMARY_FILE = "summary.html"
_MOST_PICTURES = 500
"""Shots with pictures on a page, those that failed first; a page of more would be too heavy to open."""
_PICTURE_WIDTH = 200
_JPEG_QUALITY = 82
_DROPS = (FrameState.FAILED, FrameState.SKIPPED, FrameState.HELD, FrameState.NO_FACE)


def read_states(queue: JobQueue, states: States) -> list[tuple[QueuedJob, JobState]]:
    """All jobs with what became of them: one that cannot be read has failed, one that a runner died at waits."""
    return [(job, _state(job, states)) for job in queue.jobs()]


def _state(job: QueuedJob, states: States) -> JobState:
    if job.error is not None:
        return JobState(job.name, "", "failed", exit_code=job.error.exit_code, error=job.error.to_dict())
    state = states.read(job.id)
    if state is None or state.digest != job.digest:
        return JobState(job.name, job.digest)
    if state.state == "running" and not states.is_held(job.id):
        return JobState(job.name, job.digest, attempts=state.attempts, folder=state.folder)
    return state


def exit_code(found: Sequence[tuple[QueuedJob, JobState]]) -> int:
    """0 where every job is done, else 1; 2 where none could be begun, for what is wrong with the jobs themselves."""
    if all(state.state == "done" for _, state in found):
        return 0
    return 2 if all(state.exit_code == 2 for _, state in found) else 1


def write_summary(queue: JobQueue, states: States) -> tuple[Path, list[tuple[QueuedJob, JobState]]]:
    """Write the page.

    Returns:
        (the page, the jobs with what became of them).

    Raises:
        OutputError: it cannot be written.
    """
    found = read_states(queue, states)
    page = states.home / SUMMARY_FILE
    order = sorted(range(len(found)), key=lambda index: (found[index][1].state != "failed", index))
    shown = set(order[:_MOST_PICTURES])
    shots = [_line(job, state, page, pictures=index in shown) for index, (job, state) in enumerate(found)]
    written = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    document = render_batch(BatchPage(str(queue.path), written, shots, len(found) - len(shown)))
    with atomic_write(page) as temporary:
        temporary.write_text(document, "utf-8")
    return page, found


def _line(job: QueuedJob, state: JobState, page: Path, *, pictures: bool) -> ShotLine:
    frame, found = _pictures(Path(state.folder) / THUMBS_FOLDER) if pictures and state.folder else (None, [])
    counts = Counter(state.counts)
    return ShotLine(
        name=job.name,
        state=state.state,
        plate=job.words.plate if job.words else str(job.source),
        output=job.words.output if job.words else "",
        pictures=found,
        frame=frame,
        frames=counts.total(),
        drops=[(word.value, counts[word.value]) for word in _DROPS if counts[word.value]],
        seconds=state.seconds,
        attempts=state.attempts,
        said=_said(state),
        checked=state.checked.get("frames", 0),
        report=_address(state.report, page) if state.report and os.path.isfile(state.report) else "",
        runner=str(state.runner.get("host", "")),
    )


def _said(state: JobState) -> list[str]:
    said = []
    if state.error is not None:
        said.append("; ".join(str(state.error[word]) for word in ("message", "found", "hint") if state.error.get(word)))
    said += [f"check: {text}" for text in state.checked.get("problems", ())]
    said += [f"frame {frame}: {text}" for frame, text in list(state.failed.items())[:5]]
    if len(state.failed) > 5:
        said.append(f"and {len(state.failed) - 5} frames more")
    if state.taken_over:
        said.append("taken over from a runner that died")
    return said


def _address(report: str, page: Path) -> str:
    """Relative where both lie on one drive, so that the page moves with its shots."""
    try:
        return quote(Path(os.path.relpath(report, page.parent)).as_posix())
    except ValueError:
        return Path(report).as_uri()


def _pictures(thumbs: Path) -> tuple[int | None, list[tuple[str, bytes]]]:
    """(frame, [(what, JPEG)]) of the middle of a shot's contact sheet; small, since there may be many shots."""
    try:
        frames = sorted(int(path.name.split(".")[0]) for path in thumbs.glob("*.after.png"))
    except (OSError, ValueError):
        return None, []
    for frame in frames[len(frames) // 2 :]:
        files = {what: thumbs / f"{frame}.{name}.png" for what, name in _WHAT}
        made = [(what, _small(file)) for what, file in files.items()]
        if all(data for _, data in made):
            return frame, made
    return None, []


_WHAT = (("plate", "before"), ("output", "after"), ("matte", "matte"))


def _small(path: Path) -> bytes:
    try:
        picture = cv2.imdecode(np.frombuffer(path.read_bytes(), np.uint8), cv2.IMREAD_COLOR)
    except (OSError, cv2.error):
        return b""
    if picture is None:
        return b""
    height, width = picture.shape[:2]
    if width > _PICTURE_WIDTH:
        size = (_PICTURE_WIDTH, max(1, round(height * _PICTURE_WIDTH / width)))
        picture = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
    return bytes(cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY])[1].tobytes())
