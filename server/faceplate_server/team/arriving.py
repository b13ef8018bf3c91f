"""A file on its way back from a team server, written where it belongs."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from faceplate.errors import ResourceError
from faceplate.media.atomic import atomic_write
from faceplate.media.file_hash import file_hash

from .streams import Sink


class _Dropped(Exception):
    """Nobody wants the file any more."""


class Arriving:
    """A file that comes back: it appears whole or not at all.

    Args:
        target: where it belongs.
        head: of its `open`.

    Raises:
        OutputError: it cannot be written.
    """

    def __init__(self, target: Path, head: dict[str, Any]) -> None:
        self.target = target
        self._writing = atomic_write(target)
        self._temporary = self._writing.__enter__()
        self.sink = Sink(head, path=self._temporary)

    def finish(self) -> None:
        """All of it is there.

        Raises:
            ResourceError: it is not what the team server sent.
            OutputError: it cannot be written.
        """
        self.sink.finish()
        if file_hash(self._temporary) != self.sink.head["hash"]:
            self.drop()
            raise ResourceError(f"{self.target} came damaged from the team server", hint="send the job again")
        self._writing.__exit__(None, None, None)

    def drop(self) -> None:
        """Leave the old file, or none."""
        self.sink.finish()
        with contextlib.suppress(_Dropped):
            self._writing.__exit__(_Dropped, _Dropped(), None)
