"""`python -m faceplate.models.convert WHEEL_OR_FOLDER --out FOLDER`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ...errors import FaceplateError
from . import convert


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m faceplate.models.convert", description="Convert MediaPipe 0.10.21's face nets to ONNX."
    )
    parser.add_argument("source", type=Path, help="MediaPipe's wheel, or the folder it was unpacked to")
    parser.add_argument("--out", type=Path, required=True, help="folder for the ONNX files")
    options = parser.parse_args(arguments)
    try:
        files = convert(options.source, options.out)
    except FaceplateError as error:
        sys.stderr.write(f"{error}\n{error.hint or ''}\n")
        return error.exit_code
    for model_id, path in files.items():
        sys.stdout.write(f"{model_id}: {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
