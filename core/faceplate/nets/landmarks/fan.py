"""68 points by heatmaps (2dfan4), and 68 points guessed from five (fan_68_5)."""

from __future__ import annotations

import torch

from ..base import TensorNet, Tensors, need_kind, picture_in
from ..templates import TEMPLATES, fit_similarity
from .crops import box_placements, to_picture

_BOX_SIDE = 195.0
_GRID = 64
_CERTAIN = 0.9


class Fan:
    """68 points of crops.

    Args:
        net: of kind "fan".

    Raises:
        ModelError: a net of another kind.
    """

    def __init__(self, net: TensorNet) -> None:
        need_kind(net, "fan")
        self._net = net

    def place(self, boxes: torch.Tensor, angle_deg: torch.Tensor | float = 0.0) -> torch.Tensor:
        """(F, 2, 3), where the crops of boxes (F, 4) lie; see `box_placements`."""
        return box_placements(boxes, self._net.card.size, _BOX_SIDE, angle_deg)

    def pre(self, crops: torch.Tensor) -> Tensors:
        """`image` of (N, 3, 256, 256) display RGB 0..1."""
        return {"image": picture_in(crops, self._net.card)}

    def run(self, inputs: Tensors) -> Tensors:
        """`points` (N, 68, 3), `heatmaps` (N, 68, 64, 64)."""
        return self._net.run_tensors(inputs)

    def post(self, outputs: Tensors) -> tuple[torch.Tensor, torch.Tensor]:
        """(N, 68, 2) crop px, and (N,) 0..1: the mean of the heatmaps' highest values, 1 from 0.9 on."""
        points = outputs["points"][..., :2] * (self._net.card.size / _GRID)
        peaks = outputs["heatmaps"].flatten(2).amax(2).mean(1)
        return points, (peaks / _CERTAIN).clamp(0.0, 1.0)

    def measure(self, crops: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """As `post`, of (N, 3, 256, 256) crops."""
        return self.post(self.run(self.pre(crops)))


class FiveTo68:
    """68 points of the usual face with these five.

    Args:
        net: of kind "five_to_68".

    Raises:
        ModelError: a net of another kind.
    """

    def __init__(self, net: TensorNet) -> None:
        need_kind(net, "five_to_68")
        self._net = net

    def place(self, points: torch.Tensor) -> torch.Tensor:
        """(F, 2, 3) float64, picture px of (F, 5, 2) points to the unit square of the template."""
        return fit_similarity(points, torch.tensor(TEMPLATES[self._net.card.template], dtype=torch.float64))

    def pre(self, points: torch.Tensor) -> Tensors:
        """`points_5` of (F, 5, 2) picture px on the CPU."""
        to_unit = self.place(points)
        unit = points.double() @ to_unit[..., :2].transpose(-1, -2) + to_unit[..., 2][:, None]
        return {"points_5": unit.float().to(self._net.device.torch_name)}

    def run(self, inputs: Tensors) -> Tensors:
        """`points_68` (F, 68, 2) in the unit square."""
        return self._net.run_tensors(inputs)

    def post(self, outputs: Tensors, points: torch.Tensor) -> torch.Tensor:
        """(F, 68, 2) picture px, of the same five points."""
        return to_picture(outputs["points_68"], self.place(points))

    def guess(self, points: torch.Tensor) -> torch.Tensor:
        """(F, 68, 2) picture px, of (F, 5, 2) on the CPU."""
        return self.post(self.run(self.pre(points)), points)
