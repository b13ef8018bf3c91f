"""The closed table of messages."""

from __future__ import annotations

from typing import Any, Callable, TypeVar

from .fields import Codec, record

PROTOCOL_MIN = 1
PROTOCOL_MAX = 2
FOR_EVER = ("hello", "welcome", "error")
"""Written as version 1 whatever was agreed: two sides that do not fit can tell each other so."""

MESSAGES: dict[str, type] = {}
TO_SERVER: dict[str, bool] = {}
"""By tag: True for client to server, False for server to client."""
SINCE: dict[str, int] = {}
"""By tag: the protocol version that the message came with."""
TAGS: dict[type, str] = {}
CODECS: dict[str, Codec] = {}
C = TypeVar("C", bound=type[Any])


def message(tag: str, to_server: bool, since: int = 1) -> Callable[[C], C]:
    """Put a dataclass into the table."""

    def add(kind: C) -> C:
        MESSAGES[tag], TO_SERVER[tag], TAGS[kind], SINCE[tag] = kind, to_server, tag, since
        CODECS[tag] = record(kind)
        return kind

    return add
