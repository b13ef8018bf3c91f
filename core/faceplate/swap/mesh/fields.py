"""Small operations on (C, h, w) tensors that are fast on one CPU thread and the same on a GPU."""

from __future__ import annotations

import cv2
import torch
from torch.nn import functional


def shrink(image: torch.Tensor, factor: int) -> torch.Tensor:
    """Mean over blocks of `factor` (a power of two) pixels a side: (C, h, w) to (C, ceil(h / f), ceil(w / f)).

    Blocks that reach over the right and lower edge repeat the last pixel.
    """
    while factor > 1:
        height, width = image.shape[1:]
        if height % 2 or width % 2:
            image = functional.pad(image[None], (0, width % 2, 0, height % 2), mode="replicate")[0]
        rows = image[:, 0::2] + image[:, 1::2]
        image = (rows[..., 0::2] + rows[..., 1::2]).mul_(0.25)
        factor //= 2
    return image


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

    def on_cpu(self, fields: torch.Tensor, factor: int) -> torch.Tensor:
        """The twin for the CPU."""
        channels, rows, columns = fields.shape
        large = torch.empty(channels, rows * factor, columns * factor, dtype=fields.dtype)
        planes = large.numpy()
        for channel, plane in enumerate(fields.contiguous().numpy()):
            cv2.resize(plane, planes.shape[:0:-1], dst=planes[channel], interpolation=cv2.INTER_LINEAR)
        return large[:, : self.height, : self.width]

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
    """Gaussian blur as two matrix products, for coarse grids; outside counts as 0 (divide by a blurred weight).

    Args:
        fields: (C, h, w).
        sigma: rows.
        aspect: width / height of a sample; sigma in columns is sigma / aspect.
    """
    rows = _kernel(fields.shape[1], sigma, fields)
    columns = _kernel(fields.shape[2], sigma / aspect, fields)
    return rows @ fields @ columns


def _kernel(size: int, sigma: float, like: torch.Tensor) -> torch.Tensor:
    """(size, size) with the Gaussian of the distance between row and column."""
    away = torch.arange(1 - size, size, dtype=like.dtype, device=like.device).div_(max(sigma, 1e-3)).square_()
    # cut off at 4 sigma: the tail would be denormal numbers, which make a CPU crawl
    profile = torch.exp(away * -0.5).mul_(away < 16.0).div_(max(sigma, 0.4) * 2.5066283)
    return profile.unfold(0, size, 1).flip(0)


def smoothstep(low: float, high: float, value: torch.Tensor) -> torch.Tensor:
    """0 below `low`, 1 above `high`, 3 t^2 - 2 t^3 between."""
    t = ((value - low) / (high - low)).clamp(0.0, 1.0)
    return t * t * (3.0 - 2.0 * t)
