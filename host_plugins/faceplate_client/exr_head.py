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
_LINES = {0: 1, 1: 1, 2: 1, 3: 16, 4: 32, 5: 16, 6: 32, 7: 32, 8: 32, 9: 256}
"""Lines in a chunk, by the number of the compression."""


@dataclass(frozen=True)
class ExrHead:
    """What a file says of itself.

    Attributes:
        size: (width, height) of the display window, px; (0, 0) where the head has none.
        interop_id: colorInteropID, "" where it has none.
        slate: why the frame failed, where the file is a slate of ours; else None.
        pixel_aspect: width / height of a pixel.
        has_views: whether it holds pictures for several eyes.
    """

    size: tuple[int, int]
    interop_id: str
    slate: str | None
    pixel_aspect: float = 1.0
    has_views: bool = False


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
    found = _attributes(data)
    if found is None:
        return None
    display = found[0].get("displayWindow", b"")
    if len(display) == 16:
        x0, y0, x1, y1 = struct.unpack("<4i", display)
        size = (max(0, x1 - x0 + 1), max(0, y1 - y0 + 1))
    interop = found[0].get("colorInteropID", b"").decode("utf-8", "replace")
    if SLATE in found[0]:
        slate = found[0][SLATE].decode("utf-8", "replace")
    aspect = found[0].get("pixelAspectRatio", b"")
    pixel_aspect = float(struct.unpack("<f", aspect)[0]) if len(aspect) == 4 else 1.0
    return ExrHead(size, interop, slate, pixel_aspect, "multiView" in found[0] or "view" in found[0])


def _attributes(data: bytes) -> tuple[dict[str, bytes], int] | None:
    """The attributes of a file's first head and where that ends; None where it is cut off."""
    found = {}
    at = 8
    while data[at : at + 1] not in (b"", b"\0"):
        end_of_name = data.find(b"\0", at)
        end_of_kind = data.find(b"\0", end_of_name + 1)
        start = end_of_kind + 5
        if end_of_name < 0 or end_of_kind < 0 or start > len(data):
            return None
        (length,) = struct.unpack_from("<i", data, end_of_kind + 1)
        value = data[start : start + length]
        if length < 0 or len(value) != length:
            return None
        found[data[at:end_of_name].decode("utf-8", "replace")] = value
        at = start + length
    return (found, at + 1) if data[at : at + 1] == b"\0" else None


def is_cut_off(path: Path) -> bool:
    """Whether an EXR file was not written or copied to its end, which an application may show as a blank picture.

    Files of scan lines in one part are looked at; of others, and of no EXR files, nothing is said.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        data = file.read(_LARGEST)
        if data[:4] != _MAGIC or data[5:6] not in (b"\0", b"\4"):  # flags: none, or long names
            return False
        found = _attributes(data)
        if found is None:
            return len(data) < _LARGEST
        attributes, end = found
        _, top, _, bottom = struct.unpack("<4i", attributes["dataWindow"])
        lines = _LINES.get(attributes["compression"][0])
        if lines is None:
            return False
        chunks = -(-(bottom - top + 1) // lines)
        file.seek(end)
        table = file.read(8 * chunks)
        size = file.seek(0, 2)
        if len(table) < 8 * chunks:
            return True
        offsets = struct.unpack(f"<{chunks}Q", table)
        if min(offsets) == 0 or max(offsets) + 8 > size:
            return True
        file.seek(max(offsets) + 4)
        (length,) = struct.unpack("<i", file.read(4))
        return bool(max(offsets) + 8 + length > size)
