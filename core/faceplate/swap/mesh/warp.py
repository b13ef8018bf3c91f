"""The plate around the face follows the face's proportions."""

from __future__ import annotations

import torch
from torch.nn import functional

from .fields import Enlarger, blur, mean_around, smoothstep


def warp(
    view: torch.Tensor,
    moved: torch.Tensor,
    weight: torch.Tensor,
    face_px: float,
    aspect: float,
    step: int,
    enlarge: Enlarger,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The plate moved with the mesh, dying out around it.

    Args:
        view: (3, h, w) picture.
        moved: (2, rows, columns) px of `view` by which the mesh moved, coarse grid.
        weight: (rows, columns) 1 where the mesh was drawn.
        face_px: face width in rows of the coarse grid.
        aspect: width / height of a sample.
        step: fine pixels a coarse sample.
        enlarge: to the size of `view`.

    Returns:
        (3, h, w) the picture and (h, w) 0..1, where it moved.
    """
    height, width = view.shape[1:]
    low = blur(torch.cat([moved * weight, weight[None]]), 0.04 * face_px, aspect)
    around = low[:2] / low[2].clamp(min=1e-4)
    near = smoothstep(0.02, 0.6, low[2])
    move = torch.where(weight > 0, moved, around * near)
    move = mean_around(move, 0.008 * face_px, aspect) * _frame_fade(weight)
    reach = blur((move.abs().amax(0) > 0.02).to(view.dtype)[None], 0.01 * face_px, aspect)[0]
    fine = enlarge(torch.cat([move, reach[None]]), step)
    x = torch.arange(width, dtype=view.dtype, device=view.device) + 0.5
    y = torch.arange(height, dtype=view.dtype, device=view.device) + 0.5
    grid = torch.stack([(x[None] - fine[0]) * (2.0 / width) - 1.0, (y[:, None] - fine[1]) * (2.0 / height) - 1.0], -1)
    warped = functional.grid_sample(view[None], grid[None], "bicubic", "border", False)[0].clamp_(min=0.0)
    matte = smoothstep(0.02, 0.5, fine[2])
    return torch.where(matte > 0, warped, view), matte


def _frame_fade(like: torch.Tensor) -> torch.Tensor:
    """0 at the border of the place, 1 a little inside."""
    rows, columns = (torch.arange(n, dtype=like.dtype, device=like.device) for n in like.shape)
    y = torch.minimum(rows, like.shape[0] - 1 - rows)
    x = torch.minimum(columns, like.shape[1] - 1 - columns)
    return smoothstep(0.0, 4.0, torch.minimum(y[:, None], x[None]))
