"""ArcFace and its kin, and converters from one recogniser's space to another's."""

from __future__ import annotations

import torch
from torch.nn import functional

from ...errors import ModelError
from ..base import TensorNet, Tensors, need_kind, picture_in, torch_device
from ..templates import place


class ArcFace:
    """Vectors of aligned crops.

    Args:
        net: of kind "arcface".

    Raises:
        ModelError: a net of another kind.
    """

    def __init__(self, net: TensorNet) -> None:
        need_kind(net, "arcface")
        self._net = net

    @property
    def space(self) -> str:
        """The name of the space its vectors lie in."""
        return self._net.card.embedding

    @property
    def sha256(self) -> str:
        """Of its file."""
        return self._net.card.sha256

    @property
    def device(self) -> torch.device:
        """Where its tensors lie."""
        return torch_device(self._net)

    @property
    def size(self) -> int:
        """Side of a crop, px."""
        return self._net.card.size

    def place(self, points: torch.Tensor) -> torch.Tensor:
        """(..., 2, 3) float64, where the crops of faces with (..., 5, 2) points lie."""
        return place(points, self._net.card.template, self._net.card.size)

    def pre(self, crops: torch.Tensor) -> Tensors:
        """`image` of (N, 3, 112, 112) display RGB 0..1."""
        return {"image": picture_in(crops, self._net.card)}

    def run(self, inputs: Tensors) -> Tensors:
        """`embedding` (N, 512)."""
        return self._net.run_tensors(inputs)

    def post(self, outputs: Tensors) -> torch.Tensor:
        """(N, 512) as the net gave them; some converters take the length too, else see `unit`."""
        return outputs["embedding"]

    def embed(self, crops: torch.Tensor) -> torch.Tensor:
        """As `post`, of (N, 3, 112, 112) crops."""
        return self.post(self.run(self.pre(crops)))


class Converter:
    """Vectors of one recogniser as another's.

    Args:
        net: of kind "crossface".

    Raises:
        ModelError: a net of another kind.
    """

    def __init__(self, net: TensorNet) -> None:
        need_kind(net, "crossface")
        self._net = net

    @property
    def spaces(self) -> tuple[str, str]:
        """The space it takes and the one it gives."""
        return self._net.card.embedding_from, self._net.card.embedding

    def pre(self, embeddings: torch.Tensor, space: str) -> Tensors:
        """`embedding` of (N, 512), not normalised.

        Raises:
            ModelError: vectors of another space.
        """
        if space != self._net.card.embedding_from:
            raise ModelError(
                f"model {self._net.card.id} got vectors of another recogniser",
                expected=self._net.card.embedding_from,
                found=space,
                hint=f"make the identity again with the recogniser {self._net.card.embedding_from}",
            )
        return {"embedding": embeddings}

    def run(self, inputs: Tensors) -> Tensors:
        """`converted` (N, 512)."""
        return self._net.run_tensors(inputs)

    def post(self, outputs: Tensors) -> torch.Tensor:
        """(N, 512) as the net gave them."""
        return outputs["converted"]

    def convert(self, embeddings: torch.Tensor, space: str) -> torch.Tensor:
        """As `post`, of (N, 512) vectors of `space`."""
        return self.post(self.run(self.pre(embeddings, space)))


def unit(embeddings: torch.Tensor) -> torch.Tensor:
    """(..., 512) of length 1: what is compared, by the cosine."""
    return functional.normalize(embeddings, dim=-1)
