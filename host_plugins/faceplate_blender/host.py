# SPDX-License-Identifier: GPL-3.0-or-later
"""The open scene as the actions see it: `faceplate_client.host.Host` for one scene of Blender.

With `baking.py` the only file that reads or changes Blender's data or calls its operators for it. Everything goes
through the data API: operators of the sequencer crash without a window. Scene and strips are looked up by name at
every call, since undo replaces the objects behind them.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import bpy

from faceplate_client.errors import CannotDo, ClipGone, HostError, PlaceFailed
from faceplate_client.frame_maths import Span
from faceplate_client.host import Clip, Feature, HostAbout, Placed, PlaceMode, Progress, Project, Result, Scope, Tag
from faceplate_client.slot_header import FrameHeader

from . import baking, colours, placing, strips
from .shim import Api, api_of

_KEYED = re.compile(r'sequence_editor\.(?:strips|sequences)_all\["((?:[^"\\]|\\.)*)"\]\.(\w+)')

API = api_of(bpy.app.version)


class BlenderHost:
    """One scene's sequencer.

    Args:
        scene: name of the scene.
        folder: where results go, as the preferences have it; "" for beside the .blend file.
        listener: told how far an action is; False from it asks to stop.
    """

    def __init__(self, scene: str, folder: str = "", listener: Callable[[Progress | None], bool] | None = None) -> None:
        self.scene_name = scene
        self.folder = folder
        self.listener = listener
        self.api: Api = API

    # What there is

    def about(self) -> HostAbout:
        """Blender and its version."""
        version = ".".join(map(str, bpy.app.version))
        features = frozenset({Feature.BAKE, Feature.PLACE_AGAIN, Feature.UNDO})
        return HostAbout("blender", version, features, (PlaceMode.ABOVE,))

    def project(self) -> Project:
        """The scene; see `Host.project`."""
        scene = self._scene()
        file = bpy.data.filepath
        render = scene.render
        return Project(
            id=f"{file or 'untitled'}:{scene.name}",
            name=f"{Path(file).stem or 'untitled'} {scene.name}",
            folder=self._folder(file),
            frames=Span(scene.frame_start, max(scene.frame_end, scene.frame_start)),
            fps=render.fps / render.fps_base,
            working_space=working_space(self.api),
        )

    def _folder(self, file: str) -> Path:
        if self.folder:
            return Path(bpy.path.abspath(self.folder))
        return (Path(file).parent if file else Path.home()) / "faceplate"

    def clips(self, scope: Scope) -> tuple[Clip, ...]:
        """Movie and image strips; when they are selected, meta, scene and clip strips too, which are baked."""
        reader = self._reader()
        chosen = []
        for strip, owner in self.api.walk(self._editor()):
            if strips.is_result(strip) or strip.type not in (*strips.FILES, *strips.RENDERED):
                continue
            if scope is Scope.SELECTED:
                wanted = strip.select and owner == self._shown_level()
            else:
                wanted = strip.type in strips.FILES and (not strip.mute or strips.JOB in strip)
                wanted = wanted and (scope is Scope.ALL or bool(strip.get(strips.BATCH)))
            if wanted:
                chosen.append(strip)
        chosen.sort(key=lambda strip: (self.api.visible(strip)[0], strip.channel))
        return tuple(reader.clip(strip) for strip in chosen)

    def readable(self) -> tuple[Clip, ...]:
        """All clips, so far as they can be read: one that cannot hides no other."""
        found = []
        for clip_id in self._all_ids():
            with suppress(HostError):
                found.append(self.clip(clip_id))
        return tuple(found)

    def _all_ids(self) -> list[str]:
        editor = self._scene().sequence_editor
        shown = () if editor is None else (strip for strip, _ in self.api.walk(editor))
        files = (one for one in shown if one.type in strips.FILES and (not one.mute or strips.JOB in one))
        return [strips.clip_id(one) for one in files if not strips.is_result(one)]

    def clip(self, clip_id: str, view: str = "") -> Clip:
        """The clip as it is now; see `Host.clip`."""
        return self._reader().clip(self._strip(clip_id))

    def active_clip(self) -> Clip | None:
        """The active strip's clip, that of its source where it is a result; None where it has no picture."""
        editor = self._scene().sequence_editor
        strip = None if editor is None else editor.active_strip
        if strip is not None and strips.is_result(strip):
            strip = placing.source_of(self.api, editor, strip)
        if strip is None or strip.type not in (*strips.FILES, *strips.RENDERED):
            return None
        return self._reader().clip(strip)

    def selected_ids(self) -> frozenset[str]:
        """Ids of the selected strips."""
        return frozenset(strips.clip_id(strip) for strip, _ in self.api.walk(self._editor()) if strip.select)

    def mark_selected(self) -> tuple[int, bool]:
        """Mark the selected strips for batches, or unmark them where all are marked: how many, and which."""
        chosen = [self._strip(clip.id) for clip in self.clips(Scope.SELECTED)]
        marked = not all(strip.get(strips.BATCH) for strip in chosen)
        for strip in chosen:
            strip[strips.BATCH] = marked
        return len(chosen), marked

    def keyed_settings(self) -> dict[str, tuple[tuple[int, float], ...]]:
        """Values of the animated settings by timeline frame, over all that the scene or its strips cover."""
        scene = self._scene()
        ends = [scene.frame_start, scene.frame_end]
        for strip, _ in self.api.walk(self._editor()):
            ends += self.api.visible(strip)
        return self._keyed(scene, Span(min(ends), max(ends)))

    def results(self, job: str | None = None) -> tuple[Placed, ...]:
        """Result strips; see `Host.results`."""
        editor = self._scene().sequence_editor
        if editor is None:
            return ()
        found = [strip for strip, _ in self.api.walk(editor) if strips.is_result(strip)]
        return tuple(self._placed(strip) for strip in found if job in (None, strip[strips.JOB]))

    # What is changed

    def bake(self, clip: Clip, frames: Span, pattern: str) -> Generator[int, None, None]:
        """Render the strip alone; see `Host.bake`."""
        animated = frozenset(self._reader().animated)
        name = self._strip(clip.id).name
        yield from baking.bake(self.api, self.scene_name, name, clip.processed, animated, frames, pattern)

    def place(self, clip: Clip, result: Result) -> Placed:
        """A strip above the source; see `Host.place`."""
        strip = placing.place(self.api, self._editor(), self._strip(clip.id), clip, result)
        return self._placed(strip)

    def reload(self, placed: Placed) -> None:
        """Show files that were written anew; see `Host.reload`."""
        strip = self._strip(placed.id)
        strip.directory = strip.directory  # drops what Blender keeps of its files
        strip.invalidate_cache("RAW")

    def remove(self, placed: Placed) -> None:
        """Take a result out; see `Host.remove`."""
        try:
            placing.remove(self.api, self._editor(), self._strip(placed.id))
        except ClipGone as error:
            raise PlaceFailed(f"the result {placed.id} is not in the scene any more") from error

    @contextmanager
    def undo_step(self, name: str) -> Iterator[None]:
        """One step of Blender's undo; the operators therefore push none of their own.

        A step is pushed before too: what a script changed since the last one would otherwise go with it.
        """
        bpy.ops.ed.undo_push(message=f"Before {name}")
        try:
            yield
        finally:
            bpy.ops.ed.undo_push(message=name)

    def show(self, progress: Progress | None) -> bool:
        """Pass on to the operator that waits; see `Host.show`."""
        return True if self.listener is None else self.listener(progress)

    # What strips cannot do

    def layout(self, clip: Clip) -> FrameHeader:
        """Not a feature of strips."""
        raise _no_pixels(clip)

    def read_pixels(self, clip: Clip, into: memoryview) -> None:
        """Not a feature of strips."""
        raise _no_pixels(clip)

    def result_layout(self, clip: Clip) -> FrameHeader:
        """Not a feature of strips."""
        raise _no_pixels(clip)

    def show_pixels(self, clip: Clip, header: FrameHeader, pixels: memoryview) -> None:
        """Not a feature of strips."""
        raise _no_pixels(clip)

    # Within

    def _scene(self) -> Any:
        # a linked scene may have the same name
        scene = bpy.data.scenes.get((self.scene_name, None)) or bpy.data.scenes.get(self.scene_name)
        if scene is None:
            raise HostError(f"there is no scene {self.scene_name!r} any more", hint="open the scene and apply again")
        return scene

    def _editor(self) -> Any:
        scene = self._scene()
        if scene.library is not None:
            raise HostError(
                f"scene {scene.name!r} is linked from {scene.library.filepath}, which is never changed from here",
                hint="open that file, or make the scene local",
            )
        editor = scene.sequence_editor
        if editor is None:
            raise HostError(f"scene {self.scene_name!r} has no strips", hint="add a movie or image strip first")
        return editor

    def _shown_level(self) -> Any:
        """What the sequencer shows: the inside of a meta strip that was entered, else the top."""
        editor = self._editor()
        return editor.meta_stack[-1] if len(editor.meta_stack) else editor

    def _strip(self, identity: str) -> Any:
        name = identity.partition(":")[2]
        for strip, _ in self.api.walk(self._editor()):
            if strip.name == name:
                return strip
        raise ClipGone(f"there is no strip {name!r} in scene {self.scene_name!r}")

    def _reader(self) -> strips.Reader:
        scene = self._scene()
        return strips.Reader(
            api=self.api,
            fps=scene.render.fps / scene.render.fps_base,
            studio=bool(os.environ.get("OCIO")),
            absolute=lambda path: os.path.normpath(bpy.path.abspath(path, library=scene.library)),
            animated=_animated(self.api, scene),
        )

    def _keyed(self, owner: Any, frames: Span) -> dict[str, tuple[tuple[int, float], ...]]:
        """Values of the animated settings of a scene or group, by timeline frame."""
        data = owner.animation_data
        curves = [] if data is None or data.action is None else list(self.api.fcurves(data.action))
        prefix = f"{strips.SETTINGS}."
        return {
            curve.data_path[len(prefix) :]: strips.keys_of(curve.evaluate, frames)
            for curve in curves
            if curve.data_path.startswith(prefix)
        }

    def _placed(self, strip: Any) -> Placed:
        source = placing.source_of(self.api, self._editor(), strip)
        tag = Tag(strip[strips.JOB], strip[strips.RECORD])
        record = Path(strip[strips.RECORD])
        first = next(iter(strip.elements)).filename
        pattern = strips.pattern_of([element.filename for element in strip.elements])
        folder = os.path.normpath(bpy.path.abspath(strip.directory)) if strip.directory else str(record.parent)
        return Placed(
            id=strips.clip_id(strip),
            clip_id="" if source is None else strips.clip_id(source),
            view="",
            tag=tag,
            pattern=os.path.join(folder, pattern[0] if pattern else first),
            timeline=Span(*self.api.visible(strip)),
        )


