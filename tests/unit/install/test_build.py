"""What is handed on: the same bytes each time, whole, and with requirements that were tested."""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.pythons import find_python

ROOT = Path(__file__).parents[3]
INSTALLERS = ROOT / "installers"


def run(program: str, *words: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *map(str, words)], cwd=cwd, capture_output=True, text=True, check=False)


def script(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def wheels() -> ModuleType:
    return script(INSTALLERS / "wheels.py")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    done = run(sys.executable, INSTALLERS / "build.py", "all", "-o", out)
    assert done.returncode == 0, done.stderr
    assert {Path(line) for line in done.stdout.splitlines()} == set(out.iterdir())
    return out


def test_the_same_bytes_again(built: Path, tmp_path: Path) -> None:
    assert run(sys.executable, INSTALLERS / "build.py", "all", "-o", tmp_path).returncode == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        path.name: path.read_bytes() for path in built.iterdir()
    }


def test_checksums_are_those_of_the_files(built: Path) -> None:
    lines = dict(line.split("  ")[::-1] for line in (built / "SHA256SUMS").read_text().splitlines())
    files = {path.name: path for path in built.iterdir() if path.name != "SHA256SUMS"}
    assert lines == {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}


def test_the_client_is_whole_and_needs_nothing(built: Path) -> None:
    (wheel,) = built.glob("faceplate_client-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "host_plugins" / "faceplate_client"
    assert {path.relative_to(source.parent).as_posix() for path in source.rglob("*.py")} <= names
    (about,) = (name for name in names if name.endswith("METADATA"))
    text = zipfile.ZipFile(wheel).read(about).decode()
    assert "Requires-Dist" not in text
    assert "Requires-Python: >=3.9" in text
    python = find_python("3.9")
    if python is None:
        pytest.skip("no Python 3.9 on this machine")
    code = f"import sys; sys.path.insert(0, {str(wheel)!r}); import faceplate_client.client as c; print(c.__file__)"
    assert run(python, "-ISc", code).stdout.startswith(str(wheel))


@pytest.fixture
def bundle(built: Path, tmp_path: Path) -> Path:
    (path,) = built.glob("faceplate-server-*.zip")
    zipfile.ZipFile(path).extractall(tmp_path)
    (folder,) = tmp_path.iterdir()
    return folder


def test_the_bundle_locks_all_that_the_server_needs(bundle: Path, wheels: ModuleType) -> None:
    kinds = {kind: (bundle / f"requirements-{kind}.txt").read_text().split() for kind in ("cpu", "cuda")}
    names = {kind: {line.split("==")[0] for line in lines} for kind, lines in kinds.items()}
    assert names["cpu"] - names["cuda"] == {"onnxruntime"}
    assert names["cuda"] - names["cpu"] == {"onnxruntime-gpu", "nvidia-ml-py"}
    assert {"torch", "pyzmq", "openexr", "markupsafe"} <= names["cpu"]  # the last is what jinja2 needs
    assert not names["cpu"] & {"pytest", "mypy", "onnxruntime-gpu"}
    tested = wheels.tested_versions()
    assert all(
        line == f"{name}=={tested[name]}"
        for lines in kinds.values()
        for line in lines
        for name in [line.split("==")[0]]
    )


def test_a_requirement_without_a_tested_version_is_refused(
    wheels: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    less = tmp_path / "constraints.txt"
    lines = (INSTALLERS / "constraints.txt").read_text().splitlines(keepends=True)
    less.write_text("".join(line for line in lines if not line.startswith("MarkupSafe")))
    monkeypatch.setattr(wheels, "CONSTRAINTS", less)
    with pytest.raises(wheels.NotLocked, match="markupsafe has no version in constraints"):
        wheels.locked("cpu")


def test_what_building_needs_is_said(wheels: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def absent(_: str) -> list[str]:
        raise wheels.metadata.PackageNotFoundError

    with monkeypatch.context() as patch:
        patch.setattr(wheels.metadata, "requires", absent)
        with pytest.raises(wheels.NotLocked, match="not installed in this Python"):
            wheels.locked("cpu")  # an empty list would install nothing
    monkeypatch.setattr(wheels.sys, "executable", "/usr/bin/false")
    with pytest.raises(wheels.NotLocked, match="made no wheel"):
        wheels.client_wheel(tmp_path)


@pytest.mark.parametrize("what", ["missing", "changed", "no sums"])
def test_a_damaged_bundle_installs_nothing(bundle: Path, what: str) -> None:
    (wheel,) = bundle.glob("*.whl")
    if what == "no sums":
        wheel = bundle / "SHA256SUMS"
    wheel.write_bytes(wheel.read_bytes()[:-1]) if what == "changed" else wheel.unlink()
    done = run(sys.executable, "install.py", cwd=bundle)
    assert done.returncode == 2
    assert f"{wheel.name} of this bundle is damaged or missing" in done.stderr
    assert not (bundle / "venv").exists()


def test_an_environment_that_cannot_be_made_says_why(bundle: Path, tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("mine")
    for program, words in ((bundle / "install.py", ()), (INSTALLERS / "bootstrap.py", ("install",))):
        done = run(sys.executable, program, *words, "--venv", in_the_way / "venv")
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
        assert str(in_the_way) in done.stderr
        assert "hint: make room and permission there" in done.stderr
    assert in_the_way.read_text() == "mine"


class Pip:
    """Stands for an environment's Python, of whose pip it keeps what was asked."""

    def __init__(self, folder: Path, *present: str) -> None:
        self.asked = folder / "asked"
        self.asked.write_text("")
        self.program = folder / "python"
        known = "|".join(present) or "none"
        self.program.write_text(
            f'#!/bin/sh\nshift 2\necho "$@" >> "{self.asked}"\n'
            f'if [ "$1" = show ]; then case "$3" in {known}) exit 0;; *) exit 1;; esac; fi\n'
        )
        self.program.chmod(0o755)

    @property
    def changes(self) -> list[str]:
        lines = (line.replace("--quiet ", "") for line in self.asked.read_text().splitlines())
        return [line for line in lines if not line.startswith("show")]


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script stands for Python")
@pytest.mark.parametrize("cuda", [True, False])
def test_one_build_of_onnxruntime_is_left(tmp_path: Path, cuda: bool) -> None:
    """Two wheels hold one package: who comes last wins, and who goes takes the other's files along."""
    sys.path.insert(0, str(INSTALLERS))
    install = script(INSTALLERS / "server" / "install.py")
    wanted, other = ("onnxruntime-gpu", "onnxruntime") if cuda else ("onnxruntime", "onnxruntime-gpu")
    (tmp_path / "faceplate-1.whl").touch()
    last = [
        f"install -r {tmp_path}/requirements-{'cuda' if cuda else 'cpu'}.txt",
        f"install --no-deps --force-reinstall {tmp_path}/faceplate-1.whl",
    ]
    for present, first in (((), []), ((wanted,), []), ((other,), [f"uninstall --yes {other} {wanted}"])):
        pip = Pip(tmp_path, *present)
        install.install(pip.program, tmp_path, cuda=cuda)
        assert pip.changes == first + last


@pytest.mark.parametrize(("host", "inside"), [("nuke", "faceplate/"), ("resolve", "Faceplate/")])
def test_a_plugin_brings_its_readme(built: Path, host: str, inside: str) -> None:
    (path,) = built.glob(f"faceplate-{host}-*.zip")
    archive = zipfile.ZipFile(path)
    assert archive.read(f"{inside}README.md") == (INSTALLERS / host / "README.md").read_bytes()
    assert f"{inside}TESTING.md" in archive.namelist()
    assert any(name.endswith("faceplate_client/client.py") for name in archive.namelist())
