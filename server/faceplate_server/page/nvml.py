"""What NVIDIA's management library tells of the GPUs, through nvidia-ml-py where that is installed."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

REASONS = {
    0x001: "idle",
    0x002: "clocks were set by hand",
    0x004: "power limit",
    0x008: "hardware slowdown",
    0x010: "in step with other GPUs",
    0x020: "too warm (driver)",
    0x040: "too warm (hardware)",
    0x080: "power brake from outside",
    0x100: "clocks of the display",
}
"""Bits of `nvmlDeviceGetCurrentClocksEventReasons`, by NVIDIA's nvml.h."""
HARMLESS = ("idle", "clocks were set by hand", "clocks of the display")


@dataclass(frozen=True)
class Gpu:
    """One GPU; None is what it does not tell.

    Attributes:
        index: by NVML, which counts all GPUs of the machine.
        name: of the product.
        uuid: "GPU-...".
        temperature_c: of the chip.
        power_w: drawn now.
        power_limit_w: what it may draw.
        clock_mhz: of the multiprocessors.
        clock_max_mhz: the highest that they may have.
        memory_clock_mhz: of its memory.
        used_percent: of the time that a kernel ran, over the driver's last sample.
        memory_used_mb: of all processes.
        memory_total_mb: that it has.
        slowed_by: why the clocks are not higher; REASONS.
    """

    index: int
    name: str
    uuid: str
    temperature_c: float | None
    power_w: float | None
    power_limit_w: float | None
    clock_mhz: float | None
    clock_max_mhz: float | None
    memory_clock_mhz: float | None
    used_percent: float | None
    memory_used_mb: float | None
    memory_total_mb: float | None
    slowed_by: tuple[str, ...] | None


class Nvml:
    """The library, loaded.

    Args:
        module: nvidia-ml-py's module, another one for tests.

    Attributes:
        silence: why it tells nothing, "" where it does.
    """

    def __init__(self, module: Any = None) -> None:
        self._nvml = module
        self.silence = ""
        try:
            if module is None:
                self._nvml = importlib.import_module("pynvml")
            self._nvml.nvmlInit()
        except ImportError:
            self.silence = "nvidia-ml-py is not installed: pip install faceplate[gpu-status]"
        except Exception as error:
            # NVMLError: no driver, no library, no permission; the page says which
            self.silence = str(error)

    def read(self) -> tuple[Gpu, ...]:
        """All GPUs now; none where the library is silent."""
        if self.silence:
            return ()
        try:
            count = self._nvml.nvmlDeviceGetCount()
            return tuple(self._gpu(index) for index in range(count))
        except self._nvml.NVMLError as error:
            self.silence = str(error)  # the driver was unloaded, or a GPU fell off its bus
            return ()

    def close(self) -> None:
        """Let go of the library."""
        if self._nvml is not None and not self.silence:
            self._nvml.nvmlShutdown()

    def _ask(self, question: Callable[[], T]) -> T | None:
        """An answer, or None where this GPU or driver has none."""
        try:
            return question()
        except self._nvml.NVMLError:
            return None

    def _gpu(self, index: int) -> Gpu:
        nvml = self._nvml
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        memory = self._ask(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
        used = self._ask(lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
        power = self._ask(lambda: nvml.nvmlDeviceGetPowerUsage(handle))
        limit = self._ask(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle))
        return Gpu(
            index=index,
            name=_text(nvml.nvmlDeviceGetName(handle)),
            uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
            temperature_c=self._ask(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
            power_w=None if power is None else power / 1e3,
            power_limit_w=None if limit is None else limit / 1e3,
            clock_mhz=self._ask(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
            clock_max_mhz=self._ask(lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)),
            memory_clock_mhz=self._ask(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),
            used_percent=None if used is None else float(used.gpu),
            memory_used_mb=None if memory is None else memory.used / (1 << 20),
            memory_total_mb=None if memory is None else memory.total / (1 << 20),
            slowed_by=self._reasons(handle),
        )

    def _reasons(self, handle: Any) -> tuple[str, ...] | None:
        nvml = self._nvml
        # renamed in driver 535's header; older wheels know the first name only
        ask = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
        ask = ask or nvml.nvmlDeviceGetCurrentClocksThrottleReasons
        bits = self._ask(lambda: ask(handle))
        return None if bits is None else tuple(words for bit, words in REASONS.items() if bits & bit)


def _text(value: str | bytes) -> str:
    """Older wheels give bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
