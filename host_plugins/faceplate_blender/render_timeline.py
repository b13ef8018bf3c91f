# SPDX-License-Identifier: GPL-3.0-or-later
"""Bake and render a timeline headless: a plain script for Blender, and what `faceplate render-blend` runs.

    blender -b FILE.blend -P render_timeline.py -- [--scene NAME]... [--frames 1-100] [--output OUT] [--again] ...
    python render_timeline.py --file FILE.blend ...            a Python that has bpy

Exit code: 0 done, 1 frames or clips failed, 2 bad input, 3 no server, 130 stopped. A line "faceplate: {...}" of JSON
on standard output for each step; the report is a JSON file.
"""

from __future__ import annotations

import argparse
import atexit
import importlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

PREFIX = "faceplate: "


def package() -> str:
    """The name under which this folder can be imported here; makes it so, and switches the add-on on."""
    import bpy

    here = Path(__file__).resolve().parent
    if here.name != "faceplate_blender":  # an installed extension: extensions/REPOSITORY/faceplate
        name = f"bl_ext.{here.parent.name}.{here.name}"
        if name not in bpy.context.preferences.addons:
            bpy.ops.preferences.addon_enable(module=name)
        return name
    sys.path.insert(0, str(here.parent))
    if hasattr(bpy.types.Scene, "faceplate"):
        owner = type(bpy.context.scene.faceplate).__module__.rpartition(".")[0]
        if owner == here.name:
            return owner
        # the installed extension: its handlers would tell us nothing of frames that fail. Off for this process alone
        bpy.ops.preferences.addon_disable(module=owner)
    importlib.import_module(here.name).register()
    return here.name


def arguments() -> argparse.Namespace:
    """What stands behind "--" where Blender runs this, else all of it."""
    given = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else sys.argv[1:]
    parser = argparse.ArgumentParser(prog="render_timeline.py", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--file", default="", help="the .blend file, where Blender has not opened it")
    parser.add_argument("--scene", action="append", default=[], help="scene; may be repeated; default: the file's")
    parser.add_argument("--frames", default="", help="for example 1-100,120; default: the scene's range")
    parser.add_argument("--output", default="", help="out.####.exr or a folder")
    parser.add_argument("--results", default="", help="folder of Faceplate's own results")
    parser.add_argument("--again", action="store_true", help="render frames too that are done")
    parser.add_argument("--bake-only", action="store_true", help="make the results, render nothing")
    parser.add_argument("--report", default="", help="JSON file; default: render.report.json beside the frames")
    parser.add_argument("--server-folder", default="", help="private folder of the server")
    parser.add_argument("--server-name", default="default", help="name of the server")
    parser.add_argument("--server-command", default="", help="JSON list: how a server is started")
    return parser.parse_args(given)


def tell(event: dict[str, Any]) -> None:
    """One line for whoever runs this; flushed, so that it comes at once."""
    sys.stdout.write(PREFIX + json.dumps(event) + "\n")
    sys.stdout.flush()


def work(asked: argparse.Namespace) -> int:
    """Do it; the exit code."""
    import bpy

    name = package()

    def ours(module: str) -> Any:
        return importlib.import_module(f"{name}.{module}")

    def client(module: str) -> Any:
        inside = name if name != "faceplate_blender" else None
        return importlib.import_module(
            f"{inside}.faceplate_client.{module}" if inside else f"faceplate_client.{module}"
        )

    if asked.file and Path(bpy.data.filepath or ".").resolve() != Path(asked.file).resolve():
        try:
            bpy.ops.wm.open_mainfile(filepath=str(Path(asked.file).resolve()))
        except RuntimeError as error:
            return failed("BadFile", str(error).strip(), "save the file in this version of Blender or an older one", 2)
    task, errors, batch = client("task"), client("errors"), ours("batch")
    stops: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda got, _frame: stops.append(got))
    try:
        place = client("connection").Place(
            Path(asked.server_folder) if asked.server_folder else None, asked.server_name
        )
        command = json.loads(asked.server_command) if asked.server_command else client("launch").COMMAND
        servers = task.Servers(place=place, start=True, command=command)
        ours("state").STATE.servers, ours("state").STATE.results = servers, asked.results
        order = batch.Order(
            scenes=tuple(asked.scene),
            frames=asked.frames,
            output=asked.output,
            folder=asked.results,
            again=asked.again,
            bake_only=asked.bake_only,
        )
        effects = ours("compositor_ui").EFFECTS
        # the exit code is ours to give, not that of the handlers' own end
        atexit.unregister(ours("compositor_ui").HANDLERS.end)
        reports = batch.Batch(order, servers, effects, tell, lambda: bool(stops)).run()
        codes = [report.exit_code for report in reports]
        code = 130 if 130 in codes else max(codes, default=0)
        report = Path(asked.report) if asked.report else Path(reports[0].pattern).parent / "render.report.json"
        told = {
            "format": "faceplate render report",
            "version": 1,
            "blender": bpy.app.version_string,
            "file": bpy.data.filepath,
            "exit_code": code,
            "scenes": [one.to_json() for one in reports],
        }
        client("result_folder").make_folder(report.parent)
        client("job_record").write_whole(report, json.dumps(told, indent=1, ensure_ascii=False).encode("utf-8"))
    except errors.ClientError as error:
        code = 3 if isinstance(error, (errors.ConnectionFailed, errors.TimedOut)) else 2
        return failed(type(error).__name__, str(error), error.hint, code)
    tell({"event": "end", "exit_code": code, "report": str(report), "scenes": told["scenes"]})
    return code


def failed(kind: str, message: str, hint: str, code: int) -> int:
    """Say why nothing was done."""
    tell({"event": "error", "type": kind, "message": message, "hint": hint, "exit_code": code})
    sys.stderr.write(f"error: {message}\n  hint: {hint}\n")
    return code


def main() -> None:
    """Do it and leave: Blender's own end would give another exit code, and 4.5 hangs with functions in handlers."""
    code = 70
    try:
        code = work(arguments())
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 2
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
