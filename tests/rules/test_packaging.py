"""The wheel is complete and the version is one."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import faceplate

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"},
    )
    (built,) = out.glob("*.whl")
    return built


def tracked_package_files() -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", "core/faceplate", "server", "host_plugins"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    inside = set()
    for name in listed.stdout.splitlines():
        top, _, rest = name.partition("/")
        if rest.startswith("faceplate") and top in ("core", "server", "host_plugins") and (ROOT / name).exists():
            inside.add(rest)
    return inside


def test_wheel_holds_every_tracked_file(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    missing = tracked_package_files() - names
    assert missing == set()
    assert "faceplate/py.typed" in names
    assert "faceplate_install/hosts.toml" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_every_package_on_disk_is_in_the_wheel_list() -> None:
    listed = set(PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
    on_disk = {
        str(path.parent.relative_to(ROOT))
        for top in ("core", "server", "host_plugins")
        for path in (ROOT / top).glob("faceplate*/__init__.py")
    }
    assert listed == on_disk


def test_one_version_number(wheel: Path) -> None:
    stated = (ROOT / "host_plugins/faceplate_client/_version.py").read_text("utf-8")
    assert f'__version__ = "{faceplate.__version__}"' in stated
    assert wheel.name.startswith(f"faceplate-{faceplate.__version__}-")


def test_import_is_light() -> None:
    code = (
        "import sys, faceplate, faceplate.errors, faceplate.frame, faceplate.job; "
        "print([m for m in ('torch', 'onnxruntime', 'cv2', 'OpenEXR') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == "[]"
