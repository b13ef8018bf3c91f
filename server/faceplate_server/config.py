"""The server's settings, and their TOML file. `server/README.md` lists every key."""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faceplate.errors import SettingError
from faceplate_client.connection import Place

_ADDRESS = re.compile(r"tcp://(\[[0-9a-fA-F:.]+\]|[0-9A-Za-z.-]+):[0-9]{1,5}", re.ASCII)


def default_spool(name: str) -> Path:
    """Where files of other machines' clients are kept: a disk."""
    if sys.platform == "win32" or sys.platform == "darwin":
        return Place().folder / f"spool-{name}"
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "faceplate" / f"spool-{name}"


def default_log() -> Path:
    """Where the log goes: a disk, since the private folder may be memory."""
    if sys.platform == "win32" or sys.platform == "darwin":
        return Place().folder / "log" / "server.log"
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "faceplate" / "server.log"


def _key(default: Any, doc: str, low: float | None = None, high: float | None = None, *, pairs: bool = False) -> Any:
    return field(default=default, metadata={"doc": doc, "low": low, "high": high, "pairs": pairs})


@dataclass(frozen=True)
class ServerConfig:
    """How a server runs.

    Raises:
        SettingError: a value of the wrong type or out of range.
    """

    name: str = _key("default", "tells servers of one user apart, one a device")
    folder: str = _key("", "private folder for socket, connection file and frame rings; empty for the user's own")
    transport: str = _key("tcp" if sys.platform == "win32" else "ipc", "ipc, or tcp on the loopback with a token")
    device: str = _key("auto", "auto, cpu, cuda, cuda:N, or several of those: cuda:0,cuda:1")
    workers: int = _key(1, "worker processes on the CPU; a GPU has one", 1, 256)
    threads: int = _key(0, "frames worked on at once in each worker; 0 chooses by the machine", 0, 1024)
    nice: int = _key(10, "how far batch work steps back for others, 0..19; 0 where nothing else runs (Linux)", 0, 19)
    shots: int = _key(8, "range and analyse jobs at work at once, one a client", 1, 256)
    roots: tuple[str, ...] = _key(("/",), "folders that jobs may read and write, links followed")
    idle_s: float = _key(0.0, "seconds without a job or message after which the server stops; 0 for never", 0, 1e9)
    stop_s: float = _key(60.0, "seconds that current frames may take when the server stops", 0, 1e6)
    warm_mb: int = _key(2048, "memory of each worker for nets, identities, sidecars and plates", 1, 1 << 24)
    max_clients: int = _key(64, "clients at once", 1, 100_000)
    max_jobs: int = _key(256, "jobs of one client that are open at once", 1, 100_000)
    max_slots: int = _key(64, "slots of one frame ring", 1, 1024)
    max_rings: int = _key(64, "frame rings at once, of all clients", 1, 10_000)
    max_frame_mb: int = _key(1024, "size of one slot", 1, 1 << 20)
    listen: str = _key("", "where clients of other machines come in: tcp://HOST:PORT, encrypted; empty for nowhere")
    keys: str = _key("", "folder of the keys; empty for the user's own")
    spool: str = _key("", "folder for what clients of other machines send; empty for the user's own")
    spool_mb: int = _key(20_000, "disk for that, for each client", 1, 1 << 30)
    upstream: str = _key("", "team server that does the jobs: tcp://HOST:PORT; empty for this machine")
    upstream_key: str = _key("", "its public key, as `faceplate keys` shows it there")
    paths: tuple[tuple[str, str], ...] = _key((), "table: folder here = the same folder on the team server", pairs=True)
    page: bool = _key(True, "status page on the loopback, for this user alone")
    page_port: int = _key(0, "its port; 0 for any that is free", 0, 65535)
    ledger: str = _key("", "record of frames that go back through memory; empty for beside the log")
    log_file: str = _key("", "empty for the user's state folder")
    log_mb: int = _key(8, "size at which the log is rotated", 1, 1024)
    log_files: int = _key(4, "old logs that are kept", 1, 100)

    def __post_init__(self) -> None:
        for spec in dataclasses.fields(self):
            _check(spec, getattr(self, spec.name))
        _check_devices(self.device, self.workers)
        if self.transport not in ("ipc", "tcp"):
            hint = "other machines come in by `listen`, which is encrypted; nothing else leaves this machine"
            raise SettingError(f"transport {self.transport!r} is unknown", expected="ipc or tcp", hint=hint)
        if self.transport == "ipc" and sys.platform == "win32":
            raise SettingError("Windows has no ipc transport", hint='leave it out, or say transport = "tcp"')
        check_team(self)
        for path in (*self.roots, self.folder, self.log_file, self.ledger, self.keys, self.spool):
            if path and not os.path.isabs(path):
                raise SettingError(f"{path} is not absolute", hint="write whole paths in the server's configuration")

    @property
    def devices(self) -> tuple[str, ...]:
        """One device for each worker process."""
        named = tuple(one.strip() for one in self.device.split(","))
        return named * self.workers

    @property
    def ledger_path(self) -> Path:
        """Of the frames that go back through memory."""
        return Path(self.ledger) if self.ledger else self.log_path.with_suffix(".ledger.jsonl")

    @property
    def place(self) -> Place:
        """Where the server's socket, lock and connection file lie."""
        return Place(Path(self.folder) if self.folder else None, self.name)

    @property
    def spool_path(self) -> Path:
        """Of what clients of other machines send."""
        return Path(self.spool) if self.spool else default_spool(self.name)

    @property
    def log_path(self) -> Path:
        """Of the log; servers of other names have their own."""
        if self.log_file:
            return Path(self.log_file)
        path = default_log()
        return path if self.name == "default" else path.with_name(f"server-{self.name}.log")


