# SPDX-License-Identifier: GPL-3.0-or-later
"""The live effect: before a frame is rendered, the picture of each live Faceplate group is made by the server.

Blender goes on after an exception in a handler and writes the last frame's picture again, so nothing is raised here: a
frame that failed shows the slate, is listed, and a render without interface ends with exit code 1. `render_pre` is the
one handler that runs for every frame of every version, with and without Render Layers.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bpy
from bpy.app.handlers import persistent

from faceplate_client.errors import ClientError
from faceplate_client.host import Clip
from faceplate_client.job_record import Recipe
from faceplate_client.live import Live, LiveFrame
from faceplate_client.result_folder import clip_folder, faces_file
from faceplate_client.task import Servers

from . import nodes
from .compositor import CompositorHost, compositor_tree
from .host import API

FAILED = 1
"""Exit code of a render without interface in which a live frame failed."""


@dataclass
class Shown:
    """What became of one group's frames since the last render began.

    Attributes:
        live: the effect.
        recipe: that it was made for.
        last: how the last frame ended.
        failed: frames that show the slate, with the reason.
    """

    live: Live
    recipe: Recipe
    last: LiveFrame | None = None
    failed: dict[int, str] = field(default_factory=dict)


class Effects:
    """The live groups of all scenes.

    Args:
        servers: which server, asked when an effect is made.
        recipe_of: (scene, group's tree) to its recipe, None where the group is not live; ClientError for a recipe that
            cannot be.
        folder: where results go, as the preferences have it.
    """

    def __init__(
        self,
        servers: Callable[[], Servers],
        recipe_of: Callable[[Any, Any], Recipe | None],
        folder: Callable[[], str] = str,
    ) -> None:
        self.groups: dict[tuple[str, str], Shown] = {}
        self._servers = servers
        self._recipe_of = recipe_of
        self._folder = folder

    @property
    def failed(self) -> dict[tuple[str, str], dict[int, str]]:
        """Frames that failed, by (scene, group)."""
        return {key: dict(shown.failed) for key, shown in self.groups.items() if shown.failed}

    def begin(self, scene: Any, _: Any = None) -> None:
        """A render begins: forget what failed in an earlier one."""
        for (name, _group), shown in self.groups.items():
            if name == scene.name:
                shown.failed.clear()

    def frame(self, scene: Any, _: Any = None) -> None:
        """Make the pictures of a scene's live groups for its current frame. Never raises a ClientError."""
        for node in nodes.groups(compositor_tree(scene, API, make=False)):
            tree = node.node_tree
            try:
                recipe = self._recipe_of(scene, tree)
            except ClientError as error:
                # what the group shows is not this frame's: say so, as for a frame that failed
                self._refuse(scene, tree, error)
                continue
            if recipe is not None:
                self._show(scene, tree, recipe)

    def close(self) -> None:
        """Let go of connections and shared memory."""
        for shown in self.groups.values():
            shown.live.close()
        self.groups.clear()

    def _show(self, scene: Any, tree: Any, recipe: Recipe) -> None:
        host, shown = self._of(scene, tree, recipe)
        frame = scene.frame_current
        shown.failed.pop(frame, None)
        try:
            clip = host.at(nodes.clip_id(tree), frame)
            if clip is None:
                host.clear(nodes.clip_id(tree))
                return
        except ClientError as error:
            self._slate(host, tree, shown, frame, error)
            return
        shown.live.sidecar = sidecar_of(host, clip)
        shown.last = shown.live.frame(clip, frame)
        if shown.last.error is not None:
            self._fail(tree, shown, frame, shown.last.error)

    def _of(self, scene: Any, tree: Any, recipe: Recipe) -> tuple[CompositorHost, Shown]:
        host = CompositorHost(scene.name, self._folder())
        key = (scene.name, tree.name)
        shown = self.groups.get(key)
        if shown is None:
            shown = self.groups[key] = Shown(Live(host, self._servers(), recipe), recipe)
        elif shown.recipe != recipe:
            shown.live.recipe = shown.recipe = recipe
        return host, shown

    def _refuse(self, scene: Any, tree: Any, error: ClientError) -> None:
        host, shown = self._of(scene, tree, Recipe(()))
        self._slate(host, tree, shown, scene.frame_current, error)

    def _slate(self, host: CompositorHost, tree: Any, shown: Shown, frame: int, error: ClientError) -> None:
        shown.last = LiveFrame(frame, "failed", error)
        self._fail(tree, shown, frame, error)
        try:
            host.slate(nodes.clip_id(tree))
        except ClientError as second:
            shown.failed[frame] = f"{error}; {second}"

    def _fail(self, tree: Any, shown: Shown, frame: int, error: ClientError) -> None:
        shown.failed[frame] = str(error)
        line = f"Faceplate: {tree.name}, frame {frame}: {error}\n  hint: {error.hint}"
        if bpy.app.background:
            sys.stderr.write(line + "\n")


def sidecar_of(host: CompositorHost, clip: Clip) -> Path | None:
    """What analysis found of the whole shot, where it was looked at: steadier than frames alone. Makes no folder."""
    project = host.project()
    if not clip.source or not clip_folder(project.folder, project.name, clip).is_dir():
        return None
    faces = faces_file(project.folder, project.name, clip, baked=False)
    return faces if faces.is_file() else None


class Handlers:
    """The effects in Blender's handlers, from `install` to `remove`.

    Blender 4.2 crashes and 4.5 hangs when a Python function is left in a handler at its end, so they are taken out
    there too.
    """

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._functions: list[tuple[Any, Any]] = []

    def install(self) -> None:
        """Put the functions in."""
        effects, lists = self._effects, bpy.app.handlers

        @persistent
        def faceplate_begin(scene: Any, *_: Any) -> None:
            effects.begin(scene)

        @persistent
        def faceplate_frame(scene: Any, *_: Any) -> None:
            effects.frame(scene)

        @persistent
        def faceplate_step(scene: Any, *_: Any) -> None:
            # while the artist steps through the shot; a render calls the one above
            if not bpy.app.background and not bpy.app.is_job_running("RENDER"):
                effects.frame(scene)

        wanted = (
            (lists.render_init, faceplate_begin),
            (lists.render_pre, faceplate_frame),
            (lists.frame_change_post, faceplate_step),
        )
        for functions, function in wanted:
            functions.append(function)
            self._functions.append((functions, function))
        atexit.register(self._end)

    def remove(self) -> None:
        """Take the functions out, and let go of the server."""
        atexit.unregister(self._end)
        for functions, function in self._functions:
            if function in functions:
                functions.remove(function)
        self._functions.clear()
        self._effects.close()

    def _end(self) -> None:
        failed = self._effects.failed
        self.remove()
        if bpy.app.background and failed:
            for (scene, group), frames in sorted(failed.items()):
                numbers = ", ".join(map(str, sorted(frames)))
                sys.stderr.write(f"Faceplate: {group} of {scene} shows a slate in frames {numbers}\n")
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(FAILED)  # the only way to tell: Blender itself ends with 0
