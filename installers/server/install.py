#!/usr/bin/env python3
"""Install this bundle: the Faceplate server and its command line. Standard library only, Python 3.11 or later.

    python3 install.py                  an environment in ./venv, for a CPU
    python3 install.py --cuda           for an NVIDIA GPU
    python3 install.py --service        and among this user's services: faceplate install server

Everything is installed at the versions that Faceplate was tested with. A torch that is in the environment already is
kept when it is of that version, whichever its build.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # beside this file in a bundle, above it in a clone

from bootstrap import fail, leave_one_runtime, make_environment, pip, program_of, python_of, why_failed  # noqa: E402

_CHECK = "import onnxruntime as o, sys; sys.exit('CUDAExecutionProvider' not in o.get_available_providers())"


def damaged(folder: Path) -> str | None:
    """The first file of the bundle that is not as it was built."""
    sums = folder / "SHA256SUMS"
    if not sums.is_file():
        return sums.name
    for line in sums.read_text("utf-8").splitlines():
        digest, _, name = line.partition("  ")
        path = folder / name
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            return name
    return None


def install(python: Path, bundle: Path, *, cuda: bool) -> None:
    """Put the locked packages and then Faceplate without requirements into an environment.

    Faceplate requires onnxruntime, and onnxruntime-gpu, which holds the same package, does not count as it: so that pip
    does not put one over the other, requirements come from the list alone.
    """
    (wheel,) = bundle.glob("faceplate-*.whl")
    leave_one_runtime(python, "onnxruntime-gpu" if cuda else "onnxruntime")
    pip(python, "install", "--quiet", "-r", str(bundle / f"requirements-{'cuda' if cuda else 'cpu'}.txt"))
    pip(python, "install", "--quiet", "--no-deps", "--force-reinstall", str(wheel))


def main() -> int:
    """Parse the command line and install; 0 when it is done, 2 when it cannot be, 3 without the GPU asked for."""
    if sys.version_info < (3, 11):  # noqa: UP036 - this file is what an older Python meets first
        return fail(
            f"Python {sys.version.split()[0]} is too old", "run this with Python 3.11 or later, e.g. python3.11"
        )
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuda", action="store_true", help="the builds for an NVIDIA GPU")
    parser.add_argument("--service", action="store_true", help="install the server among this user's services")
    parser.add_argument("--venv", type=Path, default=HERE / "venv", help="where the environment is (default: ./venv)")
    options = parser.parse_args()
    if name := damaged(HERE):
        return fail(f"{name} of this bundle is damaged or missing", "unpack the bundle anew")
    folder = options.venv.resolve()
    python = python_of(folder)
    try:
        make_environment(folder)
        install(python, HERE, cuda=options.cuda)
    except (subprocess.CalledProcessError, OSError) as error:
        return fail(*why_failed(error))
    if options.cuda and subprocess.run([python, "-c", _CHECK]).returncode:
        fail("onnxruntime has no CUDA provider here", "check the driver, or install without --cuda")
        return 3
    program = program_of(python)
    print(f"Faceplate is installed: {program}")
    return subprocess.run([program, "install", "server"]).returncode if options.service else 0


if __name__ == "__main__":
    sys.exit(main())
