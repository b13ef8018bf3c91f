"""Asking a running job to stop after the current frame."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
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
def cancel_on_signals(token: CancelToken) -> Iterator[None]:
    """While the block runs, Ctrl-C and SIGTERM ask for a stop; a second Ctrl-C acts at once, as Python's own does."""

    def stop(number: int, _: FrameType | None) -> None:
        if token.is_cancelled and number == signal.SIGINT:
            raise KeyboardInterrupt
        token.cancel()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
