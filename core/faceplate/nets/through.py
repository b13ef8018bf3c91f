"""Crops taken through a net of another geometry, and what it changed brought back into them.

A swapper, a restorer and an editor each want the face elsewhere in their square. What lies between two squares is a
similarity that follows from the same five points: no face is looked for twice, and a restored face does not swim, since
these are the points that the shot's analysis has steadied.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch.nn import functional

from .templates import cut, place, put_back

_NOSE = 2
_EDGE = 0.08
"""Part of a square's side over which a change fades out towards its edge."""
_BORDER = 64
"""Px, as many as a square may be times too fine for the crop."""


def between(points: torch.Tensor, template: str, size: int, spread: float = 1.0) -> torch.Tensor:
    """(N, 2, 3) float64, crop px to px of a net's square.

    Args:
        points: (N, 5, 2) crop px, on the CPU.
        template: of the net.
        size: of its square, px.
        spread: how far the points are moved away from the nose first: above 1 the square holds more around the face.

    Raises:
        ModelError: no template has this name.
    """
    nose = points[:, _NOSE : _NOSE + 1]
    return place((points - nose) * spread + nose, template, size)


def cut_all(crops: torch.Tensor, places: torch.Tensor, size: int) -> torch.Tensor:
    """(N, 3, size, size) of (N, 3, h, w) crops, averaged where they shrink; see `templates.cut`."""
    return torch.stack([cut(crop, at, size) for crop, at in zip(crops, places, strict=True)])


def changed(
    crops: torch.Tensor, places: torch.Tensor, before: torch.Tensor, after: torch.Tensor, amount: float = 1.0
) -> torch.Tensor:
    """Crops with what a net changed: its change is put back, not its picture, so that detail which the net's square is
    too coarse for stays, and what it left alone stays exact.

    Args:
        crops: (N, 3, h, w) 0..1.
        places: (N, 2, 3) crop px to net px.
        before, after: (N, 3, s, s), the net's square as it went in and as it came out.
        amount: 0..1, how much of the change; 0 gives the crops.

    Returns:
        (N, 3, h, w) 0..1.
    """
    if amount == 0.0:
        return crops
    change = (after - before) * (fading(before.shape[-1]).to(before) * amount)
    height, width = crops.shape[-2:]
    back = torch.stack([_only_inside(one, at, height, width) for one, at in zip(change, places, strict=True)])
    return (crops + back).clamp_(0.0, 1.0)


def _only_inside(change: torch.Tensor, at: torch.Tensor, height: int, width: int) -> torch.Tensor:
    # what is repeated outside the square is this border of nothing, also when the square is halved a few times
    around = functional.pad(change, (_BORDER,) * 4)
    moved = at.clone()
    moved[:, 2] += _BORDER
    return put_back(around, moved, height, width)


@lru_cache(maxsize=16)
def fading(size: int) -> torch.Tensor:
    """(size, size) float32: 1, and towards the edge smoothly 0."""
    away = torch.minimum(torch.arange(size) + 0.5, size - 0.5 - torch.arange(size)) / (_EDGE * size)
    ramp = away.clamp(0.0, 1.0)
    ramp = ramp * ramp * (3.0 - 2.0 * ramp)
    return ramp[:, None] * ramp[None, :]


def resized(pictures: torch.Tensor, size: int) -> torch.Tensor:
    """(N, C, size, size): averaged where they shrink, bilinear where they grow; pixel centres at 0.5."""
    if pictures.shape[-2:] == (size, size):
        return pictures
    return functional.interpolate(pictures, (size, size), mode="bilinear", align_corners=False, antialias=True)
