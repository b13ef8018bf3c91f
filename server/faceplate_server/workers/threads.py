"""The threads of jobs. They check, plan, wait for turns and keep manifests; frames and analyses are done by the worker
processes (`crew.py`).
"""

from __future__ import annotations

import dataclasses
import logging
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from faceplate.cli.options import open_workbench
from faceplate.errors import Cancelled, FaceplateError
from faceplate.job import FINISHED
from faceplate.jobs.analyse import run_analyse
from faceplate.jobs.apply import run_apply
from faceplate.jobs.events import Emit
from faceplate.jobs.spec import MESH, Workbench
from faceplate.models.sessions import SessionPool
from faceplate_client import wire
from faceplate_client.errors import ClientError

from .. import requests
from ..answering import answer_in_thread
from ..errors import Refused, Told, clean, to_failure, to_message
from ..frames.bridge import SlotsOfJob
from ..frames.ledger import FrameLedger
from ..jobs import LANES, Job, JobQueue, Lane
from ..listing import tracks_of
from ..rings import RingTable
from ..roots import Roots
from ..team.spool import TeamView
from .crew import Crew
from .hands import JobHands
from .net_cards import NetCards
from .turns import FrameTurns

log = logging.getLogger(__name__)

_BATCH_NICE = 5
_LEAVE_S = 5.0

Tell = Callable[[Job, Any], None]
"""Takes a message of a job, from any thread. The job's last message is its end."""


@dataclasses.dataclass(frozen=True)
class WarmCount:
    """What the workers keep warm, in bytes.

    Attributes:
        total: of all workers, as they last said.
        budget: of all workers.
    """

    total: int
    budget: int


