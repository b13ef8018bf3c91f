"""The Pythons of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path


def version_of(python: str) -> str | None:
    """What a program says that it is, "3.9"; None where it does not run."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-ISc", code], capture_output=True, text=True, timeout=20, check=False)
    except OSError:
        return None
    # pyenv's shims are on PATH for every version that it knows, and fail where it is not the chosen one
    return done.stdout.strip() if done.returncode == 0 else None


@cache
def pyenv_versions() -> Path | None:
    """The folder of the Pythons that pyenv knows, if there is one."""
    root = os.environ.get("PYENV_ROOT")
    if not root and shutil.which("pyenv"):
        root = subprocess.run(["pyenv", "root"], capture_output=True, text=True, check=False).stdout.strip()
    return Path(root) / "versions" if root else None


@cache
def find_python(version: str) -> str | None:
    """A program that runs this version, on PATH or among pyenv's."""
    candidates = [shutil.which(f"python{version}")]
    versions = pyenv_versions()
    if versions is not None:
        candidates += [str(path / "bin" / "python") for path in sorted(versions.glob(f"{version}.*"))]
    return next((one for one in candidates if one is not None and version_of(one) == version), None)
