"""The machine and its GPUs, looked at every few seconds by a thread that may hang without harm to others."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from .nvml import Gpu, Nvml

_EVERY_S = 2.0
_MEMINFO = Path("/proc/meminfo")


@dataclass(frozen=True)
class Sample:
    """What was seen last.

    Attributes:
        at: `time.monotonic()`.
        cores: of the machine that this process may use.
        cores_used: by this process since the sample before.
        load: of the machine over the last minute, None where the system does not tell.
        free_mb: memory that could be had without swapping, None likewise.
        total_mb: memory of the machine, None likewise.
        gpus: by NVML.
        silence: why NVML tells nothing, "" where it does.
    """

    at: float
    cores: int
    cores_used: float
    load: float | None
    free_mb: float | None
    total_mb: float | None
    gpus: tuple[Gpu, ...]
    silence: str


class Sampler:
    """Looks at the machine while it runs; `last` may be read from any thread.

    Args:
        nvml: None to load it, in the thread.
    """

    def __init__(self, nvml: Nvml | None = None) -> None:
        self._nvml = nvml
        self._ended = threading.Event()
        self._before = time.monotonic(), time.process_time()
        self.last = self._sample((), "NVML has not answered yet")
        self._thread = threading.Thread(target=self._run, name="page sampler", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread; one that hangs in the driver is left behind."""
        self._ended.set()
        self._thread.join(1.0)

    def _run(self) -> None:
        nvml = self._nvml if self._nvml is not None else Nvml()
        while True:
            gpus = nvml.read()
            self.last = self._sample(gpus, nvml.silence)
            if self._ended.wait(_EVERY_S):
                nvml.close()
                return

    def _sample(self, gpus: tuple[Gpu, ...], silence: str) -> Sample:
        now, cpu = time.monotonic(), time.process_time()
        then, before = self._before
        self._before = now, cpu
        free, total = _memory()
        return Sample(
            at=now,
            cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
            cores_used=(cpu - before) / (now - then) if now > then else 0.0,
            load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
            free_mb=free,
            total_mb=total,
            gpus=gpus,
            silence=silence,
        )


def _memory() -> tuple[float | None, float | None]:
    """(available, total) MB, where Linux tells."""
    if not _MEMINFO.exists():
        return None, None
    facts = dict(line.split(":", 1) for line in _MEMINFO.read_text("ascii").splitlines())
    available, total = (float(facts[name].split()[0]) / 1024 for name in ("MemAvailable", "MemTotal"))
    return available, total
