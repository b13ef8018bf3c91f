"""An engine that works on a face in overlapping tiles: for a face that does not fit the memory as a whole."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch

from ..face import Points
from ..frame import Box
from ..job import SwapSettings
from .base import Engine, FaceCrop, FaceResult, ShotEngine

_OVERLAP = 0.5
"""Of a tile's own side, to each side: what is measured in neighbouring tiles goes over smoothly."""
_LEAST_PX = 16


def in_parts(engine: Engine, count: int) -> Engine:
    """The engine, in need of a fraction of its memory: `count` x `count` tiles; one whose nets need the whole face in
    smaller batches.
    """
    return engine.smaller(count * count) if isinstance(engine, ShotEngine) else TiledEngine(engine, count)


class TiledEngine:
    """Cuts each crop into `count` x `count` tiles, has the engine do one after the other, and blends them.

    What the engine measures over the whole face (light, sharpness) it now measures over a tile, so that the pixels
    differ from those of the engine itself; the outline of the change and where it is nothing are the same.

    Args:
        engine: does the work.
        count: tiles to a side.
    """

    def __init__(self, engine: Engine, count: int) -> None:
        self._engine = engine
        self._count = count
        self.name = engine.name
        self.version = engine.version
        self.encoding: Literal["linear", "display"] = engine.encoding

    def prepare(self, identity: Any) -> Any:
        """As the engine does."""
        return self._engine.prepare(identity)

    def window(self, landmarks: Points, settings: SwapSettings, pixel_aspect: float = 1.0) -> Box:
        """As the engine does."""
        return self._engine.window(landmarks, settings, pixel_aspect)

    def swap(self, crops: Sequence[FaceCrop], prepared: Any) -> list[FaceResult]:
        """One face after the other, tile by tile. See `Engine.swap`."""
        return [self._one(crop, prepared) for crop in crops]

    def _one(self, crop: FaceCrop, prepared: Any) -> FaceResult:
        _, height, width = crop.view.shape
        edited = torch.zeros_like(crop.view)
        core, occluder = crop.view.new_zeros((height, width)), crop.view.new_zeros((height, width))
        st, nearest = crop.view.new_zeros((2, height, width)), crop.view.new_zeros((height, width))
        facts: list[tuple[float, Mapping[str, float | torch.Tensor]]] = []
        mapped = True
        for rows, down in tiles(height, self._count):
            for columns, across in tiles(width, self._count):
                (part,) = self._engine.swap([_cut(crop, rows, columns)], prepared)
                weight = torch.from_numpy(np.outer(down, across)).to(crop.view)
                edited[:, rows, columns] += part.edited * weight
                core[rows, columns] += part.matte_core * weight
                occluder[rows, columns] += part.matte_occluder * weight
                if part.st is None:
                    mapped = False
                else:
                    closer = weight > nearest[rows, columns]
                    st[:, rows, columns] = torch.where(closer, part.st, st[:, rows, columns])
                    nearest[rows, columns] = torch.maximum(nearest[rows, columns], weight)
                facts.append((float((part.matte_core * weight).sum()), part.facts))
        edited = torch.where(core > 0, edited, crop.view)  # what is left alone comes back bit for bit
        return FaceResult(edited, core.clamp_(0, 1), occluder.clamp_(0, 1), st if mapped else None, _merged(facts))


def tiles(length: int, count: int) -> list[tuple[slice, Any]]:
    """Overlapping parts of `length` pixels, each with its weights (float32); the weights of a pixel sum to 1."""
    count = max(1, min(count, length // (2 * _LEAST_PX)))
    edges = [round(length * number / count) for number in range(count + 1)]
    reach = max(_LEAST_PX, int(_OVERLAP * length / count / 2))
    parts = []
    for low, high in itertools.pairwise(edges):
        start, stop = max(0, low - reach), min(length, high + reach)
        at = np.arange(start, stop, dtype=np.float32) + np.float32(0.5)
        weight = np.ones_like(at)
        if low > 0:
            weight *= np.clip((at - (low - reach)) / (2 * reach), 0, 1)
        if high < length:
            weight *= np.clip((high + reach - at) / (2 * reach), 0, 1)
        parts.append((slice(start, stop), weight))
    return parts


def _cut(crop: FaceCrop, rows: slice, columns: slice) -> FaceCrop:
    corner = np.array([columns.start, rows.start, 0], np.float32)
    x, y = crop.window.x0, crop.window.y0
    return dataclasses.replace(
        crop,
        view=crop.view[:, rows, columns].contiguous(),
        window=Box(x + columns.start, y + rows.start, x + columns.stop, y + rows.stop),
        landmarks=crop.landmarks - corner,
    )


def _merged(parts: Sequence[tuple[float, Mapping[str, float | torch.Tensor]]]) -> dict[str, float]:
    """Numbers of a face from those of its tiles, by how much of the face each holds."""
    total = sum(weight for weight, _ in parts)
    if total <= 0:
        return {name: float(value) for name, value in parts[0][1].items()}
    held = [(weight / total, facts) for weight, facts in parts if weight > 0]
    return {name: sum(share * float(facts.get(name, 0.0)) for share, facts in held) for name in held[0][1]}
