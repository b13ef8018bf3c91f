"""What an OpenEXR file says about itself, and whether all of it is there.

The OpenEXR binding drops a damaged part after printing a warning, reads deep and oversized files before one can refuse
them, and tells a channel's type only after decoding it. So the header and the chunk table are read here first: some
tenths of a millisecond, nothing decoded. Layout: "OpenEXR File Layout", openexr.com.
"""

from __future__ import annotations

import math
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ..errors import ImageReadError, UnsupportedImageError
from ..frame import Box

MAGIC = b"\x76\x2f\x31\x01"

_TILED, _DEEP, _MULTI_PART = 0x200, 0x800, 0x1000
_PIXEL_TYPES = (np.dtype(np.uint32), np.dtype(np.float16), np.dtype(np.float32))

# Scanlines in one chunk, by the number of the compression: none rle zips zip piz pxr24 b44 b44a dwaa dwab htj2k256
# htj2k32 lj2k zstd.
_LINES_PER_CHUNK = (1, 1, 1, 16, 32, 16, 32, 32, 32, 256, 256, 32, 256, 1)

# A header can claim any size; more than this is taken for damage, not for a plate (a 16k RGBA float frame is 4 GiB).
_MAX_BYTES = 16 << 30


@dataclass(frozen=True, slots=True)
class ChannelLayout:
    """One channel: its name in the file, type (uint32, float16, float32), subsampling in x and y."""

    name: str
    dtype: np.dtype[np.uint32] | np.dtype[np.float16] | np.dtype[np.float32]
    sampling: tuple[int, int]


@dataclass(frozen=True, slots=True)
class PartLayout:
    """One part.

    Attributes:
        name: of the part, "" when it has none.
        storage: "scanlineimage", "tiledimage", "deepscanline" or "deeptile".
        compression: number of the compression in the OpenEXR format.
        data_window: may be empty in a damaged file.
        channels: in file order (alphabetical).
        tiles: tile width, tile height, level mode (0 one, 1 mip, 2 rip), rounding (0 down, 1 up); None for scanlines.
        chunk_count: as stated by the file, None where it does not.
    """

    name: str
    storage: str
    compression: int
    data_window: Box
    channels: tuple[ChannelLayout, ...]
    tiles: tuple[int, int, int, int] | None
    chunk_count: int | None

    @property
    def is_deep(self) -> bool:
        """True when a pixel holds a list of samples."""
        return self.storage.startswith("deep")


def read_layout(path: Path) -> tuple[PartLayout, ...]:
    """The parts of an EXR file, after checking that every chunk of pixels lies inside the file.

    Raises:
        ImageReadError: absent, empty, not an EXR, damaged header, truncated or still being written.
        UnsupportedImageError: zero-sized or absurdly large.
    """
    try:
        with path.open("rb") as file:
            return _read(path, file, os.fstat(file.fileno()).st_size)
    except OSError as error:
        raise ImageReadError(f"cannot read {path}", found=error.strerror, hint="check the path") from error
    except (struct.error, ValueError, LookupError, ArithmeticError) as error:
        raise _truncated(path, "a header that makes no sense") from error


def _truncated(path: Path, found: str) -> ImageReadError:
    return ImageReadError(
        f"{path} is damaged or not completely written",
        expected="a whole OpenEXR file",
        found=found,
        hint="copy or render this frame again",
    )


def _read(path: Path, file: BinaryIO, size: int) -> tuple[PartLayout, ...]:
    head = file.read(8)
    if head[:4] != MAGIC:
        found = "an empty file" if not head else "another kind of file"
        raise ImageReadError(
            f"{path} is no OpenEXR file", found=found, hint="check that the file is what its name says"
        )
    (version,) = struct.unpack("<I", head[4:])
    parts = []
    while True:
        part = _read_header(file, version, size)
        if part is None:
            break
        parts.append(part)
        if not version & _MULTI_PART:
            break
    if not parts:
        raise _truncated(path, "no image in it")
    for part in parts:
        _check_size(path, part)
    _check_chunks(path, file, size, parts, bool(version & _MULTI_PART))
    return tuple(parts)


def _text(file: BinaryIO) -> str:
    letters = bytearray()
    while (letter := file.read(1)) != b"\0":
        if not letter or len(letters) > 255:
            raise ValueError("unterminated name")
        letters += letter
    return letters.decode()


