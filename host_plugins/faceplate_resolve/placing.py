"""Results on the timeline: as a take of their clip, or on the track above; and out again.

A take changes the files under a clip and nothing else: grade, transform, transitions and sound stay, and the artist can
choose the source again in the take selector. It is never finalised. A part of a clip, and a clip that Resolve had to
render at another speed, cannot be a take: they go on the track above with the clip's grade and transform, and the clip
is disabled where all of it is covered.

By version and kind of media Resolve counts source frames from 0 or from the files' own number, and the end of a take is
or is not one of its frames. So each way is tried, the likelier first, and the one that reads back right is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from faceplate_client.errors import HostError, PlaceFailed
from faceplate_client.frame_maths import Span
from faceplate_client.host import Clip, PlaceMode, Result

from . import api
from .calls import done, maybe, whole
from .items import head_of, media_id, on_timeline, on_track, placed_above, source_below, span_of, takes_of
from .notes import ABOVE, TAKE, Note, erase, notes_of, write
from .pool import Desk, bring_in, current, on_edit_page, throw_out

LOOK = (
    "Pan",
    "Tilt",
    "ZoomX",
    "ZoomY",
    "ZoomGang",
    "RotationAngle",
    "AnchorPointX",
    "AnchorPointY",
    "Pitch",
    "Yaw",
    "FlipX",
    "FlipY",
    "CropLeft",
    "CropRight",
    "CropTop",
    "CropBottom",
    "CropSoftness",
    "CropRetain",
    "CompositeMode",
    "Opacity",
    "Distortion",
    "Scaling",
    "ResizeFilter",
)
"""Properties of an item that make how it looks and lies over others."""


def place(desk: Desk, item: api.Item, clip: Clip, result: Result) -> tuple[api.Item, Note]:
    """Place a result; the item that shows it, and the note on that.

    Raises:
        FramesMissing, PlaceFailed: it cannot be placed; the project is as it was.
    """
    take: bool = result.mode is PlaceMode.TAKE and result.covers_clip and not clip.processed
    if not take and not clip.processed and (maybe(item.GetFusionCompCount) or 0) > 0:
        raise PlaceFailed(
            f"clip {clip.name!r} has a Fusion composition, which a clip on the track above cannot have",
            hint="apply to the whole clip as a take",
        )
    with current(desk), ExitStack() as undo:
        media, bin_made = bring_in(desk, clip, result)
        name = str(media.GetUniqueId())
        undo.callback(_quietly, lambda: throw_out(desk, name, bin_made=bin_made))
        note = Note(
            job=result.tag.job,
            record=result.tag.record,
            pattern=result.pattern,
            mode=TAKE if take else ABOVE,
            media=name,
            first=result.files.first,
            count=len(result.files),
            clip=str(item.GetUniqueId()),
            name=clip.name,
            before=media_id(item),
            enabled=bool(item.GetClipEnabled()),
            bin_made=bin_made,
        )
        shown, note = (_take if take else _above)(desk, item, media, result, note, undo)
        write(shown, note, f"{result.name}\n{result.tag.record}")
        undo.pop_all()
    return shown, note


def _quietly(step: Callable[[], object]) -> None:
    """One step back: what goes wrong on the way back does not hide what went wrong before."""
    try:
        step()
    except HostError:
        return


def _head(result: Result) -> int:
    return result.used.first - result.files.first


def _base(result: Result) -> int:
    """Number that Resolve may give to the first frame of the files."""
    return result.files.first if "#" in result.pattern else 0


def _shows(item: api.Item, media: str, timeline: Span, result: Result) -> bool:
    """Whether an item shows the frames of a result that it should, where it should."""
    head = head_of(item, len(result.files), _base(result))
    return media_id(item) == media and span_of(item) == timeline and head == _head(result)


def _take(
    desk: Desk, item: api.Item, media: api.PoolItem, result: Result, note: Note, undo: ExitStack
) -> tuple[api.Item, Note]:
    """Add a take, select it, and see that it shows the right frames."""
    timeline, name = span_of(item), note.name
    selected = whole(maybe(item.GetSelectedTakeIndex), 0) or 0
    head, length = _head(result), len(result.used)
    extents: list[tuple[int, ...]] = [()] if length == len(result.files) else []
    for start in dict.fromkeys((_base(result) + head, head)):
        extents += [(start, start + length), (start, start + length - 1)]
    undo.callback(_quietly, lambda: _drop_take(item, note.media, selected, name))
    for extent in extents:
        maybe(item.AddTake, media, *extent)
        index = _take_index(item, note.media)
        if index is None:
            continue
        _select(item, index, name)
        if maybe(_shows, item, note.media, timeline, result):
            return item, note
        _drop_take(item, note.media, selected, name)
    raise PlaceFailed(
        f"TimelineItem.AddTake did not take effect for {name!r}",
        expected=f"frames {result.used} as the selected take",
        hint="unlock the track; or place results on the track above",
    )


def _take_index(item: api.Item, media: str) -> int | None:
    """The index of the take that shows a clip of the media pool, the newest where there are several."""
    found = [index for index, one in takes_of(item) if str(one.GetUniqueId()) == media]
    return found[-1] if found else None


def _select(item: api.Item, index: int, name: str) -> None:
    done(
        "TimelineItem.SelectTakeByIndex",
        name,
        lambda: item.SelectTakeByIndex(index),
        lambda: item.GetSelectedTakeIndex() == index,
        kind=PlaceFailed,
    )


def _drop_take(item: api.Item, media: str, selected: int, name: str) -> None:
    """Delete a take and select what was selected before: a take goes only when another one is selected."""
    index = _take_index(item, media)
    if index is None:
        return
    if maybe(item.GetSelectedTakeIndex) == index:
        other = selected if selected and selected != index else next(one for one, _ in takes_of(item) if one != index)
        _select(item, other, name)
    done(
        "TimelineItem.DeleteTakeByIndex",
        name,
        lambda: item.DeleteTakeByIndex(index),
        lambda: _take_index(item, media) is None,
        kind=PlaceFailed,
    )


def _above(
    desk: Desk, item: api.Item, media: api.PoolItem, result: Result, note: Note, undo: ExitStack
) -> tuple[api.Item, Note]:
    """Put the result on the track above, with the look of the clip; disable the clip where all of it is covered."""
    covered = Span(result.start, result.start + len(result.used) - 1)
    track, made = _free_track(desk.timeline, item, covered, note.name)
    if made:
        undo.callback(_quietly, lambda: _delete_track(desk.timeline, track))
    shown = _append(desk, media, result, covered, track, note)
    undo.callback(_quietly, lambda: _delete_item(desk, shown))
    _copy_look(item, shown, note.name)
    if result.covers_clip and note.enabled:
        undo.callback(_quietly, lambda: _enable(item, True, note.name))
        _enable(item, False, note.name)
    return shown, Note(**{**vars(note), "track_made": made})


def _append(desk: Desk, media: api.PoolItem, result: Result, covered: Span, track: int, note: Note) -> api.Item:
    """Append to a track at a frame. Resolve drops what overlaps and tells nobody: the track is read again."""
    head, length = _head(result), len(result.used)
    before = {one.GetUniqueId() for one in on_track(desk.timeline, track)}
    for start in dict.fromkeys((_base(result) + head, head)):
        info = {
            "mediaPoolItem": media,
            "startFrame": start,
            "endFrame": start + length,
            "mediaType": 1,
            "trackIndex": track,
            "recordFrame": covered.first,
        }
        maybe(desk.pool.AppendToTimeline, [info])
        new = [one for one in on_track(desk.timeline, track) if one.GetUniqueId() not in before]
        right = [one for one in new if maybe(_shows, one, note.media, covered, result)]
        if len(new) == 1 and right:
            return right[0]
        for one in new:
            _delete_item(desk, one)
    raise PlaceFailed(
        f"MediaPool.AppendToTimeline did not take effect for the result of {note.name!r}",
        expected=f"track {track}, frames {covered}",
        hint="unlock the track, and see whether something lies there",
    )


def _free_track(timeline: api.Timeline, item: api.Item, covered: Span, name: str) -> tuple[int, bool]:
    """The track above an item, free over some frames, and whether it was made for that.

    Raises:
        PlaceFailed: something lies above, and no track can be put between.
    """
    own = next(track for track, one in on_timeline(timeline) if one.GetUniqueId() == item.GetUniqueId())
    count = whole(timeline.GetTrackCount("video"), 0) or 0
    above = own + 1
    if above <= count:
        free = not any(span_of(one).meet(covered) for one in on_track(timeline, above))
        usable = timeline.GetIsTrackEnabled("video", above) and not timeline.GetIsTrackLocked("video", above)
        if free and usable:
            return above, False

    def added() -> bool:
        return timeline.GetTrackCount("video") == count + 1

    words: tuple[dict[str, int], ...] = ({"index": above},) if above <= count else ()
    done("Timeline.AddTrack", name, lambda: timeline.AddTrack("video", *words), added, kind=PlaceFailed)
    if above <= count and on_track(timeline, above):  # this version takes no index: the track is on top of all
        _delete_track(timeline, count + 1)
        raise PlaceFailed(
            f"something lies on the track above {name!r}",
            found=f"track {above}",
            hint="move it up, or place results as takes",
        )
    return above, True


def _delete_track(timeline: api.Timeline, track: int) -> None:
    if on_track(timeline, track):
        return
    count = timeline.GetTrackCount("video")
    done(
        "Timeline.DeleteTrack",
        timeline.GetName(),
        lambda: timeline.DeleteTrack("video", track),
        lambda: timeline.GetTrackCount("video") == count - 1,
        kind=PlaceFailed,
    )


def _delete_item(desk: Desk, item: api.Item) -> None:
    name, wanted = item.GetName(), item.GetUniqueId()
    with on_edit_page(desk):
        done(
            "Timeline.DeleteClips",
            name,
            lambda: desk.timeline.DeleteClips([item], False),
            lambda: all(one.GetUniqueId() != wanted for _, one in on_timeline(desk.timeline)),
            kind=PlaceFailed,
            hint="unlock the track, and open the Edit page",
        )


def _enable(item: api.Item, wanted: bool, name: str) -> None:
    done(
        "TimelineItem.SetClipEnabled",
        name,
        lambda: item.SetClipEnabled(wanted),
        lambda: bool(item.GetClipEnabled()) is wanted,
        kind=PlaceFailed,
    )


def _copy_look(source: api.Item, target: api.Item, name: str) -> None:
    """Grade and transform of the clip for the one above, which has the clip's own pixels."""
    if not maybe(source.CopyGrades, [target]):
        raise PlaceFailed(f"TimelineItem.CopyGrades did not take effect for {name!r}", hint="open the Color page once")
    look = maybe(source.GetProperty) or {}
    for key in LOOK:
        if key in look and look[key] != (maybe(target.GetProperty) or {}).get(key):
            done(
                f"TimelineItem.SetProperty({key!r})",
                name,
                lambda key=key: target.SetProperty(key, look[key]),  # type: ignore[misc]
                lambda key=key: (target.GetProperty() or {}).get(key) == look[key],  # type: ignore[misc]
                kind=PlaceFailed,
            )


