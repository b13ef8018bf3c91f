"""The media pool: results come into a bin of their own, with the right first frame, rate and colour, and go again."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from faceplate_client.errors import FramesMissing, PlaceFailed
from faceplate_client.exr_head import read_head
from faceplate_client.frame_maths import Span
from faceplate_client.host import Clip, Result
from faceplate_client.result_folder import file_of, is_whole

from . import api
from .calls import asked, done, maybe, rate, whole
from .colours import Colour
from .items import media_id, on_timeline, takes_of
from .notes import notes_of

BIN = "Faceplate"


@dataclass(frozen=True)
class Desk:
    """What is needed to change a project.

    Attributes:
        application: Resolve.
        project: the open one.
        pool: its media pool.
        timeline: that is worked on.
        colour: of the project.
        fps: of the timeline.
    """

    application: api.Application
    project: api.Project
    pool: api.Pool
    timeline: api.Timeline
    colour: Colour
    fps: float


@contextmanager
def on_edit_page(desk: Desk) -> Iterator[None]:
    """The Edit page, on which alone clips can be deleted; the artist's page comes back.

    With -nogui there is no page, and nothing is done.
    """
    page = maybe(desk.application.GetCurrentPage)
    if page not in (None, "", "edit"):
        maybe(desk.application.OpenPage, "edit")
    try:
        yield
    finally:
        back_to(desk, page)


def back_to(desk: Desk, page: object) -> None:
    """Open the page that was open before."""
    if page not in (None, "") and maybe(desk.application.GetCurrentPage) != page:
        maybe(desk.application.OpenPage, page)


@contextmanager
def current(desk: Desk) -> Iterator[None]:
    """The timeline that is worked on as the current one, and the current bin as it was afterwards.

    Raises:
        PlaceFailed: Resolve does not switch to it.
    """
    project, pool = desk.project, desk.pool
    before, folder = maybe(project.GetCurrentTimeline), maybe(pool.GetCurrentFolder)
    show(project, desk.timeline)
    try:
        yield
    finally:
        if before is not None:
            maybe(show, project, before)
        if folder is not None:
            maybe(pool.SetCurrentFolder, folder)


def show(project: api.Project, timeline: api.Timeline) -> None:
    """Make a timeline the current one.

    Raises:
        PlaceFailed: it does not become it.
    """

    def is_current() -> bool:
        shown = project.GetCurrentTimeline()
        return shown is not None and shown.GetUniqueId() == timeline.GetUniqueId()

    if not maybe(is_current):
        done(
            "Project.SetCurrentTimeline",
            timeline.GetName(),
            lambda: project.SetCurrentTimeline(timeline),
            is_current,
            kind=PlaceFailed,
        )


def bring_in(desk: Desk, clip: Clip, result: Result) -> tuple[api.PoolItem, bool]:
    """Import a result into the bin.

    Returns:
        The clip in the media pool, and whether the bin was made for it or for another result.

    Raises:
        FramesMissing: a file is not on the disk.
        PlaceFailed: Resolve does not take it as it is; the media pool is as it was.
    """
    movie = "#" not in result.pattern
    files = [Path(result.pattern)] if movie else [file_of(result.pattern, frame) for frame in result.files]
    if missing := [path for path in files if not is_whole(path)]:
        raise FramesMissing(f"{len(missing)} of {len(files)} files of the result are missing", found=f"no {missing[0]}")
    check_encoding(desk, clip, result)
    folder = find_bin(desk.pool)
    made = folder is None
    if folder is None:
        folder = _make_bin(desk.pool)
    media: api.PoolItem | None = None
    try:
        media = _import(desk, folder, result, movie=movie)
        _check_frames(media, result, movie=movie)
        _set_rate(desk, media, result)
        if not movie:
            _set_colour(desk, media, result)
    except BaseException:
        if media is not None:
            maybe(desk.pool.DeleteClips, [media])
        if made:
            _delete_bin(desk.pool)
        raise
    return media, made or _made_by_us(desk.project)


def throw_out(desk: Desk, media: str, *, bin_made: bool) -> None:
    """Take a result out of the media pool, where nothing in the project shows it; the bin too where it was made for it.

    Raises:
        PlaceFailed: it stays.
    """
    folder = find_bin(desk.pool)
    found = None if folder is None else clips_in(folder).get(media)
    if folder is None or found is None or in_use(desk.project, media):
        return
    done(
        "MediaPool.DeleteClips",
        found.GetName(),
        lambda: desk.pool.DeleteClips([found]),
        lambda: media not in clips_in(folder),
        kind=PlaceFailed,
    )
    if bin_made and not clips_in(folder) and not (maybe(folder.GetSubFolderList) or ()):
        _delete_bin(desk.pool)


def in_use(project: api.Project, media: str) -> bool:
    """Whether a timeline of the project shows a clip of the media pool, or holds it as a take."""
    for timeline in timelines(project):
        for _, item in on_timeline(timeline):
            if media_id(item) == media or any(str(one.GetUniqueId()) == media for _, one in takes_of(item)):
                return True
    return False


def _made_by_us(project: api.Project) -> bool:
    there = (item for timeline in timelines(project) for _, item in on_timeline(timeline))
    return any(note.bin_made for item in there for note in notes_of(item))


def timelines(project: api.Project) -> Iterator[api.Timeline]:
    """The timelines of a project."""
    for index in range(1, (whole(maybe(project.GetTimelineCount), 0) or 0) + 1):
        timeline = maybe(project.GetTimelineByIndex, index)
        if timeline is not None:
            yield timeline


def find_bin(pool: api.Pool) -> api.Folder | None:
    """The bin of results at the top of the media pool, None where there is none."""
    root = asked("MediaPool.GetRootFolder", BIN, pool.GetRootFolder)
    return next((one for one in maybe(root.GetSubFolderList) or () if one.GetName() == BIN), None)


def clips_in(folder: api.Folder) -> dict[str, api.PoolItem]:
    """The clips of a bin by id."""
    return {str(one.GetUniqueId()): one for one in maybe(folder.GetClipList) or ()}


def check_encoding(desk: Desk, clip: Clip, result: Result) -> None:
    """Refuse a result that an unmanaged project would show in another encoding than its source.

    Raises:
        PlaceFailed: see above.
    """
    if desk.colour.managed or Path(result.pattern).suffix.casefold() != ".exr":
        return
    head = read_head(file_of(clip.source, clip.used.first)) if clip.source.casefold().endswith(".exr") else None
    if head is None or (head.interop_id and head.interop_id != result.interop_id):
        raise PlaceFailed(
            f"project {desk.project.GetName()!r} manages no colour, and the result of {clip.name!r} is not encoded as "
            "its source",
            expected=(head.interop_id if head is not None else "") or "the source's own encoding",
            found=f"scene-linear {result.colour_space}",
            hint="Project Settings > Color Management: choose DaVinci YRGB Color Managed or ACES, then apply again",
        )


def _make_bin(pool: api.Pool) -> api.Folder:
    root = asked("MediaPool.GetRootFolder", BIN, pool.GetRootFolder)
    current_folder = maybe(pool.GetCurrentFolder)
    done(
        "MediaPool.AddSubFolder",
        BIN,
        lambda: pool.AddSubFolder(root, BIN),
        lambda: find_bin(pool) is not None,
        kind=PlaceFailed,
    )
    if current_folder is not None:  # a new bin becomes the current one
        maybe(pool.SetCurrentFolder, current_folder)
    return asked("MediaPool.AddSubFolder", BIN, lambda: find_bin(pool))


def _delete_bin(pool: api.Pool) -> None:
    folder = find_bin(pool)
    if folder is not None and not clips_in(folder):
        done(
            "MediaPool.DeleteFolders",
            BIN,
            lambda: pool.DeleteFolders([folder]),
            lambda: find_bin(pool) is None,
            kind=PlaceFailed,
        )


def _import(desk: Desk, folder: api.Folder, result: Result, *, movie: bool) -> api.PoolItem:
    """Import into a bin: Resolve puts it into the current one, and is asked afterwards what is there."""
    pool, before = desk.pool, set(clips_in(folder))
    was = maybe(pool.GetCurrentFolder)

    def is_current() -> bool:
        now = pool.GetCurrentFolder()
        return now is not None and now.GetUniqueId() == folder.GetUniqueId()

    done("MediaPool.SetCurrentFolder", BIN, lambda: pool.SetCurrentFolder(folder), is_current, kind=PlaceFailed)
    try:
        if movie:
            told = maybe(pool.ImportMedia, [result.pattern])
        else:
            told = maybe(pool.ImportMedia, [_row(result.pattern, result.files)])
        new = [one for name, one in clips_in(folder).items() if name not in before]
    finally:
        if was is not None:
            maybe(pool.SetCurrentFolder, was)
    if len(new) != 1:
        for one in new:
            maybe(pool.DeleteClips, [one])
        raise PlaceFailed(
            f"MediaPool.ImportMedia did not bring in {result.name!r}",
            expected="one clip",
            found=f"{len(new)} new clips, and it answered {told!r}",
            hint="see whether Resolve can read the files: Media page, open the folder",
        )
    return new[0]


def _row(pattern: str, frames: Span) -> dict[str, object]:
    """A sequence as ImportMedia wants it: plate.%04d.exr and its first and last number."""
    folder, name = os.path.split(pattern)
    printf = re.sub("#+", lambda signs: f"%0{len(signs[0])}d", name.replace("%", "%%"))
    return {"FilePath": os.path.join(folder, printf), "StartIndex": frames.first, "EndIndex": frames.last}


def _check_frames(media: api.PoolItem, result: Result, *, movie: bool) -> None:
    start, count = (whole(media.GetClipProperty(key)) for key in ("Start", "Frames"))
    right = count == len(result.files) and (movie or start == result.files.first)
    if not right:
        raise PlaceFailed(
            f"Resolve imported {result.name!r} with other frames than its files have",
            expected=f"{len(result.files)} frames from {result.files.first}",
            found=f"{count} from {start}",
        )


def _set_rate(desk: Desk, media: api.PoolItem, result: Result) -> None:
    """Files in a row have no rate of their own: that of the project is taken, which may not be the timeline's."""
    done_already = abs(rate(media.GetClipProperty("FPS")) - desk.fps) < 0.01
    if not done_already:
        done(
            "MediaPoolItem.SetClipProperty('FPS')",
            result.name,
            lambda: media.SetClipProperty("FPS", f"{desk.fps:.3f}".rstrip("0").rstrip(".")),
            lambda: abs(rate(media.GetClipProperty("FPS")) - desk.fps) < 0.01,
            kind=PlaceFailed,
        )


def _set_colour(desk: Desk, media: api.PoolItem, result: Result) -> None:
    """The input space of a managed project's clip, tried by each name that Resolve might have for it, and read back."""
    if not desk.colour.managed:
        return
    tried = []
    for wanted in desk.colour.writes(result.colour_space, result.interop_id):
        tried.append("/".join(wanted.values()))
        for key, value in wanted.items():
            if maybe(media.GetClipProperty, key) != value:
                maybe(media.SetClipProperty, key, value)
        if all(maybe(media.GetClipProperty, key) == value for key, value in wanted.items()):
            return
    space = result.interop_id or result.colour_space
    raise PlaceFailed(
        f"Resolve takes no input colour space for the result of {result.name!r}",
        expected=space,
        found="tried " + (", ".join(tried) or "none: no name is known"),
        hint="find the name in Clip Attributes > Color and write it into the settings file: "
        f'"colour_spaces": {{"{space}": "NAME"}}',
    )
