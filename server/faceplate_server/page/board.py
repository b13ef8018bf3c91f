"""How the server stands at a moment: made in its loop, read by the page's threads."""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import dataclass

from faceplate import __version__
from faceplate_client import wire

from ..handlers import Handlers
from ..workers.memory import process_mb
from ..workers.threads import Worker

_JOBS = 200
_NET = re.compile(r"(.+) on (\S+) by (\S+) in (.+?)(?:, \d+ MB)?")


@dataclass(frozen=True)
class JobLine:
    """One job that is not through."""

    id: str
    kind: str
    state: str
    priority: str
    client: str
    done: int
    total: int
    age_s: float


@dataclass(frozen=True)
class NetLine:
    """One net in memory; "" is what is not known of it."""

    id: str
    device: str
    provider: str
    precision: str

    @property
    def numbers(self) -> str:
        """The precision without the error that was measured of it."""
        return self.precision.split(" ")[0]


@dataclass(frozen=True)
class Board:
    """How things stand.

    Attributes:
        at: `time.monotonic()`.
        state: "starting", "ready" or "stopping".
        instance: of this start.
        version: of Faceplate.
        uptime_s: since the start.
        devices: that work is done on.
        summary: what the work is done with, in words; "" while the server starts.
        frames_done: since the start.
        nets: in memory.
        clients: (name, open jobs) of each connection.
        jobs: those at work first; at most 200.
        job_counts: by (kind, priority, state), all of them.
        memory_mb: resident, of the process.
        warm_mb: of what is kept warm; None for a server that sends its jobs to a team's.
        warm_budget_mb: what that may be, None likewise.
        rings: frame rings that are mapped.
    """

    at: float
    state: str
    instance: str
    version: str
    uptime_s: float
    devices: tuple[wire.Device, ...]
    summary: str
    frames_done: int
    nets: tuple[NetLine, ...]
    clients: tuple[tuple[str, int], ...]
    jobs: tuple[JobLine, ...]
    job_counts: Counter[tuple[str, str, str]]
    memory_mb: float
    warm_mb: float | None
    warm_budget_mb: float | None
    rings: int


def look(handlers: Handlers) -> Board:
    """The board now; for the loop's thread."""
    now = time.monotonic()
    worker = handlers.worker
    cache = worker.cache if isinstance(worker, Worker) else None
    states = [(job.state(), job.arrived) for job in handlers.jobs.values()]
    states.sort(key=lambda one: (one[0].state != "running", one[1]))
    open_jobs = Counter(job.reply_to for job in handlers.jobs.values())
    return Board(
        at=now,
        state="stopping" if handlers.stopping else "ready" if handlers.ready else "starting",
        instance=handlers.card.instance,
        version=__version__,
        uptime_s=now - handlers.started,
        devices=worker.devices,
        summary=worker.summary if handlers.ready else "",
        frames_done=worker.frames_done,
        nets=tuple(net_line(text) for text in worker.nets),
        clients=tuple((client.name, open_jobs[who]) for who, client in handlers.clients.items()),
        jobs=tuple(
            JobLine(one.id, one.kind, one.state, one.priority, one.client, one.done, one.total, now - arrived)
            for one, arrived in states[:_JOBS]
        ),
        job_counts=Counter((one.kind, one.priority, one.state) for one, _ in states),
        memory_mb=process_mb(),
        warm_mb=None if cache is None else cache.total / (1 << 20),
        warm_budget_mb=None if cache is None else cache.budget / (1 << 20),
        rings=len(worker.rings),
    )


def net_line(text: str) -> NetLine:
    """A net as `status_reply` has it."""
    match = _NET.fullmatch(text)
    return NetLine(*match.groups()) if match else NetLine(text, "", "", "")
