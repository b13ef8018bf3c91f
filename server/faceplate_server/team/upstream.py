"""A worker that works elsewhere: in the place of `Worker` where a team server does the jobs of this machine's hosts."""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from faceplate.errors import Cancelled, FaceplateError
from faceplate_client import wire
from faceplate_client.errors import ClientError

from ..answering import answer_in_thread
from ..errors import Refused, to_message
from ..jobs import LANES, Job, JobQueue, Lane
from ..rings import RingTable
from ..roots import Roots
from ..workers.threads import Tell
from .forward import Forward
from .parcel import Packer
from .rewrite import PathMap
from .upstream_line import LinkLost
from .upstream_link import UpstreamLink

log = logging.getLogger(__name__)

_FIRST_S = 8.0
_PATIENCE_S = 5.0


class UpstreamWorker:
    """Hands jobs to a team server.

    Args:
        line: to it.
        rings: of the hosts.
        roots: files that may be touched here.
        paths: folders that both machines have.
        tell: takes the jobs' messages.
        at_once: jobs of each kind that are under way at once.
        colour: makes the fingerprint of this machine's OCIO configuration.
    """

    def __init__(
        self,
        line: UpstreamLink,
        rings: RingTable,
        roots: Roots,
        paths: PathMap,
        tell: Tell,
        *,
        at_once: int,
        colour: Callable[[], str],
    ) -> None:
        self.rings = rings
        self.roots = roots
        self.frames_done = 0
        self.queues: dict[Lane, JobQueue] = {lane: JobQueue(one_each=lane == "shots") for lane in LANES}
        self._line = line
        self._packer = Packer(roots, paths)
        self._tell = tell
        self._at_once = at_once
        self._make_colour = colour
        self._colour = ""
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    def warm_up(self) -> None:
        """Connect, and take jobs whether that succeeds or not: they are answered by what is wrong.

        Raises:
            ColourSpaceError: the OCIO configuration cannot be loaded.
        """
        self._colour = self._make_colour()
        self._line.start()
        self._line.tried.wait(_FIRST_S)
        for lane in LANES:
            for number in range(self._at_once):
                thread = threading.Thread(target=self._work, args=(lane,), name=f"{lane} {number}", daemon=True)
                self._threads.append(thread)
                thread.start()

    def add(self, job: Job) -> int:
        """Queue a job; how many go before it."""
        return self.queues[job.lane].add(job)

    def stop(self, job: Job, why: BaseException | None = None) -> bool:
        """Stop a job. True when it was still waiting, so that no thread will end it."""
        job.stop(why)
        return self.queues[job.lane].remove(job)

    def stopped(self, job: Job) -> Any:
        """The end of a job that was stopped before it was through."""
        return wire.Cancelled(job.id, job.done) if job.why is None else to_message(job.id, job.why)

    def answer(self, job: Job, make: Callable[[], Any]) -> None:
        """Answer a question that takes a while, on this machine."""
        answer_in_thread(job, make, self._tell)

    def close(self, patience_s: float) -> bool:
        """Wait for the threads to end; False when one is still at work after that time."""
        for queue in self.queues.values():
            queue.close()
        end = time.monotonic() + patience_s
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        self._line.close()
        return not any(thread.is_alive() for thread in self._threads)

    @property
    def devices(self) -> tuple[wire.Device, ...]:
        """The team server's, with where that is; none while it cannot be reached."""
        status, welcome = self._line.status, self._line.welcome
        known = status.devices if status is not None else welcome.devices if welcome is not None else ()
        place = self._line.team.address
        return tuple(dataclasses.replace(one, name=f"{one.name} at {place}"[:200]) for one in known)

    @property
    def summary(self) -> str:
        """For the log: what the work is done with."""
        place = self._line.team.address
        if self._line.welcome is None:
            return f"jobs go to the team server at {place}, which cannot be reached: {self._line.failure}"
        return f"jobs go to the team server at {place}, " + ", ".join(one.name for one in self.devices)

    @property
    def nets(self) -> tuple[str, ...]:
        """Warm nets of the team server."""
        status = self._line.status
        return () if status is None else status.nets

    # In the threads

    def _work(self, lane: Lane) -> None:
        queue = self.queues[lane]
        while True:
            job = queue.take()
            if job is None:
                return
            end = self._end_of(job)
            queue.finished(job)
            self._tell(job, end)

    def _end_of(self, job: Job) -> Any:
        """Run a job, whatever happens; its last message."""
        forward = Forward(job, self._line, self._packer, self.rings, self._colour, self._heard, _PATIENCE_S)
        try:
            job.token.check()
            end = forward.run()
        except (Cancelled, LinkLost):
            return self.stopped(job)
        except (Refused, FaceplateError, ClientError, wire.WireError) as error:
            log.info("job %s of %s ended: %s", job.id, job.client, error)
            return to_message(job.id, error)
        except Exception as error:
            # a fault in one job must not take the server from the others; it is told and logged with its trace
            log.exception("job %s of %s met a fault", job.id, job.client)
            return to_message(job.id, error)
        if isinstance(end, wire.FrameResult):
            self._count()
        return self.stopped(job) if isinstance(end, wire.Cancelled) and job.why is not None else end

    def _heard(self, job: Job, message: Any) -> None:
        if isinstance(message, wire.Partial):
            self._count()
        self._tell(job, message)

    def _count(self) -> None:
        with self._lock:
            self.frames_done += 1
