"""Where hosts look for plug-ins, on each system; the data is `installers/hosts.toml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomllib

from faceplate.errors import InputError

_HERE = Path(__file__).parent
_DATA = (_HERE / "hosts.toml", _HERE.parents[1] / "installers" / "hosts.toml")
"""In the wheel it lies beside this file; in a clone where it is kept."""
_VERSION = re.compile(r"(\d+)\.(\d+)")
_ANY_VERSION = "{version}"
SYSTEMS = ("linux", "darwin", "win32")


@dataclass(frozen=True)
class Surroundings:
    """The machine as an installer sees it.

    Attributes:
        system: as `sys.platform`.
        environment: variables.
        home: the user's home folder.
    """

    system: str
    environment: Mapping[str, str]
    home: Path


@dataclass(frozen=True)
class Host:
    """One host, as `hosts.toml` has it.

    Attributes:
        name: on the command line.
        title: for people.
        own: our folder inside a place.
        path: what --path means for it.
        missing: what to do where no place is found.
        entries: places as they are written, by system.
        afterwards: what the user does next, by system.
        undone: what is left to do when it was taken away, by system.
        oldest: version, where places have one folder a version.
    """

    name: str
    title: str
    own: str
    path: str
    missing: str
    entries: Mapping[str, tuple[str, ...]]
    afterwards: Mapping[str, str]
    undone: Mapping[str, str]
    oldest: tuple[int, int]

    def places(self, around: Surroundings) -> list[Path]:
        """The folders in which it looks for plug-ins, for this user.

        Raises:
            InputError: none is there, or the system is unknown.
        """
        if around.system not in self.entries:
            raise InputError(
                f"no place is known for {self.title} on {around.system}",
                expected=", ".join(SYSTEMS),
                hint=f"give --path: {self.path}",
            )
        for entry in self.entries[around.system]:
            path = _resolved(entry, around)
            if path is None:
                continue
            found = list(_versions(path, self.oldest)) if _ANY_VERSION in entry else [path]
            if found:
                return found
            raise InputError(f"no {self.title} was found for this user", found=f"nothing in {path}", hint=self.missing)
        raise InputError(f"no place for {self.title} was found", hint=f"give --path: {self.path}")


def _resolved(entry: str, around: Surroundings) -> Path | None:
    """An entry as a path; None where its variable is not set."""
    first, *rest = entry.split("/")
    if first == "~":
        return around.home.joinpath(*rest)
    value = around.environment.get(first.removeprefix("$"))
    return Path(value).joinpath(*rest) if value else None


def _versions(path: Path, oldest: tuple[int, int]) -> list[Path]:
    """The paths that stand for `path`, one a folder with the name of a version that is not too old."""
    at = path.parts.index(_ANY_VERSION)
    above, below = Path(*path.parts[:at]), path.parts[at + 1 :]
    found = []
    for folder in above.iterdir() if above.is_dir() else ():
        version = _VERSION.fullmatch(folder.name)
        if folder.is_dir() and version and (number := (int(version[1]), int(version[2]))) >= oldest:
            found.append((number, folder.joinpath(*below)))
    return [folder for _, folder in sorted(found)]


def load_hosts() -> Mapping[str, Host]:
    """The hosts by name."""
    data = next(path for path in _DATA if path.is_file())
    document = tomllib.loads(data.read_text("utf-8"))
    return {name: _host(name, values) for name, values in document.items()}


def _host(name: str, values: Mapping[str, Any]) -> Host:
    first = tuple(values.get("any", ()))
    major, minor = str(values.get("oldest", "0.0")).split(".")
    return Host(
        name=name,
        title=values["title"],
        own=values["own"],
        path=values["path"],
        missing=values.get("missing", f"give --path: {values['path']}"),
        entries={system: first + tuple(values[system]) for system in SYSTEMS},
        afterwards=_by_system(values["afterwards"]),
        undone=_by_system(values.get("undone", "")),
        oldest=(int(major), int(minor)),
    )


def _by_system(said: str | Mapping[str, str]) -> Mapping[str, str]:
    return dict.fromkeys(SYSTEMS, said) if isinstance(said, str) else said
