# SPDX-License-Identifier: GPL-3.0-or-later
"""Render timelines without interface: first what strips and groups of Faceplate need, then every frame to EXR.

The .blend file is never saved. A frame is rendered beside its place and moved there when it is whole; the state file
says which frames are done and what they were made from, so that a second run renders what is missing, failed or no
longer true. `render_timeline.py` is the way in.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bpy

from faceplate_client import actions
from faceplate_client.errors import BadFrames, ClientError, HostError, NoClips
from faceplate_client.frame_maths import as_text, from_text
from faceplate_client.host import Host, Scope
from faceplate_client.outcome import BatchOutcome, Manner
from faceplate_client.result_folder import safe_name
from faceplate_client.task import Servers, Session

from . import nodes
from .compositor import CompositorHost, compositor_tree
from .host import API, BlenderHost
from .live import Effects, sidecar_of
from .placing import file_of
from .render_state import EXTENSION, HALF, State, alone_in
from .settings import recipe_of

Tell = Callable[[dict[str, Any]], None]
MIN_FRAME, MAX_FRAME = 0, 1048574
"""What Blender renders."""


@dataclass(frozen=True)
class Order:
    """What is asked for.

    Attributes:
        scenes: names; none for the one that the file was saved with.
        frames: as "1-100,120"; "" for each scene's range.
        output: pattern of the frames with "####", or a folder; "" for `faceplate/NAME/render/` beside the file.
        folder: of Faceplate's own results; "" for the scene's.
        again: render frames too that are done.
        bake_only: make the results and render nothing.
    """

    scenes: tuple[str, ...] = ()
    frames: str = ""
    output: str = ""
    folder: str = ""
    again: bool = False
    bake_only: bool = False


@dataclass
class SceneReport:
    """How a scene went.

    Attributes:
        scene: name.
        pattern: of the frames.
        outcome: of the strips and groups; None where there was nothing of Faceplate's.
        done: frames rendered now.
        kept: frames that were done before.
        failed: frames that failed, with the reason; their files show a slate where there are any.
        cancelled: whether it was stopped.
    """

    scene: str
    pattern: str
    outcome: BatchOutcome | None = None
    done: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    failed: dict[int, str] = field(default_factory=dict)
    cancelled: bool = False

    @property
    def exit_code(self) -> int:
        """0 done, 1 frames or clips failed, 130 stopped."""
        if self.cancelled or (self.outcome is not None and self.outcome.exit_code == 130):
            return 130
        return 1 if self.failed or (self.outcome is not None and self.outcome.exit_code) else 0

    def to_json(self) -> dict[str, Any]:
        """For the report."""
        return {
            "scene": self.scene,
            "pattern": self.pattern,
            "done": as_text(self.done),
            "kept": as_text(self.kept),
            "failed": {str(frame): text for frame, text in sorted(self.failed.items())},
            "cancelled": self.cancelled,
            "clips": None if self.outcome is None else self.outcome.to_json(),
        }


class Batch:
    """One run.

    Args:
        order: what is asked for.
        servers: which server.
        effects: the live groups' handlers' own.
        tell: told each step, as JSON values.
        stopped: asked between frames.
    """

    def __init__(
        self, order: Order, servers: Servers, effects: Effects, tell: Tell, stopped: Callable[[], bool]
    ) -> None:
        self._order = order
        self._servers = servers
        self._effects = effects
        self._tell = tell
        self._stopped = stopped

    def run(self) -> list[SceneReport]:
        """All scenes.

        Raises:
            HostError, BadFrames: the order cannot be, nothing was done; or no identity is chosen for marked strips of a
                scene, which was not rendered.
            ConnectionFailed: no server, where one is needed; nothing was rendered.
        """
        names = self._order.scenes or (bpy.context.scene.name,)
        if unknown := [name for name in names if name not in bpy.data.scenes]:
            there = ", ".join(scene.name for scene in bpy.data.scenes)
            raise HostError(f"the file has no scene {unknown[0]!r}", expected=there, hint="give --scene one of these")
        if len(names) > 1 and EXTENSION in self._order.output:
            raise HostError(
                "several scenes need a folder each", found=self._order.output, hint="give a folder as output"
            )
        if asked := from_text(self._order.frames):
            _check_frames(asked)
        reports = []
        for name in names:
            reports.append(self._scene(bpy.data.scenes[name]))
            if reports[-1].cancelled:
                break
        return reports

    def _scene(self, scene: Any) -> SceneReport:
        report = SceneReport(scene.name, self._pattern(scene))
        report.outcome = self._results(scene)
        if report.outcome is not None and report.outcome.exit_code == 130:
            report.cancelled = True
        elif not self._order.bake_only:
            self._render(scene, report)
        return report

    # Faceplate's own results

    def _results(self, scene: Any) -> BatchOutcome | None:
        """Strips that are marked or have a result, then groups that read one."""
        strips = BlenderHost(scene.name, self._order.folder, self._shown(scene.name))
        groups = CompositorHost(scene.name, self._order.folder, self._shown(scene.name))
        clips: list[Any] = []
        if scene.sequence_editor is not None:
            before = strips.results()
            marked = {clip.id for clip in strips.clips(Scope.MARKED)}
            recipe = None
            if marked - {one.clip_id for one in before}:  # the others have their own
                recipe = recipe_of(scene.faceplate, strips.keyed_settings())
            clips += self._act(strips, lambda session: actions.batch(session, Scope.MARKED, recipe, _MANNER))
            placed = [one for one in before if one.clip_id not in marked]
            if placed:
                clips += self._act(strips, lambda session: actions.refresh(session, placed, None, _MANNER))
        read = groups.results()
        if read:
            clips += self._act(groups, lambda session: actions.refresh(session, read, None, _MANNER))
        return BatchOutcome(tuple(clips)) if clips else None

    def _act(self, host: Host, action: Callable[[Session], BatchOutcome]) -> list[Any]:
        session = Session(host, self._servers)
        try:
            return list(action(session).clips)
        except NoClips:
            return []

    def _shown(self, scene: str) -> Callable[[Any], bool]:
        def show(progress: Any) -> bool:
            if progress is not None:
                told = {"step": progress.step, "done": progress.done, "total": progress.total, "clip": progress.clip}
                self._tell({"event": "progress", "scene": scene, **told})
            return not self._stopped()

        return show

    # Frames

    def _render(self, scene: Any, report: SceneReport) -> None:
        settings(scene)
        folder = os.path.dirname(report.pattern)
        with alone_in(folder):
            self._frames(scene, report)

    def _frames(self, scene: Any, report: SceneReport) -> None:
        state = State.load(report.pattern, inputs(scene, report.outcome, self._order.folder))
        wanted = from_text(self._order.frames) or tuple(range(scene.frame_start, scene.frame_end + 1, scene.frame_step))
        for number, frame in enumerate(wanted, start=1):
            if self._stopped():
                report.cancelled = True
                return
            path = file_of(report.pattern, frame)
            if not self._order.again and frame in state.done and os.path.isfile(path):
                report.kept.append(frame)
                continue
            started = time.monotonic()
            failure = self._frame(scene, frame, path)
            state = state.with_frame(frame, failed=bool(failure))
            if failure:
                report.failed[frame] = failure
            else:
                report.done.append(frame)
            self._tell(
                {
                    "event": "frame",
                    "scene": scene.name,
                    "frame": frame,
                    "number": number,
                    "of": len(wanted),
                    "state": "failed" if failure else "done",
                    "error": failure or None,
                    "file": path,
                    "seconds": round(time.monotonic() - started, 3),
                }
            )

    def _frame(self, scene: Any, frame: int, path: str) -> str:
        """Render one frame; why it failed, "" where it did not."""
        folder = os.path.dirname(path)
        scene.frame_start = scene.frame_end = frame
        scene.render.filepath = os.path.join(folder, f"{HALF}{os.getpid()}-####{EXTENSION}")
        made = scene.render.frame_path(frame=frame)
        try:
            if bpy.ops.render.render(animation=True, scene=scene.name, **API.render) != {"FINISHED"}:
                return "Blender did not render it"
            os.replace(made, path)
        except (RuntimeError, OSError) as error:
            return str(error).strip()
        finally:
            if os.path.exists(made):
                os.remove(made)
        failed = self._effects.failed_now.items()
        return "; ".join(f"{group}: {text}" for group, frames in failed for text in frames.values())

    def _pattern(self, scene: Any) -> str:
        output, name = self._order.output, safe_name(scene.name)
        if output.endswith(EXTENSION):
            if "#" not in os.path.basename(output):
                raise BadFrames("the output needs a place for the frame number", expected="out.####.exr", found=output)
            return os.path.abspath(output)
        if not output:
            file = bpy.data.filepath
            output = str(Path(file).parent / "faceplate" / safe_name(Path(file).stem) / "render")
        folder = os.path.join(os.path.abspath(output), name) if len(self._order.scenes) > 1 else os.path.abspath(output)
        return os.path.join(folder, f"{name}.####{EXTENSION}")


_MANNER = Manner(lasting=False)


def _check_frames(frames: tuple[int, ...]) -> None:
    if frames[0] < MIN_FRAME or frames[-1] > MAX_FRAME:
        raise BadFrames(
            "Blender does not render such frames",
            expected=f"{MIN_FRAME} to {MAX_FRAME}",
            found=str(frames[0] if frames[0] < MIN_FRAME else frames[-1]),
        )


def settings(scene: Any) -> None:
    """EXR, lossless, RGBA; as deep as the scene's own EXR setting, else half. Nothing that changes pixels.

    The files say nothing of when and how fast they were made, so that a frame rendered again has the same bytes; where
    the scene writes that into the picture, it stays.
    """
    render = scene.render
    if not render.use_stamp:
        for name in ("date", "render_time", "memory", "hostname"):
            setattr(render, f"use_stamp_{name}", False)
    image = render.image_settings
    depth = image.color_depth if image.file_format == "OPEN_EXR" else "16"
    if API.media_type:
        image.media_type = "IMAGE"
    image.file_format, image.color_mode, image.color_depth, image.exr_codec = "OPEN_EXR", "RGBA", depth, "ZIP"
    render.use_overwrite, render.use_placeholder, render.use_file_extension = True, False, True
    if hasattr(render, "compositor_device"):
        render.compositor_device = "CPU"


def inputs(scene: Any, outcome: BatchOutcome | None, folder: str) -> str:
    """A hash of what the frames are made from: the file, Blender, and every picture that strips and nodes show."""
    known = hashlib.sha256()
    known.update(json.dumps([bpy.app.version_string, scene.name, _stamp(bpy.data.filepath)]).encode())
    for path in sorted(set(_media(folder))):
        known.update(json.dumps([path, _stamp(path)]).encode())
    for clip in outcome.clips if outcome is not None else ():
        known.update(json.dumps([clip.clip, clip.record.id if clip.record else None, sorted(clip.failed)]).encode())
    return known.hexdigest()


def _stamp(path: str) -> list[int]:
    try:
        found = os.stat(path)
    except OSError:
        return []
    return [found.st_size, found.st_mtime_ns]


def _media(folder: str) -> Iterator[str]:
    """Files of all scenes, since one may be a strip of another."""
    for scene in bpy.data.scenes:
        if scene.sequence_editor is not None:
            for strip, _ in API.walk(scene.sequence_editor):
                if strip.type == "IMAGE":
                    yield from (os.path.join(_path(scene, strip.directory), one.filename) for one in strip.elements)
                elif strip.type == "MOVIE":
                    yield _path(scene, strip.filepath)
        yield from _of_groups(scene, folder)
    for data in (*bpy.data.images, *bpy.data.movieclips):
        if data.filepath and data.source in ("SEQUENCE", "TILED"):
            yield from _siblings(_path(data, data.filepath))
        elif data.filepath:
            yield _path(data, data.filepath)
    for one in (*bpy.data.libraries, *bpy.data.fonts, *bpy.data.volumes, *bpy.data.cache_files):
        yield _path(one, one.filepath)


def _of_groups(scene: Any, folder: str) -> Iterator[str]:
    host = CompositorHost(scene.name, folder)
    for group in nodes.groups(compositor_tree(scene, API, make=False)):
        tree = group.node_tree
        if tree.faceplate.identity:
            yield _path(tree, tree.faceplate.identity)
        try:
            faces = sidecar_of(host, host.clip(nodes.clip_id(tree)))
        except ClientError:
            continue  # a plate that cannot be: its frames fail, and failed ones are rendered again
        if faces is not None:
            yield str(faces)


def _path(owner: Any, path: str) -> str:
    return str(os.path.normpath(bpy.path.abspath(path, library=owner.library)))


def _siblings(path: str) -> Iterator[str]:
    """Files of a sequence, or of tiles: names that differ in digits only."""
    folder, name = os.path.split(path.replace("<UDIM>", "1001"))
    wanted = re.sub("[0-9]+", "#", name)
    for found in os.listdir(folder) if os.path.isdir(folder) else ():
        if re.sub("[0-9]+", "#", found) == wanted:
            yield os.path.join(folder, found)
