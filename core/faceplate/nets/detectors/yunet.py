"""YuNet of 2023-03."""

from __future__ import annotations

import torch

from ..base import TensorNet, Tensors, need_kind, picture_in
from .boxes import Faces, Fit, cells, choose

_STRIDES = (8, 16, 32)


class YuNet:
    """One anchor a cell; decoded as OpenCV's FaceDetectorYN does.

    Args:
        net: of kind "yunet".

    Raises:
        ModelError: a net of another kind.
    """

    def __init__(self, net: TensorNet) -> None:
        need_kind(net, "yunet")
        self._net = net

    def pre(self, pictures: torch.Tensor, *, antialias: bool = True) -> Tensors:
        """`image` of (N, 3, h, w) display RGB 0..1; `antialias` as in `Fit.apply`."""
        fit = Fit.into((pictures.shape[2], pictures.shape[3]), self._net.card.size)
        return {"image": picture_in(fit.apply(pictures, antialias=antialias), self._net.card)}

    def run(self, inputs: Tensors) -> Tensors:
        """Class, object, box and points at three strides."""
        return self._net.run_tensors(inputs)

    def post(
        self, outputs: Tensors, size: tuple[int, int], *, threshold: float = 0.5, overlap: float = 0.4
    ) -> list[Faces]:
        """The faces of each picture of (height, width) `size`."""
        fit = Fit.into(size, self._net.card.size)
        boxes, scores, points = [], [], []
        for stride in _STRIDES:
            found = outputs[f"bbox_{stride}"]
            at = cells(fit, stride, 1, found.device)
            centre, half = at + found[..., :2] * stride, found[..., 2:].exp() * (stride / 2)
            boxes.append(torch.cat([centre - half, centre + half], -1))
            both = outputs[f"cls_{stride}"].clamp(0, 1) * outputs[f"obj_{stride}"].clamp(0, 1)
            scores.append(both[..., 0].sqrt())
            points.append(at[:, None] + outputs[f"kps_{stride}"].reshape(*found.shape[:2], 5, 2) * stride)
        return choose(torch.cat(boxes, 1), torch.cat(scores, 1), torch.cat(points, 1), fit, threshold, overlap)

    def detect(self, pictures: torch.Tensor, *, threshold: float = 0.5, overlap: float = 0.4) -> list[Faces]:
        """The faces of each of (N, 3, h, w) pictures."""
        size = (pictures.shape[2], pictures.shape[3])
        return self.post(self.run(self.pre(pictures)), size, threshold=threshold, overlap=overlap)
