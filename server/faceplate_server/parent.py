"""Watches the process that a server must not outlive: a farm's task, a host."""

from __future__ import annotations

import os
import select
import sys

from faceplate.errors import SettingError


class ParentWatch:
    """Looks whether a process lives.

    Args:
        pid: of it. On Linux its number may be used again without being mistaken for it.

    Raises:
        SettingError: no such process, or a system where it cannot be watched.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._descriptor = -1
        if sys.platform == "win32":
            raise SettingError("--parent is not there on Windows", hint="use --idle, or stop the server by its command")
        try:
            if sys.platform == "linux":
                self._descriptor = os.pidfd_open(pid)
            else:
                os.kill(pid, 0)
        except OSError as error:
            raise SettingError(f"--parent {pid}: there is no such process", found=error.strerror) from error

    def is_alive(self) -> bool:
        """False once it has ended."""
        if self._descriptor >= 0:
            poll = select.poll()
            poll.register(self._descriptor, select.POLLIN)
            return not poll.poll(0)
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def close(self) -> None:
        """Let go of it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
