"""A worker process with faults put in where real ones arise; run as a program with a JSON file that says which ones.

| key | fault |
|---|---|
| `short_above` | the engine has no memory for a crop of more pixels |
| `short_once` | path of a marker: the first swap finds no memory |
| `dies_at` | killed in mid-frame at this frame number, of ranges and of hosts |
| `dies_once` | path of a marker: that happens once only |
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from faceplate.jobs.frames import FrameWork
from faceplate.plate import FrameSource
from faceplate.swap.base import FaceCrop, FaceResult
from faceplate.swap.mesh.engine import MeshEngine
from faceplate_server.frames import job as frame_job
from faceplate_server.workers import process as worker_process


def command(control: Path) -> tuple[str, ...]:
    """Starts such a worker."""
    return (sys.executable, str(Path(__file__)), str(control))


def _faults() -> dict[str, Any]:
    faults: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    return faults


def _first(marker: str | None) -> bool:
    """True the first time that any process asks with this marker, and always without one."""
    if marker is None:
        return True
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


_swap, _run, _one = MeshEngine.swap, FrameWork.run, frame_job.FrameJobs.run


def _swapped(self: MeshEngine, crops: Sequence[FaceCrop], prepared: Any) -> list[FaceResult]:
    faults = _faults()
    if any(crop.view[0].numel() > faults.get("short_above", 1 << 40) for crop in crops):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
    if "short_once" in faults and _first(faults["short_once"]):
        raise MemoryError
    return _swap(self, crops, prepared)


def _die(frame: int) -> None:
    faults = _faults()
    if frame == faults.get("dies_at") and _first(faults.get("dies_once")):
        os.kill(os.getpid(), signal.SIGKILL)


def _in_range(self: FrameWork, source: FrameSource) -> Any:
    if source.number == _faults().get("dies_at"):
        folder = self.outputs[source.number].parent
        (folder / f".faceplate-tmp-{os.getpid()}-0123456789ab.exr").write_bytes(b"half a fra")
    _die(source.number)
    return _run(self, source)


def _single(self: frame_job.FrameJobs, job: Any, *rest: Any) -> Any:
    _die(job.message.frame)
    return _one(self, job, *rest)


if __name__ == "__main__":
    MeshEngine.swap = _swapped  # type: ignore[method-assign]
    FrameWork.run = _in_range  # type: ignore[method-assign]
    frame_job.FrameJobs.run = _single  # type: ignore[method-assign]
    sys.exit(worker_process.main())
