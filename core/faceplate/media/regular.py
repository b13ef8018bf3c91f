"""Opening a file that has to be a file: a pipe or a device under its name would be waited for without end."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader


def open_regular(path: str | os.PathLike[str]) -> BufferedReader:
    """Open a regular file for reading bytes; links are followed.

    Raises:
        OSError: absent or unreadable; EINVAL with "not a regular file" for a pipe, socket or device.
    """
    return open(path, "rb", opener=_open)


def _open(path: str, flags: int) -> int:
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):  # of a folder, `open` itself says so
        return handle
    os.close(handle)
    raise OSError(errno.EINVAL, "not a regular file", path)
