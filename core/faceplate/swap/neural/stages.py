"""What else works on a crop beside the swapper: restorers and editors change it, mattes say where the face is.

Crops of a batch may be of several frames and people; each stage makes one batch of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from ...job import SwapSettings


class PictureStage(Protocol):
    """A restorer or an editor."""

    size: int
    """Side of a crop that this stage can fill with detail, px; 0 for none of its own."""

    def __call__(self, crops: torch.Tensor, points: torch.Tensor, settings: Sequence[SwapSettings]) -> torch.Tensor:
        """The crops, changed.

        Args:
            crops: (N, 3, s, s) float32 RGB, sRGB-encoded 0..1, on the device.
            points: (N, 5, 2) float64 crop px on the CPU, in the order of `nets.templates`.
            settings: of each face in its frame.
        """
        ...


class MatteStage(Protocol):
    """A net that says where the face is."""

    def __call__(self, crops: torch.Tensor, settings: Sequence[SwapSettings]) -> torch.Tensor:
        """(N, s, s) float32 0..1, 1 where the plate's face is to be seen; crops as for `PictureStage`, of the plate."""
        ...
