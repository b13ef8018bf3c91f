"""`faceplate bench`: figures of this machine, as ratios within one run."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from ..errors import SettingError
from . import options
from .show import print_lines


def bench(
    soak: Annotated[int, typer.Option(min=0, help="Also watch the memory over so many frames, e.g. 2000.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Where the frames go for the while; default the system's place.")
    ] = None,
    nets: Annotated[
        str | None, typer.Option(help="random: measure the neural engine on random nets, beside InsightFace.")
    ] = None,
    server: Annotated[bool, typer.Option("--server", help="Measure a server of its own instead.")] = False,
    device: options.Device = "auto",
    json: options.Json = False,
) -> int:
    """Measure compute over file I/O, throughput, landmark steadiness and bits outside the matte."""
    from ..bench.run import run_bench

    if nets not in (None, "random"):
        raise SettingError(f"--nets {nets} is unknown", expected="random")
    if server and soak:
        raise SettingError("--soak is not for --server", hint="give one of the two")
    workbench = options.open_workbench(device=device, threads=0)
    with workbench.nets, tempfile.TemporaryDirectory(prefix="faceplate-bench-", dir=out) as folder:
        if nets is not None:
            from ..bench.nets import run_net_bench

            rows = run_net_bench(workbench, Path(folder))
        elif server:
            rows = options.find_server_bench()(workbench, Path(folder), device)
        else:
            rows = run_bench(workbench, Path(folder), soak_frames=soak)
        for title, figures in rows:
            print_lines({"figure": title, **figures} if json else figures, as_json=json, title=title)
    return 0
