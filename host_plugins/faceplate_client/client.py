"""The client that a host holds: connect, submit jobs, read their events, every call with a deadline."""

from __future__ import annotations

import random
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, Union, cast

from . import wire
from ._version import __version__
from .connection import ConnectionInfo
from .deadline import Deadline
from .errors import (
    ClientError,
    ConnectionFailed,
    ConnectionLost,
    ConnectTimeout,
    MalformedMessage,
    RequestTimeout,
    ServerError,
    ServerRestarted,
    TimedOut,
    TotalTimeout,
    UnsupportedVersion,
    WrongThread,
    from_wire,
)
from .slots import Ring
from .zmtp import Dealer

Where = Union[ConnectionInfo, Callable[[], ConnectionInfo]]
T = TypeVar("T")


@dataclass(frozen=True)
class Timeouts:
    """Seconds that calls may take.

    Attributes:
        connect_s: connecting and hello, one try.
        request_s: one request and its answer.
        total_s: one job from `events` on, where the call does not say.
        keep_alive_s: silence during a job after which the server is pinged; no pong within `request_s` ends the wait.
        reconnect_s: all tries to come back after a lost connection.
    """

    connect_s: float = 1.0
    request_s: float = 5.0
    total_s: float = 3600.0
    keep_alive_s: float = 5.0
    reconnect_s: float = 5.0


