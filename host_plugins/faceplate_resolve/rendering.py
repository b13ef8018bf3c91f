"""Clips that the server cannot read, rendered by Resolve: a timeline of their own, scene-linear EXR, and nothing left.

A clip at its own speed is put on an empty timeline of its source's size, frame for frame. Every other clip (retimed,
nested, another frame rate, a still) is rendered in a copy of the timeline where all else is hidden and its grade and
transform are reset: no script can set a speed. So the frames are the clip's own, ungraded, and the grade of the
timeline comes on top of the result as it came on top of the clip.

A render's settings are added to what the Deliver page holds, and nothing tells what that is. The page's state is
therefore kept as a preset while the render goes on, and put back from it. Whether a frame is there is seen on the disk.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from faceplate_client.errors import BakeFailed
from faceplate_client.frame_maths import Span
from faceplate_client.host import Clip
from faceplate_client.result_folder import file_of, is_whole

from . import api
from .calls import asked, done, maybe, whole
from .items import head_of, media_of, on_timeline, original, properties_of, span_of, taken, takes_of
from .pool import Desk, back_to, on_edit_page, show, timelines

CODECS = ("RGBHalfZIP", "RGBHalf", "RGBHalfPIZ", "RGBFloatZIP", "RGBFloat")
"""Ids of EXR codecs, the better first; any other with "half" or "float" in its id comes after."""
_RESET = {
    "Pan": 0.0,
    "Tilt": 0.0,
    "ZoomX": 1.0,
    "ZoomY": 1.0,
    "RotationAngle": 0.0,
    "Opacity": 100.0,
    "CompositeMode": 0,
}
_CROPS = ("CropLeft", "CropRight", "CropTop", "CropBottom", "Pitch", "Yaw", "AnchorPointX", "AnchorPointY")
POLL_S = 0.1
"""Seconds between looks at the disk."""
STALLED_S = 120.0
"""Seconds without a new frame after which a render is given up."""


def bake(
    desk: Desk,
    item: api.Item,
    clip: Clip,
    frames: Span,
    pattern: str,
    pump: Callable[[], None],
) -> Generator[int, None, None]:
    """Render an item's timeline frames; see `Host.bake`.

    Args:
        desk: project and timeline.
        item: to be rendered.
        clip: as it was read from `item`.
        frames: of the timeline.
        pattern: of the files, numbered as the timeline.
        pump: called while nothing happens, so that a window lives on.

    Raises:
        BakeFailed: a frame could not be rendered, or the render would not be scene-linear.
    """
    if not desk.colour.managed:
        raise BakeFailed(
            f"Resolve has to render {clip.name!r} ({clip.processed or 'the server cannot read its file'}), and project "
            f"{desk.project.GetName()!r} manages no colour: nothing would say what the values mean",
            hint="Project Settings > Color Management: choose DaVinci YRGB Color Managed or ACES; or render the clip "
            "yourself and apply to that",
        )
    folder = Path(pattern).parent / f".render-{secrets.token_hex(4)}"
    with ExitStack() as undo:
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        page, shown = maybe(desk.application.GetCurrentPage), maybe(desk.project.GetCurrentTimeline)
        bin_before = maybe(desk.pool.GetCurrentFolder)
        undo.callback(_restore, desk, page, shown, bin_before)
        with _own_timeline(desk, item, clip, frames) as (timeline, marks):
            _linear(desk, timeline, clip.name)
            with _job(desk, timeline, clip.name, folder, marks) as job:
                yield from _watch(desk, clip.name, job, folder, frames, pattern, pump)


def _restore(desk: Desk, page: object, shown: api.Timeline | None, folder: api.Folder | None) -> None:
    if shown is not None:
        maybe(show, desk.project, shown)
    if folder is not None:
        maybe(desk.pool.SetCurrentFolder, folder)
    back_to(desk, page)


# The timeline


@contextmanager
def _own_timeline(desk: Desk, item: api.Item, clip: Clip, frames: Span) -> Iterator[tuple[api.Timeline, Span]]:
    """A timeline that shows nothing but the clip, current; and the frames of it that are wanted."""
    name = f"Faceplate render {secrets.token_hex(4)}"
    before = {one.GetUniqueId() for one in timelines(desk.project)}

    def new() -> api.Timeline | None:
        return next((one for one in timelines(desk.project) if one.GetUniqueId() not in before), None)

    try:
        copied = bool(clip.processed)
        call = "Timeline.DuplicateTimeline" if copied else "MediaPool.CreateEmptyTimeline"
        maybe(desk.timeline.DuplicateTimeline if copied else desk.pool.CreateEmptyTimeline, name)
        timeline = new()
        if timeline is None:
            raise BakeFailed(f"{call} did not take effect for {clip.name!r}")
        show(desk.project, timeline)
        if copied:
            yield timeline, _alone(desk, timeline, item, clip, frames)
        else:
            yield timeline, _appended(desk, timeline, item, clip, frames)
    finally:
        _drop(desk, name, new)


def _drop(desk: Desk, name: str, new: Callable[[], api.Timeline | None]) -> None:
    """Delete the timeline again; the current one cannot be deleted, so that another has to be shown first."""

    def leave_and_delete() -> None:
        extra = new()
        if extra is not None:
            show(desk.project, desk.timeline)
            desk.pool.DeleteTimelines([extra])

    if new() is not None:
        done(
            "MediaPool.DeleteTimelines",
            name,
            lambda: maybe(leave_and_delete),
            lambda: new() is None,
            kind=BakeFailed,
            hint=f"delete the timeline {name!r} yourself",
        )


def _own_settings(timeline: api.Timeline, clip: Clip) -> None:
    """The size of the source, whatever the project's."""
    wanted = {"useCustomSettings": "1"}
    if clip.size != (0, 0):
        wanted.update(timelineResolutionWidth=str(clip.size[0]), timelineResolutionHeight=str(clip.size[1]))
    for key, value in wanted.items():
        _set(timeline, key, value, clip.name)


