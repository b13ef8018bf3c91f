"""Putting a change into the plate: exact where nothing changes, associative over several faces.

Pure functions on torch tensors; (C, h, w) pictures and (h, w) mattes of one window.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

_MINUS_ZERO = -(2**31)
"""The bits of -0 as an integer, which no other float has lower."""


def final_matte(
    core: torch.Tensor, occluder: torch.Tensor, holdout: torch.Tensor | None = None, strength: float = 1.0
) -> torch.Tensor:
    """What the comp uses: core x (1 - occluder) x (1 - hold-out) x strength.

    Args:
        core: (h, w) 0..1 from the engine.
        occluder: (h, w) 0..1, 1 in front of the face.
        holdout: (h, w) 0..1 from the host, 1 keeps the plate, or None.
        strength: 0..1.

    Returns:
        (h, w) float32 0..1; exactly 0 where any factor is 0. NaN in a hold-out keeps the plate.
    """
    if strength == 0.0:
        return torch.zeros_like(core)
    matte = torch.addcmul(core, core, occluder, value=-1.0)
    if holdout is not None:
        matte = matte * (1.0 - torch.nan_to_num(holdout, nan=1.0, posinf=1.0, neginf=0.0).clamp(0.0, 1.0))
    return matte.mul_(strength).clamp_(0.0, 1.0)


def compose(plate: torch.Tensor, edited: torch.Tensor, matte: torch.Tensor) -> torch.Tensor:
    """plate + matte x (edited - plate), bit for bit the plate where matte is 0 and where nothing was edited.

    Args:
        plate: (C, h, w) scene-linear, any value, NaN and inf included.
        edited: (C, h, w), same space.
        matte: (h, w) 0..1.

    Returns:
        (C, h, w), a new tensor. Where the matte is 1 it is `edited`; a plate pixel that is not finite keeps its value
        under a partial matte, because there is no way between it and a number.
    """
    blended = torch.lerp(plate, edited, matte.expand_as(plate))  # exact at both ends, for finite values
    if _all_finite(blended):
        return _with_minus_zeros(blended, plate)
    blended = torch.where(torch.isfinite(plate), blended, torch.where(matte >= 1.0, edited, plate))
    return torch.where((edited != plate).logical_and_(matte > 0.0), blended, plate)


def _all_finite(picture: torch.Tensor) -> bool:
    """A quick look on a CPU; on a GPU False, because asking would make the device wait."""
    return picture.device.type == "cpu" and math.isfinite(picture.sum().item())


def _with_minus_zeros(blended: torch.Tensor, plate: torch.Tensor) -> torch.Tensor:
    """`blended`, in place, with -0 again where the plate has it and nothing was added: -0 + 0 is 0. For a CPU."""
    bits = plate.view(torch.int32)
    if bits.amin().item() == _MINUS_ZERO:
        at = np.nonzero((bits == _MINUS_ZERO).numpy())
        there = blended.numpy()
        there[at] = np.where(there[at] == 0, np.float32(-0.0), there[at])
    return blended


def element(edited: torch.Tensor, matte: torch.Tensor) -> torch.Tensor:
    """Premultiplied RGBA of one face: (3, h, w) and (h, w) to (4, h, w); exactly 0 where the matte is."""
    out = edited.new_empty((4, *matte.shape))
    torch.mul(edited, matte, out=out[:3])
    out[3] = matte
    return out if _all_finite(out) else torch.where(matte > 0.0, out, torch.zeros_like(out))


def over(top: torch.Tensor, bottom: torch.Tensor) -> torch.Tensor:
    """Premultiplied RGBA over premultiplied RGBA, (4, h, w) each (Porter and Duff 1984); exact where `top` is empty."""
    alpha = top[3:4]
    return torch.where(alpha > 0.0, top + bottom * (1.0 - alpha), bottom)


def stacked_mattes(mattes: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """What is left to see of each face when later ones lie over earlier ones.

    Args:
        mattes: (h, w) each, in the order in which faces are put into the plate.

    Returns:
        As many mattes of the same size, whose sum is nowhere over 1: the coverages that Cryptomatte asks for.
    """
    left: list[torch.Tensor] = []
    free: torch.Tensor | None = None
    for matte in reversed(mattes):
        left.append(matte if free is None else matte * free)
        free = 1.0 - matte if free is None else free * (1.0 - matte)
    return left[::-1]
