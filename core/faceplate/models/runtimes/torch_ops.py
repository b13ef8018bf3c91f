"""ONNX's operators in torch, as far as nets for faces use them.

Each takes the node's inputs (None for one that is left out) and attributes, and gives its outputs. Shapes, axes and
other whole numbers are int64 tensors on the CPU; pictures and weights lie on the net's device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

Attributes = Mapping[str, Any]
Operator = Callable[[Sequence[Any], Attributes], Any]

OPERATORS: dict[str, Operator] = {}
"""By ONNX's name. An operator with one output gives a tensor, others a tuple."""

_TYPES = {
    1: torch.float32,
    2: torch.uint8,
    3: torch.int8,
    6: torch.int32,
    7: torch.int64,
    9: torch.bool,
    10: torch.float16,
    11: torch.float64,
    16: torch.bfloat16,
}


def operator(*names: str) -> Callable[[Operator], Operator]:
    def keep(function: Operator) -> Operator:
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return keep


def _plain(function: Any) -> Operator:
    return lambda inputs, _: function(*inputs)


OPERATORS.update(
    {
        name: _plain(function)
        for name, function in {
            "Add": torch.add,
            "Sub": torch.sub,
            "Mul": torch.mul,
            "Pow": torch.pow,
            "Sqrt": torch.sqrt,
            "Exp": torch.exp,
            "Log": torch.log,
            "Neg": torch.neg,
            "Abs": torch.abs,
            "Reciprocal": torch.reciprocal,
            "Floor": torch.floor,
            "Ceil": torch.ceil,
            "Round": torch.round,
            "Sin": torch.sin,
            "Cos": torch.cos,
            "Erf": torch.erf,
            "Tanh": torch.tanh,
            "Sigmoid": torch.sigmoid,
            "Relu": torch.relu,
            "Softplus": functional.softplus,
            "HardSwish": functional.hardswish,
            "MatMul": torch.matmul,
            "Identity": lambda value: value,
            "Equal": torch.eq,
            "Greater": torch.gt,
            "GreaterOrEqual": torch.ge,
            "Less": torch.lt,
            "LessOrEqual": torch.le,
            "Not": torch.logical_not,
            "And": torch.logical_and,
            "Or": torch.logical_or,
            "Where": torch.where,
        }.items()
    }
)


def ints(value: Any) -> list[int]:
    """A tensor of whole numbers as a list."""
    return [int(one) for one in torch.as_tensor(value).reshape(-1).tolist()]


@operator("Div")
def _div(inputs: Sequence[Any], _: Attributes) -> Tensor:
    a, b = inputs
    if not a.is_floating_point() and not b.is_floating_point():
        return torch.div(a, b, rounding_mode="trunc")
    return torch.div(a, b)


@operator("Dropout")
def _dropout(inputs: Sequence[Any], _: Attributes) -> Tensor:
    value: Tensor = inputs[0]
    return value


def _each(function: Callable[[Tensor, Tensor], Tensor]) -> Operator:
    return lambda inputs, _: _fold(function, inputs)


OPERATORS.update({"Min": _each(torch.minimum), "Max": _each(torch.maximum)})


def _fold(function: Callable[[Tensor, Tensor], Tensor], values: Sequence[Tensor]) -> Tensor:
    total = values[0]
    for value in values[1:]:
        total = function(total, value)
    return total


