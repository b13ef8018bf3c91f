"""ONNX's layers in torch: convolutions, norms, pools, and what changes the size of pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .torch_ops import Attributes, ints, operator


def _around(pads: Sequence[int], dimensions: int) -> tuple[list[int], list[int] | None]:
    """ONNX's pads as torch's: the same on both sides, or (for `functional.pad`) each by itself."""
    first, last = list(pads[:dimensions]), list(pads[dimensions:])
    if first == last:
        return first, None
    return [0] * dimensions, [one for pair in zip(first[::-1], last[::-1], strict=True) for one in pair]


def _pads(value: Tensor, attributes: Attributes, kernel: Sequence[int]) -> list[int]:
    """Of a convolution or pooling, as ONNX counts them."""
    dimensions = len(kernel)
    how = attributes.get("auto_pad", "NOTSET")
    if how in ("NOTSET", "VALID"):
        return list(attributes.get("pads", [0] * 2 * dimensions)) if how == "NOTSET" else [0] * 2 * dimensions
    strides = attributes.get("strides", [1] * dimensions)
    wide = attributes.get("dilations", [1] * dimensions)
    sizes = value.shape[2:]
    total = [
        max(0, (-(-size // step) - 1) * step + (length - 1) * spread + 1 - size)
        for size, step, length, spread in zip(sizes, strides, kernel, wide, strict=True)
    ]
    small, large = [one // 2 for one in total], [one - one // 2 for one in total]
    return small + large if how == "SAME_UPPER" else large + small


@operator("Conv")
def _conv(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    value, weight = inputs[0], inputs[1]
    bias = inputs[2] if len(inputs) > 2 else None
    dimensions = weight.dim() - 2
    padding, sides = _around(_pads(value, attributes, weight.shape[2:]), dimensions)
    value = functional.pad(value, sides) if sides else value
    convolve: Any = (functional.conv1d, functional.conv2d, functional.conv3d)[dimensions - 1]
    result: Tensor = convolve(
        value,
        weight,
        bias,
        attributes.get("strides", [1] * dimensions),
        padding,
        attributes.get("dilations", [1] * dimensions),
        attributes.get("group", 1),
    )
    return result


@operator("ConvTranspose")
def _conv_transpose(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    value, weight = inputs[0], inputs[1]
    bias = inputs[2] if len(inputs) > 2 else None
    pads = attributes.get("pads", [0, 0, 0, 0])
    result = functional.conv_transpose2d(
        value,
        weight,
        bias,
        attributes.get("strides", [1, 1]),
        0 if pads[:2] != pads[2:] else pads[:2],
        attributes.get("output_padding", [0, 0]),
        attributes.get("group", 1),
        attributes.get("dilations", [1, 1]),
    )
    if pads[:2] != pads[2:]:
        result = result[..., pads[0] : result.shape[2] - pads[2], pads[1] : result.shape[3] - pads[3]]
    return result


@operator("Gemm")
def _gemm(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    a: Tensor = inputs[0].mT if attributes.get("transA", 0) else inputs[0]
    b: Tensor = inputs[1].mT if attributes.get("transB", 0) else inputs[1]
    alpha, beta = attributes.get("alpha", 1.0), attributes.get("beta", 1.0)
    if len(inputs) < 3 or inputs[2] is None:
        return torch.mul(torch.matmul(a, b), alpha)
    return torch.addmm(inputs[2], a, b, beta=beta, alpha=alpha)


@operator("BatchNormalization")
def _batch_norm(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    value, scale, offset, mean, variance = inputs
    return functional.batch_norm(value, mean, variance, scale, offset, False, 0.0, attributes.get("epsilon", 1e-5))


@operator("InstanceNormalization")
def _instance_norm(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    return functional.instance_norm(inputs[0], weight=inputs[1], bias=inputs[2], eps=attributes.get("epsilon", 1e-5))


@operator("LayerNormalization")
def _layer_norm(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    value, weight = inputs[0], inputs[1]
    bias = inputs[2] if len(inputs) > 2 else None
    return functional.layer_norm(value, weight.shape, weight, bias, attributes.get("epsilon", 1e-5))


@operator("AveragePool")
def _average_pool(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    kernel = attributes["kernel_shape"]
    pads = _pads(inputs[0], attributes, kernel)
    padding, sides = _around(pads, len(kernel))
    if sides:
        raise NotImplementedError("AveragePool padded on one side")
    return functional.avg_pool2d(
        inputs[0],
        kernel,
        attributes.get("strides", [1, 1]),
        padding,
        bool(attributes.get("ceil_mode", 0)),
        bool(attributes.get("count_include_pad", 0)),
    )


@operator("MaxPool")
def _max_pool(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    kernel = attributes["kernel_shape"]
    padding, sides = _around(_pads(inputs[0], attributes, kernel), len(kernel))
    value = functional.pad(inputs[0], sides, value=float("-inf")) if sides else inputs[0]
    return functional.max_pool2d(
        value,
        kernel,
        attributes.get("strides", [1, 1]),
        padding,
        attributes.get("dilations", [1, 1]),
        bool(attributes.get("ceil_mode", 0)),
    )


@operator("GlobalAveragePool")
def _global_average(inputs: Sequence[Any], _: Attributes) -> Tensor:
    value: Tensor = inputs[0]
    return value.mean(tuple(range(2, value.dim())), keepdim=True)


@operator("GridSample")
def _grid_sample(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(attributes.get("mode", "bilinear"), "bilinear")
    mode = "nearest" if attributes.get("mode") == "nearest" else mode
    return functional.grid_sample(
        inputs[0],
        inputs[1],
        mode,
        attributes.get("padding_mode", "zeros"),
        bool(attributes.get("align_corners", 0)),
    )


@operator("Pad")
def _pad(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    value: Tensor = inputs[0]
    pads = ints(inputs[1]) if len(inputs) > 1 else list(attributes["pads"])
    fill = float(inputs[2]) if len(inputs) > 2 and inputs[2] is not None else float(attributes.get("value", 0.0))
    rank = value.dim()
    sides = [one for axis in reversed(range(rank)) for one in (pads[axis], pads[axis + rank])]
    mode = {"constant": "constant", "reflect": "reflect", "edge": "replicate"}[attributes.get("mode", "constant")]
    if mode == "constant":
        return functional.pad(value, sides, mode, fill)
    while len(sides) > 2 and sides[-2:] == [0, 0]:
        sides = sides[:-2]
    return functional.pad(value, sides if len(sides) > 2 else [*sides, 0, 0], mode)


@operator("Resize", "Upsample")
def _resize(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    value: Tensor = inputs[0]
    # Upsample has (value, scales), Resize (value, roi, scales, sizes).
    given = list(inputs[1:]) if len(inputs) < 3 else list(inputs[2:])
    scales = given[0] if given and given[0] is not None and given[0].numel() else attributes.get("scales")
    sizes = ints(given[1])[2:] if len(given) > 1 and given[1] is not None else None
    if sizes is None:
        factors = [float(one) for one in torch.as_tensor(scales).reshape(-1).tolist()][2:]
        sizes = [int(length * factor) for length, factor in zip(value.shape[2:], factors, strict=True)]
    mode, where = attributes.get("mode", "nearest"), attributes.get("coordinate_transformation_mode", "half_pixel")
    if mode == "nearest":
        whole = all(size % length == 0 for size, length in zip(sizes, value.shape[2:], strict=True))
        if not whole and where != "asymmetric":
            raise NotImplementedError("Resize to the nearest by a broken factor")
        return functional.interpolate(value, sizes, mode="nearest")
    how = {"linear": "bilinear", "cubic": "bicubic"}[mode]
    if where == "asymmetric":
        raise NotImplementedError("Resize with asymmetric coordinates")
    return functional.interpolate(value, sizes, mode=how, align_corners=where == "align_corners")


@operator("DepthToSpace")
def _depth_to_space(inputs: Sequence[Any], attributes: Attributes) -> Tensor:
    value, block = inputs[0], attributes["blocksize"]
    if attributes.get("mode", "DCR") == "CRD":
        return functional.pixel_shuffle(value, block)
    batch, channels, height, width = value.shape
    parts = value.reshape(batch, block, block, channels // block**2, height, width)
    result: Tensor = parts.permute(0, 3, 4, 1, 5, 2).reshape(batch, -1, height * block, width * block)
    return result
