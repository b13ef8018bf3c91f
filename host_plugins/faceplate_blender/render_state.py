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

from faceplate_client.errors import ClientError, FolderFailed, HostError
from faceplate_client.frame_maths import as_text, from_text
from faceplate_client.job_record import write_whole
from faceplate_client.private import try_lock
from faceplate_client.result_folder import make_folder

FORMAT, VERSION = "faceplate render state", 1
EXTENSION = ".exr"
STATE = ".render.json"
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
        path = Path(folder) / f"{name.replace('#', '').replace('..', '.').removesuffix(EXTENSION)}{STATE}"
        try:
            told = json.loads(path.read_text("utf-8"))
            if (told["format"], told["version"], told["inputs"]) == (FORMAT, VERSION, made_from):
                return cls(path, made_from, frozenset(from_text(told["done"])), frozenset(from_text(told["failed"])))
        except (OSError, ValueError, KeyError, TypeError, ClientError):
            pass  # none, or half of something: everything is rendered
        return cls(path, made_from)

    def with_frame(self, frame: int, *, failed: bool) -> State:
        """With one frame more, written in one stroke.

        Raises:
            FolderFailed: it cannot be written; what was there stays.
        """
        one = {frame}
        new = replace(
            self,
            done=self.done - one if failed else self.done | one,
            failed=self.failed | one if failed else self.failed - one,
        )
        told = {"format": FORMAT, "version": VERSION, "inputs": new.inputs}
        told |= {"done": as_text(new.done), "failed": as_text(new.failed)}
        write_whole(new.path, json.dumps(told, indent=1).encode("utf-8"))
        return new


@contextmanager
def alone_in(folder: str) -> Iterator[None]:
    """Nobody else renders into the folder, which is made; what a killed run left there is removed. The lock file stays.

    Raises:
        HostError: another process does.
        FolderFailed: the folder cannot be made or written.
    """
    make_folder(Path(folder))
    try:
        descriptor = os.open(os.path.join(folder, f"{HALF}lock"), os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise FolderFailed(f"cannot write into {folder}", found=error.strerror or str(error)) from error
    try:
        if not try_lock(descriptor):
            raise HostError(f"another process renders into {folder}", hint="wait for it, or stop it")
        for left in (f"{HALF}*-*", f".*{STATE}.*.tmp"):
            for path in Path(folder).glob(left):
                path.unlink(missing_ok=True)
        yield
    finally:
        os.close(descriptor)
