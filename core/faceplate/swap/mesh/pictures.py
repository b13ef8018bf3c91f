"""OpenCV's float32 operations with honest types, for the parts that run once per identity."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.float32]
Mask = NDArray[np.float32]


def resized(image: Image, width: int, height: int, way: int = cv2.INTER_LINEAR) -> Image:
    """(h, w) or (h, w, C) to (height, width[, C])."""
    return np.asarray(cv2.resize(image, (width, height), interpolation=way), np.float32)


def softened(image: Image, sigma: float) -> Image:
    """Gaussian; a wide one is computed on a smaller raster."""
    if sigma < 8:
        return np.asarray(cv2.GaussianBlur(image, (0, 0), sigma), np.float32)
    height, width = image.shape[:2]
    small = resized(image, max(1, width // 4), max(1, height // 4), cv2.INTER_AREA)
    return resized(softened(small, sigma / 4), width, height)


def looked_up(image: Image, at: Image, way: int = cv2.INTER_LINEAR) -> Image:
    """Sample at (h, w, 2) x, y px (first pixel centre at 0.5), edge repeated."""
    where = at - np.float32(0.5)
    return np.asarray(cv2.remap(image, where[..., 0], where[..., 1], way, borderMode=cv2.BORDER_REPLICATE), np.float32)
