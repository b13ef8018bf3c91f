"""`faceplate render-blend` with real Blenders, and its script: baked, rendered, killed, run again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import OpenEXR
import pytest

from faceplate_client.private import FileLock
from faceplate_install import render_blend
from tests.hosts.blender.conftest import FRAMES, Blender, _clean, at_the_ends
from tests.hosts.blender.test_host import read
from tests.hosts.blender.test_live import is_slate
from tests.integration.server.conftest import Running


def words_for(blender: Blender, server: Running, file: Path, *words: object) -> list[str]:
    command = [sys.executable, "-m", "faceplate", "render-blend", file, "--python", blender.python]
    return [str(word) for word in (*command, "--server-folder", server.place.folder, "--json", *words)]


def run(blender: Blender, server: Running, file: Path, *words: object) -> tuple[int, list[dict[str, Any]], str]:
    done = subprocess.run(
        words_for(blender, server, file, *words), capture_output=True, text=True, timeout=300, env=_clean()
    )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    print(events[-1], done.stderr)
    return done.returncode, events, done.stderr


def run_script(
    blender: Blender, server: Running, file: Path, user: Path, *words: object
) -> tuple[int, list[dict[str, Any]], str]:
    """As `blender -b FILE -P render_timeline.py -- WORDS` where the extension is installed and enabled."""
    shutil.copytree(blender.extension, user / "extensions" / "user_default" / "faceplate")
    script = Path(__file__).parents[3] / "host_plugins" / "faceplate_blender" / "render_timeline.py"
    code = (
        "import bpy, runpy, sys\n"
        "assert bpy.ops.preferences.addon_enable(module='bl_ext.user_default.faceplate') == {'FINISHED'}\n"
        f"bpy.ops.wm.open_mainfile(filepath={str(file)!r})\n"
        f"runpy.run_path({str(script)!r}, run_name='__main__')\n"
    )
    given = [str(word) for word in ("--", "--server-folder", server.place.folder, *words)]
    done = subprocess.run(
        [blender.python, "-c", code, *given],
        capture_output=True,
        text=True,
        timeout=300,
        env={**_clean(), "BLENDER_USER_RESOURCES": str(user)},
    )
    lines = [line.partition("faceplate: ") for line in done.stdout.splitlines()]
    return done.returncode, [json.loads(said) for head, mark, said in lines if mark and not head], done.stderr


def same(rendered: Path, result: Path) -> None:
    with OpenEXR.File(str(result)) as opened:
        theirs = np.asarray(opened.channels()["RGB"].pixels)
    ours = read(rendered)
    np.testing.assert_array_equal(ours[..., :3], theirs[..., :3].astype(np.float32))


def test_a_marked_strip_is_made_and_the_timeline_rendered(
    blender: Blender, server: Running, shot: dict[str, Path], tmp_path: Path
) -> None:
    file, out = tmp_path / "é" / "shot 1.blend", tmp_path / "out ö"
    blender.run("timeline", "save", plates=shot["plates"], identity=shot["identity"], file=file)
    before = file.read_bytes()
    code, events, errors = run(blender, server, file, "-o", out)
    assert (code, events[-1]["event"]) == (0, "end"), errors
    scene = events[-1]["scenes"][0]
    assert (scene["done"], scene["kept"], scene["failed"]) == ("1-3", "", {})
    assert [clip["state"] for clip in scene["clips"]["clips"]] == ["done"]
    frames = sorted(out.glob("Scene.*.exr"))
    assert [path.name for path in frames] == [f"Scene.{frame:04d}.exr" for frame in (1, 2, 3)]
    for path, result in zip(frames, sorted(shot["results"].glob("r.*.exr")), strict=True):
        same(path, result)
    assert file.read_bytes() == before
    assert json.loads((out / "render.report.json").read_text("utf-8"))["exit_code"] == 0

    # a second run does nothing; one whose frame is gone renders that; a damaged plate fails its frame alone
    stamps = {path.name: path.stat().st_mtime_ns for path in frames}
    content = frames[1].read_bytes()
    frames[1].unlink()
    code, events, errors = run(blender, server, file, "-o", out)
    scene = events[-1]["scenes"][0]
    assert (code, scene["done"], scene["kept"]) == (0, "2", "1,3"), errors
    same(frames[1], shot["results"] / "r.1002.exr")
    assert frames[1].read_bytes() == content  # no date, no render time
    assert {p.name: p.stat().st_mtime_ns for p in (frames[0], frames[2])} == {
        name: stamp for name, stamp in stamps.items() if name != frames[1].name
    }
    results = list((file.parent / "faceplate").rglob("v*"))
    assert [path.name for path in results if path.is_dir()] == ["v001"]


def test_a_live_group_whose_plate_has_a_hole(
    blender: Blender, server: Running, shot: dict[str, Path], tmp_path: Path
) -> None:
    plates, file, out = tmp_path / "plates", tmp_path / "live.blend", tmp_path / "out" / "f.####.exr"
    shutil.copytree(shot["plates"], plates)
    blender.run("timeline", "save", plates=plates, identity=shot["identity"], file=file, grouped=True)
    # not a damaged one: Blender 5.0 crashes when it reads half an EXR file, Faceplate or not
    hole = sorted(plates.glob("*.exr"))[1]
    hole.rename(tmp_path / hole.name)
    # in a scene on the timeline of another; stopped long before the end, which goes before what failed
    words = words_for(blender, server, file, "-o", tmp_path / "outer", "--scene", "Outer", "--frames", "11-12,100-9999")
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=_clean()) as child:
        assert child.stdout is not None
        told = []
        for line in child.stdout:
            told.append(json.loads(line))
            if (told[-1]["event"], told[-1].get("state")) == ("frame", "failed"):
                child.send_signal(signal.SIGINT)
    assert child.returncode == told[-1]["exit_code"] == 130
    (scene,) = told[-1]["scenes"]
    assert (scene["done"].split(",")[0], list(scene["failed"]), scene["cancelled"]) == ("11", ["12"], True)

    code, events, errors = run_script(blender, server, file, tmp_path / "user", "--output", out)
    scene = events[-1]["scenes"][0]
    assert (code, scene["done"], list(scene["failed"])) == (1, "1,3", ["2"]), errors
    assert hole.name in scene["failed"]["2"]
    assert is_slate(read(out.with_name("f.0002.exr")))
    (tmp_path / hole.name).rename(hole)
    code, events, errors = run(blender, server, file, "-o", out)
    scene = events[-1]["scenes"][0]
    # a file of the sequence is another one: nothing of it is taken for true
    assert (code, scene["done"], scene["failed"]) == (0, "1-3", {}), errors
    assert not is_slate(read(out.with_name("f.0002.exr")))


def test_killed_and_run_again(blender: Blender, server: Running, shot: dict[str, Path], tmp_path: Path) -> None:
    at_the_ends(blender)
    file, out = tmp_path / "shot.blend", tmp_path / "out"
    blender.run("timeline", "save", plates=shot["plates"], identity=shot["identity"], file=file)
    words = words_for(blender, server, file, "-o", out)
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=_clean(), start_new_session=True)
    assert child.stdout is not None
    for line in child.stdout:
        if json.loads(line)["event"] == "frame":
            os.killpg(child.pid, signal.SIGKILL)
            break
    child.wait()
    time.sleep(0.2)
    assert len(list(out.glob("Scene.*.exr"))) < FRAMES
    code, events, errors = run(blender, server, file, "-o", out)
    scene = events[-1]["scenes"][0]
    assert (code, scene["kept"]) == (0, "1"), errors
    for path, result in zip(sorted(out.glob("Scene.*.exr")), sorted(shot["results"].glob("r.*.exr")), strict=True):
        same(path, result)
    assert [path.name for path in out.iterdir() if path.name.startswith(".")] == [".faceplate-render-lock"]


def test_bad_input(blender: Blender, server: Running, shot: dict[str, Path], tmp_path: Path) -> None:
    at_the_ends(blender)
    file = tmp_path / "shot.blend"
    without = tmp_path / "without.blend"
    blender.run("timeline", "save", plates=shot["plates"], identity=shot["identity"], file=file, without=without)
    code, _, errors = run(blender, server, without)
    assert (code, "no identity is chosen" in errors) == (2, True)  # a marked strip is never left out in silence
    for words, named in (
        (("--scene", "Nope"), "Nope"),
        (("--frames", "-2-1"), "-2"),
        (("-o", tmp_path / "one.exr"), "one.exr"),
        (("-o", file / "out"), "out"),  # no folder can be in a file
    ):
        code, events, errors = run(blender, server, file, *words)
        assert (code, events[-1]["event"]) == (2, "error")
        assert named in errors
        assert "hint:" in errors
        assert "Traceback" not in errors
    other = tmp_path / "other"
    other.mkdir()
    with FileLock(other / ".faceplate-render-lock") as lock:
        assert lock.acquire()
        code, _, errors = run(blender, server, file, "-o", other)
    assert (code, "another process renders into" in errors) == (2, True)
    assert run(blender, server, file, "-o", other, "--frames", "1")[0] == 0  # a lock file that nobody holds
    shutil.rmtree(other)
    shutil.rmtree(tmp_path / "faceplate")
    broken = tmp_path / "broken.blend"
    broken.write_bytes(b"BLENDER-nothing")
    code, events, errors = run(blender, server, broken)
    assert (code, events[-1]["type"]) == (2, "BadFile")
    assert not list(tmp_path.glob("**/*.exr"))


def test_what_failed_of_a_strip_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    failed = {str(frame): f"reason {frame}" for frame in range(1001, 1006)}
    clips = [{"clip": "plate", "failed": failed, "error": None}, {"clip": "other", "failed": {}, "error": None}]
    scene = {"pattern": "f.####.exr", "done": "1-5", "kept": "", "failed": {}, "clips": {"clips": clips}}
    render_blend._show({"event": "progress", "step": "place", "clip": "", "done": 0, "total": 1})
    render_blend._show({"event": "end", "scenes": [scene], "report": "render.report.json"})
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "place: 0 of 1",
        "f.####.exr: 1-5 rendered, none kept, failed: none",
        "report: render.report.json",
    ]
    assert said.err.splitlines() == [
        *(f"plate: frame {frame} shows a slate: reason {frame}" for frame in (1001, 1002, 1003)),
        "plate: and 2 frames more, see the report",
    ]
