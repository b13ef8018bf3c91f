"""The CPU's twin of `raster`: the span that each triangle has on each row, in numpy. A test holds the two together."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]

_Z_STEPS = 1 << 20
_INDEX_BITS = 12
_EDGE = -1e-5
_LEAST_SLOPE = 1e-30


def draw(
    points: Floats, triangles: Counts, values: Floats, height: int, width: int, step: int = 1
) -> tuple[Floats, Flags]:
    """See `raster.draw`."""
    rows, columns = -(-height // step), -(-width // step)
    fields, inside = np.zeros((values.shape[1], rows * columns), np.float32), np.zeros(rows * columns, np.bool_)
    corners = points[triangles].astype(np.float64) / step
    side_1, side_2 = corners[:, 1, :2] - corners[:, 0, :2], corners[:, 2, :2] - corners[:, 0, :2]
    front = np.flatnonzero(side_1[:, 0] * side_2[:, 1] - side_1[:, 1] * side_2[:, 0] < -1e-9)
    corners, triangles = corners[front], triangles[front]
    weights = _weights(corners)
    owner, row, first, count = _spans(corners, weights, rows, columns)
    if len(owner) > 0:
        low, high = float(points[:, 2].min()) / step, float(points[:, 2].max()) / step
        level = (corners[..., 2:] - low) * ((_Z_STEPS - 1) / max(high - low, 1e-6))
        across, down, constant = _planes(weights, np.concatenate([level, values[triangles]], 2))
        # each span knows its first sample and what a step to the right adds: exact even in slivers
        across = np.take(across, owner, 1)
        start = across * (first + 0.5) + np.take(down, owner, 1) * (row + 0.5) + np.take(constant, owner, 1)
        span, right, at = _nearest(start[0], across[0], owner, row * columns + first, count, rows * columns)
        for plane, begin, slope in zip(
            fields, start[1:].astype(np.float32), across[1:].astype(np.float32), strict=True
        ):
            plane[at] = np.take(begin, span) + np.take(slope, span) * right
        inside[at] = True
    return fields.reshape(-1, rows, columns), inside.reshape(rows, columns)


def _weights(corners: Doubles) -> Doubles:
    """(3, 3, T): barycentric weight k of each triangle as x [k, 0] + y [k, 1] + [k, 2], from the corners (T, 3, 3)."""
    (ax, ay, _), (bx, by, _), (cx, cy, _) = (np.ascontiguousarray(corner.T) for corner in corners.transpose(1, 0, 2))
    area = (by - cy) * (ax - cx) + (cx - bx) * (ay - cy)
    made = np.empty((3, 3, len(corners)))
    made[0, 0], made[0, 1] = (by - cy) / area, (cx - bx) / area
    made[1, 0], made[1, 1] = (cy - ay) / area, (ax - cx) / area
    made[:2, 2] = -made[:2, 0] * cx - made[:2, 1] * cy
    made[2] = -made[0] - made[1]
    made[2, 2] += 1.0
    return made


def _spans(corners: Doubles, weights: Doubles, rows: int, columns: int) -> tuple[Counts, Counts, Counts, Counts]:
    """Of each span in the frame its triangle, row, first column and length."""
    y = corners[..., 1]
    low = np.clip(np.ceil(y.min(1) - 0.5), 0, rows).astype(np.int64)
    tall = np.clip(np.clip(np.floor(y.max(1) + 0.5), 0, rows).astype(np.int64) - low, 0, None)
    owner = np.repeat(np.arange(len(corners)), tall)
    row = np.arange(len(owner)) + np.take(low - (tall.cumsum() - tall), owner)
    middle = row + 0.5
    first, last = np.full(len(owner), -1.0), np.full(len(owner), float(columns))
    for along, down, constant in weights:
        slope = np.where(np.abs(along) < _LEAST_SLOPE, _LEAST_SLOPE, along)
        bound = np.take(-down / slope, owner) * middle
        bound += np.take((_EDGE - constant) / slope - 0.5, owner)
        from_left = np.take(slope > 0, owner)
        np.maximum(first, bound, out=first, where=from_left)
        np.minimum(last, bound, out=last, where=~from_left)
    begin = np.ceil(first.clip(0, columns)).astype(np.int64)
    count = np.floor(last.clip(-1, columns - 1)).astype(np.int64) - begin + 1
    there = np.flatnonzero(count > 0)
    return owner[there], row[there], begin[there], count[there]


def _planes(weights: Doubles, table: Doubles) -> tuple[Doubles, Doubles, Doubles]:
    """(K, T) each: the slope along x, along y and the constant of K values, given at the corners as (T, 3, K)."""
    first, second, third = (np.ascontiguousarray(corner.T) for corner in table.transpose(1, 0, 2))
    across, down, constant = (first * a + second * b + third * c for a, b, c in weights.transpose(1, 0, 2))
    return across, down, constant


def _nearest(
    level: Doubles, slope: Doubles, owner: Counts, begin: Counts, count: Counts, size: int
) -> tuple[Counts, Floats, Counts]:
    """The samples that are seen: their span, how far along it they lie, and where in the frame. As in `raster`, depth
    and triangle share one integer.
    """
    span = np.repeat(np.arange(len(count)), count)
    right = np.arange(len(span)) - np.take(count.cumsum() - count, span)
    at = np.take(begin, span) + right
    depth = np.take(slope, span) * right
    depth += np.take(level, span)
    key = (depth.clip(0, _Z_STEPS - 1).astype(np.int64) << _INDEX_BITS) | np.take(owner, span)
    best = np.full(size, np.iinfo(np.int64).max)
    np.minimum.at(best, at, key)
    seen = np.flatnonzero(key == np.take(best, at))
    return np.take(span, seen), np.take(right, seen).astype(np.float32), np.take(at, seen)


def spill(fields: Floats, inside: Flags) -> Floats:
    """See `raster.spill`; changes `fields` in place."""
    count = _around(inside.astype(np.float32))
    edge = np.flatnonzero((count > 0.5) & ~inside)
    share = 1.0 / np.take(count, edge)
    for plane in fields:
        # what lies outside is 0
        plane.reshape(-1)[edge] = np.take(_around(plane), edge) * share
    return fields


def _around(plane: Floats) -> Floats:
    """Sum over 3 x 3 samples; outside counts as 0."""
    summed = cv2.boxFilter(plane, -1, (3, 3), normalize=False, borderType=cv2.BORDER_CONSTANT)
    return np.asarray(summed, np.float32)
