"""The mesh drawn into pixels: per-point values become fields over the crop.

Written in torch for every device; the CPU has a twin (`raster_cpu`). Smooth fields are drawn on a coarse grid,
continued over their edge (`spill`) and enlarged (`fields.Enlarger`); the error of that against drawing every pixel is
bounded by a test.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from ...faces import topology
from . import raster_cpu

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
    if points.device.type == "cpu":
        made, covered = raster_cpu.draw(points.numpy(), triangles.numpy(), values.numpy(), height, width, step)
        return torch.from_numpy(made), torch.from_numpy(covered)
    return draw_on_any_device(points, triangles, values, height, width, step)


def draw_on_any_device(
    points: torch.Tensor, triangles: torch.Tensor, values: torch.Tensor, height: int, width: int, step: int = 1
) -> tuple[torch.Tensor, torch.Tensor]:
    """The reference for `draw`."""
    rows, columns = -(-height // step), -(-width // step)
    corners = points[triangles] / step
    planes = _planes(corners)
    nearest = _nearest_triangle(corners, planes, rows, columns)
    inside = nearest >= 0
    at = inside.flatten().nonzero()[:, 0]
    chosen = nearest.flatten()[at]
    weights = _at(planes[chosen, :3], at % columns, torch.div(at, columns, rounding_mode="floor"))
    fields = points.new_zeros(values.shape[1], rows * columns)
    fields[:, at] = torch.bmm(weights[:, None], values[triangles[chosen]])[:, 0].T
    return fields.view(-1, rows, columns), inside


def _planes(corners: torch.Tensor) -> torch.Tensor:
    """(T, 4, 3): barycentric weights and depth of each triangle as a x + b y + c of sample centres, from the corners
    (T, 3, 3). Degenerate triangles get huge weights and are never hit.
    """
    a, b, c = corners.unbind(1)
    area = (b[:, 1] - c[:, 1]) * (a[:, 0] - c[:, 0]) + (c[:, 0] - b[:, 0]) * (a[:, 1] - c[:, 1])
    area = torch.where(area.abs() < 1e-9, 1e-9, area)
    first_x, first_y = (b[:, 1] - c[:, 1]) / area, (c[:, 0] - b[:, 0]) / area
    second_x, second_y = (c[:, 1] - a[:, 1]) / area, (a[:, 0] - c[:, 0]) / area
    first = torch.stack([first_x, first_y, -first_x * c[:, 0] - first_y * c[:, 1]], 1)
    second = torch.stack([second_x, second_y, -second_x * c[:, 0] - second_y * c[:, 1]], 1)
    third = -first - second
    third[:, 2] += 1.0
    depth = first * a[:, 2:] + second * b[:, 2:] + third * c[:, 2:]
    return torch.stack([first, second, third, depth], 1)


def _at(planes: torch.Tensor, column: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
    """(N, K, 3) planes at sample centres: (N, K)."""
    x, y = column.to(planes.dtype)[:, None] + 0.5, row.to(planes.dtype)[:, None] + 0.5
    return (planes[..., 0] * x).add_(planes[..., 1] * y).add_(planes[..., 2])


def _nearest_triangle(corners: torch.Tensor, planes: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """(rows, columns) int64, the visible triangle of each sample or -1. Depth and index share one integer, so that the
    winner does not depend on the order in which a device works.
    """
    flat = corners[..., :2]
    side_1, side_2 = flat[:, 1] - flat[:, 0], flat[:, 2] - flat[:, 0]
    turn = side_1[:, 0] * side_2[:, 1] - side_1[:, 1] * side_2[:, 0]
    limit = corners.new_tensor([columns, rows])
    low = (flat.amin(1) - 0.5).ceil().clamp(min=0).minimum(limit).int()
    high = (flat.amax(1) + 0.5).floor().clamp(min=0).minimum(limit).int()
    size = (high - low).clamp(min=0) * (turn < -1e-9)[:, None]
    count = size[:, 0] * size[:, 1]
    owner = torch.repeat_interleave(count)
    order = torch.arange(len(owner), device=corners.device, dtype=torch.int32) - (count.cumsum(0).int() - count)[owner]
    span = size[owner, 0]
    down = torch.div(order, span, rounding_mode="floor")
    column, row = low[owner, 0] + order - down * span, low[owner, 1] + down
    values = _at(planes[owner], column, row)
    hit = values[:, :3].amin(1) >= _EDGE
    owner, column, row = owner[hit], column[hit], row[hit]
    depth = corners[..., 2]
    near, far = depth.min(), depth.max()
    level = (values[hit, 3] - near) / (far - near).clamp(min=1e-6) * (_Z_STEPS - 1)
    key = (level.clamp(0, _Z_STEPS - 1).long() << _INDEX_BITS) | owner
    none = torch.iinfo(torch.int64).max
    best = torch.full((rows * columns,), none, dtype=torch.int64, device=corners.device)
    best.scatter_reduce_(0, row.long() * columns + column, key, "amin")
    triangle = best & ((1 << _INDEX_BITS) - 1)
    return torch.where(best == none, -1, triangle).view(rows, columns)


def spill(fields: torch.Tensor, inside: torch.Tensor) -> torch.Tensor:
    """Continue fields one sample over the edge of the mesh (mean of the neighbours), so that enlarging them does not
    mix in what lies outside.

    Args:
        fields: (K, rows, columns), 0 where not `inside`; changed in place on a CPU.
        inside: (rows, columns) bool.
    """
    if fields.device.type == "cpu":
        return torch.from_numpy(raster_cpu.spill(fields.numpy(), inside.numpy()))
    return spill_on_any_device(fields, inside)


def spill_on_any_device(fields: torch.Tensor, inside: torch.Tensor) -> torch.Tensor:
    """The reference for `spill`."""
    known = functional.pad(torch.cat([fields, inside[None].to(fields.dtype)]), (1, 1, 1, 1))
    rows = known[:, :-2] + known[:, 1:-1] + known[:, 2:]
    total = rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:]
    return torch.where(inside, fields, total[:-1] / total[-1].clamp(min=1.0))
