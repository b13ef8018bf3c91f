"""A point in time that a call must not pass."""

from __future__ import annotations

import time

from .errors import TimedOut


class Deadline:
    """Counts down `seconds` from its making, on a clock that never jumps.

    Args:
        seconds: greater than 0, in seconds.
        what: what is being waited for, for the error's sentence.
        error: raised when the time is over.
    """

    def __init__(self, seconds: float, what: str, error: type[TimedOut] = TimedOut) -> None:
        self.seconds = seconds
        self.what = what
        self.error = error
        self.end = time.monotonic() + seconds

    def remaining(self) -> float:
        """Seconds left, greater than 0.

        Raises:
            TimedOut: of the class given, when none are left.
        """
        left = self.end - time.monotonic()
        if left <= 0:
            raise self.expired()
        return left

    def expired(self) -> TimedOut:
        """The error to raise, for callers that noticed by other means."""
        return self.error(f"{self.what} took longer than {self.seconds:g} s")

    def within(self, seconds: float, what: str, error: type[TimedOut]) -> Deadline:
        """A deadline for a part of the work, that never ends after this one."""
        left = self.end - time.monotonic()
        return self if left <= seconds else Deadline(seconds, what, error)
