"""How detectors and landmark nets look at a plate: small display-encoded crops, whatever the size of the frame.

An 8K frame is never converted as a whole at full resolution unless a full search asks for it. A crop costs what its own
pixels cost, and one that shrinks the plate more than four times reads only every second row and column, more than eight
times every fourth, and so on: at least sixteen pixels are averaged for each of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

import cv2
import numpy as np
import torch
from numpy.typing import NDArray

from ..frame import Box, Pixels

Affine = NDArray[np.float64]
Picture = NDArray[np.float32]

LINEAR_LIMIT = 4.0
"""Linear values are held within this many times white before averaging, or one specular would shine over its block."""

_OVERVIEW_PX = 480
_BAND_PX = 32768
_MARGIN = 16
_ALMOST_ONE = 1.45
_EXACT_LEVEL = 2
_TABLE_SIZE = 65536
_PIECE = 16384


class PlateView(Protocol):
    """One frame as the nets see it: RGB, sRGB-encoded, Rec.709 primaries, 0..1, finite.

    Attributes:
        width: columns of the data window.
        height: rows of the data window.
        origin: plate px of its upper left corner.
        pixel_aspect: width / height of a pixel.
    """

    @property
    def width(self) -> int: ...

    @property
    def height(self) -> int: ...

    @property
    def origin(self) -> tuple[int, int]: ...

    @property
    def pixel_aspect(self) -> float: ...

    def sample(self, matrix: Affine, size: tuple[int, int]) -> Picture:
        """A resampled part, antialiased, edges repeated.

        Args:
            matrix: (2, 3), crop px to plate px, both with the first pixel centre at 0.5.
            size: (width, height) of the crop.

        Returns:
            (height, width, 3) float32.
        """
        ...

    def sample_linear(self, matrix: Affine, size: tuple[int, int]) -> Picture:
        """As `sample`, in linear light: (height, width, 3) float32, 0..`LINEAR_LIMIT`."""
        ...

    def reduced(self, level: int) -> Picture:
        """The whole data window averaged over blocks of 2**level px: (h, w, 3) float32. Kept for the next call."""
        ...

    def overview(self, side: int | None = None) -> Picture:
        """The whole data window, cheap: (h, w, 3) float32.

        Args:
            side: None for the picture thinned to less than 1280 px, unfiltered; else px of the longer side of one that
                is averaged from it in linear light, with x unsqueezed.
        """
        ...


@cache
def _srgb_table() -> NDArray[np.float32]:
    linear = np.arange(_TABLE_SIZE) / (_TABLE_SIZE - 1)
    encoded = np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)
    return encoded.astype(np.float32)


def encode_srgb(linear: NDArray[np.floating]) -> Picture:
    """IEC 61966-2-1 encoding of linear light clipped to 0..1, to 1/65535 of linear."""
    values = np.ascontiguousarray(linear).reshape(-1)
    encoded = np.empty(values.shape, np.float32)
    # In pieces that stay in the processor's cache.
    for first in range(0, len(values), _PIECE):
        codes = np.clip(values[first : first + _PIECE], 0.0, 1.0).astype(np.float32)
        codes *= np.float32(_TABLE_SIZE - 1)
        codes += np.float32(0.5)
        np.take(_srgb_table(), codes.astype(np.uint16), out=encoded[first : first + _PIECE], mode="clip")
    return encoded.reshape(linear.shape)


def _halve(rows: Picture) -> Picture:
    """Average of blocks of 2x2 of four channels; an odd last row or column counts twice."""
    down, right = rows.shape[0] & 1, rows.shape[1] & 1
    if down or right:
        rows = np.asarray(cv2.copyMakeBorder(rows, 0, down, 0, right, cv2.BORDER_REPLICATE), np.float32)
    # With four channels a pixel is one vector: its bits are the same wherever the block lies.
    size = rows.shape[1] // 2, rows.shape[0] // 2
    return np.asarray(cv2.resize(rows, size, interpolation=cv2.INTER_AREA), np.float32)


class LinearPlateView:
    """A scene-linear plate, resampled in linear light and encoded last.

    Args:
        pixels: (H, W, 3 or more) float16 or float32, scene-linear, unbounded; NaN counts as 0.
        data_window: what `pixels` cover.
        pixel_aspect: width / height of a pixel.
        to_rec709: (3, 3) from the plate's primaries to linear Rec.709; None where they are the same.
        exposure: gain that brings skin to where a photograph has it.
    """

    def __init__(
        self,
        pixels: Pixels,
        data_window: Box,
        *,
        pixel_aspect: float = 1.0,
        to_rec709: NDArray[np.floating] | None = None,
        exposure: float = 1.0,
    ) -> None:
        self._pixels = pixels
        self._matrix = (np.eye(3) if to_rec709 is None else np.asarray(to_rec709)).astype(np.float32) * np.float32(
            exposure
        )
        self._limit = float(LINEAR_LIMIT / max(exposure, 1e-6))
        self._levels: dict[int, Picture] = {}
        self._overviews: dict[int, Picture] = {}
        self._recent: dict[int, tuple[Box, Picture]] = {}
        self.width, self.height = data_window.width, data_window.height
        self.origin = (data_window.x0, data_window.y0)
        self.pixel_aspect = pixel_aspect

    def sample(self, matrix: Affine, size: tuple[int, int]) -> Picture:
        """See `PlateView.sample`."""
        return encode_srgb(self.sample_linear(matrix, size))

    def sample_linear(self, matrix: Affine, size: tuple[int, int]) -> Picture:
        """See `PlateView.sample_linear`."""
        step = float(np.linalg.norm(matrix[:, :2], 2))
        coarsest = _EXACT_LEVEL + min(self.width, self.height).bit_length() - 1
        level = min(max(0, int(np.floor(np.log2(max(step, 1e-9))))), coarsest)
        scale = 2**level
        over = 2 if step > _ALMOST_ONE * scale else 1
        linear = matrix[:, :2] / (scale * over)
        # cv2 counts from the centre of the first pixel.
        # Thinned rows and columns lie half a pixel after the middle of their blocks.
        start = matrix[:, 2] - self.origin - (0.5 if level > _EXACT_LEVEL else 0.0)
        offset = start / scale + linear @ (0.5, 0.5) - 0.5
        box = self._needed(linear, offset, (size[0] * over, size[1] * over), level)
        offset = offset - (box.x0, box.y0)
        warped = cv2.warpAffine(
            self._region(level, box),
            np.hstack([linear, offset[:, None]]),
            (size[0] * over, size[1] * over),
            flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
            borderMode=cv2.BORDER_REPLICATE,
        )
        crop = np.asarray(warped, np.float32)
        return self._to_view_light(_halve(crop) if over == 2 else crop)

    def overview(self, side: int | None = None) -> Picture:
        """See `PlateView.overview`."""
        stride = max(1, max(self.width, self.height) // _OVERVIEW_PX)
        # A strip may be narrower than the stride: its middle is looked at.
        rows = slice(min(stride, self.height) // 2, None, stride)
        columns = slice(min(stride, self.width) // 2, None, stride)
        if side is None:
            return encode_srgb(self._to_view_light(self._clean(self._pixels[rows, columns])))
        if side not in self._overviews:
            wide = self.width * self.pixel_aspect
            factor = side / max(wide, self.height)
            size = max(1, round(wide * factor)), max(1, round(self.height * factor))
            small = np.asarray(
                cv2.resize(self._clean(self._pixels[rows, columns]), size, interpolation=cv2.INTER_AREA), np.float32
            )
            self._overviews[side] = encode_srgb(self._to_view_light(small))
        return self._overviews[side]

    def reduced(self, level: int) -> Picture:
        """See `PlateView.reduced`."""
        return encode_srgb(self._to_view_light(self._whole(level)))

    def _whole(self, level: int) -> Picture:
        if level == 0:
            return self._clean(self._pixels)
        if level not in self._levels:
            if level == 1:
                self._levels[1] = self._averaged(slice(None), slice(None), 1)
            else:
                self._levels[level] = _halve(self._whole(level - 1))
        return self._levels[level]

    def _needed(self, linear: Affine, offset: NDArray[np.float64], size: tuple[int, int], level: int) -> Box:
        corners = np.array([[0, 0], [size[0], 0], [0, size[1]], size]) @ linear.T + offset
        extent = self._extent(level)
        low = np.clip(np.floor(corners.min(0)).astype(int) - 2, 0, (extent.x1 - 1, extent.y1 - 1))
        high = np.clip(np.ceil(corners.max(0)).astype(int) + 3, low + 1, (extent.x1, extent.y1))
        return Box(int(low[0]), int(low[1]), int(high[0]), int(high[1]))

    def _region(self, level: int, box: Box) -> Picture:
        if level in self._levels and level <= _EXACT_LEVEL:
            return self._levels[level][box.slices(self._extent(level))]
        if level not in self._recent or not self._recent[level][0].contains(box):
            # The crops of one face lie close together: from the second on, a little more serves them all.
            margin = max(box.width, box.height) // _MARGIN if level in self._recent else 0
            wide = box.grow(margin).intersect(self._extent(level))
            self._recent[level] = self._halved(level, box) or (
                wide,
                self._build(level, wide, max(0, level - _EXACT_LEVEL)),
            )
        held, pixels = self._recent[level]
        return pixels[box.slices(held)]

    def _halved(self, level: int, box: Box) -> tuple[Box, Picture] | None:
        """A part of a level, `box` and more, from what is held of the finer one; None where that is too little."""
        if not 0 < level <= _EXACT_LEVEL or level - 1 not in self._recent:
            return None
        held, pixels = self._recent[level - 1]
        inner = Box(-(-held.x0 // 2), -(-held.y0 // 2), held.x1 // 2, held.y1 // 2)
        if not inner.contains(box):
            return None
        doubled = Box(2 * inner.x0, 2 * inner.y0, 2 * inner.x1, 2 * inner.y1)
        return inner, _halve(pixels[doubled.slices(held)])

    def _build(self, level: int, box: Box, thin: int) -> Picture:
        if thin == 0 and level in self._levels:
            return self._levels[level][box.slices(self._extent(level))]
        if thin == 0 and level > 1 and level - 1 in self._levels:
            doubled = Box(2 * box.x0, 2 * box.y0, 2 * box.x1, 2 * box.y1)
            return _halve(self._build(level - 1, doubled.intersect(self._extent(level - 1)), 0))
        step, block = 2**thin, 2**level
        rows = slice(box.y0 * block + step // 2, box.y1 * block, step)
        return self._averaged(rows, slice(box.x0 * block + step // 2, box.x1 * block, step), level - thin)

    def _extent(self, level: int, thin: int | None = None) -> Box:
        """Size of a level; coarse ones are made of thinned rows and columns unless `thin` says otherwise."""
        thin = max(0, level - _EXACT_LEVEL) if thin is None else thin
        step, blocks = 2**thin, 2 ** (level - thin)
        count = [-(-(length - step // 2) // step) for length in (self.width, self.height)]
        return Box(0, 0, -(-count[0] // blocks), -(-count[1] // blocks))

    def _averaged(self, rows: slice, columns: slice, halvings: int) -> Picture:
        """As `_clean`, averaged over blocks of 2**halvings px."""
        source = self._pixels[rows, columns]
        if halvings == 0:
            return self._clean(source)
        averaged = self._in_bands(source, halvings, self._within)
        # NaN spreads over its block. It is rare: looked for afterwards, where there is less to look at.
        return self._in_bands(source, halvings, self._clean) if np.isnan(averaged.min()) else averaged

    def _in_bands(self, source: Pixels, halvings: int, cleaned: Callable[[Pixels], Picture]) -> Picture:
        """Averages made piece by piece, so that a piece stays in the processor's cache."""
        height, width = source.shape[:2]
        block = 2**halvings
        out = np.empty((-(-height // block), -(-width // block), 4), np.float32)
        band = max(1, _BAND_PX // (width * block)) * block
        for top in range(0, height, band):
            part = cleaned(source[top : top + band])
            for _ in range(halvings):
                part = _halve(part)
            out[top // block : top // block + len(part)] = part
        return out

    def _clean(self, source: Pixels) -> Picture:
        """Pixels finite and within the limit: (h, w, 4) float32, the fourth channel without meaning."""
        return _four(_tensor(source).nan_to_num_(0.0, self._limit, -self._limit).clamp_(-self._limit, self._limit))

    def _within(self, source: Pixels) -> Picture:
        """As `_clean`, but NaN stays."""
        return _four(_tensor(source).clamp_(-self._limit, self._limit))

    def _to_view_light(self, crop: Picture) -> Picture:
        rgb = np.asarray(cv2.transform(cv2.cvtColor(crop, cv2.COLOR_RGBA2RGB), self._matrix), np.float32)
        return np.clip(rgb, 0.0, np.float32(LINEAR_LIMIT), out=rgb)


def _copy(pixels: Pixels) -> NDArray[np.floating[Any]]:
    """The first three channels, or all four where there are four, in memory of their own."""
    if pixels.shape[2] != 4:
        return np.array(pixels[..., :3], order="C")
    if pixels.dtype == np.float16 and pixels.strides[2] == 2 and pixels.strides[1] % 8 == 0:
        # A half RGBA pixel is one word of eight bytes.
        words: NDArray[np.uint64] = np.array(pixels.view(np.uint64), order="C")
        return words.view(np.float16)
    return np.array(pixels, order="C")


def _tensor(pixels: Pixels) -> torch.Tensor:
    return torch.from_numpy(_copy(pixels)).float()


def _four(values: torch.Tensor) -> Picture:
    # Four channels throughout: cv2 is then two to four times as fast, and numpy copies whole pixels.
    picture = values.numpy()
    return picture if picture.shape[2] == 4 else np.asarray(cv2.cvtColor(picture, cv2.COLOR_RGB2RGBA), np.float32)
