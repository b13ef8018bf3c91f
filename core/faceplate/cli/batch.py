"""`faceplate batch`: the jobs of a queue, one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from . import options
from .show import Reporter, reporter

if TYPE_CHECKING:
    from ..batch.queue import QueuedJob
    from ..batch.state import JobState
    from ..jobs.cancel import CancelToken
    from ..jobs.events import Emit
    from ..jobs.spec import ApplyJob, JobOutcome, Workbench


def batch(
    queue: Annotated[Path, typer.Argument(help="Folder of job files, or one file: .toml, .json or .jsonl.")],
    again: Annotated[bool, typer.Option("--again", help="Also jobs that are done: what is stale is rendered.")] = False,
    check: Annotated[bool, typer.Option(help="Check what each job wrote, as faceplate check does.")] = True,
    cancel: Annotated[
        list[str] | None, typer.Option(help="Run nothing; stop the job of this name, or all jobs and runners.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Run nothing; print the state of each job.")] = False,
    device: options.Device = "auto",
    threads: options.Threads = 0,
    server: Annotated[
        str, typer.Option(help="off: work here; auto: a running server; or its address or folder.")
    ] = "off",
    json: options.Json = False,
) -> int:
    """Run the jobs of a queue in order; run it again to go on. Several runners may share a queue."""
    from ..batch.queue import JobQueue
    from ..batch.runner import BatchOptions, BatchRunner, cancel_jobs
    from ..batch.state import States
    from ..batch.summary import exit_code, read_states, write_summary
    from ..jobs.cancel import CancelToken, cancel_on_signals

    jobs = JobQueue(queue)
    if not jobs.jobs():
        raise InputError(f"{queue} holds no job", hint="put a job file there; the README shows what it looks like")
    states = States(jobs.home)
    with ExitStack() as stack:
        shots = stack.enter_context(_Shots(as_json=json))
        if cancel:
            for text in cancel_jobs(jobs, states, cancel):
                shots({"event": "note", "text": text})
            return 0
        if list_:
            _list(shots, read_states(jobs, states))
            return 0
        token = CancelToken()
        stack.enter_context(cancel_on_signals(token))
        run_job = _Where(server, device, _Here(device, threads, stack))
        runner = BatchRunner(jobs, states, run_job, shots, token, BatchOptions(again, check))
        try:
            runner.run()
        finally:
            page, found = write_summary(jobs, states)
            shots.end()
            _list(shots, [one for one in found if one[1].state != "done"])
            _tell(shots, page, found, "cancelled" if token.is_cancelled else "done")
    return 130 if token.is_cancelled else exit_code(found)


class _Where:
    """Does each job on a server, or in this process; a server that is named has to be there from the first."""

    def __init__(self, server: str, device: str, here: _Here) -> None:
        self._server, self._here = server, here
        self._remote = options.find_runner(server, device)

    def __call__(self, job: ApplyJob, emit: Emit, cancel: CancelToken) -> JobOutcome:
        return (options.fitting(self._remote, job, self._server) or self._here)(job, emit, cancel)


class _Here:
    """Does jobs in this process; nets are loaded once."""

    def __init__(self, device: str, threads: int, stack: ExitStack) -> None:
        self._device, self._threads, self._stack = device, threads, stack
        self._benches: dict[bool, Workbench] = {}

    def __call__(self, job: ApplyJob, emit: Emit, cancel: CancelToken) -> JobOutcome:
        from ..jobs.apply import run_apply

        if job.commercial not in self._benches:
            bench = options.open_workbench(device=self._device, threads=self._threads, commercial=job.commercial)
            self._stack.enter_context(bench.nets)
            self._benches[job.commercial] = bench
        return run_apply(job, self._benches[job.commercial], emit, cancel)


class _Shots:
    """Prints the events of one shot after the other, each with a progress bar of its own."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._now: Reporter = reporter(as_json=as_json)

    def __enter__(self) -> _Shots:
        self._now.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._now.__exit__(None, None, None)

    def __call__(self, event: Mapping[str, Any]) -> None:
        if self._as_json:
            self._now(event)
            return
        if event["event"] == "shot":
            if event["state"] == "running":
                self.end()
                self._now({"event": "done", "text": event["text"]})
            return
        self._now(event)

    def end(self) -> None:
        """The shot is over: a fresh bar."""
        if not self._as_json:
            self._now.__exit__(None, None, None)
            self._now = reporter(as_json=False)
            self._now.__enter__()


def _list(shots: _Shots, found: Sequence[tuple[QueuedJob, JobState]]) -> None:
    from ..batch.runner import describe_state

    for job, state in found:
        event = {"event": "listed", "shot": job.name, "state": state.state, "error": state.error}
        shots({**event, "counts": dict(state.counts), "problems": list(state.checked.get("problems", ()))})
        shots({"event": "note", "text": f"{job.name}: {describe_state(state)}"})


def _tell(shots: _Shots, page: Path, found: Sequence[tuple[QueuedJob, JobState]], state: str) -> None:
    counts = Counter(one.state for _, one in found)
    said = ", ".join(f"{number} {word}" for word, number in counts.items())
    word = "cancelled" if state == "cancelled" else "finished"
    text = f"{word}: of {len(found)} shots {said}\n  summary  {page}"
    shots({"event": "done", "text": text, "state": state, "counts": dict(counts), "summary": str(page)})
