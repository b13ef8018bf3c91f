"""What worker processes a server has, and one of them as the server sees it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from faceplate.errors import FaceplateError
from faceplate.models.device import Device

from ..rings import RingLimits
from .pipe import Pipe
from .start import COMMAND, Process


@dataclass(frozen=True)
class CrewPlan:
    """What workers there are.

    Attributes:
        devices: one for each worker, as `choose_device` takes them.
        threads: frames at once in a worker; 0 to choose by the machine.
        shots: analyses at once in a worker.
        warm_bytes: of a worker.
        roots: folders that jobs may touch.
        folder: of the frame rings.
        limits: of frame rings.
        nice: of threads of batch frames and analyses, 0..19.
        command: starts a worker.
    """

    devices: tuple[str, ...]
    threads: int
    shots: int
    warm_bytes: int
    roots: tuple[Path, ...]
    folder: Path
    limits: RingLimits
    nice: int = 10
    command: tuple[str, ...] = COMMAND

    @property
    def threads_each(self) -> int:
        """Frames at once in each worker; several workers on one CPU share its cores."""
        if self.threads or len(self.devices) == 1 or self.devices[0] != "cpu":
            return self.threads
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return max(1, -(-(cores + 1) // len(self.devices)))


@dataclass(eq=False)
class Member:
    """One worker process as the server sees it.

    Attributes:
        number: its place in the plan.
        asked: the device that it was started for.
        process: its process.
        pipe: to it.
        state: "starting", "ready", or "gone".
        device: where it works, once ready.
        threads: frames at once, once ready.
        at_work: frames that it has.
        taken: requests that it was given so far.
        reserved: whether a frame is to be alone on it.
        facts: what it last said is warm: `nets`, `warm_bytes`, `memory_mb`.
        failure: why it could not start.
    """

    number: int
    asked: str
    process: Process
    pipe: Pipe
    state: str = "starting"
    device: Device | None = None
    threads: int = 0
    at_work: int = 0
    taken: int = 0
    reserved: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)
    failure: FaceplateError | None = None
    waiting: dict[int, tuple[SimpleQueue[Any], object]] = field(default_factory=dict)
