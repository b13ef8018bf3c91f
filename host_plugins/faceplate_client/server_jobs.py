"""Jobs of an action on the server: events handed on, cancelled between frames, sent again after a restart."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from . import wire
from .client import Client, Timeouts
from .connection import find
from .errors import ClientError, ConnectionFailed, ConnectionLost, RequestTimeout, ServerError, TotalTimeout, UnsafeFile
from .host import Progress
from .task import Session

POLL_S = 0.2
_SILENCE_S = 5.0
_PAUSE_S = 0.3
_COMES_BACK = ("busy", "stopping")
"""Codes of refusals that pass: a lock that the dead server's job still held, a server that goes down."""

Submit = Callable[[Client], str]
OnEvent = Callable[[Any], None]


class ServerJobs:
    """The server as an action uses it; for one thread, closed at the end.

    Args:
        session: of the action.
        name: of the host, for the server's log.
        retry_s: seconds that a server which went away is waited for.

    Raises:
        ServerNotFound: none runs and none is to be started: offer to start it.
        LaunchFailed, ProtocolError: it does not come up, or is of another release.
    """

    def __init__(self, session: Session, name: str, retry_s: float) -> None:
        self._session = session
        self._retry_s = retry_s
        self._name = name
        session.report(Progress("connect to the server"))
        session.servers.find()
        self._client: Client | None = self._connect()

    def __enter__(self) -> ServerJobs:
        return self

    def __exit__(self, *_: object) -> None:
        if self._client is not None:
            self._client.close()

    @property
    def client(self) -> Client:
        """The connection as it is now."""
        if self._client is None:
            self._client = self._connect()
        return self._client

    def run(self, submit: Submit, on_event: OnEvent) -> wire.End:
        """Run a job to its end; after a restart of the server it is submitted again, and what is done is kept.

        Args:
            submit: sends the job and returns its id; called once or, after a loss, several times.
            on_event: takes what the server tells, the end too.

        Raises:
            ServerError: the job as a whole failed.
            ConnectionFailed: the server went away and did not come back.
        """
        give_up = time.monotonic() + self._retry_s
        while True:
            moved = time.monotonic()

            def heard(event: Any) -> None:
                nonlocal moved
                moved = time.monotonic()
                on_event(event)

            try:
                return self._once(submit, heard)
            except (ConnectionFailed, RequestTimeout) as error:
                if isinstance(error, UnsafeFile):
                    raise
                lost: ClientError = error
                self._client = None
            except ServerError as error:
                if error.code not in _COMES_BACK:
                    raise
                lost = error
            # a job that got on in between has its whole patience again
            give_up = max(give_up, moved + self._retry_s)
            self._session.note("the server went away in mid-job; what was done was kept")
            self._wait_for_server(lost, give_up)

    def _once(self, submit: Submit, on_event: OnEvent) -> wire.End:
        client = self.client
        job = submit(client)
        cancelled, heard = False, time.monotonic()
        while True:
            if self._session.is_cancelled and not cancelled:
                cancelled = True
                client.cancel(job)
            try:
                for event in client.events(job, POLL_S):
                    heard = time.monotonic()
                    on_event(event)
                    if isinstance(event, (wire.Done, wire.Cancelled, wire.FrameResult)):
                        return event
                    if self._session.is_cancelled and not cancelled:
                        break
            except TotalTimeout:
                if time.monotonic() - heard > _SILENCE_S:
                    client.ping()
                    heard = time.monotonic()
                if not client.is_open(job):
                    # a question on the way found the connection lost, and made a new one without our job
                    raise ConnectionLost("the connection was lost, and the job with it") from None

    def _wait_for_server(self, lost: ClientError, give_up: float) -> None:
        """Until a server answers; raises `lost` where none does, or the artist stops waiting."""
        self._session.report(Progress("wait for the server"))
        while True:
            time.sleep(_PAUSE_S)
            if self._session.is_cancelled or time.monotonic() >= give_up:
                raise lost
            try:
                self._session.servers.find()
                if self.client.ping().ready:
                    return
            except (ConnectionFailed, RequestTimeout):
                self._client = None
            self._session.report(Progress("wait for the server"))

    def _connect(self) -> Client:
        place = self._session.servers.place
        return Client(lambda: find(place), self._name, Timeouts(request_s=30.0))
