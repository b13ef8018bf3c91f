"""What the server does with each message. Runs in the socket's thread alone, so that nothing here may wait."""

from __future__ import annotations

import hmac
import logging
import os
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from faceplate import __version__
from faceplate.jobs.engines import engines_of_user
from faceplate_client import wire

from .errors import Refused, to_message
from .frames.job import NULL_ENGINE
from .jobs import Job
from .listing import identities_in
from .page.counts import Counts
from .rings import key_of
from .team.upstream import UpstreamWorker
from .workers.memory import process_mb
from .workers.threads import Worker

log = logging.getLogger(__name__)

Send = Callable[[bytes, Any], None]
_REMEMBERED = 1000
"""Ended jobs whose end is told again when their submission comes again over a new connection."""


@dataclass
class Client:
    """A connection that has said hello.

    Attributes:
        name: the host and its version.
        protocol: agreed version.
        descriptor: of its connection, -1 where unknown.
    """

    name: str
    protocol: int
    descriptor: int
    backlog: deque[bytes] = field(default_factory=deque)


@dataclass(frozen=True)
class Card:
    """What the server says about itself.

    Attributes:
        instance: changes with every start.
        token: that hello must show; "" for none.
        limits: what it takes.
        roots: folders that it may touch.
    """

    instance: str
    token: str
    limits: wire.Limits
    roots: tuple[str, ...]


