"""Messages as JSON bytes, and back."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from .errors import Malformed, UnknownMessage, UnsupportedVersion, WireError
from .fields import MAX_DEPTH
from .registry import CODECS, FOR_EVER, MESSAGES, PROTOCOL_MAX, PROTOCOL_MIN, SINCE, TAGS

MAX_BYTES = 1 << 20
"""Largest header, in bytes."""


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise Malformed("a field is there twice", found=", ".join(sorted(name[:60] for name, _ in pairs))[:200])
    return out


def _no_constant(word: str) -> NoReturn:
    raise Malformed("a number is not finite", expected="finite numbers", found=word)


def _short_integer(digits: str) -> int:
    # Python converts long digit strings in quadratic time, or refuses them, by version
    if len(digits) > 20:
        raise Malformed("an integer is too long", expected="at most 20 digits", found=f"{len(digits)} digits")
    return int(digits)


_MARKS = re.compile(rb'\\.|["\[\]{}]', re.DOTALL)


def _check_depth(data: bytes) -> None:
    if data.count(b"{") + data.count(b"[") <= MAX_DEPTH:
        return
    depth, quoted = 0, False
    for mark in _MARKS.findall(data):
        if mark == b'"':
            quoted = not quoted
        elif not quoted and mark in b"[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise Malformed("the message is nested too deeply", expected=f"at most {MAX_DEPTH} levels")
        elif not quoted and mark in b"]}":
            depth -= 1


def encode(message: Any, version: int = PROTOCOL_MAX) -> bytes:
    """The bytes of a message.

    Args:
        message: an instance of a class in `MESSAGES`.
        version: the protocol that hello and welcome agreed on.

    Raises:
        Malformed: a field has the wrong type or range, or the message is too large.
        UnknownMessage: not an instance of a class in the table.
        UnsupportedVersion: `version` is outside the range.
    """
    tag = TAGS.get(type(message))
    if tag is None:
        raise UnknownMessage("not a message of the protocol", found=type(message).__name__)
    _check_version(version)
    version = 1 if tag in FOR_EVER else version
    if SINCE[tag] > version:
        raise UnknownMessage(f"{tag} is not a message of protocol version {version}", expected=f"{SINCE[tag]}")
    document = {"v": version, "t": tag, **CODECS[tag].dump(message, "", version)}
    data = json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii")
    if len(data) > MAX_BYTES:
        raise Malformed("the message is too large", expected=f"at most {MAX_BYTES} bytes", found=str(len(data)))
    return data


def decode(data: bytes, largest: int = MAX_BYTES) -> Any:
    """The message that `data` holds: an instance of a class in `MESSAGES`.

    Raises:
        Malformed: too large, too deep, no JSON object, a field missing, unknown, or of the wrong type or range.
        UnknownMessage: the type is not in the table.
        UnsupportedVersion: the version is outside the range.
    """
    if len(data) > largest:
        raise Malformed("the message is too large", expected=f"at most {largest} bytes", found=str(len(data)))
    _check_depth(data)
    try:
        document = json.loads(
            bytes(data).decode("utf-8"),
            object_pairs_hook=_distinct,
            parse_constant=_no_constant,
            parse_int=_short_integer,
        )
    except WireError:
        raise
    except ValueError as error:  # JSONDecodeError and UnicodeDecodeError are both of this kind
        raise Malformed("the message is not JSON in UTF-8", found=str(error)[:200]) from error
    if type(document) is not dict:
        raise Malformed("the message is not a JSON object", found=type(document).__name__)
    version = document.pop("v", None)
    _check_version(version)
    tag = document.pop("t", None)
    if type(tag) is not str or tag not in CODECS or SINCE[tag] > version:
        raise UnknownMessage("no such message type", expected=", ".join(MESSAGES), found=repr(tag)[:60])
    return CODECS[tag].load(document, "", 1 if tag in FOR_EVER else version)


def _check_version(version: object) -> None:
    if type(version) is not int or not PROTOCOL_MIN <= version <= PROTOCOL_MAX:
        raise UnsupportedVersion(
            "the protocol version is not supported",
            expected=f"{PROTOCOL_MIN}..{PROTOCOL_MAX}",
            found=repr(version)[:60],
        )


def can_say(kind: type, version: int) -> bool:
    """Whether messages of this class are known to a peer that speaks `version`."""
    return SINCE[TAGS[kind]] <= version
