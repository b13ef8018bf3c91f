"""InsightFace's 106 points (2d106det)."""

from __future__ import annotations

import torch

from ..base import TensorNet, Tensors, need_kind, picture_in
from .crops import box_placements, from_index

_REACH = 1.5


class Points106:
    """106 points of crops.

    Args:
        net: of kind "points_106".

    Raises:
        ModelError: a net of another kind.
    """

    def __init__(self, net: TensorNet) -> None:
        need_kind(net, "points_106")
        self._net = net

    def place(self, boxes: torch.Tensor) -> torch.Tensor:
        """(F, 2, 3), where the crops of boxes (F, 4) picture px lie: not turned, 1.5 times the box."""
        size = self._net.card.size
        return from_index(box_placements(boxes - 0.5, size, size / _REACH))

    def pre(self, crops: torch.Tensor) -> Tensors:
        """`image` of (N, 3, 192, 192) display RGB 0..1."""
        return {"image": picture_in(crops, self._net.card)}

    def run(self, inputs: Tensors) -> Tensors:
        """`points` (N, 212) from -1 to 1."""
        return self._net.run_tensors(inputs)

    def post(self, outputs: Tensors) -> torch.Tensor:
        """(N, 106, 2) crop px."""
        points = outputs["points"]
        return (points.reshape(len(points), -1, 2) + 1.0) * (self._net.card.size // 2) + 0.5

    def measure(self, crops: torch.Tensor) -> torch.Tensor:
        """As `post`, of (N, 3, 192, 192) crops."""
        return self.post(self.run(self.pre(crops)))
