"""Folders, files and locks that belong to one user: nobody else may read, write or replace them.

On POSIX modes and owners are checked. On Windows the user's profile is private by its access list, and nothing is
checked here.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
import time
from pathlib import Path

from .errors import ConnectionFailed, UnsafeFile

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
"""Opening a pipe that lies where a file should be would wait for its other end."""
_FAR = 0x7FFFFFF0
"""Where Windows locks one byte: past the end, since a locked byte could not be read."""


def default_folder() -> Path:
    """Where this user's server and clients meet; the same for every program of the user, whatever its environment.

    Linux: /dev/shm/faceplate-UID, which is memory. macOS: ~/Library/Caches/faceplate. Windows:
    %LOCALAPPDATA%/faceplate. Elsewhere, and on a Linux without /dev/shm: ~/.cache/faceplate.
    """
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "faceplate"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "faceplate"
    shared = Path("/dev/shm")
    if shared.is_dir() and os.access(shared, os.W_OK | os.X_OK):
        return shared / f"faceplate-{os.geteuid()}"
    return Path.home() / ".cache" / "faceplate"


def private_folder(path: Path) -> Path:
    """The folder, made with mode 0700 if it is not there.

    Raises:
        UnsafeFile: it is a link or no folder, belongs to another user, or others may enter it.
        ConnectionFailed: it cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
        found = path.lstat()
    except OSError as error:
        raise ConnectionFailed(f"cannot make the folder {path}", found=error.strerror or str(error)) from error
    if not stat.S_ISDIR(found.st_mode):
        raise UnsafeFile(f"{path} is not a folder", hint="remove it")
    check_private(found, path)
    return path


def check_private(found: os.stat_result, path: Path) -> None:
    """Raise UnsafeFile unless the file or folder belongs to this user and is closed to all others."""
    if sys.platform == "win32":
        return
    if found.st_uid != os.geteuid():
        raise UnsafeFile(f"{path} belongs to another user", expected=str(os.geteuid()), found=str(found.st_uid))
    if found.st_mode & 0o077:
        raise UnsafeFile(f"{path} is open to other users", found=f"mode {stat.S_IMODE(found.st_mode):04o}")


def open_private(path: Path, flags: int) -> int:
    """Open a regular file of this user without following a link; the descriptor is not inherited.

    Raises:
        UnsafeFile: no regular file, another user's, or open to others.
        OSError: as from `os.open`.
    """
    try:
        descriptor = os.open(path, flags | _NO_FOLLOW | _NO_WAIT | _BINARY, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UnsafeFile(f"{path} is a link", hint="remove it") from error
        raise
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise UnsafeFile(f"{path} is not a regular file", hint="remove it")
        check_private(found, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def try_lock(descriptor: int) -> bool:
    """Lock the open file for this process without waiting; False when another one holds it.

    The system lets go of the lock when the process dies, however it dies. A forked child shares it.
    """
    try:
        if sys.platform == "win32":
            os.lseek(descriptor, _FAR, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK):
            return False
        raise
    return True


def same_file(descriptor: int, path: Path) -> bool:
    """True when `path` still leads to the open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


class FileLock:
    """A lock by file, for "one of this at a time". The file stays; who holds the lock is what counts.

    Args:
        path: in a private folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def acquire(self, patience_s: float = 0.0) -> bool:
        """Take the lock; False when another holder still has it after `patience_s`.

        Raises:
            UnsafeFile: the file is another user's or open to others.
            ConnectionFailed: it cannot be made.
        """
        if self._descriptor is not None:
            return True
        try:
            descriptor = open_private(self.path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise ConnectionFailed(f"cannot open the lock {self.path}", found=error.strerror or str(error)) from error
        end = time.monotonic() + patience_s
        while not try_lock(descriptor):
            if time.monotonic() >= end:
                os.close(descriptor)
                return False
            time.sleep(0.01)
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Let go; harmless when not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> FileLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def is_locked(path: Path) -> bool:
    """True when somebody holds the lock of `path`; False when nobody does or there is no such file."""
    try:
        descriptor = open_private(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        return not try_lock(descriptor)
    finally:
        os.close(descriptor)


def write_private(path: Path, data: bytes) -> None:
    """Write a file of mode 0600 so that a reader sees the old one or the whole new one.

    Raises:
        OSError: the disk is full, the folder is gone.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = open_private(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