def scene_of(context: Any) -> Any:
    """The scene whose sequencer the artist works in: from 5.0 on not always the window's."""
    return getattr(context, "sequencer_scene", None) or context.scene


def scene_names() -> list[str]:
    """Names of the file's scenes."""
    return [scene.name for scene in bpy.data.scenes]


def only_movie_clip() -> Any:
    """The file's movie clip where it has just one, else None."""
    clips = bpy.data.movieclips
    return clips[0] if len(clips) == 1 else None


def working_space(api: Api) -> str:
    """The scene-linear space of Blender's own pixels, as the server knows it.

    Raises:
        HostError: a space that the server has no name for.
    """
    if api.working_space:
        return str(bpy.data.colorspace.working_space_interop_id or bpy.data.colorspace.working_space)
    name = scene_linear()
    space = colours.to_server(name, studio=bool(os.environ.get("OCIO")))
    if space is None:
        raise HostError(f"the working space {name!r} is not known to the server", hint="set $OCIO for both")
    return space


@functools.lru_cache(maxsize=1)
def scene_linear() -> str:
    """Before Blender 5.0: the configuration's scene_linear role, which a new float image is in.

    Once for the whole session, and in a window before anything is rendered (`warm`): live frames ask for it on the
    render's thread, and an image that comes and goes there, while the window draws, ends Blender.
    """
    image = bpy.data.images.new("faceplate", 1, 1, float_buffer=True)
    name = str(image.colorspace_settings.name)
    bpy.data.images.remove(image)
    return name


def warm() -> None:
    """For a timer: learn on the main thread what live frames ask for."""
    if not API.working_space:
        scene_linear()


def _animated(api: Api, scene: Any) -> dict[str, frozenset[str]]:
    data = scene.animation_data
    if data is None:
        return {}
    curves = list(api.fcurves(data.action)) if data.action is not None else []
    found: dict[str, set[str]] = {}
    for curve in (*curves, *data.drivers):
        path = _KEYED.match(curve.data_path)
        if path:
            name = path[1].replace('\\"', '"').replace("\\\\", "\\")
            found.setdefault(name, set()).add(path[2])
    return {name: frozenset(values) for name, values in found.items()}


def _no_pixels(clip: Clip) -> CannotDo:
    return CannotDo(f"the pixels of strip {clip.name!r} cannot be reached", hint="apply writes files and places them")
