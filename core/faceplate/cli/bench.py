"""`faceplate bench`: figures of this machine, as ratios within one run."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from . import options
from .show import print_lines


def bench(
    soak: Annotated[int, typer.Option(min=0, help="Also watch the memory over so many frames, e.g. 2000.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Where the frames go for the while; default the system's place.")
    ] = None,
    device: options.Device = "auto",
    json: options.Json = False,
) -> int:
    """Measure compute over file I/O, throughput, landmark steadiness and bits outside the matte."""
    from ..bench.run import run_bench

    workbench = options.open_workbench(device=device, threads=0)
    with workbench.nets, tempfile.TemporaryDirectory(prefix="faceplate-bench-", dir=out) as folder:
        for title, figures in run_bench(workbench, Path(folder), soak_frames=soak):
            print_lines({"figure": title, **figures} if json else figures, as_json=json, title=title)
    return 0