def remove(desk: Desk, shown: api.Item, note: Note) -> None:
    """Take a result out, and restore what was before it.

    Raises:
        PlaceFailed: a step did not take effect; those before it did.
    """
    with current(desk):
        if note.mode == TAKE:
            takes = {str(one.GetUniqueId()): index for index, one in takes_of(shown)}
            _drop_take(shown, note.media, takes.get(_before(shown, note), 0), note.name)
            erase(shown, note)
        else:
            source = source_below(desk.timeline, shown, note)
            track = next(track for track, one in on_timeline(desk.timeline) if one.GetUniqueId() == shown.GetUniqueId())
            _delete_item(desk, shown)
            if note.track_made:
                _delete_track(desk.timeline, track)
            others = [above for _, one in on_timeline(desk.timeline) if (above := placed_above(one)) is not None]
            if source is not None and note.enabled and all(one.clip != note.clip for one in others):
                _enable(source, True, note.name)
        throw_out(desk, note.media, bin_made=note.bin_made)


def _before(item: api.Item, note: Note) -> str:
    """The media that was shown before a take; where that was a take of ours that is gone too, what was before that."""
    notes, media = {one.media: one for one in notes_of(item)}, note.before
    held = {str(one.GetUniqueId()) for _, one in takes_of(item)}
    while media not in held and media in notes:
        media = notes[media].before
    return media