def _set(timeline: api.Timeline, key: str, value: str, name: str) -> None:
    done(
        f"Timeline.SetSetting({key!r})",
        name,
        lambda: timeline.SetSetting(key, value),
        lambda: str(timeline.GetSetting(key)) == value,
        kind=BakeFailed,
    )


def _hide(desk: Desk, timeline: api.Timeline, item: api.Item) -> None:
    """Disable an item of a copied timeline; a transition, which cannot be, is deleted there."""
    if maybe(item.GetClipEnabled) and maybe(item.GetProperty):
        maybe(item.SetClipEnabled, False)
    if not maybe(item.GetProperty) or maybe(item.GetClipEnabled):
        name, wanted = item.GetName(), item.GetUniqueId()
        with on_edit_page(desk):
            done(
                "Timeline.DeleteClips",
                name,
                lambda: timeline.DeleteClips([item], False),
                lambda: all(one.GetUniqueId() != wanted for _, one in on_timeline(timeline)),
                kind=BakeFailed,
            )


def _show_source(kept: api.Item, clip: Clip) -> None:
    """Let a copied clip show its source, where the artist's shows a result in its place or above it."""
    if not maybe(kept.GetClipEnabled):
        done(
            "TimelineItem.SetClipEnabled",
            clip.name,
            lambda: kept.SetClipEnabled(True),
            lambda: bool(kept.GetClipEnabled()),
            kind=BakeFailed,
        )
    note = taken(kept)
    if note is None:
        return
    wanted = original(kept, note).GetUniqueId()
    index = next(index for index, media in takes_of(kept) if media.GetUniqueId() == wanted)
    done(
        "TimelineItem.SelectTakeByIndex",
        clip.name,
        lambda: kept.SelectTakeByIndex(index),
        lambda: kept.GetSelectedTakeIndex() == index,
        kind=BakeFailed,
    )


