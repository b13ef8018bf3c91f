"""Which files a server may touch: those inside its roots, links followed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from .errors import Refused


class Roots:
    """The folders that a server reads and writes.

    Args:
        folders: absolute; links in them are followed once, here.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        self.folders = tuple(Path(os.path.realpath(folder)) for folder in folders)
        self._inside = [(str(folder), os.path.join(folder, "")) for folder in self.folders]

    def check(self, path: str | os.PathLike[str]) -> Path:
        """The path, if it lies inside a root wherever its links lead; a pattern is judged by its folder and name.

        Raises:
            Refused: it does not, or it is not absolute. Whether it exists is not told.
        """
        given = os.fspath(path)
        if not os.path.isabs(given):
            raise Refused("forbidden_path", f"{given} is not absolute", hint="send the whole path")
        real = os.path.realpath(given)
        if not any(real == root or real.startswith(inside) for root, inside in self._inside):
            raise Refused(
                "forbidden_path",
                f"{given} lies outside the folders that this server may use",
                expected=", ".join(map(str, self.folders)),
                hint="move the files there, or add the folder to `roots` in the server's configuration",
            )
        return Path(given)
