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
    from ..models import device as models
    from ..models.sessions import SessionPool

    Runner = Callable[[ApplyJob, Emit, CancelToken], JobOutcome]
    ServerBench = Callable[[Workbench, Path, str], Iterator[tuple[str, Figures]]]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object a line instead of text.")]
Progress = Annotated[str, typer.Option(help="bar; or lines for a farm manager: percent or openjd.")]
Device = Annotated[
    str,
    typer.Option(
        help="auto, cpu, cuda, tensorrt, rocm, migraphx, openvino, directml or coreml, or one with :N. "
        "Never falls back in silence."
    ),
]
Precision = Annotated[
    str, typer.Option(help="Of the nets that draw: float32, bfloat16 or float16; the error is measured and printed.")
]
Threads = Annotated[int, typer.Option(min=0, help="Frames worked on at once; 0 chooses by the machine.")]
Frames = Annotated[str | None, typer.Option(help="Range, e.g. 1001-1100x2,1105. Default: all.")]
InputSpace = Annotated[str | None, typer.Option(help="Colour space of the plate. Default: what the file says.")]
Commercial = Annotated[bool, typer.Option(help="Paid work: refuse weights whose licence forbids it.")]


def open_workbench(*, device: str, threads: int, commercial: bool = False, precision: str = "float32") -> Workbench:
    """OCIO configuration, nets and threads for one process.

    On a CPU every frame is worked on by one thread, several frames at once: that keeps the cores busy and the bytes
    independent of their number.
    """
    import cv2
    import torch
    from threadpoolctl import threadpool_limits

    from ..colour.spaces import ColourConfig
    from ..jobs.spec import Workbench

    nets = open_pool(device=device, threads=1, commercial=commercial, precision=precision)
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    threadpool_limits(1, user_api="blas")
    return Workbench(ColourConfig.open(), nets, threads or _usable_cores() + 1)


def open_pool(*, device: str, threads: int, commercial: bool = False, precision: str = "float32") -> SessionPool:
    """The nets of one process; `threads` of the CPU for one net."""
    from ..models.sessions import SessionPool

    return SessionPool(device=device, threads=threads, commercial=commercial, precision=_precision(precision))


def _precision(name: str) -> models.Precision:
    if name not in ("float32", "bfloat16", "float16"):
        raise SettingError(f"there is no precision {name!r}", expected="float32, bfloat16 or float16")
    return cast("models.Precision", name)


def fitting(runner: Runner | None, job: ApplyJob, server: str, precision: str = "float32") -> Runner | None:
    """The runner, if a job comes out there as it does here; None for this process.

    Args:
        runner: of `find_runner`.
        job: to be done.
        server: as the command line has it; "auto" passes over a runner that does not fit.
        precision: of nets that draw.

    Raises:
        SettingError: a server was named that cannot do the job.
    """
    if runner is None:
        return None
    reason = ""
    if any(one.track == "auto" for one in job.assignments):
        reason = "people are recognised in this process only, not on a server"
    elif precision != "float32":
        reason = f"a server computes in float32; {precision} runs in this process only"
    if server != "auto":
        if reason:
            raise SettingError(reason, found=f"--server {server}", hint="leave --server out, or say --server auto")
        return runner
    # a server has the environment of its start: an id may be another file there
    own_models = job.engine != "mesh" and bool(os.environ.get("FACEPLATE_MODELS"))
    return None if reason or own_models else runner


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
