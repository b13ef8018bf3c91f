"""The zip: valid, the same bytes each time, complete, and gone without a trace when it is removed."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

from faceplate_client import __version__
from tests.hosts.blender.conftest import ROOT, Blender


def test_the_same_sources_give_the_same_bytes(extension_zip: Path, tmp_path: Path) -> None:
    again = subprocess.run(
        [sys.executable, ROOT / "installers" / "build.py", "blender", "-o", tmp_path], capture_output=True, text=True
    )
    assert Path(again.stdout.strip()).read_bytes() == extension_zip.read_bytes()


def test_it_is_complete_and_says_what_it_is(extension_zip: Path) -> None:
    archive = zipfile.ZipFile(extension_zip)
    names = archive.namelist()
    manifest = tomllib.loads(archive.read("blender_manifest.toml").decode())
    assert manifest["version"] == __version__
    assert manifest["blender_version_min"] == "4.2.0"
    assert not any(name.endswith((".whl", ".pyc")) or "__pycache__" in name for name in names)
    for name in names:
        text = archive.read(name).decode()
        if name.endswith(".py"):
            assert "from faceplate_client" not in text
        if name.endswith(".py") and not name.startswith("faceplate_client/"):
            assert text.startswith("# SPDX-License-Identifier: GPL-3.0-or-later\n")
    assert archive.read("LICENSE").decode().lstrip().startswith("GNU GENERAL PUBLIC LICENSE")
    assert archive.read("LICENSE-faceplate_client") == (ROOT / "LICENSE").read_bytes()
    client = {path.relative_to(ROOT / "host_plugins").as_posix() for path in _sources("faceplate_client")}
    own = {path.name for path in (ROOT / "host_plugins/faceplate_blender").glob("*.py")}
    assert (client | own) <= set(names)


def _sources(package: str) -> list[Path]:
    return list((ROOT / "host_plugins" / package).rglob("*.py"))


def test_blender_finds_it_valid(blender: Blender, extension_zip: Path) -> None:
    tool = next(blender.python.parents[1].glob("lib/python3*/site-packages/bpy/*/scripts/addons_core/bl_pkg/cli"))
    done = subprocess.run(
        [blender.python, tool / "blender_ext.py", "validate", extension_zip], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout.upper()


def test_it_is_installed_used_and_removed(blender: Blender, extension_zip: Path) -> None:
    user = blender.folder / "life"
    user.mkdir()
    told = blender.run(
        "extension",
        "life",
        enable=False,
        environment={"BLENDER_USER_RESOURCES": str(user)},
        archive=extension_zip,
        folder=user,
    )
    assert told["enabled"]
    assert told["error"] == [False, True] or told["error"] == [True, True]
    assert told["files"] > 20
    assert told["left"] == {
        "addon": False,
        "files": [],
        "handlers": [],
        "classes": [],
        "properties": False,
        "modules": [],
    }
