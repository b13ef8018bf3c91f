"""Changes of a graph before it runs: a batch axis that is free, weights in half precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from ..card import ModelCard

BATCH = "N"


def free_batch(model: onnx.ModelProto, card: ModelCard) -> onnx.ModelProto:
    """A copy whose batch axis is free: of inputs, outputs, and of the shapes that reshaping nodes write.

    Whether its numbers are still those of the file has to be tried: a graph may mix items of a batch.

    Args:
        model: as the file has it, usually with batch 1.
        card: which inputs and outputs have a batch axis.
    """
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    graph = changed.graph
    batched = {spec.file_name for spec in (*card.inputs, *card.outputs) if spec.batched}
    for value in (*graph.input, *graph.output):
        if value.name in batched and value.type.tensor_type.shape.dim:
            value.type.tensor_type.shape.dim[0].dim_param = BATCH
    # What the exporter noted about values in between holds for batch 1 only.
    del graph.value_info[:]
    shapes = _shape_constants(graph)
    for name, values in shapes.items():
        if len(values) > 1 and values[0] == 1:
            # 0 copies the length that is there.
            _write(graph, name, np.array([0, *values[1:]], np.int64))
    return changed


def _shape_constants(graph: Any) -> dict[str, list[int]]:
    """Constants that Reshape nodes take as the new shape, and nothing else does."""
    users: dict[str, list[tuple[str, int]]] = {}
    for node in graph.node:
        for position, name in enumerate(node.input):
            users.setdefault(name, []).append((node.op_type, position))
    found = {}
    for name, value in _constants(graph).items():
        if users.get(name) and all(use == ("Reshape", 1) for use in users[name]):
            found[name] = [int(one) for one in value.reshape(-1)]
    return found


def _constants(graph: Any) -> dict[str, Any]:
    small = {one.name: one for one in graph.initializer if one.data_type == onnx.TensorProto.INT64}
    found = {name: numpy_helper.to_array(one) for name, one in small.items()}
    for node in graph.node:
        if node.op_type != "Constant":
            continue
        value = onnx.helper.get_attribute_value(node.attribute[0])
        if node.attribute[0].name == "value_ints":
            found[node.output[0]] = np.array(value, np.int64)
        elif node.attribute[0].name == "value" and value.data_type == onnx.TensorProto.INT64:
            found[node.output[0]] = numpy_helper.to_array(value)
    return found


def _write(graph: Any, name: str, values: Any) -> None:
    for one in graph.initializer:
        if one.name == name:
            one.CopyFrom(numpy_helper.from_array(values, name))
    for node in graph.node:
        if node.op_type == "Constant" and node.output[0] == name:
            node.attribute[0].CopyFrom(onnx.helper.make_attribute("value", numpy_helper.from_array(values)))


def half_precision(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy that computes in float16; inputs and outputs stay as they are."""
    from onnxruntime.transformers.float16 import convert_float_to_float16

    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    half: onnx.ModelProto = convert_float_to_float16(changed, keep_io_types=True, disable_shape_infer=True)
    return half
