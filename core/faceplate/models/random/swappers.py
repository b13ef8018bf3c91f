"""Swappers: tensor names, shapes and ranges of the public files, which have a batch of 1.

`width` narrows the layers for tests. `inswapper` at width 1 has the layers, and so the cost, that public descriptions
give; no others are described, and a smaller generator of the same form stands for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .graph import RandomGraph, channels

_ID = 512


class _Half(RandomGraph):
    """Weights stored as half."""

    def weights(self, *shape: int, scale: float = 1.0) -> str:
        drawn = self._random.standard_normal(shape, np.float32) * np.float32(scale)
        return self.floats(drawn.astype(np.float16))


def _conv(g: RandomGraph, x: str, into: int, out: int, kernel: int = 3, **how: Any) -> str:
    return g.node("LeakyRelu", [g.conv(x, (into, out), kernel, **how)], alpha=0.2)


def _mirrored(g: RandomGraph, x: str, by: int) -> str:
    return g.node("Pad", [x, g.integers([0, 0, by, by, 0, 0, by, by])], mode="reflect")


def _instance_norm(g: RandomGraph, x: str) -> str:
    centred = g.node("Sub", [x, g.node("ReduceMean", [x], axes=[2, 3], keepdims=1)])
    square = g.node("ReduceMean", [g.node("Mul", [centred, centred])], axes=[2, 3], keepdims=1)
    return g.node("Div", [centred, g.node("Sqrt", [g.add(square, g.floats(1e-8))])])


def _styled(g: RandomGraph, x: str, style: str, count: int) -> str:
    """Scale and shift of each channel by the identity."""
    scale, shift = (g.node("Unsqueeze", [g.linear(style, _ID, count, gain=0.7), g.integers([2, 3])]) for _ in range(2))
    return g.add(g.node("Mul", [x, g.add(scale, g.floats(1.0))]), shift)


def _style_block(g: RandomGraph, x: str, style: str, count: int) -> str:
    both = (count, count)
    y = _styled(g, _instance_norm(g, g.conv(_mirrored(g, x, 1), both, pad=0)), style, count)
    y = _styled(g, _instance_norm(g, g.conv(_mirrored(g, g.relu(y), 1), both, pad=0)), style, count)
    return g.add(x, y)


def _picture(g: RandomGraph, x: str, name: str, *, signed: bool) -> None:
    """-1..1, or the same as 0..1."""
    if signed:
        g.node("Tanh", [x], name)
    else:
        g.node("Mul", [g.add(g.node("Tanh", [x]), g.floats(1.0)), g.floats(0.5)], name)


def _emap(seed: int) -> NDArray[np.float32]:
    """(512, 512), a mirror across a random plane: of full rank, as the files' are."""
    normal = np.random.default_rng(seed).standard_normal(_ID)
    normal /= np.linalg.norm(normal)
    return (np.eye(_ID) - 2.0 * np.outer(normal, normal)).astype(np.float32)


def inswapper(width: float = 1.0, seed: int = 1, size: int = 128) -> bytes:
    """`target` 0..1 and `source` to `output` 0..1; the last initializer is the `emap`."""
    g = RandomGraph(seed)
    w = channels(128, width)
    x = g.node("LeakyRelu", [g.conv(_mirrored(g, "target", 3), (3, w), 7, pad=0)], alpha=0.2)
    x = _conv(g, x, w, 2 * w)
    x = _conv(g, x, 2 * w, 4 * w, stride=2)
    x = _conv(g, x, 4 * w, 8 * w, stride=2)
    for _ in range(6):
        x = _style_block(g, x, "source", 8 * w)
    x = _conv(g, g.upsample(x, mode="linear"), 8 * w, 4 * w)
    x = _conv(g, g.upsample(x, mode="linear"), 4 * w, 2 * w)
    x = _conv(g, x, 2 * w, w)
    _picture(g, g.conv(_mirrored(g, x, 3), (w, 3), 7, pad=0, gain=0.5), "output", signed=False)
    g.named("emap", _emap(seed))
    sides = (1, 3, size, size)
    return g.finish("inswapper", {"target": sides, "source": (1, _ID)}, {"output": sides})


def _encoded_picture(g: RandomGraph, picture: str, count: int) -> str:
    """(N, 512) of a picture."""
    x = _conv(g, _conv(g, picture, 3, count, stride=2), count, count, stride=2)
    return g.linear(g.node("Flatten", [g.node("GlobalAveragePool", [x])]), count, _ID)


def _generator(g: RandomGraph, target: str, style: str, w: int) -> str:
    """(N, w, size, size) features."""
    x = _conv(g, target, 3, w, 7)
    x = _conv(g, _conv(g, x, w, 2 * w, stride=2), 2 * w, 4 * w, stride=2)
    for _ in range(2):
        x = _style_block(g, x, style, 4 * w)
    x = _conv(g, g.upsample(x, mode="linear"), 4 * w, 2 * w)
    return _conv(g, g.upsample(x, mode="linear"), 2 * w, w)


