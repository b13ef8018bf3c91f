"""Recognisers and converters of their vectors, random weights with the signatures of w600k_r50 and crossface."""

from __future__ import annotations

from .graph import RandomGraph, channels

EMBEDDING = 512


def arcface(seed: int = 0, width: float = 1.0) -> bytes:
    """As w600k_r50.onnx (IResNet-50): `input.1` (N, 3, 112, 112), `683` (N, 512), not normalised."""
    g = RandomGraph(seed, opset=11)
    into = channels(64, width)
    x = g.prelu(g.conv("input.1", (3, into)), into)
    for count, blocks in ((64, 3), (128, 4), (256, 14), (512, 3)):
        out = channels(count, width)
        for block in range(max(1, round(blocks * min(1.0, 2 * width)))):
            stride = 1 if block else 2
            y = g.prelu(g.conv(g.batch_norm(x, into), (into, out), gain=1.0), out)
            y = g.conv(y, (out, out), stride=stride, gain=0.7)
            x = g.add(y, x if stride == 1 and into == out else g.conv(x, (into, out), 1, stride=stride, gain=0.7))
            into = out
    flat = g.node("Flatten", [g.batch_norm(x, into)], axis=1)
    g.linear(flat, into * 49, EMBEDDING, output="683")
    return g.finish("arcface", {"input.1": ("N", 3, 112, 112)}, {"683": ("N", EMBEDDING)})


def crossface(seed: int = 0, width: float = 1.0) -> bytes:
    """As crossface_*.onnx: `input` (1, 512) to `output` (1, 512)."""
    g = RandomGraph(seed, opset=13)
    wide = channels(1024, width)
    x = g.node("LeakyRelu", [g.linear("input", EMBEDDING, wide)], alpha=0.2)
    x = g.node("LeakyRelu", [g.linear(x, wide, wide)], alpha=0.2)
    g.linear(x, wide, EMBEDDING, output="output")
    return g.finish("crossface", {"input": (1, EMBEDDING)}, {"output": (1, EMBEDDING)})
