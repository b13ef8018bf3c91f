"""A team server's door: CURVE on TCP, for the keys on the list alone; behind it each connection is a `Session`.

The gateway has a thread and sockets of its own, and talks to this machine's server as hosts do, over its local socket.
So a fault or a flood from outside meets the same limits as any host's. A key that is not on the list is turned away
by ZeroMQ's authenticator before a byte of a message is read.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import queue
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zmq
from zmq.utils import z85
from zmq.utils.monitor import parse_monitor_message

from faceplate import __version__
from faceplate.errors import FaceplateError, InputError
from faceplate_client import wire
from faceplate_client.connection import ConnectionInfo
from faceplate_client.errors import ClientError

from ..errors import Refused, to_message
from ..socket_loop import descriptor_of
from . import link
from .keys import KeyFolder, TeamClient
from .session import Session
from .spool import TEAM, Spool

log = logging.getLogger(__name__)

_HANDSHAKE_MS = 5000
_HEARTBEAT_MS = 5000
_DEAD_MS = 30_000
_TICK_MS = 200
_LOOK_S = 1.0
_READ_AT_ONCE = 64
_BACKLOG = 20_000
_QUIET_S = 10.0


@dataclass(eq=False)
class _Peer:
    """A connection."""

    who: bytes
    descriptor: int
    client: TeamClient
    dealer: zmq.Socket[bytes]
    session: Session
    backlog: deque[list[bytes]] = field(default_factory=deque)


class Gateway:
    """Lets clients of other machines use this machine's server.

    Args:
        address: to listen on, "tcp://HOST:PORT".
        keys: of this user, with the list of clients.
        spool: for their files.
        rings: folder of the server's frame rings.
        info: of this machine's server.
        limits: of the server.
        colour: fingerprint of its OCIO configuration.

    Raises:
        InputError: the address cannot be used.
        ResourceError, UnsafeFile: the keys cannot be read.
    """

    def __init__(
        self,
        address: str,
        keys: KeyFolder,
        spool: Spool,
        rings: Path,
        info: ConnectionInfo,
        limits: wire.Limits,
        colour: str,
    ) -> None:
        self._keys = keys
        self._spool = spool
        self._rings = rings
        self._info = info
        self._limits = limits
        self._colour = colour
        self._clients = keys.clients()
        self._stamp = keys.stamp()
        self._looked = time.monotonic()
        self._told_off: dict[str, float] = {}
        self._peers: dict[bytes, _Peer] = {}
        self._turned_away: deque[bytes] = deque(maxlen=1000)
        self._outbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._stopping = threading.Event()
        self._context = zmq.Context()
        self._zap = self._context.socket(zmq.REP)
        self._zap.bind("inproc://zeromq.zap.01")
        self._router = self._bound(address)
        self._monitor = self._router.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        self.address = bytes(self._router.getsockopt(zmq.LAST_ENDPOINT)).rstrip(b"\0").decode()
        self._thread = threading.Thread(target=self._run, name="gateway", daemon=True)

    def _bound(self, address: str) -> zmq.Socket[bytes]:
        pair = self._keys.own()
        router = self._context.socket(zmq.ROUTER)
        router.linger = 500
        router.router_mandatory = 1
        router.maxmsgsize = link.MOST_HEAD
        router.handshake_ivl = _HANDSHAKE_MS
        router.heartbeat_ivl, router.heartbeat_timeout = _HEARTBEAT_MS, _DEAD_MS
        router.curve_server = True
        router.curve_secretkey = z85.encode(pair.secret)
        router.curve_publickey = z85.encode(pair.public)
        router.zap_domain = b"faceplate"
        try:
            router.bind(address)
        except zmq.ZMQError as error:
            router.close(0)
            hint = 'write listen = "tcp://0.0.0.0:PORT" with a port that is free'
            raise InputError(f"cannot listen on {address}", found=str(error), hint=hint) from error
        return router

    def start(self) -> None:
        """Let clients in."""
        log.info("team server at %s, %d clients are allowed", self.address, len(self._clients))
        self._thread.start()

    def close(self) -> None:
        """End all connections and free the address."""
        self._stopping.set()
        self._wake()
        if self._thread.is_alive():
            self._thread.join(5.0)
        self._router.disable_monitor()
        for one in (self._monitor, self._router, self._zap):
            one.close()
        self._context.term()
        self._wake_in.close()
        self._wake_out.close()

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError, OSError):
            self._wake_in.send(b"\0")

    def _later(self, step: Callable[[], None]) -> None:
        """Do something in the gateway's thread; from any thread."""
        self._outbox.put(step)
        self._wake()

    # The gateway's thread

    def _run(self) -> None:
        poller = zmq.Poller()
        for one in (self._router, self._monitor, self._zap, self._wake_out):
            poller.register(one, zmq.POLLIN)
        while not self._stopping.is_set():
            for peer in self._peers.values():
                poller.register(peer.dealer, zmq.POLLIN)
            poller.poll(_TICK_MS)
            with contextlib.suppress(BlockingIOError):
                while self._wake_out.recv(4096):
                    pass
            self._answer_zap()
            self._read_router()
            self._read_monitor()
            for peer in list(self._peers.values()):
                self._read_dealer(peer)
            with contextlib.suppress(queue.Empty):
                while True:
                    self._outbox.get_nowait()()
            for peer in list(self._peers.values()):
                self._flush(peer)
            self._look_at_list()
            for dealer in [one for one, _ in poller.sockets if isinstance(one, zmq.Socket) and one.closed]:
                poller.unregister(dealer)
        for peer in list(self._peers.values()):
            self._drop(peer)

    def _answer_zap(self) -> None:
        """Who knocks? RFC 27: the connection is told 200, with the key as user id, or 400."""
        while self._zap.poll(0):
            parts = self._zap.recv_multipart()
            version, request, address = parts[0], parts[1], parts[3].decode("ascii", "replace")
            if len(parts) == 7 and parts[6] not in self._clients:
                self._read_list()  # it may have been allowed a moment ago
            known = len(parts) == 7 and parts[5] == b"CURVE" and parts[6] in self._clients
            if not known and time.monotonic() - self._told_off.get(address, -_QUIET_S) > _QUIET_S:
                self._told_off = {address: time.monotonic()} if len(self._told_off) > 1000 else self._told_off
                self._told_off[address] = time.monotonic()
                key = parts[6].hex() if len(parts) == 7 else "none"
                log.warning("turned away %s: its key %s is not on the list", address, key)
            user = parts[6].hex().encode() if known else b""
            status = [b"200", b""] if known else [b"400", b"this key is not on the list"]
            self._zap.send_multipart([version, request, *status, user, b""])

    def _look_at_list(self) -> None:
        """The list of clients, every second."""
        if time.monotonic() - self._looked >= _LOOK_S:
            self._looked = time.monotonic()
            self._read_list()

    def _read_list(self) -> None:
        """The list of clients, read again when it changed; connections of those that were taken off end."""
        if self._keys.stamp() == self._stamp:
            return
        self._stamp = self._keys.stamp()
        try:
            self._clients = self._keys.clients()
        except (FaceplateError, ClientError):
            log.exception("the list of clients cannot be read: nobody is let in")
            self._clients = {}
        for peer in list(self._peers.values()):
            now = self._clients.get(peer.client.public)
            if now is None:
                self._turn_away(peer, Refused("unauthorised", "this client was taken off the list"))
            elif now != peer.client:
                self._turn_away(
                    peer, Refused("stopping", "this client was changed on the list: it has to connect again")
                )

    def _read_router(self) -> None:
        for _ in range(_READ_AT_ONCE):
            try:
                frames = self._router.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return
            self._read_monitor()  # a connection's end is told before its number can be given to another one
            who, *parts = [bytes(frame.buffer) for frame in frames]
            if who in self._turned_away:
                continue
            try:
                self._heard(who, parts, frames[-1])
            except (wire.WireError, Refused, FaceplateError, ClientError, OSError) as error:
                log.warning("a connection broke the rules and is ended: %s", error)
                self._refuse(who, error)
            except Exception as error:
                # one connection must not end the gateway for the others; it is ended itself, logged with its trace
                log.exception("a connection met a fault and is ended")
                self._refuse(who, error)

    def _refuse(self, who: bytes, error: BaseException) -> None:
        peer = self._peers.get(who)
        if peer is not None:
            self._turn_away(peer, error)
            return
        self._turned_away.append(who)
        self._send_now(who, link.encode("say", None, wire.encode(to_message(None, error))))

    def _turn_away(self, peer: _Peer, error: BaseException) -> None:
        self._turned_away.append(peer.who)
        self._send_now(peer.who, link.encode("say", None, wire.encode(to_message(None, error))))
        self._drop(peer)

    def _heard(self, who: bytes, parts: list[bytes], frame: zmq.Frame) -> None:
        kind, head, body = link.decode(parts)
        peer = self._peers.get(who)
        message = wire.decode(body) if kind == "say" else None
        if peer is None:
            if not isinstance(message, wire.Hello):
                raise Refused("unauthorised", "the connection did not begin with hello")
            self._hello(who, message, frame)
        elif isinstance(message, wire.Bye):
            self._drop(peer)
        else:
            peer.session.heard(kind, head, body)

    def _hello(self, who: bytes, message: wire.Hello, frame: zmq.Frame) -> None:
        client = self._clients.get(bytes.fromhex(str(frame.get("User-Id"))))
        if client is None:
            raise Refused("unauthorised", "this client was taken off the list")
        if message.client_version != __version__:
            raise wire.UnsupportedVersion(
                "local and team server are of different releases: results would depend on the machine",
                expected=__version__,
                found=message.client_version,
            )
        if len(self._peers) >= self._limits.clients:
            raise Refused("limit", f"{len(self._peers)} clients are connected", hint="try again later")
        dealer = self._context.socket(zmq.DEALER)
        dealer.linger = 200
        dealer.connect(self._info.address)
        hello = wire.Hello(wire.PROTOCOL_MIN, wire.PROTOCOL_MAX, TEAM + client.name, __version__, self._info.token)
        dealer.send(wire.encode(hello, 1))
        session = Session(
            client,
            self._spool,
            self._rings,
            self._limits,
            self._colour,
            lambda parts: self._later(lambda: self._post(who, parts)),
            lambda asked: self._later(lambda: self._ask(who, asked)),
        )
        self._peers[who] = _Peer(who, descriptor_of(frame), client, dealer, session)
        log.info("client %s connected from %s", client.name, frame.get("Peer-Address"))

    def _read_dealer(self, peer: _Peer) -> None:
        """What this machine's server says to the client."""
        while not peer.dealer.closed:
            try:
                message = wire.decode(peer.dealer.recv(zmq.NOBLOCK))
            except zmq.Again:
                return
            if isinstance(message, wire.Welcome):
                shown = [f"{device.name}" for device in message.devices]
                log.info("client %s is served by %s", peer.client.name, ", ".join(shown) or "a server that starts")
                welcome = wire.encode(_for_client(message, peer.client))
                self._post(peer.who, link.encode("say", None, welcome))
            elif isinstance(message, wire.Error) and message.id is None:
                self._turn_away(peer, Refused(message.code, message.message, hint=message.hint))
            else:
                peer.session.told(message)

    def _ask(self, who: bytes, message: Any) -> None:
        peer = self._peers.get(who)
        if peer is not None:
            peer.dealer.send(wire.encode(message))

    def _post(self, who: bytes, parts: list[bytes]) -> None:
        peer = self._peers.get(who)
        if peer is not None:
            peer.backlog.append(parts)

    def _flush(self, peer: _Peer) -> None:
        while peer.backlog:
            sent = self._send_now(peer.who, peer.backlog[0])
            if sent is None and len(peer.backlog) <= _BACKLOG:
                return
            if not sent:
                self._drop(peer)
                return
            peer.backlog.popleft()

    def _send_now(self, who: bytes, parts: list[bytes]) -> bool | None:
        """True when it is on its way, None when the line is full, False when nobody is there."""
        try:
            self._router.send_multipart([who, *parts], zmq.NOBLOCK)
        except zmq.Again:
            return None
        except zmq.ZMQError as error:
            if error.errno != zmq.EHOSTUNREACH:
                raise
            return False
        return True

    def _read_monitor(self) -> None:
        while self._monitor.poll(0):
            event = parse_monitor_message(self._monitor.recv_multipart())
            for peer in [one for one in self._peers.values() if one.descriptor == int(event["value"])]:
                self._drop(peer)

    def _drop(self, peer: _Peer) -> None:
        """A connection is no more: its jobs are cancelled, its frames and its tree go."""
        if self._peers.pop(peer.who, None) is None:
            return
        log.info("client %s is gone", peer.client.name)
        with contextlib.suppress(zmq.ZMQError):
            peer.dealer.send(wire.encode(wire.Bye()), zmq.NOBLOCK)
        peer.dealer.close()
        peer.session.close()


def _for_client(welcome: wire.Welcome, client: TeamClient) -> wire.Welcome:
    return dataclasses.replace(welcome, roots=client.roots)
