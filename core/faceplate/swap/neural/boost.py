"""Pixel boost: a crop n times as fine goes through a net of a fixed size as n x n pictures in one batch.

Pixel (i, j) of every n x n block of the fine crop goes to picture i * n + j, so that each is the whole face, seen by a
fraction of a pixel further. What comes out is put together again. Nets do not answer alike to such shifts, and the
difference would show as a grid of n px. So what a picture differs by, over its own low frequencies, from what all of
them agree on is taken out; and what goes in is softened by a fraction of the net's pixel, so that it aliases less.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from ...nets.filters import gaussian

LARGEST = 4
"""More than that a net has nothing to say to."""

_ENOUGH = 0.85
"""Part of the plate's own resolution that a crop has to have."""
_PREFILTER = 0.25
"""Sigma of what goes in, px of the net."""
_AGREED = 1.5
"""Sigma over which a picture's offset from the others is taken, px of the net."""


def factor_for(crop_px: float, size: int) -> int:
    """Crops a side for a face whose crop covers `crop_px` px of the plate, in a net of `size` px: 1 to `LARGEST`."""
    factor = 1
    while factor < LARGEST and factor * size < _ENOUGH * crop_px:
        factor += 1
    return factor


def split(fine: torch.Tensor, factor: int) -> torch.Tensor:
    """(3, n s, n s) to (n * n, 3, s, s), softened a little first."""
    if factor == 1:
        return fine[None]
    soft = gaussian(fine[None], _PREFILTER * factor)
    return _strided(soft[0], factor)


def join(parts: torch.Tensor, factor: int) -> torch.Tensor:
    """(n * n, C, s, s) to (C, n s, n s): `split` undone, without the grid that pictures which disagree would leave."""
    if factor == 1:
        return parts[0]
    fine = _interleaved(parts, factor)
    agreed = _without_period(fine, factor)
    offset = gaussian(_strided(fine - agreed, factor), _AGREED)
    offset = offset - offset.mean(0, keepdim=True)  # what all have in common is detail
    return fine - _interleaved(offset, factor)


def _strided(fine: torch.Tensor, factor: int) -> torch.Tensor:
    """(C, n s, n s) to (n * n, C, s, s)."""
    parts = functional.pixel_unshuffle(fine[None], factor)[0]
    return parts.reshape(len(fine), factor * factor, *parts.shape[1:]).transpose(0, 1)


def _interleaved(parts: torch.Tensor, factor: int) -> torch.Tensor:
    return functional.pixel_shuffle(parts.transpose(0, 1).flatten(0, 1)[None], factor)[0]


def _without_period(fine: torch.Tensor, factor: int) -> torch.Tensor:
    """The mean over every n x n window, taken twice so that it lies symmetrically: what repeats every n px is gone."""
    box = torch.ones(factor, dtype=torch.float64)
    profile = functional.conv1d(box.view(1, 1, -1), box.view(1, 1, -1), padding=factor - 1).flatten()
    kernel = (profile / profile.sum()).to(fine)
    reach = factor - 1
    around = functional.pad(fine[:, None], (reach, reach, reach, reach), mode="reflect")
    across = functional.conv2d(around, kernel.view(1, 1, 1, -1))
    return functional.conv2d(across, kernel.view(1, 1, -1, 1))[:, 0]
