"""Older and younger: FRAN, which is told two ages, and StyleGANEX, which is told a direction."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from ..base import TensorNet, Tensors, need_kind, picture_in, picture_out
from ..templates import resized as placed_at
from ..through import between, changed, cut_all, resized

KINDS = ("age_fran", "age_styleganex")
_DIRECTION = 2.5
"""What StyleGANEX is told for a hundred years less; the negative for more."""
_CENTURY = 100.0
_SURROUNDINGS, _SURROUNDINGS_SIDE, _SURROUNDINGS_SPREAD = "styleganex_384", 384, 0.875
"""The second picture that StyleGANEX takes: wider, its points pulled towards the nose."""


class FranAge:
    """FRAN (Zoss et al. 2022): the kind "age_fran".

    Args:
        net: inputs `target` and `direction`, output `output`.

    Raises:
        ModelError: the net is of another kind.
    """

    def __init__(self, net: TensorNet) -> None:
        need_kind(net, "age_fran")
        self.net = net

    def pre(self, squares: torch.Tensor, age: float, target_age: float) -> Tensors:
        """`target` as the card says; `direction`: both ages as parts of a century, clipped to 0..1."""
        ages = squares.new_tensor([age, target_age]).div_(_CENTURY).clamp_(0.0, 1.0)
        return {"target": picture_in(squares, self.net.card), "direction": ages.expand(len(squares), 2)}

    def run(self, inputs: Mapping[str, torch.Tensor]) -> Tensors:
        """The net."""
        return self.net.run_tensors(inputs)

    def post(self, outputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """(N, 3, size, size) 0..1."""
        return picture_out(outputs["output"], self.net.card)

    def edit(self, crops: torch.Tensor, points: torch.Tensor, years: float, age: float = 40.0) -> torch.Tensor:
        """Crops in which the face is `years` older.

        Args:
            crops: (N, 3, h, w) sRGB-encoded 0..1.
            points: (N, 5, 2) crop px, on the CPU.
            years: to add, below 0 to take away; 0 gives the crops.
            age: of the person, years.

        Returns:
            (N, 3, h, w) 0..1.
        """
        if years == 0.0:
            return crops
        size = self.net.card.size
        places = between(points, self.net.card.template, size)
        squares = cut_all(crops, places, size)
        aged = self.post(self.run(self.pre(squares, age, age + years)))
        return changed(crops, places, squares, aged)


class StyleAge:
    """StyleGANEX's age editor (Yang et al. 2023): the kind "age_styleganex".

    Args:
        net: inputs `target`, `target_with_background` and `direction`, output `output`, a finer picture of the latter.

    Raises:
        ModelError: the net is of another kind.
    """

    def __init__(self, net: TensorNet) -> None:
        need_kind(net, "age_styleganex")
        self.net = net

    def pre(self, squares: torch.Tensor, surroundings: torch.Tensor, years: float) -> Tensors:
        """Both pictures as the card says; `direction` from 2.5 for a hundred years younger to -2.5 for older."""
        direction = max(-1.0, min(1.0, years / _CENTURY)) * -_DIRECTION
        inputs = {"target": squares, "target_with_background": surroundings}
        ready = {name: picture_in(picture, self.net.card) for name, picture in inputs.items()}
        return {**ready, "direction": squares.new_full((len(squares), 1), direction)}

    def run(self, inputs: Mapping[str, torch.Tensor]) -> Tensors:
        """The net."""
        return self.net.run_tensors(inputs)

    def post(self, outputs: Mapping[str, torch.Tensor], surroundings: torch.Tensor) -> torch.Tensor:
        """The edited surroundings, (N, 3, h, w) 0..1 at the size of the net's output, in the colours they had before:
        each channel's mean and deviation are those of what went in.
        """
        made = picture_out(outputs["output"], self.net.card)
        spread, mean = torch.std_mean(surroundings, (2, 3), keepdim=True)
        made_spread, made_mean = torch.std_mean(made, (2, 3), keepdim=True)
        return ((made - made_mean) * (spread / made_spread.clamp_min(1e-6)) + mean).clamp_(0.0, 1.0)

    def edit(self, crops: torch.Tensor, points: torch.Tensor, years: float, age: float = 40.0) -> torch.Tensor:
        """Crops in which the face is `years` older, as far as the net understands years; see `FranAge.edit`."""
        if years == 0.0:
            return crops
        card = self.net.card
        squares = cut_all(crops, between(points, card.template, card.size), card.size)
        places = between(points, _SURROUNDINGS, _SURROUNDINGS_SIDE, _SURROUNDINGS_SPREAD)
        surroundings = cut_all(crops, places, _SURROUNDINGS_SIDE)
        aged = self.post(self.run(self.pre(squares, surroundings, years)), surroundings)
        fine = aged.shape[-1]
        return changed(crops, placed_at(places, fine / _SURROUNDINGS_SIDE), resized(surroundings, fine), aged)
