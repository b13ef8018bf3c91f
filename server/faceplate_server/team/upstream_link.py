"""The local server's connection to a team server: made again when it is lost, and never in silence."""

from __future__ import annotations

import contextlib
import logging
import queue
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import zmq
from zmq.utils import z85
from zmq.utils.monitor import parse_monitor_message

from faceplate import __version__
from faceplate.errors import FaceplateError, ResourceError
from faceplate_client import wire

from ..ask import rebuilt
from . import link
from .keys import KeyPair
from .upstream_line import Channel, Line, LinkLost

log = logging.getLogger(__name__)

_HANDSHAKE_S = 5.0
_HEARTBEAT_MS = 5000
_DEAD_MS = 30_000
_TICK_MS = 200
_STATUS_S = 5.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0
_LOOK_S = 0.05
_LOOK_AGAIN_S = 0.5


@dataclass(frozen=True)
class TeamAddress:
    """Where the team server is, and the key that it must have.

    Attributes:
        address: "tcp://HOST:PORT".
        key: its public key, 32 bytes.
    """

    address: str
    key: bytes


class UpstreamLink:
    """Keeps a connection to the team server.

    Args:
        team: where it is, and its key.
        own: this user's keys.
        name: of this machine, for the team server's log.
    """

    def __init__(self, team: TeamAddress, own: KeyPair, name: str) -> None:
        self.team = team
        self.welcome: wire.Welcome | None = None
        self.status: wire.StatusReply | None = None
        self.failure: FaceplateError = self._unreachable("the connection is being made")
        self.tried = threading.Event()
        self._is_refused = False
        self._was_open = False
        self._lost_at = time.monotonic()
        self._own = own
        self._name = name
        self._changed = threading.Condition()
        self._line: Line | None = None
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._stopping = threading.Event()
        self._context = zmq.Context()
        self._thread = threading.Thread(target=self._run, name="upstream", daemon=True)

    def start(self) -> None:
        """Begin to connect."""
        self._thread.start()

    def close(self) -> None:
        """End the connection; jobs that are open are lost."""
        self._stopping.set()
        self._wake()
        if self._thread.is_alive():
            self._thread.join(5.0)
        self._context.term()
        self._wake_in.close()
        self._wake_out.close()

    def channel(self, job: str, seconds: float, given_up: Callable[[], bool]) -> Channel:
        """A channel for a job, over the connection that there is or comes back within some seconds of its loss.

        Raises:
            FaceplateError: why there is none.
            LinkLost: the caller gave up.
        """
        begun = time.monotonic()
        with self._changed:
            while True:
                if given_up():
                    raise LinkLost
                if self._line is not None and self._line.open:
                    with contextlib.suppress(LinkLost):
                        return self._line.channel(job)
                end = max(self._lost_at + seconds, begun + _LOOK_AGAIN_S)
                if time.monotonic() > end or (self._is_refused and self.tried.is_set()):
                    raise self.failure
                self._changed.wait(_LOOK_S)

    # The link's thread

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError, OSError):
            self._wake_in.send(b"\0")

    def _run(self) -> None:
        pause = _FIRST_PAUSE_S
        while not self._stopping.is_set():
            started = time.monotonic()
            line = Line(self._wake)
            try:
                self._talk(line)
            except (zmq.ZMQError, wire.WireError) as error:
                self._fail(self._unreachable(str(error)))
            finally:
                was_open, line.open = line.open, False
                line.lose()
                with self._changed:
                    self._line, self.welcome, self.status = None, None, None
                    self._changed.notify_all()
                self.tried.set()
            if was_open:
                log.warning("the connection to the team server at %s was lost", self.team.address)
                pause, self._lost_at = _FIRST_PAUSE_S, time.monotonic()
            if not self._stopping.wait(max(0.0, started + pause - time.monotonic())):
                pause = min(2 * pause, _LONGEST_PAUSE_S)

    def _talk(self, line: Line) -> None:
        """One connection, to its end."""
        dealer = self._context.socket(zmq.DEALER)
        dealer.linger = 200
        dealer.sndhwm = 0  # what is on its way is bounded by the window
        dealer.maxmsgsize = link.MOST_HEAD
        dealer.reconnect_ivl = -1  # a new connection is a new socket, so that nothing of the old one is sent
        dealer.connect_timeout = dealer.handshake_ivl = round(_HANDSHAKE_S * 1e3)
        dealer.heartbeat_ivl, dealer.heartbeat_timeout = _HEARTBEAT_MS, _DEAD_MS
        dealer.curve_serverkey = z85.encode(self.team.key)
        dealer.curve_publickey = z85.encode(self._own.public)
        dealer.curve_secretkey = z85.encode(self._own.secret)
        monitor = dealer.get_monitor_socket()
        try:
            dealer.connect(self.team.address)
            self._listen(line, dealer, monitor)
            if line.open:
                with contextlib.suppress(zmq.ZMQError):
                    dealer.send_multipart(link.encode("say", None, wire.encode(wire.Bye())), zmq.NOBLOCK)
        finally:
            dealer.disable_monitor()
            monitor.close()
            dealer.close()

    def _listen(self, line: Line, dealer: zmq.Socket[bytes], monitor: Any) -> None:
        poller = zmq.Poller()
        for one in (dealer, monitor, self._wake_out):
            poller.register(one, zmq.POLLIN)
        asked = begun = time.monotonic()
        while not self._stopping.is_set():
            poller.poll(_TICK_MS)
            with contextlib.suppress(BlockingIOError):
                while self._wake_out.recv(4096):
                    pass
            while dealer.poll(0):
                if not self._heard(line, dealer.recv_multipart()):
                    return
            while monitor.poll(0):
                if not self._event(line, parse_monitor_message(monitor.recv_multipart()), dealer):
                    return
            if line.open and time.monotonic() - asked > _STATUS_S:
                asked = time.monotonic()
                line.post(link.encode("say", None, wire.encode(wire.Status("status"))))
            if not line.open and time.monotonic() - begun > 2 * _HANDSHAKE_S:
                self._fail(self._unreachable("it took the connection and said nothing"))
                return
            with contextlib.suppress(queue.Empty):
                while True:
                    dealer.send_multipart(line.posted.get_nowait(), zmq.NOBLOCK)

    def _event(self, line: Line, event: Any, dealer: zmq.Socket[bytes]) -> bool:
        """What the connection itself tells; False when it is over."""
        kind = event["event"]
        if kind == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            hello = wire.Hello(wire.PROTOCOL_MIN, wire.PROTOCOL_MAX, self._name, __version__)
            dealer.send_multipart(link.encode("say", None, wire.encode(hello, 1)), zmq.NOBLOCK)
        elif kind == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            self._fail(self._not_let_in(), refused=True)
            return False
        elif kind in (zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL, zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL):
            if (
                self._was_open
            ):  # the key is right: a server that dies, or a gate before one that starts, looks like this
                self._fail(self._unreachable("the connection was cut before a greeting"))
                return False
            self._fail(
                ResourceError(
                    f"what answers at {self.team.address} is not the team server that is meant",
                    expected=f"a server with the key {self.team.key.hex()}",
                    found="another key, or no Faceplate team server",
                    hint="compare upstream_key with what `faceplate keys` shows on the team server",
                ),
                refused=True,
            )
            return False
        elif kind in (zmq.EVENT_DISCONNECTED, zmq.EVENT_CLOSED):
            self._fail(self._unreachable("the connection was cut" if line.open else "nobody answers"))
            return False
        return True

    def _heard(self, line: Line, parts: list[bytes]) -> bool:
        kind, head, body = link.decode(parts)
        if kind == "ack":
            line.outbox.window.answered(head["bytes"])
        elif kind in ("open", "data"):
            line.take_stream(kind, head, body)
        elif kind == "want":
            line.take(kind, head, body, head["id"])
        else:
            return self._said(line, wire.decode(body), body)
        return True

    def _said(self, line: Line, message: Any, body: bytes) -> bool:
        if isinstance(message, wire.Welcome):
            log.info("connected to the team server at %s", self.team.address)
            line.open, self._was_open, self._is_refused = True, True, False
            line.post(link.encode("say", None, wire.encode(wire.Status("status"))))
            with self._changed:
                self._line, self.welcome = line, message
                self._changed.notify_all()
            self.tried.set()
        elif isinstance(message, wire.StatusReply):
            self.status = message
        elif isinstance(message, wire.Error) and message.id is None:
            self._turned_away(message)
            return False
        elif getattr(message, "id", None) is not None:
            line.take("say", {}, body, message.id)
        return True

    def _turned_away(self, told: wire.Error) -> None:
        """The team server ends this connection, and says why."""
        error = rebuilt(told)
        log.error("the team server at %s: %s", self.team.address, error)
        if told.code == "stopping":
            self._fail(self._unreachable(error.message))
        elif told.code == "unauthorised":  # as the next attempt is told, whichever of the two a job waits for
            self._fail(self._not_let_in(), refused=True)
        else:
            hint = error.hint or "update both servers to the same release"
            self._fail(
                ResourceError(error.message, expected=error.expected, found=error.found, hint=hint), refused=True
            )

    def _fail(self, failure: FaceplateError, *, refused: bool = False) -> None:
        """Why there is no connection; `refused` where waiting for it is of no use."""
        if str(failure) != str(self.failure):
            log.warning("%s", failure)
        self.failure, self._is_refused = failure, refused

    def _not_let_in(self) -> ResourceError:
        return ResourceError(
            f"the team server at {self.team.address} does not let this machine in",
            expected="its key on the team server's list",
            found=self._own.public.hex(),
            hint="on the team server: faceplate keys allow NAME " + self._own.public.hex(),
        )

    def _unreachable(self, found: str) -> ResourceError:
        return ResourceError(
            f"the team server at {self.team.address} cannot be reached",
            found=found,
            hint="check that it runs (`faceplate status` there) and that the network lets this port through",
        )
