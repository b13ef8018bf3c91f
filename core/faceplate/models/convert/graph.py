"""A tflite net as plain values, as `reader` gives it and `layers` takes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """One value of the net.

    Attributes:
        name: as the file has it.
        shape: with batch 1 first; four-dimensional ones are NHWC.
        value: the constant, else None. Weights stored as float16 stay float16.
    """

    name: str
    shape: tuple[int, ...]
    value: NDArray[Any] | None


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One step.

    Attributes:
        kind: tflite's name of the operator ("CONV_2D"), or the name of a custom one ("TransformLandmarks").
        inputs: indices of tensors; -1 for an absent optional one.
        outputs: indices of tensors.
        options: by tflite's own names, in CamelCase for the built-in operators.
    """

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """The first subgraph of a tflite file, operations in running order."""

    tensors: tuple[Tensor, ...]
    operations: tuple[Operation, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
