"""Where onnxruntime puts the nodes of a net: none of its work on the CPU in silence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from faceplate.errors import DeviceError
from faceplate.models.random import swappers
from faceplate.models.runtimes.placement import RECORD, checked, on_cpu


@dataclass(frozen=True)
class Node:
    op_type: str


@dataclass(frozen=True)
class Part:
    ep_name: str
    operators: tuple[str, ...]

    def get_nodes(self) -> list[Node]:
        return [Node(one) for one in self.operators]


class Session:
    """What onnxruntime says of a session on a GPU."""

    def __init__(self, cpu: tuple[str, ...]) -> None:
        self._parts = [Part("CUDAExecutionProvider", ("Conv", "Relu")), Part("CPUExecutionProvider", cpu)]

    def get_provider_graph_assignment_info(self) -> list[Part]:
        return self._parts


def opened(model: bytes) -> Any:
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry(RECORD, "1")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def test_shapes_may_be_computed_on_the_cpu_and_are_told() -> None:
    assert checked(Session(()), "net", "cuda:0") == ""
    told = checked(Session(("Shape", "Gather", "Concat", "Cast")), "net", "cuda:0")
    assert told == "4 nodes that compute shapes on the CPU"
    assert "does not tell" in checked(object(), "net", "cuda:0")


@pytest.mark.parametrize("operator", ["Conv", "Resize", "GridSample", "MatMul", "InstanceNormalization", "LpPool"])
def test_work_on_the_cpu_is_refused_with_its_operators(operator: str) -> None:
    with pytest.raises(DeviceError, match="would run on the CPU, not on cuda:0") as told:
        checked(Session(("Shape", operator, operator)), "net", "cuda:0")
    assert f"found 2 x {operator}" in str(told.value)


def test_a_real_session_tells_its_nodes() -> None:
    found = on_cpu(opened(swappers.blendswap_256(0.06)))
    assert found is not None
    assert found["Conv"] > 5
    with pytest.raises(DeviceError, match="Conv"):
        checked(opened(swappers.blendswap_256(0.06)), "blendswap_256", "cuda:0")


def test_the_shapes_of_a_net_with_free_lengths_pass() -> None:
    """Flattened by its own shape, as exporters write it."""
    values = [
        helper.make_tensor_value_info("value", TensorProto.FLOAT, ["N", 3, "h", "w"]),
        helper.make_tensor_value_info("result", TensorProto.FLOAT, ["N", "m"]),
    ]
    constants = [
        helper.make_tensor("first", TensorProto.INT64, [1], [0]),
        helper.make_tensor("rest", TensorProto.INT64, [1], [-1]),
    ]
    nodes = [
        helper.make_node("Shape", ["value"], ["shape"]),
        helper.make_node("Gather", ["shape", "first"], ["batch"]),
        helper.make_node("Concat", ["batch", "rest"], ["flat"], axis=0),
        helper.make_node("Reshape", ["value", "flat"], ["result"]),
    ]
    graph = helper.make_graph(nodes, "flat", values[:1], values[1:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = opened(model.SerializeToString())
    assert session.run(None, {"value": np.ones((2, 3, 4, 5), np.float32)})[0].shape == (2, 60)
    assert checked(session, "flat", "cuda:0") == "4 nodes that compute shapes on the CPU"