class Client:
    """A connection to the server, for one thread.

    Args:
        where: the server's connection, or a function that finds it anew, e.g. `lambda: find(Place())`; asked again
            at each reconnection.
        name: the host and its version, for the server's log and status page.
        timeouts: see there.
        version: of the plug-in.

    Raises:
        ConnectionFailed, ConnectTimeout, ProtocolError: no server, or not one that this client can talk to.
        ServerError: the server refuses: wrong token, too many clients.
    """

    def __init__(
        self, where: Where, name: str, timeouts: Timeouts | None = None, *, version: str = __version__
    ) -> None:
        self.timeouts = timeouts if timeouts is not None else Timeouts()
        self.name = name
        self.version = version
        self._where = where
        self._thread = threading.get_ident()
        self._prefix = secrets.token_hex(4)
        self._count = 0
        self._events: dict[str, deque[Any]] = {}
        self._dealer, self.welcome = self._connect(Deadline(self.timeouts.connect_s, "connecting", ConnectTimeout))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Say goodbye and close; the server cancels what is still running. Harmless when closed."""
        if not self._dealer.closed:
            try:
                self._send(wire.Bye(), Deadline(0.2, "goodbye"))
            except (ConnectionLost, TimedOut):
                return  # the peer went first
            finally:
                self._dealer.close()

    # Requests

    def ping(self) -> wire.Pong:
        """Ask for a sign of life."""
        return self._request(wire.Ping(self._next_id()), wire.Pong)

    def status(self) -> wire.StatusReply:
        """Ask how the server is."""
        return self._request(wire.Status(self._next_id()), wire.StatusReply)

    def stop(self) -> wire.Stopping:
        """Ask the server to finish its current frames and exit."""
        return self._request(wire.Stop(self._next_id()), wire.Stopping)

    def identities(
        self, folder: Path | str, *, project: str | None = None, pictures: Path | str | None = None
    ) -> tuple[wire.Person, ...]:
        """Who is in a folder's .fpid files, and may they be used for a project.

        Args:
            folder: absolute.
            project: title to check consent against.
            pictures: folder for thumbnails; None makes none.

        Raises:
            ServerError: the folder cannot be read.
            UnknownMessage: the server is too old to tell.
        """
        asked = wire.ListIdentities(self._next_id(), str(folder), project, None if pictures is None else str(pictures))
        return self._request(asked, wire.Identities).people

    def release(self, ring: Ring, slot: int | None = None) -> None:
        """Take a slot, or all of a ring, back from the server: returns when the server touches it no more."""
        self._request(wire.Release(self._next_id(), str(ring.path), ring.file_id, ring.generation, slot), wire.Released)
        for one in range(ring.slots) if slot is None else (slot,):
            ring.reclaim(one)

    # Jobs

    def submit_frame(
        self,
        *,
        frame: int,
        plate: wire.FrameRef,
        assignments: tuple[wire.Assignment, ...],
        output: wire.FrameRef | None = None,
        **options: Any,
    ) -> str:
        """Submit one frame; returns the job's id. `options` are further fields of `wire.SubmitFrame`."""
        return self.submit(wire.SubmitFrame(self._next_id(), frame, plate, output, assignments, **options))

    def submit_range(
        self, *, plate: str, output: str, frames: str | None, assignments: tuple[wire.Assignment, ...], **options: Any
    ) -> str:
        """Submit a range of files; returns the job's id. `options` are further fields of `wire.SubmitRange`."""
        return self.submit(wire.SubmitRange(self._next_id(), plate, output, frames, assignments, **options))

    def analyse(self, *, plate: str, frames: str | None = None, **options: Any) -> str:
        """Submit the analysis of a shot; returns the job's id. `options` are further fields of `wire.SubmitAnalyse`."""
        return self.submit(wire.SubmitAnalyse(self._next_id(), plate, frames, **options))

    def submit(self, job: wire.Submit) -> str:
        """Send a job, wait until the server has it, and return its id.

        Raises:
            ServerError: the server refuses it.
            RequestTimeout: no answer; the server may have it, so cancel it or give up the connection.
        """
        self._events[job.id] = deque()
        try:
            self._request(job, wire.Accepted)
        except BaseException:
            self._events.pop(job.id, None)
            raise
        return job.id

    def events(self, job_id: str, total_s: float | None = None) -> Iterator[wire.Event]:
        """What the server tells of a job, up to and with its end: a FrameResult, Done or Cancelled.

        Other jobs' messages are kept for their own `events`.

        Raises:
            ServerError: the job ended with an error.
            TotalTimeout: `total_s` is over; the job goes on, so `cancel` it.
            RequestTimeout: the server is silent, even to a ping.
            ConnectionLost, ServerRestarted: the job is lost; the client is connected again.
            ConnectionFailed: the job is lost and no server answers.
        """
        total = Deadline(total_s if total_s is not None else self.timeouts.total_s, f"job {job_id}", TotalTimeout)
        waiting = self._events.get(job_id)
        if waiting is None:
            raise MalformedMessage(f"no job {job_id} of this client is open", hint="submit it first")
        while True:
            while not waiting:
                if job_id not in self._events:
                    raise ConnectionLost(f"job {job_id} was lost with its connection")
                self._wait(total)
            event = waiting.popleft()
            if isinstance(event, wire.ENDS):
                self._events.pop(job_id, None)
            if isinstance(event, wire.Error):
                raise ServerError(event)
            yield event
            if isinstance(event, wire.ENDS):
                return

    def result(self, job_id: str, total_s: float | None = None) -> wire.End:
        """The end of a job: the last of its `events`, which see for what is raised."""
        return cast(wire.End, deque(self.events(job_id, total_s), maxlen=1).pop())

    def is_open(self, job_id: str) -> bool:
        """Whether a job's end is still to come: False when it was told, or its connection was lost meanwhile."""
        return job_id in self._events

    def cancel(self, job_id: str) -> None:
        """Ask for a job to stop after its current frame; its `events` then end with Cancelled, or with its own end."""
        self._send(wire.Cancel(job_id), Deadline(self.timeouts.request_s, "cancel", RequestTimeout))

    # Connection

    def reconnect(self, seconds: float | None = None) -> wire.Welcome:
        """Connect again with growing pauses and say hello; open jobs are forgotten.

        Raises:
            ConnectionFailed, ConnectTimeout, ProtocolError, ServerError: the last failure, when the time is over.
        """
        self._check_thread()
        self._dealer.close()
        self._events.clear()
        end = time.monotonic() + (seconds if seconds is not None else self.timeouts.reconnect_s)
        pause = 0.02
        while True:
            left = max(end - time.monotonic(), 0.001)
            deadline = Deadline(min(left, self.timeouts.connect_s), "connecting", ConnectTimeout)
            try:
                self._dealer, self.welcome = self._connect(deadline)
            except (ConnectionFailed, ConnectTimeout):
                # spread, so that all hosts of a machine do not come back in the same moment
                pause = min(pause * 2, 1.0) * random.uniform(0.75, 1.0)
                if time.monotonic() + pause >= end:
                    raise
                time.sleep(pause)
            else:
                return self.welcome

    def _connect(self, deadline: Deadline) -> tuple[Dealer, wire.Welcome]:
        info = self._where if isinstance(self._where, ConnectionInfo) else self._where()
        if info.protocol_min > wire.PROTOCOL_MAX or info.protocol_max < wire.PROTOCOL_MIN:
            raise UnsupportedVersion(
                "the server speaks another protocol",
                expected=f"{wire.PROTOCOL_MIN}..{wire.PROTOCOL_MAX}",
                found=f"{info.protocol_min}..{info.protocol_max}",
            )
        dealer = Dealer(info.address, deadline)
        try:
            hello = wire.Hello(wire.PROTOCOL_MIN, wire.PROTOCOL_MAX, self.name, self.version, info.token)
            dealer.send([_encoded(hello, 1)], deadline)
            welcome = _decoded(dealer.receive(deadline))
            if isinstance(welcome, wire.Error) and welcome.code == wire.UnsupportedVersion.code:
                raise UnsupportedVersion(welcome.message, expected=welcome.expected, found=welcome.found)
            if isinstance(welcome, wire.Error):
                raise ServerError(welcome)
            if not isinstance(welcome, wire.Welcome):
                raise MalformedMessage("hello was not answered by welcome", found=type(welcome).__name__)
            if not wire.PROTOCOL_MIN <= welcome.protocol <= wire.PROTOCOL_MAX:
                raise UnsupportedVersion("the server chose another protocol version", found=str(welcome.protocol))
        except BaseException:
            dealer.close()
            raise
        return dealer, welcome

    # Within

    def _next_id(self) -> str:
        self._count += 1
        return f"{self._prefix}-{self._count}"

    def _check_thread(self) -> None:
        if threading.get_ident() != self._thread:
            raise WrongThread("this client belongs to another thread")

    def _send(self, message: Any, deadline: Deadline) -> None:
        self._check_thread()
        self._dealer.send([_encoded(message, self.welcome.protocol)], deadline)

    def _receive(self, deadline: Deadline) -> Any:
        """The next message, after it was put with its job if it is one's."""
        self._check_thread()
        parts = self._dealer.receive(deadline)
        try:
            message = _decoded(parts)
        except ClientError:
            self._dealer.close()
            raise
        job = getattr(message, "id", None)
        if job in self._events and not isinstance(message, wire.Accepted):
            self._events[job].append(message)
        return message

    def _request(self, message: Any, answer: type[T]) -> T:
        try:
            return self._ask(message, answer)
        except ConnectionLost:
            # asking again is safe: nothing was answered yet, and the same id is the same job
            open_jobs = {job: queue for job, queue in self._events.items() if job == message.id}
            self.reconnect()
            self._events.update(open_jobs)
            return self._ask(message, answer)

    def _ask(self, message: Any, answer: type[T]) -> T:
        deadline = Deadline(self.timeouts.request_s, f"the answer to {type(message).__name__}", RequestTimeout)
        self._send(message, deadline)
        while True:
            got = self._receive(deadline)
            if isinstance(got, wire.Error) and got.id in (message.id, None):
                raise ServerError(got)
            if isinstance(got, answer) and getattr(got, "id", None) == message.id:
                return got

    def _wait(self, total: Deadline) -> None:
        """Receive one message; ping where the server is silent."""
        instance = self.welcome.instance
        try:
            try:
                self._receive(total.within(self.timeouts.keep_alive_s, "a sign of life", RequestTimeout))
            except RequestTimeout:
                self._send(wire.Ping(self._next_id()), total)
                self._receive(total.within(self.timeouts.request_s, "an answer to ping", RequestTimeout))
        except ConnectionLost as lost:
            self.reconnect()
            if self.welcome.instance != instance:
                raise ServerRestarted("the server was restarted: the job is lost") from lost
            raise ConnectionLost("the connection was lost, and the job with it") from lost


def _encoded(message: Any, version: int) -> bytes:
    try:
        return wire.encode(message, version)
    except wire.WireError as error:
        raise from_wire(error) from error


def _decoded(parts: list[bytes]) -> Any:
    if len(parts) != 1:
        raise MalformedMessage("a message has one part", found=f"{len(parts)} parts")
    try:
        return wire.decode(parts[0])
    except wire.WireError as error:
        raise from_wire(error) from error
