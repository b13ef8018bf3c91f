"""What one face changes in a frame, between the engine and the comp."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..errors import NumbersError
from ..frame import Box
from .base import FaceResult

_WORTH_CUTTING = 0.8
"""Part of a window under which it is cut to what is in it: to cut means to copy."""
_THIN = 4


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """One face's change over `window`; the plate and the result's planes are cut to it.

    Attributes:
        track: id.
        name: of who it becomes.
        window: plate px.
        plate: (3, h, w) as it was.
        edited: (3, h, w) as the engine would have it.
        matte: (h, w) 0..1, final.
        result: of the engine.
        facts: numbers that are still on the device.
    """

    track: int
    name: str
    window: Box
    plate: torch.Tensor
    edited: torch.Tensor
    matte: torch.Tensor
    result: FaceResult
    facts: Mapping[str, torch.Tensor]


def extent(result: FaceResult) -> tuple[slice, slice] | None:
    """Rows and columns outside which a result changes and knows nothing; all of them where little would be cut off, and
    on a GPU, which would have to be waited for.
    """
    if result.matte_core.device.type != "cpu":
        return slice(0, result.matte_core.shape[0]), slice(0, result.matte_core.shape[1])
    known = result.matte_core if result.st is None else result.matte_core + result.st[0]
    rows, columns = known.amax(1).nonzero(), known.amax(0).nonzero()
    if len(rows) == 0:
        return None
    found = slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)
    area = (found[0].stop - found[0].start) * (found[1].stop - found[1].start)
    return found if area < _WORTH_CUTTING * known.numel() else (slice(0, known.shape[0]), slice(0, known.shape[1]))


def cut(result: FaceResult, rows: slice, columns: slice) -> FaceResult:
    """The part of a result."""
    return FaceResult(
        edited=result.edited[:, rows, columns].contiguous(),
        matte_core=result.matte_core[rows, columns],
        matte_occluder=result.matte_occluder[rows, columns],
        st=None if result.st is None else result.st[:, rows, columns],
        facts=result.facts,
    )


def light_under(view: torch.Tensor, matte: torch.Tensor) -> torch.Tensor:
    """Luminance of a linear view under a matte, summed over every fourth pixel of every fourth row: one number."""
    thin = (slice(None, None, _THIN), slice(None, None, _THIN))
    lit = (view[:, *thin] * matte[thin]).sum((1, 2))
    return lit @ view.new_tensor([0.2126, 0.7152, 0.0722])


def numbers(facts: Mapping[str, Any], values: Iterator[float]) -> dict[str, float]:
    """The facts of one face, `values` for those that were on the device, and by how much the change is brighter."""
    known = {name: next(values) if isinstance(value, torch.Tensor) else value for name, value in facts.items()}
    before, after = known.pop("light_before"), known.pop("light_after")
    known["exposure_stops"] = math.log2(after / before) if min(before, after) > 0 else 0.0
    return known


def check_finite(plate: NDArray[Any], made: NDArray[Any], matte: NDArray[Any], engine: str) -> None:
    """Refuse a result that is no picture.

    Args:
        plate: (h, w, 3).
        made: (3, h, w) what takes its place where the matte is not 0.
        matte: (h, w).
        engine: name, for people.

    Raises:
        NumbersError: a pixel that the plate has is not finite any more.
    """
    broken = (~np.isfinite(made)).any(0) & np.isfinite(plate).all(-1) & (matte > 0)
    if broken.any() or np.isnan(matte).any():
        raise NumbersError(
            f"the engine {engine} gave no picture for this frame",
            expected="finite numbers",
            found=f"{int(broken.sum())} pixels that are NaN" if broken.any() else "a matte that is NaN",
        )
