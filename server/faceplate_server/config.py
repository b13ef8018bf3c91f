"""The server's settings, and their TOML file. `server/README.md` lists every key."""

from __future__ import annotations

import dataclasses
import difflib
import os
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faceplate.errors import SettingError
from faceplate_client.connection import Place


def default_log() -> Path:
    """Where the log goes: a disk, since the private folder may be memory."""
    if sys.platform == "win32" or sys.platform == "darwin":
        return Place().folder / "log" / "server.log"
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "faceplate" / "server.log"


def _key(default: Any, doc: str, low: float | None = None, high: float | None = None) -> Any:
    return field(default=default, metadata={"doc": doc, "low": low, "high": high})


@dataclass(frozen=True)
class ServerConfig:
    """How a server runs.

    Raises:
        SettingError: a value of the wrong type or out of range.
    """

    name: str = _key("default", "tells servers of one user apart, one a device")
    folder: str = _key("", "private folder for socket, connection file and frame rings; empty for the user's own")
    transport: str = _key("tcp" if sys.platform == "win32" else "ipc", "ipc, or tcp on the loopback with a token")
    device: str = _key("auto", "auto, cpu, cuda or cuda:N")
    threads: int = _key(0, "frames worked on at once; 0 chooses by the machine", 0, 1024)
    shots: int = _key(8, "range and analyse jobs at work at once, one a client", 1, 256)
    roots: tuple[str, ...] = _key(("/",), "folders that jobs may read and write, links followed")
    idle_s: float = _key(0.0, "seconds without a job or message after which the server stops; 0 for never", 0, 1e9)
    stop_s: float = _key(60.0, "seconds that current frames may take when the server stops", 0, 1e6)
    warm_mb: int = _key(2048, "memory for identities, sidecars and plates that are kept warm", 1, 1 << 24)
    max_clients: int = _key(64, "clients at once", 1, 100_000)
    max_jobs: int = _key(256, "jobs of one client that are open at once", 1, 100_000)
    max_slots: int = _key(64, "slots of one frame ring", 1, 1024)
    max_rings: int = _key(64, "frame rings at once, of all clients", 1, 10_000)
    max_frame_mb: int = _key(1024, "size of one slot", 1, 1 << 20)
    log_file: str = _key("", "empty for the user's state folder")
    log_mb: int = _key(8, "size at which the log is rotated", 1, 1024)
    log_files: int = _key(4, "old logs that are kept", 1, 100)

    def __post_init__(self) -> None:
        for spec in dataclasses.fields(self):
            _check(spec, getattr(self, spec.name))
        if self.transport not in ("ipc", "tcp"):
            raise SettingError(f"transport {self.transport!r} is unknown", expected="ipc or tcp")
        if self.transport == "ipc" and sys.platform == "win32":
            raise SettingError("Windows has no ipc transport", hint='leave it out, or say transport = "tcp"')
        for path in (*self.roots, self.folder, self.log_file):
            if path and not os.path.isabs(path):
                raise SettingError(f"{path} is not absolute", hint="write whole paths in the server's configuration")

    @property
    def place(self) -> Place:
        """Where the server's socket, lock and connection file lie."""
        return Place(Path(self.folder) if self.folder else None, self.name)

    @property
    def log_path(self) -> Path:
        """Of the log; servers of other names have their own."""
        if self.log_file:
            return Path(self.log_file)
        path = default_log()
        return path if self.name == "default" else path.with_name(f"server-{self.name}.log")


def _check(spec: Any, value: Any) -> None:
    kind = type(spec.default)
    good = type(value) is kind or (kind is float and type(value) is int)
    if kind is tuple:
        good = isinstance(value, tuple) and all(type(item) is str for item in value) and bool(value)
    low, high = spec.metadata["low"], spec.metadata["high"]
    if good and low is not None:
        good = low <= value <= high
    if not good:
        names = {tuple: "a list of paths", str: "text", int: "a whole number", float: "a number"}
        expected = names[kind] if low is None else f"{names[kind]} in {low:g}..{high:g}"
        hint = f"{spec.name}: {spec.metadata['doc']}"
        raise SettingError(f"server setting {spec.name} is wrong", expected=expected, found=repr(value), hint=hint)


def read_config(path: Path | None, **overrides: Any) -> ServerConfig:
    """The settings of a TOML file, with those of the command line over them.

    Args:
        path: None for the defaults.
        overrides: by key; None where the command line says nothing.

    Raises:
        SettingError: unreadable, an unknown key, a wrong value.
    """
    values: dict[str, Any] = {}
    if path is not None:
        try:
            values = tomllib.loads(path.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise SettingError(
                f"{path} cannot be read", found=str(error), hint="server/README.md shows a configuration"
            ) from error
    known = [spec.name for spec in dataclasses.fields(ServerConfig)]
    for name in values:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"keys are {', '.join(known)}"
            raise SettingError(f"{path}: no key is called {name!r}", hint=hint)
    values |= {name: value for name, value in overrides.items() if value is not None}
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    return ServerConfig(**values)
