"""Turns tflite's operators (NHWC) into ONNX nodes (NCHW); the batch is free to grow.

Each function makes the nodes of one kind of operator and returns the name of its result, before a fused activation.
"""

from __future__ import annotations

import math

from ...errors import ModelError
from .graph import Operation
from .lowering import Lowering, Rule

_SAME_PADDING = 0
_OPEN_END = 2**31 - 1
_TO_NCHW = (0, 3, 1, 2)
_TO_NHWC = (0, 2, 3, 1)


def _same_padding(size: int, kernel: int, stride: int, dilation: int = 1) -> tuple[int, int]:
    """TensorFlow's SAME: as many outputs as ceil(size / stride), the odd pixel of padding at the end."""
    reach = (kernel - 1) * dilation + 1
    total = max((math.ceil(size / stride) - 1) * stride + reach - size, 0)
    return total // 2, total - total // 2


def _pads(low: Lowering, op: Operation, kernel: tuple[int, int]) -> list[int]:
    if op.options["Padding"] != _SAME_PADDING:
        return [0, 0, 0, 0]
    _, height, width, _ = low.shape(op.inputs[0])
    options = op.options
    top, bottom = _same_padding(height, kernel[0], options["StrideH"], options.get("DilationHFactor", 1))
    left, right = _same_padding(width, kernel[1], options["StrideW"], options.get("DilationWFactor", 1))
    return [top, left, bottom, right]


def _convolution(low: Lowering, op: Operation) -> str:
    weights = low.constant(op.inputs[1])
    depthwise = op.kind == "DEPTHWISE_CONV_2D"
    weights = weights.transpose(3, 0, 1, 2) if depthwise else weights.transpose(_TO_NCHW)
    inputs = [low.name(op.inputs[0]), low.builder.floats(weights)]
    if len(op.inputs) > 2 and op.inputs[2] >= 0:
        inputs.append(low.builder.floats(low.constant(op.inputs[2])))
    kernel = (weights.shape[2], weights.shape[3])
    return low.builder.node(
        "Conv",
        inputs,
        kernel_shape=kernel,
        strides=[op.options["StrideH"], op.options["StrideW"]],
        dilations=[op.options["DilationHFactor"], op.options["DilationWFactor"]],
        group=low.shape(op.inputs[0])[3] if depthwise else 1,
        pads=_pads(low, op, kernel),
    )


def _transposed_convolution(low: Lowering, op: Operation) -> str:
    """MediaPipe's Convolution2DTransposeBias, as far as its selfie net uses it: 2 x 2 kernel, stride 2, no overlap."""
    weights = low.constant(op.inputs[1]).transpose(3, 0, 1, 2)
    if weights.shape[2:] != (2, 2):
        raise ModelError("Convolution2DTransposeBias is known with a 2 x 2 kernel only", found=str(weights.shape))
    bias = low.builder.floats(low.constant(op.inputs[2]))
    return low.builder.node(
        "ConvTranspose", [low.name(op.inputs[0]), low.builder.floats(weights), bias], strides=[2, 2]
    )


def _pool(low: Lowering, op: Operation) -> str:
    kernel = (op.options["FilterHeight"], op.options["FilterWidth"])
    strides = [op.options["StrideH"], op.options["StrideW"]]
    inputs, pads = [low.name(op.inputs[0])], _pads(low, op, kernel)
    if op.kind == "MAX_POOL_2D":
        return low.builder.node("MaxPool", inputs, kernel_shape=kernel, strides=strides, pads=pads)
    return low.builder.node("AveragePool", inputs, kernel_shape=kernel, strides=strides, pads=pads, count_include_pad=0)


def _arithmetic(low: Lowering, op: Operation) -> str:
    inputs = []
    for index in op.inputs:
        if not low.is_constant(index):
            inputs.append(low.name(index))
            continue
        value = low.constant(index)
        if value.ndim == 4:
            value = value.transpose(_TO_NCHW)
        elif value.ndim == 1 and value.size > 1 and len(low.shape(op.outputs[0])) == 4:
            value = value.reshape(-1, 1, 1)
        inputs.append(low.builder.floats(value))
    return low.builder.node(op.kind.capitalize(), inputs)


