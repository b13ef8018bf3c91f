"""Swappers that are told who by a vector: InSwapper and InStyleSwapper, SimSwap, Ghost, HifiFace, HyperSwap."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch.nn import functional

from ...errors import ModelError
from ..base import TensorNet, Tensors, matte_out, need_kind, picture_in, picture_out, torch_device
from .base import SourceKind, Swapped, repeated

_ID = 512


class EmbeddingSwapper:
    """A swapper of the kinds "swapper_unit" (a vector of length 1), "swapper_raw" (of any length) and "inswapper" (a
    unit vector through the file's own matrix).

    Args:
        net: inputs `target` and `source`, output `output`, with or without `mask`.
        emap: (512, 512) float32, the matrix in the file, for "inswapper"; None else.

    Raises:
        ModelError: the net is of another kind, or an "inswapper" lacks its matrix.
    """

    source_kind: SourceKind = "embedding"
    source_place = ("", 0)

    def __init__(self, net: TensorNet, emap: torch.Tensor | None = None) -> None:
        need_kind(net, "inswapper", "swapper_unit", "swapper_raw")
        if net.card.kind == "inswapper" and (emap is None or emap.shape != (_ID, _ID)):
            raise ModelError(
                f"the file of model {net.card.id} lacks the matrix that embeddings go through",
                expected=f"a last initializer of {_ID} x {_ID}",
                found="none" if emap is None else str(tuple(emap.shape)),
                hint="use the file as its authors published it: tools that optimise it drop the matrix",
            )
        self.net = net
        self._emap = None if emap is None else emap.to(torch_device(net))

    @property
    def size(self) -> int:
        """Side of a crop, px."""
        return self.net.card.size

    def source(self, given: torch.Tensor) -> torch.Tensor:
        """(1, 512) of a (512,) embedding, on the net's device; see `Swapper.source`."""
        vector = given.to(torch_device(self.net), torch.float32).view(1, _ID)
        if self.net.card.kind == "swapper_raw":
            return vector
        unit = functional.normalize(vector)
        return unit if self._emap is None else functional.normalize(unit @ self._emap)

    def pre(self, crops: torch.Tensor, source: torch.Tensor) -> Tensors:
        """`target` as the card's mean and std say, `source` once for each crop."""
        return {"target": picture_in(crops, self.net.card), "source": repeated(source, len(crops))}

    def run(self, inputs: Mapping[str, torch.Tensor]) -> Tensors:
        """The net."""
        return self.net.run_tensors(inputs)

    def post(self, outputs: Mapping[str, torch.Tensor]) -> Swapped:
        """The picture from the card's range to 0..1, the net's mask as matte."""
        names = [spec.name for spec in self.net.card.outputs]
        matte = matte_out(outputs["mask"], self.net.card, names.index("mask")) if "mask" in names else None
        return Swapped(picture_out(outputs["output"], self.net.card), matte)
