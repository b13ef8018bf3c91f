"""The head of an EXR file: as much of it as a host's bookkeeping needs, without a library.

The layout is that of https://openexr.com/en/latest/OpenEXRFileLayout.html ; parts after the first are not looked at.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

_MAGIC = b"\x76\x2f\x31\x01"
_LARGEST = 1 << 20
"""Bytes of a head that are looked at; ours have a few thousand."""
SLATE = "faceplate/slate"


@dataclass(frozen=True)
class ExrHead:
    """What a file says of itself.

    Attributes:
        size: (width, height) of the display window, px; (0, 0) where the head has none.
        interop_id: colorInteropID, "" where it has none.
        slate: why the frame failed, where the file is a slate of ours; else None.
    """

    size: tuple[int, int]
    interop_id: str
    slate: str | None


def read_head(path: Path) -> ExrHead | None:
    """The head of a file; None where there is no file, or it is no EXR or cut off within the head."""
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST)
    except OSError:
        return None
    if data[:4] != _MAGIC:
        return None
    size, interop, slate = (0, 0), "", None
    at = 8
    while data[at : at + 1] not in (b"", b"\0"):
        end_of_name = data.find(b"\0", at)
        end_of_kind = data.find(b"\0", end_of_name + 1)
        start = end_of_kind + 5
        if end_of_name < 0 or end_of_kind < 0 or start > len(data):
            return None
        (length,) = struct.unpack_from("<i", data, end_of_kind + 1)
        value, name = data[start : start + length], data[at:end_of_name].decode("utf-8", "replace")
        if length < 0 or len(value) != length:
            return None
        if name == "displayWindow" and length == 16:
            x0, y0, x1, y1 = struct.unpack("<4i", value)
            size = (max(0, x1 - x0 + 1), max(0, y1 - y0 + 1))
        elif name == "colorInteropID":
            interop = value.decode("utf-8", "replace")
        elif name == SLATE:
            slate = value.decode("utf-8", "replace")
        at = start + length
    return ExrHead(size, interop, slate) if data[at : at + 1] == b"\0" else None
