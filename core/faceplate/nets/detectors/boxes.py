"""What detectors share: the picture fitted into the net's square, and boxes thinned out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional

MOST_CANDIDATES = 1000
"""Cells that are looked at for one picture, the surest first."""


@dataclass(frozen=True, slots=True, eq=False)
class Faces:
    """The faces of one picture, the surest first; float32 on the CPU, px of the picture, pixel centres at 0.5.

    Attributes:
        boxes: (F, 4) left, top, right, bottom.
        scores: (F,) 0..1.
        points: (F, 5, 2) x, y: eye on the left of the picture, eye on its right, nose tip, corners of the mouth.
    """

    boxes: torch.Tensor
    scores: torch.Tensor
    points: torch.Tensor

    def __len__(self) -> int:
        return len(self.scores)


@dataclass(frozen=True, slots=True)
class Fit:
    """How a picture lies in a net's input: shrunk or enlarged to the upper left, black elsewhere.

    Attributes:
        width, height: of the picture in the input, px.
        input_width, input_height: of the input.
        scale: input px a picture px.
    """

    width: int
    height: int
    input_width: int
    input_height: int
    scale: float

    @classmethod
    def into(cls, size: tuple[int, int], side: int, *, multiple: int | None = None) -> Fit:
        """The largest fit.

        Args:
            size: (height, width) of the picture.
            side: of the net's square, px.
            multiple: the input may be less than square, its sides multiples of this; None for the whole square.
        """
        height, width = size
        tall = height / width > 1.0
        fitted = (max(1, int(side * width / height)), side) if tall else (side, max(1, int(side * height / width)))
        sides = [side if multiple is None else -(-length // multiple) * multiple for length in fitted]
        return cls(*fitted, sides[0], sides[1], fitted[1] / height)

    def apply(self, pictures: torch.Tensor, *, antialias: bool = True) -> torch.Tensor:
        """(N, 3, input height, input width) of (N, 3, h, w).

        Args:
            pictures: float32.
            antialias: average where the picture shrinks; False samples as cv2.resize does with INTER_LINEAR.
        """
        size = (self.height, self.width)
        shrinks = antialias and self.scale < 1.0
        fitted = functional.interpolate(pictures, size, mode="bilinear", align_corners=False, antialias=shrinks)
        return functional.pad(fitted, (0, self.input_width - self.width, 0, self.input_height - self.height))


def choose(
    boxes: torch.Tensor, scores: torch.Tensor, points: torch.Tensor, fit: Fit, threshold: float, overlap: float
) -> list[Faces]:
    """The faces of each picture among all cells, in px of the picture.

    Labels name a pixel by its index, so that half a pixel comes on top. One copy to the host.

    Args:
        boxes: (N, A, 4) left, top, right, bottom, input px.
        scores: (N, A) 0..1.
        points: (N, A, 5, 2) input px.
        fit: how the pictures lie in the input.
        threshold: lowest score.
        overlap: of two boxes, area of the intersection over that of the union, above which the less sure one goes.
    """
    best, index = scores.topk(min(MOST_CANDIDATES, scores.shape[1]), 1)
    values = torch.cat([boxes, points.flatten(2)], 2)
    values = values.gather(1, index[..., None].expand(-1, -1, values.shape[2])) / fit.scale
    rows = torch.cat([values, best[..., None]], 2).cpu()
    return [_faces(one[one[:, -1] >= threshold], overlap) for one in rows]


def _faces(rows: torch.Tensor, overlap: float) -> Faces:
    kept = rows[suppress(rows[:, :4], overlap)]
    return Faces(kept[:, :4] + 0.5, kept[:, -1].contiguous(), kept[:, 4:-1].reshape(-1, 5, 2) + 0.5)


def suppress(boxes: torch.Tensor, overlap: float) -> torch.Tensor:
    """Indices of the boxes (F, 4), the surest first, that overlap no surer one that stays. Sides count whole pixels, as
    InsightFace measures them.
    """
    low, high = (
        torch.maximum(boxes[:, None, :2], boxes[None, :, :2]),
        torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:]),
    )
    shared = (high - low + 1.0).clamp_min(0.0).prod(-1)
    area = (boxes[:, 2:] - boxes[:, :2] + 1.0).prod(-1)
    same = shared / (area[:, None] + area[None] - shared) > overlap
    alive = torch.ones(len(boxes), dtype=torch.bool)
    for index in range(len(boxes)):
        if alive[index]:
            alive[index + 1 :] &= ~same[index, index + 1 :]
    return alive.nonzero()[:, 0]


def cells(fit: Fit, stride: int, anchors: int, device: torch.device) -> torch.Tensor:
    """(A, 2) first corner of each cell in input px, row by row, each as often as it has anchors."""
    y, x = torch.meshgrid(
        torch.arange(fit.input_height // stride, device=device),
        torch.arange(fit.input_width // stride, device=device),
        indexing="ij",
    )
    return (torch.stack([x, y], -1).reshape(-1, 2) * float(stride)).repeat_interleave(anchors, 0)