def _alone(desk: Desk, timeline: api.Timeline, item: api.Item, clip: Clip, frames: Span) -> Span:
    """Hide all of a copied timeline but the clip, and take its grade and transform away."""
    own = span_of(item)
    track = asked("TimelineItem.GetTrackTypeAndIndex", clip.name, lambda: whole(item.GetTrackTypeAndIndex()[1]))
    kept = None
    for number, one in list(on_timeline(timeline)):
        if number == track and span_of(one) == own and kept is None:
            kept = one
        elif span_of(one).meet(own):
            _hide(desk, timeline, one)
    if kept is None:
        raise BakeFailed(f"the copy of the timeline lacks {clip.name!r}")
    _show_source(kept, clip)
    for call, holder in (("TimelineItem.GetNodeGraph", kept), ("Timeline.GetNodeGraph", timeline)):
        graph = maybe(holder.GetNodeGraph)
        if graph is None or not maybe(graph.ResetAllGrades):
            raise BakeFailed(
                f"{call}().ResetAllGrades did not take effect for {clip.name!r}: its grade would be in the frames",
                hint="render the clip without its grade yourself, and apply to that",
            )
    look = maybe(kept.GetProperty) or {}
    for key, value in {**_RESET, **dict.fromkeys(_CROPS, 0.0)}.items():
        if key in look and look[key] != value:
            done(
                f"TimelineItem.SetProperty({key!r})",
                clip.name,
                lambda key=key, value=value: kept.SetProperty(key, value),  # type: ignore[misc]
                lambda key=key, value=value: (kept.GetProperty() or {}).get(key) == value,  # type: ignore[misc]
                kind=BakeFailed,
            )
    _own_settings(timeline, clip)
    return frames


def _appended(desk: Desk, timeline: api.Timeline, item: api.Item, clip: Clip, frames: Span) -> Span:
    """Put the clip's frames on an empty timeline, and find them there again."""
    _own_settings(timeline, clip)
    note = taken(item)
    pool_item = (
        original(item, note)
        if note is not None
        else asked("TimelineItem.GetMediaPoolItem", clip.name, item.GetMediaPoolItem)
    )
    media = media_of(properties_of(pool_item))
    head = clip.used.first - media.frames.first + frames.first - clip.start
    length, start = len(frames), timeline.GetStartFrame()
    for first in dict.fromkeys((media.first + head, head)):
        info = {"mediaPoolItem": pool_item, "startFrame": first, "endFrame": first + length, "mediaType": 1}
        maybe(desk.pool.AppendToTimeline, [{**info, "trackIndex": 1, "recordFrame": start}])
        there = [one for _, one in on_timeline(timeline)]
        wanted = Span(start, start + length - 1)
        if [maybe(head_of, one, len(media.frames), media.first) for one in there] == [head] and span_of(
            there[0]
        ) == wanted:
            return wanted
        for one in there:
            maybe(timeline.DeleteClips, [one], False)
    raise BakeFailed(f"MediaPool.AppendToTimeline did not take effect for {clip.name!r}", expected=f"frames {frames}")


def _linear(desk: Desk, timeline: api.Timeline, name: str) -> None:
    """Let the timeline come out scene-linear: an EXR of Resolve is in the output space, whatever that is."""
    tried = []
    for wanted in desk.colour.output_writes():
        tried.append("/".join(wanted.values()))
        for key, value in wanted.items():
            maybe(timeline.SetSetting, key, value)
        if all(str(maybe(timeline.GetSetting, key)) == value for key, value in wanted.items()):
            return
    raise BakeFailed(
        f"Resolve cannot be made to render {name!r} scene-linear",
        expected="an output colour space ACEScg, without tone mapping",
        found="tried " + ", ".join(tried),
        hint="render the clip to scene-linear EXR yourself, and apply to that",
    )


# The render


