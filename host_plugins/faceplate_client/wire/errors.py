"""Why a message cannot be understood."""

from __future__ import annotations

from typing import ClassVar


class WireError(ValueError):
    """A message that cannot be understood; `expected` and `found` say why, `where` names the field."""

    code: ClassVar[str] = "malformed"

    def __init__(self, message: str, *, where: str = "", expected: str | None = None, found: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.expected = expected
        self.found = found


class Malformed(WireError):
    """Not the bytes of a message: no JSON, too large, too deep, a field missing, unknown or of the wrong type."""


class UnknownMessage(WireError):
    """A type that is not in the table."""

    code = "unknown_message"


class UnsupportedVersion(WireError):
    """A version outside PROTOCOL_MIN..PROTOCOL_MAX."""

    code = "unsupported_version"
