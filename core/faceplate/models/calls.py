"""One run of a session, on numpy arrays or on torch tensors: names, types and batch axes as the file has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    feed = {spec.file_name: _to_file(inputs[spec.name], spec) for spec in card.inputs}
    names = [spec.file_name for spec in card.outputs]
    if isinstance(next(iter(feed.values())), np.ndarray):
        results = _run_arrays(session, names, feed)
    elif hasattr(session, "run_tensors"):
        results = session.run_tensors(names, feed)
    else:
        results = _run_tensors(session, card.outputs, feed, len(next(iter(inputs.values()))))
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


def _run_tensors(
    session: Any, outputs: Sequence[TensorSpec], feed: Mapping[str, torch.Tensor], batch: int
) -> list[torch.Tensor]:
    """onnxruntime on torch's memory."""
    import torch

    if all(value.device.type == "cpu" for value in feed.values()):
        # The runtime neither copies what goes in nor what comes out.
        arrays = {name: value.detach().numpy() for name, value in feed.items()}
        return [torch.from_numpy(value) for value in _run_arrays(session, [one.file_name for one in outputs], arrays)]
    return bound_run(session, outputs, feed, batch)


def bound_run(
    session: Any, outputs: Sequence[TensorSpec], feed: Mapping[str, torch.Tensor], batch: int
) -> list[torch.Tensor]:
    """onnxruntime reads and writes torch's memory where it lies.

    A session on CUDA works on a stream of its own (`torch_stream`); events order it with the caller's stream, and the
    host waits for nothing. Outputs whose shape the card tells are torch's memory; the others are the runtime's, which
    gives them again only after what the caller has queued up to then.

    Args:
        session: onnxruntime's.
        outputs: wanted.
        feed: by name in the file, all on one device.
        batch: of the inputs.
    """
    import torch
    from torch.utils.dlpack import from_dlpack

    own = getattr(session, "torch_stream", None)
    device = next(iter(feed.values())).device
    caller = torch.cuda.current_stream(device) if own is not None else None
    binding = session.io_binding()
    held = [value.contiguous() for value in feed.values()]
    for name, value in zip(feed, held, strict=True):
        binding.bind_input(name, *_place(value))
    made: dict[str, torch.Tensor] = {}
    for spec in outputs:
        if 0 in spec.shape:
            binding.bind_output(spec.file_name, device.type, device.index or 0)
            continue
        shape = (batch, *spec.shape) if spec.batched else spec.shape
        made[spec.file_name] = torch.empty(shape, dtype=getattr(torch, spec.dtype), device=device)
        binding.bind_output(spec.file_name, *_place(made[spec.file_name]))
    if own is not None:
        own.wait_stream(caller)
        for value in (*held, *made.values()):
            value.record_stream(own)
    session.run_with_iobinding(binding, _unsynchronised() if own is not None else None)
    if own is not None and caller is not None:
        caller.wait_stream(own)
    results = dict(zip([spec.file_name for spec in outputs], binding.get_outputs(), strict=True))
    return [made[name] if name in made else from_dlpack(value) for name, value in results.items()]


def _place(value: torch.Tensor) -> tuple[str, int, Any, tuple[int, ...], int]:
    """Device, number, type, shape and address of a tensor, as `bind_input` and `bind_output` take them."""
    kind = np.dtype(str(value.dtype).removeprefix("torch."))
    return value.device.type, value.device.index or 0, kind, tuple(value.shape), value.data_ptr()


def _unsynchronised() -> Any:
    """A run that does not wait for the device at its end."""
    import onnxruntime

    options = onnxruntime.RunOptions()
    options.add_run_config_entry("disable_synchronize_execution_providers", "1")
    return options
