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

Matte = NDArray[np.float32] | tuple[Box, NDArray[np.float32]]

_EXPONENT_BIT = 1 << 23


def cryptomatte_id(name: str) -> int:
    """The 32 bits that stand for a name: MurmurHash3_32 of its UTF-8, never those of a denormal, inf or NaN."""
    bits = mmh3.hash(name.encode(), signed=False)
    return bits ^ _EXPONENT_BIT if (bits >> 23) & 0xFF in (0, 0xFF) else bits


def cryptomatte_layers(
    name: str, mattes: Mapping[str, Matte], data_window: Box, ranks: int = 6
) -> tuple[list[ExrLayer], dict[str, str]]:
    """Layers "name00", "name01", ... and the attributes that name what is in them.

    Where mattes add up to more than 1 they are scaled to add up to 1. NaN counts as 0. Give the same names and ranks
    on every frame, with an empty matte where an identity is absent.

    Args:
        name: of the Cryptomatte, short ASCII.
        mattes: identity to coverage 0..1: (H, W) float32 filling the data window, or (window, (h, w) float32) that is
            zero outside its window, in plate px.
        data_window: of the part that gets the layers.
        ranks: how many mattes can meet in one pixel, even; two ranks are one layer. The lowest coverages beyond are
            lost. Planes of ranks that hold nothing are one and the same array.

    Returns:
        (layers, attributes) for `exr.write_exr`. All planes float32; write them with a lossless compression.
    """
    if ranks < 2 or ranks % 2:
        raise ValueError(f"ranks must be even and at least 2, not {ranks}")
    placed = {who: _placed(matte, data_window) for who, matte in mattes.items()}
    union = Box(0, 0, 0, 0)
    for window, _ in placed.values():
        union = union.union(window)
    ids, coverage = _ranked(placed, union, ranks)
    empty = np.zeros((data_window.height, data_window.width), np.float32)
    layers = []
    for layer in range(ranks // 2):
        planes = {}
        for component, source in zip("RGBA", (ids, coverage, ids, coverage), strict=True):
            rank = 2 * layer + ("RGBA".index(component) >= 2)
            planes[component] = _spread(source[rank], union, data_window) if rank < len(source) else empty
        layers.append(ExrLayer(f"{name}{layer:02d}", planes))
    return layers, _attributes(name, placed)


def _placed(matte: Matte, data_window: Box) -> tuple[Box, NDArray[np.float32]]:
    """The matte inside the data window, clean."""
    window, values = matte if isinstance(matte, tuple) else (data_window, matte)
    if values.shape != (window.height, window.width):
        raise ValueError(f"a matte of {values.shape} does not fill its window {window}")
    inside = window.intersect(data_window)
    if inside.is_empty:
        return Box(0, 0, 0, 0), np.zeros((0, 0), np.float32)
    cut = values[inside.slices(window)]
    return inside, np.clip(np.nan_to_num(cut, nan=0.0), 0, 1).astype(np.float32, copy=False)


def _ranked(
    placed: Mapping[str, tuple[Box, NDArray[np.float32]]], union: Box, ranks: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(ids, coverage), each (ranks that are used, h, w) over the union of the windows, highest coverage first."""
    names = list(placed)
    stack = np.zeros((len(names), union.height, union.width), np.float32)
    for index, (window, values) in enumerate(placed.values()):
        stack[index][window.slices(union)] = values
    if not stack.size:
        return stack[:0], stack[:0]
    total = stack.sum(axis=0, dtype=np.float64)
    if total.max() > 1:
        stack = (stack / np.maximum(total, 1)).astype(np.float32)
    order = np.argsort(-stack, axis=0, kind="stable")[:ranks]
    coverage = np.take_along_axis(stack, order, axis=0)
    ids = np.array([cryptomatte_id(who) for who in names], np.uint32).view(np.float32)
    return np.where(coverage > 0, ids[order], np.float32(0)), coverage


def _spread(values: NDArray[np.float32], window: Box, data_window: Box) -> NDArray[np.float32]:
    plane = np.zeros((data_window.height, data_window.width), np.float32)
    plane[window.slices(data_window)] = values
    return plane


def _attributes(name: str, names: Mapping[str, Any]) -> dict[str, str]:
    manifest = {who: f"{cryptomatte_id(who):08x}" for who in names}
    key = f"cryptomatte/{cryptomatte_id(name):08x}"[:-1]  # seven digits: old readers cut longer keys
    return {
        f"{key}/name": name,
        f"{key}/hash": "MurmurHash3_32",
        f"{key}/conversion": "uint32_to_float32",
        f"{key}/manifest": json.dumps(manifest, ensure_ascii=False, separators=(",", ":")),
    }
