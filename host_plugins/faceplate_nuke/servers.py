# SPDX-License-Identifier: Apache-2.0
"""Which server the plug-in talks to: `faceplate.json` in ~/.nuke, or in the plug-in's own folder for a studio.

    {"program": "/opt/faceplate/bin/faceplate", "name": "default", "folder": "", "start": false}

Every key may be left out, and so may the file. Where no program is said it is the one that installed the plug-in, which
`installed.json` names, or the first on the path. Imports nothing of Nuke.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faceplate_client.connection import Place
from faceplate_client.errors import HostError
from faceplate_client.task import Servers

FILE, INSTALLED = "faceplate.json", "installed.json"
FOLDERS = (Path.home() / ".nuke", Path(__file__).resolve().parent.parent, Path(__file__).resolve().parent)


@dataclass(frozen=True)
class ServerSettings:
    """The keys of the file.

    Attributes:
        program: the faceplate program, which starts the server.
        name: of the server, where a user runs several.
        folder: in which the server leaves its address; "" for the user's own.
        start: start it without asking.
    """

    program: str = "faceplate"
    name: str = "default"
    folder: str = ""
    start: bool = False

    def servers(self, *, start: bool = False) -> Servers:
        """For actions; `start` starts one whatever the file says."""
        words = (self.program, "serve", "--name", self.name, *(("--folder", self.folder) if self.folder else ()))
        place = Place(Path(self.folder) if self.folder else None, self.name)
        return Servers(place=place, start=start or self.start, command=words)


def load_settings(folders: Sequence[Path] = FOLDERS) -> ServerSettings:
    """The first file that is there.

    Raises:
        HostError: it is not such a file.
    """
    installed = next((folder / INSTALLED for folder in folders if (folder / INSTALLED).is_file()), None)
    default = {} if installed is None else _read(installed)
    path = next((folder / FILE for folder in folders if (folder / FILE).is_file()), None)
    return ServerSettings(**{**default, **({} if path is None else _read(path))})


def _read(path: Path) -> dict[str, Any]:
    try:
        told = json.loads(path.read_text("utf-8"))
        known = {"program": str, "name": str, "folder": str, "start": bool}
        wrong = [name for name, value in told.items() if name not in known or not isinstance(value, known[name])]
        if wrong:
            raise HostError(f"{path}: {wrong[0]!r} is no setting", expected=", ".join(known), found=wrong[0])
        return dict(told)
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise HostError(f"{path} cannot be read", found=str(error), hint="correct it, or take it away") from error
