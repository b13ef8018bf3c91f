"""Makes the shipped ONNX nets out of MediaPipe's published wheel, so that anyone can repeat it and get the same bytes.

    python -m faceplate.models.convert mediapipe-0.10.21-....whl --out FOLDER

Needs the `convert` extra (onnx, tflite, flatbuffers); Faceplate itself runs without it, and importing this package
loads none of the three.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...errors import ResourceError

__all__ = ["convert"]


def convert(source: Path, out: Path) -> Mapping[str, Path]:
    """Convert the five nets of MediaPipe 0.10.21.

    Args:
        source: MediaPipe's wheel, or the folder it was unpacked to (the one that holds `mediapipe/`).
        out: folder for the ONNX files, made when absent.

    Returns:
        The written files by model id.

    Raises:
        ResourceError: the `convert` extra is not installed.
        ModelError: the wheel lacks a net, or a net holds something that the converter does not know.
    """
    try:
        from .mediapipe import convert_mediapipe
    except ModuleNotFoundError as error:
        raise ResourceError(
            f"converting nets needs the Python package {error.name}",
            hint='install the converter\'s packages: pip install "faceplate[convert]"',
        ) from error
    return convert_mediapipe(source, out)
