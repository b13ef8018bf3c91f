"""Small operations on (C, h, w) tensors that are fast on one CPU thread and the same on a GPU."""

from __future__ import annotations

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


def enlarge(fields: torch.Tensor, factor: int, height: int, width: int) -> torch.Tensor:
    """The inverse raster of `shrink`: bilinear, edge repeated, (C, rows, columns) to (C, height, width)."""
    if factor == 1:
        return fields
    # grid_sample is four times as fast as interpolate on one CPU thread and computes the same
    y = _centres(height, fields.shape[1] * factor, fields)
    x = _centres(width, fields.shape[2] * factor, fields)
    grid = torch.stack([x.expand(height, width), y[:, None].expand(height, width)], -1)
    return functional.grid_sample(
        fields[None], grid[None], mode="bilinear", padding_mode="border", align_corners=False
    )[0]


def _centres(count: int, of: int, like: torch.Tensor) -> torch.Tensor:
    return (torch.arange(count, dtype=like.dtype, device=like.device) + 0.5) * (2.0 / of) - 1.0


def sample(image: torch.Tensor, u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Bilinear lookup at u, v (0..1 over the image, v down), edge repeated: (C, H, W) and (h, w) to (C, h, w)."""
    grid = torch.stack([u, v], -1).mul_(2.0).sub_(1.0)
    return functional.grid_sample(image[None], grid[None], mode="bilinear", padding_mode="border", align_corners=False)[
        0
    ]


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
    at = torch.arange(size, dtype=like.dtype, device=like.device)
    matrix = torch.exp(-0.5 * ((at[:, None] - at[None]) / max(sigma, 1e-3)) ** 2)
    return matrix / (max(sigma, 0.4) * 2.5066283)


def smoothstep(low: float, high: float, value: torch.Tensor) -> torch.Tensor:
    """0 below `low`, 1 above `high`, 3 t^2 - 2 t^3 between."""
    t = ((value - low) / (high - low)).clamp(0.0, 1.0)
    return t * t * (3.0 - 2.0 * t)