@operator("LeakyRelu")
def _leaky_relu(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    return functional.leaky_relu(inputs[0], attributes.get("alpha", 0.01))


@operator("Elu")
def _elu(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    return functional.elu(inputs[0], attributes.get("alpha", 1.0))


@operator("HardSigmoid")
def _hard_sigmoid(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    value: Tensor = inputs[0]
    return torch.clamp(value * attributes.get("alpha", 0.2) + attributes.get("beta", 0.5), 0, 1)


@operator("PRelu")
def _prelu(inputs: Sequence[Any], _: Attributes) -> Tensor:
    value, slope = inputs
    if slope.numel() == value.shape[1] and slope.shape[0] == value.shape[1]:
        return functional.prelu(value, slope.reshape(-1))
    return torch.where(value < 0, value * slope, value)


@operator("Clip")
def _clip(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    low = inputs[1] if len(inputs) > 1 and inputs[1] is not None else attributes.get("min")
    high = inputs[2] if len(inputs) > 2 and inputs[2] is not None else attributes.get("max")
    return torch.clamp(inputs[0], *(None if one is None else float(one) for one in (low, high)))


@operator("Softmax")
def _softmax(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    return functional.softmax(inputs[0], attributes.get("axis", -1))


@operator("Cast")
def _cast(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    wanted = attributes["to"] if isinstance(attributes["to"], torch.dtype) else _TYPES[attributes["to"]]
    value: Tensor = inputs[0]
    return value.to(wanted)


# Reductions


def _axes(inputs: Sequence[Any], attributes: Attributes, value: Tensor) -> list[int]:
    if len(inputs) > 1 and inputs[1] is not None:
        return ints(inputs[1])
    return list(attributes.get("axes", range(value.dim())))


def _reduction(function: Callable[[Tensor, list[int], bool], Tensor]) -> Operator:
    return lambda inputs, attributes: function(
        inputs[0], _axes(inputs, attributes, inputs[0]), bool(attributes.get("keepdims", 1))
    )


OPERATORS.update(
    {
        "ReduceMean": _reduction(lambda value, axes, keep: value.mean(axes, keepdim=keep)),
        "ReduceSum": _reduction(lambda value, axes, keep: value.sum(axes, keepdim=keep)),
        "ReduceMax": _reduction(lambda value, axes, keep: value.amax(axes, keepdim=keep)),
        "ReduceMin": _reduction(lambda value, axes, keep: value.amin(axes, keepdim=keep)),
        "ReduceL2": _reduction(lambda value, axes, keep: torch.linalg.vector_norm(value, dim=axes, keepdim=keep)),
        "ReduceSumSquare": _reduction(lambda value, axes, keep: value.square().sum(axes, keepdim=keep)),
        "ReduceProd": _reduction(lambda value, axes, keep: value.prod(axes[0], keepdim=keep)),
    }
)


@operator("ArgMax")
def _argmax(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    value: Tensor = inputs[0]
    return value.argmax(attributes.get("axis", 0), keepdim=bool(attributes.get("keepdims", 1)))


# Shapes


@operator("Shape")
def _shape(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    return torch.tensor(inputs[0].shape[attributes.get("start", 0) : attributes.get("end")], dtype=torch.int64)


@operator("Reshape")
def _reshape(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    value = inputs[0]
    wanted = ints(inputs[1])
    if not attributes.get("allowzero", 0):
        wanted = [value.shape[axis] if length == 0 else length for axis, length in enumerate(wanted)]
    result: Tensor = value.reshape(wanted)
    return result


@operator("Flatten")
def _flatten(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    axis = attributes.get("axis", 1)
    lead = 1
    for length in inputs[0].shape[:axis]:
        lead *= length
    result: Tensor = inputs[0].reshape(lead, -1)
    return result


@operator("Transpose")
def _transpose(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    value: Tensor = inputs[0]
    return value.permute(attributes.get("perm", list(range(value.dim()))[::-1]))


@operator("Unsqueeze")
def _unsqueeze(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    value: Tensor = inputs[0]
    axes = ints(inputs[1]) if len(inputs) > 1 else attributes["axes"]
    rank = value.dim() + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        value = value.unsqueeze(axis)
    return value


@operator("Squeeze")
def _squeeze(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    value: Tensor = inputs[0]
    axes = ints(inputs[1]) if len(inputs) > 1 and inputs[1] is not None else attributes.get("axes")
    return value.squeeze() if axes is None else value.squeeze(tuple(axes))


@operator("Concat")
def _concat(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    return torch.cat(list(inputs), attributes["axis"])


@operator("Split")
def _split(inputs: Sequence[Any], attributes: Attributes) -> tuple[Tensor, ...]:
    value, axis = inputs[0], attributes.get("axis", 0)
    sizes = ints(inputs[1]) if len(inputs) > 1 and inputs[1] is not None else attributes.get("split")
    if sizes is None:
        sizes = -(-value.shape[axis] // attributes["outputs"])
    return tuple(torch.split(value, sizes, axis))


@operator("Slice")
def _slice(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    value: Tensor = inputs[0]
    if len(inputs) > 1:
        parts = [None if one is None else ints(one) for one in inputs[1:]]
    else:
        parts = [attributes["starts"], attributes["ends"], attributes.get("axes")]
    parts += [None] * (4 - len(parts))
    starts, ends = parts[0] or [], parts[1] or []
    axes, steps = parts[2] or range(len(starts)), parts[3] or [1] * len(starts)
    for first, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        length = value.shape[axis]
        if step > 0:
            index = [slice(None)] * value.dim()
            index[axis] = slice(first, end, step)
            value = value[tuple(index)]
        else:
            at = torch.tensor(range(*slice(first, end, step).indices(length)), dtype=torch.int64, device=value.device)
            value = value.index_select(axis, at)
    return value


@operator("Gather")
def _gather(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    value, index = inputs
    axis = attributes.get("axis", 0) % value.dim()
    index = index.to(value.device)
    index = torch.where(index < 0, index + value.shape[axis], index)
    flat = value.index_select(axis, index.reshape(-1))
    result: Tensor = flat.reshape(*value.shape[:axis], *index.shape, *value.shape[axis + 1 :])
    return result


@operator("Expand")
def _expand(inputs: Sequence[Any], _: Attributes) -> Tensor:
    value: Tensor = inputs[0]
    wanted: Any = torch.broadcast_shapes(value.shape, tuple(ints(inputs[1])))  # type: ignore[no-untyped-call]
    return value.expand(wanted)


@operator("Tile")
def _tile(inputs: Sequence[Any], _: Attributes) -> Tensor:
    value: Tensor = inputs[0]
    return value.repeat(ints(inputs[1]))


@operator("ConstantOfShape")
def _constant_of_shape(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    value = attributes.get("value", torch.zeros(1))
    return torch.full(ints(inputs[0]), value.reshape(-1)[0].item(), dtype=value.dtype)


@operator("Range")
def _range(inputs: Sequence[Any], _: Attributes) -> Tensor:
    start, end, step = (one.item() for one in inputs)
    return torch.arange(start, end, step, dtype=inputs[0].dtype)
