"""Lines of ours in a file that others write too: put in, found again, taken out; every other byte stays.

Works on bytes, since such a file may have any encoding, and may come back from an editor with other line ends. The
block keeps what stood before it: a block that begins the file was written into a file that was not there.
"""

from __future__ import annotations

import re

_OPENING = b"# faceplate: written by `faceplate install`, taken away by its --uninstall"
_CLOSING = b"# faceplate: end"
_END = rb"[ \t]*(?:\r?\n|\r)"
_BLOCK = re.compile(
    rb"(?P<before>\r?\n|\r|)"
    + re.escape(_OPENING)
    + _END
    + rb"(?P<body>.*?)"
    + re.escape(_CLOSING)
    + rb"(?:[ \t]*(?:\r?\n|\r|\Z))",
    re.DOTALL,
)


def with_lines(data: bytes | None, lines: str) -> bytes:
    """The file with these lines in it once; where they are already it is as it was.

    Args:
        data: of the file, None where there is none.
        lines: without an end of line at their end.
    """
    found = list(_BLOCK.finditer(data or b""))
    if len(found) == 1 and _plain(found[0]["body"]) == _plain(lines.encode()):
        return data or b""
    rest = without_lines(data) if data is not None and found else data
    end = b"\r\n" if b"\r\n" in (rest or b"") else b"\n"
    said = [_OPENING, *lines.encode().splitlines(), _CLOSING, b""]
    return (rest + end if rest is not None else b"") + end.join(said)


def without_lines(data: bytes) -> bytes | None:
    """The file without our block; None where the file was ours alone."""
    found = list(_BLOCK.finditer(data))
    rest = _BLOCK.sub(b"", data)
    ours = bool(found) and found[0].start() == 0 and not found[0]["before"]
    return None if ours and not rest.strip() else rest


def is_changed(data: bytes, lines: str | None) -> bool:
    """Whether somebody worked on our block; not when it is gone.

    Args:
        data: of the file.
        lines: that were written; None where a record does not say.
    """
    found = [_plain(one["body"]) for one in _BLOCK.finditer(data)]
    rest = _BLOCK.sub(b"", data)
    other = lines is not None and any(body != _plain(lines.encode()) for body in found)
    return other or _OPENING in rest or _CLOSING in rest


def _plain(body: bytes) -> list[bytes]:
    """Lines without what editors change by themselves."""
    return [line.rstrip() for line in body.strip().splitlines()]