class Worker:
    """Runs jobs.

    Args:
        crew: the worker processes; started by `warm_up`.
        rings: of the clients.
        roots: files that may be touched.
        ledger: record of single frames.
        tell: takes the jobs' messages.
        shots: range and analyse jobs at work at once.
        team: how jobs of a team's clients are written into ledgers.
    """

    def __init__(
        self,
        crew: Crew,
        rings: RingTable,
        roots: Roots,
        ledger: FrameLedger,
        tell: Tell,
        *,
        shots: int,
        team: TeamView | None = None,
    ) -> None:
        self.crew = crew
        self.rings = rings
        self.roots = roots
        self.ledger = ledger
        self.queues: dict[Lane, JobQueue] = {lane: JobQueue(one_each=lane == "shots") for lane in LANES}
        self._tell = tell
        self._shots = shots
        self._team = TeamView() if team is None else team
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._pools: dict[bool, SessionPool] = {}
        self.frames_done = 0
        self.bench: Workbench | None = None
        self.turns = FrameTurns(1)

    def warm_up(self) -> None:
        """Start the worker processes, wait until they are warm, then begin with the jobs.

        Raises:
            ResourceError: the device or a net is not available.
            ColourSpaceError: the OCIO configuration cannot be loaded.
        """
        self.crew.start()
        device = self.crew.members[0].device
        assert device is not None
        self._pools[False] = NetCards(device, commercial=False)
        bench = open_workbench(device=str(device), threads=self.crew.threads)
        bench = dataclasses.replace(bench, nets=self._pools[False])
        self.turns = FrameTurns(bench.threads)
        self.rings.on_let_go = self.crew.let_go
        self.bench = bench
        counts: Mapping[Lane, int] = {
            "interactive frames": bench.threads,
            "batch frames": bench.threads,
            "shots": self._shots,
        }
        for lane, count in counts.items():
            for number in range(count):
                thread = threading.Thread(target=self._work, args=(lane,), name=f"{lane} {number}", daemon=True)
                self._threads.append(thread)
                thread.start()

    def add(self, job: Job) -> int:
        """Queue a job; how many go before it."""
        return self.queues[job.lane].add(job)

    def stop(self, job: Job, why: BaseException | None = None) -> bool:
        """Stop a job within its current frame. True when it was still waiting, so that no thread will end it."""
        job.stop(why)
        self.turns.wake()
        self.crew.cancel(job)
        return self.queues[job.lane].remove(job)

    def close(self, patience_s: float) -> bool:
        """Wait for the threads to end; False when one is still at work after that time."""
        for queue in self.queues.values():
            queue.close()
        end = time.monotonic() + patience_s
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        ended = not any(thread.is_alive() for thread in self._threads)
        self.crew.close(_LEAVE_S if ended else 0.0)
        self.ledger.close()
        return ended

    @property
    def devices(self) -> tuple[wire.Device, ...]:
        """What the nets run on; none while the server starts."""
        if self.bench is None:
            return ()
        found = (one.device for one in self.crew.members if one.device is not None)
        return tuple(dict.fromkeys(wire.Device(str(one), one.kind, one.provider) for one in found))

    @property
    def summary(self) -> str:
        """For the log: what the work is done with."""
        assert self.bench is not None
        device, count = self.bench.nets.device, len(self.crew.members)
        names = ", ".join(one.name for one in self.devices)
        workers = f"{count} worker{'s' if count > 1 else ''}"
        return f"{names} by {device.provider} ({device.reason}), {workers}, {self.bench.threads} frames at once"

    @property
    def cache(self) -> WarmCount:
        """What the workers keep warm."""
        members = self.crew.members
        total = sum(int(one.facts.get("warm_bytes", 0)) for one in members)
        return WarmCount(total, self.crew.plan.warm_bytes * len(self.crew.plan.devices))

    @property
    def nets(self) -> tuple[str, ...]:
        """Warm nets: id, device, provider, precision, and memory as estimated."""
        found = [net for one in self.crew.members for net in one.facts.get("nets", ())]
        told = (f"{net} on {on} by {by} in {kind}, {size / 1e6:.0f} MB" for net, on, by, kind, size in found)
        return tuple(dict.fromkeys(told))

    # In the threads

    def _work(self, lane: Lane) -> None:
        queue = self.queues[lane]
        if lane != "interactive frames":
            _step_back()
        while True:
            job = queue.take()
            if job is None:
                return
            end = self._end_of(job)
            queue.finished(job)
            self._tell(job, end)

    def _end_of(self, job: Job) -> Any:
        """Run a job, whatever happens; its last message."""
        try:
            job.token.check()
            end = self._run(job)
        except Cancelled:
            return self.stopped(job)
        except (Refused, FaceplateError, ClientError, Told) as error:
            log.info("job %s of %s ended: %s", job.id, job.client, error)
            return to_message(job.id, error)
        except Exception as error:
            # a fault in one job must not take the server from the others; it is told and logged with its trace
            log.exception("job %s of %s met a fault", job.id, job.client)
            return to_message(job.id, error)
        return end

    def stopped(self, job: Job) -> Any:
        """The end of a job that was stopped before it was through."""
        return wire.Cancelled(job.id, job.done) if job.why is None else to_message(job.id, job.why)

    def _run(self, job: Job) -> Any:
        message = job.message
        bench = self._bench_for(job, commercial=getattr(message, "commercial", False))
        if isinstance(message, wire.SubmitFrame):
            return self._frame(job, bench, message)
        emit = _Events(self, job)
        bench = self._with_hands(job, bench, emit)
        if isinstance(message, wire.SubmitAnalyse):
            analysis = requests.analyse_job(message, self.roots)
            sidecar = run_analyse(analysis, bench, emit, job.token)
            return wire.Done(job.id, {}, None, str(sidecar), tracks_of(message, sidecar, bench, self.roots))
        work = requests.apply_job(message, self.roots)
        outcome = run_apply(work, bench, emit, job.token)
        if outcome.state == "cancelled":
            return self.stopped(job)
        interop = bench.config.interop_id(emit.space) if emit.space else ""
        counts, folder = dict(outcome.counts), str(outcome.folder)
        return wire.Done(job.id, counts, folder, colour_space=emit.space or None, interop_id=interop or None)

    def _frame(self, job: Job, bench: Workbench, message: wire.SubmitFrame) -> wire.FrameResult:
        job.total = 1
        self.ledger.begin(job, bench)
        slots = SlotsOfJob(self.rings)
        own_slot = isinstance(message.plate, wire.SlotRef) and message.output in (None, message.plate)
        try:
            with bench.turn():
                job.token.check()
                for reference in job.slots():
                    slots.take(reference)
                done = self.crew.ask(
                    {"do": "frame", "job": message, "client": job.client},
                    job,
                    lane="fast" if job.interactive else "slow",
                    given_up=lambda: job.token.is_cancelled,
                    on=lambda said: self.note(job, said["level"], said["text"]),
                    again=lambda: not own_slot,  # the plate may be half the result by then
                )
                slots.finish_all(done["slots"])
        finally:
            slots.give_back()
        job.done = 1
        self.count()
        result: wire.FrameResult = done["result"]
        return result

    def count(self) -> None:
        """One more frame is done."""
        with self._lock:
            self.frames_done += 1

    def note(self, job: Job, level: str, text: str) -> None:
        """Tell what a person should know of a job."""
        log.info("job %s: %s", job.id, text)
        self._tell(job, wire.Note(job.id, level, clean(text)))

    def answer(self, job: Job, make: Callable[[], Any]) -> None:
        """Answer a question that takes a while, in a thread of its own; `job` says whose it is and is in no queue."""
        answer_in_thread(job, make, self._tell)

    def tell(self, job: Job, message: Any) -> None:
        """Send a message of a job."""
        self._tell(job, message)

    def _with_hands(self, job: Job, bench: Workbench, emit: Emit) -> Workbench:
        """The bench of a range or analysis: its frames go to the worker processes."""
        hands = JobHands(
            self.crew,
            job,
            engine=getattr(job.message, "engine", MESH),
            commercial=getattr(job.message, "commercial", False),
            emit=emit,
            turn=bench.turn,
        )
        return dataclasses.replace(bench, hands=hands)

    def _bench_for(self, job: Job, *, commercial: bool) -> Workbench:
        assert self.bench is not None
        with self._lock:
            if commercial not in self._pools:
                self._pools[commercial] = NetCards(self.bench.nets.device, commercial=commercial)
        turn = self.turns.of(
            job.client + job.owner.hex(), interactive=job.interactive, given_up=lambda: job.token.is_cancelled
        )
        shown, user = self._team.seen(job.client)
        return dataclasses.replace(self.bench, nets=self._pools[commercial], turn=turn, shown=shown, user=user)


