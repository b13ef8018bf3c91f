"""`faceplate farm`: jobs for render farms."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from . import options
from .show import print_lines

app = typer.Typer(help="Jobs for render farms.", no_args_is_help=True)


@app.callback()
def farm() -> None:
    """Jobs for render farms."""


@app.command("export")
def export(
    job: Annotated[Path, typer.Argument(help="Job file as faceplate batch takes it: .toml, .json or .jsonl.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder to write; one in it for each of several jobs.")
    ],
    chunk: Annotated[int, typer.Option(min=1, help="Frames of a task.")] = 20,
    chunk_seconds: Annotated[int, typer.Option(min=0, help="How long a task should take, in place of --chunk.")] = 0,
    cores: Annotated[int, typer.Option(min=1, help="Cores that a machine must have.")] = 2,
    memory: Annotated[int, typer.Option(min=0, help="Memory that it must have, MiB.")] = 4096,
    gpus: Annotated[int, typer.Option(min=0, help="GPUs that it must have.")] = 0,
    gpu_memory: Annotated[int, typer.Option(min=0, help="Memory of each, MiB.")] = 0,
    program: Annotated[str, typer.Option(help="How Faceplate is called on the farm's machines.")] = "faceplate",
    json: options.Json = False,
) -> int:
    """Write a job as an Open Job Description bundle: a template, and its parameters."""
    from ..batch.queue import read_jobs
    from ..colour.spaces import ColourConfig
    from ..farm.template import FarmNeeds, write_bundle

    jobs = read_jobs(job)
    for one in jobs:
        if one.error is not None:
            raise one.error
    if not jobs:
        raise InputError(f"{job} holds no job", hint="the README shows what a job file looks like")
    needs = FarmNeeds(chunk, chunk_seconds, cores, memory, gpus, gpu_memory, program)
    config = ColourConfig.open()
    for one in jobs:
        assert one.words is not None
        folder = output if len(jobs) == 1 else output / one.id
        template = write_bundle(one.words, one.name, folder, needs, config)
        print_lines({"job": one.name, "template": str(template)}, as_json=json)
    return 0
