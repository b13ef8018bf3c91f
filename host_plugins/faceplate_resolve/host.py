"""A timeline of Resolve as the actions see it: `faceplate_client.host.Host`.

`items.py`, `notes.py`, `pool.py`, `placing.py` and `rendering.py` work on the objects that this class gives them. Items
and timelines are looked up by id at every call, since Resolve's objects go stale. There is no undo for scripts: each
change has its own way back, in case of an error at once, else through `remove`.

Timeline frames are Resolve's record frames: a timeline that starts at 01:00:00:00 begins at 86400 with 24 a second.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from faceplate_client.errors import CannotDo, ClipGone, HostError, PlaceFailed
from faceplate_client.frame_maths import Span
from faceplate_client.host import Clip, Feature, HostAbout, Placed, PlaceMode, Progress, Project, Result, Scope, Tag
from faceplate_client.slot_header import FrameHeader

from . import api, items, placing, pool, rendering
from .calls import asked, done, knows, maybe, rate, whole
from .colours import BAKE_SPACE, Colour, colour_of
from .edition import edition_of
from .notes import ABOVE, TAKE, Note, markers, notes_of

MARK_COLOUR = "Violet"
MARK_NAME = "faceplate"
"""Clips are marked for batches by this clip colour, or by a marker with this name."""


@dataclass(frozen=True)
class Choices:
    """What an artist or studio sets for the host.

    Attributes:
        folder: where results go; None for `faceplate` in the user's home folder, since projects lie in a database.
        input_space: of all sources, over what the project says, as the server calls it; "" for none.
        mark_colour: clip colour that marks clips for batches.
        colour_spaces: names of linear spaces, the server's to Resolve's, before those that are known.
        above: whether results go on the track above rather than into takes.
    """

    folder: Path | None = None
    input_space: str = ""
    mark_colour: str = MARK_COLOUR
    colour_spaces: Mapping[str, str] = field(default_factory=dict)
    above: bool = False


class ResolveHost:
    """One timeline of the open project.

    Args:
        application: Resolve.
        choices: of the artist.
        timeline: its id; "" for the current one.
        listener: told how far an action is; False from it asks to stop.
        pump: called while a render goes on, so that a window lives on.

    Raises:
        CannotDo: the free edition, or a version before 18.5.
        HostError: no project or timeline is open, or its colour science is not known.
    """

    def __init__(
        self,
        application: api.Application,
        choices: Choices | None = None,
        timeline: str = "",
        listener: Callable[[Progress | None], bool] | None = None,
        pump: Callable[[], None] = lambda: None,
    ) -> None:
        self.edition = edition_of(application)
        self.choices = choices if choices is not None else Choices()
        self.listener = listener
        self.pump = pump
        self._application = application
        project = open_project(application)
        self.timeline_id = timeline or str(_current_timeline(project).GetUniqueId())
        colour_of(project.GetSetting, project.GetName())

    # What there is

    def about(self) -> HostAbout:
        """Resolve and its version."""
        places = (PlaceMode.ABOVE, PlaceMode.TAKE) if self.choices.above else (PlaceMode.TAKE, PlaceMode.ABOVE)
        return HostAbout("resolve", self.edition.text, frozenset({Feature.BAKE}), places)

    def project(self) -> Project:
        """The timeline; see `Host.project`."""
        desk = self._desk()
        first, end = whole(desk.timeline.GetStartFrame(), 0) or 0, whole(desk.timeline.GetEndFrame(), 1) or 1
        return Project(
            id=f"{desk.project.GetUniqueId()}:{self.timeline_id}",
            name=f"{desk.project.GetName()} {desk.timeline.GetName()}",
            folder=self.choices.folder or Path.home() / "faceplate",
            frames=Span(first, max(first, end - 1)),
            fps=desk.fps,
            working_space=BAKE_SPACE,
        )

    def clips(self, scope: Scope) -> tuple[Clip, ...]:
        """Clips of the video tracks; see `Host.clips`."""
        desk = self._desk()
        reader = self._reader(desk)
        there = list(items.on_timeline(desk.timeline))
        below = {name: items.clip_id(source) for name, source in self._below(desk.timeline, there)}
        wanted = self._wanted(desk.timeline, scope, [item for _, item in there], below)
        found = []
        for track, item in there:
            name = items.clip_id(item)
            if items.placed_above(item) is not None or (wanted is not None and name not in wanted):
                continue
            shown = maybe(item.GetClipEnabled) and maybe(desk.timeline.GetIsTrackEnabled, "video", track)
            if scope is not Scope.SELECTED and not shown and name not in below.values():
                continue
            clip = reader.clip(item)
            if clip is not None:
                found.append((clip.start, track, clip))
        found.sort(key=lambda one: one[:2])
        return tuple(clip for _, _, clip in found)

    def _below(self, timeline: api.Timeline, there: list[tuple[int, api.Item]]) -> Iterator[tuple[str, api.Item]]:
        """(id of a result above, its clip)."""
        for _, item in there:
            note = items.placed_above(item)
            source = None if note is None else items.source_below(timeline, item, note)
            if source is not None:
                yield items.clip_id(item), source

    def _wanted(
        self, timeline: api.Timeline, scope: Scope, there: list[api.Item], below: Mapping[str, str]
    ) -> set[str] | None:
        """Ids of the clips that a scope means, None for all; a result above stands for its clip."""
        if scope is Scope.ALL:
            return None
        if scope is Scope.MARKED:
            return {items.clip_id(item) for item in there if self._is_marked(item)}
        told = maybe(timeline.GetSelectedClips) if knows(timeline, "GetSelectedClips") else None
        chosen = list(told or ())
        if not chosen:
            under = maybe(timeline.GetCurrentVideoItem)
            chosen = [] if under is None else [under]
        return {below.get(name, name) for name in map(items.clip_id, chosen)}

    def _is_marked(self, item: api.Item) -> bool:
        if maybe(item.GetClipColor) == self.choices.mark_colour:
            return True
        return any(
            str(one.get("name", "")).strip().casefold() == MARK_NAME and Note.parse(one.get("customData")) is None
            for one in markers(item).values()
        )

    def clip(self, clip_id: str, view: str = "") -> Clip:
        """The clip as it is now; see `Host.clip`."""
        desk = self._desk()
        clip = self._reader(desk).clip(_item(desk.timeline, clip_id))
        if clip is None:
            raise ClipGone(f"{clip_id!r} has no picture any more")
        return clip

    def results(self, job: str | None = None) -> tuple[Placed, ...]:
        """Takes and clips above; see `Host.results`."""
        timeline = self._desk().timeline
        return tuple(placed for placed, _, _ in _placed(timeline) if job in (None, placed.tag.job))

    # What is changed

    def bake(self, clip: Clip, frames: Span, pattern: str) -> Generator[int, None, None]:
        """Render the clip alone; see `Host.bake`."""
        desk = self._desk()
        item = _item(desk.timeline, clip.id)
        yield from rendering.bake(desk, item, clip, frames, pattern, self.pump)

    def place(self, clip: Clip, result: Result) -> Placed:
        """A take, or a clip above; see `Host.place`."""
        desk = self._desk()
        shown, note = placing.place(desk, _item(desk.timeline, clip.id), clip, result)
        return next(placed for placed, item, one in _placed(desk.timeline) if one == note and item == shown)

    def reload(self, placed: Placed) -> None:
        """Show files that were written anew: Resolve looks at them again when they are linked again.

        Raises:
            HostError: it does not find them.
        """
        desk = self._desk()
        note = self._find(desk.timeline, placed)[1]
        folder = pool.find_bin(desk.pool)
        media = None if folder is None else pool.clips_in(folder).get(note.media)
        if media is None:
            raise HostError(
                f"the result of {note.name!r} is not in the {pool.BIN} bin any more", hint="remove it and apply again"
            )
        path = maybe(media.GetClipProperty, "File Path")
        maybe(desk.pool.UnlinkClips, [media])
        done(
            "MediaPool.RelinkClips",
            note.name,
            lambda: desk.pool.RelinkClips([media], os.path.dirname(note.pattern)),
            lambda: media.GetClipProperty("File Path") == path,
            hint=f"in the {pool.BIN} bin: right-click the clip, Relink Selected Clips",
        )

    def remove(self, placed: Placed) -> None:
        """Take a result out; see `Host.remove`."""
        desk = self._desk()
        item, note = self._find(desk.timeline, placed)
        placing.remove(desk, item, note)

    @contextlib.contextmanager
    def undo_step(self, name: str) -> Iterator[None]:
        """Resolve has no undo for scripts: `remove` is the way back."""
        yield

    def show(self, progress: Progress | None) -> bool:
        """Pass on to the window that waits; see `Host.show`."""
        return True if self.listener is None else self.listener(progress)

    # What Resolve cannot do

    def layout(self, clip: Clip) -> FrameHeader:
        """Not a feature of Resolve."""
        raise _no_pixels(clip)

    def read_pixels(self, clip: Clip, into: memoryview) -> None:
        """Not a feature of Resolve."""
        raise _no_pixels(clip)

    def result_layout(self, clip: Clip) -> FrameHeader:
        """Not a feature of Resolve."""
        raise _no_pixels(clip)

    def show_pixels(self, clip: Clip, header: FrameHeader, pixels: memoryview) -> None:
        """Not a feature of Resolve."""
        raise _no_pixels(clip)

    # Within

    def _desk(self) -> pool.Desk:
        project = open_project(self._application)
        timeline = next((one for one in pool.timelines(project) if str(one.GetUniqueId()) == self.timeline_id), None)
        if timeline is None:
            raise HostError(
                f"the timeline is not in project {project.GetName()!r} any more",
                hint="open the timeline and apply again",
            )
        colour: Colour = colour_of(project.GetSetting, project.GetName(), self.choices.colour_spaces)
        fps = rate(maybe(timeline.GetSetting, "timelineFrameRate")) or rate(project.GetSetting("timelineFrameRate"))
        if not fps:
            raise HostError(f"timeline {timeline.GetName()!r} does not tell its frame rate")
        media_pool = asked("Project.GetMediaPool", project.GetName(), project.GetMediaPool)
        return pool.Desk(self._application, project, media_pool, timeline, colour, fps)

    def _reader(self, desk: pool.Desk) -> items.Reader:
        return items.Reader(desk.colour, desk.fps, self.choices.input_space)

    def _find(self, timeline: api.Timeline, placed: Placed) -> tuple[api.Item, Note]:
        for one, item, note in _placed(timeline):
            if one.id == placed.id:
                return item, note
        raise PlaceFailed(
            f"the result {placed.pattern} is not on the timeline any more", hint="undo what deleted it, or apply again"
        )


def open_project(application: api.Application) -> api.Project:
    """The open project.

    Raises:
        HostError: none is open, or Resolve came up without its project database, where nothing works.
    """
    manager = asked("Resolve.GetProjectManager", "Resolve", application.GetProjectManager)
    project = maybe(manager.GetCurrentProject)
    if project is None:
        raise HostError("no project is open in Resolve", hint="open a project and a timeline, then try again")
    return project


def _current_timeline(project: api.Project) -> api.Timeline:
    timeline = maybe(project.GetCurrentTimeline)
    if timeline is None:
        raise HostError(f"no timeline is open in project {project.GetName()!r}", hint="open a timeline, then try again")
    return timeline


def _item(timeline: api.Timeline, clip_id: str) -> api.Item:
    for _, item in items.on_timeline(timeline):
        if items.clip_id(item) == clip_id:
            return item
    raise ClipGone(f"there is no clip {clip_id!r} on timeline {timeline.GetName()!r}")


def _placed(timeline: api.Timeline) -> Iterator[tuple[Placed, api.Item, Note]]:
    """The results on a timeline; takes that the artist has deleted are none."""
    for _, item in list(items.on_timeline(timeline)):
        takes = {str(media.GetUniqueId()) for _, media in items.takes_of(item)}
        for note in notes_of(item):
            if note.mode == TAKE and note.media not in takes:
                continue
            source = item if note.mode == TAKE else items.source_below(timeline, item, note)
            shown = f"take:{item.GetUniqueId()}:{note.job}" if note.mode == TAKE else items.clip_id(item)
            if note.mode == ABOVE and items.media_id(item) != note.media:
                continue  # a copy of the marker on something else
            yield (
                Placed(
                    id=shown,
                    clip_id="" if source is None else items.clip_id(source),
                    view="",
                    tag=Tag(note.job, note.record),
                    pattern=note.pattern,
                    timeline=items.span_of(item),
                ),
                item,
                note,
            )


def _no_pixels(clip: Clip) -> CannotDo:
    return CannotDo(f"the pixels of clip {clip.name!r} cannot be reached", hint="apply writes files and places them")
