"""Runs nets: loaded once, kept warm, on the device that was asked for."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DeviceError, ModelError, ResourceError
from .card import ModelCard, TensorSpec
from .device import Device, choose_device
from .store import ModelStore

Array = NDArray[np.float32]

_FATAL = 4
# What onnxruntime, its memory arena, CUDA and the C++ library say when memory runs out.
_MEMORY_WORDS = ("out of memory", "failed to allocate", "bad_alloc", "bad allocation", "available memory of")
_CUDA_WORDS = ("cuda", "cudnn", "cublas")


class Net:
    """One loaded net. `run` may be called from several threads."""

    def __init__(self, card: ModelCard, session: Any, device: Device) -> None:
        self._card = card
        self._session = session
        self._device = device
        self._outputs = [spec.name for spec in card.outputs]

    @property
    def card(self) -> ModelCard:
        """What is known of the net."""
        return self._card

    @property
    def device(self) -> Device:
        """Where it runs, and why there."""
        return self._device

    @property
    def provider(self) -> str:
        """onnxruntime's provider that runs it, as the session itself says."""
        return str(self._session.get_providers()[0])

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """All outputs by name, as float32 arrays with the inputs' batch first.

        Args:
            inputs: by name, float32, (N, ...) with the shapes on the card; the same N in all.

        Raises:
            ModelError: an input is missing, unknown or of another shape or type.
            DeviceError: the device is out of memory or lost.
        """
        self._check(inputs)
        try:
            feed = {name: np.ascontiguousarray(value) for name, value in inputs.items()}
            results = self._session.run(self._outputs, feed)
        except Exception as error:
            raise _translate(error, self._card, self._device, "run") from error
        return dict(zip(self._outputs, results, strict=True))

    def _check(self, inputs: Mapping[str, Array]) -> None:
        names = [spec.name for spec in self._card.inputs]
        if set(inputs) != set(names):
            raise ModelError(
                f"model {self._card.id} got the wrong inputs", expected=", ".join(names), found=", ".join(inputs)
            )
        batch = inputs[names[0]].shape[:1]
        for spec in self._card.inputs:
            value = inputs[spec.name]
            if value.dtype != np.float32 or value.shape != batch + spec.shape or batch == (0,):
                raise ModelError(
                    f"model {self._card.id} got a wrong input {spec.name}",
                    expected=f"(N, {', '.join(map(str, spec.shape))}) float32",
                    found=f"{value.shape} {value.dtype}",
                )

    def warm_up(self, batch: int = 1) -> None:
        """Run once on zeros, so that the first real run does not pay for what the runtime prepares.

        Raises:
            DeviceError: the device is out of memory or lost.
        """
        self.run({spec.name: np.zeros((batch, *spec.shape), np.float32) for spec in self._card.inputs})


class SessionPool:
    """Loads nets when first asked for and keeps them until closed. May be used from several threads."""

    def __init__(
        self, store: ModelStore | None = None, device: str = "auto", *, threads: int = 0, commercial: bool = False
    ) -> None:
        """
        Args:
            store: where nets are found; None for one with the shipped nets only.
            device: "auto", "cpu", "cuda" or "cuda:NUMBER"; see `choose_device`.
            threads: of the CPU for one net; 0 for one a core.
            commercial: whether the job is paid work; weights that forbid it are refused.

        Raises:
            DeviceError: the device is not there.
        """
        self._store = store or ModelStore()
        self._device = choose_device(device)
        self._threads = threads
        self._commercial = commercial
        self._nets: dict[str, Net] = {}
        self._closed = False
        self._lock = threading.Lock()

    @property
    def device(self) -> Device:
        """Where the nets run, and why there."""
        return self._device

    @property
    def loaded(self) -> tuple[Net, ...]:
        """The nets in memory, in the order of loading."""
        with self._lock:
            return tuple(self._nets.values())

    def get(self, model_id: str) -> Net:
        """The net, loaded.

        Raises:
            LicenceError: the job is commercial and the weights' licence forbids that.
            ModelError: no such net, its file is absent or damaged, or not what its card says.
            DeviceError: the device cannot run it; it is never moved to another in silence.
            RuntimeError: the pool is closed.
        """
        with self._lock:
            if self._closed:
                raise RuntimeError("the session pool is closed")
            if model_id not in self._nets:
                path = self._store.path(model_id, commercial=self._commercial)
                self._nets[model_id] = self._load(self._store.card(model_id), path)
            return self._nets[model_id]

    def _load(self, card: ModelCard, path: Path) -> Net:
        session = _open_session(card, path, self._device, self._threads)
        provider = session.get_providers()[0]
        if provider != self._device.provider:
            raise DeviceError(
                f"model {card.id} did not get the device {self._device}",
                expected=self._device.provider,
                found=provider,
                hint="check that CUDA and cuDNN fit the installed onnxruntime-gpu, or choose the device cpu",
            )
        _check_signature(card, "input", card.inputs, session.get_inputs())
        _check_signature(card, "output", card.outputs, session.get_outputs())
        return Net(card, session, self._device)

    def close(self) -> None:
        """Let go of all nets; those still held by others live on until dropped."""
        with self._lock:
            self._closed = True
            self._nets.clear()

    def __enter__(self) -> SessionPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _open_session(card: ModelCard, path: Path, device: Device, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.use_deterministic_compute = True
    # Errors come as exceptions; the runtime need not write them to the terminal too.
    options.log_severity_level = _FATAL
    provider: Any = device.provider
    if device.kind == "cuda":
        # A fixed convolution algorithm and full float32 products: the same bytes in every run.
        settings = {"device_id": str(device.index), "cudnn_conv_algo_search": "DEFAULT", "use_tf32": "0"}
        provider = (device.provider, settings)
    try:
        # Without its fallback: else it would move to the CPU by itself, even in the middle of a run.
        return onnxruntime.InferenceSession(str(path), options, providers=[provider], enable_fallback=0)
    except Exception as error:
        raise _translate(error, card, device, "load") from error


def _check_signature(card: ModelCard, kind: str, specs: tuple[TensorSpec, ...], nodes: Any) -> None:
    expected = [(spec.name, spec.shape) for spec in specs]
    found = [(node.name, tuple(node.shape[1:])) for node in nodes]
    if expected != found:
        raise ModelError(
            f"the {kind}s of model {card.id} are not those on its card", expected=str(expected), found=str(found)
        )


def _translate(error: Exception, card: ModelCard, device: Device, action: str) -> ResourceError:
    """onnxruntime's exceptions have no common base and no code for memory, so the words decide."""
    said = str(error)
    words = said.lower()
    if any(word in words for word in _MEMORY_WORDS) or isinstance(error, MemoryError):
        return DeviceError(
            f"the device {device} has too little memory to {action} model {card.id}",
            found=said,
            hint="close other programs that use it, or work on fewer faces at a time",
        )
    if device.kind == "cuda" and any(word in words for word in _CUDA_WORDS):
        return DeviceError(
            f"the device {device} failed to {action} model {card.id}",
            found=said,
            hint="check the driver with nvidia-smi, or choose the device cpu",
        )
    return ModelError(f"model {card.id} failed to {action}", found=said, hint="reinstall Faceplate")
