"""Who works in a job folder: advisory locks that the kernel drops when their holder dies.

Runs of the same job may share its folder (a farm's chunks, two machines that help each other): whoever comes in leaves
a file `runs/*.run` and holds a lock on it. Runs of different jobs may not: one would take the other's frames for stale.
Works between machines where the file system's locks do (NFS 4, SMB).
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ..errors import OutputBusyError
from ..media.atomic import output_error

RUNS_FOLDER = "runs"
MOVIE_LOCK = "movie.lock"
GATE = "lock"
"""Held for moments: by who comes in, and by who adds to the manifest or writes the report."""
_PAUSE_S = 0.05
_FAR = 1 << 30
"""Byte that is locked where locks bind readers too: beyond all that a file holds."""

if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: IO[str]) -> None:
        file.seek(_FAR)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _try_lock(file: IO[str]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _never() -> None:
    """The patience of a lock that is held for moments only."""


@contextmanager
def file_lock(path: Path, waiting: Callable[[], None] | None = _never) -> Iterator[IO[str]]:
    """Hold a file for the block; it is made where absent.

    Args:
        path: of the file.
        waiting: called again and again while another holds it, and may raise; None does not wait.

    Raises:
        BlockingIOError: another holds it, and `waiting` is None.
        OutputError: it cannot be made.
    """
    try:
        opened = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise output_error(path, error) from error
    with opened as file:
        while True:
            try:
                _try_lock(file)
                break
            except OSError as error:
                if waiting is None:
                    raise BlockingIOError(f"{path} is held") from error
            waiting()
            time.sleep(_PAUSE_S)
        yield file


def is_held(path: Path) -> bool:
    """True while somebody holds a file; False where there is none."""
    if not path.exists():
        return False
    try:
        with file_lock(path, None):
            return False
    except BlockingIOError:
        return True


@contextmanager
def job_lock(folder: Path, purpose: str | None = None) -> Iterator[None]:
    """Be in a job folder for the duration of the block.

    Args:
        folder: of the job.
        purpose: digest of what the run makes; runs of one purpose may be there together, None is always alone.

    Raises:
        OutputBusyError: another process is there, for another purpose.
        OutputError: the folder cannot be written.
    """
    own = _enter(folder, purpose)
    try:
        yield
    finally:
        name = Path(own.name)
        own.close()
        with suppress(OSError):
            name.unlink()


def _enter(folder: Path, purpose: str | None) -> IO[str]:
    runs = folder / RUNS_FOLDER
    try:
        runs.mkdir(exist_ok=True)
        with file_lock(folder / GATE):
            _check_others(folder, runs, purpose)
            path = runs / f"{socket.gethostname()[:40]}-{os.getpid()}-{secrets.token_hex(4)}.run"
            own = path.open("a+", encoding="utf-8")
            _try_lock(own)
            own.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "purpose": purpose}))
            own.flush()
            return own
    except OSError as error:
        raise output_error(runs, error) from error


def _check_others(folder: Path, runs: Path, purpose: str | None) -> None:
    """Refuse where others are at something else; what the dead left is removed."""
    for path in sorted(runs.glob("*.run")):
        if not is_held(path):
            with suppress(OSError):  # gone meanwhile
                path.unlink()
            continue
        found = _told(path)
        if purpose is None or found.get("purpose") != purpose:
            raise OutputBusyError(
                f"another run is writing to {folder.parent}",
                found=f"process {found.get('pid', 'unknown')} on {found.get('host', 'unknown')}, in {path}",
                hint="wait for it, stop it, or choose another output; only runs with the same settings can share one",
            )


def _told(path: Path) -> dict[str, object]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}  # just gone, or not yet written
    return found if isinstance(found, dict) else {}
