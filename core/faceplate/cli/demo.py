"""`faceplate demo`: the main job on a plate and a person that ship, offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options
from .show import reporter


def demo(
    out: Annotated[Path, typer.Option(help="Folder for plate, identity and result.")] = Path("faceplate-demo"),
    frames: Annotated[int, typer.Option(min=1, max=48, help="The first so many of the 48 frames.")] = 48,
    device: options.Device = "auto",
    threads: options.Threads = 0,
    json: options.Json = False,
) -> int:
    """Make a film plate and a fictional person, put the person's face on the plate, and say where the results lie."""
    from ..deliver import parse_layers
    from ..demo.plate import DemoPlateSpec, write_plate
    from ..job import Assignment
    from ..jobs.apply import run_apply
    from ..jobs.cancel import CancelToken, cancel_on_signals
    from ..jobs.events import note, progress
    from ..jobs.identity import make_demo_identity
    from ..jobs.spec import ApplyJob

    bench = options.open_workbench(device=device, threads=threads)
    token = CancelToken()
    with bench.nets, cancel_on_signals(token), reporter(as_json=json) as emit:
        spec = DemoPlateSpec()
        done = 0

        def on_frame(_: int) -> None:
            nonlocal done
            done += 1
            token.check()
            emit(progress("plate", done, frames))

        plate = write_plate(spec, out / "plate", count=frames, on_frame=on_frame)
        emit(note(f"plate     {plate}  (NASA's astronaut portrait, public domain)"))
        made = make_demo_identity(out / "person.fpid", bench)
        emit(note(f"identity  {made.path}  (a fictional person)"))
        job = ApplyJob(
            plate=plate,
            output=str(out / "result" / "demo.####.exr"),
            assignments=(Assignment(made.path),),
            layers=parse_layers("all"),
            project="Faceplate demonstration",
        )
        return run_apply(job, bench, emit, token).exit_code
