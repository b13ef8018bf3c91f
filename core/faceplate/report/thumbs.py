"""Small pictures for the contact sheet."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from ..faces.view import encode_srgb

MAX_WIDTH = 320


def thumbnail(linear: NDArray[np.float32], max_width: int = MAX_WIDTH) -> bytes:
    """A picture as an 8-bit sRGB PNG.

    Args:
        linear: (h, w, 3) float32, linear light, Rec.709 primaries, unbounded; NaN shows black.
        max_width: px; a wider picture is averaged down in linear light, a smaller one stays.
    """
    # Held at white before averaging, or one specular would shine over its neighbours; a viewer clips there too.
    return _png(encode_srgb(_fit(np.clip(np.nan_to_num(linear), 0.0, 1.0), max_width))[..., ::-1])


def matte_thumbnail(matte: NDArray[np.float32], max_width: int = MAX_WIDTH) -> bytes:
    """A matte as an 8-bit grey PNG, its values as they are (0.5 becomes code 128).

    Args:
        matte: (h, w) float32, 0..1; NaN shows black.
        max_width: px.
    """
    return _png(_fit(np.clip(np.nan_to_num(matte), 0.0, 1.0), max_width))


def _fit(picture: NDArray[np.float32], max_width: int) -> NDArray[np.float32]:
    height, width = picture.shape[:2]
    if width <= max_width:
        return picture
    size = (max_width, max(1, round(height * max_width / width)))
    return np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.float32)


def _png(display: NDArray[np.float32]) -> bytes:
    codes = (display * np.float32(255) + np.float32(0.5)).astype(np.uint8)
    return bytes(cv2.imencode(".png", codes, [cv2.IMWRITE_PNG_COMPRESSION, 6])[1].tobytes())
