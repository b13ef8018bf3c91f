# SPDX-License-Identifier: Apache-2.0
"""The open script as the actions see it: `faceplate_client.host.Host` for the Faceplate groups of a script.

Beside `application.py` the only file that imports `nuke`. A group is a clip, one for each view that it does. Everything
is called on Nuke's main thread, never from a callback of a knob or a render, where Nuke refuses to execute and to edit.
A group that an action works for is kept hold of, so that it may be renamed; others are looked up by name at every call.
A node that was deleted raises on any touch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn, cast

import nuke

from faceplate_client.errors import BadClip, BadFrames, CannotDo, ClipGone, HostError, PlaceFailed, RecordDamaged
from faceplate_client.frame_maths import Span
from faceplate_client.host import Clip, Feature, HostAbout, Placed, PlaceMode, Progress, Project, Result, Scope
from faceplate_client.job_record import Recipe, load
from faceplate_client.slot_header import FrameHeader

from . import colours, graph, knobs, placing, rendering, scratch
from .api import Node
from .application import script_file, surroundings, unrecorded
from .files import awkward_sign

RUNNING = "running"
"""What the state of a group begins with while an action works for it."""


class NukeHost:
    """The Faceplate groups of the open script.

    Args:
        listener: told how far an action is; False from it asks to stop.
    """

    def __init__(self, listener: Callable[[Progress | None], bool] | None = None) -> None:
        self.listener = listener
        self._cancelled = False
        self._held: dict[str, Node] = {}
        self._made: dict[tuple[str, str], str] = {}

    # What there is

    def about(self) -> HostAbout:
        """Nuke and its version; a terminal has no undo."""
        features = {Feature.BAKE, Feature.UNDO} if nuke.GUI else {Feature.BAKE}
        return HostAbout("nuke", nuke.NUKE_VERSION_STRING, frozenset(features), (PlaceMode.NODE,))

    def project(self) -> Project:
        """The script; see `Host.project`."""
        around = surroundings()
        script = script_file()
        space = colours.working_space(around.colour)
        if space is None:
            raise HostError(
                f"the working space {around.colour.working!r} is not known to the server",
                found=around.colour.text,
                hint="set $OCIO for Nuke and for the server, or choose a configuration that comes with Nuke",
            )
        first = int(around.root.firstFrame())
        return Project(
            id=str(script) if script else "untitled",
            name=script.stem if script else "untitled",
            folder=(script.parent if script else Path.home()) / "faceplate",
            frames=Span(first, max(first, int(around.root.lastFrame()))),
            fps=around.fps,
            working_space=space,
        )

    def clips(self, scope: Scope) -> tuple[Clip, ...]:
        """The groups that something is wired into, then their views."""
        around = surroundings()
        return tuple(
            graph.clip_of(group, view, around)
            for group in self._groups()
            if group.input(0) is not None and (scope is not Scope.SELECTED or bool(group["selected"].value()))
            for view in graph.views_of(group, around.views)
        )

    def clip(self, clip_id: str, view: str = "") -> Clip:
        """The group as it is now; one that was renamed is found by its result. See `Host.clip`."""
        around = surroundings()
        group = self._group(clip_id)
        if view not in graph.views_of(group, around.views):
            raise ClipGone(f"{clip_id} does not do the view {view or 'of a script with one view'!r} any more")
        return graph.clip_of(group, view, around)

    def begin(self, clip_id: str) -> None:
        """An action begins to work for a group: it may be renamed from now on, and what it is now is what the result is
        made from, whatever the artist changes meanwhile.

        Raises:
            ClipGone, BadClip: it cannot be worked for.
        """
        group, around = self._group(clip_id), surroundings()
        locked = graph.locked_in(around.root, group.fullName())
        if locked:
            raise BadClip(f"{clip_id} cannot take a result", hint=locked)
        self._held[clip_id] = group
        for view in graph.views_of(group, around.views):
            self._made[clip_id, view] = graph.fingerprint(group, view, around)

    def group_names(self) -> list[str]:
        """Full names of all groups, those without an input too."""
        return [group.fullName() for group in self._groups()]

    def views(self, clip_id: str) -> tuple[Clip, ...]:
        """All views that a group does."""
        return tuple(self.clip(clip_id, view) for view in graph.views_of(self._group(clip_id), surroundings().views))

    def recipe(self, clip_id: str, frames: Span) -> Recipe:
        """What the artist set, sampled over `frames` where it is animated.

        Raises:
            ClipGone: the group is gone.
            BadClip: no identity is chosen.
        """
        return knobs.recipe_of(self._group(clip_id), frames)

    def handles(self, clip_id: str) -> tuple[int, bool]:
        """Frames more at either end, and whether the input is to be rendered by Nuke in any case."""
        group = self._group(clip_id)
        return knobs.number(group, knobs.HANDLES), bool(group[knobs.RENDER_INPUT].value())

    def results(self, job: str | None = None) -> tuple[Placed, ...]:
        """Groups that read a result, by view."""
        return tuple(
            placing.placed_of(group, view, one)
            for group in self._groups()
            for view, one in sorted(knobs.results_of(group).items())
            if job in (None, one["job"])
        )

    def folder(self, clip_id: str) -> Path | None:
        """The cache folder that the artist chose, None for the script's.

        Raises:
            BadClip: it is no absolute path, or Nuke cannot read files in the folder that results would go to.
        """
        said = knobs.text(self._group(clip_id), knobs.FOLDER)
        if said and not os.path.isabs(said):
            raise BadClip("the cache folder has to be a full path", found=said, hint="or leave it empty")
        folder = Path(said) if said else self.project().folder
        sign = awkward_sign(str(folder))
        if sign is not None:
            raise BadClip(
                f"results cannot lie in {folder}: Nuke takes a {sign} in the name of a file for something else",
                hint="choose a Cache Folder without such signs in the group, under More",
            )
        return Path(said) if said else None

    def bakes(self, clip: Clip, results: Path) -> Path:
        """Where to render a clip for the server: in memory where that has room."""
        group = self._group(clip.id)
        width, height = clip.size
        source = group.input(0)
        if source is not None and str(group[knobs.WINDOW].value()) == knobs.KEEP:
            box = cast(Any, source).bbox()
            width, height = max(width, int(box.w())), max(height, int(box.h()))
        deep = 2 if str(group[knobs.DEPTH].value()) == "half" else 4
        channels = len(source.channels()) if source is not None else 0
        frames = len(clip.timeline) * len(graph.views_of(group, surroundings().views))
        return scratch.bakes_folder((width, height), frames, deep, results, channels)

    def state(self, clip_id: str) -> str:
        """The state of a group in words."""
        return graph.state_of(self._group(clip_id), surroundings())

    # What is changed

    def bake(self, clip: Clip, frames: Span, pattern: str) -> Generator[int, None, None]:
        """Render the input of the group; see `Host.bake`."""
        group = self._group(clip.id)
        root = surroundings().root

        def execute(node: Node, first: int, last: int, step: int, views: list[str]) -> None:
            if views:
                nuke.execute(cast(nuke.Node, node), first, last, step, views)
            else:
                nuke.execute(cast(nuke.Node, node), first, last, step)

        yield from rendering.render(group, root, clip.view, frames, pattern, execute, unrecorded, self._stop)

    def _stop(self) -> None:
        self._cancelled = True

    def place(self, clip: Clip, result: Result) -> Placed:
        """Files into the group; see `Host.place`."""
        group, around = self._group(clip.id), surroundings()
        try:
            placed = placing.place(
                group,
                clip,
                result,
                views=around.views,
                working=colours.working_space(around.colour) or "",
                made=self._made_from(group, clip.id, clip.view, around),
                failed=_failed(result.tag.record),
                constant=nuke.CONSTANT,
            )
            group[knobs.COLOUR].setValue(around.colour.text)
            group[knobs.STATE].setValue(graph.state_of(group, around))
        except (RuntimeError, ValueError, NameError, TypeError) as error:
            raise PlaceFailed(f"Nuke did not take the result of {clip.name!r}", found=str(error).strip()) from error
        return placed

    def _made_from(self, group: Node, clip_id: str, view: str, around: graph.Surroundings) -> str:
        made = self._made.get((clip_id, view))
        return graph.fingerprint(group, view, around) if made is None else made

    def reload(self, placed: Placed) -> None:
        """Read files that were written anew; they were made from what the group is now."""
        group, around = self._group(placed.clip_id), surroundings()
        results = knobs.results_of(group)
        one = results[placed.view]
        one["made"] = self._made_from(group, placed.clip_id, placed.view, around)
        one["failed"] = _failed(placed.tag.record)
        knobs.set_results(group, results)
        group[knobs.STATE].setValue(graph.state_of(group, around))
        self.read_again(placed.clip_id)

    def read_again(self, clip_id: str) -> None:
        """Drop what Nuke keeps of the result's files."""
        placing.inside(self._group(clip_id), "Result")["reload"].execute()

    def remove(self, placed: Placed) -> None:
        """Take a result out; see `Host.remove`."""
        try:
            group = self._group(placed.clip_id)
        except ClipGone as error:
            raise PlaceFailed(f"the group {placed.clip_id} is not in the script any more") from error
        around = surroundings()
        placing.remove(group, placed.view, around.views)
        group[knobs.STATE].setValue(graph.state_of(group, around))
        if not knobs.results_of(group):
            group[knobs.COLOUR].setValue("")

    def set_state(self, clip_id: str, words: str) -> None:
        """Show how a group is in its label; no step of undo. Nothing happens where it is gone, or while Nuke renders:
        it refuses all changes then, and the next word comes soon."""
        with suppress(ClipGone, RuntimeError), unrecorded():
            group = self._group(clip_id)
            group[knobs.STATE].setValue(words)
            group.redraw()

    @contextmanager
    def undo_step(self, name: str) -> Iterator[None]:
        """One step of Nuke's undo; the labels are at rest before it, since undo brings them back.

        Raises:
            PlaceFailed: Nuke renders, and lets nothing be changed meanwhile.
        """
        try:
            around = surroundings()
            with unrecorded():
                for group in self._groups():
                    if str(group[knobs.STATE].value()).startswith(RUNNING):
                        group[knobs.STATE].setValue(graph.state_of(group, around))
            nuke.Undo.begin(name)
        except RuntimeError as error:
            raise PlaceFailed(
                "Nuke lets nothing be changed in the script now",
                found=str(error).strip(),
                hint="let it render or stop it, then the same again: what is done is not done twice",
            ) from error
        try:
            yield
        finally:
            nuke.Undo.end()

    def show(self, progress: Progress | None) -> bool:
        """Pass on to who waits; False where the artist stopped that or Nuke's own meter."""
        going = True if self.listener is None else self.listener(progress)
        cancelled, self._cancelled = self._cancelled, False
        return going and not cancelled

    # What Nuke's Python cannot do: no script reaches the pixels of a node

    def layout(self, clip: Clip) -> FrameHeader:
        """Not a feature."""
        _no_pixels(clip)

    def read_pixels(self, clip: Clip, into: memoryview) -> None:
        """Not a feature."""
        _no_pixels(clip)

    def result_layout(self, clip: Clip) -> FrameHeader:
        """Not a feature."""
        _no_pixels(clip)

    def show_pixels(self, clip: Clip, header: FrameHeader, pixels: memoryview) -> None:
        """Not a feature."""
        _no_pixels(clip)

    # Within

    def _groups(self) -> list[Node]:
        return list(graph.groups(surroundings().root))

    def _group(self, clip_id: str) -> Node:
        with suppress(ValueError, KeyError):  # deleted, or none is held
            held = self._held[clip_id]
            held.name()
            return held
        found = graph.find(surroundings().root, clip_id)
        if found is not None and knobs.is_ours(found):
            knobs.check(found)
            return found
        others = [
            group for group in self._groups() if any(r["clip"] == clip_id for r in knobs.results_of(group).values())
        ]
        if len(others) == 1 and found is None:
            return others[0]
        if found is not None and found.knob(knobs.VERSION) is not None:
            raise ClipGone(
                f"{clip_id} is a gizmo, whose inside cannot be changed", hint="press Copy to Group in it first"
            )
        hint = graph.locked_in(surroundings().root, clip_id) or None
        raise ClipGone(f"there is no Faceplate group {clip_id!r} in the script", hint=hint)


def _failed(record: str) -> int:
    try:
        return len(load(record).failed)
    except (RecordDamaged, BadFrames):
        return 0


def _no_pixels(clip: Clip) -> NoReturn:
    raise CannotDo(f"Nuke's Python cannot reach the pixels of {clip.name!r}", hint="process the frame instead")
