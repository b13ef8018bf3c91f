"""Timeline items as clips: which files an item shows at which frames, or why Resolve has to render it first.

Resolve does not tell whether a clip is retimed. It tells how far a clip could be lengthened to the left and to the
right; with its length that is the number of frames of its media, unless it runs at another speed. Where the sum does
not come out, nothing is guessed: the clip is rendered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from faceplate_client.errors import BadClip
from faceplate_client.frame_maths import Span
from faceplate_client.host import Clip

from . import api
from .calls import asked, knows, maybe, rate, whole
from .colours import INPUT, INPUT_ACES, INPUT_GAMMA, Colour
from .notes import ABOVE, TAKE, Note, notes_of

_SEQUENCE = re.compile(r"(.*)\[(\d+)-(\d+)\](.*)", re.DOTALL)
"""As Resolve names files in a row: /shots/a/plate.[1001-1100].exr"""
_SIGNS = re.compile(r"[#@%$]")
_KEYS = (
    "File Path",
    "Type",
    "Start",
    "Frames",
    "FPS",
    "Resolution",
    "PAR",
    "Super Scale",
    "Input LUT",
    "H-FLIP",
    "V-FLIP",
)
_PICTURES = frozenset(
    {".exr", ".dpx", ".cin", ".tif", ".tiff", ".png", ".jpg", ".jpeg", ".tga", ".bmp", ".webp", ".psd", ".heic"}
)
_ASPECTS = {"square": 1.0, "anamorphic": 2.0, "cinemascope": 2.0}
RETIMED = "retimed"
TYPES = {
    "timeline": "nested timeline",
    "compound": "compound clip",
    "multicam": "multicam clip",
    "fusion": "Fusion clip",
}


def clip_id(item: api.Item) -> str:
    """Names an item within its project."""
    return f"item:{item.GetUniqueId()}"


def on_timeline(timeline: api.Timeline) -> Iterator[tuple[int, api.Item]]:
    """(track, item) of all video tracks, lower ones first."""
    for track in range(1, (whole(maybe(timeline.GetTrackCount, "video"), 0) or 0) + 1):
        for item in on_track(timeline, track):
            yield track, item


def on_track(timeline: api.Timeline, track: int) -> Sequence[api.Item]:
    """The items of a video track; a gap may be among them as None."""
    return [item for item in maybe(timeline.GetItemListInTrack, "video", track) or () if item is not None]


def span_of(item: api.Item) -> Span:
    """Timeline frames that an item covers. `GetEnd` is left alone: it names the frame after the last."""
    name = item.GetName()
    start = asked("TimelineItem.GetStart", name, lambda: whole(item.GetStart()))
    length = asked("TimelineItem.GetDuration", name, lambda: whole(item.GetDuration()))
    if length < 1:
        raise BadClip(f"clip {name!r} has no frames", hint="lengthen or delete it")
    return Span(start, start + length - 1)


def media_id(item: api.Item) -> str:
    """Id of the media that an item shows, "" for a title, generator, transition or adjustment clip."""
    media = maybe(item.GetMediaPoolItem)
    return "" if media is None else str(media.GetUniqueId())


def placed_above(item: api.Item) -> Note | None:
    """The note of an item that is a result itself."""
    return next((note for note in notes_of(item) if note.mode == ABOVE), None)


def head_of(item: api.Item, count: int, first: int) -> int | None:
    """Frames of an item's media before the first one that shows; None where the item does not run at its own speed.

    Args:
        item: of the timeline.
        count: frames of its media.
        first: number that Resolve gives to the first of them; by version and kind of media it counts from there.
    """
    left, right = whole(maybe(item.GetLeftOffset)), whole(maybe(item.GetRightOffset))
    if left is None or right is None:
        return None
    length = len(span_of(item))
    for head in dict.fromkeys((left, left - first)):
        if head >= 0 and head + length + right == count:
            return head
    return None


def properties_of(media: api.PoolItem) -> dict[str, Any]:
    """The properties of a clip in the media pool that say what it is."""
    keys = (*_KEYS, INPUT, INPUT_GAMMA, INPUT_ACES)
    return {key: maybe(media.GetClipProperty, key) for key in keys}


def source_below(timeline: api.Timeline, shown: api.Item, note: Note) -> api.Item | None:
    """The clip that a result above is of; on a copy of the timeline, where ids are others, the one that lies below.

    Returns:
        None where it is gone.
    """
    below = None
    for _, item in on_timeline(timeline):
        if str(item.GetUniqueId()) == note.clip:
            return item
        if media_id(item) == note.before and span_of(item).meet(span_of(shown)):
            below = item
    return below


@dataclass(frozen=True)
class Media:
    """Files of a clip in the media pool.

    Attributes:
        path: pattern with "####", or a file; "" where the clip has none.
        frames: that the files have: their numbers, or from 1 in a movie.
        first: number that Resolve gives to the first.
        kind: "sequence", "movie", "still" or "none".
        properties: see `properties_of`.
    """

    path: str
    frames: Span
    first: int
    kind: str
    properties: Mapping[str, Any]


def media_of(properties: Mapping[str, Any]) -> Media:
    """What a clip of the media pool consists of."""
    path = str(properties.get("File Path") or "")
    count, start = whole(properties.get("Frames"), 0) or 0, whole(properties.get("Start"), 0) or 0
    if not path:
        return Media("", Span(0, max(count, 1) - 1), start, "none", properties)
    row = _SEQUENCE.fullmatch(path)
    if row is not None:
        before, first, last, after = row.groups()
        frames = Span(int(first), max(int(last), int(first)))
        return Media(f"{before}{'#' * len(first)}{after}", frames, start, "sequence", properties)
    if PurePath(path).suffix.casefold() in _PICTURES:
        return Media(path, Span(1, 1), start, "still", properties)
    return Media(path, Span(1, max(count, 1)), start, "movie", properties)


@dataclass(frozen=True)
class Reader:
    """What is needed to read items.

    Attributes:
        colour: of the project.
        fps: of the timeline.
        input_space: that the artist named for all sources, over what the project says; "" for none.
    """

    colour: Colour
    fps: float
    input_space: str = ""

    def clip(self, item: api.Item) -> Clip | None:
        """The clip of an item, as it was before Faceplate; None for one without a picture of its own.

        Raises:
            BadClip: an item without frames.
        """
        shown = maybe(item.GetMediaPoolItem)
        if shown is None:
            return None
        note = taken(item)
        source = original(item, note) if note is not None else shown
        media = media_of(properties_of(source))
        timeline = span_of(item)
        head = _head_in_source(item, media, note)
        why = self._why_baked(item, media, head, note)
        name = note.name if note is not None else str(item.GetName())
        shared: dict[str, Any] = {
            "id": clip_id(item),
            "name": PurePath(name).stem if PurePath(name).suffix.casefold() in _PICTURES else name,
            "start": timeline.first,
            "size": _size(media.properties.get("Resolution")),
            "pixel_aspect": _aspect(media.properties.get("PAR")),
            "fps": rate(media.properties.get("FPS")) or self.fps,
        }
        if why or head is None:
            return Clip(used=timeline, processed=why or RETIMED, **shared)
        first = media.frames.first + head
        return Clip(
            used=Span(first, first + len(timeline) - 1),
            media=media.frames,
            source=media.path,
            colour_space=self._space(media),
            own_format=not self.colour.managed and not media.path.casefold().endswith(".exr"),
            **shared,
        )

    def _space(self, media: Media) -> str | None:
        """As the server calls it; None lets the file say."""
        if self.input_space or not self.colour.managed:
            return self.input_space or None
        return self.colour.to_server(self.colour.clip_space(media.properties))

    def _why_baked(self, item: api.Item, media: Media, head: int | None, note: Note | None) -> str:
        properties = media.properties
        if media.kind == "none":
            told = str(properties.get("Type") or "").casefold()
            return next((words for kind, words in TYPES.items() if kind in told), "no file that the server could read")
        if media.kind == "still":
            return "a still, held"
        fps = rate(properties.get("FPS"))
        if fps and abs(fps - self.fps) > 0.01:
            return f"{fps:g} frames a second in a timeline of {self.fps:g}"
        if head is None or (note is None and not _runs_forward(item)):
            return RETIMED
        first = media.frames.first + head
        if Span(first, first + len(span_of(item)) - 1).meet(media.frames) is None:
            return RETIMED
        signs = media.path.replace("#", "") if media.kind == "sequence" else media.path
        reasons = (
            (
                str(properties.get("Super Scale") or "1").rstrip("x").strip() not in ("0", "1", "None", "Auto"),
                "Super Scale",
            ),
            (bool(str(properties.get("Input LUT") or "").strip()), "an input LUT"),
            (str(properties.get("H-FLIP")) in ("On", "1"), "flipped"),
            (str(properties.get("V-FLIP")) in ("On", "1"), "flipped"),
            (_SIGNS.search(PurePath(signs).name) is not None, "a file name with a sign that stands for a number"),
        )
        for applies, reason in reasons:
            if applies:
                return reason
        if self.colour.managed and not self.input_space:
            name = self.colour.clip_space(properties)
            if name and self.colour.to_server(name) is None:
                return f"colour space {name}"
        return ""


def taken(item: api.Item) -> Note | None:
    """The note of the take that an item shows, None where it shows something else."""
    shown = media_id(item)
    return next((note for note in notes_of(item) if note.mode == TAKE and note.media == shown), None)


def takes_of(item: api.Item) -> list[tuple[int, api.PoolItem]]:
    """(index, media) of an item's takes; none where it has no take selector."""
    found = []
    for index in range(1, (whole(maybe(item.GetTakesCount), 0) or 0) + 1):
        take = maybe(item.GetTakeByIndex, index)
        if take and take.get("mediaPoolItem") is not None:
            found.append((index, take["mediaPoolItem"]))
    return found


