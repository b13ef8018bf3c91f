"""The hash by which a job manifest recognises a file."""

from __future__ import annotations

import hashlib
import os

from ..errors import ImageReadError
from .regular import open_regular


def file_hash(path: str | os.PathLike[str]) -> str:
    """SHA-256 of the content, as 64 hex digits.

    SHA-256, because processors compute it in hardware (faster here than BLAKE2b) and because it can be checked with
    the tools that any house has (`sha256sum`), also in delivery papers.

    Raises:
        ImageReadError: the file cannot be read.
    """
    try:
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ImageReadError(f"cannot read {os.fspath(path)}", found=error.strerror, hint="check the path") from error
