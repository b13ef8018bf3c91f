"""An ONNX graph run by torch, node by node, in float32, bfloat16 or float16, pictures with their channels last.

It behaves as onnxruntime's session does, so that `Net` need not know which of the two it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper

from ...errors import ModelError
from . import torch_layers as torch_layers
from .torch_ops import OPERATORS, Attributes, Operator

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

_WARM_RUNS = 3
_PICTURE = 4
_NO_KERNEL = ("not implemented for", "no kernel", "expected scalar type")


@dataclass(slots=True)
class _Step:
    """One node.

    Attributes:
        name: of ONNX's operator.
        operator: that does it.
        inputs: names, "" for one that is left out.
        outputs: names.
        attributes: of the node.
        drop: values that nobody needs after it.
        widen: whether torch has no kernel for the precision here, so that the step computes in float32.
    """

    name: str
    operator: Operator
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Attributes
    drop: tuple[str, ...] = ()
    widen: bool = False


class TorchSession:
    """A net in torch.

    Args:
        model: with its weights; it is not needed afterwards.
        device: where it runs.
        precision: a name of `PRECISIONS`.
        graphs: capture CUDA graphs, one a shape of the inputs.

    Raises:
        ModelError: the net has an operator that is not known here.
    """

    def __init__(
        self, model: onnx.ModelProto, device: torch.device, precision: str = "float32", *, graphs: bool = True
    ) -> None:
        self._device = device
        self._dtype = PRECISIONS[precision]
        self._inputs = [one.name for one in model.graph.input]
        self._values = {one.name: self._weight(one) for one in model.graph.initializer}
        self._inputs = [name for name in self._inputs if name not in self._values]
        self._steps = [self._step(node) for node in model.graph.node]
        self._outputs = [one.name for one in model.graph.output]
        self._fold()
        self._plan_drops()
        self._graphs = graphs and device.type == "cuda"
        self._captured: dict[Any, _Captured] = {}
        self.precision = precision
        self.weights_bytes = sum(value.nbytes for value in self._values.values())
        self.fixed_batch = False

    def get_providers(self) -> list[str]:
        """What runs it, as onnxruntime's sessions say."""
        return ["torch"]

    def _weight(self, initializer: onnx.TensorProto) -> torch.Tensor:
        return self._placed(torch.from_numpy(numpy_helper.to_array(initializer).copy()))

    def _placed(self, value: torch.Tensor) -> torch.Tensor:
        """Floats on the device in the net's precision, channels last; whole numbers (shapes, axes) on the CPU."""
        if not value.is_floating_point():
            return value
        value = value.to(self._device, self._dtype)
        return value.contiguous(memory_format=torch.channels_last) if value.dim() == _PICTURE else value

    def _step(self, node: onnx.NodeProto) -> _Step:
        attributes: dict[str, Any] = {one.name: _attribute(one) for one in node.attribute}
        if node.op_type == "Constant":
            value = next(iter(attributes.values()))
            attributes = {"value": self._placed(torch.as_tensor(value))}
            return _Step("Constant", _constant, (), tuple(node.output), attributes)
        if node.domain not in ("", "ai.onnx") or node.op_type not in OPERATORS:
            raise ModelError(
                f"torch cannot run this net: it has the operator {node.op_type}",
                expected=f"operators among {', '.join(sorted(OPERATORS))}",
                found=f"{node.domain}.{node.op_type}".lstrip("."),
                hint="run it with onnxruntime: precision float32",
            )
        if node.op_type == "Cast" and attributes["to"] in (_FLOAT, _HALF, _DOUBLE):
            attributes["to"] = self._dtype
        if node.op_type == "Split":
            attributes["outputs"] = len(node.output)
        return _Step(node.op_type, OPERATORS[node.op_type], tuple(node.input), tuple(node.output), attributes)

    def _fold(self) -> None:
        """Do once what depends on constants alone."""
        left = []
        with torch.no_grad():
            for step in self._steps:
                if all(name == "" or name in self._values for name in step.inputs):
                    self._do(step, self._values)
                else:
                    left.append(step)
        self._steps = left

    def _plan_drops(self) -> None:
        last = {name: step for step in self._steps for name in (*step.inputs, *step.outputs)}
        kept = {*self._outputs, *self._values, ""}
        for step in self._steps:
            names = dict.fromkeys((*step.inputs, *step.outputs))
            step.drop = tuple(name for name in names if last[name] is step and name not in kept)

    def _do(self, step: _Step, values: dict[str, torch.Tensor]) -> None:
        inputs = [values[name] if name else None for name in step.inputs]
        if step.widen:
            results = self._widened(step, inputs)
        else:
            try:
                results = step.operator(inputs, step.attributes)
            except (RuntimeError, NotImplementedError) as error:
                if self._dtype == torch.float32 or not any(words in str(error) for words in _NO_KERNEL):
                    raise
                step.widen = True
                results = self._widened(step, inputs)
        for name, value in zip(step.outputs, results if isinstance(results, tuple) else (results,), strict=False):
            values[name] = value

    def _widened(self, step: _Step, inputs: Sequence[torch.Tensor | None]) -> Any:
        wide = [one.float() if one is not None and one.is_floating_point() else one for one in inputs]
        results = step.operator(wide, step.attributes)
        many = results if isinstance(results, tuple) else (results,)
        return tuple(one.to(self._dtype) if one.is_floating_point() else one for one in many)

    def run(self, names: Sequence[str], feed: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        """As onnxruntime: arrays in, arrays out."""
        tensors = {name: torch.from_numpy(np.ascontiguousarray(value)).to(self._device) for name, value in feed.items()}
        return [value.cpu().numpy() for value in self.run_tensors(names, tensors)]

    def run_tensors(self, names: Sequence[str], feed: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        """Tensors on the device in and out; floats come out as float32, contiguous."""
        with torch.no_grad():
            return self._replayed(names, feed) if self._graphs else self._forward(names, feed)

    def _forward(self, names: Sequence[str], feed: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        values = {**self._values, **{name: self._placed(value) for name, value in feed.items()}}
        for step in self._steps:
            self._do(step, values)
            for name in step.drop:
                values.pop(name, None)
        found = [values[name] for name in names]
        return [(one.float() if one.is_floating_point() else one).contiguous() for one in found]

    def _replayed(self, names: Sequence[str], feed: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        key = (tuple(names), *((name, tuple(value.shape)) for name, value in sorted(feed.items())))
        if key not in self._captured:
            self._captured[key] = _Captured(lambda given: self._forward(names, given), feed, self._device)
        return self._captured[key](feed)


class _Captured:
    """A CUDA graph of one run: its inputs are copied to where it reads, its outputs from where it writes."""

    def __init__(self, forward: Any, feed: Mapping[str, torch.Tensor], device: torch.device) -> None:
        self._feed = {name: value.clone() for name, value in feed.items()}
        stream: Any = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            for _ in range(_WARM_RUNS):
                forward(self._feed)
        torch.cuda.current_stream(device).wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._results = forward(self._feed)

    def __call__(self, feed: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        for name, value in feed.items():
            self._feed[name].copy_(value)
        self._graph.replay()
        return [value.clone() for value in self._results]


_FLOAT, _HALF, _DOUBLE = onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE


def _constant(_: Sequence[Any], attributes: Attributes) -> torch.Tensor:
    value: torch.Tensor = attributes["value"]
    return value


def _attribute(attribute: onnx.AttributeProto) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, onnx.TensorProto):
        return torch.from_numpy(numpy_helper.to_array(value).copy())
    return value
