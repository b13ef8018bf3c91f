"""Swappers that are told who by a picture: BlendSwap and UniFace."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from ...errors import ModelError
from ..base import TensorNet, Tensors, need_kind, picture_in, picture_out, torch_device
from .base import SourceKind, Swapped, repeated

_PLACES = {112: ("arcface_112_v2", 112), 256: ("ffhq_512", 256)}
"""Where a source picture of this side has its face: that of recognisers, that of generators."""


class PictureSwapper:
    """A swapper of the kind "swapper_picture".

    Args:
        net: inputs `target` and `source`, output `output`.

    Raises:
        ModelError: the net is of another kind, or takes pictures of a size that no known net takes.
    """

    source_kind: SourceKind = "picture"

    def __init__(self, net: TensorNet) -> None:
        need_kind(net, "swapper_picture")
        self.net = net
        self._index = [spec.name for spec in net.card.inputs].index("source")
        side = net.card.inputs[self._index].shape[-1]
        if side not in _PLACES:
            raise ModelError(
                f"model {net.card.id} takes a picture of the person of an unknown size",
                expected=" or ".join(str(known) for known in _PLACES),
                found=str(side),
            )
        self._place = _PLACES[side]

    @property
    def source_place(self) -> tuple[str, int]:
        """Template and size of the picture of the person."""
        return self._place

    @property
    def size(self) -> int:
        """Side of a crop, px."""
        return self.net.card.size

    def source(self, given: torch.Tensor) -> torch.Tensor:
        """(1, 3, s, s) of a picture (3, s, s) 0..1, which these nets take as it is, whatever the target's mean."""
        return given.to(torch_device(self.net), torch.float32)[None]

    def pre(self, crops: torch.Tensor, source: torch.Tensor) -> Tensors:
        """`target` as the card's mean and std say, `source` once for each crop."""
        return {"target": picture_in(crops, self.net.card), "source": repeated(source, len(crops))}

    def run(self, inputs: Mapping[str, torch.Tensor]) -> Tensors:
        """The net."""
        return self.net.run_tensors({name: value.contiguous() for name, value in inputs.items()})

    def post(self, outputs: Mapping[str, torch.Tensor]) -> Swapped:
        """The picture from the card's range to 0..1."""
        return Swapped(picture_out(outputs["output"], self.net.card), None)
