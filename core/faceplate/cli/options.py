"""Options that several commands share, and the workbench they describe."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator
from fractions import Fraction
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from ..errors import SettingError
from ..job import Assignment, HoldOut, KeyedSettings, MissingPolicy

if TYPE_CHECKING:
    from ..bench.figures import Figures
    from ..jobs.cancel import CancelToken
    from ..jobs.events import Emit
    from ..jobs.spec import ApplyJob, JobOutcome, MovieOutput, Workbench

    Runner = Callable[[ApplyJob, Emit, CancelToken], JobOutcome]
    ServerBench = Callable[[Workbench, Path, str], Iterator[tuple[str, Figures]]]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object a line instead of text.")]
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


def parse_assignment(text: str) -> Assignment:
    """`FILE.fpid`, `FILE.fpid@TRACK`, `FILE.fpid@main` or `FILE.fpid@all`."""
    file, mark, track = text.rpartition("@")
    if not mark or os.path.exists(text):
        return Assignment(Path(text))
    if track == "main":
        return Assignment(Path(file), "main")
    if track == "all":
        return Assignment(Path(file), "all")
    if track.isdecimal():
        return Assignment(Path(file), int(track))
    raise SettingError(
        f"--identity {text}: {track!r} is no track",
        expected="a track number, main or all after the @",
        hint="faceplate analyse PLATE lists the tracks",
    )


def parse_holdout(text: str | None) -> HoldOut | None:
    """`PATTERN` or `PATTERN:LAYER`; a drive letter is no pattern."""
    if text is None:
        return None
    pattern, colon, layer = text.rpartition(":")
    if not colon or len(pattern) < 2 or "/" in layer or "\\" in layer:
        return HoldOut(text)
    return HoldOut(pattern, layer)


def parse_settings(pairs: list[str], file: Path | None) -> KeyedSettings:
    """The settings file, then `KEY=VALUE` words over it.

    Raises:
        SettingError: unreadable file, unknown names, values out of range.
    """
    values: dict[str, Any] = _read_settings(file) if file else {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise SettingError(f"--set {pair}: no value", hint="write --set KEY=VALUE, e.g. --set strength=0.8")
        values[name.strip()] = value
    return KeyedSettings.parse(values)


def _read_settings(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # no Unicode, no TOML, a number of 5,000 digits, [[[[...
        raise SettingError(
            f"{file} cannot be read as settings",
            found=str(error),
            hint='lines such as strength = 0.8, or strength = "1001:0,1010:1" for keys',
        ) from error


def parse_missing(text: str) -> MissingPolicy:
    """error, skip or hold."""
    for policy in get_args(MissingPolicy):
        if text == policy:
            return cast("MissingPolicy", policy)
    raise SettingError(f"--missing {text} is unknown", expected="error, skip or hold")


def parse_movie(codec: str | None, alpha: str, fps: str | None, space: str | None) -> MovieOutput:
    """How a movie is written.

    Raises:
        SettingError: a word that is none of its values.
    """
    from ..jobs.spec import MovieOutput
    from ..media.movies.codecs import codec_named

    if codec is not None:
        codec_named(codec)
    if alpha not in ("straight", "premultiplied"):
        raise SettingError(f"--alpha {alpha} is unknown", expected="straight or premultiplied")
    rate = None
    if fps is not None:
        try:
            rate = Fraction(fps)
        except (ValueError, ZeroDivisionError) as error:
            raise SettingError(f"--fps {fps} is no rate", hint="for example 24, 25 or 24000/1001") from error
        if not 0 < rate <= 1000:
            raise SettingError(f"--fps {fps} is no rate", expected="more than 0, at most 1000 frames a second")
        rate = _exact(rate)
    return MovieOutput(codec, "premultiplied" if alpha == "premultiplied" else "straight", rate, space)


def _exact(rate: Fraction) -> Fraction:
    """23.976, 29.97 and 59.94 mean the rates of NTSC."""
    for whole in (24, 30, 48, 60, 120):
        if abs(rate - Fraction(whole * 1000, 1001)) < Fraction(1, 1000):
            return Fraction(whole * 1000, 1001)
    return rate
