"""The DEALER against sockets that break the rules: a typed error in time, never a hang."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from faceplate_client.deadline import Deadline
from faceplate_client.errors import ConnectionFailed, ConnectionLost, ConnectTimeout, PeerError, RequestTimeout
from faceplate_client.zmtp import Dealer, parse_address

GREETING = b"\xff" + b"\0" * 8 + b"\x7f\x03\x01" + b"NULL".ljust(20, b"\0") + b"\0" * 32


def command(name: bytes, data: bytes = b"") -> bytes:
    body = bytes([len(name)]) + name + data
    return bytes([4, len(body)]) + body


def socket_type(kind: bytes) -> bytes:
    return b"\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind


READY = command(b"READY", socket_type(b"ROUTER"))
SHAKEN = GREETING + READY


@contextlib.contextmanager
def peer(path: Path, behave: Callable[[socket.socket], None]) -> Iterator[str]:
    """A listener that does `behave` with its first caller and then holds the line until the test is over."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path / "s"))
    listener.listen()
    over = threading.Event()

    def serve() -> None:
        with contextlib.suppress(OSError):
            caller, _ = listener.accept()
            with caller:
                behave(caller)
                over.wait(5)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"ipc://{path}/s"
    finally:
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def says(data: bytes) -> Callable[[socket.socket], None]:
    return lambda caller: caller.sendall(data)


def connect(address: str, seconds: float = 0.2) -> Dealer:
    return Dealer(address, Deadline(seconds, "connecting", ConnectTimeout), largest=100_000)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak ZeroMQ"),
        (b"\xff" + b"\0" * 8 + b"\x7e" + GREETING[10:], "does not speak ZeroMQ"),
        (b"\xff" + b"\0" * 8 + b"\x7f\x01\x00", "too old"),
        (GREETING.replace(b"NULL", b"PLAI"), "another security mechanism"),
        (GREETING.replace(b"NULL\0\0", b"CURVE\0"), "another security mechanism"),
        (GREETING + command(b"ERROR", b"\x07denied!"), "refuses the connection"),
        (GREETING + command(b"HELLO"), "handshake is wrong"),
        (GREETING + b"\0\5hello", "handshake is wrong"),
        (GREETING + b"\x04\0", "handshake is wrong"),
        (GREETING + b"\x04\2\x09X", "handshake is wrong"),
        (GREETING + command(b"READY", socket_type(b"PUB")), "wrong kind of socket"),
        (GREETING + command(b"READY"), "wrong kind of socket"),
        (GREETING + command(b"READY", b"\x0bSocket-Type\0\0\0\xffROUTER"), "handshake is wrong"),
        (GREETING + command(b"READY", b"\x0bSock"), "handshake is wrong"),
        (GREETING + command(b"READY", b"\0\0\0\0\0"), "handshake is wrong"),
        (GREETING + b"\x06" + struct.pack(">Q", 1 << 62), "too large"),
    ],
)
def test_wrong_handshake(tmp_path: Path, said: bytes, message: str) -> None:
    with peer(tmp_path, says(said)) as address, pytest.raises(PeerError, match=message) as caught:
        connect(address)
    assert caught.value.hint


@pytest.mark.parametrize("size", [0, 1, 9, 11, 40, 63, 64, 65, 80])
def test_half_a_handshake_then_silence(tmp_path: Path, size: int) -> None:
    started = time.monotonic()
    with peer(tmp_path, says(SHAKEN[:size])) as address, pytest.raises(ConnectTimeout):
        connect(address)
    assert time.monotonic() - started < 2


@pytest.mark.parametrize("size", [0, 9, 63, 64, 80])
def test_half_a_handshake_then_gone(tmp_path: Path, size: int) -> None:
    def behave(caller: socket.socket) -> None:
        caller.sendall(SHAKEN[:size])
        caller.shutdown(socket.SHUT_RDWR)

    with peer(tmp_path, behave) as address, pytest.raises(ConnectionLost, match="handshake"):
        connect(address)


