"""What two servers say to each other: the clients' messages, and the pieces of pixels and files that go with them.

A message has two ZeroMQ frames: a head, JSON of a closed table, and a body of bytes.

    say    body: a message of `faceplate_client.wire`
    job    client to team: a submission (body) and what it needs: files by content, frames of slots, room for results
    want   team to client: which contents are not there yet
    open   a stream begins: the content of a file, a result's file, or the pixels of a slot
    data   its next piece
    ack    pieces that were taken out of the line: bytes of their bodies, and PIECE_COST for each

Paths in heads are absolute on the client's machine, written with slashes; the team server keeps a tree of its own for
each connection and takes them as names inside it. Both servers are of one release, so that there is one version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from faceplate_client import wire

LINK_VERSION = "faceplate-link-1"
MOST_HEAD = 8 << 20
MOST_BODY = 2 << 20
MOST_FILES = 100_000
PIECE_COST = 1024
"""Bytes that a piece counts for besides its body, so that very many small ones do not pile up either."""
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_ID = re.compile(r"[\x21-\x7e]{1,64}", re.ASCII)
_WHOLE = 1 << 53

Check = Callable[[Any], bool]


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _WHOLE


def _name(value: Any) -> bool:
    return type(value) is str and bool(_ID.fullmatch(value))


def _hash(value: Any) -> bool:
    return type(value) is str and bool(_HASH.fullmatch(value))


def is_path(value: Any) -> bool:
    """An absolute path in its shortest form: no "..", no ".", no empty part, no zero byte."""
    if type(value) is not str or not 1 < len(value) <= 4096 or value[0] != "/" or "\0" in value:
        return False
    return all(part not in ("", ".", "..") and len(part) <= 255 for part in value[1:].split("/"))


def _list(check: Check) -> Check:
    return lambda value: type(value) is list and len(value) <= MOST_FILES and all(map(check, value))


def _row(*checks: Check) -> Check:
    return lambda value: (
        type(value) is list and len(value) == len(checks) and all(c(v) for c, v in zip(checks, value, strict=True))
    )


def _word(*words: str) -> Check:
    return lambda value: type(value) is str and value in words


def _header(value: Any) -> bool:
    return type(value) is str and bool(re.fullmatch(r"[0-9a-f]{0,1024}", value))


KINDS: Mapping[str, Mapping[str, Check]] = {
    "say": {},
    "job": {
        "id": _name,
        "files": _list(_row(is_path, _hash, _count, _word("input", "output", "state"))),
        "gone": _list(is_path),
        "listings": _list(_row(is_path, _list(lambda name: type(name) is str and is_path("/" + name)))),
        "shared": _list(_row(is_path, _hash, _count)),
        "frames": _list(_row(_count, _count, _header)),
        "rooms": _list(_count),
        "colour": _hash,
    },
    "want": {"id": _name, "hashes": _list(_hash)},
    "open": {
        "stream": _count,
        "job": _name,
        "what": _word("blob", "file", "frame"),
        "size": _count,
        "stride": lambda value: _count(value) and 1 <= value <= 4096,
        "hash": lambda value: value == "" or _hash(value),
        "path": lambda value: value == "" or is_path(value),
        "place": _count,
        "header": _header,
    },
    "data": {"stream": _count, "code": _count, "size": _count},
    "ack": {"bytes": _count},
}


def encode(kind: str, head: Mapping[str, Any] | None = None, body: bytes = b"") -> list[bytes]:
    """The frames of a message.

    Raises:
        wire.Malformed: it would be too large.
    """
    data = json.dumps({"k": kind, **(head or {})}, allow_nan=False, separators=(",", ":")).encode("ascii")
    if len(data) > MOST_HEAD or len(body) > MOST_BODY:
        raise wire.Malformed(
            "the job names too many files", expected=f"at most {MOST_HEAD >> 20} MiB of names", found=f"{len(data)}"
        )
    return [data, body]


def decode(parts: list[bytes]) -> tuple[str, dict[str, Any], bytes]:
    """(kind, head, body) of a message.

    Raises:
        wire.Malformed: not in the table, a field missing, unknown or wrong, too large.
    """
    if len(parts) != 2 or len(parts[0]) > MOST_HEAD or len(parts[1]) > MOST_BODY:
        raise wire.Malformed("a message between servers has a head and a body", found=f"{len(parts)} parts")
    try:
        head = json.loads(parts[0])
    except (ValueError, RecursionError) as error:
        raise wire.Malformed("a head is no JSON", found=str(error)[:200]) from error
    kind = head.pop("k", None) if type(head) is dict else None
    table = KINDS.get(kind) if type(kind) is str else None
    if table is None:
        raise wire.Malformed("a message between servers is of no known kind", found=repr(kind)[:60])
    if head.keys() != table.keys():
        raise wire.Malformed(f"a head of kind {kind} has other fields", expected=", ".join(table))
    for name, check in table.items():
        if not check(head[name]):
            raise wire.Malformed(f"field {name} of {kind} is wrong", where=name, found=repr(head[name])[:60])
    return str(kind), head, parts[1]


def header_text(dtype: int, packed: bytes) -> str:
    """A slot's header (`slot_header.pack_header`) in a head."""
    return f"{dtype:02x}" + packed.rstrip(b"\0").hex()


def header_bytes(text: str, entry: int) -> bytes:
    """The slot's table entry of `entry` bytes that `header_text` came from, for `slot_header.unpack_header`."""
    dtype, packed = int(text[:2] or "0", 16), bytes.fromhex(text[2:])
    return (bytes(4) + dtype.to_bytes(4, "little") + bytes(8) + packed).ljust(entry, b"\0")
