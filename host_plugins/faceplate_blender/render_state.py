# SPDX-License-Identifier: GPL-3.0-or-later
"""Which frames of a render are done, in a file beside them, and that only one process renders into a folder.

Imports nothing of Blender.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from faceplate_client.errors import ClientError, HostError
from faceplate_client.frame_maths import as_text, from_text
from faceplate_client.private import try_lock

FORMAT, VERSION = "faceplate render state", 1
EXTENSION = ".exr"
HALF = ".faceplate-render-"
"""What files begin with that are not whole yet; then comes the process."""


@dataclass(frozen=True)
class State:
    """Which frames are done, in a file beside them.

    Attributes:
        path: of the file.
        inputs: what they were made from.
        done: frames.
        failed: frames.
    """

    path: Path
    inputs: str
    done: frozenset[int] = frozenset()
    failed: frozenset[int] = frozenset()

    @classmethod
    def load(cls, pattern: str, made_from: str) -> State:
        """The state beside a pattern; an empty one where there is none, or it is of other inputs."""
        folder, name = os.path.split(pattern)
        path = Path(folder) / f"{name.replace('#', '').replace('..', '.').removesuffix(EXTENSION)}.render.json"
        try:
            told = json.loads(path.read_text("utf-8"))
            if (told["format"], told["version"], told["inputs"]) == (FORMAT, VERSION, made_from):
                return cls(path, made_from, frozenset(from_text(told["done"])), frozenset(from_text(told["failed"])))
        except (OSError, ValueError, KeyError, TypeError, ClientError):
            pass  # none, or half of something: everything is rendered
        return cls(path, made_from)

    def with_frame(self, frame: int, *, failed: bool) -> State:
        """With one frame more, written in one stroke."""
        one = {frame}
        new = replace(
            self,
            done=self.done - one if failed else self.done | one,
            failed=self.failed | one if failed else self.failed - one,
        )
        told = {"format": FORMAT, "version": VERSION, "inputs": new.inputs}
        told |= {"done": as_text(new.done), "failed": as_text(new.failed)}
        half = new.path.with_name(f"{HALF}{os.getpid()}-state")
        half.write_text(json.dumps(told, indent=1), "utf-8")
        os.replace(half, new.path)
        return new


@contextmanager
def alone_in(folder: str) -> Iterator[None]:
    """Nobody else renders into the folder meanwhile; what a killed run left there is removed. The lock file stays.

    Raises:
        HostError: another process does.
    """
    descriptor = os.open(os.path.join(folder, f"{HALF}lock"), os.O_RDWR | os.O_CREAT)
    try:
        if not try_lock(descriptor):
            raise HostError(f"another process renders into {folder}", hint="wait for it, or stop it")
        for path in Path(folder).glob(f"{HALF}*-*"):
            path.unlink(missing_ok=True)
        yield
    finally:
        os.close(descriptor)
