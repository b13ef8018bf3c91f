"""What all swappers have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import torch

from ..base import TensorNet, Tensors

SourceKind = Literal["embedding", "picture", "none"]

_MASKS = ("mask", "target_mask")


@dataclass(frozen=True, slots=True, eq=False)
class Swapped:
    """What a swapper gives for a batch of crops.

    Attributes:
        pictures: (N, 3, size, size) float32 RGB, sRGB-encoded, 0..1.
        mattes: (N, size, size) float32 0..1, the net's own word on where it changes the face; None if it has none.
    """

    pictures: torch.Tensor
    mattes: torch.Tensor | None


class Swapper(Protocol):
    """One adapter. `source_kind` says what `source` takes: an identity's vector, a picture of the person, nothing."""

    net: TensorNet
    source_kind: SourceKind

    def source(self, given: torch.Tensor) -> torch.Tensor:
        """What of a person goes into the net, (1, ...), made once an identity.

        Args:
            given: (512,) vector in the space of the card's `embedding`, as the recogniser or converter gave it; or
                (3, h, w) picture in `source_place`; or an empty tensor.
        """
        ...

    @property
    def source_place(self) -> tuple[str, int]:
        """Template and size of the picture that `source` takes; ("", 0) where it takes none."""
        ...

    @property
    def size(self) -> int:
        """Side of a crop, px."""
        ...

    def pre(self, crops: torch.Tensor, source: torch.Tensor) -> Tensors:
        """What the net gets for (N, 3, size, size) crops and (1, ...) or (N, ...) of `source`."""
        ...

    def run(self, inputs: Mapping[str, torch.Tensor]) -> Tensors:
        """The net."""
        ...

    def post(self, outputs: Mapping[str, torch.Tensor]) -> Swapped:
        """What the net gave, as pictures and mattes."""
        ...


def gives_matte(swapper: Swapper) -> bool:
    """Whether it says where it changes the face."""
    return any(spec.name in _MASKS for spec in swapper.net.card.outputs)


def swapped(swapper: Swapper, crops: torch.Tensor, source: torch.Tensor) -> Swapped:
    """pre, run and post of a batch."""
    return swapper.post(swapper.run(swapper.pre(crops, source)))


def repeated(source: torch.Tensor, count: int) -> torch.Tensor:
    """(count, ...) of (1, ...) or (count, ...)."""
    return source.expand(count, *source.shape[1:]) if len(source) == 1 else source
