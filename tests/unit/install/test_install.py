"""`faceplate install`: every file is printed, everything can be taken back, nothing of others is touched."""

from __future__ import annotations

import configparser
import json
import os
import plistlib
import shlex
import subprocess
import sys
import sysconfig
import types
import zipfile
from pathlib import Path

import pytest

from faceplate.errors import InputError
from faceplate_install import archive
from faceplate_install.places import Surroundings, load_hosts
from faceplate_install.putting import install_tree, remove_tree
from faceplate_install.record import RECORD, Tree
from faceplate_install.trees import server_tree
from tests.integration.conftest import Cli, cli  # noqa: F401 - a fixture


def said(out: str, word: str) -> set[Path]:
    return {Path(line.removeprefix(f"{word} ")) for line in out.splitlines() if line.startswith(f"{word} ")}


def files_in(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def test_installed_printed_and_taken_back(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    folder = tmp_path / "Ü ser" / "user_default"
    done = cli("install", "blender", "--path", folder)
    assert done.code == 0
    there = files_in(folder)
    assert said(done.out, "wrote") == there
    assert folder / "faceplate" / "blender_manifest.toml" in there
    assert folder / "faceplate" / "faceplate_client" / "client.py" in there
    # Python compiles what Blender imports
    compiled = folder / "faceplate" / "__pycache__" / "host.cpython-311.pyc"
    compiled.parent.mkdir()
    compiled.write_bytes(b"x")
    gone = cli("install", "blender", "--path", folder, "--uninstall")
    assert gone.code == 0
    assert said(gone.out, "removed") == there
    assert not folder.exists(), "it was made by the installation"


def test_what_is_installed_is_what_the_zip_holds(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    cli("install", "blender", "--path", tmp_path / "a")
    holds = zipfile.ZipFile(archive.blender_zip(tmp_path))
    written = {
        path.relative_to(tmp_path / "a" / "faceplate").as_posix(): path.read_bytes()
        for path in files_in(tmp_path / "a")
        if path.name != RECORD
    }
    assert written == {name: holds.read(name) for name in holds.namelist()}


def test_again_takes_the_place_of_the_earlier_one(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    cli("install", "blender", "--path", tmp_path)
    kept = tmp_path / "faceplate" / RECORD
    document = json.loads(kept.read_text())
    old = tmp_path / "faceplate" / "old" / "old.py"
    old.parent.mkdir()
    old.write_bytes(b"")
    document["files"]["faceplate/old/old.py"] = ["e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"]
    document["folders"].append("faceplate/old")
    kept.write_text(json.dumps(document))
    assert cli("install", "blender", "--path", tmp_path).code == 0
    assert not old.parent.exists()  # a file of the earlier version only


def test_changed_files_are_kept(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    cli("install", "blender", "--path", tmp_path)
    changed, own = tmp_path / "faceplate" / "shim.py", tmp_path / "faceplate" / "notes.txt"
    changed.write_text("mine")
    own.write_text("mine too")
    again = cli("install", "blender", "--path", tmp_path)
    assert again.code == 2
    assert "shim.py was changed" in again.err
    assert changed.read_text() == "mine"
    gone = cli("install", "blender", "--path", tmp_path, "--uninstall")
    assert gone.code == 0
    assert files_in(tmp_path) == {changed, own}
    assert f"left {changed}" in gone.out


def test_a_plugin_of_another_origin_is_not_touched(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    other = tmp_path / "faceplate" / "__init__.py"
    other.parent.mkdir()
    other.write_text("by hand")
    refused = cli("install", "blender", "--path", tmp_path)
    assert refused.code == 2
    assert "did not put it there" in refused.err
    assert cli("install", "blender", "--path", tmp_path, "--uninstall").code == 2
    assert files_in(tmp_path) == {other}


@pytest.mark.parametrize(
    "text", ["{", '{"files": {"../x": ["0"]}, "seeds": {}, "lines": []}', '{"files": {}, "seeds": {}, "lines": ["/x"]}']
)
def test_a_damaged_record_removes_nothing(cli: Cli, tmp_path: Path, text: str) -> None:  # noqa: F811
    cli("install", "blender", "--path", tmp_path)
    (tmp_path / "faceplate" / RECORD).write_text(text)
    before = files_in(tmp_path)
    refused = cli("install", "blender", "--path", tmp_path, "--uninstall")
    assert refused.code == 2
    assert "damaged" in refused.err
    assert files_in(tmp_path) == before


def test_a_dry_run_says_the_same_and_changes_nothing(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    would = cli("install", "blender", "--path", tmp_path, "--dry-run")
    assert files_in(tmp_path) == set()
    done = cli("install", "blender", "--path", tmp_path)
    assert said(would.out, "would write") == said(done.out, "wrote")
    there = files_in(tmp_path)
    would = cli("install", "blender", "--path", tmp_path, "--uninstall", "--dry-run")
    assert said(would.out, "would remove") == there == files_in(tmp_path)


def test_what_is_the_users_to_edit_is_theirs(tmp_path: Path) -> None:
    tree = Tree("own", {"own/a": b"a"}, seeds={"own/server.toml": b"x = 1"})
    install_tree(tree, tmp_path)
    (tmp_path / "own" / "server.toml").write_text("x = 2")
    install_tree(tree, tmp_path)
    assert (tmp_path / "own" / "server.toml").read_text() == "x = 2"
    removed = remove_tree(tmp_path, "own")
    assert removed.kept == (tmp_path / "own" / "server.toml",)
    assert tmp_path / "own" / "a" in removed.files
    (tmp_path / "own" / "server.toml").unlink()
    (tmp_path / "own").rmdir()
    install_tree(tree, tmp_path)
    remove_tree(tmp_path, "own")
    assert list(tmp_path.iterdir()) == []


def test_unknown_host_and_no_blender(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("APPDATA", str(tmp_path))
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for name in ("BLENDER_USER_RESOURCES", "BLENDER_USER_EXTENSIONS"):
        monkeypatch.delenv(name, raising=False)
    assert "no plug-in for maya" in cli("install", "maya").err
    none = cli("install", "blender")
    assert none.code == 2
    assert "start Blender once" in none.err
    both = cli("install", "blender", "--user", "--path", tmp_path)
    assert both.code == 2
    assert "two places" in both.err


@pytest.mark.parametrize(
    ("system", "environment", "folder"),
    [
        ("linux", {}, ".config/blender"),
        ("linux", {"XDG_CONFIG_HOME": "HOME/conf"}, "conf/blender"),
        ("linux", {"XDG_CONFIG_HOME": ""}, ".config/blender"),
        ("darwin", {"XDG_CONFIG_HOME": "HOME/conf"}, "Library/Application Support/Blender"),
        ("win32", {}, "AppData/Roaming/Blender Foundation/Blender"),
        ("win32", {"APPDATA": "HOME/Roam"}, "Roam/Blender Foundation/Blender"),
    ],
)
def test_blenders_folders(tmp_path: Path, system: str, environment: dict[str, str], folder: str) -> None:
    environment = {name: value.replace("HOME", str(tmp_path)) for name, value in environment.items()}
    for version in ("2.93", "3.6", "4.1", "4.2", "4.10", "5.2", "scripts"):
        (tmp_path / folder / version).mkdir(parents=True)
    found = load_hosts()["blender"].places(Surroundings(system, environment, tmp_path))
    assert found == [tmp_path / folder / version / "extensions" / "user_default" for version in ("4.2", "4.10", "5.2")]


def test_blenders_own_variables_count(tmp_path: Path) -> None:
    said = {"BLENDER_USER_RESOURCES": "/studio"}
    blender = load_hosts()["blender"]
    assert blender.places(Surroundings("linux", said, tmp_path)) == [Path("/studio/extensions/user_default")]
    said["BLENDER_USER_EXTENSIONS"] = "/ext"
    assert blender.places(Surroundings("linux", said, tmp_path)) == [Path("/ext/user_default")]


@pytest.mark.parametrize(
    ("host", "system", "environment", "place"),
    [
        ("nuke", "linux", {}, "/home/a/.nuke"),
        ("nuke", "darwin", {"HOME": "/x"}, "/home/a/.nuke"),
        ("nuke", "win32", {"HOME": "/x", "USERPROFILE": "/y"}, "/x/.nuke"),
        ("nuke", "win32", {"USERPROFILE": "/y"}, "/y/.nuke"),
        ("resolve", "linux", {}, "/home/a/.local/share/DaVinciResolve/Fusion"),
        (
            "resolve",
            "darwin",
            {},
            "/home/a/Library/Application Support/Blackmagic Design/DaVinci Resolve/Fusion",
        ),
        ("resolve", "win32", {"APPDATA": "/r"}, "/r/Blackmagic Design/DaVinci Resolve/Support/Fusion"),
        ("server", "linux", {"XDG_CONFIG_HOME": "/c"}, "/c"),
        ("server", "darwin", {}, "/home/a/Library"),
        ("server", "win32", {}, "/home/a/AppData/Roaming"),
    ],
)
def test_places_on_every_system(host: str, system: str, environment: dict[str, str], place: str) -> None:
    assert load_hosts()[host].places(Surroundings(system, environment, Path("/home/a"))) == [Path(place)]


def test_a_system_nobody_knows() -> None:
    with pytest.raises(InputError, match="no place is known for Nuke on sunos"):
        load_hosts()["nuke"].places(Surroundings("sunos", {}, Path("/home/a")))


def test_nuke_finds_its_folder_by_a_line_in_init(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    mine = tmp_path / "init.py"
    mine.write_text("import nuke\n\nnuke.pluginAddPath('./gizmos')\n")
    done = cli("install", "nuke", "--path", tmp_path)
    assert done.code == 0
    added: list[str] = []
    told = types.ModuleType("nuke")
    told.pluginAddPath = added.append  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "nuke", told)
        exec(compile(mine.read_text(), "init.py", "exec"), {})
    assert added == ["./gizmos", "./faceplate"]
    told = json.loads((tmp_path / "faceplate" / "installed.json").read_text("utf-8"))
    assert Path(told["program"]).is_file()
    for name in ("init.py", "menu.py", "faceplate_nuke/host.py", "faceplate_nuke/faceplate_client/wire/__init__.py"):
        assert (tmp_path / "faceplate" / name).is_file(), name
    assert cli("install", "nuke", "--path", tmp_path, "--uninstall").code == 0
    assert files_in(tmp_path) == {mine}
    assert mine.read_text() == "import nuke\n\nnuke.pluginAddPath('./gizmos')\n"


def test_resolve_lists_scripts_that_find_their_package(
    cli: Cli,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(sys, "platform", "linux")
    assert cli("install", "resolve").code == 0
    fusion = tmp_path / ".local" / "share" / "DaVinciResolve" / "Fusion"
    listed = sorted(path.name for path in (fusion / "Scripts" / "Utility").iterdir())
    assert listed == [f"Faceplate {name}.py" for name in ("Apply", "Batch", "Cancel", "Refresh", "Remove")]
    # Resolve sets no __file__; the script looks where the installer writes
    cut = 'open(sys.argv[1]).read().partition("    from faceplate_resolve")[0]'
    words = f"import sys; exec({cut}); print(FOUND)"
    shown = subprocess.run(
        [sys.executable, "-c", words, str(fusion / "Scripts" / "Utility" / "Faceplate Apply.py")],
        env={**os.environ, "HOME": str(tmp_path), "FACEPLATE_RESOLVE": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.strip() == str(fusion / "Faceplate")
    assert (fusion / "Faceplate" / "faceplate_resolve" / "faceplate_client" / "client.py").is_file()
    assert cli("install", "resolve", "--uninstall").code == 0
    assert files_in(tmp_path) == set()


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
def test_the_server_is_started_by_this_environment(
    tmp_path: Path, system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "faceplate.exe").touch()
    (tmp_path / "faceplate").touch()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    around = Surroundings(system, {}, tmp_path)
    host = load_hosts()["server"]
    place = tmp_path / ("50% & <more> Ü" if system == "win32" else '50% & <more> Ü $HOME \\ "x"')
    tree = server_tree(host, place, around)
    (text,) = (data.decode() for data in tree.files.values())
    (seed,) = tree.seeds
    program = str(Path(sys.executable).with_name("faceplate.exe" if system == "win32" else "faceplate"))
    if system == "linux":
        unit = configparser.ConfigParser(interpolation=None)
        unit.optionxform = str  # type: ignore[assignment, method-assign]
        unit.read_string(text)
        command = shlex.split(unit["Service"]["ExecStart"].replace("%%", "%").replace("$$", "$"))
    elif system == "darwin":
        command = plistlib.loads(text.encode())["ProgramArguments"]
    else:
        page, start = text.splitlines()[1:]
        assert page == "chcp 65001 >nul", "cmd.exe would read another code page"
        command = shlex.split(start.partition("/min ")[2].replace("%%", "%").replace("\\", "\\\\"), posix=True)
    assert command == [program, "serve", "--config", str(place / seed)]
    install_tree(tree, place)
    from faceplate_server.config import read_config

    assert read_config(place / seed).idle_s == 0
    (tmp_path / "faceplate").unlink()
    (tmp_path / "faceplate.exe").unlink()
    monkeypatch.setattr(sysconfig, "get_path", lambda *_: str(tmp_path / "nowhere"))
    with pytest.raises(archive.NotBuildable, match="which starts the server"):
        server_tree(host, place, around)


def test_an_import_that_cannot_travel_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "faceplate_other"
    (package / "part").mkdir(parents=True)
    (package / "__init__.py").write_text("from faceplate_client import wire\nfrom faceplate_client.host import Clip\n")
    (package / "part" / "deep.py").write_text("def f():\n    from faceplate_client.host import Clip\n")
    monkeypatch.syspath_prepend(tmp_path)
    files = archive.plugin_files("faceplate_other")
    assert files["__init__.py"] == b"from .faceplate_client import wire\nfrom .faceplate_client.host import Clip\n"
    assert files["part/deep.py"] == b"def f():\n    from ..faceplate_client.host import Clip\n"
    (package / "bad.py").write_text("import faceplate_client.wire\n")
    with pytest.raises(archive.NotBuildable, match=r"bad\.py"):
        archive.plugin_files("faceplate_other")