@contextmanager
def _job(desk: Desk, timeline: api.Timeline, name: str, folder: Path, marks: Span) -> Iterator[str]:
    """A render job of some frames, started; afterwards the queue and the Deliver page are as they were."""
    project = desk.project
    preset = f"faceplate before {secrets.token_hex(4)}"
    job = ""
    with ExitStack() as undo:
        done(
            "Project.SaveAsNewRenderPreset",
            name,
            lambda: project.SaveAsNewRenderPreset(preset),
            lambda: preset in _presets(project),
            kind=BakeFailed,
        )
        undo.callback(maybe, project.DeleteRenderPreset, preset)
        undo.callback(maybe, project.LoadRenderPreset, preset)
        _format(project, name)
        folder.mkdir(parents=True)
        settings = {
            "SelectAllFrames": False,
            "MarkIn": marks.first,
            "MarkOut": marks.last,
            "TargetDir": str(folder),
            "CustomName": "frame",
            "ExportVideo": True,
            "ExportAudio": False,
            "ExportAlpha": False,
        }
        if not maybe(project.SetRenderSettings, settings):
            raise BakeFailed(f"Project.SetRenderSettings answered no for {name!r}", found=f"{settings}")
        job = str(maybe(project.AddRenderJob) or "")
        if not job:
            raise BakeFailed(f"Project.AddRenderJob gave nothing for {name!r}", hint="open the Deliver page once")
        undo.callback(maybe, project.DeleteRenderJob, job)
        undo.callback(_stop, project)
        if not maybe(project.StartRendering, [job], False):
            raise BakeFailed(
                f"Project.StartRendering answered no for {name!r}", hint="see whether another render is going on"
            )
        yield job


def _stop(project: api.Project) -> None:
    if maybe(project.IsRenderingInProgress):
        maybe(project.StopRendering)
        end = time.monotonic() + 10.0
        while maybe(project.IsRenderingInProgress) and time.monotonic() < end:
            time.sleep(POLL_S)


def _presets(project: api.Project) -> list[str]:
    return [str(one) for one in maybe(project.GetRenderPresetList) or ()]


def _format(project: api.Project, name: str) -> None:
    """EXR, one file a frame: by the ids that this Resolve has, not by what its menus say."""
    formats = maybe(project.GetRenderFormats) or {}
    format_id = next((one for one in formats.values() if one.casefold() == "exr"), "")
    codecs = list((maybe(project.GetRenderCodecs, format_id) or {}).values()) if format_id else []
    ranked = [one for one in CODECS if one in codecs]
    ranked += [one for one in codecs if one not in ranked and ("half" in one.casefold() or "float" in one.casefold())]
    for codec in ranked:
        if maybe(project.SetCurrentRenderFormatAndCodec, format_id, codec):
            break
    else:
        raise BakeFailed(f"Resolve has no EXR to render {name!r} to", found=f"{list(formats)}, {codecs}")
    if not maybe(project.SetCurrentRenderMode, 1):
        raise BakeFailed(f"Project.SetCurrentRenderMode answered no for {name!r}")


def _watch(
    desk: Desk,
    name: str,
    job: str,
    folder: Path,
    frames: Span,
    pattern: str,
    pump: Callable[[], None],
) -> Generator[int, None, None]:
    """Move files to their places as they become whole: one is, when the next has come or the job has ended."""
    wanted = iter(frames)
    moved, last = 0, time.monotonic()
    while True:
        going = bool(maybe(desk.project.IsRenderingInProgress))
        there = _rendered(folder)
        ready = there[: len(there) - 1] if going else there
        for path in ready:
            if not is_whole(path):
                raise BakeFailed(f"Resolve rendered a file of {name!r} that is no EXR", found=str(path))
            frame = next(wanted, None)
            if frame is None:
                raise BakeFailed(f"Resolve rendered more frames of {name!r} than were asked for", expected=str(frames))
            os.replace(path, file_of(pattern, frame))
            moved, last = moved + 1, time.monotonic()
            yield frame
        if not going:
            break
        if time.monotonic() - last > STALLED_S:
            raise BakeFailed(f"the render of {name!r} stands still", found=f"{moved} of {len(frames)} frames")
        pump()
        time.sleep(POLL_S)
    if moved != len(frames):
        status = maybe(desk.project.GetRenderJobStatus, job) or {}
        raise BakeFailed(
            f"Resolve did not render all of {name!r}",
            expected=f"{len(frames)} frames",
            found=f"{moved}; {status.get('JobStatus')}: {status.get('Error') or 'no reason given'}",
        )


def _rendered(folder: Path) -> list[Path]:
    """The EXR files of a render in the order of their numbers, however Resolve writes those."""
    found = []
    for path in folder.rglob("*.exr"):
        number = re.search(r"(\d+)$", path.stem)
        if number is not None:
            found.append((int(number[1]), path))
    return [path for _, path in sorted(found)]
