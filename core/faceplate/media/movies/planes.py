"""Code values to R'G'B' and back: range, matrix, chroma, written out because swscale clamps, rounds and guesses.

R'G'B' here is what the transfer curve of the movie makes of light: 0 black, 1 reference white; super-whites, sub-blacks
and colours outside the gamut lie outside 0..1 and are kept. Formulas: ITU-R BT.601-7, BT.709-6, BT.2020-2 (Y'CbCr and
quantisation), BT.2100-2 table 9 (full range).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...frame import Box
from .layout import Component, Layout, Planes

Float = NDArray[np.float32]
Matrix = Literal["bt709", "bt601", "bt2020", "smpte240m", "rgb"]

WEIGHTS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"bt709": (0.2126, 0.0722), "bt601": (0.299, 0.114), "bt2020": (0.2627, 0.0593), "smpte240m": (0.212, 0.087)}
)
"""Shares of red and blue in luma."""


@dataclass(frozen=True, slots=True)
class Coding:
    """How R'G'B' became code values.

    Attributes:
        matrix: "rgb" where there is none.
        full_range: whether black and white are the smallest and the largest code.
        siting: where the first chroma sample lies, (x, y) in luma pixels from the first luma sample's centre, for a
            chroma grid of half the size: (0, 0.5) is "left", (0.5, 0.5) "centre", (0, 0) "top left".
    """

    matrix: Matrix
    full_range: bool
    siting: tuple[float, float] = (0.0, 0.5)


@dataclass(frozen=True, slots=True)
class Scale:
    """code = offset + gain * value, for luma, colour differences and alpha of a layout."""

    luma: tuple[float, float]
    chroma: tuple[float, float]
    alpha: tuple[float, float]

    @classmethod
    def of(cls, layout: Layout, *, full_range: bool) -> Scale:
        """The quantisation of a layout."""
        unit, top, middle = float(1 << (layout.bits - 8)), float(layout.largest), float(1 << (layout.bits - 1))
        if full_range:
            return cls((0.0, top), (middle, top), (0.0, top))
        return cls((16 * unit, 219 * unit), (middle, 224 * unit), (0.0, top))


def values_of(codes: Component, scale: tuple[float, float]) -> Float:
    """The values that codes stand for; the inverse of `to_codes`."""
    offset, gain = scale
    values = codes.astype(np.float32)
    values -= np.float32(offset)
    values *= np.float32(1.0 / gain)
    return values


def to_codes(values: Float, scale: tuple[float, float], layout: Layout) -> Component:
    """The nearest codes of values; what lies outside the codes is cut, NaN counts as 0."""
    offset, gain = scale
    codes = np.rint(np.nan_to_num(values, nan=0.0, posinf=1e6, neginf=-1e6) * np.float32(gain) + np.float32(offset))
    cut: Component = np.clip(codes, 0, layout.largest).astype(layout.dtype)
    return cut


def _phase(siting: float, shift: int) -> float:
    """Where the first chroma sample lies, in fine samples, for any subsampling."""
    return siting * ((1 << shift) - 1)


def resample_up(values: Float, shift: int, siting: float, size: int, axis: int) -> Float:
    """Chroma to `size` samples along an axis by linear interpolation; the edge repeats."""
    if shift == 0:
        return values
    step, count = 1 << shift, values.shape[axis]
    shape = list(values.shape)
    shape[axis] = size
    fine = np.empty(shape, np.float32)
    for first in range(min(step, size)):
        # Fine samples first, first + step, ... lie at coarse places at, at + 1, ...
        at = (first - _phase(siting, shift)) / step
        low = int(np.floor(at))
        places = np.arange(low, low + len(range(first, size, step)))
        part = np.take(values, np.clip(places, 0, count - 1), axis)
        if at > low:
            part += np.float32(at - low) * (np.take(values, np.clip(places + 1, 0, count - 1), axis) - part)
        fine[(slice(None),) * axis + (slice(first, None, step),)] = part
    return fine


def downsample(values: Float, shift: int, siting: float, axis: int) -> Float:
    """The adjoint: a triangle filter about each chroma sample, [1 2 1] / 4 where it lies on a fine one."""
    if shift == 0:
        return values
    step, size = 1 << shift, values.shape[axis]
    centres = np.arange(-(-size >> shift)) * step + _phase(siting, shift)
    near = np.arange(-step, step + 1)
    total, coarse = 0.0, np.zeros_like(np.take(values, range(len(centres)), axis))
    for offset in near:
        places = np.floor(centres).astype(np.int64) + offset
        weight = max(0.0, 1 - abs(float(places[0] - centres[0])) / step)
        if weight > 0:
            coarse += np.float32(weight) * np.take(values, np.clip(places, 0, size - 1), axis)
            total += weight
    coarse /= np.float32(total)
    return coarse


def chroma_444(plane: Float, layout: Layout, coding: Coding, height: int, width: int) -> Float:
    """A chroma plane at the size of luma."""
    wide = resample_up(plane, layout.shift_x, coding.siting[0], width, 1)
    return resample_up(wide, layout.shift_y, coding.siting[1], height, 0)


def to_values(planes: Planes, layout: Layout, coding: Coding) -> tuple[Float, ...]:
    """Components as values at full size: Y' 0..1, Cb and Cr -0.5..0.5, or R', G', B'; then alpha 0..1."""
    scale = Scale.of(layout, full_range=coding.full_range)
    height, width = planes[0].shape
    kinds = {"yuv": ("luma", "chroma", "chroma"), "rgb": ("luma",) * 3, "gray": ("luma",)}[layout.model]
    values = [
        chroma_444(values_of(plane, scale.chroma), layout, coding, height, width)
        if kind == "chroma"
        else values_of(plane, scale.luma)
        for kind, plane in zip(kinds, planes, strict=False)
    ]
    if layout.alpha:
        values.append(values_of(planes[-1], scale.alpha))
    return tuple(values)


def to_rgb(planes: Planes, layout: Layout, coding: Coding) -> Float:
    """R'G'B' of a picture.

    Args:
        planes: as `layout.read_planes` gives them.
        layout: of the planes.
        coding: of the movie.

    Returns:
        (H, W, 3), or (H, W, 4) with alpha; not clamped.
    """
    values = to_values(planes, layout, coding)
    out = np.empty((*planes[0].shape, 4 if layout.alpha else 3), np.float32)
    if layout.alpha:
        out[..., 3] = values[-1]
    if layout.model == "gray":
        out[..., :3] = values[0][..., None]
    elif layout.model == "rgb":
        for channel in range(3):
            out[..., channel] = values[channel]
    else:
        _from_luma(values, coding, out)
    return out


def _from_luma(values: tuple[Float, ...], coding: Coding, out: Float) -> None:
    luma, blue, red = values[:3]
    kr, kb = WEIGHTS[coding.matrix]
    kg = 1 - kr - kb
    out[..., 0] = red * np.float32(2 * (1 - kr)) + luma
    out[..., 2] = blue * np.float32(2 * (1 - kb)) + luma
    red *= np.float32(2 * kr * (1 - kr) / kg)
    blue *= np.float32(2 * kb * (1 - kb) / kg)
    np.subtract(luma, red, out=out[..., 1])
    out[..., 1] -= blue


def to_luma(rgb: Float, matrix: Matrix) -> tuple[Float, Float, Float]:
    """Y', Cb, Cr at full size from R'G'B' (H, W, 3 or more)."""
    kr, kb = WEIGHTS[matrix]
    red, green, blue = (rgb[..., channel] for channel in range(3))
    luma = np.float32(kr) * red + np.float32(1 - kr - kb) * green + np.float32(kb) * blue
    return luma, (blue - luma) * np.float32(0.5 / (1 - kb)), (red - luma) * np.float32(0.5 / (1 - kr))


def from_rgb(rgb: Float, layout: Layout, coding: Coding) -> Planes:
    """Code values of R'G'B': the nearest codes, chroma filtered by `downsample`.

    Args:
        rgb: (H, W, 3) or (H, W, 4) with alpha; without alpha a layout that has one gets it opaque.
        layout: wanted.
        coding: wanted; its matrix is "rgb" where the layout is.
    """
    scale = Scale.of(layout, full_range=coding.full_range)
    if layout.model == "rgb":
        parts = [to_codes(rgb[..., channel], scale.luma, layout) for channel in range(3)]
    else:
        luma, *differences = to_luma(rgb, coding.matrix)
        parts = [to_codes(luma, scale.luma, layout)]
        for plane in differences if layout.model == "yuv" else ():
            narrow = downsample(plane, layout.shift_x, coding.siting[0], 1)
            parts.append(to_codes(downsample(narrow, layout.shift_y, coding.siting[1], 0), scale.chroma, layout))
    if layout.alpha:
        alpha = rgb[..., 3] if rgb.shape[2] == 4 else np.ones(rgb.shape[:2], np.float32)
        parts.append(to_codes(alpha, scale.alpha, layout))
    return tuple(parts)


def region_of(window: Box, layout: Layout, width: int, height: int) -> Box:
    """A window on the chroma grid of a picture, with room for the chroma filters: inside `window` R'G'B' of the region
    is that of the picture, bit for bit."""
    x, y = 1 << layout.shift_x, 1 << layout.shift_y
    grown = window.grow(4 * max(x, y)).intersect(Box(0, 0, width, height))
    left, top = grown.x0 // x * x, grown.y0 // y * y
    return Box(left, top, min(width, -(-grown.x1 // x) * x), min(height, -(-grown.y1 // y) * y))


def part_of(region: Box, layout: Layout, component: int) -> tuple[slice, slice]:
    """(rows, columns) of a region in a plane."""
    x, y = (layout.shift_x, layout.shift_y) if layout.model == "yuv" and component in (1, 2) else (0, 0)
    return slice(region.y0 >> y, -(-region.y1 >> y)), slice(region.x0 >> x, -(-region.x1 >> x))


def window_rgb(planes: Planes, layout: Layout, coding: Coding, window: Box) -> Float:
    """`to_rgb` of a window alone, which must lie in the picture: (h, w, 3) or (h, w, 4)."""
    height, width = planes[0].shape
    region = region_of(window, layout, width, height)
    cut = tuple(plane[part_of(region, layout, index)] for index, plane in enumerate(planes))
    return np.ascontiguousarray(to_rgb(cut, layout, coding)[window.slices(region)])
