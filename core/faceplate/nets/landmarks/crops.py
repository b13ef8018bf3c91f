"""Crops around boxes, and points of a crop where they lie in the picture."""

from __future__ import annotations

import torch

from ..templates import inverted


def box_placements(boxes: torch.Tensor, size: int, side: float, angle_deg: torch.Tensor | float = 0.0) -> torch.Tensor:
    """(F, 2, 3) float64, picture px to crop px: the centre of the box in the middle, its larger side `side` px long.

    Args:
        boxes: (F, 4) left, top, right, bottom, picture px.
        size: of the crop.
        side: of the box's larger side in the crop, px.
        angle_deg: of the heads, clockwise on screen; they stand upright in the crop. One, or (F,).
    """
    corners = boxes.double()
    centre = (corners[:, :2] + corners[:, 2:]) / 2
    scale = side / (corners[:, 2:] - corners[:, :2]).amax(1)
    angle = torch.deg2rad(torch.as_tensor(angle_deg, dtype=torch.float64)).expand_as(scale)
    cos, sin = scale * angle.cos(), scale * angle.sin()
    linear = torch.stack([torch.stack([cos, sin], -1), torch.stack([-sin, cos], -1)], -2)
    return torch.cat([linear, size / 2 - linear @ centre[..., None]], -1)


def from_index(placements: torch.Tensor) -> torch.Tensor:
    """(..., 2, 3) between coordinates with pixel centres at 0.5, of one between pixel indices."""
    linear = placements[..., :2]
    half = placements.new_full((2, 1), 0.5)
    return torch.cat([linear, placements[..., 2:] + half - linear @ half], -1)


def to_picture(points: torch.Tensor, placements: torch.Tensor) -> torch.Tensor:
    """(F, P, 2) float32 picture px on the CPU, of points in crop px (F, P, 2)."""
    back = inverted(placements)
    return (points.cpu().double() @ back[..., :2].transpose(-1, -2) + back[..., 2][:, None]).float()
