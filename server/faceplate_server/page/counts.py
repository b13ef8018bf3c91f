"""What happened so far: frames, ends of jobs, errors, and how long frames took."""

from __future__ import annotations

import random
import threading
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from faceplate_client import wire

from ..jobs import Job

BUCKET_S = 5.0
BUCKETS = 60
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper ends of the histogram's classes, seconds."""
KINDS = ("interactive", "batch")
_SAMPLES = 256
_ERRORS = 40


@dataclass
class Bucket:
    """Some seconds.

    Attributes:
        start: `time.monotonic()`.
        frames: that came to an end, by kind.
        seconds: what they took, by kind; of very many a fair selection.
    """

    start: float
    frames: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in KINDS})


@dataclass
class Histogram:
    """How often a frame took how long.

    Attributes:
        counts: by class of BOUNDS, one more for what is beyond.
        total: sum of the seconds.
    """

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds


@dataclass
class Trouble:
    """An error that was told to a client; the same one again is counted.

    Attributes:
        failure: its words.
        client: who it was told.
        where: job and frame, "" where it was the answer to a message.
        at: seconds since 1970 of the last time.
        times: how often.
    """

    failure: wire.Failure
    client: str
    where: str
    at: float
    times: int = 1


@dataclass(frozen=True)
class Tally:
    """All counts at one moment.

    Attributes:
        frames: by (kind, state).
        jobs: by (kind, end), ends being "done", "cancelled", "error".
        errors: by code.
        histograms: by kind.
        buckets: the last ones, the oldest first; gaps are time without frames.
        troubles: the latest first.
        now: `time.monotonic()`.
    """

    frames: Counter[tuple[str, str]]
    jobs: Counter[tuple[str, str]]
    errors: Counter[str]
    histograms: dict[str, Histogram]
    buckets: Sequence[Bucket]
    troubles: Sequence[Trouble]
    now: float


class Counts:
    """Written by the server's loop, read by the page's threads.

    Kinds of frames: "interactive" are those a person waits for, timed from arrival to end; "batch" the others, timed by
    themselves, since those of a range arrive all at once.

    Args:
        clock: monotonic seconds.
        wall: seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._wall = wall
        self._lock = threading.Lock()
        self._random = random.Random(0)
        self._frames: Counter[tuple[str, str]] = Counter()
        self._jobs: Counter[tuple[str, str]] = Counter()
        self._errors: Counter[str] = Counter()
        self._histograms = {kind: Histogram() for kind in KINDS}
        self._buckets: deque[Bucket] = deque(maxlen=BUCKETS + 1)
        self._troubles: deque[Trouble] = deque(maxlen=_ERRORS)

    def told(self, job: Job, message: Any) -> None:
        """A message of a job, on its way to the client."""
        with self._lock:
            if isinstance(message, wire.Partial):
                self._partial(job, message)
            elif isinstance(message, wire.FrameResult):
                kind = "interactive" if job.interactive else "batch"
                seconds = message.timings_ms.get("total", 0.0) / 1e3
                self._frame(kind, message.state, self._clock() - job.arrived if job.interactive else seconds)
            if isinstance(message, wire.ENDS):
                self._end(job, message)

    def refused(self, client: str, error: wire.Error) -> None:
        """An error that answers a message."""
        with self._lock:
            self._trouble(_failure(error), client, "")

    def read(self) -> Tally:
        """A copy of everything."""
        with self._lock:
            return Tally(
                self._frames.copy(),
                self._jobs.copy(),
                self._errors.copy(),
                {kind: Histogram(list(one.counts), one.total) for kind, one in self._histograms.items()},
                [
                    Bucket(one.start, one.frames.copy(), {k: list(v) for k, v in one.seconds.items()})
                    for one in self._buckets
                ],
                [Trouble(**vars(one)) for one in reversed(self._troubles)],
                self._clock(),
            )

    # Within, under the lock

    def _partial(self, job: Job, message: wire.Partial) -> None:
        if message.error is not None:
            self._trouble(message.error, job.client, f"job {job.id}, frame {message.frame}")
        kind = "interactive" if job.interactive else "batch"
        self._frame(kind, message.state, message.timings_ms.get("frame", 0.0) / 1e3)

    def _end(self, job: Job, message: Any) -> None:
        if isinstance(message, wire.Error):
            self._trouble(_failure(message), job.client, f"job {job.id}")
        end = {wire.Error: "error", wire.Cancelled: "cancelled"}.get(type(message), "done")
        self._jobs[job.kind, end] += 1

    def _frame(self, kind: str, state: str, seconds: float) -> None:
        self._frames[kind, state] += 1
        if state == "skipped":
            return  # nothing was done
        self._histograms[kind].add(seconds)
        bucket = self._bucket()
        bucket.frames[kind] += 1
        kept = bucket.seconds[kind]
        if len(kept) < _SAMPLES:
            kept.append(seconds)
        else:
            place = self._random.randrange(bucket.frames[kind])
            if place < _SAMPLES:
                kept[place] = seconds

    def _bucket(self) -> Bucket:
        start = self._clock() // BUCKET_S * BUCKET_S
        if not self._buckets or self._buckets[-1].start != start:
            self._buckets.append(Bucket(start))
        return self._buckets[-1]

    def _trouble(self, failure: wire.Failure, client: str, where: str) -> None:
        self._errors[failure.code] += 1
        for known in self._troubles:
            if (known.failure, known.client) == (failure, client):
                self._troubles.remove(known)
                self._troubles.append(Trouble(failure, client, where, self._wall(), known.times + 1))
                return
        self._troubles.append(Trouble(failure, client, where, self._wall()))


def _failure(error: wire.Error) -> wire.Failure:
    return wire.Failure(error.code, error.type, error.message, error.expected, error.found, error.hint)
