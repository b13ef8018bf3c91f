"""`faceplate render`: a whole timeline."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ..errors import InputError, SettingError
from . import options
from .show import reporter

if TYPE_CHECKING:
    from ..jobs.timeline.spec import GivenIdentity
    from ..jobs.words import ApplyWords


def render(
    timeline: Annotated[Path, typer.Argument(help="Timeline: .otio, .otioz, .aaf, .xml (FCP 7), .fcpxml or .edl.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for results and timelines.")],
    identity: Annotated[
        list[str] | None,
        typer.Option(help="FILE.fpid[@PERSON]; a name of the people file, main (default), all, auto or OTHER.fpid."),
    ] = None,
    handles: Annotated[int, typer.Option(min=0, help="Frames more at both ends of each clip.")] = 0,
    only: Annotated[list[str] | None, typer.Option(help="Render these clips or sources alone; * for any text.")] = None,
    skip: Annotated[list[str] | None, typer.Option(help="Leave these clips or sources as they are.")] = None,
    element: Annotated[bool, typer.Option("--element", help="The face alone, on a track of its own above.")] = False,
    to: Annotated[str, typer.Option(help="What is written: exr, mov, mxf, mkv or mp4.")] = "exr",
    media_root: Annotated[
        list[Path] | None, typer.Option(help="Look for media that are not where the timeline says below this folder.")
    ] = None,
    relink: Annotated[list[str] | None, typer.Option(help="FROM=TO: exchange the beginning of media paths.")] = None,
    missing_media: Annotated[str, typer.Option(help="Media that are not there: error, or skip their clips.")] = "error",
    rate: Annotated[str | None, typer.Option(help="Frames a second of an EDL, e.g. 24 or 23.976.")] = None,
    name: Annotated[str | None, typer.Option("--timeline", help="Which one, in a file with several.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan as a table and stop.")] = False,
    faces_only: Annotated[
        bool, typer.Option("--faces-only", help="Find the faces, write people file and contact sheet, and stop.")
    ] = False,
    engine: Annotated[str, typer.Option(help="What replaces the face: mesh, or a swapper of yours.")] = "mesh",
    restore: Annotated[str | None, typer.Option(help="Restorer that follows it.")] = None,
    matte: Annotated[list[str] | None, typer.Option(help="Net that says where the face is; repeatable.")] = None,
    edit: Annotated[list[str] | None, typer.Option(help="ID or ID:KEY=VALUE of an editor; repeatable.")] = None,
    input_space: options.InputSpace = None,
    layers: Annotated[str | None, typer.Option(help="default, all, or a list; see the README.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE or KEY=FRAME:VALUE,FRAME:VALUE.")] = None,
    settings: Annotated[str | None, typer.Option(help="TOML file of settings.")] = None,
    missing: Annotated[str, typer.Option(help="What a hole in a sequence means: error, skip or hold.")] = "error",
    project: Annotated[str | None, typer.Option(help="Project to check consent against.")] = None,
    commercial: options.Commercial = False,
    codec: Annotated[str | None, typer.Option(help="Of movies; default: the plate's kind. See the README.")] = None,
    alpha: Annotated[str, typer.Option(help="Of movies of the element: straight or premultiplied.")] = "straight",
    output_space: Annotated[str | None, typer.Option(help="Of movies made of pictures. Default: BT.709.")] = None,
    device: options.Device = "auto",
    precision: options.Precision = "float32",
    threads: options.Threads = 0,
    json: options.Json = False,
) -> int:
    """Replace faces in all that a timeline shows, and write a timeline that plays the results. Run again to resume."""
    from ..jobs.cancel import CancelToken, cancel_on_signals
    from ..jobs.timeline.spec import RenderJob
    from ..jobs.words import ApplyWords

    words = ApplyWords(
        plate=str(timeline),
        output=str(output),
        identity=(),
        engine=engine,
        restore=restore,
        matte=tuple(matte or ()),
        edit=tuple(edit or ()),
        input_space=input_space,
        layers=layers or ("element" if element else None),
        set=tuple(set_ or ()),
        settings=settings,
        missing=missing,
        project=project,
        commercial=commercial,
        codec=codec,
        alpha=alpha,
        output_space=output_space,
    )
    job = RenderJob(
        timeline=timeline,
        output=output,
        words=words,
        identities=tuple(_identity(text) for text in identity or ()),
        handles=handles,
        only=tuple(only or ()),
        skip=tuple(skip or ()),
        element=element,
        suffix="." + to.lower().lstrip("."),
        roots=tuple(media_root or ()),
        relink=tuple(_relink(text) for text in relink or ()),
        rate=None if rate is None else _rate(rate),
        name=name,
        offline=_offline(missing_media),
    )
    if dry_run:
        from .render_plan import show_plan

        with tempfile.TemporaryDirectory(prefix="faceplate-plan-") as folder:
            return show_plan(job, Path(folder), as_json=json)
    _check(words, element=element)
    from ..jobs.timeline.run import run_render

    token = CancelToken()
    bench = options.open_workbench(device=device, threads=threads, commercial=commercial, precision=precision)
    with bench.nets, cancel_on_signals(token), reporter(as_json=json) as emit:
        return run_render(job, bench, emit, token, faces_only=faces_only).exit_code


def _check(words: ApplyWords, *, element: bool) -> None:
    """Refuse what no shot could be rendered with, before the timeline is read."""
    job = dataclasses.replace(words, identity=("any.fpid",)).job()
    if element != ("element" in job.layers):
        raise SettingError("--element and --layers do not go together", hint="--element writes the layer of that name")


def _identity(text: str) -> GivenIdentity:
    from ..jobs.timeline.spec import GivenIdentity

    file, mark, person = text.rpartition("@")
    if not mark or os.path.exists(text):
        return GivenIdentity(Path(text))
    if person.lower().endswith(".fpid"):
        return GivenIdentity(Path(file), "auto", Path(person))
    if not person or person.isdecimal():
        raise SettingError(
            f"--identity {text}: {person!r} is no person",
            expected="a name of the people file, main, all, auto or the .fpid of who is in the plates after the @",
            hint="tracks are assigned in the people file, which the first run writes",
        )
    return GivenIdentity(Path(file), person)


def _relink(text: str) -> tuple[str, str]:
    before, equals, after = text.partition("=")
    if not equals or not before:
        raise SettingError(f"--relink {text}: no FROM=TO", hint="for example --relink /Volumes/RAID=/mnt/raid")
    return before, after


def _rate(text: str) -> Fraction:
    from ..media.timelines.times import exact_rate

    try:
        return exact_rate(float(Fraction(text)))
    except (ValueError, ZeroDivisionError, OverflowError, InputError) as error:
        raise SettingError(f"--rate {text} is no rate", hint="for example 24, 25, 23.976 or 24000/1001") from error


def _offline(text: str) -> Literal["error", "skip"]:
    if text == "error":
        return "error"
    if text == "skip":
        return "skip"
    raise SettingError(f"--missing-media {text} is unknown", expected="error or skip")
