"""The wheels, and what a server requires: needs Faceplate's environment with the tests' packages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = ROOT / "installers" / "constraints.txt"
_EPOCH = "315532800"
"""The earliest time that a zip can hold, as for the plug-ins."""
_CLIENT_PROJECT = """\
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "faceplate-client"
version = "{version}"
description = "Talks to the Faceplate server: frames over ZeroMQ and shared memory, standard library alone"
license = "Apache-2.0"
license-files = ["LICENSE"]
requires-python = ">=3.9"
readme = "README.md"

[tool.hatch.build.targets.wheel]
packages = ["faceplate_client"]
"""
CPU, CUDA = "cpu", "cuda"
_RUNTIME = {CPU: "onnxruntime", CUDA: "onnxruntime-gpu"}
_EXTRAS = {CPU: (), CUDA: ("gpu-status",)}


_OF_TORCH = re.compile(r"nvidia-(?!ml-py)|cuda-|triton")
"""What a build of torch brings along in versions of its own."""


class NotLocked(Exception):
    """A package without a tested version; the message says which."""


def build_wheel(project: Path, out: Path) -> Path:
    """Build the wheel of a project folder; the same sources give the same bytes.

    Raises:
        NotLocked: hatchling is missing or refuses.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        done = subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", name],
            cwd=project,
            capture_output=True,
            text=True,
            env={**os.environ, "SOURCE_DATE_EPOCH": _EPOCH},
        )
        built = list(Path(name).glob("*.whl"))
        if done.returncode or not built:
            absent = "No module named hatchling" in done.stderr
            hint = "pip install hatchling, in the environment where Faceplate is installed" if absent else "see above"
            raise NotLocked(f"hatchling made no wheel: {done.stderr.strip()[-500:]}\n  hint: {hint}")
        return Path(shutil.move(built[0], out / built[0].name))


def client_wheel(out: Path) -> Path:
    """The leaf client alone, for Python 3.9 and later, without requirements."""
    from faceplate_client import __version__

    source = ROOT / "host_plugins"
    with tempfile.TemporaryDirectory() as name:
        project = Path(name)
        ignored = shutil.ignore_patterns("__pycache__", ".*")
        shutil.copytree(source / "faceplate_client", project / "faceplate_client", ignore=ignored)
        shutil.copy(source / "README.md", project)
        shutil.copy(ROOT / "LICENSE", project)
        (project / "pyproject.toml").write_text(_CLIENT_PROJECT.format(version=__version__), "utf-8")
        return build_wheel(project, out)


def faceplate_wheel(out: Path) -> Path:
    """The whole of Faceplate."""
    return build_wheel(ROOT, out)


def tested_versions() -> Mapping[str, str]:
    """The version that the tests ran with, by normalised name."""
    lines = (line.split("==") for line in CONSTRAINTS.read_text("utf-8").splitlines() if "==" in line)
    return {_normal(name): version.strip() for name, version in lines}


def locked(kind: str) -> list[str]:
    """Requirement lines of a server: everything that Faceplate needs, at the tested versions.

    Args:
        kind: "cpu" or "cuda". The two builds of onnxruntime hold the same package, so only one of them is in the list;
            Faceplate itself has then to be installed without its requirements.

    Raises:
        NotLocked: a package has no tested version.
    """
    versions = tested_versions()
    lines = []
    for name in sorted(_needed(_EXTRAS[kind])):
        name = _RUNTIME[kind] if name == "onnxruntime" else name
        if name not in versions:
            raise NotLocked(f"{name} has no version in {CONSTRAINTS.name}: add the one that the tests ran with")
        lines.append(f"{name}=={versions[name]}")
    return lines


def _needed(extras: Iterable[str]) -> set[str]:
    """Normalised names of all that Faceplate requires, and that requires, here."""
    from packaging.requirements import Requirement

    names: set[str] = set()
    pending = [("faceplate", tuple(extras))]
    while pending:
        package, wanted = pending.pop()
        for text in _requires(package):
            requirement = Requirement(text)
            needed = requirement.marker is None or any(
                requirement.marker.evaluate({"extra": extra}) for extra in (*wanted, "")
            )
            name = _normal(requirement.name)
            if needed and name not in names and not _OF_TORCH.match(name):
                names.add(name)
                pending.append((name, tuple(requirement.extras)))
    return names


def _requires(package: str) -> list[str]:
    try:
        return metadata.requires(package) or []
    except metadata.PackageNotFoundError:
        if package == "faceplate":
            raise NotLocked(
                "Faceplate is not installed in this Python\n  hint: installers/bootstrap.py install"
            ) from None
        return []  # an extra that is not installed here; a version of it has to be listed all the same


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
