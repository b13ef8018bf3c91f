"""Where a face's crop lies in the plate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from ...face import Points
from ...frame import Box
from ...nets import templates

_ROOM = 2
"""Plate around a crop, px: what bilinear lookups reach."""


@dataclass(frozen=True, slots=True, eq=False)
class Crop:
    """The crop of one face for one net.

    Attributes:
        placement: (2, 3) float64, px of the view (or plate) to px of a crop of `size`.
        size: of the crop, px.
    """

    placement: torch.Tensor
    size: int

    @property
    def covers_px(self) -> float:
        """Side of the crop in plate px."""
        return self.size / templates.scale_of(self.placement)

    def finer(self, factor: int) -> Crop:
        """The same square with `factor` times the px a side."""
        return Crop(templates.resized(self.placement, factor), self.size * factor)

    def of_size(self, size: int) -> Crop:
        """The same square with `size` px a side."""
        return Crop(templates.resized(self.placement, size / self.size), size)

    def cut(self, view: torch.Tensor, *, antialias: bool = True) -> torch.Tensor:
        """(C, size, size) of a view (C, h, w)."""
        return templates.cut(view, self.placement, self.size, antialias=antialias)

    def put_back(self, crop: torch.Tensor, rows: slice, columns: slice, step: int = 1) -> torch.Tensor:
        """(C, ...) of a crop of any size, over rows and columns of the view, or every `step`th sample of them: the
        centres of blocks of that many px.
        """
        here = templates.resized(self.placement, crop.shape[-1] / self.size)
        here = templates.moved(here, columns.start, rows.start)
        here = torch.cat([here[:, :2] * step, here[:, 2:]], 1)
        height, width = (-(-(part.stop - part.start) // step) for part in (rows, columns))
        return templates.put_back(crop, here, height, width)

    def into(self, other: Crop) -> torch.Tensor:
        """(2, 3), px of this crop to px of another."""
        square = self.placement.new_tensor([[0.0, 0.0, 1.0]])
        back = torch.cat([templates.inverted(self.placement), square])
        return other.placement @ back

    def window(self) -> Box:
        """What the crop needs of the plate, where `placement` takes plate px."""
        points = templates.corners(self.placement, self.size)
        low, high = points.amin(0).tolist(), points.amax(0).tolist()
        return Box(
            math.floor(low[0]) - _ROOM,
            math.floor(low[1]) - _ROOM,
            math.ceil(high[0]) + _ROOM,
            math.ceil(high[1]) + _ROOM,
        )


def find_crop(landmarks: Points, template: str, size: int, pixel_aspect: float = 1.0) -> Crop:
    """The crop of a face with these (478, 3) landmarks; fitted where pixels are square."""
    square = torch.tensor([pixel_aspect, 1.0], dtype=torch.float64)
    fitted = templates.place(templates.five_points(landmarks) * square, template, size)
    return Crop(torch.cat([fitted[:, :2] * square, fitted[:, 2:]], 1), size)
