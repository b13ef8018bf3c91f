"""A face laid out in canonical UV: the same texel is the same spot of skin in every frame and photo."""

from __future__ import annotations

from functools import cache

import cv2
import numpy as np
from numpy.typing import NDArray

from . import topology


@cache
def _texel_weights(size: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """For each texel its triangle (size, size) int32, -1 outside the face, and barycentric weights (size, size, 3)."""
    triangle = np.full((size, size), -1, np.int32)
    weights = np.zeros((size, size, 3), np.float32)
    corners = topology.uv()[topology.triangles()].astype(np.float64) * size
    low = np.clip(np.floor(corners.min(1)).astype(int), 0, size)
    high = np.clip(np.ceil(corners.max(1)).astype(int) + 1, 0, size)
    for index, ((ax, ay), (bx, by), (cx, cy)) in enumerate(corners):
        rows, columns = slice(low[index, 1], high[index, 1]), slice(low[index, 0], high[index, 0])
        y, x = np.mgrid[rows, columns] + 0.5
        area = (by - cy) * (ax - cx) + (cx - bx) * (ay - cy)
        a = ((by - cy) * (x - cx) + (cx - bx) * (y - cy)) / area
        b = ((cy - ay) * (x - cx) + (ax - cx) * (y - cy)) / area
        bary = np.stack([a, b, 1 - a - b], -1)
        inside = (bary >= -1e-6).all(-1) & (triangle[rows, columns] < 0)
        triangle[rows, columns][inside] = index
        weights[rows, columns][inside] = bary[inside]
    triangle.flags.writeable = weights.flags.writeable = False
    return triangle, weights


def coverage(size: int) -> NDArray[np.bool_]:
    """(size, size) bool, the texels that belong to the face."""
    return _texel_weights(size)[0] >= 0


def interpolate(attributes: NDArray[np.floating], size: int) -> NDArray[np.float32]:
    """Spread per-point values over the UV square.

    Args:
        attributes: (468 or more, K), one row a point.
        size: texels a side.

    Returns:
        (size, size, K) float32, 0 outside the face.
    """
    triangle, weights = _texel_weights(size)
    corners = topology.triangles()[np.maximum(triangle, 0)]
    values = np.asarray(attributes, np.float32)[corners]
    return np.asarray((values * weights[..., None]).sum(2) * (triangle >= 0)[..., None], np.float32)


def rectify(image: NDArray[np.float32], landmarks: NDArray[np.floating], size: int) -> NDArray[np.float32]:
    """Sample a picture at each texel, bilinear, edge repeated. Blur it first where it is finer than the texels.

    Args:
        image: (H, W) or (H, W, C) float32, C <= 4.
        landmarks: (468 or more, 2 or more), pixels of `image`, first pixel centre at 0.5.
        size: texels a side.

    Returns:
        (size, size) or (size, size, C) float32; outside the face unspecified (see `coverage`).
    """
    at = interpolate(landmarks[:, :2], size) - 0.5
    return np.asarray(
        cv2.remap(image, at[..., 0], at[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE), np.float32
    )
