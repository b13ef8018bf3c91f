"""`faceplate render-blend FILE.blend`: a timeline baked and rendered by Blender, without interface."""

from __future__ import annotations

import importlib.util
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from faceplate.errors import InputError, ResourceError

from .archive import package_folder

PACKAGE = "faceplate_blender"
SCRIPT = "render_timeline.py"
PREFIX = "faceplate: "
"""What the script's own lines begin with, among Blender's."""
LAST_WORDS = 30
_REASONS = 3
"""Frames of a strip that are told with their reason."""

Frames = Annotated[Optional[str], typer.Option(help="For example 1-100,120. Default: the scene's range.")]
Program = Optional[Path]


def render_blend(
    file: Annotated[Path, typer.Argument(help="The .blend file; it is never saved.")],
    scene: Annotated[Optional[list[str]], typer.Option(help="Scene; may be repeated. Default: the file's.")] = None,  # noqa: UP045
    frames: Frames = None,
    out: Annotated[Optional[str], typer.Option("-o", "--out", help="out.####.exr, or a folder.")] = None,  # noqa: UP045
    python: Annotated[Program, typer.Option(help="A Python that has bpy.")] = None,
    blender: Annotated[Program, typer.Option(help="Blender's program. Default: the one on PATH.")] = None,
    results: Annotated[Program, typer.Option(help="Folder of Faceplate's results. Default: beside the file.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Render frames too that are done.")] = False,
    bake_only: Annotated[bool, typer.Option("--bake-only", help="Make the results, render no timeline.")] = False,
    report: Annotated[Program, typer.Option(help="JSON file. Default: render.report.json beside the frames.")] = None,
    server_folder: Annotated[Program, typer.Option(help="Private folder of the server.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> int:
    """Make a .blend file's Faceplate results and render its timeline to EXR; a second run does what is missing.

    Exit code 1 when a frame failed; those are listed, and show a slate.
    """
    if not file.is_file():
        raise InputError(f"{file} is not there", hint="give the path of a .blend file")
    command = [*_program(file, python, blender)]
    given = (("--frames", frames), ("--output", out), ("--results", results), ("--report", report))
    for name, value in (*given, ("--server-folder", server_folder)):
        if value is not None:
            # in one word: frames and scenes may begin with "-"
            command.append(f"{name}={value if name == '--frames' else Path(value).absolute()}")
    command += [f"--scene={one}" for one in scene or ()]
    command += [name for name, value in (("--again", again), ("--bake-only", bake_only)) if value]
    serve = [sys.executable, "-m", "faceplate", "serve"]
    if server_folder is not None:
        serve += ["--folder", str(server_folder.absolute())]
    command += ["--server-command", json.dumps(serve)]
    return _run(command, as_json=as_json)


def _program(file: Path, python: Path | None, blender: Path | None) -> list[str]:
    """Who runs the script, and how the file is given to it."""
    if python is not None and blender is not None:
        raise InputError("--python and --blender exclude each other", hint="give one of them")
    script = str(package_folder(PACKAGE) / SCRIPT)
    found = blender or (shutil.which("blender") if python is None else None)
    if found is not None:
        if shutil.which(str(found)) is None:
            raise InputError(f"{found} is no program", hint="give Blender's program as --blender")
        return [str(found), "-b", str(file.absolute()), "-P", script, "--"]
    if python is None and importlib.util.find_spec("bpy") is None:
        raise ResourceError(
            "no Blender is there to render with",
            expected="blender on PATH, or bpy in this Python",
            hint="give --blender PROGRAM, or --python PYTHON with bpy installed",
        )
    program = str(python or sys.executable)
    if shutil.which(program) is None:
        raise InputError(f"{program} is no program", hint="give a Python that has bpy as --python")
    return [program, script, "--file", str(file.absolute())]


def _run(command: list[str], *, as_json: bool) -> int:
    """Run it and show what it tells; its exit code."""
    ended = False
    words: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as child:
        assert child.stdout is not None
        with _interrupts_go_to(child):
            for line in child.stdout:
                if not line.startswith(PREFIX):
                    words = [*words[-LAST_WORDS:], line.rstrip()]
                    continue
                event = json.loads(line[len(PREFIX) :])
                ended = ended or event["event"] in ("end", "error")
                if as_json:
                    print(json.dumps(event), flush=True)
                if not as_json or event["event"] == "error":
                    _show(event)
        code = child.wait()
    if not ended:
        raise ResourceError(
            f"Blender ended with exit code {code} and did not say how far it was",
            found="\n".join(words[-10:]) or "no words",
            hint="frames that are done are kept: run it again to go on",
        )
    return code


@contextmanager
def _interrupts_go_to(child: subprocess.Popen[str]) -> Iterator[None]:
    """Ctrl-C reaches both at once from a terminal: the child finishes its frame, and this waits for it."""

    def pass_on(number: int, _frame: Any) -> None:
        if child.poll() is None:
            child.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _show(event: dict[str, Any]) -> None:
    kind = event["event"]
    if kind == "progress" and event["total"]:
        what = f"{event['step']} {event['clip']}".rstrip()
        print(f"{what}: {event['done']} of {event['total']}", flush=True)
    elif kind == "frame":
        error = f": {event['error']}" if event["error"] else f" in {event['seconds']} s"
        print(f"frame {event['frame']} ({event['number']} of {event['of']}) {event['state']}{error}", flush=True)
    elif kind == "error":
        print(f"error: {event['message']}\n  hint: {event['hint']}", file=sys.stderr)
    elif kind == "end":
        for scene in event["scenes"]:
            failed = ", ".join(scene["failed"]) or "none"
            done, kept = scene["done"] or "none", scene["kept"] or "none"
            print(f"{scene['pattern']}: {done} rendered, {kept} kept, failed: {failed}")
            for clip in (scene["clips"] or {"clips": []})["clips"]:
                _show_clip(clip)
        print(f"report: {event['report']}")


def _show_clip(clip: dict[str, Any]) -> None:
    """What failed of a strip's result: rendered all the same, it is in the timeline's frames as a slate."""
    for frame, why in list(clip["failed"].items())[:_REASONS]:
        print(f"{clip['clip']}: frame {frame} shows a slate: {why}", file=sys.stderr)
    if len(clip["failed"]) > _REASONS:
        print(f"{clip['clip']}: and {len(clip['failed']) - _REASONS} frames more, see the report", file=sys.stderr)
    if clip["error"]:
        print(f"{clip['clip']}: {clip['error']['message']}\n  hint: {clip['error']['hint']}", file=sys.stderr)
