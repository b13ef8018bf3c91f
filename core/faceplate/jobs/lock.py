"""One run at a time on one output: an advisory lock that the kernel drops when its holder dies."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ..errors import OutputBusyError
from ..media.atomic import output_error

if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: IO[str]) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _try_lock(file: IO[str]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def job_lock(folder: Path) -> Iterator[None]:
    """Hold the job folder for the duration of the block.

    Raises:
        OutputBusyError: another process holds it.
        OutputError: the folder cannot be written.
    """
    path = folder / "lock"
    try:
        opened = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise output_error(path, error) from error
    with opened as file:
        try:
            _try_lock(file)
        except OSError as error:
            file.seek(0)
            raise OutputBusyError(
                f"another run is writing to {folder.parent}",
                found=f"process {file.read().strip() or 'unknown'} holds {path}",
                hint="wait for it, stop it, or choose another output",
            ) from error
        file.seek(0)
        file.truncate()
        try:
            file.write(str(os.getpid()))
            file.flush()
        except OSError as error:
            raise output_error(path, error) from error
        yield
