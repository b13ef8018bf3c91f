"""Upscalers with random weights: any size in, that many times the pixels out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import numpy as np

from .graph import RandomGraph, channels


def upscaler(width: float = 1.0, seed: int = 50, *, scale: int = 4) -> bytes:
    """`input` (N, 3, h, w) 0..1 to `output` (N, 3, scale * h, scale * w): enlarged, and two convolutions of 3 x 3."""
    g = RandomGraph(seed)
    w = channels(64, width)
    added = g.conv(g.relu(g.conv("input", (3, w))), (w, 3), gain=0.2)
    large = g.upsample(g.add("input", added), scale, mode="linear")
    g.node("Clip", [large, g.floats(np.float32(0.0)), g.floats(np.float32(1.0))], "output")
    return g.finish("upscaler", {"input": ("N", 3, "h", "w")}, {"output": ("N", 3, "H", "W")})


UPSCALERS: Mapping[str, Callable[[float], bytes]] = MappingProxyType(
    {
        **{f"real_esrgan_x{scale}": partial(upscaler, seed=50 + scale, scale=scale) for scale in (2, 4, 8)},
        "real_esrgan_general_x4v3": partial(upscaler, seed=60),
        "bsrgan_x4": partial(upscaler, seed=61),
        "ultra_sharp_x4": partial(upscaler, seed=62),
    }
)
"""Makers by card id; each takes the width and gives the file."""
