"""One net: its session opened when it is first needed, run on arrays or on tensors, let go and opened again."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DeviceError, DeviceMemoryError, ModelError, ResourceError
from .card import ModelCard, TensorSpec
from .device import Device
from .memory import is_out_of_memory

if TYPE_CHECKING:
    import torch

Array = NDArray[np.float32]

_CUDA_WORDS = ("cuda", "cudnn", "cublas")
_WIDENED, _AS_THEY_ARE = 2.0, 1.2
"""Memory of the weights in sizes of the file: float16 ones are widened to float32; others are laid out anew for the
processor and the first copy let go (631 MB were seen for a file of 554 MB).
"""
_WORK = 8
"""Memory of the work in between, in inputs and outputs; within a factor of two for the nets that ship."""
_ANY_SIDE = 640
"""Taken for a length that follows the input, until one was seen."""

OpenSession = Callable[[], Any]


class Net:
    """One net. Its session is opened by the first run or by `load`, and again by the next run after `unload`; the
    numbers are the same. May be used from several threads.

    Args:
        card: what is known of it.
        device: where it runs.
        open_session: opens onnxruntime's session, or one that behaves as such.
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
        self._used = used
        self._outputs = [spec.file_name for spec in card.outputs]
        self._session: Any = None
        self._weights_bytes = round(weights_bytes * (_WIDENED if "float16" in card.precision else _AS_THEY_ARE))
        self._loaded_bytes = self._weights_bytes
        self._running = 0
        self._provider = device.provider
        self._precision = "float32"
        self._moved = sum(_count(spec) for spec in (*card.inputs, *card.outputs))
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
        """What runs it, as the session itself said: onnxruntime's provider, or "torch"."""
        return self._provider

    @property
    def precision(self) -> str:
        """Numbers that it computes in. For "float32", weights that lie shorter in the file are widened, and TF32 is
        off; others come with the error that was measured when it was loaded, e.g. "bfloat16 (rms error 0.4 %)".
        """
        return self._precision

    @property
    def is_loaded(self) -> bool:
        """Whether its session is open."""
        return self._session is not None

    @property
    def size(self) -> int:
        """Bytes that it takes while it is loaded: an estimate, since no runtime tells. Its weights, and eight times
        the inputs and outputs of the largest run so far, whose memory the runtime keeps.
        """
        return self._loaded_bytes + _WORK * 4 * self._moved

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
                beside = getattr(session, "beside", "")
                self._provider = str(session.get_providers()[0]) + (f" ({beside})" if beside else "")
                self._precision = getattr(session, "precision", "float32")
                self._loaded_bytes = getattr(session, "weights_bytes", self._weights_bytes)
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
        self._check(inputs, np.dtype(np.float32))
        return self._run(inputs, np.concatenate)

    def run_tensors(self, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """All outputs by name, float32 on the net's device with the inputs' batch first. On a GPU nothing is copied to
        the host, and the work is queued on torch's current stream; on a CPU the memory is shared.

        Args:
            inputs: by name, float32 on the net's device, (N, ...) with the shapes on the card; the same N in all.

        Raises:
            ModelError: an input is missing, unknown or of another shape, type or device.
            DeviceError: the device is out of memory or lost.
        """
        import torch

        self._check(inputs, torch.float32)
        where = torch.device(self._device.torch_name)
        for name, value in inputs.items():
            if value.device != where:
                raise ModelError(
                    f"model {self._card.id} got input {name} on another device",
                    expected=str(where),
                    found=str(value.device),
                )
        return self._run(inputs, torch.cat)

    def _run(self, inputs: Mapping[str, Any], join: Callable[[list[Any]], Any]) -> dict[str, Any]:
        from .calls import call

        session = self._enter()
        try:
            parts = [call(session, self._card, part) for part in self._parts(inputs, session)]
        except ResourceError:
            raise
        except Exception as error:
            raise translate(error, self._card, self._device, "run") from error
        finally:
            self._leave()
        results = parts[0] if len(parts) == 1 else {name: join([part[name] for part in parts]) for name in parts[0]}
        self._moved = max(self._moved, sum(math.prod(v.shape) for v in (*inputs.values(), *results.values())))
        return results

    def _parts(self, inputs: Mapping[str, Any], session: Any) -> list[dict[str, Any]]:
        """The inputs as they go in: all at once, or one item after the other where the file has no batch axis."""
        batch = len(next(iter(inputs.values())))
        specs = self._card.inputs
        shared = [inputs[spec.name] for spec in specs if not spec.batched]
        together = all(spec.batched for spec in self._card.outputs) and not getattr(session, "fixed_batch", False)
        if batch == 1 or (together and all(bool((value == value[:1]).all()) for value in shared)):
            return [dict(inputs)]
        return [{spec.name: inputs[spec.name][i : i + 1] for spec in specs} for i in range(batch)]

    def _check(self, inputs: Mapping[str, Any], dtype: Any) -> None:
        names = [spec.name for spec in self._card.inputs]
        if set(inputs) != set(names):
            raise ModelError(
                f"model {self._card.id} got the wrong inputs", expected=", ".join(names), found=", ".join(inputs)
            )
        batch = inputs[names[0]].shape[:1]
        for spec in self._card.inputs:
            value = inputs[spec.name]
            shape = tuple(value.shape)
            if value.dtype != dtype or not fits((*batch, *spec.shape), shape) or batch == (0,):
                raise ModelError(
                    f"model {self._card.id} got a wrong input {spec.name}",
                    expected=f"(N, {', '.join(str(n) if n else 'any' for n in spec.shape)}) float32",
                    found=f"{shape} {value.dtype}",
                )

    def warm_up(self, batch: int = 1) -> None:
        """Run once on zeros, so that the first real run does not pay for what the runtime prepares.

        Raises:
            DeviceError: the device is out of memory or lost.
        """
        self.run({spec.name: np.zeros((batch, *sample_shape(spec)), np.float32) for spec in self._card.inputs})


def sample_shape(spec: TensorSpec, side: int = _ANY_SIDE) -> tuple[int, ...]:
    """A shape that an input can have, lengths that are free set to `side`."""
    return tuple(length or side for length in spec.shape)


def fits(expected: tuple[int, ...], found: tuple[Any, ...]) -> bool:
    """Whether a shape is the expected one; 0 stands for any length."""
    return len(expected) == len(found) and all(a in (0, b) for a, b in zip(expected, found, strict=True))


def _count(spec: TensorSpec) -> int:
    return math.prod(sample_shape(spec))


def translate(error: Exception, card: ModelCard, device: Device, action: str) -> ResourceError:
    """A library's exception as ours. onnxruntime's have no common base and no code for memory, so the words decide."""
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
    hint = "reinstall Faceplate" if not card.kind else "add its file again: faceplate models add FILE"
    return ModelError(f"model {card.id} failed to {action}", found=said, hint=hint)
