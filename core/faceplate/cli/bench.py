"""`faceplate bench`: figures of this machine, as ratios within one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options
from .show import print_lines


def bench(
    soak: Annotated[int, typer.Option(min=0, help="Also watch the memory over so many frames, e.g. 2000.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for the frames; default a temporary one.")] = None,
    device: options.Device = "auto",
    json: options.Json = False,
) -> int:
    """Measure compute over file I/O, throughput, landmark steadiness and bits outside the matte."""
    from ..bench.run import run_bench

    for title, figures in run_bench(device=device, soak=soak, folder=out):
        print_lines({"figure": title, **figures} if json else figures, as_json=json, title=title)
    return 0
