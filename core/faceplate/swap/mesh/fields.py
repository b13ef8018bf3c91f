"""Small operations on (C, h, w) tensors that are fast on one CPU thread and the same on a GPU."""

from __future__ import annotations

import math

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

_STRIP = 256
"""Rows; a multiple of every factor that is enlarged by."""
_NARROW = 0.022
"""Sum of both sigmas over the sum of both sides under which filtering is cheaper than a matrix product."""


def shrink(image: torch.Tensor, factor: int) -> torch.Tensor:
    """Mean over blocks of `factor` (a power of two) pixels a side: (C, h, w) to (C, ceil(h / f), ceil(w / f)).

    Blocks that reach over the right and lower edge repeat the last pixel.
    """
    while factor > 1:
        height, width = image.shape[1:]
        if height % 2 or width % 2:
            image = functional.pad(image[None], (0, width % 2, 0, height % 2), mode="replicate")[0]
        image = _halved(image) if image.device.type == "cpu" else halved_on_any_device(image)
        factor //= 2
    return image


def _halved(image: torch.Tensor) -> torch.Tensor:
    """The twin for the CPU: OpenCV's, twice as fast."""
    channels, height, width = image.shape
    small = torch.empty(channels, height // 2, width // 2, dtype=image.dtype)
    for plane, out in zip(image.numpy(), small.numpy(), strict=True):
        cv2.resize(plane, out.shape[::-1], dst=out, interpolation=cv2.INTER_AREA)
    return small


def halved_on_any_device(image: torch.Tensor) -> torch.Tensor:
    """The reference: (C, 2 h, 2 w) to (C, h, w)."""
    rows = image[:, 0::2] + image[:, 1::2]
    return (rows[..., 0::2] + rows[..., 1::2]).mul_(0.25)


class Enlarger:
    """Bilinear enlargement, edge repeated, to one size: the inverse raster of `shrink`.

    On the CPU OpenCV does it plane by plane, eight times as fast as interpolate; elsewhere grid_sample, whose grid is
    kept for the next field. A test holds the two together.

    Args:
        height, width: of what `__call__` returns.
    """

    def __init__(self, height: int, width: int) -> None:
        self.height, self.width = height, width
        self._grids: dict[tuple[int, int], torch.Tensor] = {}

    def __call__(self, fields: torch.Tensor, factor: int) -> torch.Tensor:
        """(C, rows, columns) of blocks of `factor` pixels to (C, height, width)."""
        if factor == 1:
            return fields
        return self.on_cpu(fields, factor) if fields.device.type == "cpu" else self.on_any_device(fields, factor)

    def strips(self, like: torch.Tensor) -> list[slice]:
        """The rows in strips that stay in a CPU's cache from one operation to the next; in one piece elsewhere."""
        tall = _STRIP if like.device.type == "cpu" else self.height
        return [slice(top, min(top + tall, self.height)) for top in range(0, self.height, tall)]

    def strip(self, fields: torch.Tensor, factor: int, rows: slice) -> torch.Tensor:
        """`rows`, one of `strips`, of what `__call__` returns, to the bit."""
        if factor == 1 or fields.device.type != "cpu":
            return self(fields, factor)[:, rows]
        top, bottom = max(rows.start // factor - 1, 0), min(-(-rows.stop // factor) + 1, fields.shape[1])
        skip = rows.start - top * factor
        large = self._resized(fields[:, top:bottom], factor)
        return large[:, skip : skip + rows.stop - rows.start, : self.width]

    def on_cpu(self, fields: torch.Tensor, factor: int) -> torch.Tensor:
        """The twin for the CPU."""
        return self._resized(fields, factor)[:, : self.height, : self.width]

    @staticmethod
    def _resized(fields: torch.Tensor, factor: int) -> torch.Tensor:
        channels, rows, columns = fields.shape
        large = torch.empty(channels, rows * factor, columns * factor, dtype=fields.dtype)
        planes = large.numpy()
        for channel, plane in enumerate(fields.numpy()):
            cv2.resize(plane, planes.shape[:0:-1], dst=planes[channel], interpolation=cv2.INTER_LINEAR)
        return large

    def on_any_device(self, fields: torch.Tensor, factor: int) -> torch.Tensor:
        """The reference."""
        rows, columns = fields.shape[1] * factor, fields.shape[2] * factor
        grid = self._grids.get((rows, columns))
        if grid is None:
            grid = fields.new_empty(1, self.height, self.width, 2)
            grid[..., 0] = _centres(self.width, columns, fields)[None]
            grid[..., 1] = _centres(self.height, rows, fields)[:, None]
            self._grids[rows, columns] = grid
        return functional.grid_sample(fields[None], grid, "bilinear", "border", False)[0]


def _centres(count: int, of: int, like: torch.Tensor) -> torch.Tensor:
    return (torch.arange(count, dtype=like.dtype, device=like.device) + 0.5) * (2.0 / of) - 1.0


def uv_grid(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """(h, w) u and v, 0..1 over a picture with v down, to the grid that `sample` takes."""
    grid = u.new_empty(1, *u.shape, 2)
    torch.mul(u, 2.0, out=grid[0, ..., 0])
    torch.mul(v, 2.0, out=grid[0, ..., 1])
    return grid.sub_(1.0)


def sample(image: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
    """Bilinear lookup, edge repeated: (C, H, W) and `uv_grid` (1, h, w, 2) to (C, h, w)."""
    return functional.grid_sample(image[None], grid, "bilinear", "border", False)[0]


def blur(fields: torch.Tensor, sigma: float, aspect: float = 1.0) -> torch.Tensor:
    """Gaussian blur for coarse grids; outside counts as 0 (divide by a blurred weight). Two matrix products; on a CPU a
    narrow one is OpenCV's. A test holds the two together.

    Args:
        fields: (C, h, w).
        sigma: rows.
        aspect: width / height of a sample; sigma in columns is sigma / aspect.
    """
    _, height, width = fields.shape
    if fields.device.type == "cpu" and sigma + sigma / aspect < _NARROW * (height + width):
        return _blur_narrow(fields, sigma, sigma / aspect)
    return blur_on_any_device(fields, sigma, sigma / aspect)


def blur_on_any_device(fields: torch.Tensor, down: float, across: float) -> torch.Tensor:
    """The reference, with one sigma for rows and one for columns."""
    _, height, width = fields.shape
    return _kernel(height, down, fields) @ fields @ _kernel(width, across, fields)


def mean_around(fields: torch.Tensor, sigma: float, aspect: float = 1.0) -> torch.Tensor:
    """`blur` in which nothing lies outside: divided by the blur of 1."""
    _, height, width = fields.shape
    inside = np.outer(_within(height, sigma), _within(width, sigma / aspect))
    return blur(fields, sigma, aspect).div_(torch.from_numpy(inside).to(fields.device))


def _blur_narrow(fields: torch.Tensor, down: float, across: float) -> torch.Tensor:
    """The twin for the CPU."""
    made = torch.empty(fields.shape, dtype=fields.dtype)
    rows, columns = _profile(fields.shape[1], down), _profile(fields.shape[2], across)
    for plane, out in zip(fields.contiguous().numpy(), made.numpy(), strict=True):
        cv2.sepFilter2D(plane, -1, columns, rows, dst=out, borderType=cv2.BORDER_CONSTANT)
    return made


def _profile(size: int, sigma: float) -> NDArray[np.float32]:
    """(2 r + 1,) Gaussian, cut off at `size` and at 4 sigma (the tail would be denormal numbers, which are slow)."""
    reach = max(min(math.ceil(4.0 * max(sigma, 1e-3)), size) - 1, 0)
    away = np.arange(-reach, reach + 1, dtype=np.float32) / np.float32(max(sigma, 1e-3))
    return np.asarray(np.exp(away * away * np.float32(-0.5)) / np.float32(max(sigma, 0.4) * 2.5066283), np.float32)


def _kernel(size: int, sigma: float, like: torch.Tensor) -> torch.Tensor:
    """(size, size) with the Gaussian of the distance between row and column."""
    profile = _profile(size, sigma)
    line = np.zeros(2 * size - 1, np.float32)
    line[size - 1 - len(profile) // 2 : size + len(profile) // 2] = profile
    return torch.from_numpy(line).unfold(0, size, 1).flip(0).to(like.device)


def _within(size: int, sigma: float) -> NDArray[np.float32]:
    """(size,) the part of the Gaussian around each sample that lies inside: the row sums of `_kernel`."""
    profile = _profile(size, sigma)
    reach = len(profile) // 2
    total = np.concatenate([[0.0], profile.cumsum(dtype=np.float64)])
    first = reach - np.arange(size)
    return np.asarray(total[np.minimum(first + size, len(profile))] - total[np.maximum(first, 0)], np.float32)


def smoothstep(low: float, high: float, value: torch.Tensor) -> torch.Tensor:
    """0 below `low`, 1 above `high`, 3 t^2 - 2 t^3 between."""
    t = (value - low).div_(high - low).clamp_(0.0, 1.0)
    return (t * -2.0).add_(3.0).mul_(t).mul_(t)
