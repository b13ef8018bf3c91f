"""Face detectors: pictures in, boxes and five points out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

import torch

from ..base import TensorNet, Tensors, need_kind
from .boxes import Faces
from .scrfd import Scrfd
from .yoloface import YoloFace
from .yunet import YuNet


class Detector(Protocol):
    """What all adapters of detectors offer."""

    def pre(self, pictures: torch.Tensor, *, antialias: bool = True) -> Tensors: ...

    def run(self, inputs: Tensors) -> Tensors: ...

    def post(
        self, outputs: Tensors, size: tuple[int, int], *, threshold: float = 0.5, overlap: float = 0.4
    ) -> list[Faces]: ...

    def detect(self, pictures: torch.Tensor, *, threshold: float = 0.5, overlap: float = 0.4) -> list[Faces]: ...


DETECTORS: Mapping[str, Callable[[TensorNet], Detector]] = MappingProxyType(
    {"scrfd": Scrfd, "yoloface": YoloFace, "yunet": YuNet}
)
"""Adapters by the kind on a card."""


def detector_for(net: TensorNet) -> Detector:
    """The adapter of a detector's net.

    Raises:
        ModelError: the net is no detector.
    """
    need_kind(net, *DETECTORS)
    return DETECTORS[net.card.kind](net)
