"""How detectors and landmark nets look at a plate: small display-encoded crops, whatever the size of the frame.

An 8K frame is never converted as a whole at full resolution unless a full search asks for it. A crop costs what its own
pixels cost, and one that shrinks the plate more than four times reads only every second row and column, more than eight
times every fourth, and so on: at least sixteen pixels are averaged for each of its own.
"""

from __future__ import annotations

from functools import cache
from typing import Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from ..frame import Box, Pixels

Affine = NDArray[np.float64]
Picture = NDArray[np.float32]

LINEAR_LIMIT = 4.0
"""Linear values are held within this many times white before averaging, or one specular would shine over its block."""

_OVERVIEW_PX = 640
_BAND_ROWS = 256
_MARGIN = 8
_EXACT_LEVEL = 2
_TABLE_SIZE = 65536


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

    def overview(self) -> Picture:
        """The whole data window thinned to less than 1280 px, unfiltered, cheap: (h, w, 3) float32."""
        ...


@cache
def _srgb_table() -> NDArray[np.float32]:
    linear = np.arange(_TABLE_SIZE) / (_TABLE_SIZE - 1)
    encoded = np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)
    return encoded.astype(np.float32)


def encode_srgb(linear: NDArray[np.floating]) -> Picture:
    """IEC 61966-2-1 encoding of linear light clipped to 0..1, to 1/65535 of linear."""
    codes = np.clip(linear, 0.0, 1.0) * np.float32(_TABLE_SIZE - 1) + np.float32(0.5)
    return np.asarray(_srgb_table()[codes.astype(np.int32)], np.float32)


def _halve(rows: Picture) -> Picture:
    """Average of blocks of 2x2; an odd last row or column counts twice."""
    pad = (rows.shape[0] & 1, rows.shape[1] & 1)
    if any(pad):
        rows = np.pad(rows, ((0, pad[0]), (0, pad[1]), (0, 0)), mode="edge")
    # Plain sums in a fixed order: a block has the same bits whether its neighbours are computed or not.
    folded = rows[0::2] + rows[1::2]
    paired = folded.reshape(folded.shape[0], -1, 2, 3)
    return np.asarray((paired[:, :, 0] + paired[:, :, 1]) * np.float32(0.25))


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
        self._limit = np.float32(LINEAR_LIMIT / max(exposure, 1e-6))
        self._levels: dict[int, Picture] = {}
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
        over = 2 if step > scale else 1
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

    def overview(self) -> Picture:
        """See `PlateView.overview`."""
        stride = max(1, max(self.width, self.height) // _OVERVIEW_PX)
        thin = self._clean(self._pixels[stride // 2 :: stride, stride // 2 :: stride, :3])
        return encode_srgb(self._to_view_light(thin))

    def reduced(self, level: int) -> Picture:
        """See `PlateView.reduced`."""
        return encode_srgb(self._to_view_light(self._whole(level)))

    def _whole(self, level: int) -> Picture:
        if level == 0:
            return self._clean(self._pixels[..., :3])
        if level not in self._levels:
            if level == 1:
                # In bands, so that the full-size float32 picture never exists.
                bands = range(0, self.height, _BAND_ROWS)
                parts = [_halve(self._clean(self._pixels[top : top + _BAND_ROWS, :, :3])) for top in bands]
                self._levels[1] = np.concatenate(parts)
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
            # The crops of one face lie close together: a little more now serves them all.
            wide = box.grow(max(box.width, box.height) // _MARGIN).intersect(self._extent(level))
            thin = max(0, level - _EXACT_LEVEL)
            self._recent[level] = wide, self._build(level, wide, thin)
        held, pixels = self._recent[level]
        return pixels[box.slices(held)]

    def _build(self, level: int, box: Box, thin: int) -> Picture:
        if level == thin:
            step = 2**thin
            rows = slice(box.y0 * step + step // 2, box.y1 * step, step)
            columns = slice(box.x0 * step + step // 2, box.x1 * step, step)
            return self._clean(self._pixels[rows, columns, :3])
        if thin == 0 and level in self._levels:
            return self._levels[level][box.slices(self._extent(level))]
        doubled = Box(2 * box.x0, 2 * box.y0, 2 * box.x1, 2 * box.y1)
        return _halve(self._build(level - 1, doubled.intersect(self._extent(level - 1, thin)), thin))

    def _extent(self, level: int, thin: int | None = None) -> Box:
        """Size of a level; coarse ones are made of thinned rows and columns unless `thin` says otherwise."""
        thin = max(0, level - _EXACT_LEVEL) if thin is None else thin
        step, blocks = 2**thin, 2 ** (level - thin)
        count = [-(-(length - step // 2) // step) for length in (self.width, self.height)]
        return Box(0, 0, -(-count[0] // blocks), -(-count[1] // blocks))

    def _clean(self, pixels: Pixels) -> Picture:
        values = pixels.astype(np.float32)
        np.clip(values, -self._limit, self._limit, out=values)
        values[np.isnan(values)] = 0.0
        return values

    def _to_view_light(self, crop: Picture) -> Picture:
        rgb = np.asarray(cv2.transform(crop, self._matrix), np.float32)
        return np.clip(rgb, 0.0, np.float32(LINEAR_LIMIT), out=rgb)
