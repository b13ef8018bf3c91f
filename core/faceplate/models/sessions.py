"""Runs nets: loaded once, kept warm, on the device that was asked for."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DeviceError, DeviceMemoryError, ModelError, ResourceError
from .card import ModelCard, TensorSpec
from .device import Device, choose_device
from .memory import is_out_of_memory
from .store import ModelStore

Array = NDArray[np.float32]

_FATAL = 4
_CUDA_WORDS = ("cuda", "cudnn", "cublas")
_WEIGHTS = 2
"""Copies of the weights in memory: as read, and laid out anew for the processor."""
_WORK = 8
"""Memory of the work in between, in inputs and outputs; within a factor of two for the nets that ship."""

OpenSession = Callable[[], Any]


class Net:
    """One net. Its session is opened by the first run or by `load`, and again by the next run after `unload`; the
    numbers are the same. May be used from several threads.

    Args:
        card: what is known of it.
        device: where it runs.
        open_session: opens onnxruntime's session.
        weights_bytes: size of its file.
        used: told of every run and load, None for nobody.
    """

    def __init__(
        self,
        card: ModelCard,
        device: Device,
        open_session: OpenSession,
        weights_bytes: int,
        used: Callable[[Net], None] | None = None,
    ) -> None:
        self._card = card
        self._device = device
        self._open = open_session
        self._weights = weights_bytes
        self._used = used
        self._outputs = [spec.name for spec in card.outputs]
        self._session: Any = None
        self._running = 0
        self._provider = device.provider
        self._batch = 1
        self._lock = threading.Lock()

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
        """onnxruntime's provider that runs it, as the session itself said."""
        return self._provider

    @property
    def precision(self) -> str:
        """Numbers that it computes in: weights that lie shorter in the file are widened, and TF32 is off."""
        return "float32"

    @property
    def is_loaded(self) -> bool:
        """Whether its session is open."""
        return self._session is not None

    @property
    def size(self) -> int:
        """Bytes that it takes while it is loaded: an estimate, since no runtime tells. Twice its file, and eight times
        the inputs and outputs of the largest batch so far, whose memory the runtime keeps.
        """
        values = sum(math.prod(spec.shape) for spec in (*self._card.inputs, *self._card.outputs))
        return _WEIGHTS * self._weights + _WORK * 4 * values * self._batch

    def load(self) -> None:
        """Open the session, if it is not.

        Raises:
            ModelError: the file is damaged, or not what its card says.
            DeviceError: the device cannot run it; it is never moved to another in silence.
        """
        self._enter()
        self._leave()

    def unload(self) -> bool:
        """Let go of the session until the next run; False when one is at work, and nothing was done."""
        with self._lock:
            if self._running:
                return False
            self._session = None
            return True

    def _enter(self) -> Any:
        """The session, not to be unloaded until `_leave`."""
        with self._lock:
            if self._session is None:
                session = self._open()
                self._provider = str(session.get_providers()[0])
                self._session = session
            self._running += 1
            return self._session

    def _leave(self) -> None:
        with self._lock:
            self._running -= 1
        if self._used is not None:
            self._used(self)

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """All outputs by name, as float32 arrays with the inputs' batch first.

        Args:
            inputs: by name, float32, (N, ...) with the shapes on the card; the same N in all.

        Raises:
            ModelError: an input is missing, unknown or of another shape or type.
            DeviceError: the device is out of memory or lost.
        """
        self._check(inputs)
        session = self._enter()
        try:
            feed = {name: np.ascontiguousarray(value) for name, value in inputs.items()}
            results = session.run(self._outputs, feed)
            self._batch = max(self._batch, len(results[0]))
        except Exception as error:
            raise _translate(error, self._card, self._device, "run") from error
        finally:
            self._leave()
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
        self,
        store: ModelStore | None = None,
        device: str | Device = "auto",
        *,
        threads: int = 0,
        commercial: bool = False,
        used: Callable[[Net], None] | None = None,
    ) -> None:
        """
        Args:
            store: where nets are found; None for one with the shipped nets only.
            device: "auto", "cpu", "cuda" or "cuda:NUMBER", see `choose_device`; or one that was chosen.
            threads: of the CPU for one net; 0 for one a core.
            commercial: whether the job is paid work; weights that forbid it are refused.
            used: told of every load and run of a net: the place to keep count of what is warm, and to `unload` others.

        Raises:
            DeviceError: the device is not there.
        """
        self._store = store or ModelStore()
        self._device = choose_device(device) if isinstance(device, str) else device
        self._threads = threads
        self._commercial = commercial
        self._used = used
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
            return tuple(net for net in self._nets.values() if net.is_loaded)

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
            net = self._nets.get(model_id)
            if net is None:
                path = self._store.path(model_id, commercial=self._commercial)
                net = self._nets[model_id] = self._net(self._store.card(model_id), path)
        return net

    def _net(self, card: ModelCard, path: Path) -> Net:
        net = Net(card, self._device, lambda: self._load(card, path), path.stat().st_size, self._used)
        net.load()
        return net

    def _load(self, card: ModelCard, path: Path) -> Any:
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
        return session

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
    if is_out_of_memory(error):
        return DeviceMemoryError(
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
