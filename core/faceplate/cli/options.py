"""Options that several commands share, and the workbench they describe."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ..errors import SettingError

if TYPE_CHECKING:
    from ..bench.figures import Figures
    from ..jobs.cancel import CancelToken
    from ..jobs.events import Emit
    from ..jobs.spec import ApplyJob, JobOutcome, Workbench

    Runner = Callable[[ApplyJob, Emit, CancelToken], JobOutcome]
    ServerBench = Callable[[Workbench, Path, str], Iterator[tuple[str, Figures]]]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object a line instead of text.")]
Progress = Annotated[str, typer.Option(help="bar; or lines for a farm manager: percent or openjd.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N. Never falls back in silence.")]
Threads = Annotated[int, typer.Option(min=0, help="Frames worked on at once; 0 chooses by the machine.")]
Frames = Annotated[str | None, typer.Option(help="Range, e.g. 1001-1100x2,1105. Default: all.")]
InputSpace = Annotated[str | None, typer.Option(help="Colour space of the plate. Default: what the file says.")]
Commercial = Annotated[bool, typer.Option(help="Paid work: refuse weights whose licence forbids it.")]


def open_workbench(*, device: str, threads: int, commercial: bool = False) -> Workbench:
    """OCIO configuration, nets and threads for one process.

    On a CPU every frame is worked on by one thread, several frames at once: that keeps the cores busy and the bytes
    independent of their number.
    """
    import cv2
    import torch
    from threadpoolctl import threadpool_limits

    from ..colour.spaces import ColourConfig
    from ..jobs.spec import Workbench
    from ..models.sessions import SessionPool

    nets = SessionPool(device=device, threads=1, commercial=commercial)
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    threadpool_limits(1, user_api="blas")
    return Workbench(ColourConfig.open(), nets, threads or _usable_cores() + 1)


def find_runner(where: str, device: str) -> Runner | None:
    """What runs a job on a server; None for this process itself.

    Args:
        where: "off"; "auto" for a running server that would give the same bytes; or a server's address.
        device: that the job wants.

    Raises:
        SettingError: a server is asked for, and none is installed.
    """
    if where == "off":
        return None
    for entry in entry_points(group="faceplate.runners", name="server"):
        return cast("Runner | None", entry.load()(where, device))
    raise SettingError(f"--server {where}: the server is not installed", hint="install Faceplate as a whole")


def find_server_bench() -> ServerBench:
    """What measures a server of its own.

    Raises:
        SettingError: no server is installed.
    """
    for entry in entry_points(group="faceplate.benches", name="server"):
        return cast("ServerBench", entry.load())
    raise SettingError("--server: the server is not installed", hint="install Faceplate as a whole")


def _usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