def _read_header(file: BinaryIO, version: int, size: int) -> PartLayout | None:
    """One header; None at the empty header that ends those of a multi-part file."""
    found: dict[str, bytes] = {}
    wanted = ("channels", "compression", "dataWindow", "type", "name", "chunkCount", "tiles")
    first = True
    while name := _text(file):
        first = False
        _text(file)
        (length,) = struct.unpack("<i", file.read(4))
        if not 0 <= length <= size - file.tell():
            raise ValueError("attribute longer than the file")
        if name in wanted:
            found[name] = file.read(length)
        else:
            file.seek(length, os.SEEK_CUR)
    if first:
        return None
    if not {"channels", "compression", "dataWindow"} <= found.keys():
        raise ValueError("a required attribute is absent")
    x0, y0, x1, y1 = struct.unpack("<4i", found["dataWindow"])
    return PartLayout(
        name=found.get("name", b"").decode(),
        storage=_storage(found.get("type", b"").decode(), version),
        compression=found["compression"][0],
        data_window=Box(x0, y0, x1 + 1, y1 + 1),
        channels=_channels(found["channels"]),
        tiles=_tiles(found.get("tiles")),
        chunk_count=struct.unpack("<i", found["chunkCount"])[0] if "chunkCount" in found else None,
    )


def _storage(stated: str, version: int) -> str:
    # Single-part files from before 2.0 have no "type": bits of the version field say it.
    if version & (_MULTI_PART | _DEEP):
        return stated
    return "tiledimage" if version & _TILED else "scanlineimage"


def _channels(data: bytes) -> tuple[ChannelLayout, ...]:
    channels = []
    at = 0
    while data[at]:
        end = data.index(b"\0", at)
        kind, _, x, y = struct.unpack_from("<4i", data, end + 1)
        channels.append(ChannelLayout(data[at:end].decode(), _PIXEL_TYPES[kind], (x, y)))
        at = end + 17
    return tuple(channels)


def _tiles(data: bytes | None) -> tuple[int, int, int, int] | None:
    if data is None:
        return None
    width, height, mode = struct.unpack("<IIB", data)
    return width, height, mode & 0xF, mode >> 4


def _check_size(path: Path, part: PartLayout) -> None:
    window = part.data_window
    if window.is_empty or not part.channels:
        raise UnsupportedImageError(
            f"{path} holds no pixel",
            found=f"data window {window}, {len(part.channels)} channels",
            hint="render this frame again",
        )
    total = window.width * window.height * sum(channel.dtype.itemsize for channel in part.channels)
    if total > _MAX_BYTES:
        raise UnsupportedImageError(
            f"{path} claims an absurd size",
            expected=f"at most {_MAX_BYTES >> 30} GiB of pixels",
            found=f"{window.width} x {window.height}, {len(part.channels)} channels",
            hint="the header is damaged, or the picture has to be cut into tiles first",
        )


def _level_counts(extent: int, tile: int, levels: int, rounding: int) -> list[int]:
    """Tiles along one axis on each level."""
    counts = []
    for level in range(levels):
        size = -(-extent >> level) if rounding else extent >> level
        counts.append(math.ceil(max(1, size) / tile))
    return counts


def _chunk_count(part: PartLayout) -> int | None:
    """Chunks of a part, None for a compression that is newer than this table."""
    if part.chunk_count is not None:
        return part.chunk_count
    width, height = part.data_window.width, part.data_window.height
    if part.tiles is None:
        if part.compression >= len(_LINES_PER_CHUNK):
            return None
        return math.ceil(height / _LINES_PER_CHUNK[part.compression])
    tile_width, tile_height, mode, rounding = part.tiles
    depth = [_level_depth(extent, rounding) for extent in (width, height)]
    levels = {0: [1, 1], 1: [max(depth)] * 2, 2: depth}[mode]
    across = _level_counts(width, tile_width, levels[0], rounding)
    down = _level_counts(height, tile_height, levels[1], rounding)
    if mode == 2:
        return sum(across) * sum(down)
    return sum(a * b for a, b in zip(across, down, strict=True))


def _level_depth(extent: int, rounding: int) -> int:
    return (math.ceil if rounding else math.floor)(math.log2(extent)) + 1


def _check_chunks(path: Path, file: BinaryIO, size: int, parts: list[PartLayout], multi_part: bool) -> None:
    """Every chunk offset must be set (a writer sets them last) and the last chunk must end inside the file."""
    last, last_part = 0, parts[0]
    for part in parts:
        count = _chunk_count(part)
        if count is None:
            return
        if not 0 < count * 8 <= size:
            raise _truncated(path, f"a table of {count} chunks in {size} bytes")
        table = np.frombuffer(file.read(count * 8), "<u8")
        if len(table) < count or int(table.min()) < file.tell() or int(table.max()) >= size:
            raise _truncated(path, f"{size} bytes, chunks missing")
        if int(table.max()) > last:
            last, last_part = int(table.max()), part
    if last_part.is_deep:
        return
    # Leader of a chunk: part number (multi-part only); y, or tile x, y and level x, y; then the size of its data.
    leader = (4 if multi_part else 0) + (4 if last_part.tiles is None else 16) + 4
    file.seek(last)
    data = file.read(leader)
    if len(data) < leader or last + leader + struct.unpack("<i", data[-4:])[0] > size:
        raise _truncated(path, f"{size} bytes, the last chunk is cut off")
