"""Chooses where the nets run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ..errors import DeviceError

Precision = Literal["float32", "float16", "bfloat16"]
"""Numbers that a net computes in."""
Runtime = Literal["auto", "onnxruntime", "torch"]
"""What runs a net."""

CPU_PROVIDER = "CPUExecutionProvider"
CUDA_PROVIDER = "CUDAExecutionProvider"
_REQUEST = re.compile(r"(cuda|tensorrt|rocm|migraphx|openvino|directml|coreml)(?::(\d+))?")


@dataclass(frozen=True, slots=True)
class Device:
    """A processor, as onnxruntime and torch both know it.

    Attributes:
        kind: where torch's tensors lie, "cpu" or "cuda" (CUDA's or ROCm's).
        index: of the device; 0 for the CPU.
        reason: why this one, for the report.
        runtime: key of onnxruntime's provider (`runtimes.providers.PROVIDERS`), "" for that of `kind`.
    """

    kind: Literal["cpu", "cuda"]
    index: int
    reason: str
    runtime: str = ""

    def __post_init__(self) -> None:
        if not self.runtime:
            object.__setattr__(self, "runtime", self.kind)

    def __str__(self) -> str:
        return self.runtime if self.runtime in ("cpu", "coreml") else f"{self.runtime}:{self.index}"

    @property
    def torch_name(self) -> str:
        """torch's name of the device that tensors lie on: "cpu" or "cuda:NUMBER"."""
        return self.kind if self.kind == "cpu" else f"{self.kind}:{self.index}"

    @property
    def provider(self) -> str:
        """onnxruntime's name of what runs the nets."""
        from .runtimes.providers import PROVIDERS

        return PROVIDERS[self.runtime].name


def choose_device(request: str) -> Device:
    """The device for a request.

    Args:
        request: "cpu"; "cuda", "tensorrt", "rocm", "migraphx", "openvino", "directml" or "coreml", with ":NUMBER" for
            another than the first; "auto" for the first CUDA device if both onnxruntime and torch can use it, else the
            CPU, with the reason.

    Raises:
        DeviceError: no such device, or a request that is none of these. A device that was asked for by name never ends
            on the CPU.
    """
    if request == "cpu":
        return Device("cpu", 0, "asked for")
    if request == "auto":
        obstacle = _cuda_obstacle(0)
        return Device("cpu", 0, f"auto: {obstacle}") if obstacle else Device("cuda", 0, "auto: CUDA is present")
    match = _REQUEST.fullmatch(request)
    if match is None:
        raise DeviceError(
            "the device is not understood",
            expected="auto, cpu, cuda, tensorrt, rocm, migraphx, openvino, directml or coreml, or one with :NUMBER",
            found=request,
        )
    runtime, index = match.group(1), int(match.group(2) or 0)
    obstacle = _obstacle(runtime, index)
    if obstacle:
        hint = "install the CUDA builds of torch and onnxruntime-gpu and the driver, or choose the device cpu"
        if runtime != "cuda":
            hint = "install the onnxruntime build for it and its driver, or choose the device cpu"
        raise DeviceError(f"the device {request} cannot be used", found=obstacle, hint=hint)
    return Device(_memory(runtime), index, "asked for", runtime)


def _memory(runtime: str) -> Literal["cpu", "cuda"]:
    return "cuda" if runtime in ("cuda", "tensorrt", "rocm", "migraphx") else "cpu"


def _obstacle(runtime: str, index: int) -> str:
    """Why a device cannot be used, or ""."""
    from .runtimes.providers import obstacle

    if runtime == "cuda":
        return _cuda_obstacle(index)
    return (_torch_obstacle(index) if _memory(runtime) == "cuda" else "") or obstacle(runtime, index)


def _torch_obstacle(index: int) -> str:
    # torch first: it brings the CUDA libraries that onnxruntime's provider then finds loaded.
    import torch

    if not torch.cuda.is_available():
        return "torch sees no CUDA device"
    if index >= torch.cuda.device_count():
        return f"torch sees {torch.cuda.device_count()} CUDA device(s), counted from 0"
    return ""


def _cuda_obstacle(index: int) -> str:
    """Why CUDA device `index` cannot be used, or ""."""
    obstacle = _torch_obstacle(index)
    if obstacle:
        return obstacle
    import onnxruntime

    if CUDA_PROVIDER not in onnxruntime.get_available_providers():
        return "onnxruntime has no CUDA provider"
    return ""
