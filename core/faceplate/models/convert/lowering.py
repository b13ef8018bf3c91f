"""A tflite graph on its way into an ONNX graph: which value is known by which name, and the walk over the operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from ...errors import ModelError
from .builder import GraphBuilder
from .graph import Graph, Operation

_RELU, _RELU6 = 1, 3


class Lowering:
    """A tflite graph on its way into an ONNX graph."""

    def __init__(self, graph: Graph, builder: GraphBuilder, input_name: str) -> None:
        self.graph = graph
        self.builder = builder
        self._names = {graph.inputs[0]: input_name}

    def run(self, known: Mapping[str, Rule]) -> None:
        """Lower all operations.

        Args:
            known: by kind of operator, what makes its nodes and returns the name of its result, before a fused
                activation.

        Raises:
            ModelError: an operator that is not among the known ones.
        """
        for operation in self.graph.operations:
            if operation.kind not in known:
                raise ModelError(f"the net uses an operator that the converter does not know: {operation.kind}")
            result = known[operation.kind](self, operation)
            self._names[operation.outputs[0]] = self._activate(result, operation)

    def _activate(self, value: str, operation: Operation) -> str:
        fused = operation.options.get("FusedActivationFunction", 0)
        if fused == 0:
            return value
        if fused == _RELU:
            return self.builder.node("Relu", [value])
        if fused == _RELU6:
            return self.builder.node("Clip", [value, self.builder.floats(0.0), self.builder.floats(6.0)])
        raise ModelError(f"{operation.kind} has a fused activation that the converter does not know: {fused}")

    def result(self, tensor_name: str) -> str:
        """ONNX name of the tflite tensor of this name."""
        for index, name in self._names.items():
            if self.graph.tensors[index].name == tensor_name:
                return name
        raise ModelError(f"the net has no tensor {tensor_name}")

    def shape(self, index: int) -> tuple[int, ...]:
        """tflite's shape, batch 1, NHWC."""
        return self.graph.tensors[index].shape

    def is_constant(self, index: int) -> bool:
        """True for weights."""
        return self.graph.tensors[index].value is not None

    def constant(self, index: int) -> NDArray[Any]:
        """Value of a constant tensor."""
        tensor = self.graph.tensors[index]
        if tensor.value is None:
            raise ModelError(f"{tensor.name} is computed where the converter knows only constants")
        return tensor.value

    def integers(self, index: int) -> list[int]:
        """A constant list of integers."""
        return [int(value) for value in self.constant(index).ravel()]

    def name(self, index: int) -> str:
        """ONNX name of a computed tensor."""
        return self._names[index]


Rule = Callable[[Lowering, Operation], str]
