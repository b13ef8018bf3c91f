"""One connection to a team server, and the channels of the jobs that use it."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any

from faceplate_client import wire

from . import link
from .streams import Outbox


class LinkLost(Exception):
    """The connection was cut, or was never there: nothing of a job can be said to be done."""


class Channel:
    """What the team server says about one job. For one thread.

    Attributes:
        inbox: (kind, head, body) of messages; None when the connection was lost.
    """

    def __init__(self, line: Line) -> None:
        self.inbox: queue.SimpleQueue[tuple[str, dict[str, Any], bytes] | None] = queue.SimpleQueue()
        self._line = line

    def get(self, seconds: float) -> tuple[str, dict[str, Any], bytes] | None:
        """The next message, None when there is none in time.

        Raises:
            LinkLost: the connection was cut.
        """
        try:
            found = self.inbox.get(timeout=seconds)
        except queue.Empty:
            return None
        if found is None:
            raise LinkLost
        return found

    def put(self, item: Any, *, urgent: bool) -> None:
        """Queue a stream or message of the job."""
        self._line.put(self, item, urgent=urgent)

    def say(self, parts: list[bytes]) -> None:
        """Send a message before what is queued, but behind what is being sent: a cancel never comes before its job."""
        self._line.outbox.put("", parts, urgent=True)

    def answer(self, body: bytes) -> None:
        """A piece is through."""
        self._line.post(link.encode("ack", {"bytes": len(body) + link.PIECE_COST}))

    def close(self) -> None:
        """The job has ended here: what still comes is dropped."""
        self._line.forget(self)
        with contextlib.suppress(queue.Empty):
            while (left := self.inbox.get_nowait()) is not None:
                if left[0] == "data":
                    self.answer(left[2])


class Line:
    """One connection, from hello to its end."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self.posted: queue.SimpleQueue[list[bytes]] = queue.SimpleQueue()
        self.outbox = Outbox(self.post, self._failed, "to team")
        self.open = False
        self._wake = wake
        self._lock = threading.Lock()
        self._channels: dict[str, Channel] = {}
        self._streams: dict[int, tuple[Channel, int]] = {}
        self._dead = False

    def post(self, parts: list[bytes]) -> None:
        self.posted.put(parts)
        self._wake()

    def channel(self, job: str) -> Channel:
        made = Channel(self)
        with self._lock:
            if self._dead:
                raise LinkLost
            self._channels[job] = made
        return made

    def put(self, channel: Channel, item: Any, *, urgent: bool) -> None:
        job = self._job_of(channel)
        if job is not None:
            self.outbox.put(job, item, urgent=urgent)

    def _job_of(self, channel: Channel) -> str | None:
        with self._lock:
            return next((job for job, one in self._channels.items() if one is channel), None)

    def forget(self, channel: Channel) -> None:
        job = self._job_of(channel)
        with self._lock:
            if job is not None:
                del self._channels[job]
            self._streams = {number: pair for number, pair in self._streams.items() if pair[0] is not channel}
        if job is not None:
            self.outbox.drop(job)

    def _failed(self, job: str, error: BaseException) -> None:
        """A file cannot be read while it is sent."""
        reason = str(error)
        failure = wire.Error(job, "input", "InputError", "a file of the job cannot be sent", None, reason[:4000])
        self.take("say", {}, wire.encode(failure), job)

    def take(self, kind: str, head: dict[str, Any], body: bytes, job: str) -> None:
        """Hand a message to its job's thread."""
        with self._lock:
            channel = self._channels.get(job)
        if channel is not None:
            channel.inbox.put((kind, head, body))

    def take_stream(self, kind: str, head: dict[str, Any], body: bytes) -> None:
        """A stream's beginning or piece."""
        number = head["stream"]
        with self._lock:
            if kind == "open":
                owner = self._channels.get(head["job"])
                if owner is not None and head["size"]:
                    self._streams[number] = owner, head["size"]
                channel = owner
            else:
                channel, left = self._streams.get(number, (None, 0))
                if channel is not None:
                    left -= head["size"]
                    self._streams[number] = channel, left
                    if left <= 0:
                        del self._streams[number]
        if channel is not None:
            channel.inbox.put((kind, head, body))
        elif kind == "data":
            self.post(link.encode("ack", {"bytes": len(body) + link.PIECE_COST}))  # of a job that has ended

    def lose(self) -> None:
        with self._lock:
            self._dead = True
            channels = list(self._channels.values())
        self.outbox.close()
        for channel in channels:
            channel.inbox.put(None)
