"""SCRFD, which many tools call RetinaFace: det_10g, 2.5g, 500m."""

from __future__ import annotations

import torch

from ..base import TensorNet, Tensors, need_kind, picture_in
from .boxes import Faces, Fit, cells, choose

_STRIDES = (8, 16, 32)
_ANCHORS = 2


class Scrfd:
    """Boxes and points as distances from the first corner of each cell.

    Args:
        net: of kind "scrfd".

    Raises:
        ModelError: a net of another kind.
    """

    def __init__(self, net: TensorNet) -> None:
        need_kind(net, "scrfd")
        self._net = net

    def fit(self, size: tuple[int, int], *, square: bool = False) -> Fit:
        """How a picture of (height, width) lies in the input: no larger than it must be where the file allows."""
        free = self._net.card.inputs[0].shape[1] == 0 and not square
        return Fit.into(size, self._net.card.size, multiple=_STRIDES[-1] if free else None)

    def pre(self, pictures: torch.Tensor, *, antialias: bool = True, square: bool = False) -> Tensors:
        """`image` of (N, 3, h, w) display RGB 0..1.

        Args:
            pictures: of one size.
            antialias: see `Fit.apply`.
            square: the net's whole square, as InsightFace runs it.
        """
        fitted = self.fit((pictures.shape[2], pictures.shape[3]), square=square).apply(pictures, antialias=antialias)
        return {"image": picture_in(fitted, self._net.card)}

    def run(self, inputs: Tensors) -> Tensors:
        """Scores, boxes and points at three strides."""
        return self._net.run_tensors(inputs)

    def post(
        self,
        outputs: Tensors,
        size: tuple[int, int],
        *,
        threshold: float = 0.5,
        overlap: float = 0.4,
        square: bool = False,
    ) -> list[Faces]:
        """The faces of each picture of (height, width) `size`."""
        fit = self.fit(size, square=square)
        boxes, scores, points = [], [], []
        for stride in _STRIDES:
            at = cells(fit, stride, _ANCHORS, outputs[f"box_{stride}"].device)
            reach = outputs[f"box_{stride}"] * stride
            boxes.append(torch.cat([at - reach[..., :2], at + reach[..., 2:]], -1))
            scores.append(outputs[f"score_{stride}"][..., 0])
            points.append(at[:, None] + outputs[f"points_{stride}"].reshape(*reach.shape[:2], 5, 2) * stride)
        return choose(torch.cat(boxes, 1), torch.cat(scores, 1), torch.cat(points, 1), fit, threshold, overlap)

    def detect(
        self,
        pictures: torch.Tensor,
        *,
        threshold: float = 0.5,
        overlap: float = 0.4,
        antialias: bool = True,
        square: bool = False,
    ) -> list[Faces]:
        """The faces of each of (N, 3, h, w) pictures."""
        outputs = self.run(self.pre(pictures, antialias=antialias, square=square))
        size = (pictures.shape[2], pictures.shape[3])
        return self.post(outputs, size, threshold=threshold, overlap=overlap, square=square)
