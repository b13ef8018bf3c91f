"""Jobs in the server, and the queue that says which one a free thread takes next."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

from faceplate.jobs.cancel import CancelToken
from faceplate_client import wire

from .rings import Key, key_of

Kind = Literal["frame", "range", "analyse"]
Lane = Literal["interactive frames", "batch frames", "shots"]
LANES: tuple[Lane, ...] = ("interactive frames", "batch frames", "shots")
_KINDS: dict[type, Kind] = {
    wire.SubmitFrame: "frame",
    wire.SubmitRange: "range",
    wire.SubmitAnalyse: "analyse",
}


@dataclass(eq=False)
class Job:
    """One job between its submission and its end.

    Attributes:
        message: what was asked: a `wire.Submit`, or a question that is in no queue.
        owner: connection that it came over.
        client: its name, for people.
        token: asks the job to stop.
        arrived: `time.monotonic()` of its arrival.
        why: why the server itself stops the job, None where the client asked for it.
        running: whether a thread works on it.
        orphan: whether its client is gone.
        done: frames that are through.
        total: frames in all, 0 while unknown.
        reply_to: connection that hears of it; another than `owner` after a reconnection.
    """

    message: Any
    owner: bytes
    client: str
    token: CancelToken = field(default_factory=CancelToken)
    arrived: float = field(default_factory=time.monotonic)
    why: BaseException | None = None
    running: bool = False
    orphan: bool = False
    done: int = 0
    total: int = 0
    reply_to: bytes = b""

    def __post_init__(self) -> None:
        self.reply_to = self.owner

    @property
    def id(self) -> str:
        """As its client named it."""
        return str(self.message.id)

    @property
    def kind(self) -> Kind:
        """What kind of job it is."""
        return _KINDS[type(self.message)]

    @property
    def interactive(self) -> bool:
        """Whether a person waits for it."""
        return bool(self.message.priority == "interactive")

    @property
    def lane(self) -> Lane:
        """Which threads take it."""
        if self.kind != "frame":
            return "shots"
        return "interactive frames" if self.interactive else "batch frames"

    @property
    def due(self) -> float | None:
        """`time.monotonic()` at which it has to have ended."""
        return None if self.message.deadline_s is None else self.arrived + self.message.deadline_s

    def slots(self) -> list[wire.SlotRef]:
        """Every slot that the job names."""
        if not isinstance(self.message, wire.SubmitFrame):
            return []
        message = self.message
        named = [message.plate, message.output, *(layer.output for layer in message.layers)]
        if message.holdout is not None:
            named.append(message.holdout.matte)
        return [reference for reference in named if isinstance(reference, wire.SlotRef)]

    def uses(self, ring: Key, slot: int | None) -> bool:
        """Whether it names the slot, or with None any slot, of a ring."""
        return any(key_of(one) == ring and slot in (None, one.slot) for one in self.slots())

    def stop(self, why: BaseException | None = None) -> None:
        """Ask for its end within the current frame."""
        if not self.token.is_cancelled:
            self.why = why
        self.token.cancel()

    def state(self) -> wire.JobState:
        """For `status_reply`."""
        return wire.JobState(
            self.id,
            self.kind,
            "running" if self.running else "queued",
            self.message.priority,
            self.done,
            self.total,
            self.client,
        )


class JobQueue:
    """Waiting jobs of one lane. May be used from several threads.

    Interactive jobs go first; then those of the client with the fewest jobs at work, then with the fewest served.

    Args:
        one_each: whether a client has at most one job at work.
    """

    def __init__(self, *, one_each: bool = False) -> None:
        self._one_each = one_each
        self._waiting: list[Job] = []
        self._at_work: Counter[bytes] = Counter()
        self._served: Counter[bytes] = Counter()
        self._changed = threading.Condition()
        self._closed = False

    def add(self, job: Job) -> int:
        """Queue a job; how many go before it as things stand."""
        with self._changed:
            ahead = sum(1 for other in self._waiting if other.interactive >= job.interactive)
            self._waiting.append(job)
            self._changed.notify()
            return ahead + sum(self._at_work.values())

    def remove(self, job: Job) -> bool:
        """Take a waiting job out; False when a thread has it already."""
        with self._changed:
            if job not in self._waiting:
                return False
            self._waiting.remove(job)
            return True

    def take(self) -> Job | None:
        """Wait for the next job and take it; None when the queue is closed."""
        with self._changed:
            while not self._closed:
                job = self._next()
                if job is not None:
                    self._waiting.remove(job)
                    self._at_work[job.owner] += 1
                    self._served[job.owner] += 1
                    job.running = True
                    return job
                self._changed.wait()
            return None

    def finished(self, job: Job) -> None:
        """The thread that took the job is through with it."""
        with self._changed:
            self._at_work[job.owner] -= 1
            if not self._waiting and not +self._at_work:
                self._served.clear()
                self._at_work.clear()
            self._changed.notify_all()

    def close(self) -> None:
        """Wake the waiting threads for good."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _next(self) -> Job | None:
        free = [job for job in self._waiting if not (self._one_each and self._at_work[job.owner])]
        return min(free, key=self._rank, default=None)

    def _rank(self, job: Job) -> tuple[bool, int, int, float]:
        return not job.interactive, self._at_work[job.owner], self._served[job.owner], job.arrived