def original(item: api.Item, note: Note) -> api.PoolItem:
    """The media that an item showed before any take of ours.

    Raises:
        BadClip: that take is gone.
    """
    ours = {one.media for one in notes_of(item)}
    media = {str(one.GetUniqueId()): one for _, one in takes_of(item)}
    theirs = [one for name, one in media.items() if name not in ours]
    found = media.get(note.before) if note.before not in ours else None
    if found is None and not theirs:
        raise BadClip(
            f"the take that {item.GetName()!r} was made from is gone",
            hint="put the source into the take selector again",
        )
    return found if found is not None else theirs[0]


def _head_in_source(item: api.Item, media: Media, note: Note | None) -> int | None:
    """Frames of the source before the first one that shows.

    Files of a take have the numbers of the source's frames, so what the take shows says what the source would.
    """
    if note is None:
        return head_of(item, len(media.frames), media.first)
    head = head_of(item, note.count, note.first if "#" in note.pattern else 0)
    return None if head is None else note.first + head - media.frames.first


def _runs_forward(item: api.Item) -> bool:
    """Whether the source frames that show are as many as the timeline's, where this version tells them.

    The end is the last frame or the one after it, by the rates.
    """
    if not (knows(item, "GetSourceStartFrame") and knows(item, "GetSourceEndFrame")):
        return True
    first, last = whole(maybe(item.GetSourceStartFrame)), whole(maybe(item.GetSourceEndFrame))
    if first is None or last is None:
        return True
    return abs(last - first - len(span_of(item))) <= 1


def _size(value: Any) -> tuple[int, int]:
    found = re.fullmatch(r"\s*(\d+)\s*[xX]\s*(\d+)\s*", str(value or ""))
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _aspect(value: Any) -> float:
    text = str(value or "").strip().casefold()
    if text in _ASPECTS:
        return _ASPECTS[text]
    try:
        number = float(text)
    except ValueError:
        return 1.0
    return number if 0.1 < number < 10 else 1.0
