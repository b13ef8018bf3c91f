"""Bytes in, bytes out: the ROUTER socket, who is connected to it, and what other threads have to say."""

from __future__ import annotations

import contextlib
import logging
import queue
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import zmq
from zmq.utils.monitor import parse_monitor_message

from faceplate_client import wire

from .errors import to_message
from .handlers import Handlers
from .jobs import Job

log = logging.getLogger(__name__)

_BACKLOG = 20_000
"""Messages that wait for a client that does not read; then it is given up."""
_READ_AT_ONCE = 64
_TICK_MS = 200


class SocketLoop:
    """The server's socket and its thread's loop.

    Args:
        address: to bind, "ipc://PATH" or "tcp://127.0.0.1:*".
    """

    def __init__(self, address: str) -> None:
        self._context = zmq.Context()
        self._router = self._context.socket(zmq.ROUTER)
        self._router.linger = 500
        self._router.router_mandatory = 1  # a send to a client that is gone fails, and tells it
        self._router.maxmsgsize = 4 * wire.MAX_BYTES  # beyond what is answered, the connection is cut
        self._monitor = self._router.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        self._router.bind(address)
        self.address = bytes(self._router.getsockopt(zmq.LAST_ENDPOINT)).rstrip(b"\0").decode()
        self._inbox: queue.SimpleQueue[tuple[Job, Any]] = queue.SimpleQueue()
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self.handlers: Handlers | None = None

    def tell(self, job: Job, message: Any) -> None:
        """Hand a job's message to the loop; from any thread."""
        self._inbox.put((job, message))
        self.wake()

    def wake(self) -> None:
        """Make the loop look around; from any thread or signal handler."""
        with contextlib.suppress(BlockingIOError):  # full of wakes already
            self._wake_in.send(b"\0")

    def send(self, who: bytes, message: Any) -> None:
        """Send one message to a client, or keep it until the client reads; only in the loop's thread."""
        handlers = self.handlers
        assert handlers is not None
        client = handlers.clients.get(who)
        data = _encoded(message, client.protocol if client is not None else 1)
        if client is None:
            with contextlib.suppress(zmq.ZMQError):  # a stranger's answer: lost if it does not read or is gone
                self._router.send_multipart([who, data], zmq.NOBLOCK)
            return
        client.backlog.append(data)
        self._flush(who)

    def _flush(self, who: bytes) -> None:
        handlers = self.handlers
        client = handlers.clients.get(who) if handlers is not None else None
        if handlers is None or client is None:
            return
        while client.backlog:
            try:
                self._router.send_multipart([who, client.backlog[0]], zmq.NOBLOCK)
            except zmq.Again:
                if len(client.backlog) > _BACKLOG:
                    log.warning("client %s does not read its messages; it is given up", client.name)
                    handlers.gone(who)
                return
            except zmq.ZMQError as error:
                if error.errno != zmq.EHOSTUNREACH:
                    raise
                handlers.gone(who)
                return
            client.backlog.popleft()

    def run(self, tick: Callable[[], bool]) -> None:
        """Serve until `tick`, which is called at least every fifth of a second, says False."""
        assert self.handlers is not None
        poller = zmq.Poller()
        for one in (self._router, self._monitor, self._wake_out):
            poller.register(one, zmq.POLLIN)
        last = 0.0
        while True:
            if self._wake_out.fileno() in dict(poller.poll(_TICK_MS)):
                with contextlib.suppress(BlockingIOError):
                    self._wake_out.recv(4096)
            self._read_inbox()  # first: a person waits for the end of a frame
            self._read_router()
            self._read_monitor()
            self._read_inbox()
            for who in [who for who, client in self.handlers.clients.items() if client.backlog]:
                self._flush(who)
            now = time.monotonic()
            if now - last >= _TICK_MS / 1000 or self.handlers.stopping:
                last = now
                if not tick():
                    return

    def _read_router(self) -> None:
        assert self.handlers is not None
        for _ in range(_READ_AT_ONCE):
            if not _has_message(self._router):
                return
            frames = self._router.recv_multipart(zmq.NOBLOCK, copy=False)
            # a connection's end is told before its number can be given to another one's first message
            self._read_monitor()
            who, *parts = [bytes(frame.buffer) for frame in frames]
            self.handlers.receive(who, parts, descriptor_of(frames[-1]))

    def _read_monitor(self) -> None:
        assert self.handlers is not None
        for event in self._monitor_events():
            self.handlers.disconnected(int(event["value"]))

    def _monitor_events(self) -> Iterator[Any]:
        while _has_message(self._monitor):
            yield parse_monitor_message(self._monitor.recv_multipart(zmq.NOBLOCK))

    def _read_inbox(self) -> None:
        assert self.handlers is not None
        with contextlib.suppress(queue.Empty):
            while True:
                self.handlers.told(*self._inbox.get_nowait())

    def close(self) -> None:
        """Send what can be sent within half a second, and free the address."""
        self._router.disable_monitor()
        self._monitor.close()
        self._router.close()
        self._context.term()
        self._wake_in.close()
        self._wake_out.close()


def _has_message(one: zmq.Socket[bytes]) -> bool:
    """Whether a message waits. Most often none does, and to be told so by an exception takes several times as long."""
    return bool(int(one.getsockopt(zmq.EVENTS)) & zmq.POLLIN)


def descriptor_of(frame: zmq.Frame) -> int:
    """The connection's descriptor that a message came over, -1 where unknown."""
    try:
        return int(frame.get("__fd"))
    except (zmq.ZMQError, ValueError):
        return -1


def _encoded(message: Any, version: int) -> bytes:
    try:
        return wire.encode(message, version)
    except wire.WireError as error:
        log.exception("a message of type %s cannot be sent", type(message).__name__)
        return wire.encode(to_message(getattr(message, "id", None), error), version)
