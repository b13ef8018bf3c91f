"""YOLOFace 8n."""

from __future__ import annotations

import torch

from ..base import TensorNet, Tensors, need_kind, picture_in
from .boxes import Faces, Fit, choose


class YoloFace:
    """The net has decoded boxes and points itself.

    Args:
        net: of kind "yoloface".

    Raises:
        ModelError: a net of another kind.
    """

    def __init__(self, net: TensorNet) -> None:
        need_kind(net, "yoloface")
        self._net = net

    def pre(self, pictures: torch.Tensor, *, antialias: bool = True) -> Tensors:
        """`image` of (N, 3, h, w) display RGB 0..1; `antialias` as in `Fit.apply`."""
        fit = Fit.into((pictures.shape[2], pictures.shape[3]), self._net.card.size)
        return {"image": picture_in(fit.apply(pictures, antialias=antialias), self._net.card)}

    def run(self, inputs: Tensors) -> Tensors:
        """`faces` (N, 20, 8400)."""
        return self._net.run_tensors(inputs)

    def post(
        self, outputs: Tensors, size: tuple[int, int], *, threshold: float = 0.5, overlap: float = 0.4
    ) -> list[Faces]:
        """The faces of each picture of (height, width) `size`."""
        rows = outputs["faces"].transpose(1, 2)
        centre, half = rows[..., :2], rows[..., 2:4] / 2
        boxes = torch.cat([centre - half, centre + half], -1)
        points = rows[..., 5:].reshape(*rows.shape[:2], 5, 3)[..., :2]
        return choose(boxes, rows[..., 4], points, Fit.into(size, self._net.card.size), threshold, overlap)

    def detect(self, pictures: torch.Tensor, *, threshold: float = 0.5, overlap: float = 0.4) -> list[Faces]:
        """The faces of each of (N, 3, h, w) pictures."""
        size = (pictures.shape[2], pictures.shape[3])
        return self.post(self.run(self.pre(pictures)), size, threshold=threshold, overlap=overlap)
