"""Opens a net in the runtime and the precision that were asked for, and says how far its numbers are from float32."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import DeviceError, ModelError
from ..card import ModelCard, TensorSpec
from ..device import Device, Precision, Runtime
from ..net import Net, translate
from .edit import free_batch, half_precision
from .placement import RECORD, checked
from .providers import PROVIDERS, provider_options
from .samples import Arrays, Error, difference, sample

_FATAL = 4
_SAME = 1e-3
"""Largest difference, in the output's deviation, up to which a batch counts as equal to its items alone."""


def open_session(
    card: ModelCard,
    path: Path,
    device: Device,
    threads: int,
    *,
    precision: Precision = "float32",
    runtime: Runtime = "auto",
) -> Any:
    """An open session; its attributes `precision`, `fixed_batch` and `torch_stream` tell `Net` what it must know.

    Args:
        card: of the net.
        path: of its file.
        device: where it runs.
        threads: of the CPU, for onnxruntime; 0 for one a core.
        precision: that it computes in; any but float32 is measured against float32 here and now.
        runtime: "auto": onnxruntime for float32, and for float16 where it has a device; else torch.

    Raises:
        ModelError: the file is damaged, or has an operator that the runtime does not know.
        DeviceError: the device cannot run it; it is never moved to another in silence.
    """
    in_torch = runtime == "torch" or (
        runtime == "auto" and (precision == "bfloat16" or (precision == "float16" and device.kind == "cpu"))
    )
    if precision == "bfloat16" and not in_torch:
        raise ModelError(f"model {card.id} cannot be run in bfloat16 by onnxruntime", hint="choose the runtime torch")
    try:
        if not in_torch and precision == "float32" and card.batch != "edited":
            return _onnx_session(card, str(path), device, threads)
        model = _load(card, path)
        if in_torch:
            session = _torch_session(model, device, precision)
        elif precision == "float16":
            session = _onnx_session(card, half_precision(model).SerializeToString(), device, threads)
        else:
            return _onnx_session(card, model.SerializeToString(), device, threads)
        source = model.SerializeToString() if card.batch == "edited" else str(path)
        reference = _onnx_session(card, source, device, threads)
        error = measure(concrete(card, reference), session, reference)
    except (ModelError, DeviceError):
        raise
    except Exception as error_:  # of onnx, onnxruntime, torch: no common base
        raise translate(error_, card, device, "load") from error_
    session.precision = f"{precision} ({error})"
    return session


def _load(card: ModelCard, path: Path) -> Any:
    import onnx

    model = onnx.load(str(path))
    return free_batch(model, card) if card.batch == "edited" else model


def _torch_session(model: Any, device: Device, precision: str) -> Any:
    import torch

    from .torch_graph import TorchSession

    return TorchSession(model, torch.device(device.torch_name), precision)


