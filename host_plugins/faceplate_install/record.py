"""What an installation consists of, and the record of what it left in a place.

The record lies in our own folder, so that a host that removes the folder leaves nothing of it behind. It is written
before the first file and names what may be there then: an installation that was cut short can be undone, or repeated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath

from faceplate.errors import OutputError
from faceplate_client import __version__

RECORD = ".faceplate-install.json"


@dataclass(frozen=True)
class Tree:
    """What is installed into one place; all paths are inside it, with slashes.

    Attributes:
        own: our folder, which holds the record.
        files: to write.
        seeds: files that are the user's from then on: written where none is there, taken away while unchanged.
        lines: Python to be in a file that others write too, by file.
    """

    own: str
    files: Mapping[str, bytes]
    seeds: Mapping[str, bytes] = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Record:
    """What an installation left in a place.

    Attributes:
        files: SHA-256 that a file may have, by path: two where an installation was cut short.
        seeds: paths and SHA-256 as they were written.
        lines: what a file of others holds of ours, by file; None where an older record does not say.
        folders: that were not there before, "." for the place itself; None where an older record does not say.
        version: of Faceplate that wrote it.
    """

    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    seeds: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, str | None] = field(default_factory=dict)
    folders: tuple[str, ...] | None = None
    version: str = __version__

    def to_bytes(self) -> bytes:
        """As it is kept."""
        document: dict[str, object] = {
            "faceplate": self.version,
            "files": {name: list(digests) for name, digests in self.files.items()},
            "seeds": dict(self.seeds),
            "lines": dict(self.lines),
        }
        if self.folders is not None:
            document["folders"] = list(self.folders)
        return json.dumps(document, indent=1).encode()


def record_path(place: Path, own: str) -> Path:
    """Where the record of a place lies."""
    return place / own / RECORD


def read_record(path: Path) -> Record:
    """The record of an installation.

    Raises:
        OutputError: there is none, it cannot be read, or it is damaged.
    """
    try:
        document = json.loads(path.read_text("utf-8"))
        lines = document["lines"]
        record = Record(
            {str(name): tuple(map(str, digests)) for name, digests in document["files"].items()},
            {str(name): str(digest) for name, digest in document["seeds"].items()},
            {str(name): None if isinstance(lines, list) else str(lines[name]) for name in lines},
            tuple(map(str, document["folders"])) if "folders" in document else None,
            str(document.get("faceplate", "")),
        )
        for name in (*record.files, *record.seeds, *record.lines, *(record.folders or ())):
            parts = PureWindowsPath(name)  # knows the anchors of every system
            if ".." in parts.parts or parts.anchor or not (parts.parts or name == "."):
                raise ValueError("a path that leads out of the folder")
    except FileNotFoundError as error:
        raise OutputError(
            f"no record of an installation in {path.parent}", hint="remove the plug-in by the way it came"
        ) from error
    except OSError as error:
        raise OutputError(f"cannot read {path}", found=error.strerror or str(error)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutputError(f"{path} is damaged", found=str(error), hint="remove the plug-in by hand") from error
    return record