def drip(data: bytes, pause: float) -> Callable[[socket.socket], None]:
    def behave(caller: socket.socket) -> None:
        with contextlib.suppress(OSError):
            for byte in data:
                caller.sendall(bytes([byte]))
                time.sleep(pause)

    return behave


def test_a_slow_drip_does_not_stretch_the_deadline(tmp_path: Path) -> None:
    started = time.monotonic()
    with peer(tmp_path, drip(SHAKEN, 0.02)) as address, pytest.raises(ConnectTimeout):
        connect(address)
    assert 0.2 <= time.monotonic() - started < 5


def test_a_drip_that_is_fast_enough_is_understood(tmp_path: Path) -> None:
    long = b"\2" + struct.pack(">Q", 300) + b"x" * 300
    with peer(tmp_path, drip(SHAKEN + b"\1\2ab" + b"\0\0" + long, 0.0005)) as address, connect(address, 5) as dealer:
        assert dealer.receive(Deadline(5, "")) == [b"ab", b""]
        assert dealer.receive(Deadline(5, "")) == [b"x" * 300]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (b"\1\1a" + command(b"READY"), "out of place"),
        (b"\1\1a" + b"\4\0", "out of place"),
        (command(b"SUBSCRIBE"), "out of place"),
        (command(b"ERROR", b"\3bad"), "refuses"),
        (b"\2" + struct.pack(">Q", 100_001), "too large"),
        (b"\2" + struct.pack(">Q", (1 << 64) - 1), "too large"),
        (
            b"\3" + struct.pack(">Q", 60_000) + b"x" * 60_000 + b"\2" + struct.pack(">Q", 60_000) + b"x" * 60_000,
            "large",
        ),
        (b"\1\0" * 300, "too large"),
        (b"\x08\1a", "unknown flags"),
        (b"\x80\1a", "unknown flags"),
        (b"\5\6\5READY", "unknown flags"),
        (command(b"PING"), "wrong size"),
        (command(b"PING", b"x" * 30), "wrong size"),
    ],
)
def test_wrong_frames(tmp_path: Path, said: bytes, message: str) -> None:
    with peer(tmp_path, says(SHAKEN + said)) as address, connect(address) as dealer:
        with pytest.raises(PeerError, match=message):
            dealer.receive(Deadline(2, "an answer", RequestTimeout))
        assert dealer.closed
        with pytest.raises(ConnectionLost):
            dealer.receive(Deadline(1, ""))


def test_a_timeout_loses_no_bytes(tmp_path: Path) -> None:
    go = threading.Event()

    def behave(caller: socket.socket) -> None:
        caller.sendall(SHAKEN + b"\1\2ab\0\5he")
        go.wait(5)
        caller.sendall(b"llo")

    with peer(tmp_path, behave) as address, connect(address) as dealer:
        for _ in range(3):
            with pytest.raises(RequestTimeout, match="an answer"):
                dealer.receive(Deadline(0.05, "an answer", RequestTimeout))
        go.set()
        assert dealer.receive(Deadline(2, "")) == [b"ab", b"hello"]


def test_ping_is_answered_even_inside_a_message(tmp_path: Path) -> None:
    heard = bytearray()
    done = threading.Event()

    def behave(caller: socket.socket) -> None:
        ping = command(b"PING", b"\0\x0acontext")
        caller.sendall(SHAKEN + ping + b"\1\1a" + ping + command(b"PONG") + b"\0\1b")
        caller.settimeout(2)
        while heard.count(b"PONG") < 2:
            heard.extend(caller.recv(1000))
        done.set()

    with peer(tmp_path, behave) as address, connect(address) as dealer:
        assert dealer.receive(Deadline(2, "")) == [b"a", b"b"]
        assert done.wait(2)
    assert heard.endswith(command(b"PONG", b"context") * 2)


def read_to_the_end(address: str) -> None:
    with connect(address, 2) as dealer:
        while True:
            dealer.receive(Deadline(2, "an answer", RequestTimeout))


