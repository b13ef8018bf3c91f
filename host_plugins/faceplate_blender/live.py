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

from faceplate_client.errors import ClientError, HostError
from faceplate_client.host import Clip
from faceplate_client.job_record import Recipe
from faceplate_client.live import Live, LiveFrame
from faceplate_client.result_folder import clip_folder, faces_file
from faceplate_client.task import Servers

from . import nodes
from .compositor import CompositorHost, compositor_tree
from .host import API, scene_names

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
        self._rendered: list[str] = []
        self._over = True
        self._unshown: dict[tuple[str, str], dict[int, str]] = {}

    @property
    def failed(self) -> dict[tuple[str, str], dict[int, str]]:
        """Frames that failed, by (scene, group)."""
        found = {key: dict(frames) for key, frames in self._unshown.items() if frames}
        for key, shown in self.groups.items():
            if shown.failed:
                found[key] = {**found.get(key, {}), **shown.failed}
        return found

    @property
    def failed_now(self) -> dict[str, dict[int, str]]:
        """Frames that failed in the last render, by group, those of scenes on its timeline too."""
        return {group: frames for (scene, group), frames in self.failed.items() if scene in self._rendered}

    def begin(self, scene: Any, _: Any = None) -> None:
        """A render begins: forget what failed in an earlier one.

        A scene on the timeline of the rendered one begins anew with each frame; what failed in it is forgotten once.
        """
        if self._over or self._rendered[0] == scene.name:
            self._rendered, self._over = [], False
        if scene.name in self._rendered:
            return
        self._rendered.append(scene.name)
        self._unshown = {key: frames for key, frames in self._unshown.items() if key[0] != scene.name}
        CompositorHost(scene.name).own_pictures()
        there = {node.node_tree.name for node in nodes.groups(compositor_tree(scene, API, make=False))}
        for name, group in list(self.groups):
            if name == scene.name and group in there:
                self.groups[name, group].failed.clear()
            elif name == scene.name or name not in scene_names():
                self.groups.pop((name, group)).live.close()  # renamed or deleted

    def end(self, scene: Any, _: Any = None) -> None:
        """A render is over, or was stopped."""
        if self._rendered[:1] == [scene.name]:
            self._over = True

    def frame(self, scene: Any, _: Any = None) -> None:
        """Make the pictures of a scene's live groups for its current frame. Raises nothing."""
        for node in nodes.groups(compositor_tree(scene, API, make=False)):
            tree = node.node_tree
            try:
                recipe = self._recipe_of(scene, tree)
                if recipe is not None:
                    self._show(scene, tree, recipe)
            except ClientError as error:
                # what the group shows is not this frame's: say so, as for a frame that failed
                self._refuse(scene, tree, error)
            except Exception as error:  # Blender would swallow it and show the frame before
                self._refuse(scene, tree, _unforeseen(tree, error))

    def close(self) -> None:
        """Let go of connections and shared memory."""
        for shown in self.groups.values():
            shown.live.close()
        self.groups.clear()

    def _show(self, scene: Any, tree: Any, recipe: Recipe) -> None:
        host, shown = self._of(scene, tree, recipe)
        frame = scene.frame_current
        shown.failed.pop(frame, None)
        self._unshown.get((scene.name, tree.name), {}).pop(frame, None)
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
        frame = scene.frame_current
        try:
            host, shown = self._of(scene, tree, Recipe(()))
            self._slate(host, tree, shown, frame, error)
        except Exception as second:  # no slate either: the exit code and the list still tell
            why = second if isinstance(second, ClientError) else _unforeseen(tree, second)
            self._unshown.setdefault((scene.name, tree.name), {})[frame] = f"{error}; {why}"
            _tell(tree, frame, why)

    def _slate(self, host: CompositorHost, tree: Any, shown: Shown, frame: int, error: ClientError) -> None:
        shown.last = LiveFrame(frame, "failed", error)
        self._fail(tree, shown, frame, error)
        try:
            host.slate(nodes.clip_id(tree))
        except (ClientError, RuntimeError, ReferenceError) as second:
            shown.failed[frame] = f"{error}; {second}"

    def _fail(self, tree: Any, shown: Shown, frame: int, error: ClientError) -> None:
        shown.failed[frame] = str(error)
        _tell(tree, frame, error)


def _unforeseen(tree: Any, error: Exception) -> HostError:
    return HostError(f"{tree.name} failed", found=f"{type(error).__name__}: {error}")


def _tell(tree: Any, frame: int, error: ClientError) -> None:
    if bpy.app.background:
        sys.stderr.write(f"Faceplate: {tree.name}, frame {frame}: {error}\n  hint: {error.hint}\n")


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
        def faceplate_end(scene: Any, *_: Any) -> None:
            effects.end(scene)

        @persistent
        def faceplate_step(scene: Any, *_: Any) -> None:
            # while the artist steps through the shot; a render calls the one above
            if not bpy.app.background and not bpy.app.is_job_running("RENDER"):
                CompositorHost(scene.name).own_pictures()
                effects.frame(scene)

        wanted = (
            (lists.render_init, faceplate_begin),
            (lists.render_pre, faceplate_frame),
            (lists.render_complete, faceplate_end),
            (lists.render_cancel, faceplate_end),
            (lists.frame_change_post, faceplate_step),
        )
        for functions, function in wanted:
            functions.append(function)
            self._functions.append((functions, function))
        atexit.register(self.end)

    def remove(self) -> None:
        """Take the functions out, and let go of the server.

        Blender's program disables all add-ons before Python ends, so what failed is still told then.
        """
        atexit.unregister(self.end)
        if bpy.app.background and self._effects.failed:
            atexit.register(_end_failed, self._effects.failed)
        for functions, function in self._functions:
            if function in functions:
                functions.remove(function)
        self._functions.clear()
        self._effects.close()

    def end(self) -> None:
        """At Blender's end: take them out, and say by the exit code of a render without interface what failed."""
        failed, background = self._effects.failed, bpy.app.background
        self.remove()
        if background and failed:
            _end_failed(failed)


def _end_failed(failed: dict[tuple[str, str], dict[int, str]]) -> None:
    """End the process; nothing of Blender may be used any more."""
    for (scene, group), frames in sorted(failed.items()):
        numbers = ", ".join(map(str, sorted(frames)))
        sys.stderr.write(f"Faceplate: {group} of {scene} shows a slate in frames {numbers}\n")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(FAILED)  # the only way to tell: Blender itself ends with 0
