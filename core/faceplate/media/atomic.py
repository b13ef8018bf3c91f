"""Files that appear whole or not at all.

A writer writes to a hidden temporary name in the folder of the target; the file is flushed to the disk, then renamed.
After a crash the target is the old file or absent, never half a frame. What a killed process leaves behind is
recognised by `is_temporary`.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import OutputError

# Short and independent of the target's name, so that a name at the file system's limit still works.
_TEMPORARY = re.compile(r"\.faceplate-tmp-\d+-[0-9a-f]{12}(\.[^.]+)?")

_LOW_SPACE_BYTES = 1 << 20

_REASONS: dict[int, tuple[str, str]] = {
    errno.ENOSPC: ("the disk is full", "free some space, then run the job again; finished frames are kept"),
    errno.EDQUOT: ("the disk quota is used up", "free some space, then run the job again; finished frames are kept"),
    errno.EROFS: ("the file system is read-only", "choose an output folder that can be written"),
    errno.EACCES: ("no permission to write here", "choose another output folder or ask for write permission"),
    errno.EPERM: ("no permission to write here", "choose another output folder or ask for write permission"),
    errno.ENOENT: ("the folder does not exist", "create the output folder first"),
    errno.ENOTDIR: ("part of the path is a file, not a folder", "check the output path"),
    errno.EISDIR: ("the path is a folder", "name a file inside it"),
    errno.ENAMETOOLONG: ("the name is too long", "choose a shorter output name"),
    errno.EEXIST: ("a file of this name is in the way of a folder", "move it away, or choose another output"),
    errno.ELOOP: ("the path is a link that points to itself", "remove the link"),
    errno.EIO: ("the disk reported an input/output error", "check the disk or the network share"),
}


if sys.platform == "win32":

    @contextmanager
    def _in_use(_: Path, *, wait: bool) -> Iterator[None]:
        yield  # nothing to do: what is being written there cannot be removed
else:
    import fcntl

    @contextmanager
    def _in_use(path: Path, *, wait: bool) -> Iterator[None]:
        """Mark a file as being written, for the block or until the process dies; the mark binds only our own."""
        handle = os.open(path, os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        finally:
            os.close(handle)


def remove_abandoned(path: Path) -> bool:
    """Remove a file that a killed `atomic_write` left; not one that another job is writing in the same folder.

    Raises:
        OSError: it cannot be removed.
    """
    if not is_temporary(path):
        return False
    try:
        with _in_use(path, wait=False):
            path.unlink(missing_ok=True)
    except (FileNotFoundError, BlockingIOError, PermissionError):
        return False
    return True


def is_temporary(path: str | os.PathLike[str]) -> bool:
    """True when the file name is one that `atomic_write` makes, so that a stale one may be removed."""
    return _TEMPORARY.fullmatch(os.path.basename(path)) is not None


def output_error(path: str | os.PathLike[str], cause: BaseException | str) -> OutputError:
    """The OutputError for a write that failed.

    Args:
        path: the target (not the temporary name).
        cause: what was raised or said. Where it is no OSError (image libraries hide the reason) a folder with less
            than 1 MiB left counts as a full disk.
    """
    number = cause.errno if isinstance(cause, OSError) else None
    if number is None and _free_bytes(Path(path).parent) < _LOW_SPACE_BYTES:
        number = errno.ENOSPC
    reason, hint = _REASONS.get(number or 0, (str(cause), "check the output path and the disk"))
    return OutputError(f"cannot write {os.fspath(path)}", found=reason, hint=hint)


def _free_bytes(folder: Path) -> int:
    if not hasattr(os, "statvfs") or not folder.is_dir():
        return _LOW_SPACE_BYTES
    usage = os.statvfs(folder)
    return usage.f_bavail * usage.f_frsize


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _replace(temporary: Path, target: Path) -> None:
    _sync(temporary, os.O_RDWR)
    os.replace(temporary, target)
    if os.name == "posix":  # only there can a folder be flushed, which makes the rename itself survive a power cut
        _sync(target.parent, os.O_RDONLY)


def check_writable(folder: Path) -> None:
    """Prove that files can be made in a folder; leaves nothing there.

    Raises:
        OutputError: they cannot.
    """
    probe = folder / f".faceplate-tmp-{os.getpid()}-{secrets.token_hex(6)}"
    try:
        os.close(os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        probe.unlink(missing_ok=True)
    except OSError as error:
        raise output_error(folder, error) from error


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the block a temporary path to write to; rename it to `path` when the block ends without an error.

    The temporary file exists already (empty), lies in the folder of `path` and has its extension. The block must have
    closed it at its end. A symbolic link is followed: what it points to is replaced.

    Raises:
        OutputError: no such folder, no permission, disk full, `path` is a folder; any OSError of the block. The
            temporary file is removed, whatever is raised.
    """
    target = Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)
    temporary = target.with_name(f".faceplate-tmp-{os.getpid()}-{secrets.token_hex(6)}{target.suffix}")
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "is a folder")
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        try:
            with _in_use(temporary, wait=True):
                yield temporary
                _replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise output_error(path, error) from error
