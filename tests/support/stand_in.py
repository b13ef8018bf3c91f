"""Nets whose answer is known: for looking at what an engine makes of a swapper's picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from faceplate.face import Identity
from faceplate.faces import topology
from faceplate.nets.swappers.embedding import EmbeddingSwapper
from faceplate.swap.neural.engine import NeuralEngine
from tests.support.random_nets import CPU, known

Paint = Callable[[torch.Tensor], torch.Tensor]


class StandIn:
    """A swapper's net that does what it is told to the picture; `mask` gives its own matte.

    Args:
        paint: (N, 3, s, s) 0..1 to the same.
        mask: (N, 1, s, s) of the pictures, for a card with a mask.
        model_id: whose card it has.
    """

    device = CPU

    def __init__(self, paint: Paint, mask: Paint | None = None, model_id: str = "inswapper_128") -> None:
        self.card = known()[model_id]
        self.runs: list[int] = []
        self._paint = paint
        self._mask = mask

    def run_tensors(self, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        self.runs.append(len(inputs["target"]))
        mean, std = (torch.tensor(value).view(3, 1, 1) for value in (self.card.mean, self.card.std))
        low, high = self.card.output_range
        picture = self._paint(inputs["target"] * std + mean)
        made = {"output": picture * (high - low) + low}
        if self._mask is not None:
            made["mask"] = self._mask(picture)
        return made


def warmer(pictures: torch.Tensor) -> torch.Tensor:
    """A cast, which a colour solve takes out again."""
    return (pictures * torch.tensor([1.1, 1.0, 0.9]).view(3, 1, 1)).clamp(0, 1)


def posterised(pictures: torch.Tensor) -> torch.Tensor:
    """A change that nobody overlooks."""
    return torch.round(pictures * 5) / 5


def engine_of(net: Any) -> NeuralEngine:
    emap = torch.eye(512) if net.card.kind == "inswapper" else None
    return NeuralEngine(net.card.id, EmbeddingSwapper(net, emap), lambda identity, space: None)


def somebody(name: str = "somebody") -> Identity:
    """An identity that is an embedding and nothing else."""
    vector = np.full(512, 512**-0.5, np.float32)
    return Identity(name, f"{name:0<64}", None, topology.canonical(), {"w600k_r50": vector})  # type: ignore[arg-type]