def _step_back() -> None:
    """Let interactive frames, and the artist's other programs, have the cores first. On Linux a thread has a priority
    of its own, and the threads that it starts inherit it; elsewhere that would be the whole process's.
    """
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _BATCH_NICE)


class _Events:
    """The events of a running job as the wire's messages; `space` is the colour space of its results."""

    def __init__(self, worker: Worker, job: Job) -> None:
        self._worker = worker
        self._job = job
        self._started = time.monotonic()
        self._states: Counter[str] = Counter()
        self.space = ""

    def __call__(self, event: Mapping[str, Any]) -> None:
        job = self._job
        match event["event"]:
            case "start":
                job.total = event["frames"]
                self.space = event["colour_space"]
            case "progress":
                done, total = event["done"], event["total"]
                spent = time.monotonic() - self._started
                left = spent / done * (total - done) if done else None
                self._worker.tell(job, wire.Progress(job.id, event["stage"], done, total, None, left))
            case "frame":
                self._frame(event)
            case "note" | "warning":
                self._worker.note(job, event["event"], event["text"])

    def _frame(self, event: Mapping[str, Any]) -> None:
        job, frame = self._job, event["frame"]
        if event["state"] in FINISHED:
            job.done += 1
            self._worker.count()
        output = wire.FileRef(event["output"], frame) if "output" in event else None
        error = None
        if event.get("error"):
            error = to_failure(_rebuilt(event["error"]))
        seconds = {"frame": event["seconds"] * 1e3}
        self._worker.tell(job, wire.Partial(job.id, frame, event["state"], output, error, {}, seconds))


def _rebuilt(document: Mapping[str, Any]) -> FaceplateError:
    """A failed frame's error from its record, of the type that it had."""
    from faceplate import errors

    fields = dict(document)
    kind = getattr(errors, fields.pop("type"), FaceplateError)
    error: FaceplateError = kind(fields.pop("message"), **fields)
    return error
