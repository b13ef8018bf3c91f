"""Face detectors with random weights and the signatures of det_10g (SCRFD), yoloface_8n and YuNet.

Their scores are low almost everywhere: a net that sees faces in every cell would measure the sorting of boxes.
"""

from __future__ import annotations

import numpy as np

from .graph import RandomGraph, channels

STRIDES = (8, 16, 32)
_SCRFD_OUTPUTS = ("448", "471", "494", "451", "474", "497", "454", "477", "500")
_SCRFD_STAGES = ((56, 3), (88, 4), (88, 2), (224, 3))
_SCRFD_FEATURES, _SCRFD_TOWER = 56, 80


def scrfd(seed: int = 0, width: float = 1.0, score_bias: float = -3.0) -> bytes:
    """As det_10g.onnx: `input.1` (1, 3, H, W), nine outputs without a batch axis, two anchors a cell.

    Args:
        seed: of the weights.
        width: of the layers, 1 for those of the real net.
        score_bias: of the logit of each anchor.
    """
    g = RandomGraph(seed, opset=13)
    wide = [channels(count, width) for count, _ in _SCRFD_STAGES]
    inside, tower = channels(_SCRFD_FEATURES, width), channels(_SCRFD_TOWER, width)
    stem = channels(28, width)
    x = g.relu(g.conv("input.1", (3, stem), stride=2))
    x = g.relu(g.conv(x, (stem, stem)))
    x = g.pool(g.relu(g.conv(x, (stem, wide[0]))), "MaxPool", 3, 1)
    stages, into = [], wide[0]
    for stage, (_, blocks) in enumerate(_SCRFD_STAGES):
        for block in range(blocks):
            x = _residual(g, x, into, wide[stage], 2 if stage and not block else 1)
            into = wide[stage]
        stages.append(x)
    outputs = []
    for level, (stride, feature) in enumerate(zip(STRIDES, _pyramid(g, stages[1:], wide[1:], inside), strict=True)):
        y, into = feature, inside
        for _ in range(3):
            y, into = g.relu(g.instance_norm(g.conv(y, (into, tower)), tower)), tower
        for kind, length in enumerate((1, 4, 10)):
            # A box reaches out to all sides of its anchor; points lie anywhere near it.
            bias = (score_bias, 2.5, 0.0)[kind]
            gain = (1.4, 0.5, 0.7)[kind]
            head = g.conv(y, (tower, 2 * length), bias=bias, gain=gain)
            # Distances from the anchor to the box's sides are positive.
            rows = g.node("Transpose", [g.relu(head) if kind == 1 else head], perm=[0, 2, 3, 1])
            name = _SCRFD_OUTPUTS[3 * kind + level]
            flat = g.node("Reshape", [rows, g.integers([-1, length])], None if kind == 0 else name)
            if kind == 0:
                g.node("Sigmoid", [flat], name)
            outputs.append((name, (f"A{stride}", length)))
    found = dict(outputs)
    return g.finish("scrfd", {"input.1": (1, 3, "H", "W")}, {name: found[name] for name in _SCRFD_OUTPUTS})


def _residual(g: RandomGraph, x: str, into: int, out: int, stride: int) -> str:
    y = g.conv(g.relu(g.conv(x, (into, out), stride=stride)), (out, out), gain=0.7)
    if stride == 2:
        x = g.conv(g.pool(x), (into, out), 1, gain=1.0)
    elif into != out:
        x = g.conv(x, (into, out), 1, gain=1.0)
    return g.relu(g.add(x, y))


def _pyramid(g: RandomGraph, stages: list[str], wide: list[int], inside: int) -> list[str]:
    """Features of three sizes, mixed downwards and upwards."""
    levels = [g.conv(x, (count, inside), 1) for x, count in zip(stages, wide, strict=True)]
    for level in (1, 0):
        levels[level] = g.add(levels[level], g.upsample(levels[level + 1]))
    levels = [g.conv(x, (inside, inside)) for x in levels]
    for level in (1, 2):
        lower = g.conv(levels[level - 1], (inside, inside), stride=2)
        levels[level] = g.conv(g.add(levels[level], lower), (inside, inside))
    return levels


