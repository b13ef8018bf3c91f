"""Refusals of the server, and how every error becomes an answer on the wire."""

from __future__ import annotations

from faceplate.errors import DeviceError, FaceplateError, OutputBusyError, ResourceError
from faceplate_client import wire
from faceplate_client.errors import ClientError, RingError, RingStale

_LONGEST = 4000


class Refused(Exception):
    """The server will not do what was asked; becomes an `error` message.

    Args:
        code: one of `wire.CODES`.
        message: one sentence.
        expected: what would have been right.
        found: what was there.
        hint: the artist's next step.
    """

    def __init__(
        self, code: str, message: str, *, expected: str | None = None, found: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.expected = expected
        self.found = found
        self.hint = hint


class Told(Exception):
    """An error that a worker process met, which is none of `faceplate.errors`.

    Args:
        failure: as the wire has it.
    """

    def __init__(self, failure: wire.Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def to_failure(error: BaseException) -> wire.Failure:
    """Any error as the wire has it. What is not ours is "internal", with its type and words."""
    if isinstance(error, Told):
        return error.failure
    parts: tuple[str | None, ...]
    if isinstance(error, (Refused, FaceplateError, ClientError)):
        parts = (error.message, error.expected, error.found, error.hint)
    elif isinstance(error, wire.WireError):
        parts = (error.message, error.expected, error.found, "plug-in and server must come from the same release")
    elif isinstance(error, MemoryError):
        parts = ("there is not enough memory for this frame", None, str(error) or None, "close other programs")
    else:
        hint = "send the server's log to the developers; other jobs are not affected"
        parts = (f"the server met an error of its own: {type(error).__name__}", None, str(error) or None, hint)
    message, *rest = (None if part is None else clean(part) for part in parts)
    return wire.Failure(_code(error), type_name(error), message or "no reason given", *rest)


def type_name(error: BaseException) -> str:
    """The name of an error's type; of the nearest in `faceplate.errors`, which all clients know, if it is one."""
    known = (kind.__name__ for kind in type(error).__mro__ if kind.__module__ == FaceplateError.__module__)
    return next(known, type(error).__name__)


def to_message(job: str | None, error: BaseException) -> wire.Error:
    """The `error` message for a request or job, `job` None where the request could not be read."""
    failure = to_failure(error)
    return wire.Error(job, failure.code, failure.type, failure.message, failure.expected, failure.found, failure.hint)


def clean(text: str) -> str:
    """Text as the wire takes it: no lone surrogates (a path that is no UTF-8 has them), not too long."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")[:_LONGEST]


def _code(error: BaseException) -> str:
    if isinstance(error, (Refused, wire.WireError)):
        return error.code
    for kind, code in (
        (RingStale, "stale_slot"),
        (RingError, "ring"),
        (OutputBusyError, "busy"),
        (DeviceError, "device"),
        (ResourceError, "resource"),
        (MemoryError, "resource"),
        (FaceplateError, "input"),
    ):
        if isinstance(error, kind):
            return code
    return "internal"
