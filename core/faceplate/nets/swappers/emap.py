"""The matrix inside an InSwapper file, read without loading the half gigabyte around it.

An ONNX file is a protobuf message; the graph is its field 7, initializers are field 5 of that. Fields are walked over
by their lengths, in a mapping of the file, and only the last initializer is decoded.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from ...errors import ModelError

_GRAPH, _INITIALIZER = 7, 5
_DIMS, _TYPE, _FLOATS, _RAW = 1, 2, 4, 9
_TYPES = {1: np.float32, 10: np.float16}
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class _Broken(Exception):
    """Not a protobuf message."""


def last_initializer(path: Path) -> torch.Tensor | None:
    """The last initializer of an ONNX file as float32; None where there is none, or it is of no float type.

    Raises:
        ModelError: the file cannot be read.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            found = None
            for field, start, end in _fields(data, 0, len(data)):
                if field == _GRAPH:
                    for inner, first, last in _fields(data, start, end):
                        found = (first, last) if inner == _INITIALIZER else found
            return None if found is None else _tensor(data, *found)
    except (OSError, ValueError, IndexError, _Broken) as error:
        raise ModelError(
            f"{path} cannot be read as an ONNX file", found=str(error) or type(error).__name__, hint="copy it again"
        ) from error


def _fields(data: mmap.mmap, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(number, first byte, byte after) of each field; of a varint its own bytes."""
    while at < end:
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == _BYTES:
            length, at = _varint(data, at)
        elif kind == _VARINT:
            length = _varint(data, at)[1] - at
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise _Broken(f"wire type {kind} at byte {at}")
        if at + length > end:
            raise _Broken(f"a field ends after its message at byte {at}")
        yield tag >> 3, at, at + length
        at += length


def _varint(data: mmap.mmap, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise _Broken(f"an endless number at byte {at}")


def _tensor(data: mmap.mmap, start: int, end: int) -> torch.Tensor | None:
    shape: list[int] = []
    kind, raw = 1, b""
    for field, first, last in _fields(data, start, end):
        if field == _DIMS:
            shape += _numbers(data, first, last)
        elif field == _TYPE:
            kind = _varint(data, first)[0]
        elif field in (_RAW, _FLOATS):
            raw = data[first:last]
    if kind not in _TYPES or len(raw) != int(np.prod(shape)) * np.dtype(_TYPES[kind]).itemsize:
        return None
    values = np.frombuffer(raw, _TYPES[kind]).reshape(shape)
    return torch.from_numpy(values.astype(np.float32))


def _numbers(data: mmap.mmap, first: int, last: int) -> list[int]:
    """Packed varints, of which one alone is a case."""
    found = []
    while first < last:
        value, first = _varint(data, first)
        found.append(value)
    return found
