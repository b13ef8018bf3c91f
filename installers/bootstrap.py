#!/usr/bin/env python3
"""Set up Faceplate in an environment of its own and run one thing: standard library only, Python 3.11 or later.

    python3 installers/bootstrap.py demo      install, then run the main job on the demonstration plate
    python3 installers/bootstrap.py test      install what the tests need, then run them
    python3 installers/bootstrap.py install   install only

The environment is `.venv` in the repository (--venv for another place). It is made where the system's Python is
externally managed too, and a torch that is already in it is kept when it fits.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = ROOT / "installers" / "constraints.txt"


def fail(message: str, hint: str) -> int:
    """Print an error with its next step; the exit code for bad input."""
    print(f"error: {message}\n  hint: {hint}", file=sys.stderr)
    return 2


def python_of(folder: Path) -> Path:
    """The interpreter inside an environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def program_of(python: Path) -> Path:
    """The faceplate program of an environment."""
    return python.with_name("faceplate.exe" if os.name == "nt" else "faceplate")


def why_failed(error: subprocess.CalledProcessError | OSError) -> tuple[str, str]:
    """An installation that failed, and the next step."""
    if isinstance(error, OSError):
        reason = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return f"the environment cannot be made: {reason}", "make room and permission there, or give another --venv"
    if "ensurepip" in map(str, error.cmd):
        return "this Python cannot make environments", "on Debian and Ubuntu: apt install python3-venv, then again"
    return "the installation failed", "read pip's message above; with the network back, run this again"


def make_environment(folder: Path) -> None:
    """Make the environment with pip in it; a finished one is kept, a half-made one is made again."""
    python = python_of(folder)
    if python.exists() and subprocess.run([python, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        return
    venv.EnvBuilder(with_pip=True, clear=folder.exists()).create(folder)


def pip(python: Path, *arguments: str) -> None:
    """Run pip in the environment; CalledProcessError when it fails."""
    subprocess.run(
        [str(python), "-m", "pip", *arguments], check=True, env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    )


def installed(folder: Path, *, tests: bool, gpu: bool) -> tuple[Path, str]:
    """The file that says what an environment holds, and what it should say."""
    wanted = [(ROOT / "pyproject.toml").read_bytes(), CONSTRAINTS.read_bytes(), str((ROOT, tests, gpu)).encode()]
    return folder / "faceplate-installed", hashlib.sha256(b"\0".join(wanted)).hexdigest()


def leave_one_runtime(python: Path, wanted: str) -> None:
    """Take the other build of onnxruntime away: two wheels hold one package, and where both were, neither is whole."""
    (other,) = {"onnxruntime", "onnxruntime-gpu"} - {wanted}
    if subprocess.run([str(python), "-m", "pip", "show", "--quiet", other], capture_output=True).returncode == 0:
        pip(python, "uninstall", "--quiet", "--yes", other, wanted)


def install(python: Path, *, tests: bool, gpu: bool) -> None:
    """Install Faceplate in editable form from this clone."""
    extra = "dev" if tests else "timelines"
    pip(python, "install", "--quiet", "-c", str(CONSTRAINTS), "-e", f"{ROOT}[{extra}]")
    if tests:
        # By itself: it asks for the OpenCV with windows, which has the same files as ours without.
        pip(python, "install", "--quiet", "--no-deps", "-c", str(CONSTRAINTS), "insightface")
    if gpu:
        leave_one_runtime(python, "onnxruntime-gpu")
        pip(python, "install", "--quiet", "-c", str(CONSTRAINTS), "onnxruntime-gpu")


def main() -> int:
    """Parse the command line, set up, run; the exit code of what was run."""
    if sys.version_info < (3, 11):  # noqa: UP036 - this file is what an older Python meets first
        return fail(
            f"Python {sys.version.split()[0]} is too old", "run this with Python 3.11 or later, e.g. python3.11"
        )
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("demo", "test", "install"))
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv", help="where the environment is (default: .venv)")
    parser.add_argument("--gpu", action="store_true", help="install onnxruntime-gpu in place of onnxruntime")
    options, rest = parser.parse_known_args()
    folder = options.venv.resolve()
    try:
        make_environment(folder)
        tests = options.what == "test"
        said, should_say = installed(folder, tests=tests, gpu=options.gpu)
        if not said.exists() or said.read_text("utf-8") != should_say:  # a finished one needs no network
            print("installing; this takes a few minutes the first time", flush=True)
            install(python_of(folder), tests=tests, gpu=options.gpu)
            said.write_text(should_say, "utf-8")
    except (subprocess.CalledProcessError, OSError) as error:
        return fail(*why_failed(error))
    python = str(python_of(folder))
    if options.what == "install":
        print(f"Faceplate is installed: {program_of(python_of(folder))}")
        return 0
    command = [python, "-m", "pytest"] if options.what == "test" else [python, "-m", "faceplate", "demo"]
    return subprocess.run([*command, *rest], cwd=ROOT if options.what == "test" else None).returncode


if __name__ == "__main__":
    sys.exit(main())