def _onnx_session(card: ModelCard, model: str | bytes, device: Device, threads: int) -> Any:
    """onnxruntime's session of a file or of its bytes."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.use_deterministic_compute = True
    # Errors come as exceptions; the runtime need not write them to the terminal too.
    options.log_severity_level = _FATAL
    provider = PROVIDERS[device.runtime]
    if provider.key != "cpu":
        options.add_session_config_entry(RECORD, "1")
    stream = own_stream(device)
    providers = provider_options(provider, device.index, stream.cuda_stream if stream is not None else 0)
    try:
        # Without its fallback: else it would move to the CPU by itself, even in the middle of a run.
        session = onnxruntime.InferenceSession(model, options, providers=providers, enable_fallback=0)
    except Exception as error:  # onnxruntime's exceptions have no common base
        raise translate(error, card, device, "load") from error
    used = session.get_providers()[0]
    if used != provider.name:
        raise DeviceError(
            f"model {card.id} did not get the device {device}",
            expected=provider.name,
            found=used,
            hint=f"check that onnxruntime finds the libraries of {provider.title}, or choose the device cpu",
        )
    session.beside = "" if provider.key == "cpu" else checked(session, card.id, str(device))
    session.torch_stream = stream
    session.precision = card.precision if card.precision.startswith("int8") else "float32"
    session.fixed_batch = card.batch == "single" or isinstance(_first_length(card, session), int)
    return session


def concrete(card: ModelCard, session: Any) -> ModelCard:
    """The card with the lengths that this file fixes, where the card leaves them free."""
    shapes = {node.name: node.shape[-len(spec.shape) :] for node, spec in _pairs(card, session) if spec.shape}
    inputs = tuple(
        dataclasses.replace(
            spec,
            shape=tuple(
                length or (found if isinstance(found, int) else 0)
                for length, found in zip(spec.shape, shapes.get(spec.file_name, spec.shape), strict=True)
            ),
        )
        for spec in card.inputs
    )
    return dataclasses.replace(card, inputs=inputs)


def _pairs(card: ModelCard, session: Any) -> list[tuple[Any, TensorSpec]]:
    nodes = {node.name: node for node in session.get_inputs()}
    return [(nodes[spec.file_name], spec) for spec in card.inputs if spec.file_name in nodes]


def _first_length(card: ModelCard, session: Any) -> Any:
    """Of the first input that has a batch axis: a number where the file fixes it."""
    batched = {spec.file_name for spec in card.inputs if spec.batched}
    shapes = [node.shape for node in session.get_inputs() if node.name in batched]
    return shapes[0][0] if shapes and shapes[0] else None


def own_stream(device: Device) -> Any:
    """A CUDA stream for one session; torch's others are ordered with it by events."""
    if device.kind != "cuda" or device.runtime not in ("cuda", "tensorrt"):
        return None
    import torch

    return torch.cuda.Stream(device.index)  # type: ignore[no-untyped-call]


def measure(card: ModelCard, session: Any, reference: Any, inputs: Arrays | None = None) -> Error:
    """How far a session's numbers are from those of one in float32."""
    given = inputs or sample(card)
    return difference(_run(card, session, given), _run(card, reference, given))


def _run(card: ModelCard, session: Any, inputs: Arrays) -> Mapping[str, Any]:
    return Net(card, Device("cpu", 0, "a trial"), lambda: session, 0).run(inputs)


def try_net(card: ModelCard, path: Path, device: Device, threads: int = 0) -> str:
    """Run a net once, and find out how it takes several items at once: the card's `batch`.

    Raises:
        ModelError: it cannot be opened or run.
        DeviceError: the device cannot run it.
    """
    session = _onnx_session(card, str(path), device, threads)
    card = concrete(card, session)
    pair = sample(card, 2)
    try:
        singles = _run_singles(card, session, pair)
    except ModelError:
        raise
    except Exception as error:  # onnxruntime's exceptions have no common base
        raise translate(error, card, device, "run") from error
    broken = [name for name, value in singles.items() if not np.isfinite(value).all()]
    if broken:
        raise ModelError(
            f"model {card.id} gives numbers that are not finite",
            expected="finite numbers for a plain picture",
            found=f"NaN or infinity in {', '.join(broken)}",
            hint="the file's weights are damaged: get it again from its source",
        )
    if not session.fixed_batch:
        return "" if _equal(card, session, pair, singles) else "single"
    try:
        edited = _onnx_session(card, free_batch(_load(card, path), card).SerializeToString(), device, threads)
    except ModelError:
        return "single"
    return "edited" if _equal(card, edited, pair, singles) else "single"


def _run_singles(card: ModelCard, session: Any, pair: Arrays) -> Arrays:
    parts = [_run(card, session, {name: value[i : i + 1] for name, value in pair.items()}) for i in range(2)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _equal(card: ModelCard, session: Any, pair: Arrays, singles: Arrays) -> bool:
    try:
        together = _run(card, session, pair)
    except ModelError:
        return False
    shapes = all(together[name].shape == value.shape for name, value in singles.items())
    return shapes and difference(together, singles).most < _SAME
