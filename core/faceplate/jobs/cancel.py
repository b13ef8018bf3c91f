"""Asking a running job to stop after the current frame."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType

from ..errors import Cancelled


class CancelToken:
    """Set once, seen by every thread of the job."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        """Ask for the stop."""
        self._event.set()

    @property
    def is_cancelled(self) -> bool:
        """True once asked."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise Cancelled when asked to stop; called between frames."""
        if self.is_cancelled:
            raise Cancelled("stopped", hint="run the same command again to go on where it stopped")


@contextmanager
def stop_on_signals(is_stopping: Callable[[], bool], stop: Callable[[], None]) -> Iterator[None]:
    """While the block runs, Ctrl-C and SIGTERM call `stop`; a second Ctrl-C acts at once, as Python's own does.

    Off the main thread, where Python takes no handlers, signals stay as they are.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, _: FrameType | None) -> None:
        if is_stopping() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def cancel_on_signals(token: CancelToken) -> AbstractContextManager[None]:
    """`stop_on_signals` for a job: the token is cancelled."""
    return stop_on_signals(lambda: token.is_cancelled, token.cancel)
