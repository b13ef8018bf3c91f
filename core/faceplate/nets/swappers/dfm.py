"""Models of DeepFaceLab and DeepFaceLive: trained for one person, so nobody tells them who."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from ..base import TensorNet, Tensors, matte_out, need_kind, picture_in, picture_out, torch_device
from ..filters import eroded_cross, gaussian
from .base import SourceKind, Swapped

_SHARPEN, _SHARPEN_SIGMA = 0.75, 2.0
"""How FaceFusion sharpens what goes in: x * 1.75 - blurred * 0.75."""
_ERODE, _SOFTEN = 2, 6.25
"""And how it shrinks and softens the masks: twice by a pixel, then a Gaussian of this sigma in px."""


class DfmSwapper:
    """A swapper of the kind "dfm": NHWC, BGR.

    Args:
        net: input `in_face`, with or without `morph_value`; outputs `target_mask`, `face`, `source_mask`.
        morph: 0..1, from the plate's face to the person's, for files that take it.

    Raises:
        ModelError: the net is of another kind.
    """

    source_kind: SourceKind = "none"
    source_place = ("", 0)

    def __init__(self, net: TensorNet, morph: float = 1.0) -> None:
        need_kind(net, "dfm")
        self.net = net
        self._morph = morph
        self._morphs = any(spec.name == "morph_value" for spec in net.card.inputs)

    @property
    def size(self) -> int:
        """Side of a crop, px: the file's own."""
        return self.net.card.size or self.net.card.inputs[0].shape[0]

    def source(self, given: torch.Tensor) -> torch.Tensor:
        """Nothing: (1, 0)."""
        return torch.zeros((1, 0), device=torch_device(self.net))

    def pre(self, crops: torch.Tensor, source: torch.Tensor) -> Tensors:
        """`in_face`, sharpened and clipped to 0..1, and the morph where the file takes one."""
        sharp = crops.add(crops - gaussian(crops, _SHARPEN_SIGMA), alpha=_SHARPEN).clamp_(0.0, 1.0)
        inputs = {"in_face": picture_in(sharp, self.net.card)}
        if self._morphs:
            inputs["morph_value"] = crops.new_full((len(crops), 1), self._morph)
        return inputs

    def run(self, inputs: Mapping[str, torch.Tensor]) -> Tensors:
        """The net."""
        return self.net.run_tensors(inputs)

    def post(self, outputs: Mapping[str, torch.Tensor]) -> Swapped:
        """The face, and the smaller of both masks, shrunk and softened."""
        card = self.net.card
        at = {spec.name: index for index, spec in enumerate(card.outputs)}
        both = [matte_out(outputs[name], card, at[name]) for name in ("target_mask", "source_mask")]
        matte = gaussian(eroded_cross(torch.minimum(*both)[:, None], _ERODE), _SOFTEN)[:, 0]
        return Swapped(picture_out(outputs["face"], card, at["face"]), matte.clamp(0.0, 1.0))
