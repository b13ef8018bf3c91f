"""The numbers of a frame ring's headers; `slots` draws where they lie."""

from __future__ import annotations

import enum
import math
import struct
from dataclasses import dataclass

from .errors import RingWrongFormat, RingWrongSize

MAGIC = b"FPLTRING"
VERSION = 1
PAGE = 4096
MAX_SLOTS = 1024
FILE_HEADER = struct.Struct("<8sIIQQQQQ")
SLOT_BYTES = 512
STATE = struct.Struct("<I")
USE = struct.Struct("<Q")
_FRAME = struct.Struct("<IIIIqd4i4iQ8x128s128s")
_FRAME_AT = 16
_DTYPE_AT = 4
_USE_AT = 8
_NO_FRAME = -(1 << 63)
_TEXT = 128
_LARGEST_SIDE = 1 << 20

Window = tuple[int, int, int, int]


class State(enum.IntEnum):
    """In whose hand a slot is."""

    FREE = 0
    WRITING = 1
    READY = 2
    BUSY = 3
    DONE = 4


class FrameType(enum.IntEnum):
    """Number type of the pixels."""

    HALF = 1
    FLOAT = 2

    @property
    def size(self) -> int:
        """Bytes of one number."""
        return 2 if self is FrameType.HALF else 4


@dataclass(frozen=True)
class FrameHeader:
    """What the pixels of a slot are.

    Attributes:
        width: columns of the data window.
        height: rows of the data window.
        channels: names in order, e.g. ("R", "G", "B", "A").
        dtype: half or float.
        colour_space: name of the scene-linear space the pixels are in; "" lets the server's rules decide.
        bottom_up: True when the first row in memory is the bottom one.
        frame: frame number, None for a lone picture.
        pixel_aspect: width / height of one pixel.
        data_window: (x0, y0, x1, y1) half-open, pixels, y down; None becomes (0, 0, width, height).
        display_window: likewise; None becomes the data window.

    Raises:
        RingWrongFormat: values that contradict each other or do not fit the table.
    """

    width: int
    height: int
    channels: tuple[str, ...] = ("R", "G", "B", "A")
    dtype: FrameType = FrameType.FLOAT
    colour_space: str = ""
    bottom_up: bool = False
    frame: int | None = None
    pixel_aspect: float = 1.0
    data_window: Window | None = None
    display_window: Window | None = None

    def __post_init__(self) -> None:
        if not (0 < self.width <= _LARGEST_SIDE and 0 < self.height <= _LARGEST_SIDE and self.channels):
            self._refuse(f"{self.width}x{self.height} with {len(self.channels)} channels")
        if any(not name or "," in name or "\0" in name for name in self.channels) or "\0" in self.colour_space:
            self._refuse(f"channels {self.channels} in {self.colour_space!r}")
        for text in (",".join(self.channels), self.colour_space):
            if len(text.encode("utf-8", "surrogatepass")) > _TEXT:
                self._refuse(f"a name of more than {_TEXT} bytes: {text}")
        if not (math.isfinite(self.pixel_aspect) and self.pixel_aspect > 0):
            self._refuse(f"pixel aspect {self.pixel_aspect}")
        x0, y0, x1, y1 = self.covers
        if (x1 - x0, y1 - y0) != (self.width, self.height):
            self._refuse(f"data window {self.data_window} of a frame of {self.width}x{self.height}")
        # a header as it was given equals the one that is read back
        object.__setattr__(self, "data_window", self.covers)
        object.__setattr__(self, "display_window", self.shows)

    def _refuse(self, found: str) -> None:
        raise RingWrongFormat("the frame's header is wrong", found=found, hint="the sender is at fault: report it")

    @property
    def covers(self) -> Window:
        """The data window, given or implied."""
        return self.data_window if self.data_window is not None else (0, 0, self.width, self.height)

    @property
    def shows(self) -> Window:
        """The display window, given or implied."""
        return self.display_window if self.display_window is not None else self.covers

    @property
    def nbytes(self) -> int:
        """Bytes of the pixels."""
        return self.width * self.height * len(self.channels) * self.dtype.size


EMPTY = bytes(SLOT_BYTES - _FRAME_AT)
"""What stands behind `use` in a slot that holds no frame."""


def round_up(size: int) -> int:
    """The next whole number of pages."""
    return (size + PAGE - 1) // PAGE * PAGE


def data_offset(slots: int) -> int:
    """Where the pixels of the first slot begin."""
    return round_up(PAGE + slots * SLOT_BYTES)


def pack_header(header: FrameHeader) -> tuple[int, bytes]:
    """(dtype, bytes behind `use`).

    Raises:
        RingWrongFormat: a window or number does not fit its field, or a name has a lone surrogate.
    """
    try:
        packed = _FRAME.pack(
            header.width,
            header.height,
            len(header.channels),
            header.bottom_up,
            _NO_FRAME if header.frame is None else header.frame,
            header.pixel_aspect,
            *header.covers,
            *header.shows,
            header.nbytes,
            ",".join(header.channels).encode(),
            header.colour_space.encode(),
        )
    except (struct.error, UnicodeEncodeError) as error:
        raise RingWrongFormat("the frame's header does not fit its fields", found=str(error)) from error
    return int(header.dtype), packed.ljust(len(EMPTY), b"\0")


def unpack_header(data: bytes, room: int) -> FrameHeader | None:
    """The header in the SLOT_BYTES of a slot, None for an empty one.

    Raises:
        RingWrongFormat: values that contradict each other.
        RingWrongSize: pixels of more than `room` bytes.
    """
    if data[_FRAME_AT:] == EMPTY:
        return None
    (dtype,) = STATE.unpack_from(data, _DTYPE_AT)
    width, height, count, order, frame, aspect, *rest = _FRAME.unpack_from(data, _FRAME_AT)
    windows, nbytes, names, space = rest[:8], rest[8], rest[9], rest[10]
    if dtype not in (1, 2) or order not in (0, 1):
        raise RingWrongFormat("the frame's header is wrong", found=f"dtype {dtype}, row order {order}")
    try:
        channels = tuple(names.rstrip(b"\0").decode().split(","))
        colour_space = space.rstrip(b"\0").decode()
    except UnicodeDecodeError as error:
        raise RingWrongFormat("a name in the frame's header is not UTF-8") from error
    header = FrameHeader(
        width,
        height,
        channels,
        FrameType(dtype),
        colour_space,
        bool(order),
        None if frame == _NO_FRAME else frame,
        aspect,
        tuple(windows[:4]),
        tuple(windows[4:]),
    )
    if len(channels) != count or header.nbytes != nbytes:
        raise RingWrongFormat("the frame's header contradicts itself", found=f"{count} channels, {nbytes} bytes")
    if nbytes > room:
        raise RingWrongSize("the frame is larger than its slot", expected=f"at most {room} bytes", found=f"{nbytes}")
    return header
