"""Runs the jobs of a queue in order, beside other runners of the same queue, none twice.

A job belongs to whoever holds its lock; the system gives the lock back when its holder dies, and the next runner takes
the job over, at the frame where it stopped. A runner ends when no job is left that it could do: where others still
work it waits for them, so that it can take over what they drop and ends with the state of the whole queue.
"""

from __future__ import annotations

import dataclasses
import datetime
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..errors import Cancelled, DeviceError, DeviceMemoryError, FaceplateError
from ..jobs.cancel import CancelToken
from ..jobs.events import Emit, note, warning
from ..jobs.output import sweep
from ..jobs.reporting import PAGE_FILE, counted
from ..jobs.spec import ApplyJob, JobOutcome, job_folder
from ..media.formats import is_movie
from .check import Checked, check_output
from .queue import JobQueue, QueuedJob
from .state import STOP, JobState, States

RunJob = Callable[[ApplyJob, Emit, CancelToken], JobOutcome]
_PAUSE_S = 0.3
_TELL_S = 1.0
_MOST_FAILED = 50


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """How a queue is run.

    Attributes:
        again: whether jobs that are done are run too, which renders what became stale.
        check: whether results are checked.
    """

    again: bool = False
    check: bool = True


class _JobToken(CancelToken):
    """Cancelled when its job is, or the whole batch."""

    def __init__(self, batch: CancelToken) -> None:
        super().__init__()
        self._batch = batch

    @property
    def is_cancelled(self) -> bool:
        return super().is_cancelled or self._batch.is_cancelled


class BatchRunner:
    """One runner of a queue.

    Args:
        queue: the jobs.
        states: of the jobs.
        run_job: does one job, here or on a server.
        emit: takes the events of jobs and batch.
        cancel: stops the batch.
        options: see there.
    """

    def __init__(
        self,
        queue: JobQueue,
        states: States,
        run_job: RunJob,
        emit: Emit,
        cancel: CancelToken,
        options: BatchOptions,
    ) -> None:
        self._queue = queue
        self._states = states
        self._run_job = run_job
        self._emit = emit
        self._cancel = cancel
        self._options = options
        self._stop = states.asked(STOP)
        self._done: set[str] = set()
        self._before = {job.id: self._attempts(job) for job in queue.jobs()}
        self._lost: DeviceError | None = None

    def _attempts(self, job: QueuedJob) -> int:
        """How often a job was tried before this runner began; an attempt that is under way does not count."""
        state = self._states.read(job.id)
        if state is None:
            return 0
        return state.attempts - (state.state == "running" and self._states.is_held(job.id))

    def run(self) -> None:
        """Do what there is to do; what became of each job is in the states.

        Raises:
            DeviceError: the device is lost: every further job would fail alike.
            InputError: the queue can no longer be read.
            OutputError: states cannot be written.
        """
        sweep(self._states.home)
        while not self._is_stopping():
            others = False
            for job in self._queue.jobs():
                if not self._is_wanted(job):
                    continue
                try:
                    with self._states.holding(job.id):
                        begun = self._is_wanted(job) and self._one(job)
                except BlockingIOError:
                    others = True
                    continue
                if begun:
                    break  # from the top: jobs may have been added before it
            else:
                if not others:
                    sweep(self._states.home)  # what runners left that died meanwhile
                    return
                time.sleep(_PAUSE_S)
            if self._lost is not None:
                raise self._lost

    def _is_stopping(self) -> bool:
        if self._states.asked(STOP) not in (None, self._stop):
            self._cancel.cancel()
        return self._cancel.is_cancelled

    def _is_wanted(self, job: QueuedJob) -> bool:
        if job.words is None or job.id in self._done:
            return False
        state = self._states.read(job.id)
        if state is None or state.digest != job.digest or state.state in ("waiting", "running"):
            return True
        if state.state == "done":
            return self._options.again
        return state.attempts == self._before.get(job.id, 0)  # else another runner has tried it just now

    def _one(self, job: QueuedJob) -> bool:
        """Run one job that is held, and write down what became of it."""
        self._done.add(job.id)
        old = self._states.read(job.id)
        fresh = JobState(job.name, job.digest)
        old = fresh if old is None or old.digest != job.digest else old
        if self._states.asked(job.id) is not None:
            self._states.heard(job.id)
            self._end(job, dataclasses.replace(old, state="cancelled", attempts=old.attempts + 1))
            return True
        state = dataclasses.replace(
            fresh,
            state="running",
            attempts=old.attempts + 1,
            runner={"pid": os.getpid(), "host": socket.gethostname()},
            started=_now(),
            taken_over=old.state == "running",
        )
        self._states.write(job.id, state)
        self._emit({"event": "shot", "shot": job.name, "state": "running", "text": f"{job.name}: begins"})
        if state.taken_over:
            self._emit(warning(f"{job.name}: taken over from a runner that died"))
        start = time.monotonic()
        ended = self._attempt(job, state)
        self._end(job, dataclasses.replace(ended, ended=_now(), seconds=time.monotonic() - start, progress={}))
        return True

    def _attempt(self, job: QueuedJob, state: JobState) -> JobState:
        assert job.words is not None
        token = _JobToken(self._cancel)
        folder = job_folder(job.words.output)
        state = dataclasses.replace(state, folder=str(folder), report=str(folder / PAGE_FILE))
        try:
            with self._watched(job, state, token) as emit:
                outcome = self._run_job(job.words.job(), emit, token)
                state = _with_frames(state, outcome)
                if outcome.state == "cancelled":
                    return dataclasses.replace(state, state="cancelled", exit_code=130)
                checked = self._check(job, emit, token)
        except Cancelled:
            return dataclasses.replace(state, state="cancelled", exit_code=130)
        except FaceplateError as error:
            if isinstance(error, DeviceError) and not isinstance(error, DeviceMemoryError):
                self._lost = error
            return dataclasses.replace(state, state="failed", exit_code=error.exit_code, error=error.to_dict())
        problems = list(checked.problems)
        code = 1 if problems else outcome.exit_code
        state = dataclasses.replace(state, checked={"frames": checked.frames, "problems": problems}, exit_code=code)
        return dataclasses.replace(state, state="failed" if code else "done")

    def _check(self, job: QueuedJob, emit: Emit, token: CancelToken) -> Checked:
        assert job.words is not None
        words = job.words
        unmade = is_movie(words.output) and (words.no_movie or not os.path.exists(words.output))
        if not self._options.check or unmade:
            return Checked(words.output, 0, ())
        conformed = words.fps is not None and is_movie(words.plate)
        return check_output(words.output, words.frames, words.plate, emit, token, conformed=conformed)

    @contextmanager
    def _watched(self, job: QueuedJob, state: JobState, token: CancelToken) -> Iterator[Emit]:
        """Events of a job, with its name; the state follows, and markers are looked for."""
        told = 0.0

        def hear(event: Mapping[str, Any]) -> None:
            nonlocal told
            self._emit({**event, "shot": job.name})
            if self._states.asked(job.id) is not None:
                self._states.heard(job.id)
                token.cancel()
            self._is_stopping()
            if event["event"] == "progress" and time.monotonic() - told > _TELL_S:
                told = time.monotonic()
                now = {name: event[name] for name in ("stage", "done", "total")}
                self._states.write(job.id, dataclasses.replace(state, progress=now))

        yield hear

    def _end(self, job: QueuedJob, state: JobState) -> None:
        self._states.write(job.id, state)
        text = f"{job.name}: {describe_state(state)}"
        self._emit({"event": "shot", "shot": job.name, "state": state.state, "text": text, "error": state.error})
        self._emit(note(text) if state.state == "done" else warning(text))


