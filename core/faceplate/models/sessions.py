"""Runs nets: loaded once, kept warm, on the device that was asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from ..errors import ModelError
from .card import ModelCard, TensorSpec
from .device import Device, Precision, Runtime, choose_device
from .net import Array, Net, OpenSession
from .store import ModelStore

__all__ = ["Array", "Net", "OpenSession", "SessionPool"]

DRAWING = frozenset({"swapper", "restorer", "upscaler", "matte", "editor"})
"""Roles whose nets may compute in less than float32."""


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
        precision: Precision = "float32",
        runtime: Runtime = "auto",
    ) -> None:
        """
        Args:
            store: where nets are found; None for the shipped ones and those that the user has added.
            device: "auto", "cpu", "cuda" or "cuda:NUMBER", see `choose_device`; or one that was chosen.
            threads: of the CPU for one net; 0 for one a core.
            commercial: whether the job is paid work; weights that forbid it are refused.
            precision: of nets that draw (swappers, restorers, upscalers, mattes, editors): "float32", "float16" or
                "bfloat16". Nets that find and tell faces always compute in float32.
            runtime: "auto", "onnxruntime" or "torch", for the same nets.
            used: told of every load and run of a net: the place to keep count of what is warm, and to `unload` others.

        Raises:
            DeviceError: the device is not there.
        """
        self._store = store or ModelStore.of_user()
        self._device = choose_device(device) if isinstance(device, str) else device
        self._threads = threads
        self._commercial = commercial
        self._used = used
        self._precision: Precision = precision
        self._runtime: Runtime = runtime
        self._nets: dict[str, Net] = {}
        self._closed = False
        self._lock = threading.Lock()

    @property
    def device(self) -> Device:
        """Where the nets run, and why there."""
        return self._device

    @property
    def precision(self) -> Precision:
        """Of the nets that draw."""
        return self._precision

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
        draws = card.role in DRAWING
        precision, runtime = (self._precision, self._runtime) if draws else ("float32", "auto")

        def load() -> Any:
            return _load(card, path, self._device, self._threads, precision, runtime)

        net = Net(card, self._device, load, path.stat().st_size, self._used)
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


def describe_nets(nets: Sequence[Net]) -> str:
    """What runs each net, in which numbers: "CPUExecutionProvider, float32: face_detector, iris; torch, ..."."""
    by: dict[str, list[str]] = {}
    for net in nets:
        by.setdefault(f"{net.provider}, {net.precision}", []).append(net.card.id)
    return "; ".join(f"{how}: {', '.join(ids)}" for how, ids in by.items())


def open_net(card: ModelCard, path: Path, device: str | Device, *, threads: int = 0) -> Net:
    """A net of its own, outside any pool, in float32.

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


def _load(
    card: ModelCard,
    path: Path,
    device: Device,
    threads: int,
    precision: Precision = "float32",
    runtime: Runtime = "auto",
) -> Any:
    from .runtimes.opening import open_session

    session = open_session(card, path, device, threads, precision=precision, runtime=runtime)
    if hasattr(session, "get_inputs"):
        _check_signature(card, "input", card.inputs, session.get_inputs())
        _check_signature(card, "output", card.outputs, session.get_outputs())
    return session


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
