"""A ZeroMQ DEALER socket from the standard library: ZMTP 3.0 over Unix sockets and TCP, NULL mechanism.

The protocol is https://rfc.zeromq.org/spec/23/ ; PING of ZMTP 3.1 (https://rfc.zeromq.org/spec/37/) is answered, since
libzmq sends it whatever version the peer names. On the wire:

    greeting   FF 00*8 7F | 03 00 | "NULL" padded to 20 | 00 as-server | 00*31          64 bytes from each side
    frame      flags | length in 1 or 8 bytes | body      flags: 1 more follows, 2 long length, 4 command
    command    length-prefixed name | data                READY carries Socket-Type and Identity

A ROUTER sees each message of this socket as [identity, part, part...]; the socket adds no empty delimiter.

Every call ends before its deadline, whatever the peer does. After any error but a timeout of `receive` the socket is
closed, because its place in the byte stream is lost.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Sequence
from typing import Any, NoReturn

from .deadline import Deadline
from .errors import ConnectionFailed, ConnectionLost, PeerError, UnsafeFile

MAX_MESSAGE = 16 << 20
"""Largest message taken from a peer, all parts together, in bytes."""
MAX_PARTS = 256
LONGEST_IPC_PATH = 103
"""Bytes of a Unix socket's path that every system takes (Linux 107, macOS 103)."""

_MORE, _LONG, _COMMAND = 1, 2, 4
_SIGNATURE = b"\xff" + b"\0" * 8 + b"\x7f"
_MECHANISM = b"NULL".ljust(20, b"\0")
_GREETING = _SIGNATURE + b"\x03\x00" + _MECHANISM + b"\0" + b"\0" * 31
_CHUNK = 1 << 16


def _property(name: bytes, value: bytes) -> bytes:
    return bytes([len(name)]) + name + struct.pack(">I", len(value)) + value


def _frame(flags: int, body: bytes) -> bytes:
    if len(body) < 256:
        return bytes([flags, len(body)]) + body
    return bytes([flags | _LONG]) + struct.pack(">Q", len(body)) + body