def _now() -> str:
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")


def _with_frames(state: JobState, outcome: JobOutcome) -> JobState:
    """Frames of all attempts by state, from the manifest, and those that failed."""
    failed = {str(frame): str(error.get("message", "")) for frame, error in outcome.failed.items()}
    first = dict(list(failed.items())[:_MOST_FAILED])
    counts = counted(outcome.folder) or dict(outcome.counts)
    return dataclasses.replace(state, counts=counts, failed=first)


def describe_state(state: JobState) -> str:
    """What became of a job, in some words."""
    if state.error is not None:
        return f"{state.state}: {state.error['message']}"
    if state.state == "waiting":
        return "waiting"
    problems = list(state.checked.get("problems", ()))
    frames = ", ".join(f"{number} {name}" for name, number in state.counts.items() if number)
    said = [frames] if frames else []
    if problems:
        said.append("check: " + "; ".join(problems))
    return f"{state.state}{': ' if said else ''}{'; '.join(said)}"


def cancel_jobs(queue: JobQueue, states: States, names: list[str]) -> list[str]:
    """Stop jobs, or with the name "all" every runner and every job that waits; what is rendered is kept.

    Returns:
        A line for each job that is meant.
    """
    told = []
    everything = "all" in names
    if everything:
        states.ask(STOP)
    for job in queue.jobs():
        if job.words is None or not (everything or job.name in names or job.id in names):
            continue
        try:
            with states.holding(job.id):
                told += _cancel_waiting(job, states)
        except BlockingIOError:
            if not everything:
                states.ask(job.id)
            told.append(f"{job.name}: is asked to stop")
    return told


def _cancel_waiting(job: QueuedJob, states: States) -> list[str]:
    old = states.read(job.id)
    if old is None or old.digest != job.digest:
        old = JobState(job.name, job.digest)
    if old.state in ("done", "failed", "cancelled"):
        return [f"{job.name}: {old.state} already"]
    states.write(job.id, dataclasses.replace(old, state="cancelled", attempts=old.attempts + 1, exit_code=130))
    return [f"{job.name}: cancelled"]
