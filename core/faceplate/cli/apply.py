"""`faceplate apply`: the main job."""

from __future__ import annotations

from typing import Annotated

import typer

from . import options
from .show import reporter


def apply(
    plate: Annotated[
        str, typer.Argument(help="File, folder, movie or pattern: plate.####.exr, plate.%04d.exr, plate.$F4.exr.")
    ],
    output: Annotated[str, typer.Option("-o", "--output", help="File, movie or pattern to write.")],
    identity: Annotated[
        list[str],
        typer.Option(
            help="FILE.fpid[@WHO]: a track number, main (default), all, auto, or the .fpid of who is in the plate."
        ),
    ],
    frames: options.Frames = None,
    engine: Annotated[str, typer.Option(help="What replaces the face: mesh, or a swapper of yours.")] = "mesh",
    restore: Annotated[str | None, typer.Option(help="Restorer that follows it.")] = None,
    matte: Annotated[list[str] | None, typer.Option(help="Net that says where the face is; repeatable.")] = None,
    edit: Annotated[list[str] | None, typer.Option(help="ID or ID:KEY=VALUE of an editor; repeatable.")] = None,
    input_space: options.InputSpace = None,
    input_matrix: Annotated[
        str | None, typer.Option(help="Of a movie whose tags are wrong: bt709, bt601, bt2020 or smpte240m.")
    ] = None,
    input_range: Annotated[str | None, typer.Option(help="Likewise: limited or full.")] = None,
    faces: Annotated[str | None, typer.Option(help="Sidecar .faces.json to use as it is.")] = None,
    holdout: Annotated[str | None, typer.Option(help="PATTERN[:LAYER] of a matte that keeps the plate.")] = None,
    layers: Annotated[str | None, typer.Option(help="default, all, or a list; see the README.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE or KEY=FRAME:VALUE,FRAME:VALUE.")] = None,
    settings: Annotated[str | None, typer.Option(help="TOML file of settings.")] = None,
    missing: Annotated[str, typer.Option(help="What a hole in the sequence means: error, skip or hold.")] = "error",
    project: Annotated[str | None, typer.Option(help="Project to check consent against.")] = None,
    commercial: options.Commercial = False,
    codec: Annotated[str | None, typer.Option(help="Of a movie; default: the plate's kind. See the README.")] = None,
    alpha: Annotated[str, typer.Option(help="Of a movie of the element: straight or premultiplied.")] = "straight",
    fps: Annotated[str | None, typer.Option(help="Of a movie: conform to this rate, e.g. 24 or 24000/1001.")] = None,
    output_space: Annotated[str | None, typer.Option(help="Of a movie made of pictures. Default: BT.709.")] = None,
    failed: Annotated[
        str, typer.Option(help="Of a movie with failed frames: none is made, or plate: it stands in.")
    ] = "none",
    no_movie: Annotated[
        bool, typer.Option("--no-movie", help="Make the frames alone; a later run makes the movie.")
    ] = False,
    device: options.Device = "auto",
    precision: options.Precision = "float32",
    threads: options.Threads = 0,
    server: Annotated[
        str, typer.Option(help="off: work here; auto: a running server; or its address or folder.")
    ] = "off",
    progress: options.Progress = "bar",
    json: options.Json = False,
) -> int:
    """Replace faces in a plate. Run it again to resume; only what is missing or stale is rendered."""
    from ..jobs.apply import run_apply
    from ..jobs.cancel import CancelToken, cancel_on_signals
    from ..jobs.words import ApplyWords

    job = ApplyWords(
        plate=plate,
        output=output,
        identity=tuple(identity),
        frames=frames,
        engine=engine,
        restore=restore,
        matte=tuple(matte or ()),
        edit=tuple(edit or ()),
        input_space=input_space,
        input_matrix=input_matrix,
        input_range=input_range,
        faces=faces,
        holdout=holdout,
        layers=layers,
        set=tuple(set_ or ()),
        settings=settings,
        missing=missing,
        project=project,
        commercial=commercial,
        codec=codec,
        alpha=alpha,
        fps=fps,
        output_space=output_space,
        failed=failed,
        no_movie=no_movie,
    ).job()
    token = CancelToken()
    remote = options.fitting(options.find_runner(server, device), job, server, precision)
    with cancel_on_signals(token), reporter(as_json=json, progress=progress) as emit:
        if remote is not None:
            return remote(job, emit, token).exit_code
        bench = options.open_workbench(device=device, threads=threads, commercial=commercial, precision=precision)
        with bench.nets:
            return run_apply(job, bench, emit, token).exit_code
