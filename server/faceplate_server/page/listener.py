"""HTTP for one machine: GET on the loopback, one request a connection, little patience, threads of its own."""

from __future__ import annotations

import contextlib
import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
_CONNECTIONS = 16
_HEAD_BYTES = 8192
_HEAD_S = 3.0
_SEND_S = 5.0
_REQUEST = re.compile(rb"([A-Z]{1,16}) (/[!-~]*) HTTP/1\.[01]")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*")
_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE | re.ASCII)
"""Names of this machine, whatever the port: a tunnel may have another. A site that lets its own name point here,
so that its scripts could read the page from a browser, sends that name.
"""
_ALWAYS = {
    "Cache-Control": "no-store",
    "Connection": "close",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True)
class Request:
    """What was asked for.

    Attributes:
        path: without what follows a question mark.
        headers: by name in lower case; of several with one name the last.
    """

    path: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Response:
    """What is answered.

    Attributes:
        status: of HTTP.
        body: its bytes.
        kind: Content-Type.
        headers: further ones.
    """

    status: HTTPStatus
    body: bytes = b""
    kind: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


class _Wrong(Exception):
    """A request that gets no further."""

    def __init__(self, status: HTTPStatus, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status.phrase)
        self.response = Response(status, f"{status.value} {status.phrase}\n".encode(), headers=headers or {})


class Listener:
    """Answers requests until closed.

    Args:
        port: 0 for any that is free.
        answer: called in several threads; what it raises becomes 500 and is logged.

    Raises:
        OSError: the port is taken.
    """

    def __init__(self, port: int, answer: Callable[[Request], Response]) -> None:
        self._answer = answer
        self._room = threading.BoundedSemaphore(_CONNECTIONS)
        self._socket = socket.create_server((LOOPBACK, port), backlog=_CONNECTIONS)
        self.port = int(self._socket.getsockname()[1])
        self._thread = threading.Thread(target=self._accept, name="page", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take no more requests; those that are being answered are left to their threads."""
        with contextlib.suppress(OSError):  # wakes the thread that waits in accept; not every system lets a listener
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(1.0)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                if self._socket.fileno() < 0:
                    return
                time.sleep(0.1)  # too many open files: others will close theirs
                continue
            if not self._room.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(target=self._serve, args=(connection,), name="page request", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                response, body = self._respond(connection)
                connection.settimeout(_SEND_S)
                connection.sendall(_head(response) + (response.body if body else b""))
                connection.shutdown(socket.SHUT_WR)
        except OSError:
            log.debug("a reader of the status page went away")
        finally:
            self._room.release()

    def _respond(self, connection: socket.socket) -> tuple[Response, bool]:
        """The answer, and whether its body is sent."""
        method = "GET"
        try:
            method, request = _parsed(_read_head(connection))
            return self._answer(request), method != "HEAD"
        except _Wrong as wrong:
            return wrong.response, method != "HEAD"
        except OSError:
            raise
        except Exception:
            # a fault of the page must not end the thread without an answer; it is logged with its trace
            log.exception("the status page met a fault")
            return _Wrong(HTTPStatus.INTERNAL_SERVER_ERROR).response, True


def _read_head(connection: socket.socket) -> bytes:
    """The request up to its empty line, within the time and size that a browser needs."""
    end = time.monotonic() + _HEAD_S
    head = b""
    while b"\r\n\r\n" not in head:
        if len(head) > _HEAD_BYTES:
            raise _Wrong(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        left = end - time.monotonic()
        if left <= 0:
            raise _Wrong(HTTPStatus.REQUEST_TIMEOUT)
        connection.settimeout(left)
        try:
            more = connection.recv(4096)
        except TimeoutError:
            raise _Wrong(HTTPStatus.REQUEST_TIMEOUT) from None
        if not more:
            raise ConnectionAbortedError("the request ended in its middle")
        head += more
    return head[: head.index(b"\r\n\r\n")]


def _parsed(head: bytes) -> tuple[str, Request]:
    first, *lines = head.split(b"\r\n")
    match = _REQUEST.fullmatch(first)
    if match is None:
        raise _Wrong(HTTPStatus.BAD_REQUEST)
    method = match[1].decode("ascii")
    if method not in ("GET", "HEAD"):
        raise _Wrong(HTTPStatus.METHOD_NOT_ALLOWED, {"Allow": "GET, HEAD"})
    headers: dict[str, str] = {}
    for line in lines:
        pair = _HEADER.fullmatch(line)
        if pair is None:
            raise _Wrong(HTTPStatus.BAD_REQUEST)
        name = pair[1].decode("ascii").lower()
        if name == "host" and name in headers:
            raise _Wrong(HTTPStatus.BAD_REQUEST)
        headers[name] = pair[2].decode("latin-1")
    if not _HOST.fullmatch(headers.get("host", "")):
        raise _Wrong(HTTPStatus.FORBIDDEN)
    return method, Request(match[2].decode("ascii").split("?", 1)[0], headers)


def _head(response: Response) -> bytes:
    fields = {
        "Content-Type": response.kind,
        "Content-Length": str(len(response.body)),
        **_ALWAYS,
        **response.headers,
    }
    lines = [f"HTTP/1.1 {response.status.value} {response.status.phrase}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def refused(status: HTTPStatus, headers: Mapping[str, str] | None = None) -> Response:
    """An answer of its status alone."""
    return _Wrong(status, headers).response
