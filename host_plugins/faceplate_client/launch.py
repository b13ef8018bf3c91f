"""Find the user's server, or start one: two hosts that start at once start one server."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .client import Client, Timeouts
from .connection import ConnectionInfo, Place, find
from .deadline import Deadline
from .errors import ClientError, ConnectTimeout, LaunchFailed, ProtocolError, ServerError, UnsafeFile
from .private import open_private

COMMAND = ("faceplate", "serve")
_POLL_S = 0.05
_LOG_BYTES = 4000
_HOSTS_OWN = ("PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONEXECUTABLE", "__PYVENV_LAUNCHER__")
"""Set by hosts for their own Python; another one does not start with them."""


@dataclass(frozen=True)
class Found:
    """A server that has answered that it is ready.

    Attributes:
        info: its connection.
        child: its process, if this call started it.
    """

    info: ConnectionInfo
    child: subprocess.Popen[bytes] | None = None


def find_or_start(
    place: Place | None = None,
    command: Sequence[str] = COMMAND,
    *,
    start_s: float = 60.0,
    environment: Mapping[str, str] | None = None,
) -> Found:
    """The running server, or a new one once it is ready.

    Args:
        place: folder and name of the server; None for the user's default.
        command: program and arguments; found on PATH or absolute. It must take the server lock of `place` and write
            its connection file.
        start_s: seconds for all of it.
        environment: of the new process; None for this one's without what hosts set for their own Python.

    Raises:
        LaunchFailed: the server did not come up; `log` has its last words. A process that was started is ended.
        UnsafeFile: others can enter the folder.
        ProtocolError, ServerError: a server runs that this client cannot talk to, or that refuses it.
    """
    place = place if place is not None else Place()
    deadline = Deadline(start_s, "starting the server", ConnectTimeout)
    with place.launch_lock() as lock:
        while True:
            info = _ready(place, deadline)
            if info is not None:
                return Found(info)
            if time.monotonic() >= deadline.end:
                raise LaunchFailed(f"no server was ready within {start_s:g} s", log=_last_words(place))
            # a server that lives but is not ready is waited for; a second one could not start beside it
            if lock.acquire() and not place.is_alive():
                return _start(place, command, deadline, environment)
            time.sleep(_POLL_S)


def _start(place: Place, command: Sequence[str], deadline: Deadline, environment: Mapping[str, str] | None) -> Found:
    if environment is None:
        environment = {name: value for name, value in os.environ.items() if name not in _HOSTS_OWN}
    try:
        log = open_private(place.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            child = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=place.folder,
                env=dict(environment),
                **_DETACHED,
            )
        finally:
            os.close(log)
    except OSError as error:
        raise LaunchFailed(
            f"cannot start {command[0]}",
            found=error.strerror or str(error),
            hint="install Faceplate, or give the plug-in the full path of the faceplate program",
        ) from error
    try:
        return Found(_until_ready(place, child, deadline), child)
    except BaseException:
        _end(child)
        raise


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill the process that was started, with its own children, which share its session."""
    if sys.platform == "win32":
        child.kill()
    else:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _until_ready(place: Place, child: subprocess.Popen[bytes], deadline: Deadline) -> ConnectionInfo:
    while True:
        # before asking, so that a server that came up and left a parent process behind is not missed
        ended = child.poll()
        info = _ready(place, deadline)
        if info is not None:
            return info
        if ended:
            raise LaunchFailed("the server ended while it started", found=f"exit code {ended}", log=_last_words(place))
        if time.monotonic() >= deadline.end:
            raise LaunchFailed(
                f"the server was not ready within {deadline.seconds:g} s and was ended", log=_last_words(place)
            )
        time.sleep(_POLL_S)


def _ready(place: Place, deadline: Deadline) -> ConnectionInfo | None:
    """The connection of a server that answers and is ready, else None."""
    try:
        info = find(place)
        patience = max(0.1, min(1.0, deadline.end - time.monotonic()))
        with Client(info, "launch", Timeouts(connect_s=patience, request_s=patience, reconnect_s=0.1)) as client:
            return info if client.ping().ready else None
    except (UnsafeFile, ProtocolError, ServerError):
        raise
    except ClientError:
        return None  # none there, not answering yet, or just going: the caller's deadline decides


def _last_words(place: Place) -> str:
    try:
        with os.fdopen(open_private(place.log, os.O_RDONLY), "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _LOG_BYTES))
            return file.read().decode("utf-8", "replace").strip()
    except OSError:
        return ""


# the server outlives the host and gets none of its Ctrl-C
if sys.platform == "win32":
    _DETACHED: dict[str, Any] = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.DETACHED_PROCESS}
else:
    _DETACHED: dict[str, Any] = {"start_new_session": True}