def _strided(g: RandomGraph, picture: str, counts: tuple[int, int, int]) -> list[str]:
    """Plain features at strides 8, 16 and 32."""
    x = g.relu(g.conv(picture, (3, counts[0]), stride=2))
    features, into = [], counts[0]
    for step, count in enumerate((counts[0], *counts)):
        x = g.relu(g.conv(x, (into, count), stride=2))
        x = g.relu(g.instance_norm(g.conv(x, (count, count)), count))
        into = count
        if step:
            features.append(x)
    return features


def yoloface(seed: int = 0, width: float = 1.0, score_bias: float = -4.0) -> bytes:
    """As yoloface_8n.onnx: `images` (1, 3, 640, 640), `output0` (1, 20, 8400): centre, size, score, five times x, y and
    confidence.
    """
    g = RandomGraph(seed, opset=12)
    counts = (channels(64, width), channels(128, width), channels(256, width))
    rows = []
    for stride, count, x in zip(STRIDES, counts, _strided(g, "images", counts), strict=True):
        side = 640 // stride
        grid = np.stack(np.meshgrid(np.arange(side) + 0.5, np.arange(side) + 0.5)).reshape(1, 2, -1) * stride
        head = g.reshape(g.conv(x, (count, 20), gain=1.0), (20, side * side))
        step = g.floats(np.float32(stride))
        centre = g.add(g.node("Mul", [g.take(head, 0, 2, 1), step]), g.floats(grid))
        size = g.node("Mul", [g.node("Exp", [g.take(head, 2, 4, 1)]), g.floats(np.float32(4 * stride))])
        score = g.node("Sigmoid", [g.add(g.take(head, 4, 5, 1), g.floats(np.float32(score_bias)))])
        parts = [centre, size, score]
        for point in range(5):
            at = g.node("Mul", [g.take(head, 5 + 3 * point, 7 + 3 * point, 1), step])
            sure = g.node("Sigmoid", [g.take(head, 7 + 3 * point, 8 + 3 * point, 1)])
            parts += [g.add(at, g.floats(grid)), sure]
        rows.append(g.node("Concat", parts, axis=1))
    g.node("Concat", rows, "output0", axis=2)
    return g.finish("yoloface", {"images": (1, 3, 640, 640)}, {"output0": (1, 20, 8400)})


def yunet(seed: int = 0, width: float = 1.0, score_bias: float = -1.5, side: int = 640) -> bytes:
    """As face_detection_yunet_2023mar.onnx: `input` (1, 3, side, side), BGR 0..255; class, object, box and points at
    three strides, one anchor a cell.
    """
    g = RandomGraph(seed, opset=11)
    counts = (channels(32, width), channels(64, width), channels(64, width))
    scaled = g.node("Mul", ["input", g.floats(np.float32(1 / 128))])
    outputs: dict[str, tuple[int, ...]] = {}
    for stride, count, x in zip(STRIDES, counts, _strided(g, scaled, counts), strict=True):
        cells = (side // stride) ** 2
        for kind, length, bias in (("cls", 1, score_bias), ("obj", 1, score_bias), ("bbox", 4, 0.5), ("kps", 10, 0.0)):
            head = g.conv(x, (count, length), bias=bias, gain=0.5 if length > 1 else 1.5)
            rows = g.node("Transpose", [head], perm=[0, 2, 3, 1])
            name = f"{kind}_{stride}"
            flat = g.node("Reshape", [rows, g.integers([1, cells, length])], name if length > 1 else None)
            if length == 1:
                g.node("Sigmoid", [flat], name)
            outputs[name] = (1, cells, length)
    order = [f"{kind}_{stride}" for kind in ("cls", "obj", "bbox", "kps") for stride in STRIDES]
    return g.finish("yunet", {"input": (1, 3, side, side)}, {name: outputs[name] for name in order})
