"""Cryptomatte layers of the identities (Psyop, "Cryptomatte Specification" 1.2.0)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import mmh3
import numpy as np
from numpy.typing import NDArray

from ..frame import Box
from .exr import ExrLayer

Plane32 = NDArray[np.float32]
Matte = Plane32 | tuple[Box, Plane32]

_EXPONENT_BIT = 1 << 23


def cryptomatte_id(name: str) -> int:
    """The 32 bits that stand for a name: MurmurHash3_32 of its UTF-8, never those of a denormal, inf or NaN."""
    bits = mmh3.hash(name.encode(), signed=False)
    return bits ^ _EXPONENT_BIT if (bits >> 23) & 0xFF in (0, 0xFF) else bits


def cryptomatte_layers(
    name: str, mattes: Mapping[str, Matte], data_window: Box | None = None, ranks: int = 6
) -> tuple[list[ExrLayer], dict[str, str]]:
    """Layers "name00", "name01", ... and the attributes that name what is in them.

    Where mattes add up to more than 1 they are scaled to add up to 1. NaN counts as 0. Give the same names and ranks
    on every frame, with an empty matte where an identity is absent.

    Args:
        name: of the Cryptomatte, short ASCII.
        mattes: identity to coverage 0..1: (H, W) float32 filling the data window, or (window, (h, w) float32) that is
            zero outside its window, in plate px.
        data_window: of the part that gets the layers; may be left out when a matte fills it.
        ranks: how many mattes can meet in one pixel, even; two ranks are one layer. The lowest coverages beyond are
            lost. Planes of ranks that hold nothing are one and the same array.

    Returns:
        (layers, attributes) for `exr.write_exr`. All planes float32; write them with a lossless compression.
    """
    if ranks < 2 or ranks % 2:
        raise ValueError(f"ranks must be even and at least 2, not {ranks}")
    if data_window is None:
        data_window = _common_window(mattes)
    planes = _Ranks(data_window, ranks)
    for who, matte in mattes.items():
        planes.insert(cryptomatte_id(who), *_placed(matte, data_window))
    planes.normalise()
    layers = []
    for first in range(0, ranks, 2):
        (id0, coverage0), (id1, coverage1) = planes.pair(first), planes.pair(first + 1)
        layers.append(ExrLayer(f"{name}{first // 2:02d}", {"R": id0, "G": coverage0, "B": id1, "A": coverage1}))
    return layers, _attributes(name, mattes)


class _Ranks:
    """Full planes of (id, coverage) by falling coverage, filled by insertion: only the mattes' windows are touched."""

    def __init__(self, window: Box, ranks: int) -> None:
        self._window = window
        self._ranks = ranks
        self._used: list[tuple[Plane32, Plane32]] = []
        self._touched: list[tuple[slice, slice]] = []
        self._empty = self._zeros()

    def _zeros(self) -> Plane32:
        return np.zeros((self._window.height, self._window.width), np.float32)

    def insert(self, bits: int, window: Box, coverage: Plane32) -> None:
        """Add a matte; where an earlier one covers more, or the same, it goes a rank lower."""
        at = window.slices(self._window)
        ids = np.where(coverage > 0, np.array(bits, np.uint32).view(np.float32), np.float32(0))
        for rank in range(self._ranks):
            if not coverage.any():
                break
            if rank == len(self._used):
                self._used.append((self._zeros(), self._zeros()))
            held_ids, held = self._used[rank][0][at], self._used[rank][1][at]
            more = coverage > held
            next_ids, next_coverage = np.where(more, held_ids, ids), np.where(more, held, coverage)
            np.copyto(held_ids, ids, where=more)
            np.copyto(held, coverage, where=more)
            ids, coverage = next_ids, next_coverage
        self._touched.append(at)

    def normalise(self) -> None:
        """Scale down where the mattes of a pixel add up to more than 1."""
        if len(self._used) < 2:
            return
        for at in self._touched:
            total = np.sum([coverage[at] for _, coverage in self._used], axis=0)
            over = np.maximum(total, np.float32(1))
            for _, coverage in self._used:
                coverage[at] /= over

    def pair(self, rank: int) -> tuple[Plane32, Plane32]:
        """(id, coverage) of a rank."""
        return self._used[rank] if rank < len(self._used) else (self._empty, self._empty)


def _common_window(mattes: Mapping[str, Matte]) -> Box:
    whole = next((matte for matte in mattes.values() if isinstance(matte, np.ndarray)), None)
    if whole is None:
        raise ValueError("without a matte that fills it the data window has to be given")
    return Box(0, 0, whole.shape[1], whole.shape[0])


def _placed(matte: Matte, data_window: Box) -> tuple[Box, Plane32]:
    """The part of the matte inside the data window that is not zero, clean."""
    window, values = matte if isinstance(matte, tuple) else (data_window, matte)
    if values.shape != (window.height, window.width):
        raise ValueError(f"a matte of {values.shape} does not fill its window {window}")
    rows, columns = np.flatnonzero(values.any(axis=1)), np.flatnonzero(values.any(axis=0))
    if not rows.size:
        return Box(0, 0, 0, 0), np.zeros((0, 0), np.float32)
    x0, y0 = window.x0, window.y0
    used = Box(x0 + int(columns[0]), y0 + int(rows[0]), x0 + int(columns[-1]) + 1, y0 + int(rows[-1]) + 1)
    inside = used.intersect(data_window)
    if inside.is_empty:
        return Box(0, 0, 0, 0), np.zeros((0, 0), np.float32)
    cut = values[inside.slices(window)]
    return inside, np.clip(np.nan_to_num(cut, nan=0.0), 0, 1).astype(np.float32, copy=False)


def _attributes(name: str, names: Mapping[str, Any]) -> dict[str, str]:
    manifest = {who: f"{cryptomatte_id(who):08x}" for who in names}
    key = f"cryptomatte/{cryptomatte_id(name):08x}"[:-1]  # seven digits: old readers cut longer keys
    return {
        f"{key}/name": name,
        f"{key}/hash": "MurmurHash3_32",
        f"{key}/conversion": "uint32_to_float32",
        f"{key}/manifest": json.dumps(manifest, ensure_ascii=False, separators=(",", ":")),
    }
