"""Small filters on batches of planes (N, C, h, w) float32, the same on every device."""

from __future__ import annotations

import math

import torch
from torch.nn import functional


def gaussian(planes: torch.Tensor, sigma: float, reach: int | None = None) -> torch.Tensor:
    """Gaussian blur, edges mirrored without repeating them; as cv2.GaussianBlur of floats.

    Args:
        planes: (N, C, h, w).
        sigma: px.
        reach: px from the middle at which it is cut off, None for 4 sigma.
    """
    reach = max(round(sigma * 8.0 + 1.0) | 1, 3) // 2 if reach is None else reach
    away = torch.arange(-reach, reach + 1, dtype=torch.float64)
    profile = torch.exp(away * away / (-2.0 * sigma * sigma))
    kernel = (profile / profile.sum()).to(planes)
    count, channels, height, width = planes.shape
    flat = planes.reshape(count * channels, 1, height, width)
    across = functional.conv2d(_mirrored(flat, reach, 0), kernel.view(1, 1, 1, -1))
    down = functional.conv2d(_mirrored(across, 0, reach), kernel.view(1, 1, -1, 1))
    return down.view(count, channels, height, width)


def _mirrored(planes: torch.Tensor, across: int, down: int) -> torch.Tensor:
    """Mirrored edges, as often as a small plane needs."""
    while across or down:
        now_across, now_down = min(across, planes.shape[-1] - 1), min(down, planes.shape[-2] - 1)
        planes = functional.pad(planes, (now_across, now_across, now_down, now_down), mode="reflect")
        across, down = across - now_across, down - now_down
    return planes


def eroded_cross(planes: torch.Tensor, times: int = 1) -> torch.Tensor:
    """Minimum over a pixel and its four neighbours, `times` times: OpenCV's 3 x 3 ellipse."""
    for _ in range(times):
        around = functional.pad(planes, (1, 1, 1, 1), value=math.inf)
        vertical = torch.minimum(around[..., :-2, 1:-1], around[..., 2:, 1:-1])
        planes = torch.minimum(
            torch.minimum(vertical, planes), torch.minimum(around[..., 1:-1, :-2], around[..., 1:-1, 2:])
        )
    return planes
