"""`faceplate analyse`: find and follow the faces of a plate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options
from .show import reporter


def analyse(
    plate: Annotated[str, typer.Argument(help="File, folder or pattern.")],
    frames: options.Frames = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Sidecar to write. Default: PLATE.faces.json beside the plate."),
    ] = None,
    input_space: options.InputSpace = None,
    max_gap: Annotated[int | None, typer.Option(help="Longest gap in frames that is filled.")] = None,
    force: Annotated[bool, typer.Option(help="Analyse again even where a fitting sidecar exists.")] = False,
    device: options.Device = "auto",
    threads: options.Threads = 0,
    json: options.Json = False,
) -> int:
    """Find the faces, follow them over the shot, smooth them; write a sidecar that a person can read and correct."""
    from ..jobs.analyse import AnalyseJob, run_analyse
    from ..jobs.cancel import CancelToken, cancel_on_signals

    job = AnalyseJob(plate, frames, output, input_space, max_gap, force)
    bench = options.open_workbench(device=device, threads=threads)
    token = CancelToken()
    with bench.nets, cancel_on_signals(token), reporter(as_json=json) as emit:
        run_analyse(job, bench, emit, token)
    return 0
