"""Landmark nets with random weights and the signatures of 2dfan4, fan_68_5 and 2d106det."""

from __future__ import annotations

import numpy as np

from .graph import RandomGraph, channels


def fan(seed: int = 0, width: float = 1.0, stacks: int = 4) -> bytes:
    """As 2dfan4.onnx: `input` (1, 3, 256, 256), `landmarks_xyscore` (1, 68, 3) in a grid of 64, `heatmaps`
    (1, 68, 64, 64).
    """
    g = RandomGraph(seed, opset=13)
    full, half, small = channels(256, width), channels(128, width), channels(64, width)
    x = g.relu(g.conv("input", (3, small), 7, stride=2))
    x = g.pool(_block(g, x, small, half))
    x = _block(g, _block(g, x, half, half), half, full)
    maps = ""
    for stack in range(stacks):
        y = _block(g, _hourglass(g, x, full, 4), full, full)
        y = g.relu(g.conv(y, (full, full), 1))
        logits = g.conv(y, (full, 68), 1)
        if stack + 1 < stacks:
            x = g.add(x, g.conv(y, (full, full), 1, gain=0.5), g.conv(logits, (68, full), 1, gain=0.5))
        else:
            maps = g.node("Sigmoid", [logits], "heatmaps")
    flat = g.reshape(maps, (68, 64 * 64))
    shares = g.node("Softmax", [flat], axis=2)
    cells = np.arange(64 * 64)
    at = [g.node("Mul", [shares, g.floats(index.astype(np.float32))]) for index in (cells % 64, cells // 64)]
    sums = [g.node("ReduceSum", [one, g.integers([2])], keepdims=1) for one in at]
    peak = g.node("ReduceMax", [flat], axes=[2], keepdims=1)
    g.node("Concat", [*sums, peak], "landmarks_xyscore", axis=2)
    return g.finish(
        "fan",
        {"input": (1, 3, 256, 256)},
        {"landmarks_xyscore": (1, 68, 3), "heatmaps": (1, 68, 64, 64)},
    )


def _block(g: RandomGraph, x: str, into: int, out: int) -> str:
    """Three convolutions side by side along the depth, and what came in."""
    parts, y, count = [], x, into
    for share in (out - out // 2, out // 4, out // 2 - out // 4):
        y = g.conv(g.relu(g.batch_norm(y, count)), (count, share), gain=1.0)
        parts.append(y)
        count = share
    same = x if into == out else g.conv(g.relu(x), (into, out), 1)
    return g.add(g.node("Concat", parts, axis=1), same)


def _hourglass(g: RandomGraph, x: str, count: int, depth: int) -> str:
    low = _block(g, g.pool(x), count, count)
    low = _hourglass(g, low, count, depth - 1) if depth > 1 else _block(g, low, count, count)
    return g.add(_block(g, x, count, count), g.upsample(_block(g, low, count, count)))


def five_to_68(seed: int = 0, width: float = 1.0) -> bytes:
    """As fan_68_5.onnx: `input` (1, 5, 2) to `output` (1, 68, 2), both in the unit square of ffhq_512."""
    g = RandomGraph(seed, opset=13)
    wide = channels(512, width)
    x = g.reshape("input", (10,))
    x = g.relu(g.linear(x, 10, wide))
    x = g.relu(g.linear(x, wide, wide))
    g.reshape(g.linear(x, wide, 136, gain=0.2), (68, 2), "output")
    return g.finish("five_to_68", {"input": (1, 5, 2)}, {"output": (1, 68, 2)})


def points_106(seed: int = 0, width: float = 1.0) -> bytes:
    """As 2d106det.onnx: `data` (N, 3, 192, 192), RGB 0..255, scaled by a first layer called bn_data as the real net's;
    `fc1` (N, 212), x and y from -1 to 1.
    """
    g = RandomGraph(seed, opset=11)
    statistics = [np.full(3, 1.0), np.zeros(3), np.full(3, 127.5), np.full(3, 127.5**2)]
    x = g.node("BatchNormalization", ["data", *(g.floats(one) for one in statistics)], name="bn_data")
    into = 3
    for count in (16, 32, 64, 128, 256, 256):
        out = channels(count, width)
        x = g.prelu(g.conv(x, (into, out), stride=2), out)
        into = out
    flat = g.node("Flatten", [x], axis=1)
    g.node("Tanh", [g.linear(flat, into * 9, 212, gain=0.6)], "fc1")
    return g.finish("points_106", {"data": ("N", 3, 192, 192)}, {"fc1": ("N", 212)})
