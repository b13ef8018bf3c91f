"""Where a user's server is: the connection file, and the lock that says whether its server lives.

Everything lies in the user's private folder (`private.default_folder()`). `name` tells servers of one user apart, one a
device: "default", "cuda1".

    server-NAME.json    the connection file, mode 0600
    server-NAME.lock    held by the server as long as it lives
    server-NAME.sock    its Unix socket, where there are such
    server-NAME.log     what it printed when a client started it
    launch-NAME.lock    held by the client that starts a server
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from .errors import ConnectionFailed, ServerNotFound
from .private import FileLock, default_folder, is_locked, open_private, private_folder, write_private

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}", re.ASCII)
_LARGEST = 1 << 16


@dataclass(frozen=True)
class ConnectionInfo:
    """What a client needs to reach a server.

    Attributes:
        address: "ipc:///path" or "tcp://host:port".
        token: to be shown in hello; "" where the socket's folder is protection enough.
        pid: of the server.
        instance: changes with every start of a server.
        protocol_min: oldest protocol version it speaks.
        protocol_max: newest.
        started: seconds since 1970.
    """

    address: str
    token: str = ""
    pid: int = 0
    instance: str = ""
    protocol_min: int = 1
    protocol_max: int = 1
    started: float = 0.0


@dataclass(frozen=True)
class Place:
    """Names of the files of one server.

    Args:
        folder: private folder; None for the user's own.
        name: lower-case letters, digits and dashes.

    Raises:
        ConnectionFailed: the name cannot be used.
    """

    folder: Path
    name: str

    def __init__(self, folder: Path | None = None, name: str = "default") -> None:
        if not _NAME.fullmatch(name):
            raise ConnectionFailed(f"a server cannot be called {name!r}", expected="a-z, 0-9 and dashes")
        object.__setattr__(self, "folder", folder if folder is not None else default_folder())
        object.__setattr__(self, "name", name)

    @property
    def file(self) -> Path:
        """The connection file."""
        return self.folder / f"server-{self.name}.json"

    @property
    def socket(self) -> Path:
        """The server's Unix socket."""
        return self.folder / f"server-{self.name}.sock"

    @property
    def log(self) -> Path:
        """What the server printed when a client started it."""
        return self.folder / f"server-{self.name}.log"

    def server_lock(self) -> FileLock:
        """For the server: acquired, with a second's patience, before it binds, and held until it exits.

        The patience is for `is_alive`, which holds the lock for a moment. The folder is made.
        """
        return FileLock(private_folder(self.folder) / f"server-{self.name}.lock")

    def launch_lock(self) -> FileLock:
        """For a client that starts a server. The folder is made."""
        return FileLock(private_folder(self.folder) / f"launch-{self.name}.lock")

    def is_alive(self) -> bool:
        """True while a server holds its lock, whether it is ready or not."""
        return is_locked(self.folder / f"server-{self.name}.lock")


def write_connection(place: Place, info: ConnectionInfo) -> None:
    """Write the connection file: a reader sees the old one or the whole new one. For the holder of the server lock.

    Raises:
        ConnectionFailed: it cannot be written.
        UnsafeFile: others can enter the folder.
    """
    private_folder(place.folder)
    try:
        write_private(place.file, json.dumps(asdict(info), indent=1).encode())
    except OSError as error:
        raise ConnectionFailed(f"cannot write {place.file}", found=error.strerror or str(error)) from error


def remove_connection(place: Place) -> None:
    """Remove the connection file at the end of a server; harmless when it is gone."""
    with contextlib.suppress(FileNotFoundError):
        place.file.unlink()


def read_connection(place: Place) -> ConnectionInfo:
    """What the connection file says, whether its server lives or not.

    Raises:
        ServerNotFound: there is none.
        UnsafeFile: the file or its folder belongs to another user or is open to others.
        ConnectionFailed: it is damaged.
    """
    if not place.folder.exists():
        raise ServerNotFound(f"no server was started in {place.folder}")
    private_folder(place.folder)
    try:
        descriptor = open_private(place.file, os.O_RDONLY)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError as error:
        raise ServerNotFound(f"no server called {place.name!r} is running", found=f"no {place.file}") from error
    except OSError as error:
        raise ConnectionFailed(f"cannot read {place.file}", found=error.strerror or str(error)) from error
    try:
        document = json.loads(data.decode()) if len(data) <= _LARGEST else None
    except (ValueError, RecursionError):
        document = None
    kinds = {spec.name: str if spec.name == "address" else type(spec.default) for spec in fields(ConnectionInfo)}
    if not isinstance(document, dict) or {name: type(value) for name, value in document.items()} != kinds:
        raise ConnectionFailed(f"{place.file} is damaged", hint="stop the server, remove the file, start it again")
    return ConnectionInfo(**document)


def find(place: Place) -> ConnectionInfo:
    """The running server's connection.

    Raises:
        ServerNotFound: none is running, or it has not opened its socket yet.
        UnsafeFile, ConnectionFailed: as `read_connection`.
    """
    info = read_connection(place)
    if not place.is_alive():
        raise ServerNotFound(f"the server called {place.name!r} is gone", found=f"{place.file} of a dead process")
    return info
