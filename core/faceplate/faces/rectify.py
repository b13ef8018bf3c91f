"""A face laid out in canonical UV: the same texel is the same spot of skin in every frame and photo."""

from __future__ import annotations

from functools import cache

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

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


@cache
def spread_matrix(size: int) -> csr_array:
    """(size * size, 468) float32 that spreads per-point values over the UV square, row by row; empty rows outside the
    face.
    """
    triangle, weights = _texel_weights(size)
    inside = triangle.ravel() >= 0
    corners = topology.triangles()[triangle.ravel()[inside]]
    starts = np.concatenate([[0], np.cumsum(3 * inside)])
    shape = size * size, topology.FACE_POINTS
    return csr_array((weights.reshape(-1, 3)[inside].ravel(), corners.ravel(), starts), shape=shape)


def interpolate(attributes: NDArray[np.floating], size: int) -> NDArray[np.float32]:
    """Spread per-point values over the UV square.

    Args:
        attributes: (468 or more, K), one row a point.
        size: texels a side.

    Returns:
        (size, size, K) float32, 0 outside the face.
    """
    values = np.ascontiguousarray(attributes[: topology.FACE_POINTS], np.float32)
    return np.asarray(spread_matrix(size) @ values, np.float32).reshape(size, size, -1)


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
