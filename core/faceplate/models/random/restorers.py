"""Restorers with random weights: names, shapes and ranges of the public files, small nets between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import numpy as np

from .graph import RandomGraph, channels


def restorer(width: float = 1.0, seed: int = 30, *, size: int = 512, weighted: bool = False) -> bytes:
    """`input` (1, 3, size, size) -1..1 to `output` of the same; with `weight`, a float64 that scales what is added."""
    g = RandomGraph(seed)
    w = channels(64, width)
    x = g.relu(g.conv("input", (3, w), stride=2))
    x = g.relu(g.conv(x, (w, w)))
    added = g.conv(g.upsample(x, mode="linear"), (w, 3), gain=0.3)
    inputs: dict[str, tuple[int, ...]] = {"input": (1, 3, size, size)}
    if weighted:
        inputs["weight"] = (1,)
        added = g.node("Mul", [added, g.node("Cast", ["weight"], to=1)])
    limit = [g.floats(np.float32(-1.0)), g.floats(np.float32(1.0))]
    g.node("Clip", [g.add("input", added), *limit], "output")
    return g.finish("restorer", inputs, {"output": (1, 3, size, size)}, {"weight": "float64"})


RESTORERS: Mapping[str, Callable[[float], bytes]] = MappingProxyType(
    {
        **{f"gfpgan_1_{minor}": partial(restorer, seed=30 + minor) for minor in (2, 3, 4)},
        "codeformer": partial(restorer, seed=36, weighted=True),
        "restoreformer_plus_plus": partial(restorer, seed=37),
        **{f"gpen_bfr_{size}": partial(restorer, seed=38, size=size) for size in (256, 512, 1024, 2048)},
    }
)
"""Makers by card id; each takes the width and gives the file."""
