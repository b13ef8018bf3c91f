"""`faceplate install`: every file is printed, everything can be taken back, nothing of others is touched."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from faceplate_install import archive, blender
from faceplate_install.record import RECORD
from tests.integration.conftest import Cli, cli  # noqa: F401 - a fixture


def files_in(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def test_installed_printed_and_taken_back(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    folder = tmp_path / "Ü ser" / "user_default"
    done = cli("install", "blender", "--path", folder)
    assert done.code == 0
    there = files_in(folder)
    assert {Path(line.removeprefix("wrote ")) for line in done.out.splitlines() if line.startswith("wrote ")} == there
    assert folder / "faceplate" / "blender_manifest.toml" in there
    assert folder / "faceplate" / "faceplate_client" / "client.py" in there
    # Python compiles what Blender imports
    compiled = folder / "faceplate" / "__pycache__" / "host.cpython-311.pyc"
    compiled.parent.mkdir()
    compiled.write_bytes(b"x")
    gone = cli("install", "blender", "--path", folder, "--uninstall")
    assert gone.code == 0
    said = {Path(line.removeprefix("removed ")) for line in gone.out.splitlines()}
    assert said == there
    assert list(folder.iterdir()) == []


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
    record = tmp_path / "faceplate" / RECORD
    document = json.loads(record.read_text())
    old = tmp_path / "faceplate" / "old.py"
    old.write_bytes(b"")
    document["files"]["old.py"] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    record.write_text(json.dumps(document))
    assert cli("install", "blender", "--path", tmp_path).code == 0
    assert not old.exists()  # a file of the earlier version only


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
    assert "did not put there" in refused.err
    assert cli("install", "blender", "--path", tmp_path, "--uninstall").code == 2
    assert files_in(tmp_path) == {other}


@pytest.mark.parametrize("text", ["{", '{"files": {"../x": "0"}}', '{"files": {"/x": "0"}}', '{"files": [1]}'])
def test_a_damaged_record_removes_nothing(cli: Cli, tmp_path: Path, text: str) -> None:  # noqa: F811
    cli("install", "blender", "--path", tmp_path)
    (tmp_path / "faceplate" / RECORD).write_text(text)
    before = files_in(tmp_path)
    refused = cli("install", "blender", "--path", tmp_path, "--uninstall")
    assert refused.code == 2
    assert "damaged" in refused.err
    assert files_in(tmp_path) == before


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


@pytest.mark.parametrize(
    ("system", "environment", "folder"),
    [
        ("linux", {}, ".config/blender"),
        ("linux", {"XDG_CONFIG_HOME": "/home/a/conf"}, "conf/blender"),
        ("darwin", {}, "Library/Application Support/Blender"),
        ("win32", {}, "AppData/Roaming/Blender Foundation/Blender"),
    ],
)
def test_blenders_folders(tmp_path: Path, system: str, environment: dict[str, str], folder: str) -> None:
    environment = {name: value.replace("/home/a", str(tmp_path)) for name, value in environment.items()}
    for version in ("2.93", "3.6", "4.1", "4.2", "4.10", "5.2", "scripts"):
        (tmp_path / folder / version).mkdir(parents=True)
    found = blender.repositories(system, environment, tmp_path)
    assert found == [tmp_path / folder / version / "extensions" / "user_default" for version in ("4.10", "4.2", "5.2")]


def test_blenders_own_variables_count(tmp_path: Path) -> None:
    said = {"BLENDER_USER_RESOURCES": "/studio"}
    assert blender.repositories("linux", said, tmp_path) == [Path("/studio/extensions/user_default")]
    said["BLENDER_USER_EXTENSIONS"] = "/ext"
    assert blender.repositories("linux", said, tmp_path) == [Path("/ext/user_default")]


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
