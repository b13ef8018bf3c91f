"""Runs nets: loaded once, kept warm, on the device that was asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from ..errors import DeviceError, ModelError
from .card import ModelCard, TensorSpec
from .device import Device, choose_device
from .net import Array, Net, OpenSession, translate
from .store import ModelStore

__all__ = ["Array", "Net", "OpenSession", "SessionPool"]

_FATAL = 4


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
            store: where nets are found; None for the shipped ones and those that the user has added.
            device: "auto", "cpu", "cuda" or "cuda:NUMBER", see `choose_device`; or one that was chosen.
            threads: of the CPU for one net; 0 for one a core.
            commercial: whether the job is paid work; weights that forbid it are refused.
            used: told of every load and run of a net: the place to keep count of what is warm, and to `unload` others.

        Raises:
            DeviceError: the device is not there.
        """
        self._store = store or ModelStore.of_user()
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
    def store(self) -> ModelStore:
        """Where the nets are found."""
        return self._store

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
        net = Net(
            card, self._device, lambda: _load(card, path, self._device, self._threads), path.stat().st_size, self._used
        )
        net.load()
        return net

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


def open_net(card: ModelCard, path: Path, device: str | Device, *, threads: int = 0) -> Net:
    """A net of its own, outside any pool.

    Args:
        card: what is known of it.
        path: of its file, which is not verified.
        device: as `SessionPool`'s.
        threads: of the CPU; 0 for one a core.

    Raises:
        DeviceError: the device is not there.
    """
    chosen = choose_device(device) if isinstance(device, str) else device
    return Net(card, chosen, lambda: _load(card, path, chosen, threads), path.stat().st_size)


def _load(card: ModelCard, path: Path, device: Device, threads: int) -> Any:
    session = _open_session(card, path, device, threads)
    provider = session.get_providers()[0]
    if provider != device.provider:
        raise DeviceError(
            f"model {card.id} did not get the device {device}",
            expected=device.provider,
            found=provider,
            hint="check that CUDA and cuDNN fit the installed onnxruntime-gpu, or choose the device cpu",
        )
    _check_signature(card, "input", card.inputs, session.get_inputs())
    _check_signature(card, "output", card.outputs, session.get_outputs())
    return session


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
        raise translate(error, card, device, "load") from error


def _check_signature(card: ModelCard, kind: str, specs: tuple[TensorSpec, ...], nodes: Any) -> None:
    expected = [(spec.file_name, ("N",) * spec.batched + tuple(n or "any" for n in spec.shape)) for spec in specs]
    found = [(node.name, tuple(node.shape)) for node in nodes]
    named = dict(found)
    # A user's file may give more than its adapter takes.
    more = kind == "output" and card.kind
    wanted = {spec.file_name: (0,) * spec.batched + spec.shape for spec in specs}
    if not (wanted.keys() <= named.keys() if more else list(wanted) == list(named)) or any(
        not _agree(shape, named[name]) for name, shape in wanted.items()
    ):
        raise ModelError(
            f"the {kind}s of model {card.id} are not those on its card", expected=str(expected), found=str(found)
        )


def _agree(expected: tuple[int, ...], found: tuple[Any, ...]) -> bool:
    """Whether a shape can be the expected one; 0 there, and words here, stand for any length."""
    return len(expected) == len(found) and all(
        a in (0, b) or not isinstance(b, int) for a, b in zip(expected, found, strict=True)
    )
