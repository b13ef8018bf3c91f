"""Sparse tensors unpack to what was packed."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from faceplate.errors import ModelError
from faceplate.models.convert.sparse import Level, densify


def pack(
    full: NDArray[Any], traversal: list[int], blocks: dict[int, int], compressed: list[bool]
) -> tuple[NDArray[Any], list[Level]]:
    """The format's definition, written the plain way: split blocked axes, order them, walk the tree level by level."""
    shape: list[int] = []
    for axis, size in enumerate(full.shape):
        shape += [size // blocks[axis], blocks[axis]] if axis in blocks else [size]
    start = np.cumsum([0] + [2 if axis in blocks else 1 for axis in range(full.ndim)])
    order = [int(start[axis]) for axis in traversal] + [int(start[axis]) + 1 for axis in blocks]
    nodes = [full.reshape(shape).transpose(order)]
    levels = []
    for sparse, axis in zip(compressed, order, strict=True):
        size = shape[axis]
        if not sparse:
            levels.append(Level(size))
            nodes = [node[i] for node in nodes for i in range(size)]
            continue
        kept = [[i for i in range(size) if np.any(node[i])] for node in nodes]
        segments = np.cumsum([0] + [len(row) for row in kept]).astype(np.int64)
        levels.append(Level(0, segments, np.array([i for row in kept for i in row], np.int64)))
        nodes = [node[i] for node, row in zip(nodes, kept, strict=True) for i in row]
    return np.array([float(node) for node in nodes], np.float32), levels


@given(st.data())
def test_unpacking_inverts_packing(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3))
    blocks = {axis: data.draw(st.integers(1, 3)) for axis in range(rank) if data.draw(st.booleans())}
    shape = [data.draw(st.integers(1, 4)) * blocks.get(axis, 1) for axis in range(rank)]
    seed = data.draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    full = (rng.integers(1, 100, shape) * (rng.random(shape) < data.draw(st.floats(0, 1)))).astype(np.float32)
    traversal = data.draw(st.permutations(range(rank)))
    compressed = data.draw(st.lists(st.booleans(), min_size=rank, max_size=rank)) + [False] * len(blocks)
    values, tree = pack(full, traversal, blocks, compressed)
    unpacked = densify(values, full.shape, tree, traversal, list(blocks))
    np.testing.assert_array_equal(unpacked, full)
    assert unpacked.dtype == full.dtype


def test_compressed_blocks_are_refused() -> None:
    dense, compressed = Level(2), Level(0, np.array([0, 1, 2]), np.array([0, 0]))
    with pytest.raises(ModelError, match="compressed blocks"):
        densify(np.ones(2, np.float32), (2,), [dense, compressed], [0], [0])