def _swapper(
    g: RandomGraph,
    size: int,
    width: float,
    *,
    names: tuple[str, str, str] = ("target", "source", "output"),
    signed: bool = False,
    picture: int = 0,
    mask: bool = False,
) -> bytes:
    """A generator between a file's ends; `picture` is the side of a source that is a picture."""
    w = channels(64, width)
    target, source, output = names
    style = _encoded_picture(g, source, w) if picture else source
    x = _generator(g, target, style, w)
    _picture(g, g.conv(x, (w, 3), 7, gain=0.7), output, signed=signed)
    outputs: dict[str, Sequence[int]] = {output: (1, 3, size, size)}
    if mask:
        g.node("Sigmoid", [g.conv(x, (w, 1), 1)], "mask")
        outputs["mask"] = (1, 1, size, size)
    given = (1, 3, picture, picture) if picture else (1, _ID)
    return g.finish("swapper", {target: (1, 3, size, size), source: given}, outputs)


def simswap_256(width: float = 1.0, seed: int = 2) -> bytes:
    """ImageNet-normalised in, 0..1 out."""
    return _swapper(RandomGraph(seed), 256, width)


def simswap_unofficial_512(width: float = 1.0, seed: int = 3) -> bytes:
    """Under its exporter's names."""
    return _swapper(RandomGraph(seed), 512, width, names=("input", "onnx::Gemm_1", "output"))


def ghost(number: int, width: float = 1.0, seed: int = 4) -> bytes:
    """One of three, -1..1 in and out."""
    output = {1: "781", 2: "1165", 3: "1549"}[number]
    return _swapper(RandomGraph(seed + number), 256, width, names=("target", "source", output), signed=True)


def hififace_unofficial_256(width: float = 1.0, seed: int = 8) -> bytes:
    """-1..1 in and out."""
    return _swapper(RandomGraph(seed), 256, width, signed=True)


def hyperswap(letter: str, width: float = 1.0, seed: int = 9) -> bytes:
    """One of three ("a", "b", "c"): half weights, -1..1, with a `mask` of its own."""
    return _swapper(_Half(seed + ord(letter)), 256, width, signed=True, mask=True)


def instyleswapper(letter: str, width: float = 1.0, seed: int = 13) -> bytes:
    """One of three: inswapper's latent at 256 px, and inswapper's emap, which is not in the file."""
    return _swapper(RandomGraph(seed + ord(letter)), 256, width)


def blendswap_256(width: float = 1.0, seed: int = 17) -> bytes:
    """By a picture of 112 px."""
    return _swapper(RandomGraph(seed), 256, width, picture=112)


def uniface_256(width: float = 1.0, seed: int = 18) -> bytes:
    """By a picture of 256 px."""
    return _swapper(RandomGraph(seed), 256, width, picture=256, signed=True)


def dfm(width: float = 1.0, seed: int = 19, size: int = 224, *, morph: bool = False) -> bytes:
    """A model trained for one person: NHWC, BGR, 0..1; out come the plate's mask, the face, the face's mask."""
    g = RandomGraph(seed)
    w = channels(32, width)
    x = g.node("Transpose", ["in_face:0"], perm=[0, 3, 1, 2])
    x = _conv(g, _conv(g, x, 3, w, stride=2), w, 2 * w, stride=2)
    inputs: dict[str, Sequence[int]] = {"in_face:0": (1, size, size, 3)}
    if morph:
        x = g.add(x, g.node("Unsqueeze", [g.linear("morph_value:0", 1, 2 * w), g.integers([2, 3])]))
        inputs["morph_value:0"] = (1, 1)
    x = _conv(g, g.upsample(g.upsample(x, mode="linear"), mode="linear"), 2 * w, w)
    outputs: dict[str, Sequence[int]] = {}
    for name, count in (("out_face_mask:0", 1), ("out_celeb_face:0", 3), ("out_celeb_face_mask:0", 1)):
        plane = g.node("Sigmoid", [g.conv(x, (w, count), gain=0.7)])
        g.node("Transpose", [plane], name, perm=[0, 2, 3, 1])
        outputs[name] = (1, size, size, count)
    return g.finish("dfm", inputs, outputs)


SWAPPERS: Mapping[str, Callable[[float], bytes]] = MappingProxyType(
    {
        "inswapper_128": inswapper,
        "simswap_256": simswap_256,
        "simswap_unofficial_512": simswap_unofficial_512,
        "ghost_1_256": lambda width: ghost(1, width),
        "ghost_2_256": lambda width: ghost(2, width),
        "ghost_3_256": lambda width: ghost(3, width),
        "hififace_unofficial_256": hififace_unofficial_256,
        "hyperswap_1a_256": lambda width: hyperswap("a", width),
        "hyperswap_1b_256": lambda width: hyperswap("b", width),
        "hyperswap_1c_256": lambda width: hyperswap("c", width),
        "instyleswapper_256_a": lambda width: instyleswapper("a", width),
        "instyleswapper_256_b": lambda width: instyleswapper("b", width),
        "instyleswapper_256_c": lambda width: instyleswapper("c", width),
        "blendswap_256": blendswap_256,
        "uniface_256": uniface_256,
        "dfm": dfm,
    }
)
"""Makers by card id; each takes the width and gives the file."""
