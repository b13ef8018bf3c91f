#!/usr/bin/env python3
"""Make the environments in which the Blender tests run: one for each supported bpy, standard library only.

    python3 tests/hosts/blender/environments.py              make what is missing; exit code 1 when one cannot be had
    python3 tests/hosts/blender/environments.py --list       one line a version: where it is, or why it is not there

Each takes about 1 GB. They lie outside the repository, in FACEPLATE_BPY_ENVIRONMENTS or else in the user's cache
folder (`faceplate/bpy/VERSION`), are made when missing and kept for every later run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

MARK = "faceplate-ready"
"""A file that is written last: an environment without it is half-made."""


@dataclass(frozen=True)
class Version:
    """One Blender: its name as in "4.2", the Python that it is built for, what pip is asked for."""

    name: str
    python: str
    packages: tuple[str, ...]


VERSIONS = (
    Version("4.2", "3.11", ("bpy==4.2.23", "numpy==1.26.4")),
    Version("4.5", "3.11", ("bpy==4.5.15", "numpy==1.26.4")),
    Version("5.0", "3.11", ("bpy==5.0.1", "numpy==1.26.4")),
    Version("5.2", "3.13", ("bpy==5.2.3", "numpy>=2.2,<3")),
)


class Missing(Exception):
    """An environment that cannot be had here; the message says why."""


def cache_folder() -> Path:
    """Where the environments lie."""
    if said := os.environ.get("FACEPLATE_BPY_ENVIRONMENTS"):
        return Path(said)
    if sys.platform == "win32":
        home = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        home = Path.home() / "Library" / "Caches"
    else:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "faceplate" / "bpy"


def python_of(folder: Path) -> Path:
    """The interpreter inside an environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def ready(version: Version) -> Path | None:
    """The interpreter of a finished environment, None when it has to be made."""
    folder = cache_folder() / version.name
    mark = folder / MARK
    if mark.is_file() and mark.read_text("utf-8") == "\n".join(version.packages) and python_of(folder).exists():
        return python_of(folder)
    return None


def base_python(wanted: str) -> Path:
    """A Python "3.11" of this machine: this one, one on PATH, or one of pyenv's. `Missing` when there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    name = f"python{wanted}"
    candidates = [sys.executable, shutil.which(name), *sorted(map(str, pyenv.glob(f"{wanted}.*/bin/{name}")))]
    for candidate in filter(None, candidates):
        said = subprocess.run(
            [candidate, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True
        )
        if said.returncode == 0 and said.stdout.strip() == wanted:
            return Path(candidate)
    raise Missing(f"no Python {wanted} on this machine")


def make(version: Version) -> Path:
    """Make one environment beside its place and move it there once it is whole; its interpreter."""
    folder = cache_folder() / version.name
    base = base_python(version.python)
    folder.parent.mkdir(parents=True, exist_ok=True)
    half = folder.with_name(f"{version.name}.{os.getpid()}")
    try:
        for command in (
            [base, "-m", "venv", half],
            [python_of(half), "-m", "pip", "install", "--quiet", "--no-compile", *version.packages],
            [python_of(half), "-c", "import bpy, os; os._exit(0)"],
        ):
            done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
            if done.returncode != 0:
                said = (done.stderr or done.stdout).strip()
                raise Missing(said.splitlines()[-1] if said else f"exit code {done.returncode}")
        (half / MARK).write_text("\n".join(version.packages), "utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        half.rename(folder)
    finally:
        if half.exists():
            shutil.rmtree(half)
    return python_of(folder)


def main() -> int:
    """Make what is missing; 0 when every version is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="make nothing, say what is there")
    parser.add_argument("versions", nargs="*", help="only these (default: all)")
    options = parser.parse_args()
    missing = 0
    for version in VERSIONS:
        if options.versions and version.name not in options.versions:
            continue
        try:
            python = ready(version)
            if python is None and not options.list:
                python = make(version)
            if python is None:
                raise Missing("not made yet")
            print(f"bpy {version.name}: {python}", flush=True)
        except Missing as why:
            missing += 1
            print(f"bpy {version.name}: MISSING, {why}", flush=True)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
