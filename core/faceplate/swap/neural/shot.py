"""What the engine settles once for a track: its colour against the plate's, and how finely the face is cut."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..base import ShotSolve

_LIMIT = 1.6
"""A net whose colour is further away than this factor is not wrong by a cast, and is left as it is beyond it."""
_FLOOR = 1e-3


@dataclass(frozen=True, slots=True)
class ShotLook:
    """One frame of a track.

    Attributes:
        plate: mean linear light of the skin, each channel.
        made: the same of what the net made of it.
        weight: px of skin that were looked at.
        boost: crops a side for this face.
    """

    plate: tuple[float, float, float]
    made: tuple[float, float, float]
    weight: float
    boost: int


def colour_look(plate: torch.Tensor, made: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """(7,) mean light of both (3, h, w) pictures under a weight (h, w), and the weight's sum."""
    total = weight.sum()
    means = (torch.cat([plate, made]) * weight).sum((1, 2)) / total.clamp(min=1e-6)
    return torch.cat([means, total[None]])


def gain_of(means: torch.Tensor) -> torch.Tensor:
    """(3,) the gain of one frame's `colour_look`, on its device."""
    gain = (means[:3] + _FLOOR) / (means[3:6] + _FLOOR)
    gain = gain.clamp(1.0 / _LIMIT, _LIMIT)
    return torch.where(means[6] > 0, gain, torch.ones_like(gain))


def solve(looks: Sequence[ShotLook]) -> ShotSolve:
    """The weighted median gain of each channel over the looks, and the largest boost that any of them asks for: what a
    single odd frame says does not count, and nothing changes in the middle of the shot.
    """
    seen = [look for look in looks if look.weight > 0 and all(map(math.isfinite, (*look.plate, *look.made)))]
    boost = max((look.boost for look in looks), default=1)
    if not seen:
        return ShotSolve((1.0, 1.0, 1.0), boost, 0)
    channels = [
        _median([_stops(look.plate[c], look.made[c]) for look in seen], [look.weight for look in seen])
        for c in range(3)
    ]
    red, green, blue = (2.0**stops for stops in channels)
    return ShotSolve((red, green, blue), boost, len(seen))


def _stops(plate: float, made: float) -> float:
    stops = math.log2((plate + _FLOOR) / (made + _FLOOR))
    return min(max(stops, -math.log2(_LIMIT)), math.log2(_LIMIT))


def _median(values: Sequence[float], weights: Sequence[float]) -> float:
    order = np.argsort(values, kind="stable")
    rising = np.cumsum(np.asarray(weights)[order])
    return float(np.asarray(values)[order][int(np.searchsorted(rising, rising[-1] / 2))])
