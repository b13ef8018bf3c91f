# SPDX-License-Identifier: GPL-3.0-or-later
"""What the add-on knows while Blender runs and no file keeps: the action at work, faces that were found, the server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import bpy.utils.previews

from faceplate_client.host import Progress
from faceplate_client.outcome import Analysis
from faceplate_client.task import Servers, Task

_UNASKED = "not checked yet"
NOT_RUNNING = "not running"


@dataclass
class State:
    """One for the add-on; made at register, closed at unregister.

    Attributes:
        task: the action at work, None for none; there is one at a time.
        progress: how far it is.
        stopping: whether the artist pressed Esc.
        faces: what Find Faces found, by scene and clip.
        server: what Check said last.
        servers: which server, over the preferences; for batches.
        results: folder of results, over the preferences; for batches.
    """

    task: Task[Any] | None = None
    progress: Progress | None = None
    stopping: bool = False
    faces: dict[tuple[str, str], Analysis] = field(default_factory=dict)
    server: str = _UNASKED
    servers: Servers | None = None
    results: str = ""
    _pictures: Any = None

    def keep_faces(self, scene: str, clip_id: str, found: Analysis) -> None:
        """Remember faces, with their pictures."""
        self.faces[scene, clip_id] = found
        for track in found.tracks:
            if track.picture is not None:
                name = _name(scene, clip_id, track.id)
                pictures = self._loaded()
                if name in pictures:
                    del pictures[name]
                pictures.load(name, track.picture, "IMAGE")

    def served(self) -> None:
        """An action had a server; what Check said last of one that answered stays."""
        if self.server in (_UNASKED, NOT_RUNNING):
            self.server = "running"

    def icon(self, scene: str, clip_id: str, track: int) -> int:
        """The icon of a face, 0 where it has no picture."""
        name = _name(scene, clip_id, track)
        return int(self._pictures[name].icon_id) if self._pictures is not None and name in self._pictures else 0

    def keep_progress(self, progress: Progress | None) -> bool:
        """Keep how far the action is for the status bar; Esc goes to the task itself, so this never asks to stop."""
        self.progress = progress
        return True

    def close(self) -> None:
        """Stop the action at work and let the pictures go."""
        if self.task is not None:
            self.task.close()
            self.task = None
        if self._pictures is not None:
            bpy.utils.previews.remove(self._pictures)
            self._pictures = None
        self.faces.clear()

    def _loaded(self) -> Any:
        if self._pictures is None:
            self._pictures = bpy.utils.previews.new()
        return self._pictures


def _name(scene: str, clip_id: str, track: int) -> str:
    return f"{scene}\n{clip_id}\n{track}"


STATE = State()
