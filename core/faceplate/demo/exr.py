"""Half-float EXR as a camera department would hand it over: overscan, timecode, ACEScg tags, lossless zip."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import OpenEXR
from numpy.typing import NDArray

from ..errors import OutputError
from ..frame import Box
from .portrait import AP1_CHROMATICITIES


def _window(box: Box) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    # EXR windows name their last pixel, ours the one after it.
    return np.array([box.x0, box.y0], np.int32), np.array([box.x1 - 1, box.y1 - 1], np.int32)


def write_half_exr(
    path: Path,
    pixels: NDArray[np.float16],
    data_window: Box,
    display_window: Box,
    *,
    pixel_aspect: float = 1.0,
    attributes: dict[str, Any] | None = None,
) -> None:
    """Write one ACEScg frame, zip-compressed, tagged with AP1 chromaticities and colorInteropID lin_ap1_scene.

    Args:
        path: the file.
        pixels: (H, W, 3) or (H, W, 4) float16, scene-linear ACEScg, filling `data_window`.
        data_window: what the pixels cover.
        display_window: the raster of the picture.
        pixel_aspect: width / height of one pixel.
        attributes: more header attributes, by name, as the OpenEXR binding takes them.

    Raises:
        OutputError: the file cannot be written.
    """
    header: dict[str, Any] = {
        "compression": OpenEXR.ZIP_COMPRESSION,
        "type": OpenEXR.scanlineimage,
        "dataWindow": _window(data_window),
        "displayWindow": _window(display_window),
        "pixelAspectRatio": float(pixel_aspect),
        "chromaticities": AP1_CHROMATICITIES,
        "colorInteropID": "lin_ap1_scene",
        **(attributes or {}),
    }
    channels = {"RGBA"[: pixels.shape[2]]: np.ascontiguousarray(pixels)}
    try:
        with OpenEXR.File(header, channels) as exr:
            exr.write(str(path))
    except (RuntimeError, OSError, ValueError) as error:
        raise OutputError(
            f"cannot write {path}", found=str(error), hint="check that the folder exists, is writable and has space"
        ) from error


def time_code(frame: int, fps: int) -> Any:
    """Non-drop timecode of a frame number counted from 00:00:00:00, as the EXR attribute `timeCode`."""
    seconds, rest = divmod(frame, fps)
    code = OpenEXR.TimeCode()
    code.hours = seconds // 3600 % 24
    code.minutes = seconds // 60 % 60
    code.seconds = seconds % 60
    code.frame = rest
    return code