def _prelu(low: Lowering, op: Operation) -> str:
    slope = low.constant(op.inputs[1])
    if slope.size != low.shape(op.inputs[0])[3]:
        raise ModelError("PRELU is known with one slope a channel only", found=str(slope.shape))
    # The same numbers as ONNX's PRelu, bit for bit, but onnxruntime's CPU kernel for that one took 60 % of a mesh net.
    build, value = low.builder, low.name(op.inputs[0])
    slopes = build.floats(slope.reshape(-1, 1, 1))
    if slope.max() <= 1:
        return build.node("Max", [value, build.node("Mul", [value, slopes])])
    negative = build.node("Mul", [build.node("Min", [value, build.floats(0.0)]), slopes])
    return build.node("Add", [build.node("Relu", [value]), negative])


def _simple(operator: str) -> Rule:
    return lambda low, op: low.builder.node(operator, [low.name(op.inputs[0])])


def _pad(low: Lowering, op: Operation) -> str:
    amounts = low.constant(op.inputs[1])
    if len(amounts) == 4:
        amounts = amounts[list(_TO_NCHW)]
    return low.builder.node("Pad", [low.name(op.inputs[0]), low.builder.integers(amounts.T.ravel())])


def _reshape(low: Lowering, op: Operation) -> str:
    value, shape = low.name(op.inputs[0]), low.shape(op.outputs[0])
    if len(low.shape(op.inputs[0])) == 4:
        value = low.builder.node("Transpose", [value], perm=_TO_NHWC)
    value = low.builder.reshape(value, shape[1:])
    return low.builder.node("Transpose", [value], perm=_TO_NCHW) if len(shape) == 4 else value


def _resize(low: Lowering, op: Operation) -> str:
    _, height, width, _ = low.shape(op.inputs[0])
    _, new_height, new_width, _ = low.shape(op.outputs[0])
    if op.options["AlignCorners"]:
        mode = "align_corners"
    else:
        mode = "half_pixel" if op.options["HalfPixelCenters"] else "asymmetric"
    scales = low.builder.floats([1.0, 1.0, new_height / height, new_width / width])
    return low.builder.node(
        "Resize", [low.name(op.inputs[0]), "", scales], mode="linear", coordinate_transformation_mode=mode
    )


def _depth_to_space(low: Lowering, op: Operation) -> str:
    return low.builder.node("DepthToSpace", [low.name(op.inputs[0])], blocksize=op.options["BlockSize"], mode="DCR")


def _strided_slice(low: Lowering, op: Operation) -> str:
    if op.options["ShrinkAxisMask"] or op.options["NewAxisMask"] or op.options["EllipsisMask"]:
        raise ModelError("STRIDED_SLICE is known without masks for new, dropped or implied axes only")
    shape = low.shape(op.inputs[0])
    begin, end, steps = (low.integers(index) for index in op.inputs[1:4])
    for axis, size in enumerate(shape):
        if op.options["BeginMask"] >> axis & 1:
            begin[axis] = 0
        # The end of the batch axis must stay open, whatever batch the file was made for.
        if op.options["EndMask"] >> axis & 1 or end[axis] >= size:
            end[axis] = _OPEN_END
    axes = list(range(len(shape)))
    if len(shape) == 4:
        begin, end, steps = ([row[axis] for axis in _TO_NCHW] for row in (begin, end, steps))
    constants = [low.builder.integers(row) for row in (begin, end, axes, steps)]
    return low.builder.node("Slice", [low.name(op.inputs[0]), *constants])


OPERATORS: dict[str, Rule] = {
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _convolution,
    "Convolution2DTransposeBias": _transposed_convolution,
    "MAX_POOL_2D": _pool,
    "AVERAGE_POOL_2D": _pool,
    "ADD": _arithmetic,
    "MUL": _arithmetic,
    "PRELU": _prelu,
    "RELU": _simple("Relu"),
    "LOGISTIC": _simple("Sigmoid"),
    "HARD_SWISH": _simple("HardSwish"),
    "PAD": _pad,
    "RESHAPE": _reshape,
    "RESIZE_BILINEAR": _resize,
    "DEPTH_TO_SPACE": _depth_to_space,
    "STRIDED_SLICE": _strided_slice,
}
