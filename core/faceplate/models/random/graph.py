"""Layers with seeded random weights: the same bytes for the same seed and width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import TensorProto, helper, numpy_helper

from ..convert.builder import IR_VERSION, OPSET, GraphBuilder

Length = int | str
_TYPES = {
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "float64": TensorProto.DOUBLE,
    "int64": TensorProto.INT64,
}


class RandomGraph(GraphBuilder):
    """An ONNX graph whose layers draw their weights, scaled so that activations keep about their size.

    Args:
        seed: of the weights.
        opset: of the file, as the tools that export such nets write.
    """

    def __init__(self, seed: int, opset: int = OPSET) -> None:
        super().__init__()
        self._random = np.random.default_rng(seed)
        self._opset = opset

    def weights(self, *shape: int, scale: float = 1.0) -> str:
        """A float32 constant, normal, zero mean, deviation `scale`."""
        return self.floats(self._random.standard_normal(shape, np.float32) * np.float32(scale))

    def named(self, name: str, values: ArrayLike) -> str:
        """A constant of this name and of the array's own type, after those that are there."""
        self._constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def conv(
        self,
        value: str,
        channels: tuple[int, int],
        kernel: int = 3,
        *,
        stride: int = 1,
        pad: int | None = None,
        groups: int = 1,
        gain: float = 1.4,
        bias: ArrayLike | None = None,
        output: str | None = None,
    ) -> str:
        """A convolution of (in, out) channels; `pad` None keeps the size; `bias` None for zeros."""
        into, out = channels
        fan_in = into // groups * kernel * kernel
        weight = self.weights(out, into // groups, kernel, kernel, scale=gain * fan_in**-0.5)
        offsets = self.floats(np.broadcast_to(np.asarray(0.0 if bias is None else bias, np.float32), (out,)))
        around = kernel // 2 if pad is None else pad
        sizes: dict[str, Any] = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [around] * 4}
        return self.node("Conv", [value, weight, offsets], output, group=groups, **sizes)

    def linear(self, value: str, into: int, out: int, *, gain: float = 1.0, output: str | None = None) -> str:
        """A dense layer on (N, into), without bias."""
        weight = self.weights(out, into, scale=gain * into**-0.5)
        return self.node("Gemm", [value, weight, self.floats(np.zeros(out, np.float32))], output, transB=1)

    def batch_norm(self, value: str, channels: int, **attributes: Any) -> str:
        """Fixed statistics near 0 and 1."""
        drawn = [1.0 + 0.1 * self._random.standard_normal(channels), 0.1 * self._random.standard_normal(channels)]
        fixed = [np.zeros(channels), np.ones(channels)]
        return self.node("BatchNormalization", [value, *(self.floats(one) for one in drawn + fixed)], **attributes)

    def instance_norm(self, value: str, channels: int) -> str:
        """Zero mean and deviation 1, channel by channel of each picture: scores and boxes stay in a sane range."""
        fixed = [self.floats(np.ones(channels)), self.floats(np.zeros(channels))]
        return self.node("InstanceNormalization", [value, *fixed], epsilon=1e-5)

    def prelu(self, value: str, channels: int) -> str:
        """Slope 1/4 below zero, channel by channel."""
        return self.node("PRelu", [value, self.floats(np.full((channels, 1, 1), 0.25, np.float32))])

    def relu(self, value: str) -> str:
        """max(value, 0)."""
        return self.node("Relu", [value])

    def add(self, *values: str) -> str:
        """The sum."""
        total = values[0]
        for value in values[1:]:
            total = self.node("Add", [total, value])
        return total

    def pool(self, value: str, operator: str = "AveragePool", kernel: int = 2, pad: int = 0) -> str:
        """Half the size."""
        return self.node(operator, [value], kernel_shape=[kernel] * 2, strides=[2, 2], pads=[pad] * 4)

    def upsample(self, value: str, factor: int = 2, mode: str = "nearest") -> str:
        """`factor` times the size."""
        how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        if mode == "linear":
            how = {"coordinate_transformation_mode": "half_pixel"}
        return self.node("Resize", [value, "", self.floats([1.0, 1.0, factor, factor])], mode=mode, **how)

    def finish(
        self,
        name: str,
        inputs: Mapping[str, Sequence[Length]],
        outputs: Mapping[str, Sequence[Length]],
        types: Mapping[str, str] | None = None,
    ) -> bytes:
        """The checked ONNX file.

        Args:
            name: of the graph.
            inputs: name to shape, the batch axis included; words for lengths that are free.
            outputs: the same.
            types: of those that are not float32, by name.
        """
        types = types or {}
        graph = helper.make_graph(self._nodes, name, _infos(inputs, types), _infos(outputs, types), self._constants)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", self._opset)],
            ir_version=IR_VERSION,
            producer_name="faceplate.models.random",
        )
        onnx.checker.check_model(model)
        content: bytes = model.SerializeToString(deterministic=True)
        return content


def _infos(shapes: Mapping[str, Sequence[Length]], types: Mapping[str, str]) -> list[Any]:
    return [
        helper.make_tensor_value_info(name, _TYPES[types.get(name, "float32")], list(shape))
        for name, shape in shapes.items()
    ]


def channels(count: int, width: float) -> int:
    """Channels of a narrowed net, at least 4 and even."""
    return max(4, 2 * round(count * width / 2))
