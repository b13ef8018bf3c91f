"""One run of a session, on numpy arrays or on torch tensors: names, types and batch axes as the file has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .card import ModelCard, TensorSpec

if TYPE_CHECKING:
    import torch


def call(session: Any, card: ModelCard, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """All outputs by their name on the card, float32, batch first; of the inputs' kind.

    Args:
        session: onnxruntime's, or one with `run_tensors(names, feed)`.
        card: of the net.
        inputs: all arrays or all tensors, float32, batch first; one item where the file has no batch axis.
    """
    values = {spec.name: _to_file(inputs[spec.name], spec) for spec in card.inputs}
    feed = {spec.file_name: values[spec.name] for spec in card.inputs}
    names = [spec.file_name for spec in card.outputs]
    if isinstance(next(iter(values.values())), np.ndarray):
        results = _run_arrays(session, names, feed)
    elif hasattr(session, "run_tensors"):
        results = session.run_tensors(names, feed)
    else:
        results = _run_tensors(session, names, feed)
    return {spec.name: _from_file(value, spec) for spec, value in zip(card.outputs, results, strict=True)}


def _to_file(value: Any, spec: TensorSpec) -> Any:
    value = value if spec.batched else value[0]
    if spec.dtype == "float32":
        return value
    if isinstance(value, np.ndarray):
        return value.astype(spec.dtype)
    import torch

    return value.to(getattr(torch, spec.dtype))


def _from_file(value: Any, spec: TensorSpec) -> Any:
    value = value if spec.batched else value[None]
    if isinstance(value, np.ndarray):
        return value.astype(np.float32, copy=False)
    return value.float()


def _run_arrays(session: Any, names: list[str], feed: Mapping[str, Any]) -> list[Any]:
    return list(session.run(names, {name: np.ascontiguousarray(value) for name, value in feed.items()}))


def _run_tensors(session: Any, names: list[str], feed: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
    """onnxruntime on torch's memory."""
    import torch

    if all(value.device.type == "cpu" for value in feed.values()):
        # The runtime neither copies what goes in nor what comes out.
        results = _run_arrays(session, names, {name: value.detach().numpy() for name, value in feed.items()})
        return [torch.from_numpy(value) for value in results]
    return bound_run(session, names, feed)


def bound_run(session: Any, names: list[str], feed: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
    """onnxruntime reads and writes torch's memory where it lies.

    The session works on the stream that was current when it was opened (`user_compute_stream`); where the caller is on
    another, events order the two, and the host never waits.
    """
    import torch

    binding = session.io_binding()
    held = {name: value.contiguous() for name, value in feed.items()}
    for name, value in held.items():
        index = value.device.index or 0
        kind = np.dtype(str(value.dtype).removeprefix("torch."))
        binding.bind_input(name, value.device.type, index, kind, tuple(value.shape), value.data_ptr())
    device = next(iter(held.values())).device
    for name in names:
        binding.bind_output(name, device.type, device.index or 0)
    own = getattr(session, "torch_stream", None)
    caller = torch.cuda.current_stream(device) if device.type == "cuda" else None
    if own is not None and caller is not None and own != caller:
        own.wait_stream(caller)
    session.run_with_iobinding(binding)
    if own is not None and caller is not None and own != caller:
        caller.wait_stream(own)
    from torch.utils.dlpack import from_dlpack

    return [from_dlpack(value) for value in binding.get_outputs()]
