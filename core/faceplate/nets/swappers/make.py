"""The adapter that a swapper's card asks for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from ...errors import ModelError
from ..base import TensorNet
from .base import Swapper
from .dfm import DfmSwapper
from .emap import last_initializer
from .embedding import EmbeddingSwapper
from .picture import PictureSwapper

_MATRIX = 2


def make_swapper(net: TensorNet, *paths: Path) -> Swapper:
    """The adapter of a net.

    Args:
        net: of the role "swapper".
        paths: its file, then others of which one may have the matrix that InSwapper's file has and its kin lack.

    Raises:
        ModelError: no swapper, of an unknown kind, or its file lacks what it needs.
    """
    match net.card.kind:
        case "inswapper":
            return EmbeddingSwapper(net, _emap(paths))
        case "swapper_unit" | "swapper_raw":
            return EmbeddingSwapper(net)
        case "swapper_picture":
            return PictureSwapper(net)
        case "dfm":
            return DfmSwapper(net)
    raise ModelError(
        f"model {net.card.id} is no swapper",
        expected="a model of the role swapper",
        found=f"role {net.card.role}, kind {net.card.kind or 'none'}",
        hint="faceplate models list names the swappers",
    )


def _emap(paths: Sequence[Path]) -> torch.Tensor | None:
    """The first matrix that one of the files ends with, None if none does."""
    for path in paths:
        found = last_initializer(path)
        if found is not None and found.ndim == _MATRIX:
            return found
    return None
