"""`nuke -t batch.py` with the built plug-in in Python 3.9, and a farm that has no Faceplate; the loaders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nuke
import numpy as np
import OpenEXR
import pytest

from faceplate_client.frame_maths import Span
from faceplate_client.result_folder import file_of
from faceplate_install.archive import nuke_files
from tests.contract.hosts.bench import files
from tests.contract.wire.test_pythons import find_python
from tests.hosts.nuke.conftest import FAKE, NukeStage
from tests.integration.server.conftest import Running

TERMINAL = FAKE / "terminal.py"
ALL = Span(1001, 1008)


@pytest.fixture(scope="session")
def plug_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plug-in's folder as it is installed, with the client inside."""
    folder = tmp_path_factory.mktemp("nuke é") / "faceplate"
    for name, data in nuke_files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def call(python: str, words: list[object], **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NUKE", "OCIO"))}
    return subprocess.run(
        [python, "-sB", str(TERMINAL), *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**clean, "PYTHONIOENCODING": "utf-8", **environment},
        check=False,
    )


def batch(plug_in: Path, server: Running | None, *words: object) -> tuple[int, list[dict[str, Any]], str]:
    """`nuke -t batch.py ...` in Python 3.9; the exit code, the events, the errors."""
    python = find_python("3.9")
    if python is None:
        pytest.skip("Python 3.9 is not on this machine")
    place = ("--server-folder", server.place.folder, "--no-start") if server is not None else ()
    entry = plug_in / "faceplate_nuke" / "batch.py"
    done = call(python, ["-t", entry, words[0], "--json", *place, *words[1:]], NUKE_PATH=str(plug_in))
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


@pytest.fixture
def shot(original: str, identity: Path, stage: NukeStage, tmp_path: Path) -> Path:
    """A saved script: a plate, a group, a Write behind it."""
    read = stage.plate(original, ALL)
    group = stage.group(read, ALL, identity=str(identity))
    nuke.create(
        "Write",
        group,
        file=str(tmp_path / "comp.%04d.exr"),
        file_type="exr",
        channels="all",
        raw=True,
        datatype="32 bit float",
    )
    path = tmp_path / "shot é.nk"
    nuke.scriptSaveAs(str(path))
    return path


def test_a_script_is_processed_saved_and_rendered_by_a_farm(
    plug_in: Path, server: Running, shot: Path, reference: str, tmp_path: Path
) -> None:
    before, saved = shot.read_bytes(), tmp_path / "farm.nk"
    code, events, errors = batch(plug_in, server, shot, "--save", saved)
    assert code == 0, errors
    assert shot.read_bytes() == before, "the script itself is not touched"
    assert [event["event"] for event in events if event["event"] != "progress"] == ["group", "end"]
    assert {event["step"] for event in events if event["event"] == "progress"} >= {"swap"}
    report = json.loads((tmp_path / "faceplate" / "report.json").read_text("utf-8"))
    assert (report["format"], report["exit_code"], report["saved"]) == ("faceplate nuke report", 0, str(saved))
    (clip,) = report["clips"]
    assert (clip["state"], clip["placed"], clip["frames"]) == ("done", True, "1001-1008")
    assert any("OCIO aces_1.2" in note for note in report["notes"])
    assert files(clip["pattern"], ALL) == files(reference, ALL)
    # the farm: no plug-in on its path, no server for it, and the comp has the result
    done = call(sys.executable, ["-x", saved, "1007-1009"], HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    comp = str(tmp_path / "comp.####.exr")
    for frame in (1007, 1008):
        np.testing.assert_array_equal(red(file_of(comp, frame)), red(file_of(clip["pattern"], frame)))
    assert not red(file_of(comp, 1009)).any(), "where the result ends, the plate's own black"
    # a file of the result that is gone stops the render: it never falls back to the plate
    file_of(clip["pattern"], 1002).unlink()
    done = call(sys.executable, ["-x", saved, "1002-1002"])
    assert done.returncode != 0
    assert "No such file" in done.stderr
    # again: only what is missing is made
    stamp = file_of(clip["pattern"], 1001).stat().st_mtime_ns
    code, events, errors = batch(plug_in, server, saved, "--save", saved)
    assert code == 0, errors
    assert file_of(clip["pattern"], 1001).stat().st_mtime_ns == stamp
    assert files(clip["pattern"], ALL) == files(reference, ALL)


def red(path: Path) -> Any:
    with OpenEXR.File(str(path), separate_channels=True) as file:
        return np.asarray(file.channels()["R"].pixels).astype(np.float32)


def test_a_frame_range_at_the_end_is_not_lost(plug_in: Path, server: Running, shot: Path) -> None:
    """Nuke takes a range at the end of the command line for its own."""
    code, events, errors = batch(plug_in, server, shot, "--group", "Faceplate1", "--frames", "1001-1001")
    assert code == 0, errors
    assert events[-2]["frames"] == "1001"


def test_exit_codes(plug_in: Path, server: Running, shot: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.nk").write_text("NoSuchNode {\n name x\n}\n")
    (tmp_path / "empty.nk").write_text("NoOp {\n name x\n}\n")
    for words, code, named in (
        ((tmp_path / "none.nk",), 2, "none.nk"),
        ((tmp_path / "broken.nk",), 2, "Unknown command"),
        ((tmp_path / "empty.nk",), 2, "no Faceplate group"),
        ((shot, "--group", "Nope"), 2, "Nope"),
        ((shot, "--frames", "1001,1003"), 2, "without holes"),
        ((shot, "--bad"), 2, "--bad"),
        ((shot, "--frames", "ten"), 2, "names no frames"),
        ((shot, "--server-command", "faceplate serve"), 2, "no JSON"),
        ((shot, "--server-command", "{}"), 2, "JSON list"),
        ((shot, "--server-folder", tmp_path / "nowhere"), 3, "faceplate serve"),
    ):
        found, events, errors = batch(plug_in, server, *words)
        assert (found, events[-1]["event"] if events else "error") == (code, "error"), errors
        assert named in errors
        assert "hint:" in errors
    # what was made is reported where the script cannot be saved
    lost = tmp_path / "none" / "f.nk"
    code, events, errors = batch(plug_in, server, shot, "--frames", "1001-1001", "--save", lost)
    report = json.loads((tmp_path / "faceplate" / "report.json").read_text("utf-8"))
    assert (code, report["saved"], report["clips"][0]["state"]) == (2, None, "done")
    assert "cannot save" in errors
    text = shot.read_text("utf-8").replace("person.fpid", "nobody.fpid")
    shot.write_text(text, "utf-8")
    code, events, errors = batch(plug_in, server, shot)
    assert (code, events[-2]["state"]) == (1, "failed")
    assert "nobody.fpid" in errors


# Loaders


def test_the_loaders_are_short_and_load(plug_in: Path) -> None:
    for name in ("init.py", "menu.py"):
        assert len((plug_in / name).read_text("utf-8").splitlines()) < 30
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import nuke\n"
        "for name in ('init.py', 'menu.py'):\n"
        "    path = sys.argv[2] + '/' + name\n"
        "    exec(compile(open(path).read(), path, 'exec'), {'__file__': path})\n"
        "print(sorted(nuke.APP.menus), [n for n in sys.modules if n.startswith('faceplate_client')])"
    )
    for version in ("3.9", "3.11", "3.13"):
        python = find_python(version)
        if python is None:
            continue
        done = subprocess.run(
            [python, "-ISBc", code, str(FAKE), str(plug_in)], capture_output=True, text=True, check=False
        )
        assert done.stdout.strip() == "['Nodes', 'Nuke'] []", done.stderr + done.stdout


@pytest.mark.parametrize("fault", ["no package", "a broken package", "no menus"])
def test_a_fault_never_keeps_nuke_from_starting(
    fault: str, plug_in: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("init.py", "menu.py"):
        (tmp_path / name).write_bytes((plug_in / name).read_bytes())
    for name in [name for name in sys.modules if name.split(".")[0] == "faceplate_nuke"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(FAKE)])
    if fault == "a broken package":
        (tmp_path / "faceplate_nuke").mkdir()
        (tmp_path / "faceplate_nuke" / "__init__.py").write_text("raise MemoryError('no room')\n")
    if fault == "no menus":
        monkeypatch.setattr(sys, "path", [str(plug_in), str(FAKE)])
        nuke.reset(gui=False)
    for name in ("init.py", "menu.py"):
        code = compile((tmp_path / name).read_text("utf-8"), str(tmp_path / name), "exec")
        exec(code, {"__file__": str(tmp_path / name)})
    said = capsys.readouterr().out
    assert "Faceplate could not be loaded" in said
    assert "faceplate install nuke" in said
    for name in [name for name in sys.modules if name.split(".")[0] == "faceplate_nuke"]:
        del sys.modules[name]


def test_the_package_needs_nothing_but_the_standard_library(plug_in: Path) -> None:
    python = find_python("3.9")
    if python is None:
        pytest.skip("Python 3.9 is not on this machine")
    names = [path.stem for path in sorted((plug_in / "faceplate_nuke").glob("*.py")) if path.stem != "batch"]
    code = (
        "import importlib, sys; sys.path[:0] = sys.argv[1:3]\n"
        "for name in sys.argv[3:]: importlib.import_module('faceplate_nuke.' + name)\n"
        "print([n for n in ('numpy', 'zmq', 'faceplate', 'faceplate_client') if n in sys.modules])"
    )
    done = subprocess.run(
        [python, "-ISBc", code, str(FAKE), str(plug_in), *names], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
