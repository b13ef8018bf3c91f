"""onnxruntime's providers: which this build has, and which really run a net here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from .edit import BATCH


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider.

    Attributes:
        key: how a device is asked for, e.g. "tensorrt".
        name: onnxruntime's.
        title: for people.
        memory: where torch's tensors lie for it: "cuda" (also ROCm's), or "cpu".
        behind: providers that take what this one cannot, on the same device.
    """

    key: str
    name: str
    title: str
    memory: str
    behind: tuple[str, ...] = ()


_CUDA = "CUDAExecutionProvider"

PROVIDERS: Mapping[str, Provider] = MappingProxyType(
    {
        one.key: one
        for one in (
            Provider("cpu", "CPUExecutionProvider", "CPU", "cpu"),
            Provider("cuda", _CUDA, "NVIDIA CUDA", "cuda"),
            Provider("tensorrt", "TensorrtExecutionProvider", "NVIDIA TensorRT", "cuda", (_CUDA,)),
            Provider("rocm", "ROCMExecutionProvider", "AMD ROCm", "cuda"),
            Provider("migraphx", "MIGraphXExecutionProvider", "AMD MIGraphX", "cuda"),
            Provider("openvino", "OpenVINOExecutionProvider", "Intel OpenVINO", "cpu"),
            Provider("directml", "DmlExecutionProvider", "DirectML", "cpu"),
            Provider("coreml", "CoreMLExecutionProvider", "Apple CoreML", "cpu"),
        )
    }
)
"""By key, the CPU first."""


def provider_options(provider: Provider, index: int, stream: int = 0) -> list[Any]:
    """What onnxruntime gets as `providers`: the provider and those behind it, with their options.

    Args:
        provider: asked for.
        index: of the device.
        stream: handle of the CUDA stream to work on, 0 for the provider's own.
    """
    options = [(provider.name, _options(provider.key, index, stream))]
    options += [(name, _options("cuda", index, stream)) for name in provider.behind]
    return [one if one[1] else one[0] for one in options]


def _options(key: str, index: int, stream: int) -> dict[str, str]:
    streams = {"user_compute_stream": str(stream)} if stream else {}
    if key == "cuda":
        # A fixed convolution algorithm and full float32 products: the same bytes in every run.
        return {"device_id": str(index), "cudnn_conv_algo_search": "DEFAULT", "use_tf32": "0", **streams}
    if key == "tensorrt":
        return {"device_id": str(index), "trt_fp16_enable": "0", **streams}
    if key in ("rocm", "migraphx", "directml"):
        return {"device_id": str(index)}
    if key == "openvino":
        return {"device_type": "GPU" if index == 0 else f"GPU.{index}"}
    return {}


def obstacle(key: str, index: int = 0) -> str:
    """Why a provider cannot be used here, or "". A net of one node is run on it: that a build has a provider does not
    say that its libraries and a device are there.
    """
    import onnxruntime

    provider = PROVIDERS[key]
    if provider.name not in onnxruntime.get_available_providers():
        return f"onnxruntime has no {provider.title} provider"
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            _one_node(), options, providers=provider_options(provider, index), enable_fallback=0
        )
        used = str(session.get_providers()[0])
        if used != provider.name:
            return f"{provider.title} is installed, but onnxruntime took {used}: its libraries or a device are missing"
        import numpy as np

        session.run(None, {"value": np.ones((1, 4), np.float32)})
    except Exception as error:  # onnxruntime's exceptions have no common base
        return f"{provider.title} does not run: {str(error).splitlines()[0]}"
    return ""


def probe() -> dict[str, str]:
    """Every provider of this build by key, with "" or why it cannot be used."""
    import onnxruntime

    built = onnxruntime.get_available_providers()
    return {key: obstacle(key) for key, provider in PROVIDERS.items() if provider.name in built}


def _one_node() -> bytes:
    from onnx import TensorProto, helper

    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [BATCH, 4]) for name in ("value", "result")]
    graph = helper.make_graph([helper.make_node("Relu", ["value"], ["result"])], "probe", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    content: bytes = model.SerializeToString()
    return content
