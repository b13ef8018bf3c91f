"""The slate: what a frame shows that failed. Magenta and black stripes, so that nobody takes it for a plate.

In memory in any form that a host takes, and as an EXR file, since a missing file of a sequence often shows the
untouched plate instead and nobody notices. The values are scene-linear: magenta is (1, 0, 1) and alpha 1.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from .errors import FolderFailed
from .exr_head import SLATE, read_head
from .job_record import write_whole
from .slot_header import FrameHeader, FrameType

STRIPE = 32
"""Width of a stripe, px; two of them make a period."""
_STEP = 8
_TEXT = 400
_ONE = {FrameType.HALF: struct.pack("<e", 1.0), FrameType.FLOAT: struct.pack("<f", 1.0)}


def fill(header: FrameHeader, into: memoryview) -> None:
    """Write the slate into pixels that are laid out as `header` says.

    Args:
        header: size, channels, type; R, B and A are lit, other channels are 0.
        into: writable, `header.nbytes` bytes.
    """
    one = _ONE[header.dtype]
    zero = bytes(len(one))
    bright = b"".join(one if name in ("R", "B", "A") else zero for name in header.channels)
    dark = b"".join(one if name == "A" else zero for name in header.channels)
    period = bright * STRIPE + dark * STRIPE
    row_bytes = header.width * len(bright)
    tape = period * (row_bytes // len(period) + 2)
    target = into.cast("B") if into.format != "B" else into
    for row in range(header.height):
        start = _shift(row) * len(bright)
        target[row * row_bytes : (row + 1) * row_bytes] = tape[start : start + row_bytes]


def write_exr(
    path: Path, width: int, height: int, reason: str, *, pixel_aspect: float = 1.0, interop: str = ""
) -> None:
    """Write the slate as a half RGBA file, ZIPS, with the reason in its attribute "faceplate/slate".

    The layout of the file is that of https://openexr.com/en/latest/OpenEXRFileLayout.html .

    Args:
        path: of the file; replaced in one step.
        width: px.
        height: px.
        reason: why there is no result.
        pixel_aspect: width / height of one pixel.
        interop: colorInteropID of the files around it, "" for none.

    Raises:
        FolderFailed: it cannot be written.
    """
    if not (0 < width <= 1 << 16 and 0 < height <= 1 << 16):
        raise FolderFailed(f"no size for the slate {path}", found=f"{width}x{height}", hint="relink the clip's source")
    window = struct.pack("<4i", 0, 0, width - 1, height - 1)
    attributes = [
        _attribute("channels", "chlist", b"".join(_channel(name) for name in "ABGR") + b"\0"),
        _attribute("compression", "compression", b"\x02"),
        _attribute("dataWindow", "box2i", window),
        _attribute("displayWindow", "box2i", window),
        _attribute("lineOrder", "lineOrder", b"\0"),
        _attribute("pixelAspectRatio", "float", struct.pack("<f", pixel_aspect)),
        _attribute("screenWindowCenter", "v2f", struct.pack("<2f", 0.0, 0.0)),
        _attribute("screenWindowWidth", "float", struct.pack("<f", 1.0)),
        _attribute(SLATE, "string", reason[:_TEXT].encode("utf-8", "replace")),
    ]
    if interop:
        attributes.append(_attribute("colorInteropID", "string", interop.encode()))
    # longer attribute names than 31 bytes would need another version; 2 is single-part scan lines
    head = struct.pack("<2i", 20000630, 2) + b"".join(attributes) + b"\0"
    lines = [_packed(_line(width, shift)) for shift in range(0, 2 * STRIPE, _STEP)]
    offset = len(head) + 8 * height
    table, blocks = [], []
    for row in range(height):
        data = lines[_shift(row) // _STEP]
        table.append(struct.pack("<Q", offset))
        blocks.append(struct.pack("<2i", row, len(data)) + data)
        offset += 8 + len(data)
    write_whole(path, head + b"".join(table) + b"".join(blocks))


def is_slate(path: Path) -> bool:
    """Whether a file is a slate; a file that is not there is none."""
    head = read_head(path)
    return head is not None and head.slate is not None


def _shift(row: int) -> int:
    return row // _STEP * _STEP % (2 * STRIPE)


def _attribute(name: str, kind: str, value: bytes) -> bytes:
    return name.encode() + b"\0" + kind.encode() + b"\0" + struct.pack("<i", len(value)) + value


def _channel(name: str) -> bytes:
    half, linear = 1, 0
    return name.encode() + b"\0" + struct.pack("<iB3x2i", half, linear, 1, 1)


def _line(width: int, shift: int) -> bytes:
    """One scan line: A, B, G, R one after the other."""
    one, zero = _ONE[FrameType.HALF], bytes(2)
    period = one * STRIPE + zero * STRIPE
    stripes = (period * (width // (2 * STRIPE) + 2))[2 * shift : 2 * (shift + width)]
    return one * width + stripes + zero * width + stripes


def _packed(line: bytes) -> bytes:
    """As OpenEXR's ZIPS does it: low bytes then high bytes, differences, zlib; raw where that is not smaller."""
    split = line[0::2] + line[1::2]
    differences = bytes((after - before + 128) & 255 for before, after in zip(split, split[1:]))
    packed = zlib.compress(split[:1] + differences, 6)
    return packed if len(packed) < len(line) else line
