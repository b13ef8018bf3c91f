"""Chooses where the nets run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ..errors import DeviceError

CPU_PROVIDER = "CPUExecutionProvider"
CUDA_PROVIDER = "CUDAExecutionProvider"


@dataclass(frozen=True, slots=True)
class Device:
    """A processor, as onnxruntime and torch both know it.

    Attributes:
        kind: "cpu" or "cuda".
        index: of the CUDA device; 0 for the CPU.
        reason: why this one, for the report.
    """

    kind: Literal["cpu", "cuda"]
    index: int
    reason: str

    def __str__(self) -> str:
        return self.kind if self.kind == "cpu" else f"{self.kind}:{self.index}"

    @property
    def torch_name(self) -> str:
        """torch's name of the device that tensors lie on: "cpu" or "cuda:NUMBER"."""
        return str(self)

    @property
    def provider(self) -> str:
        """onnxruntime's name of what runs the nets."""
        return CPU_PROVIDER if self.kind == "cpu" else CUDA_PROVIDER


def choose_device(request: str) -> Device:
    """The device for a request.

    Args:
        request: "cpu"; "cuda" or "cuda:1"; "auto" for the first CUDA device if both onnxruntime and torch can use it,
            else the CPU, with the reason.

    Raises:
        DeviceError: no such device, or a request that is none of these. A CUDA request never ends on the CPU.
    """
    if request == "cpu":
        return Device("cpu", 0, "asked for")
    if request == "auto":
        obstacle = _cuda_obstacle(0)
        return Device("cpu", 0, f"auto: {obstacle}") if obstacle else Device("cuda", 0, "auto: CUDA is present")
    match = re.fullmatch(r"cuda(?::(\d+))?", request)
    if match is None:
        raise DeviceError("the device is not understood", expected="auto, cpu, cuda or cuda:NUMBER", found=request)
    index = int(match.group(1) or 0)
    obstacle = _cuda_obstacle(index)
    if obstacle:
        raise DeviceError(
            f"the device {request} cannot be used",
            found=obstacle,
            hint="install the CUDA builds of torch and onnxruntime-gpu and the driver, or choose the device cpu",
        )
    return Device("cuda", index, "asked for")


def _cuda_obstacle(index: int) -> str:
    """Why CUDA device `index` cannot be used, or ""."""
    # torch first: it brings the CUDA libraries that onnxruntime's provider then finds loaded.
    import torch

    if not torch.cuda.is_available():
        return "torch sees no CUDA device"
    if index >= torch.cuda.device_count():
        return f"torch sees {torch.cuda.device_count()} CUDA device(s), counted from 0"
    import onnxruntime

    if CUDA_PROVIDER not in onnxruntime.get_available_providers():
        return "onnxruntime has no CUDA provider"
    return ""
