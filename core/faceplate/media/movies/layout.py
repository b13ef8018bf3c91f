"""Pixel formats of FFmpeg as plain arrays: one integer array a component, whatever way they are interleaved."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...errors import UnsupportedImageError

Component = NDArray[np.uint8] | NDArray[np.uint16]
Planes = tuple[Component, ...]
"""Y, Cb, Cr or R, G, B or Y alone, then alpha where there is one."""

_SUBSAMPLING = {"420": (1, 1), "422": (1, 0), "444": (0, 0), "440": (0, 1), "411": (2, 0), "410": (2, 2)}


@dataclass(frozen=True, slots=True)
class Layout:
    """A pixel format.

    Attributes:
        name: as FFmpeg calls it.
        model: "yuv", "rgb" or "gray".
        bits: of one component.
        shift_x: chroma columns are the picture's shifted right by it.
        shift_y: likewise rows.
        alpha: whether the last component is alpha.
        slots: for each component (plane, offset, step) in samples of its plane.
        word: numpy type of one sample in memory.
        pad: unused bits below the code.
        full: the name itself says full range (yuvj).
    """

    name: str
    model: Literal["yuv", "rgb", "gray"]
    bits: int
    shift_x: int
    shift_y: int
    alpha: bool
    slots: tuple[tuple[int, int, int], ...]
    word: str
    pad: int = 0
    full: bool = False

    @property
    def largest(self) -> int:
        """The largest code."""
        return (1 << self.bits) - 1

    @property
    def dtype(self) -> type[np.uint8] | type[np.uint16]:
        """Of the component arrays."""
        return np.uint8 if self.bits <= 8 else np.uint16

    def size(self, component: int, width: int, height: int) -> tuple[int, int]:
        """(rows, columns) of a component of a picture."""
        if self.model == "yuv" and component in (1, 2):
            return -(-height >> self.shift_y), -(-width >> self.shift_x)
        return height, width


def _word(bits: int, order: str | None) -> str:
    return "u1" if bits <= 8 else (">u2" if order == "be" else "<u2")


_Slots = tuple[tuple[int, int, int], ...]


def _planar(count: int, order: Sequence[int] | None = None) -> _Slots:
    return tuple((plane, 0, 1) for plane in (order or range(count)))


_PLANAR_YUV = re.compile(r"yuv(a|j)?(4\d\d)p(\d+)?(le|be)?")
_PLANAR_RGB = re.compile(r"gbr(a)?p(\d+)?(le|be)?")
_GRAY = re.compile(r"gray(\d+)?(le|be)?")
_SEMI = re.compile(r"(?:nv(12|21|16|24|42)|p(0|2|4)(10|12|16)(le|be))")
_PACKED_RGB = re.compile(r"([rgba0]{3,4})(24|48|64)?(le|be)?")
_NV = {"12": ("420", 0), "21": ("420", 1), "16": ("422", 0), "24": ("444", 0), "42": ("444", 1)}
_SEMI_SUBSAMPLING = {"0": "420", "2": "422", "4": "444"}
_PACKED_YUV = {
    "yuyv422": ((0, 0, 2), (0, 1, 4), (0, 3, 4)),
    "uyvy422": ((0, 1, 2), (0, 0, 4), (0, 2, 4)),
    "yvyu422": ((0, 0, 2), (0, 3, 4), (0, 1, 4)),
}


@functools.cache
def layout_of(name: str) -> Layout:
    """The layout of a pixel format.

    Raises:
        UnsupportedImageError: palettes, Bayer patterns, floating point, and what nobody records in.
    """
    found = _planar_layout(name) or _other_layout(name)
    if found is None:
        raise UnsupportedImageError(
            f"the movie's pixel format {name} is not read",
            expected="YCbCr, RGB or grey, 8 to 16 bit integers",
            found=name,
            hint="convert the movie to ProRes, DNxHR, FFV1 or an EXR sequence first",
        )
    return found


def _planar_layout(name: str) -> Layout | None:
    if match := _PLANAR_YUV.fullmatch(name):
        kind, sub, depth, order = match.groups()
        if sub not in _SUBSAMPLING:
            return None
        bits = int(depth or 8)
        count = 4 if kind == "a" else 3
        return Layout(
            name, "yuv", bits, *_SUBSAMPLING[sub], kind == "a", _planar(count), _word(bits, order), full=kind == "j"
        )
    if match := _PLANAR_RGB.fullmatch(name):
        bits = int(match[2] or 8)
        order = (2, 0, 1, 3) if match[1] else (2, 0, 1)
        return Layout(name, "rgb", bits, 0, 0, bool(match[1]), _planar(len(order), order), _word(bits, match[3]))
    if match := _GRAY.fullmatch(name):
        bits = int(match[1] or 8)
        return Layout(name, "gray", bits, 0, 0, False, _planar(1), _word(bits, match[2])) if bits <= 16 else None
    return None


def _other_layout(name: str) -> Layout | None:
    if match := _SEMI.fullmatch(name):
        sub, swapped = _NV[match[1]] if match[1] else (_SEMI_SUBSAMPLING[match[2]], 0)
        bits = int(match[3] or 8)
        chroma = ((1, swapped, 2), (1, 1 - swapped, 2))
        pad, word = (16 - bits, _word(16, match[4])) if match[3] else (0, "u1")
        return Layout(name, "yuv", bits, *_SUBSAMPLING[sub], False, ((0, 0, 1), *chroma), word, pad)
    if name in _PACKED_YUV:
        return Layout(name, "yuv", 8, 1, 0, False, _PACKED_YUV[name], "u1")
    if name in ("ayuv64le", "ayuv64be"):
        slots: _Slots = ((0, 1, 4), (0, 2, 4), (0, 3, 4), (0, 0, 4))
        return Layout(name, "yuv", 16, 0, 0, True, slots, _word(16, name[-2:]))
    if name in ("ya8", "ya16le", "ya16be"):
        bits = 8 if name == "ya8" else 16
        return Layout(name, "gray", bits, 0, 0, True, ((0, 0, 2), (0, 1, 2)), _word(bits, name[-2:]))
    match = _PACKED_RGB.fullmatch(name)
    if match and set("rgb") <= set(match[1]):
        letters, bits = match[1], 16 if match[2] in ("48", "64") else 8
        wanted = "rgba" if "a" in letters else "rgb"
        slots = tuple((0, letters.index(letter), len(letters)) for letter in wanted)
        return Layout(name, "rgb", bits, 0, 0, "a" in letters, slots, _word(bits, match[3]))
    return None


def _plane(frame: Any, index: int, word: str) -> NDArray[Any]:
    """(rows, samples) of a plane, a view that minds the stride."""
    plane = frame.planes[index]
    size = np.dtype(word).itemsize
    return np.frombuffer(plane, word)[: plane.height * (plane.line_size // size)].reshape(plane.height, -1)


def read_planes(frame: Any) -> Planes:
    """The components of a decoded frame, copied out of FFmpeg's memory; codes as they are, without unused bits.

    Args:
        frame: `av.VideoFrame`.

    Raises:
        UnsupportedImageError: see `layout_of`.
    """
    layout = layout_of(frame.format.name)
    planes: list[Component] = []
    for component, (index, offset, step) in enumerate(layout.slots):
        rows, columns = layout.size(component, frame.width, frame.height)
        samples = _plane(frame, index, layout.word)[:rows, offset : offset + (columns - 1) * step + 1 : step]
        codes: Any = samples.astype(layout.dtype)
        planes.append(codes >> layout.pad if layout.pad else codes)
    return tuple(planes)


def write_planes(frame: Any, planes: Planes) -> None:
    """The inverse of `read_planes`: fill the memory of a frame that was made with its format and size."""
    layout = layout_of(frame.format.name)
    for component, (index, offset, step) in enumerate(layout.slots):
        rows, columns = layout.size(component, frame.width, frame.height)
        plane = frame.planes[index]
        size = np.dtype(layout.word).itemsize
        memory = np.frombuffer(plane, layout.word)[: plane.height * (plane.line_size // size)]
        target = memory.reshape(plane.height, -1)[:rows, offset : offset + (columns - 1) * step + 1 : step]
        target[...] = planes[component] << layout.pad if layout.pad else planes[component]
