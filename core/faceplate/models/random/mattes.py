"""Mattes with random weights: names, layouts and ranges of the public files, small nets between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from .graph import RandomGraph, channels


def _unet(g: RandomGraph, picture: str, width: float, out: int) -> str:
    """(N, out, h, w) logits."""
    w = channels(32, width)
    x = g.relu(g.conv(picture, (3, w), stride=2))
    x = g.relu(g.conv(g.relu(g.conv(x, (w, 2 * w), stride=2)), (2 * w, w)))
    x = g.upsample(g.upsample(x, mode="linear"), mode="linear")
    return g.conv(x, (w, out))


def xseg(width: float = 1.0, seed: int = 70, size: int = 256) -> bytes:
    """`input` and `output` as rows of pixels: (1, size, size, 3) BGR to (1, size, size, 1) 0..1."""
    g = RandomGraph(seed)
    planes = g.node("Transpose", ["input"], perm=[0, 3, 1, 2])
    found = g.node("Sigmoid", [_unet(g, planes, width, 1)])
    g.node("Transpose", [found], "output", perm=[0, 2, 3, 1])
    return g.finish("xseg", {"input": (1, size, size, 3)}, {"output": (1, size, size, 1)})


def occluder(width: float = 1.0, seed: int = 74, size: int = 256) -> bytes:
    """`input` (1, 3, size, size) to `output` (1, 1, size, size) logits."""
    g = RandomGraph(seed)
    g.node("Identity", [_unet(g, "input", width, 1)], "output")
    return g.finish("occluder", {"input": (1, 3, size, size)}, {"output": (1, 1, size, size)})


def regions(width: float = 1.0, seed: int = 75, size: int = 512) -> bytes:
    """`input` (1, 3, size, size) to `output` (1, 19, size, size) logits."""
    g = RandomGraph(seed)
    g.node("Identity", [_unet(g, "input", width, 19)], "output")
    return g.finish("regions", {"input": (1, 3, size, size)}, {"output": (1, 19, size, size)})


MATTES: Mapping[str, Callable[[float], bytes]] = MappingProxyType(
    {
        **{f"xseg_{number}": partial(xseg, seed=70 + number) for number in (1, 2, 3)},
        "occluder": occluder,
        **{f"bisenet_resnet_{depth}": partial(regions, seed=75 + depth) for depth in (18, 34)},
    }
)
"""Makers by card id; each takes the width and gives the file."""
