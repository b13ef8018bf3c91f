"""How an action runs: all on one thread, or on a worker that lends host calls to the application's own thread.

An action is a function of a `Session`. It reaches the host through `session.ask` alone, tells how far it is through
`session.report`, and looks at `session.is_cancelled` between frames. So the same function serves a script, a modal
operator and a progress window:

    outcome = run(host, servers, lambda session: apply(session, clips, recipe))

    task = Task(host, servers, lambda session: apply(session, clips, recipe))
    task.start()                # a worker thread
    task.tick()                 # on the application's thread, by a timer or when `wake` says so
    if task.ended: task.result()
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from .connection import ConnectionInfo, Place, find
from .errors import ActionStopped, ServerNotFound
from .host import Host, Progress
from .launch import COMMAND, find_or_start

T = TypeVar("T")


@dataclass(frozen=True)
class Servers:
    """Which server an action talks to.

    Attributes:
        place: folder and name of the user's server.
        start: whether it is started when none runs.
        command: how.
        start_s: seconds that a start may take.
    """

    place: Place = field(default_factory=Place)
    start: bool = False
    command: Sequence[str] = COMMAND
    start_s: float = 60.0

    def find(self) -> ConnectionInfo:
        """The server's connection.

        Raises:
            ServerNotFound: none runs and none is to be started.
            LaunchFailed: it did not come up.
        """
        try:
            return find(self.place)
        except ServerNotFound:
            if not self.start:
                raise
        return find_or_start(self.place, self.command, start_s=self.start_s).info


class Session:
    """What an action has at hand.

    Args:
        host: the application.
        servers: which server.
        ask: runs a function of the host on the application's thread and gives back what it gave.
        cancelled: set by whoever wants the action to stop.
    """

    def __init__(
        self,
        host: Host,
        servers: Servers,
        ask: Callable[[Callable[[Host], Any]], Any] | None = None,
        cancelled: threading.Event | None = None,
    ) -> None:
        self.servers = servers
        self.notes: list[str] = []
        """What the artist should read when the action has ended."""
        self._host = host
        self._ask = ask
        self._cancelled = cancelled if cancelled is not None else threading.Event()
        self.latest = Progress("")

    def ask(self, question: Callable[[Host], T]) -> T:
        """Run `question(host)` on the application's thread.

        Raises:
            HostError: as the host's method does.
            ActionStopped: the application is closing.
        """
        return cast(T, question(self._host) if self._ask is None else self._ask(question))

    @property
    def is_cancelled(self) -> bool:
        """Whether the action should stop after the frame at work."""
        return self._cancelled.is_set()

    def report(self, progress: Progress) -> None:
        """Tell how far the action is."""
        self.latest = progress
        if not self.ask(lambda host: host.show(progress)):
            self._cancelled.set()

    def note(self, text: str) -> None:
        """Something that the artist should read when the action has ended; each text once."""
        if text not in self.notes:
            self.notes.append(text)


def run(host: Host, servers: Servers, action: Callable[[Session], T]) -> T:
    """Run an action to its end on this thread."""
    session = Session(host, servers)
    try:
        return action(session)
    finally:
        host.show(None)


class _Call:
    def __init__(self, question: Callable[[Host], Any]) -> None:
        self.question = question
        self.answer: Any = None
        self.error: BaseException | None = None
        self.answered = threading.Event()


class Task(Generic[T]):
    """An action on a worker thread.

    Args:
        host: the application; its methods are called by `tick` alone.
        servers: which server.
        action: what to do.
        wake: called from the worker when a host call waits; for applications without a timer. May return at once.
    """

    def __init__(
        self, host: Host, servers: Servers, action: Callable[[Session], T], *, wake: Callable[[], None] | None = None
    ) -> None:
        self._host = host
        self._action = action
        self._wake = wake
        self._calls: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        self._cancelled = threading.Event()
        self._closing = threading.Event()
        self._session = Session(host, servers, self._ask, self._cancelled)
        self._value: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="faceplate action", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def tick(self, budget_s: float = 0.02) -> bool:
        """Run the host calls that wait, for about `budget_s`; on the application's thread.

        Returns:
            True while the action goes on.
        """
        end = time.monotonic() + budget_s
        while True:
            try:
                call = self._calls.get_nowait()
            except queue.Empty:
                return not self.ended
            if self._closing.is_set():
                continue  # it was meant for a document that is closed
            try:
                call.answer = call.question(self._host)
            except BaseException as error:
                call.error = error
            call.answered.set()
            if time.monotonic() >= end:
                return not self.ended

    @property
    def progress(self) -> Progress:
        """How far the action is."""
        return self._session.latest

    def cancel(self) -> None:
        """Ask the action to stop after the frame at work; it ends by itself. Harmless when it has ended."""
        self._cancelled.set()

    @property
    def ended(self) -> bool:
        """Whether `result` is there."""
        return not self._thread.is_alive() and self._thread.ident is not None and self._calls.empty()

    def result(self) -> T:
        """What the action returned; raises what it raised."""
        if self._error is not None:
            raise self._error
        return cast(T, self._value)

    def close(self, patience_s: float = 5.0) -> bool:
        """At the application's end: cancel, refuse further host calls, wait. True when the worker has ended."""
        self._cancelled.set()
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join(patience_s)
        self.tick()  # lets go of what waits
        return not self._thread.is_alive()

    def _work(self) -> None:
        try:
            self._value = self._action(self._session)
        except BaseException as error:
            self._error = error

    def _ask(self, question: Callable[[Host], Any]) -> Any:
        call = _Call(question)
        self._calls.put(call)
        if self._wake is not None:
            self._wake()
        while not call.answered.wait(0.1):
            if self._closing.is_set():
                raise ActionStopped("the application is closing")
        if call.error is not None:
            raise call.error
        return call.answer