def check_team(config: ServerConfig) -> None:
    """What has to fit together where servers of several machines work together."""
    for name, address in (("listen", config.listen), ("upstream", config.upstream)):
        if address and not _ADDRESS.fullmatch(address):
            raise SettingError(f"{name} is no address", expected="tcp://HOST:PORT", found=address)
    if config.listen and config.upstream:
        hint = "start two servers, each with a name of its own"
        raise SettingError("a server works for a team or sends its jobs to one, not both", hint=hint)
    if bool(config.upstream) != bool(config.upstream_key):
        hint = "`faceplate keys` on the team server shows it; without it nobody could tell who answers"
        raise SettingError("upstream and upstream_key belong together", expected="both, or none", hint=hint)
    if config.upstream_key and not re.fullmatch("[0-9a-f]{64}", config.upstream_key):
        hint = "copy what `faceplate keys` shows on the team server"
        raise SettingError("upstream_key is no public key", expected="64 hex digits", hint=hint)
    if config.paths and not config.upstream:
        raise SettingError("paths belong to the local server of a team", hint="take them out, or set upstream")
    for here, there in config.paths:
        if not (os.path.isabs(here) and there.startswith("/")) or ".." in (*here.split("/"), *there.split("/")):
            raise SettingError(f'paths: "{here}" = "{there}" cannot be used', expected="two whole paths, without ..")


_DEVICE = re.compile(r"auto|cpu|cuda(:\d+)?")


def _check_devices(text: str, workers: int) -> None:
    named = [one.strip() for one in text.split(",")]
    whole = ["cuda:0" if one == "cuda" else one for one in named]
    if not all(_DEVICE.fullmatch(one) for one in named):
        raise SettingError(f"device {text!r} is not understood", expected="auto, cpu, cuda, cuda:N, or cuda:0,cuda:1")
    if len(named) > 1 and not all(one.startswith("cuda") for one in named):
        raise SettingError(
            f"device {text!r} cannot be one server",
            expected="GPUs alone: frames come out a little different on a CPU",
            hint='for several processes on the CPU say device = "cpu" and workers = N',
        )
    if len(set(whole)) < len(whole):
        raise SettingError(f"device {text!r} names a device twice", expected="each once")
    if workers > 1 and named != ["cpu"]:
        raise SettingError(
            "several workers are for the CPU", expected='workers = 1, or device = "cpu"', found=f"device {text!r}"
        )


def _check(spec: Any, value: Any) -> None:
    kind = type(spec.default)
    good = type(value) is kind or (kind is float and type(value) is int)
    if spec.metadata["pairs"]:
        good = isinstance(value, tuple) and all(type(item) is str for pair in value for item in pair)
    elif kind is tuple:
        good = isinstance(value, tuple) and all(type(item) is str for item in value) and bool(value)
    low, high = spec.metadata["low"], spec.metadata["high"]
    if good and low is not None:
        good = low <= value <= high
    if not good:
        if spec.metadata["pairs"]:
            raise SettingError(f"{spec.name} is wrong", expected='a table: "/here" = "/there"', found=repr(value))
        names = {tuple: "a list of paths", str: "text", int: "a whole number", float: "a number", bool: "true or false"}
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
    if isinstance(values.get("paths"), dict):
        values["paths"] = tuple(values["paths"].items())
    return ServerConfig(**values)
