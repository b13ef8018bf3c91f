"""Film-like grain: fixed by seed and frame, stronger in the mids, alive around black."""

from __future__ import annotations

import functools

import cv2
import numpy as np
from numpy.typing import NDArray

_TILE = 1024


@functools.lru_cache(maxsize=2)
def _tile(seed: int) -> NDArray[np.float32]:
    """(1024, 1024, 3) float32 noise of unit deviation, slightly soft, partly shared by the channels; wraps around."""
    random = np.random.default_rng([seed, 7])
    shared = random.standard_normal((_TILE, _TILE, 1), np.float32)
    own = random.standard_normal((_TILE, _TILE, 3), np.float32)
    noise = np.pad(0.72 * shared + 0.7 * own, ((4, 4), (4, 4), (0, 0)), mode="wrap")
    soft = np.asarray(cv2.GaussianBlur(noise, (0, 0), 0.65), np.float32)[4:-4, 4:-4]
    return np.ascontiguousarray(soft / soft.std(axis=(0, 1)))


def grain_field(height: int, width: int, *, seed: int, frame: int) -> NDArray[np.float32]:
    """Noise of unit deviation, (height, width, 3) float32, another one for every frame and the same on every call."""
    random = np.random.default_rng([seed, frame, 11])
    top, left, flip = random.integers(0, (_TILE, _TILE, 4)).tolist()
    tile = np.roll(_tile(seed), (top, left), (0, 1))[:: -1 if flip & 1 else 1, :: -1 if flip & 2 else 1]
    repeats = (-(-height // _TILE), -(-width // _TILE), 1)
    return np.tile(tile, repeats)[:height, :width]


def add_grain(rgb: NDArray[np.float32], *, amount: float, seed: int, frame: int) -> NDArray[np.float32]:
    """The picture with grain; deviation `amount * sqrt(0.04 + signal)`, as shot noise over a floor has it.

    Args:
        rgb: (H, W, 3) float32, scene-linear.
        amount: deviation of the noise at a signal of 0.96.
        seed: of the tile.
        frame: frame number.
    """
    field = grain_field(rgb.shape[0], rgb.shape[1], seed=seed, frame=frame)
    # Above 2 the deviation stops growing: film saturates, and so the practicals stay clean.
    deviation = np.float32(amount) * np.sqrt(np.clip(rgb, 0.0, 2.0) + np.float32(0.04))
    return np.asarray(rgb + field * deviation, np.float32)
