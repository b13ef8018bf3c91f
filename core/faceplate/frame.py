"""The frame as a value: windows, pixels as a file stores them, pixels as the pipeline sees them.

All values here are frozen; pixel arrays are exposed as read-only views, so that a stage that wants to change a pixel
has to make a new array. `eq=False` because arrays have no single truth value.

Coordinates (the whole project): pixels, x right, y down, the centre of the pixel in column i and row j at
(i + 0.5, j + 0.5), in the coordinate system in which EXR states its windows. Column c of `pixels` is plate x
`data_window.x0 + c`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import UnsupportedImageError

Pixels = NDArray[np.float16] | NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Box:
    """A half-open integer window: columns x0 <= x < x1, rows y0 <= y < y1, in pixels. Corners may be negative."""

    x0: int
    y0: int
    x1: int
    y1: int

    @property
    def width(self) -> int:
        """Columns, 0 when empty."""
        return max(0, self.x1 - self.x0)

    @property
    def height(self) -> int:
        """Rows, 0 when empty."""
        return max(0, self.y1 - self.y0)

    @property
    def is_empty(self) -> bool:
        """True when the window holds no pixel."""
        return self.width == 0 or self.height == 0

    def intersect(self, other: Box) -> Box:
        """The common part; empty (zero-sized) when there is none."""
        x0, y0 = max(self.x0, other.x0), max(self.y0, other.y0)
        return Box(x0, y0, max(x0, min(self.x1, other.x1)), max(y0, min(self.y1, other.y1)))

    def union(self, other: Box) -> Box:
        """The smallest window that holds both."""
        if self.is_empty:
            return other
        if other.is_empty:
            return self
        return Box(min(self.x0, other.x0), min(self.y0, other.y0), max(self.x1, other.x1), max(self.y1, other.y1))

    def grow(self, pixels: int) -> Box:
        """The window with `pixels` more on each side."""
        return Box(self.x0 - pixels, self.y0 - pixels, self.x1 + pixels, self.y1 + pixels)

    def contains(self, other: Box) -> bool:
        """True when `other` lies wholly inside."""
        return self.intersect(other) == other

    def slices(self, inside: Box) -> tuple[slice, slice]:
        """(rows, columns) of this window in an array whose first pixel is the corner of `inside`."""
        return slice(self.y0 - inside.y0, self.y1 - inside.y0), slice(self.x0 - inside.x0, self.x1 - inside.x0)


def _read_only(pixels: Pixels) -> Pixels:
    view = pixels.view()
    view.flags.writeable = False
    return view


def _check_pixels(pixels: Pixels, window: Box) -> None:
    if pixels.ndim != 3 or pixels.dtype not in (np.float16, np.float32):
        raise UnsupportedImageError(
            "pixels have the wrong form",
            expected="(H, W, C) float16 or float32",
            found=f"{pixels.shape} {pixels.dtype}",
        )
    if window.is_empty:
        raise UnsupportedImageError("the image holds no pixel", found=f"window {window}")
    if pixels.shape[:2] != (window.height, window.width):
        raise UnsupportedImageError(
            "pixels do not fill the data window",
            expected=f"{window.height} rows of {window.width}",
            found=f"{pixels.shape[0]} rows of {pixels.shape[1]}",
        )


@dataclass(frozen=True, slots=True, eq=False)
class StoredImage:
    """One image as its file holds it: no colour claim, no conversion but integer codes scaled to 0..1.

    Attributes:
        pixels: (H, W, C) float16 or float32, top row first. Half EXR stays float16; integers are code / max as float32.
        channels: C names, e.g. ("R", "G", "B", "A").
        data_window: what `pixels` cover.
        display_window: the raster of the picture.
        pixel_aspect: width / height of one pixel.
        number: frame number in its sequence, None for a lone file.
        path: the file.
        file_format: "exr", "dpx", "tiff", "png", "jpeg".
        bit_depth: "half", "float", "uint8", "uint10", "uint12", "uint16".
        metadata: attributes as read, by the file's own names.
        carrier: what the writer of the same format needs to give back everything else (other channels, parts,
            attribute types); opaque outside `media`.
    """

    pixels: Pixels
    channels: tuple[str, ...]
    data_window: Box
    display_window: Box
    pixel_aspect: float
    number: int | None
    path: Path
    file_format: str
    bit_depth: str
    metadata: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    carrier: Any = None

    def __post_init__(self) -> None:
        _check_pixels(self.pixels, self.data_window)
        object.__setattr__(self, "pixels", _read_only(self.pixels))
        object.__setattr__(self, "metadata", MappingProxyType(dict(self.metadata)))

    def __repr__(self) -> str:
        height, width, _ = self.pixels.shape
        return f"StoredImage({self.path.name}, {width}x{height} {''.join(self.channels)} {self.bit_depth})"


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """One plate frame, scene-linear in a named colour space.

    Attributes:
        pixels: (H, W, 3) or (H, W, 4) float16 or float32, scene-linear, unbounded (negatives, > 1, NaN, inf allowed),
            RGB or RGBA with alpha as the file had it, top row first.
        colour_space: canonical name of a linear space in the active OCIO configuration.
        data_window: what `pixels` cover.
        display_window: the raster of the picture.
        pixel_aspect: width / height of one pixel.
        number: frame number, None for a lone picture.
        stored: the image as it was read, for writing it back; None for a frame made in memory.
    """

    pixels: Pixels
    colour_space: str
    data_window: Box
    display_window: Box
    pixel_aspect: float = 1.0
    number: int | None = None
    stored: StoredImage | None = None

    def __post_init__(self) -> None:
        _check_pixels(self.pixels, self.data_window)
        if self.pixels.shape[2] not in (3, 4):
            raise UnsupportedImageError(
                "a plate needs colour", expected="RGB or RGBA", found=f"{self.pixels.shape[2]} channels"
            )
        object.__setattr__(self, "pixels", _read_only(self.pixels))

    def __repr__(self) -> str:
        height, width, channels = self.pixels.shape
        return f"Frame({self.number}, {width}x{height}x{channels} {self.pixels.dtype}, {self.colour_space})"

    def crop(self, window: Box) -> Pixels:
        """Read-only view of the RGB pixels inside `window`, which must lie in the data window: (h, w, 3)."""
        rows, columns = window.slices(self.data_window)
        return self.pixels[rows, columns, :3]
