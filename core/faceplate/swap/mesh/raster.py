"""The mesh drawn into pixels: per-point values become fields over the crop.

Written once in torch for every device. Smooth fields are drawn on a coarse grid, continued over their edge (`spill`)
and enlarged (`fields.Enlarger`); the error of that against drawing every pixel is bounded by a test.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from ...faces import topology

RING_REACH = 0.10
"""How far the extra ring of points lies outside the oval, fraction of the way from the middle of the face."""

_Z_STEPS = 1 << 20
_INDEX_BITS = 12
_EDGE = -1e-5


@cache
def ring_triangles() -> NDArray[np.int32]:
    """(T + 72, 3) int32: the face's triangles and a ring around the oval, whose outer points are numbered from 468 in
    the order of `topology.FACE_OVAL`. The ring lets fields run on over the edge of the face.
    """
    oval = topology.FACE_OVAL
    ring = []
    for here in range(len(oval)):
        after = (here + 1) % len(oval)
        outer, outer_after = topology.FACE_POINTS + here, topology.FACE_POINTS + after
        ring += [(oval[here], outer, outer_after), (oval[here], outer_after, oval[after])]
    made = np.concatenate([topology.triangles(), np.array(ring, np.int32)])
    made.flags.writeable = False
    return made


def with_ring(values: NDArray[np.floating]) -> NDArray[np.float32]:
    """(468 or more, K) per-point values to (504, K): the outer ring continues them away from the middle of the oval."""
    inner = np.asarray(values[: topology.FACE_POINTS], np.float32)
    oval = inner[list(topology.FACE_OVAL)]
    return np.concatenate([inner, oval + RING_REACH * (oval - oval.mean(0))])


def draw(
    points: torch.Tensor, triangles: torch.Tensor, values: torch.Tensor, height: int, width: int, step: int = 1
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rasterise a mesh with a depth buffer and interpolate values; triangles that face away are left out.

    Args:
        points: (N, 3) float32, px of the grid's frame, z away from the camera.
        triangles: (T, 3) int64; seen from the camera their normal has negative z.
        values: (N, K) float32.
        height, width: of the frame, px.
        step: px between samples; the first sample lies at step / 2.

    Returns:
        fields: (K, ceil(height / step), ceil(width / step)) float32, 0 outside the mesh.
        inside: same height and width, bool.
    """
    rows, columns = -(-height // step), -(-width // step)
    corners = points[triangles] / step
    nearest = _nearest_triangle(corners, rows, columns)
    inside = nearest >= 0
    at = inside.flatten().nonzero()[:, 0]
    chosen = nearest.flatten()[at]
    weights = _barycentric(corners[chosen], at % columns, at // columns)
    fields = points.new_zeros(values.shape[1], rows * columns)
    fields[:, at] = (values[triangles[chosen]] * weights[..., None]).sum(1).T
    return fields.view(-1, rows, columns), inside


def _barycentric(corners: torch.Tensor, column: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    x, y = column + 0.5, row + 0.5
    area = (b[:, 1] - c[:, 1]) * (a[:, 0] - c[:, 0]) + (c[:, 0] - b[:, 0]) * (a[:, 1] - c[:, 1])
    first = ((b[:, 1] - c[:, 1]) * (x - c[:, 0]) + (c[:, 0] - b[:, 0]) * (y - c[:, 1])) / area
    second = ((c[:, 1] - a[:, 1]) * (x - c[:, 0]) + (a[:, 0] - c[:, 0]) * (y - c[:, 1])) / area
    return torch.stack([first, second, 1 - first - second], 1)


def _nearest_triangle(corners: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """(rows, columns) int64, the visible triangle of each sample or -1. Depth and index share one integer, so that the
    winner does not depend on the order in which a device works.
    """
    flat = corners[..., :2]
    side_1, side_2 = flat[:, 1] - flat[:, 0], flat[:, 2] - flat[:, 0]
    turn = side_1[:, 0] * side_2[:, 1] - side_1[:, 1] * side_2[:, 0]
    limit = corners.new_tensor([columns, rows])
    low = (flat.amin(1) - 0.5).ceil().clamp(min=0).minimum(limit).long()
    high = (flat.amax(1) + 0.5).floor().clamp(min=0).minimum(limit).long()
    size = (high - low).clamp(min=0) * (turn < -1e-9)[:, None]
    count = size[:, 0] * size[:, 1]
    owner = torch.repeat_interleave(count)
    order = torch.arange(len(owner), device=corners.device) - (count.cumsum(0) - count)[owner]
    span = size[owner, 0]
    column, row = low[owner, 0] + order % span, low[owner, 1] + order // span
    weights = _barycentric(corners[owner], column, row)
    depth = corners[..., 2]
    near, far = depth.min(), depth.max()
    level = ((depth[owner] * weights).sum(1) - near) / (far - near).clamp(min=1e-6) * (_Z_STEPS - 1)
    key = (level.clamp(0, _Z_STEPS - 1).long() << _INDEX_BITS) | owner
    hit = (weights >= _EDGE).all(1)
    none = torch.iinfo(torch.int64).max
    best = torch.full((rows * columns,), none, dtype=torch.int64, device=corners.device)
    best.scatter_reduce_(0, (row * columns + column)[hit], key[hit], "amin")
    triangle = best & ((1 << _INDEX_BITS) - 1)
    return torch.where(best == none, -1, triangle).view(rows, columns)


def spill(fields: torch.Tensor, inside: torch.Tensor) -> torch.Tensor:
    """Continue fields one sample over the edge of the mesh (mean of the neighbours), so that enlarging them does not
    mix in what lies outside.
    """
    known = functional.pad(torch.cat([fields, inside[None].to(fields.dtype)]), (1, 1, 1, 1))
    rows = known[:, :-2] + known[:, 1:-1] + known[:, 2:]
    total = rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:]
    return torch.where(inside, fields, total[:-1] / total[-1].clamp(min=1.0))
