"""GFPGAN, CodeFormer, RestoreFormer++ and GPEN: one square in, one out."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from ..base import TensorNet, Tensors, need_kind, picture_in, picture_out
from ..through import between, changed, cut_all

KINDS = ("restorer", "restorer_weighted")


class Restorer:
    """A restorer of the kinds "restorer" and "restorer_weighted", which is told how far to hold on to what it sees.

    Args:
        net: input `input`, for the latter also `weight`; output `output`.

    Raises:
        ModelError: the net is of another kind.
    """

    def __init__(self, net: TensorNet) -> None:
        need_kind(net, *KINDS)
        self.net = net

    @property
    def size(self) -> int:
        """Side of its square, px."""
        return self.net.card.size

    @property
    def is_weighted(self) -> bool:
        """Whether `fidelity` means something to it."""
        return self.net.card.kind == "restorer_weighted"

    def pre(self, squares: torch.Tensor, fidelity: float = 0.5) -> Tensors:
        """`input` as the card's mean and std say; `weight` for a net that takes one.

        Args:
            squares: (N, 3, size, size) in the card's template.
            fidelity: 0 for the most beautiful, 1 for the most faithful.
        """
        inputs = {"input": picture_in(squares, self.net.card)}
        if self.is_weighted:
            inputs["weight"] = squares.new_full((len(squares), 1), fidelity)
        return inputs

    def run(self, inputs: Mapping[str, torch.Tensor]) -> Tensors:
        """The net."""
        return self.net.run_tensors(inputs)

    def post(self, outputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """(N, 3, size, size) restored, 0..1."""
        return picture_out(outputs["output"], self.net.card)

    def restore(
        self, crops: torch.Tensor, points: torch.Tensor, amount: float = 0.8, fidelity: float = 0.5
    ) -> torch.Tensor:
        """Crops with the net's change in them.

        Args:
            crops: (N, 3, h, w) sRGB-encoded 0..1, on the net's device, at the size that is wanted in the end: a net
                cannot put detail into fewer pixels than it makes.
            points: (N, 5, 2) crop px of eyes, nose and mouth, on the CPU: the ones that the crops were made by.
            amount: 0..1; 0 gives the crops.
            fidelity: see `pre`.

        Returns:
            (N, 3, h, w) 0..1.
        """
        if amount == 0.0:
            return crops
        places = between(points, self.net.card.template, self.size)
        squares = cut_all(crops, places, self.size)
        restored = self.post(self.run(self.pre(squares, fidelity)))
        return changed(crops, places, squares, restored, amount)
