"""One way to read an image, whatever its format, and the check that a shot stays one shot."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FrameMismatchError
from ..frame import StoredImage
from .exr import read_exr
from .formats import check_content, format_of
from .images import read_oiio

_COLOUR_TAGS = (
    *("colorInteropID", "chromaticities", "oiio:ColorSpace"),
    *("acesImageContainerFlag", "dpx:Transfer", "ICCProfile:profile_description"),
)


def read_image(path: str | os.PathLike[str], number: int | None = None) -> StoredImage:
    """Read an EXR, DPX, TIFF, PNG or JPEG as its file holds it.

    Args:
        path: the file; its extension says the format, its content must agree.
        number: frame number to note in the image.

    Raises:
        ImageReadError: absent, empty, truncated, damaged, or another format than its name says.
        UnsupportedImageError: unknown extension, deep, without colour, zero-sized.
    """
    path = Path(path)
    file_format = format_of(path)
    check_content(path, file_format)
    return read_exr(path, number) if file_format == "exr" else read_oiio(path, file_format, number)


def check_matches(first: StoredImage, image: StoredImage) -> None:
    """Check that `image` can belong to the shot that began with `first`; data windows may differ.

    Raises:
        FrameMismatchError: display window, pixel aspect, channels, bit depth or colour tag differ.
    """
    facts = {
        "display window": (first.display_window, image.display_window),
        "pixel aspect": (first.pixel_aspect, image.pixel_aspect),
        "channels": (first.channels, image.channels),
        "bit depth": (first.bit_depth, image.bit_depth),
        **{tag: (_plain(first.metadata.get(tag)), _plain(image.metadata.get(tag))) for tag in _COLOUR_TAGS},
    }
    for name, (expected, found) in facts.items():
        if expected != found:
            raise FrameMismatchError(
                f"{image.path} has another {name} than {first.path}",
                expected=str(expected),
                found=str(found),
                hint="render the frame like the others, or run the parts of the shot as separate jobs",
            )


def _plain(value: Any) -> Any:
    """A value that compares by content."""
    if isinstance(value, np.ndarray):
        return tuple(value.ravel().tolist())
    if isinstance(value, list | tuple):
        return tuple(_plain(item) for item in value)
    return value
