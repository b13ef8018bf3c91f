"""The image formats that Faceplate reads, by extension and by the first bytes of the file."""

from __future__ import annotations

import os
from pathlib import Path
from types import MappingProxyType

from ..errors import ImageReadError, UnsupportedImageError
from .regular import open_regular

FORMATS = MappingProxyType(
    {".exr": "exr", ".dpx": "dpx", ".tif": "tiff", ".tiff": "tiff", ".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg"}
)

MOVIES = frozenset((".mov", ".mp4", ".m4v", ".mkv", ".mxf", ".avi", ".webm"))
"""Extensions of movies: one file for all frames."""

_SIGNATURES = (
    (b"\x76\x2f\x31\x01", "exr"),
    (b"SDPX", "dpx"),
    (b"XPDS", "dpx"),
    (b"II*\0", "tiff"),
    (b"MM\0*", "tiff"),
    (b"II+\0", "tiff"),
    (b"MM\0+", "tiff"),
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
)


def format_of(path: str | os.PathLike[str]) -> str:
    """The format that the extension stands for: "exr", "dpx", "tiff", "png", "jpeg".

    Raises:
        UnsupportedImageError: another extension.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise UnsupportedImageError(
            f"{os.fspath(path)} has an extension that Faceplate does not know",
            expected=", ".join(FORMATS),
            found=suffix or "none",
            hint="convert the pictures to EXR first",
        )
    return FORMATS[suffix]


def is_movie(path: str | os.PathLike[str]) -> bool:
    """True when the extension is a movie's."""
    return Path(path).suffix.lower() in MOVIES


def check_content(path: Path, expected: str) -> None:
    """Raise ImageReadError unless the file is there and begins like the format that its name says."""
    try:
        with open_regular(path) as file:
            head = file.read(8)
    except OSError as error:
        raise ImageReadError(f"cannot read {path}", found=error.strerror, hint="check the path") from error
    inside = next((name for signature, name in _SIGNATURES if head.startswith(signature)), None)
    if inside == expected:
        return
    raise ImageReadError(
        f"{path} is not what its name says",
        expected=expected.upper(),
        found=inside.upper() if inside else "an empty file" if not head else "no known image",
        hint=f"rename it to {path.with_suffix('.' + inside)}" if inside else "render or copy this frame again",
    )
