"""Reads a tflite file into a `Graph`; float16 weights and sparse weights become ordinary constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import tflite
from flatbuffers import flexbuffers
from numpy.typing import NDArray
from tflite.BuiltinOperator import BuiltinOperator
from tflite.TensorType import TensorType

from ...errors import ModelError
from .graph import Graph, Operation, Tensor
from .sparse import Level, densify

_DTYPES: dict[int, type[np.generic]] = {
    TensorType.FLOAT32: np.float32,
    TensorType.FLOAT16: np.float16,
    TensorType.INT32: np.int32,
    TensorType.INT64: np.int64,
}
_KINDS = {code: name for name, code in vars(BuiltinOperator).items() if isinstance(code, int)}
_CONV = ("Padding", "StrideW", "StrideH", "DilationWFactor", "DilationHFactor", "FusedActivationFunction")
_POOL = ("Padding", "StrideW", "StrideH", "FilterWidth", "FilterHeight", "FusedActivationFunction")
_SLICE = ("BeginMask", "EndMask", "ShrinkAxisMask", "NewAxisMask", "EllipsisMask")
_OPTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "CONV_2D": ("Conv2DOptions", _CONV),
    "DEPTHWISE_CONV_2D": ("DepthwiseConv2DOptions", _CONV),
    "MAX_POOL_2D": ("Pool2DOptions", _POOL),
    "AVERAGE_POOL_2D": ("Pool2DOptions", _POOL),
    "ADD": ("AddOptions", ("FusedActivationFunction",)),
    "MUL": ("MulOptions", ("FusedActivationFunction",)),
    "RESIZE_BILINEAR": ("ResizeBilinearOptions", ("AlignCorners", "HalfPixelCenters")),
    "DEPTH_TO_SPACE": ("DepthToSpaceOptions", ("BlockSize",)),
    "STRIDED_SLICE": ("StridedSliceOptions", _SLICE),
}
_SPARSE_VECTORS = {1: "Int32Vector", 2: "Uint16Vector", 3: "Uint8Vector"}
_COMPRESSED = 1


def read_tflite(content: bytes) -> Graph:
    """The net in a tflite file.

    Raises:
        ModelError: not a tflite file, or a type of number that the converter does not know.
    """
    if content[4:8] != b"TFL3":
        raise ModelError("this is no tflite net", expected="the mark TFL3", found=repr(content[4:8]))
    model = tflite.Model.GetRootAs(content, 0)
    subgraph = model.Subgraphs(0)
    tensors = [_read_tensor(model, subgraph.Tensors(i)) for i in range(subgraph.TensorsLength())]
    operations: list[Operation] = []
    for i in range(subgraph.OperatorsLength()):
        operation = _read_operation(model, subgraph.Operators(i))
        if operation.kind in ("DEQUANTIZE", "DENSIFY"):
            _fold(tensors, operation)
        else:
            operations.append(operation)
    return Graph(
        tuple(tensors),
        tuple(operations),
        tuple(int(subgraph.Inputs(i)) for i in range(subgraph.InputsLength())),
        tuple(int(subgraph.Outputs(i)) for i in range(subgraph.OutputsLength())),
    )


def _fold(tensors: list[Tensor], operation: Operation) -> None:
    """Let a constant pass through; float16 needs no scale, so it stays as it is until the ONNX graph widens it."""
    source, target = operation.inputs[0], operation.outputs[0]
    value = tensors[source].value
    if value is None or value.dtype not in (np.float16, np.float32):
        raise ModelError(f"{operation.kind} of {tensors[source].name}: only constant float weights are understood")
    tensors[target] = Tensor(tensors[target].name, tensors[target].shape, value)


def _read_tensor(model: Any, tensor: Any) -> Tensor:
    name = tensor.Name().decode()
    shape = _integers(tensor.ShapeAsNumpy())
    data = model.Buffers(tensor.Buffer()).DataAsNumpy()
    # The generated reader says 0, not an empty array, where a table has no vector.
    if isinstance(data, int):
        return Tensor(name, shape, None)
    if tensor.Type() not in _DTYPES:
        raise ModelError(f"{name} holds numbers of a type that the converter does not know", found=str(tensor.Type()))
    values: NDArray[Any] = data.view(_DTYPES[tensor.Type()])
    sparsity = tensor.Sparsity()
    if sparsity is None:
        return Tensor(name, shape, values.reshape(shape))
    levels = [_read_level(sparsity.DimMetadata(i)) for i in range(sparsity.DimMetadataLength())]
    traversal = _integers(sparsity.TraversalOrderAsNumpy())[: len(shape)]
    return Tensor(name, shape, densify(values, shape, levels, traversal, _integers(sparsity.BlockMapAsNumpy())))


def _read_level(metadata: Any) -> Level:
    if metadata.Format() != _COMPRESSED:
        return Level(metadata.DenseSize())
    segments = _sparse_vector(metadata.ArraySegmentsType(), metadata.ArraySegments())
    return Level(0, segments, _sparse_vector(metadata.ArrayIndicesType(), metadata.ArrayIndices()))


def _sparse_vector(kind: int, table: Any) -> NDArray[np.int64]:
    vector = getattr(tflite, _SPARSE_VECTORS[kind])()
    vector.Init(table.Bytes, table.Pos)
    values: NDArray[np.int64] = vector.ValuesAsNumpy().astype(np.int64)
    return values


def _read_operation(model: Any, operator: Any) -> Operation:
    code = model.OperatorCodes(operator.OpcodeIndex())
    # Old files hold the code in a byte, new ones in an int; the unused one is 0 or the marker 127.
    kind = _KINDS[max(code.BuiltinCode(), code.DeprecatedBuiltinCode())]
    options: dict[str, Any] = {}
    if kind == "CUSTOM":
        kind = code.CustomCode().decode()
        packed = operator.CustomOptionsAsNumpy()
        if kind in ("Landmarks2TransformMatrix", "TransformTensorBilinear"):
            options = flexbuffers.Loads(packed.tobytes())
    elif kind in _OPTIONS:
        table_name, names = _OPTIONS[kind]
        table, union = getattr(tflite, table_name)(), operator.BuiltinOptions()
        table.Init(union.Bytes, union.Pos)
        options = {name: getattr(table, name)() for name in names}
    return Operation(kind, _integers(operator.InputsAsNumpy()), _integers(operator.OutputsAsNumpy()), options)


def _integers(vector: Any) -> tuple[int, ...]:
    return () if isinstance(vector, int) else tuple(int(value) for value in vector)
