"""The way of a frame's pixels to the device and back: packed into one copy each way, and counted.

On a GPU arrays are packed into page-locked memory and go over in one asynchronous copy on the current stream; what
comes back is packed on the device, and the host waits for an event of that stream, never for the whole device. On a
CPU nothing is moved: tensors and arrays share memory, and what counts as a crossing is a look at it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

Array = NDArray[np.float16] | NDArray[np.float32]

_ALIGN = 16
_TYPES = {np.dtype(np.float16): torch.float16, np.dtype(np.float32): torch.float32}
_ARRAYS = {torch.float16: np.float16, torch.float32: np.float32}


@dataclass(slots=True)
class Copies:
    """How often, and how much, crossed.

    Attributes:
        up, down: crossings.
        bytes_up, bytes_down: what they held.
    """

    up: int = 0
    down: int = 0
    bytes_up: int = 0
    bytes_down: int = 0


class Crossing:
    """The crossings of one frame.

    Args:
        device: where the pixel work runs.
        packed: pack although the device is a CPU: for testing the logic.
    """

    def __init__(self, device: torch.device, *, packed: bool = False) -> None:
        self._device = device
        self._packed = packed or device.type != "cpu"
        self._pinned = device.type == "cuda"
        self.copies = Copies()

    def up(self, arrays: Sequence[Array]) -> list[torch.Tensor]:
        """Contiguous tensors on the device, of the arrays' shapes and types, in one copy."""
        self.copies.up += 1
        self.copies.bytes_up += sum(array.nbytes for array in arrays)
        if not self._packed:
            return [torch.from_numpy(np.ascontiguousarray(array)) for array in arrays]
        starts, total = _layout([array.nbytes for array in arrays])
        packed = torch.empty(total, dtype=torch.uint8, pin_memory=self._pinned)
        room = packed.numpy()
        for start, array in zip(starts, arrays, strict=True):
            np.copyto(room[start : start + array.nbytes].view(array.dtype).reshape(array.shape), array)
        there = packed.to(self._device, non_blocking=True)
        return [
            there[start : start + array.nbytes].view(_TYPES[array.dtype]).view(array.shape)
            for start, array in zip(starts, arrays, strict=True)
        ]

    def down(self, tensors: Sequence[torch.Tensor]) -> list[Array]:
        """Arrays of the tensors' shapes and types (half or float), in one copy."""
        sizes = [tensor.numel() * tensor.element_size() for tensor in tensors]
        self.copies.down += 1
        self.copies.bytes_down += sum(sizes)
        if not self._packed:
            return [tensor.numpy() for tensor in tensors]
        starts, total = _layout(sizes)
        packed = torch.empty(total, dtype=torch.uint8, device=self._device)
        for start, size, tensor in zip(starts, sizes, tensors, strict=True):
            packed[start : start + size].view(tensor.dtype).view(tensor.shape).copy_(tensor)
        here = torch.empty(total, dtype=torch.uint8, pin_memory=self._pinned)
        here.copy_(packed, non_blocking=True)
        if self._pinned:
            done = torch.cuda.Event()  # type: ignore[no-untyped-call]
            done.record(torch.cuda.current_stream(self._device))
            done.synchronize()
        room = here.numpy()
        return [
            room[start : start + size].view(_ARRAYS[tensor.dtype]).reshape(tensor.shape)
            for start, size, tensor in zip(starts, sizes, tensors, strict=True)
        ]


def _layout(sizes: Sequence[int]) -> tuple[list[int], int]:
    """Where each part begins, aligned, and the length of all."""
    starts, total = [], 0
    for size in sizes:
        starts.append(total)
        total += -(-size // _ALIGN) * _ALIGN
    return starts, total
