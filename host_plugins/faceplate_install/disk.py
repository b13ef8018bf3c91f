"""Files and folders of an installation on disk: whole or not at all, one installer at a time."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from faceplate.errors import OutputBusyError, OutputError
from faceplate_client.private import same_file, try_lock

LOCK = ".faceplate-install.lock"
_HALF = ".faceplate-half"
_PATIENCE_S = 10.0
_PAUSE_S = 0.05
_HINTS = {
    errno.ENOSPC: "make room, then the same command again",
    errno.EDQUOT: "make room, then the same command again",
    errno.EROFS: "this file system cannot be written: give another place with --path",
    errno.EACCES: "get permission to write there, or give another place with --path",
    errno.EPERM: "get permission to write there, or give another place with --path",
}


def half_of(path: Path) -> Path:
    """Where a file is written before it takes its name."""
    return path.with_name(f".{path.name}{_HALF}")


def write_half(path: Path, data: bytes) -> None:
    """Write a file beside its place, with the mode and owner of what is there; its folder is made.

    Raises:
        OSError: it cannot be written; nothing of it is left.
    """
    half = half_of(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        half.unlink(missing_ok=True)
        with half.open("xb") as file:  # no link that lies there is followed
            file.write(data)
        if path.exists():
            shutil.copymode(path, half)
            _keep_owner(path, half)
    except BaseException:
        with contextlib.suppress(OSError):
            half.unlink(missing_ok=True)
        raise


def _keep_owner(path: Path, half: Path) -> None:
    """Root may write for others, whose file it stays; anybody else cannot give files away."""
    if sys.platform == "win32" or os.geteuid() != 0:
        return
    was = path.stat()
    os.chown(half, was.st_uid, was.st_gid)
    shutil.copymode(path, half)  # a change of owner takes bits away


def take_place(path: Path) -> None:
    """What `write_half` wrote becomes the file."""
    half_of(path).replace(path)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file as a whole or not at all."""
    write_half(path, data)
    take_place(path)


def remove_file(path: Path) -> None:
    """Remove a file and what Python compiled of it."""
    path.unlink(missing_ok=True)
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        compiled.unlink(missing_ok=True)


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove those of these folders that are empty, and Python's caches in them."""
    wanted = set(folders)
    caches = {folder / "__pycache__" for folder in wanted}
    for folder in sorted(wanted | caches, key=lambda path: len(path.parts), reverse=True):
        with contextlib.suppress(OSError):  # not empty: something in it is not ours
            folder.rmdir()


def made_folders(place: Path, names: Iterable[str]) -> list[str]:
    """The folders, "." for the place, that will have to be made for these files; by path inside the place."""
    folders = {
        folder for name in names for folder in (place / name).parents if folder == place or place in folder.parents
    }
    return sorted(folder.relative_to(place).as_posix() for folder in folders if not folder.exists())


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Be the only installer at work in a folder, for the block; the system lets go when the process dies.

    Raises:
        OutputBusyError: another one is, for longer than installing takes.
        OSError: the folder cannot be written.
    """
    path, end = folder / LOCK, time.monotonic() + _PATIENCE_S
    while True:
        held = False
        folder.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError:  # the other one has just taken the folder away
            continue
        try:
            held = try_lock(descriptor) and same_file(descriptor, path)
            if held:
                yield
                return
        finally:
            try:
                if held and sys.platform != "win32":
                    path.unlink(missing_ok=True)  # while it is held: who waits sees that it is another file
            finally:
                os.close(descriptor)
            if held and sys.platform == "win32":
                with contextlib.suppress(OSError):  # no open file is removed there, and the next one may have it open
                    path.unlink()
        if time.monotonic() > end:
            raise OutputBusyError(
                f"another faceplate install is at work in {folder}", hint="wait for it, then the same command again"
            )
        time.sleep(_PAUSE_S)


def as_output_error(doing: str, place: Path, error: OSError) -> OutputError:
    """A fault of the system with the artist's next step.

    Args:
        doing: "write" or "remove".
        place: named where the fault names no file.
    """
    name = Path(error.filename2 or error.filename or place)
    if name.name.endswith(_HALF):
        name = name.with_name(name.name[1 : -len(_HALF)])
    elif name.name == LOCK:
        name = name.parent
    reason = os.strerror(error.errno) if error.errno else str(error)
    return OutputError(f"cannot {doing} {name}", found=reason, hint=_HINTS.get(error.errno or 0))
