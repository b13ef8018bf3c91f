"""HTTP on the loopback: what is refused, what every answer carries, and that the slow stall nobody."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from http import HTTPStatus

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faceplate_server.page import listener as module
from faceplate_server.page.listener import Listener, Request, Response


def answer(request: Request) -> Response:
    if request.path == "/fault":
        raise RuntimeError("broken")
    if request.path == "/large":
        return Response(HTTPStatus.OK, bytes(64 << 20))
    return Response(HTTPStatus.OK, f"{request.path} {request.headers.get('x', '')}".encode())


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    one = Listener(0, answer)
    yield one
    one.close()


def connect(listener: Listener) -> socket.socket:
    return socket.create_connection(("127.0.0.1", listener.port), 10)


def everything(connection: socket.socket) -> bytes:
    data = b""
    try:
        while more := connection.recv(65536):
            data += more
    except ConnectionResetError:
        pass  # it was closed with what we sent still unread
    return data


def say(listener: Listener, data: bytes) -> tuple[int, dict[str, str], bytes]:
    with connect(listener) as connection:
        connection.sendall(data)
        head, _, body = everything(connection).partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    return int(first.split()[1]), dict(line.split(": ", 1) for line in lines), body


def get(listener: Listener, path: str = "/a", host: str = "127.0.0.1", method: str = "GET", more: str = "") -> int:
    return say(listener, f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode())[0]


def test_an_answer_carries_what_keeps_others_out(listener: Listener) -> None:
    status, headers, body = say(listener, b"GET /a?b=c HTTP/1.1\r\nHost: localhost:1\r\nX:  y \r\n\r\n")
    assert (status, body) == (200, b"/a y")
    assert headers["Content-Length"] == "4"
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'")
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert not [name for name in headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8080", "localhost", "LocalHost:9", "[::1]:80"])
def test_names_of_this_machine(listener: Listener, host: str) -> None:
    assert get(listener, host=host) == 200


@pytest.mark.parametrize(
    "host", ["", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.1:80@evil", "[::1", "0"]
)
def test_a_name_that_was_made_to_point_here_is_refused(listener: Listener, host: str) -> None:
    assert get(listener, host=host) == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT"])
def test_reading_is_all_there_is(listener: Listener, method: str) -> None:
    status, headers, _ = say(listener, f"{method} /a HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


def test_head_has_no_body(listener: Listener) -> None:
    status, headers, body = say(listener, b"HEAD /a HTTP/1.0\r\nHost: localhost\r\n\r\n")
    assert (status, headers["Content-Length"], body) == (200, "3", b"")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (b"GET a HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /\x01 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 403),
        (b"GET /" + b"a" * 20_000, 431),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 5000, 431),
        (b"GET /fault HTTP/1.1\r\nHost: localhost\r\n\r\n", 500),
    ],
)
def test_what_is_no_request_of_a_browser(listener: Listener, data: bytes, status: int) -> None:
    assert say(listener, data)[0] == status
    assert get(listener) == 200


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300))
def test_noise_is_answered_in_http(listener: Listener, noise: bytes) -> None:
    status, _, _ = say(listener, noise + b"\r\n\r\n")
    assert status in (200, 400, 403, 405)


def test_a_client_that_drips_is_given_up_and_stalls_nobody(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HEAD_S", 0.6)
    with connect(listener) as slow:
        start = time.monotonic()

        def drip() -> None:
            try:
                for letter in b"GET / HTTP/1.1\r\nX: " + b"y" * 1000:
                    slow.sendall(bytes([letter]))
                    time.sleep(0.05)
            except OSError:
                return  # given up, as it has to be

        dripping = threading.Thread(target=drip)
        dripping.start()
        assert get(listener) == 200
        assert time.monotonic() - start < 0.6
        assert b" 408 " in everything(slow)
        assert time.monotonic() - start < 5
        dripping.join()


def test_more_connections_than_there_is_room_for(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HEAD_S", 2.0)
    silent = [connect(listener) for _ in range(module._CONNECTIONS + 10)]
    most, end = 0, time.monotonic() + 1.5
    while time.monotonic() < end:
        most = max(most, sum(thread.name == "page request" for thread in threading.enumerate()))
        time.sleep(0.01)
    for one in silent:
        ended = everything(one)  # turned away at once, or after the time that a head may take
        assert ended == b"" or b" 408 " in ended
        one.close()
    assert most == module._CONNECTIONS
    assert get(listener) == 200


def test_a_reader_that_does_not_read_is_given_up(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SEND_S", 0.3)
    idle = [connect(listener) for _ in range(module._CONNECTIONS)]
    for one in idle:
        one.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            if get(listener) == 200:
                break
        except (IndexError, OSError):
            time.sleep(0.05)  # no room yet
    else:
        raise AssertionError("they kept their places")
    for one in idle:
        one.close()


def test_it_listens_on_the_loopback_alone(listener: Listener) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing: says which address would be used
        other = probe.getsockname()[0]
    if other.startswith("127."):
        pytest.skip("this machine has no other address")
    with pytest.raises(OSError, match=r"refused|unreachable"):
        socket.create_connection((other, listener.port), 2)


def test_a_taken_port_is_told(listener: Listener) -> None:
    with pytest.raises(OSError, match="in use"):
        Listener(listener.port, answer)


def test_it_ends() -> None:
    one = Listener(0, answer)
    one.close()
    with pytest.raises(OSError, match="refused"):
        connect(one)
