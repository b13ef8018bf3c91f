"""What lies in front of the face, brought from canonical UV to the plate's edges. What is found, and how it is steadied
over time, stands in `faces.occluders`.
"""

from __future__ import annotations

import cv2
import numpy as np
import torch
from numpy.typing import NDArray

from ...face import Appearance, Cover, Points
from ...faces import rectify, topology
from ...faces.appearance import FLOOR, SIZE
from ...faces.occluders import cover_alone
from .fields import mean_around, sample

_FACING = 0.2


def cover_in_crop(
    view: torch.Tensor, landmarks: Points, facing: NDArray[np.float32], appearance: Appearance | None, step: int
) -> Cover:
    """`faces.occluders.cover_alone` of a frame that is looked at without those around it.

    Args:
        view: (3, h, w) linear light 0..1, coarse grid.
        landmarks: (468 or more, 3) px of the fine grid.
        facing: (468,) of each point.
        appearance: of the track, or None.
        step: fine pixels a coarse sample.
    """
    height, width = view.shape[1:]
    points = landmarks[: topology.FACE_POINTS, :2] / np.float32(step)
    at = rectify.interpolate(np.concatenate([points, facing[:, None]], 1), SIZE)
    x, y = at[..., 0], at[..., 1]
    picture = np.ascontiguousarray(view.permute(1, 2, 0).cpu().numpy())
    light = cv2.remap(picture, x - 0.5, y - 0.5, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    texture = np.log2(np.maximum(np.asarray(light, np.float32), np.float32(FLOOR)))
    seen = rectify.coverage(SIZE) & (at[..., 2] > _FACING) & (x > 0) & (x < width) & (y > 0) & (y < height)
    texture[~seen] = np.nan
    return cover_alone(texture, appearance)


def cover_at(cover: Cover, grid: torch.Tensor) -> torch.Tensor:
    """(h, w) float32 0..1, a cover where a `fields.uv_grid` lies in it."""
    return sample(torch.from_numpy(cover.astype(np.float32)).to(grid.device)[None], grid)[0].mul_(1.0 / 255.0)


def refine(matte: torch.Tensor, guide: torch.Tensor, face_px: float) -> torch.Tensor:
    """What brings a coarse matte to the plate's edges (fast guided filter, He and Sun 2015).

    Args:
        matte: (h, w) coarse, 0..1.
        guide: (3, h, w) coarse picture.
        face_px: face width in samples of the coarse grid.

    Returns:
        (2, h, w), slope and offset of the matte over the picture's mean; enlarge it for `along_lines`.
    """
    light = guide.mean(0)
    sigma = max(1.0, 0.025 * face_px)
    mean_i, mean_m, square, product = mean_around(torch.stack([light, matte, light * light, light * matte]), sigma)
    floor = (0.06 * light.mean()).square() + 1e-10
    slope = (product - mean_i * mean_m) / ((square - mean_i.square()).clamp(min=0.0) + floor)
    return mean_around(torch.stack([slope, mean_m - slope * mean_i]), sigma)


def along_lines(lines: torch.Tensor, view: torch.Tensor) -> torch.Tensor:
    """(H, W) 0..1, the refined matte of a picture (3, H, W), from the (2, H, W) of `refine`."""
    fine = view.mean(0).mul_(lines[0]).add_(lines[1])
    return fine.sub_(0.08).mul_(1.0 / 0.80).clamp_(0.0, 1.0)
