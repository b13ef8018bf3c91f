"""What became of the jobs of a queue: a small JSON file each, replaced in one step, and a lock while it runs."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..jobs.lock import file_lock, is_held
from ..media.atomic import atomic_write, output_error

FORMAT = "faceplate.batch.job"
VERSION = 1
Word = Literal["waiting", "running", "done", "failed", "cancelled"]
STOP = "stop"
"""Marker for all runners of a queue."""


@dataclass(frozen=True, slots=True)
class JobState:
    """How far a job of a queue is.

    Attributes:
        name: for people.
        digest: of the job's words; another one is another job, which waits.
        state: "failed" where frames failed, the check found something or the job could not be done.
        attempts: how often it was begun.
        exit_code: of its last end.
        runner: who does it or did it last: pid, host.
        started: ISO time, "" where it was not begun.
        ended: likewise.
        seconds: of the last attempt.
        progress: stage, frames done and to do, while it runs.
        counts: frames by state, over all attempts.
        error: why it could not be done, as `FaceplateError.to_dict`.
        failed: failed frames with their messages, the first of them.
        checked: what the check said: "frames", and "problems" as texts.
        folder: the job folder.
        report: its page.
        taken_over: whether a runner before died at it.
    """

    name: str
    digest: str
    state: Word = "waiting"
    attempts: int = 0
    exit_code: int | None = None
    runner: Mapping[str, Any] = field(default_factory=dict)
    started: str = ""
    ended: str = ""
    seconds: float = 0.0
    progress: Mapping[str, Any] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    error: Mapping[str, Any] | None = None
    failed: Mapping[str, str] = field(default_factory=dict)
    checked: Mapping[str, Any] = field(default_factory=dict)
    folder: str = ""
    report: str = ""
    taken_over: bool = False


_NAMES = tuple(spec.name for spec in dataclasses.fields(JobState))


class States:
    """The states of a queue's jobs on disk.

    Args:
        home: folder; made where absent.

    Raises:
        OutputError: it cannot be made.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        try:
            home.mkdir(exist_ok=True)
        except OSError as error:
            raise output_error(home, error) from error

    def path(self, job: str) -> Path:
        """The state's file."""
        return self.home / f"{job}.json"

    def read(self, job: str) -> JobState | None:
        """The state of a job; None where there is none, or a damaged one: its frames are on record elsewhere."""
        try:
            document = json.loads(self.path(job).read_text("utf-8"))
            if document.pop("format") != FORMAT or document.pop("version") != VERSION:
                return None
            return JobState(**{name: document[name] for name in _NAMES})
        except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
            return None

    def write(self, job: str, state: JobState) -> None:
        """Replace the state of a job; for who holds its lock.

        Raises:
            OutputError: it cannot be written.
        """
        document = {"format": FORMAT, "version": VERSION, **asdict(state)}
        with atomic_write(self.path(job)) as temporary:
            temporary.write_text(json.dumps(document, indent=1, default=str), "utf-8")

    @contextmanager
    def holding(self, job: str) -> Iterator[None]:
        """Hold a job for the block; the lock ends with this process.

        Raises:
            BlockingIOError: another runner has it.
        """
        with file_lock(self._lock(job), None):
            yield

    def is_held(self, job: str) -> bool:
        """True while a runner has the job."""
        return is_held(self._lock(job))

    def _lock(self, job: str) -> Path:
        return self.home / f"{job}.lock"

    def ask(self, marker: str) -> None:
        """Leave a marker: the id of a job that is to be stopped, or `STOP`.

        Raises:
            OutputError: it cannot be written.
        """
        with atomic_write(self.home / f"{marker}.cancel") as temporary:
            temporary.write_text(str(os.getpid()), "utf-8")

    def asked(self, marker: str) -> int | None:
        """When a marker was left, as a number that changes with each; None where there is none."""
        try:
            return (self.home / f"{marker}.cancel").stat().st_mtime_ns
        except OSError:
            return None

    def heard(self, marker: str) -> None:
        """Take a marker away."""
        (self.home / f"{marker}.cancel").unlink(missing_ok=True)