class Handlers:
    """The state of the talk with all clients.

    Args:
        card: what the server says about itself.
        worker: runs the jobs.
        send: queues one message for a client.
        stop: asks the server to exit.
    """

    def __init__(self, card: Card, worker: Worker | UpstreamWorker, send: Send, stop: Callable[[], None]) -> None:
        self.card = card
        self.worker = worker
        self.clients: dict[bytes, Client] = {}
        self.jobs: dict[str, Job] = {}
        self.ready = False
        self.stopping = False
        self.heard = time.monotonic()
        self.started = time.monotonic()
        self.counts = Counts()
        self._send = send
        self._stop = stop
        self._ended: OrderedDict[str, Any] = OrderedDict()
        self._releases: list[tuple[bytes, wire.Release]] = []
        self._table: Mapping[type, Callable[[bytes, Any], None]] = {
            wire.SubmitFrame: self._submit,
            wire.SubmitRange: self._submit,
            wire.SubmitAnalyse: self._submit,
            wire.Cancel: self._cancel,
            wire.Status: self._status,
            wire.Ping: self._ping,
            wire.Release: self._release,
            wire.ListIdentities: self._list_identities,
            wire.Stop: self._stop_asked,
        }

    def receive(self, who: bytes, parts: list[bytes], descriptor: int = -1) -> None:
        """Handle one message; whatever is wrong with it is answered.

        Args:
            who: connection.
            parts: its frames.
            descriptor: of the connection.
        """
        message: Any = None
        self.heard = time.monotonic()
        try:
            message = _read(parts)
            if isinstance(message, wire.Hello):
                self._hello(who, message, descriptor)
                return
            if isinstance(message, wire.Bye):
                self.gone(who)  # its connection may be known to be closed already
                return
            if who not in self.clients:
                raise Refused("unauthorised", "the connection did not begin with hello", hint="update the plug-in")
            handler = self._table.get(type(message))
            if handler is None:
                raise wire.Malformed("this message is sent by servers only", found=type(message).__name__)
            handler(who, message)
        except (wire.WireError, Refused) as error:
            self._refuse(who, message, error)
        except Exception as error:
            # one message must not end the server for all other clients; it is told and logged with its trace
            log.exception("a message of type %s met a fault", type(message).__name__)
            self._refuse(who, message, error)

    def _refuse(self, who: bytes, message: Any, error: Exception) -> None:
        answer = to_message(getattr(message, "id", None), error)
        client = self.clients.get(who)
        self.counts.refused("a stranger" if client is None else client.name, answer)
        self._send(who, answer)

    # Connections

    def _hello(self, who: bytes, message: wire.Hello, descriptor: int) -> None:
        chosen = min(message.protocol_max, wire.PROTOCOL_MAX)
        if chosen < max(message.protocol_min, wire.PROTOCOL_MIN):
            raise wire.UnsupportedVersion(
                "client and server speak no common version of the protocol",
                expected=f"{wire.PROTOCOL_MIN}..{wire.PROTOCOL_MAX}",
                found=f"{message.protocol_min}..{message.protocol_max}",
            )
        if not hmac.compare_digest(message.token.encode(), self.card.token.encode()) and self.card.token:
            raise Refused("unauthorised", "the token is wrong", hint="read the connection file again")
        if who not in self.clients and len(self.clients) >= self.card.limits.clients:
            limit = self.card.limits.clients
            raise Refused("limit", f"the server has {limit} clients already", hint="close hosts that are not needed")
        if who not in self.clients:
            log.info("client %s %s", message.client_name, message.client_version)
        self.clients[who] = Client(message.client_name, chosen, descriptor)
        self._send(who, self._welcome(chosen))

    def _welcome(self, protocol: int) -> wire.Welcome:
        return wire.Welcome(
            protocol,
            wire.PROTOCOL_MIN,
            wire.PROTOCOL_MAX,
            __version__,
            self.card.instance,
            (*engines_of_user(), NULL_ENGINE),
            self.worker.devices,
            self.card.limits,
            self.card.roots,
        )

    def gone(self, who: bytes) -> None:
        """A client is no more: its jobs are cancelled. Its rings are swept when their owner's lock is free."""
        client = self.clients.pop(who, None)
        if client is None:
            return
        log.info("client %s is gone", client.name)
        for job in [job for job in self.jobs.values() if job.reply_to == who]:
            job.orphan = True
            self._stop_job(job)
        self._releases = [(other, release) for other, release in self._releases if other != who]

    def disconnected(self, descriptor: int) -> None:
        """A connection was closed by the other side or its death."""
        for who, client in list(self.clients.items()):
            if client.descriptor == descriptor:
                self.gone(who)

    # Jobs

    def _submit(self, who: bytes, message: wire.Submit) -> None:
        if message.id in self.jobs:
            self._again(who, self.jobs[message.id])
            return
        if message.id in self._ended:
            self._send(who, wire.Accepted(message.id, 0))
            self._send(who, self._ended[message.id])
            return
        if self.stopping:
            raise Refused("stopping", "the server is going down", hint="send the job again in a moment")
        mine = sum(1 for job in self.jobs.values() if job.reply_to == who)
        if mine >= self.card.limits.jobs:
            raise Refused("limit", f"{mine} jobs of this client are open", hint="wait for some of them, or cancel them")
        job = Job(message, who, self.clients[who].name)
        ahead = self.worker.add(job)
        self.jobs[job.id] = job  # its messages come through this thread's own inbox, so not before this line
        self._send(who, wire.Accepted(job.id, ahead))

    def _again(self, who: bytes, job: Job) -> None:
        """A submission that came twice, over a new connection: the same job."""
        if job.token.is_cancelled:
            raise Refused("busy", "the job is being stopped", hint="send it again under another id")
        job.reply_to = who
        self._send(who, wire.Accepted(job.id, 0))

    def _cancel(self, who: bytes, message: wire.Cancel) -> None:
        job = self.jobs.get(message.id)
        if job is not None and job.reply_to == who:
            self._stop_job(job)

    def _stop_job(self, job: Job, why: BaseException | None = None) -> None:
        if self.worker.stop(job, why):
            self.ended(job, self.worker.stopped(job))

    def ended(self, job: Job, end: Any) -> None:
        """A job's last message."""
        self.jobs.pop(job.id, None)
        self.counts.told(job, end)
        if not job.orphan:
            self._ended[job.id] = end
            while len(self._ended) > _REMEMBERED:
                self._ended.popitem(last=False)
            self._send(job.reply_to, end)
        self._settle_releases()

    def told(self, job: Job, message: Any) -> None:
        """Any message of a job, from the worker."""
        if isinstance(message, wire.ENDS) and self.jobs.get(job.id) is job:
            self.ended(job, message)
            return
        if job.id not in self.jobs:  # the answer to a question, which is no job
            self._send(job.owner, message)
            return
        self.counts.told(job, message)
        if not job.orphan and self._understands(job.reply_to, message):
            self._send(job.reply_to, message)

    def _understands(self, who: bytes, message: Any) -> bool:
        client = self.clients.get(who)
        return client is None or wire.can_say(type(message), client.protocol)

    def stop_late_jobs(self) -> None:
        """End the jobs whose deadline has passed."""
        now = time.monotonic()
        for job in [job for job in self.jobs.values() if job.due is not None and job.due < now]:
            if not job.token.is_cancelled:
                seconds = job.message.deadline_s
                error = Refused("deadline", f"the job did not end within its {seconds:g} s", hint="give it longer")
                self._stop_job(job, error)

    def stop_all(self) -> None:
        """Take no more jobs and stop all that are there; current frames are finished."""
        self.stopping = True
        error = Refused(
            "stopping", "the server was stopped", hint="send the job again: finished frames of a range are kept"
        )
        for job in list(self.jobs.values()):
            self._stop_job(job, error)

    # The rest

    def _ping(self, who: bytes, message: wire.Ping) -> None:
        self._send(who, wire.Pong(message.id, self.card.instance, self.ready))

    def _status(self, who: bytes, message: wire.Status) -> None:
        states = tuple(job.state() for job in list(self.jobs.values())[:1000])
        reply = wire.StatusReply(
            message.id,
            self.card.instance,
            os.getpid(),
            time.monotonic() - self.started,
            process_mb(),
            len(self.clients),
            self.worker.frames_done,
            self.worker.devices,
            self.worker.nets,
            states,
        )
        self._send(who, reply)

    def _list_identities(self, who: bytes, message: wire.ListIdentities) -> None:
        question = Job(message, who, self.clients[who].name)
        self.worker.answer(question, lambda: identities_in(message, self.worker.roots))

    def _release(self, who: bytes, message: wire.Release) -> None:
        ring = key_of(message)
        for job in [job for job in self.jobs.values() if job.uses(ring, message.slot)]:
            if job.reply_to != who:
                raise Refused("ring", "another client's job uses this frame ring")
            self._stop_job(job, Refused("stale_slot", "the client took back the job's slots"))
        self._releases.append((who, message))
        self._settle_releases()

    def _settle_releases(self) -> None:
        """Answer the releases that no running job stands against."""
        waiting = []
        for who, message in self._releases:
            ring = key_of(message)
            if any(job.uses(ring, message.slot) for job in self.jobs.values()):
                waiting.append((who, message))
                continue
            if message.slot is None:
                self.worker.rings.let_go([ring])
            self._send(who, wire.Released(message.id))
        self._releases = waiting

    def _stop_asked(self, who: bytes, message: wire.Stop) -> None:
        log.info("%s asked the server to stop", self.clients[who].name)
        self._send(who, wire.Stopping(message.id))
        self._stop()


def _read(parts: list[bytes]) -> Any:
    if len(parts) != 1:
        raise wire.Malformed("a message has one part", found=f"{len(parts)} parts")
    return wire.decode(parts[0])
