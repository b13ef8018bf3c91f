"""The picture that the demo camera films: the portrait brought to film size, with the set carried on past its edges."""

from __future__ import annotations

import functools

import cv2
import numpy as np
from numpy.typing import NDArray

from ..frame import Box
from .portrait import PORTRAIT_SIZE, REC709_TO_AP1, Image, linear_to_srgb, load_portrait, luminance, srgb_to_linear

STILL_WINDOW = Box(-112, -72, 624, 400)
"""What the still covers, portrait px."""


def _extended(encoded: Image) -> Image:
    """The encoded portrait over `STILL_WINDOW`: carried on past its edges and the more defocused the further out."""
    window = STILL_WINDOW
    left, top, right = -window.x0, -window.y0, window.x1 - PORTRAIT_SIZE
    # Flag and wall may be mirrored; mirrored upwards, the tank's tip would become an hourglass.
    wide = cv2.copyMakeBorder(encoded[: window.y1], top, 0, 0, 0, cv2.BORDER_REPLICATE)
    wide = cv2.copyMakeBorder(wide, 0, 0, left, right, cv2.BORDER_REFLECT_101)
    x = np.arange(window.x0, window.x1, dtype=np.float32) + np.float32(0.5)
    y = np.arange(window.y0, window.y1, dtype=np.float32)[:, None] + np.float32(0.5)
    outside = np.maximum(np.maximum(-x, x - PORTRAIT_SIZE), -y)
    result = wide
    for sigma, start in ((2.0, -6.0), (5.0, 8.0), (11.0, 30.0)):
        soft = cv2.GaussianBlur(wide, (0, 0), sigma, borderType=cv2.BORDER_REFLECT_101)
        share = np.clip((outside - np.float32(start)) / np.float32(3 * sigma + 4), 0, 1)[..., None]
        result = result + (soft - result) * share
    return np.asarray(result, np.float32)


def surface_texture(height: int, width: int, seed: int) -> NDArray[np.float32]:
    """Fine structure without a scale of its own: (height, width) float32 noise of unit deviation in four octaves."""
    random = np.random.default_rng([seed, 3])
    total = np.zeros((height, width), np.float32)
    for octave, weight in enumerate((0.55, 0.8, 0.7, 0.45)):
        step = 2**octave
        noise = random.standard_normal((height // step + 3, width // step + 3), np.float32)
        total += weight * cv2.resize(noise, None, fx=step, fy=step, interpolation=cv2.INTER_CUBIC)[:height, :width]
    return np.asarray(total / total.std(), np.float32)


@functools.lru_cache(maxsize=1)
def film_still(scale: float, seed: int) -> Image:
    """The set in ACEScg: (H, W, 3) float32, `scale` px to a portrait px over `STILL_WINDOW`, read-only.

    Enlarged by Lanczos in the display encoding (no dark rings), sharpened, given fine texture that the small portrait
    lacks, and its brightest parts spread above 1 as a camera would have seen them.
    """
    encoded = _extended(linear_to_srgb(load_portrait()))
    size = round(STILL_WINDOW.width * scale), round(STILL_WINDOW.height * scale)
    large = cv2.resize(encoded, size, interpolation=cv2.INTER_LANCZOS4)
    radius = max(0.3, 0.45 * scale)
    large = large + 0.5 * (large - cv2.GaussianBlur(large, (0, 0), radius))
    linear = srgb_to_linear(np.clip(large, 0.0, 1.0))
    light = luminance(linear)
    amount = np.float32(0.045) * np.clip(light * 6, 0.15, 1.0)
    linear *= np.exp(surface_texture(size[1], size[0], seed) * amount)[..., None]
    light = np.asarray(cv2.GaussianBlur(light, (0, 0), 1.2 * scale), np.float32)
    bright = np.clip((light - np.float32(0.72)) / np.float32(0.28), 0, 1)
    linear *= (1 + 2.2 * bright**2)[..., None]
    still = np.asarray(linear @ REC709_TO_AP1.T, np.float32)
    still.flags.writeable = False
    return still
