"""Unpacks tflite's sparse tensors (the format of TACO: Kjolstad et al., "The Tensor Algebra Compiler", 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ModelError


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """One level of the storage tree: dense with `size` children a node, or compressed.

    Attributes:
        size: children of every node of a dense level.
        segments: compressed: children of node i are entries segments[i] to segments[i + 1]; None when dense.
        indices: compressed: the coordinate of each entry; None when dense.
    """

    size: int
    segments: NDArray[np.int64] | None = None
    indices: NDArray[np.int64] | None = None


def densify(
    values: NDArray[Any],
    shape: tuple[int, ...],
    levels: Sequence[Level],
    traversal: Sequence[int],
    blocked: Sequence[int],
) -> NDArray[Any]:
    """The full tensor, zero where nothing is stored.

    Args:
        values: the stored entries, in the order of the tree's leaves.
        shape: of the result.
        levels: one for each dimension and, after these, one for each blocked dimension.
        traversal: which dimension each of the first `len(shape)` levels walks.
        blocked: which dimension each further level, always dense, subdivides.

    Raises:
        ModelError: a blocked level is compressed, so that the size of its blocks is not known.
    """
    if any(level.segments is not None for level in levels[len(shape) :]):
        raise ModelError("sparse weights with compressed blocks are not understood", expected="dense blocks")
    node = np.zeros(1, np.int64)
    coordinates: list[NDArray[np.int64]] = []
    for level in levels:
        if level.segments is None or level.indices is None:
            counts = np.full(len(node), level.size, np.int64)
        else:
            counts = level.segments[node + 1] - level.segments[node]
        parent = np.repeat(np.arange(len(node)), counts)
        nth = np.arange(len(parent)) - np.repeat(np.cumsum(counts) - counts, counts)
        if level.segments is None or level.indices is None:
            node = node[parent] * level.size + nth
            coordinate = nth
        else:
            node = level.segments[node[parent]] + nth
            coordinate = level.indices[node]
        coordinates = [known[parent] for known in coordinates] + [coordinate]

    place: list[NDArray[np.int64]] = [np.zeros(0, np.int64)] * len(shape)
    for dimension, coordinate in zip(traversal, coordinates, strict=False):
        place[dimension] = coordinate
    for dimension, coordinate, level in zip(blocked, coordinates[len(shape) :], levels[len(shape) :], strict=True):
        place[dimension] = place[dimension] * level.size + coordinate
    full = np.zeros(shape, values.dtype)
    full[tuple(place)] = values[node]
    return full
