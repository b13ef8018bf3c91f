"""Keys of a team: each user's own CURVE pair, and the clients that a team server lets in.

A folder of mode 0700 with two files of mode 0600:

    secret.key      this user's secret key, 64 hex digits; the public key is computed from it
    clients.json    who may connect: name, public key, folders of the team server that the client may name

One pair does for both sides: a team server shows its public key to its clients, a client its own to the team server.
Keys are written as hex, so that no shell and no TOML file needs quotes for them.
"""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zmq
from zmq.utils import z85

from faceplate.errors import OutputError, ResourceError, SettingError
from faceplate_client.private import FileLock, open_private, private_folder, write_private

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}", re.ASCII)
_KEY = re.compile(r"[0-9a-f]{64}", re.ASCII)
_SECRET = "secret.key"
_CLIENTS = "clients.json"
_LARGEST = 1 << 22


@dataclass(frozen=True)
class KeyPair:
    """A CURVE pair, 32 bytes each."""

    public: bytes
    secret: bytes

    def __repr__(self) -> str:
        return f"KeyPair({self.public.hex()})"  # never the secret: it would end in a log


@dataclass(frozen=True)
class TeamClient:
    """Who may connect to a team server.

    Attributes:
        name: of the machine or person, for logs and the status.
        public: its key, 32 bytes.
        roots: folders of the team server that its jobs may name; empty: only what the client sends itself.
    """

    name: str
    public: bytes
    roots: tuple[str, ...] = ()


def default_keys() -> Path:
    """The user's key folder."""
    if sys.platform == "win32":
        base = Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return base / "faceplate" / "keys"


def parse_key(text: str, what: str = "the key") -> bytes:
    """A public key as people write it.

    Raises:
        SettingError: not 64 hex digits.
    """
    if not _KEY.fullmatch(text.strip().lower()):
        hint = "copy the key that `faceplate keys` shows on the other machine"
        raise SettingError(f"{what} is no public key", expected="64 hex digits", found=text[:80], hint=hint)
    return bytes.fromhex(text.strip())


class KeyFolder:
    """The keys of this user.

    Args:
        folder: None for the user's own.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder if folder is not None else default_keys()

    def own(self) -> KeyPair:
        """This user's pair, made at the first call.

        Raises:
            UnsafeFile: folder or file is another user's, or open to others.
            OutputError: it cannot be made.
            ResourceError: the file is damaged.
        """
        data = self._read(_SECRET)
        if data is None:
            with self._locked():
                data = self._read(_SECRET)
                if data is None:
                    _, secret = zmq.curve_keypair()
                    data = z85.decode(secret).hex().encode() + b"\n"
                    self._write(_SECRET, data)
        text = data.decode("ascii", "replace").strip()
        if not _KEY.fullmatch(text):
            hint = "put the file back from a backup, or remove it and give the new public key to the others"
            raise ResourceError(f"{self.folder / _SECRET} is damaged", expected="64 hex digits", hint=hint)
        public = zmq.curve_public(z85.encode(bytes.fromhex(text)))
        return KeyPair(z85.decode(public), bytes.fromhex(text))

    def clients(self) -> dict[bytes, TeamClient]:
        """Who may connect, by public key.

        Raises:
            UnsafeFile: others could have written the file.
            ResourceError: it is damaged.
        """
        data = self._read(_CLIENTS)
        if data is None:
            return {}
        try:
            document = json.loads(data.decode())
            if not isinstance(document, list):
                raise TypeError("no list of clients")
            listed = [_client(entry) for entry in document]
        except (ValueError, TypeError, KeyError, RecursionError, SettingError) as error:
            hint = "put the file back from a backup, or remove it and allow the clients again"
            raise ResourceError(f"{self.folder / _CLIENTS} is damaged", found=str(error), hint=hint) from error
        return {client.public: client for client in listed}

    def allow(self, client: TeamClient) -> None:
        """Let a client in from now on; one of the same name or key is replaced.

        Raises:
            SettingError: a name or root that cannot be used, or this user's own key.
        """
        if not _NAME.fullmatch(client.name):
            raise SettingError(f"a client cannot be called {client.name!r}", expected="a-z, 0-9 and dashes")
        for root in client.roots:
            if not os.path.isabs(root):
                raise SettingError(f"{root} is not absolute", hint="write whole paths")
        with self._locked():
            kept = [one for one in self.clients().values() if client.public != one.public and client.name != one.name]
            self._write_clients([*kept, client])

    def remove(self, name: str) -> None:
        """Let a client in no more; a running team server ends its connections within a second.

        Raises:
            SettingError: there is none of this name.
        """
        with self._locked():
            listed = list(self.clients().values())
            kept = [one for one in listed if one.name != name]
            if len(kept) == len(listed):
                names = ", ".join(one.name for one in listed) or "nobody"
                raise SettingError(f"no client is called {name!r}", found=names, hint="see `faceplate keys list`")
            self._write_clients(kept)

    def stamp(self) -> tuple[int, int]:
        """Changes when the list of clients does."""
        try:
            found = (self.folder / _CLIENTS).stat()
        except OSError:
            return 0, 0
        return found.st_mtime_ns, found.st_ino

    def _write_clients(self, clients: list[TeamClient]) -> None:
        document = [
            {"name": one.name, "key": one.public.hex(), "roots": list(one.roots)}
            for one in sorted(clients, key=lambda one: one.name)
        ]
        self._write(_CLIENTS, json.dumps(document, indent=1).encode() + b"\n")

    def _locked(self) -> _Locked:
        private_folder(self.folder)
        return _Locked(self.folder / "lock")

    def _read(self, name: str) -> bytes | None:
        if not self.folder.exists():
            return None
        private_folder(self.folder)
        path = self.folder / name
        try:
            with os.fdopen(open_private(path, os.O_RDONLY), "rb") as file:
                return file.read(_LARGEST)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ResourceError(f"cannot read {path}", found=error.strerror, hint="check its permissions") from error

    def _write(self, name: str, data: bytes) -> None:
        path = self.folder / name
        try:
            write_private(path, data)
        except OSError as error:
            raise OutputError(f"cannot write {path}", found=error.strerror, hint="check the folder") from error


class _Locked:
    """The key folder, while it is changed."""

    def __init__(self, path: Path) -> None:
        self._lock = FileLock(path)

    def __enter__(self) -> None:
        if not self._lock.acquire(5.0):
            raise ResourceError(f"another process changes {self._lock.path.parent}", hint="try again")

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _client(entry: Any) -> TeamClient:
    name, key, roots = entry["name"], entry["key"], entry["roots"]
    if not (isinstance(name, str) and _NAME.fullmatch(name) and isinstance(key, str)):
        raise SettingError("a client's name or key is wrong")
    if not (isinstance(roots, list) and all(isinstance(root, str) and os.path.isabs(root) for root in roots)):
        raise SettingError(f"the roots of {name} are no list of whole paths")
    return TeamClient(name, parse_key(key), tuple(roots))
