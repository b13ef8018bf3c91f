"""Editors with random weights: names, shapes and ranges of the public files, small nets between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import numpy as np

from .graph import RandomGraph, channels

_POINTS = 21
_VOLUME = (32, 16, 64, 64)


def fran(width: float = 1.0, seed: int = 120, size: int = 1024) -> bytes:
    """`target` (1, 3, size, size) 0..1 and two ages as `direction` to `output` of the same."""
    g = RandomGraph(seed)
    w = channels(32, width)
    x = g.relu(g.conv(g.pool(g.pool("target")), (3, w)))
    years = g.node("Sub", [g.take("direction", 1, 2, 0), g.take("direction", 0, 1, 0)])
    added = g.node("Mul", [g.upsample(g.conv(x, (w, 3), gain=0.3), 4, mode="linear"), years])
    limit = [g.floats(np.float32(0.0)), g.floats(np.float32(1.0))]
    g.node("Clip", [g.add("target", added), *limit], "output")
    sides = (1, 3, size, size)
    return g.finish("fran", {"target": sides, "direction": (2,)}, {"output": sides})


def styleganex_age(width: float = 1.0, seed: int = 121) -> bytes:
    """`target` (1, 3, 256, 256), `target_with_background` (1, 3, 384, 384) and `direction` to `output` of twice 384."""
    g = RandomGraph(seed)
    w = channels(32, width)
    look = g.node("GlobalAveragePool", [g.conv("target", (3, w), stride=2)])
    x = g.add(g.conv(g.pool("target_with_background"), (3, w)), look)
    added = g.node("Mul", [g.conv(g.relu(x), (w, 3), gain=0.2), "direction"])
    large = g.upsample("target_with_background", mode="linear")
    g.node("Tanh", [g.add(large, g.upsample(added, 4, mode="linear"))], "output")
    inputs = {"target": (1, 3, 256, 256), "target_with_background": (1, 3, 384, 384), "direction": (1,)}
    return g.finish("styleganex_age", inputs, {"output": (1, 3, 768, 768)})


def features(width: float = 1.0, seed: int = 122) -> bytes:
    """`input` (1, 3, 256, 256) to `feature_volume` (1, 32, 16, 64, 64)."""
    g = RandomGraph(seed)
    w = channels(64, width)
    x = g.relu(g.conv("input", (3, w), stride=2))
    g.reshape(g.conv(x, (w, _VOLUME[0] * _VOLUME[1]), stride=2), _VOLUME, "feature_volume")
    return g.finish("features", {"input": (1, 3, 256, 256)}, {"feature_volume": (1, *_VOLUME)})


def motion(width: float = 1.0, seed: int = 123) -> bytes:
    """`input` (1, 3, 256, 256) to pose, expression and points in the sizes that faces have."""
    g = RandomGraph(seed)
    w = channels(64, width)
    x = g.relu(g.conv(g.pool(g.pool("input")), (3, w), stride=2))
    flat = g.node("Flatten", [g.node("GlobalAveragePool", [x])])

    def told(name: str, count: int, gain: float, shape: tuple[int, ...] | None = None, offset: float = 0.0) -> None:
        value = g.linear(flat, w, count, gain=gain)
        value = g.add(value, g.floats(np.float32(offset)))
        g.node("Identity", [value if shape is None else g.reshape(value, shape)], name)

    for name in ("pitch", "yaw", "roll"):
        told(name, 1, 20.0)
    told("scale", 1, 0.1, offset=1.2)
    told("translation", 3, 0.1)
    told("expression", 3 * _POINTS, 0.02, (_POINTS, 3))
    told("motion_points", 3 * _POINTS, 0.5, (_POINTS, 3))
    shapes = {name: (1, 1) for name in ("pitch", "yaw", "roll", "scale")}
    outputs = {**shapes, "translation": (1, 3), "expression": (1, _POINTS, 3), "motion_points": (1, _POINTS, 3)}
    return g.finish("motion", {"input": (1, 3, 256, 256)}, outputs)


def generator(width: float = 1.0, seed: int = 124) -> bytes:
    """`feature_volume`, `source` and `target` points to `output` (1, 3, 512, 512) 0..1; equal points add nothing."""
    g = RandomGraph(seed)
    w = channels(32, width)
    x = g.reshape("feature_volume", (_VOLUME[0] * _VOLUME[1], *_VOLUME[2:]))
    x = g.relu(g.conv(x, (_VOLUME[0] * _VOLUME[1], w), 1))
    moved = g.reshape(g.node("Sub", ["source", "target"]), (3 * _POINTS,))
    style = g.node("Unsqueeze", [g.linear(moved, 3 * _POINTS, w, gain=8.0), g.integers([2, 3])])
    x = g.conv(g.add(x, style), (w, 3))
    g.node("Sigmoid", [g.upsample(x, 8, mode="linear")], "output")
    points = (1, _POINTS, 3)
    inputs = {"feature_volume": (1, *_VOLUME), "source": points, "target": points}
    return g.finish("generator", inputs, {"output": (1, 3, 512, 512)})


def retargeter(width: float = 1.0, seed: int = 125, *, told: int = 3) -> bytes:
    """`input` (1, 63 + told) to `output` (1, 63)."""
    g = RandomGraph(seed)
    w = channels(128, width)
    x = g.relu(g.linear("input", 3 * _POINTS + told, w))
    g.linear(x, w, 3 * _POINTS, gain=0.05, output="output")
    return g.finish("retargeter", {"input": (1, 3 * _POINTS + told)}, {"output": (1, 3 * _POINTS)})


def stitcher(width: float = 1.0, seed: int = 127) -> bytes:
    """`source` and `target` (1, 21, 3) to `output` of the same."""
    g = RandomGraph(seed)
    both = g.node("Concat", [g.reshape(name, (3 * _POINTS,)) for name in ("source", "target")], axis=1)
    w = channels(128, width)
    x = g.relu(g.linear(both, 6 * _POINTS, w))
    moved = g.reshape(g.linear(x, w, 3 * _POINTS, gain=0.02), (_POINTS, 3))
    g.node("Add", ["source", moved], "output")
    points = (1, _POINTS, 3)
    return g.finish("stitcher", {"source": points, "target": points}, {"output": points})


EDITORS: Mapping[str, Callable[[float], bytes]] = MappingProxyType(
    {
        "fran": fran,
        "styleganex_age": styleganex_age,
        "live_portrait_feature_extractor": features,
        "live_portrait_motion_extractor": motion,
        "live_portrait_generator": generator,
        "live_portrait_eye_retargeter": retargeter,
        "live_portrait_lip_retargeter": partial(retargeter, seed=126, told=2),
        "live_portrait_stitcher": stitcher,
    }
)
"""Makers by card id; each takes the width and gives the file."""
