"""The server's log: a file of mode 0600 that is rotated, and the same lines on standard error."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from faceplate.errors import OutputError

_FORM = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _PrivateFile(RotatingFileHandler):
    """Makes its files for this user alone: they tell names of shots and people."""

    def _open(self) -> TextIOWrapper:
        def opener(path: str, flags: int) -> int:
            return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)

        return open(self.baseFilename, "a", encoding="utf-8", errors="backslashreplace", opener=opener)


@contextmanager
def logging_to(path: Path, *, megabytes: int, files: int) -> Iterator[None]:
    """Log to a file and to standard error while the block runs.

    Raises:
        OutputError: the log cannot be written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handlers: list[logging.Handler] = [
            _PrivateFile(path, maxBytes=megabytes << 20, backupCount=files),
            logging.StreamHandler(sys.stderr),
        ]
    except OSError as error:
        hint = "set log_file in the server's configuration"
        raise OutputError(f"cannot write the log {path}", found=error.strerror, hint=hint) from error
    root = logging.getLogger("faceplate_server")
    before = root.level
    root.setLevel(logging.INFO)
    for handler in handlers:
        handler.setFormatter(logging.Formatter(_FORM))
        root.addHandler(handler)
    try:
        yield
    finally:
        root.setLevel(before)
        for handler in handlers:
            root.removeHandler(handler)
            handler.close()
