"""Exact times. Editors count in frames of rates such as 24000/1001, which floating-point numbers only come near to.

Everything inside this room is seconds as a `Fraction`; rates are exact, so that a frame number is never off by a
rounding, however long the timeline.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import TYPE_CHECKING

from ...errors import InputError
from ..movies.timecode import Timecode

if TYPE_CHECKING:
    from opentimelineio.opentime import RationalTime

_NTSC = (24, 30, 48, 60, 90, 120)
_NEAR = 0.006
"""How far the spellings of an NTSC rate lie from it: 23.98, 23.976, 29.97, 59.94."""

_FINEST = 100_000
"""Values of a time are taken as multiples of 1/100,000 frame, which undoes the rounding of rescaled times."""


@functools.lru_cache(256)
def exact_rate(rate: float) -> Fraction:
    """The rate that a number stands for: 23.976 and 23.98 are 24000/1001.

    Raises:
        InputError: no rate at all.
    """
    if not (math.isfinite(rate) and 0 < rate <= 1_000_000):
        raise InputError("the timeline has a time without a frame rate", found=f"{rate} frames a second")
    for whole in _NTSC:
        exact = Fraction(whole * 1000, 1001)
        if abs(rate - float(exact)) < _NEAR:
            return exact
    return Fraction(rate).limit_denominator(1001)


def seconds(time: RationalTime) -> Fraction:
    """An OTIO time as exact seconds.

    Raises:
        InputError: its rate is none, or its value no number.
    """
    if not math.isfinite(time.value):
        raise InputError("the timeline has a time that is no number", found=str(time.value))
    return Fraction(time.value).limit_denominator(_FINEST) / exact_rate(time.rate)


def timecode_text(time: Fraction, rate: Fraction, *, drop: bool = False) -> str:
    """Seconds as timecode of a rate; drop frame only where the rate has it."""
    fps = round(rate)
    return str(Timecode(math.floor(time * rate), max(1, fps), drop and fps % 30 == 0).plus(0))
