"""Collects nodes and constants and makes an ONNX model of them, always with the same bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike, NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8
BATCH = "N"


class GraphBuilder:
    """An ONNX graph in the making; values are known by their names."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._count = 0

    def _new_name(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def floats(self, value: ArrayLike) -> str:
        """A float32 constant. float16 arrays are stored as such and widened by a Cast, which runtimes fold on loading:
        half the file for the same numbers.
        """
        array = np.ascontiguousarray(value)
        if array.dtype != np.float16:
            return self._store(array.astype(np.float32))
        return self.node("Cast", [self._store(array)], to=TensorProto.FLOAT)

    def integers(self, value: ArrayLike) -> str:
        """An int64 constant."""
        return self._store(np.asarray(value, np.int64))

    def _store(self, array: NDArray[Any]) -> str:
        name = self._new_name()
        self._constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, operator: str, inputs: Sequence[str], output: str | None = None, **attributes: Any) -> str:
        """Add a node with one output; returns the output's name."""
        output = output or self._new_name()
        self._nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def take(self, value: str, first: int, end: int, axis: int) -> str:
        """value[first:end] along `axis`."""
        return self.node("Slice", [value, *(self.integers([number]) for number in (first, end, axis))])

    def reshape(self, value: str, shape: Sequence[int], output: str | None = None) -> str:
        """Every item of the batch in this shape."""
        return self.node("Reshape", [value, self.integers([0, *shape])], output)

    def model(
        self,
        name: str,
        inputs: Mapping[str, tuple[int, ...]],
        outputs: Mapping[str, tuple[int, ...]],
        facts: Mapping[str, str],
    ) -> bytes:
        """The checked ONNX file. Shapes are those of one item; the batch axis before them is free.

        Args:
            name: of the graph.
            inputs: name to shape.
            outputs: name to shape.
            facts: metadata, written in the order given.
        """
        graph = helper.make_graph(self._nodes, name, _values(inputs), _values(outputs), self._constants)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="faceplate.models.convert",
        )
        helper.set_model_props(model, dict(facts))
        onnx.checker.check_model(model, full_check=True)
        content: bytes = model.SerializeToString(deterministic=True)
        return content


def _values(shapes: Mapping[str, tuple[int, ...]]) -> list[Any]:
    return [helper.make_tensor_value_info(name, TensorProto.FLOAT, [BATCH, *shape]) for name, shape in shapes.items()]