def test_any_bytes_end_in_a_typed_error(tmp_path: Path) -> None:
    sound = SHAKEN + command(b"PING", b"\0\1x") + b"\1\2ab\0\3cde\2" + struct.pack(">Q", 300) + b"y" * 300 + b"\0\1z"
    rng = random.Random(5)
    for number in range(150):
        data = bytearray(sound)
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(len(data))
            data[place : place + rng.randint(0, 2)] = rng.randbytes(rng.randint(0, 3))

        def behave(caller: socket.socket, said: bytes = bytes(data)) -> None:
            caller.sendall(said)
            caller.shutdown(socket.SHUT_WR)

        folder = tmp_path / str(number)
        folder.mkdir()
        with peer(folder, behave) as address, pytest.raises((ConnectionLost, PeerError)):
            read_to_the_end(address)


def test_a_peer_that_does_not_read(tmp_path: Path) -> None:
    with peer(tmp_path, says(SHAKEN)) as address, connect(address) as dealer:
        with pytest.raises(RequestTimeout):
            dealer.send([b"x" * (8 << 20)], Deadline(0.3, "sending", RequestTimeout))
        assert dealer.closed


def test_a_peer_that_goes_away(tmp_path: Path) -> None:
    def behave(caller: socket.socket) -> None:
        caller.sendall(SHAKEN + b"\0\5he")
        caller.shutdown(socket.SHUT_WR)

    with peer(tmp_path, behave) as address, connect(address) as dealer:
        with pytest.raises(ConnectionLost, match="was lost"):
            dealer.receive(Deadline(2, ""))
        with pytest.raises(ConnectionLost):
            dealer.send([b"x"], Deadline(1, ""))
        with pytest.raises(ConnectionLost):
            dealer.fileno()


def test_nobody_there(tmp_path: Path) -> None:
    started = time.monotonic()
    for address in (f"ipc://{tmp_path}/none", "tcp://127.0.0.1:1"):
        with pytest.raises(ConnectionFailed, match="no server answers") as caught:
            connect(address)
        assert "faceplate serve" in (caught.value.hint or "")
    assert time.monotonic() - started < 0.3


def test_a_listener_that_never_accepts(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen(0)
        held: list[Dealer | socket.socket] = []
        started = time.monotonic()
        for _ in range(3):
            with pytest.raises((ConnectTimeout, ConnectionFailed)):
                held.append(connect(f"ipc://{tmp_path}/s", 0.2))
        assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ipc://",
        "ipc://relative",
        "ipc://@abstract",
        "ipc:///" + "x" * 200,
        "tcp://host",
        "tcp://:80",
        "tcp://h:0",
        "tcp://h:65536",
        "tcp://h:-1",
        "tcp://h:" + "9" * 5000,
        "inproc://x",
        "/run/x",
        "tcp://127.0.0.1:8²",
        "tcp://name.example:80",
        "tcp://127.1.1.1.1:80",
    ],
)
def test_unusable_addresses(address: str) -> None:
    with pytest.raises(ConnectionFailed):
        connect(address)


def test_a_system_without_unix_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")
    with pytest.raises(ConnectionFailed, match="no Unix sockets") as caught:
        connect("ipc:///run/s")
    assert "tcp://127.0.0.1" in (caught.value.hint or "")


def test_addresses() -> None:
    assert parse_address("ipc:///run/u/s.sock") == ("ipc", "/run/u/s.sock", 0)
    assert parse_address("tcp://127.0.0.1:5555") == ("tcp", "127.0.0.1", 5555)
    assert parse_address("tcp://[::1]:5555") == ("tcp", "::1", 5555)


def test_routing_id_rules(tmp_path: Path) -> None:
    for identity in (b"\0a", b"x" * 256):
        with pytest.raises(ConnectionFailed):
            Dealer(f"ipc://{tmp_path}/s", Deadline(1, ""), identity=identity)
