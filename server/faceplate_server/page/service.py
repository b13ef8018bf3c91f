"""The status page from start to end: its address, its token, and what lies at each path."""

from __future__ import annotations

import hmac
import json
import logging
import secrets
import time
from functools import cache
from http import HTTPStatus
from importlib.resources import files

from faceplate.errors import SettingError
from faceplate_client.connection import Place
from faceplate_client.private import write_private

from ..handlers import Handlers
from .board import Board, look
from .document import document
from .listener import LOOPBACK, Listener, Request, Response, refused
from .places import page_file, token_file
from .prometheus import CONTENT_TYPE, metrics
from .system import Sampler

log = logging.getLogger(__name__)

_WATCHED_S = 0.4
_REST_S = 5.0
_STATIC = {
    "": ("page.html", "text/html; charset=utf-8"),
    "page.css": ("page.css", "text/css; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
}


class StatusPage:
    """The page of one server, until closed.

    Args:
        place: whose files tell its address to this user alone.
        handlers: of the server.
        port: 0 for any that is free.

    Raises:
        SettingError: the port is taken.
    """

    def __init__(self, place: Place, handlers: Handlers, port: int) -> None:
        self._place = place
        self._counts = handlers.counts
        self._token = secrets.token_urlsafe(24)
        self._board: Board = look(handlers)
        self._asked = time.monotonic()
        self._sampler = Sampler()
        try:
            self._listener = Listener(port, self.answer)
        except OSError as error:
            self._sampler.close()
            hint = "choose another page_port in the server's configuration, or 0 for any that is free"
            raise SettingError(f"the status page cannot have port {port}", found=error.strerror, hint=hint) from error
        self.url = f"http://{LOOPBACK}:{self._listener.port}/{self._token}/"
        write_private(page_file(place), f"{self.url}\n".encode())
        write_private(token_file(place), self._token.encode())
        log.info("the status page is on port %d; `faceplate status --page` shows its address", self._listener.port)

    def look(self, handlers: Handlers) -> None:
        """Take down how things stand, more often while somebody looks; in the loop's thread."""
        now = time.monotonic()
        pause = _WATCHED_S if now - self._asked < _REST_S else _REST_S
        if now - self._board.at >= pause:
            self._board = look(handlers)

    def close(self) -> None:
        """Answer no more."""
        self._listener.close()
        self._sampler.close()
        for path in (page_file(self._place), token_file(self._place)):
            path.unlink(missing_ok=True)

    def answer(self, request: Request) -> Response:
        """What lies at a path; in a thread of the listener."""
        self._asked = time.monotonic()
        token, _, rest = request.path[1:].partition("/")
        if request.path == "/metrics":
            return self._bearer(request)
        if not self._knows(token):
            return refused(HTTPStatus.NOT_FOUND)
        if rest in _STATIC and request.path != f"/{token}":
            name, kind = _STATIC[rest]
            return Response(HTTPStatus.OK, static_file(name), kind)
        if rest == "state.json":
            state = document(self._board, self._counts.read(), self._sampler.last, self._place.name)
            body = json.dumps(state, ensure_ascii=True, allow_nan=False).encode("ascii")
            return Response(HTTPStatus.OK, body, "application/json")
        return self._metrics() if rest == "metrics" else refused(HTTPStatus.NOT_FOUND)

    def _bearer(self, request: Request) -> Response:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not self._knows(token.strip()):
            return refused(HTTPStatus.UNAUTHORIZED, {"WWW-Authenticate": "Bearer"})
        return self._metrics()

    def _metrics(self) -> Response:
        text = metrics(self._board, self._counts.read(), self._sampler.last, self._place.name)
        return Response(HTTPStatus.OK, text.encode("utf-8"), CONTENT_TYPE)

    def _knows(self, token: str) -> bool:
        return hmac.compare_digest(token.encode("utf-8"), self._token.encode("ascii"))


@cache
def static_file(name: str) -> bytes:
    """One of the page's own files."""
    return files(f"{__package__}").joinpath("static", name).read_bytes()