class Dealer:
    """One connection of a DEALER socket, made by `connect`.

    Args:
        address: "ipc:///path" or "tcp://ip:port"; of names only localhost.
        deadline: for connecting and both sides' greeting and READY.
        identity: routing id, 0 to 255 bytes, not starting with a zero byte; empty lets the ROUTER choose.
        largest: bytes of the largest message taken.

    Raises:
        ConnectionFailed: nobody listens, or the address is not usable here.
        UnsafeFile: the socket's other end runs as another user.
        PeerError: the peer is no ZMTP 3 socket without encryption that takes a DEALER.
        TimedOut: of the deadline's class.
    """

    def __init__(self, address: str, deadline: Deadline, *, identity: bytes = b"", largest: int = MAX_MESSAGE) -> None:
        if len(identity) > 255 or identity[:1] == b"\0":
            raise ConnectionFailed("a routing id has at most 255 bytes and does not start with zero")
        self.address = address
        self._largest = largest
        self._buffer = bytearray()
        self._parts: list[bytes] = []
        self._scratch = memoryview(bytearray(_CHUNK))
        self._socket: socket.socket | None = _open(address, deadline)
        try:
            self._handshake(identity, deadline)
        except ConnectionLost as error:
            raise ConnectionLost(
                f"{address} hung up during the handshake",
                found=error.found,
                hint="the server is stopping, is no Faceplate server, or demands encryption: use the local server",
            ) from error
        except BaseException:
            self.close()
            raise

    @property
    def closed(self) -> bool:
        """True when the socket cannot be used any more."""
        return self._socket is None

    def close(self) -> None:
        """Close the connection; harmless when it is closed."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            self._buffer.clear()
            self._parts.clear()

    def __enter__(self) -> Dealer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        """For select and poll; bytes may also wait in the buffer, see `receive`."""
        if self._socket is None:
            raise ConnectionLost("the connection is closed")
        return self._socket.fileno()

    def send(self, parts: Sequence[bytes], deadline: Deadline) -> None:
        """Send one message of one part or more.

        Raises:
            ConnectionLost: the peer went away.
            TimedOut: the peer does not read; the socket is closed, as half a message may be out.
        """
        last = len(parts) - 1
        if last < 0:
            raise PeerError("a message has at least one part")
        pieces = [_frame(_MORE if place < last else 0, part) for place, part in enumerate(parts)]
        self._write(b"".join(pieces), deadline)

    def receive(self, deadline: Deadline) -> list[bytes]:
        """The next message.

        Raises:
            ConnectionLost: the peer went away.
            PeerError: the peer breaks a rule or a limit.
            TimedOut: no whole message came in time; the next call goes on where this one stopped.
        """
        while True:
            flags, body = self._read_frame(deadline)
            if flags & _COMMAND:
                self._answer_command(body, deadline)
                continue
            self._parts.append(body)
            if len(self._parts) > MAX_PARTS or sum(map(len, self._parts)) > self._largest:
                self._broken("a message is too large", f"at most {self._largest} bytes in {MAX_PARTS} parts")
            if not flags & _MORE:
                parts, self._parts = self._parts, []
                return parts

    def _answer_command(self, body: bytes, deadline: Deadline) -> None:
        name, data = _split_command(body)
        if name == b"PING":
            if not 2 <= len(data) <= 18:
                self._broken("a PING has the wrong size", "2 to 18 bytes", str(len(data)))
            # the first two bytes are the time to live, the rest is to be sent back
            self._write(_frame(_COMMAND, b"\x04PONG" + data[2:]), deadline)
        elif name == b"ERROR":
            self._broken("the peer refuses the connection", found=_shown(data[1:]))
        elif name != b"PONG":
            # libzmq's own heartbeats may come between the parts of a message; nothing else may, here or later
            self._broken("a command is out of place", "PING or PONG", _shown(name))

    # Handshake

    def _handshake(self, identity: bytes, deadline: Deadline) -> None:
        self._write(_GREETING, deadline)
        # a peer that is no ZMTP at all often sends less than a greeting and waits: judge what is there
        signature = self._read(10, deadline)
        if signature[0] != 0xFF or not signature[9] & 1:
            self._broken("the peer does not speak ZeroMQ", "a ZMTP 3 greeting", _shown(signature))
        version = self._read(2, deadline)
        if version[0] < 3:
            self._broken("the peer's ZeroMQ is too old", "ZMTP 3", f"ZMTP {version[0]}")
        rest = self._read(52, deadline)
        if rest[:20] != _MECHANISM:
            self._broken("the peer asks for another security mechanism", "NULL", _shown(rest[:20].rstrip(b"\0")))
        ready = b"\x05READY" + _property(b"Socket-Type", b"DEALER") + _property(b"Identity", identity)
        self._write(_frame(_COMMAND, ready), deadline)
        flags, body = self._read_frame(deadline)
        name, data = _split_command(body) if flags & _COMMAND else (b"a message", b"")
        if name == b"ERROR":
            self._broken("the peer refuses the connection", found=_shown(data[1:]))
        if name != b"READY":
            self._broken("the handshake is wrong", "READY", _shown(name))
        kind = self._properties(data).get(b"socket-type", b"none")
        if kind not in (b"ROUTER", b"DEALER", b"REP"):
            self._broken("the peer is the wrong kind of socket", "ROUTER", _shown(kind))

    def _properties(self, data: bytes) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        while data:
            end = 1 + data[0]
            size_end = end + 4
            value_end = size_end + (int.from_bytes(data[end:size_end], "big") if size_end <= len(data) else 0)
            if data[0] == 0 or size_end > len(data) or value_end > len(data):
                self._broken("the handshake is wrong", "whole properties", _shown(data))
            found[data[1:end].lower()] = data[size_end:value_end]
            data = data[value_end:]
        return found

    # Bytes

    def _read_frame(self, deadline: Deadline) -> tuple[int, bytes]:
        # nothing leaves the buffer before the frame is whole, so that a timeout does not lose the place
        self._fill(2, deadline)
        flags = self._buffer[0]
        if flags & ~(_MORE | _LONG | _COMMAND) or (flags & _COMMAND and flags & _MORE):
            self._broken("a frame has unknown flags", "0 to 4 or 6", f"{flags:#x}")
        start = 9 if flags & _LONG else 2
        self._fill(start, deadline)
        size = int.from_bytes(self._buffer[1:start], "big")
        if size > self._largest or (flags & _COMMAND and size > _CHUNK):
            self._broken("a frame is too large", f"at most {self._largest} bytes", f"{size} bytes")
        self._fill(start + size, deadline)
        return flags, self._take(start + size)[start:]

    def _read(self, size: int, deadline: Deadline) -> bytes:
        self._fill(size, deadline)
        return self._take(size)

    def _take(self, size: int) -> bytes:
        taken = bytes(memoryview(self._buffer)[:size])
        del self._buffer[:size]
        return taken

    def _fill(self, size: int, deadline: Deadline) -> None:
        """Read until the buffer holds `size` bytes."""
        while len(self._buffer) < size:
            got = self._receive_into(self._scratch, deadline)
            self._buffer += self._scratch[:got]

    def _receive_into(self, view: memoryview, deadline: Deadline) -> int:
        open_socket = self._open_socket()
        open_socket.settimeout(deadline.remaining())
        try:
            got = open_socket.recv_into(view)
        except socket.timeout:
            raise deadline.expired() from None
        except OSError as error:
            self._lost(error)
        if not got:
            self._lost(None)
        return got

    def _write(self, data: bytes, deadline: Deadline) -> None:
        open_socket = self._open_socket()
        try:
            open_socket.settimeout(deadline.remaining())
            open_socket.sendall(data)  # its timeout is for the whole of the data
        except socket.timeout:
            self.close()
            raise deadline.expired() from None
        except OSError as error:
            self._lost(error)

    def _open_socket(self) -> socket.socket:
        if self._socket is None:
            raise ConnectionLost(f"the connection to {self.address} is closed")
        return self._socket

    def _lost(self, error: OSError | None) -> NoReturn:
        self.close()
        found = os.strerror(error.errno) if error is not None and error.errno else "end of stream"
        raise ConnectionLost(f"the connection to {self.address} was lost", found=found) from error

    def _broken(self, message: str, expected: str | None = None, found: str | None = None) -> NoReturn:
        self.close()
        raise PeerError(f"{message} ({self.address})", expected=expected, found=found)


def _split_command(body: bytes) -> tuple[bytes, bytes]:
    """Name and data of a command; the name is empty where the body is too short for it."""
    if not body or len(body) < 1 + body[0]:
        return b"", b""
    return body[1 : 1 + body[0]], body[1 + body[0] :]


def _shown(data: bytes) -> str:
    return repr(bytes(data[:60]))[1:].strip("'\"")


def parse_address(address: str) -> tuple[str, str, int]:
    """("ipc", path, 0) or ("tcp", host, port).

    Raises:
        ConnectionFailed: neither form, a port out of range, a path that is relative, abstract or too long.
    """
    scheme, mark, rest = address.partition("://")
    if scheme == "ipc" and mark and rest.startswith("/"):
        if len(os.fsencode(rest)) > LONGEST_IPC_PATH:
            raise ConnectionFailed(
                f"the path of the server's socket is too long: {rest}",
                expected=f"at most {LONGEST_IPC_PATH} bytes",
                found=f"{len(os.fsencode(rest))}",
                hint="use a runtime folder with a shorter path",
            )
        return "ipc", rest, 0
    host, colon, port = rest.rpartition(":")
    if scheme == "tcp" and colon and host and port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536:
        return "tcp", host.strip("[]"), int(port)
    raise ConnectionFailed(f"cannot use the address {address!r}", expected="ipc:///PATH or tcp://IP:PORT")


def _open(address: str, deadline: Deadline) -> socket.socket:
    scheme, place, port = parse_address(address)
    if scheme == "ipc" and not hasattr(socket, "AF_UNIX"):
        raise ConnectionFailed("this Python has no Unix sockets", hint="let the server listen on tcp://127.0.0.1")
    family: int
    target: Any
    try:
        if scheme == "tcp":
            # a name could take for ever to look up; hosts talk to this machine alone
            place = "127.0.0.1" if place == "localhost" else place
            (family, *_, target), *_ = socket.getaddrinfo(place, port, flags=socket.AI_NUMERICHOST)
        else:
            family, target = socket.AF_UNIX, place
        opened = socket.socket(family, socket.SOCK_STREAM)
        try:
            opened.settimeout(deadline.remaining())
            opened.connect(target)
            if scheme == "tcp":
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            else:
                _check_peer(opened, place)
        except BaseException:
            opened.close()
            raise
    except socket.timeout:
        raise deadline.expired() from None
    except socket.gaierror as error:
        raise ConnectionFailed(f"cannot use the address {address!r}", expected="tcp://IP:PORT") from error
    except BlockingIOError as error:  # a Unix socket whose queue of callers is full
        raise ConnectionFailed(f"the server at {address} takes no more callers") from error
    except OSError as error:
        raise ConnectionFailed(f"no server answers at {address}", found=error.strerror or str(error)) from error
    return opened


def _check_peer(opened: socket.socket, place: str) -> None:
    """Refuse a socket that another user listens at; root may serve anyone. Linux alone can tell."""
    if not hasattr(socket, "SO_PEERCRED"):
        return
    answer = opened.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    _, uid, _ = struct.unpack("3i", answer)
    if uid not in (0, os.geteuid()):
        raise UnsafeFile(f"the server at {place} runs as another user", expected=str(os.geteuid()), found=str(uid))
