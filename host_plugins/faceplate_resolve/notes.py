"""What a placed result carries in the project: a marker whose custom data says how to take it back.

There is no undo for scripts in Resolve, and of its objects markers alone can carry something of ours. The marker lies
on the timeline item that shows the result: the clip itself for a take, the clip above otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain

from faceplate_client.errors import PlaceFailed

from . import api
from .calls import maybe, whole

TAKE, ABOVE = "take", "above"
COLOUR = "Purple"
NAME = "Faceplate"
_FORMAT = "faceplate result"
_VERSION = 1
_MOST_TRIES = 6


@dataclass(frozen=True)
class Note:
    """A placed result.

    Attributes:
        job: id of the job.
        record: path of its record.
        pattern: of the files.
        mode: TAKE or ABOVE.
        media: id of the imported clip in the media pool.
        first: file number of its first frame.
        count: its frames.
        clip: id of the source item.
        name: of the source item.
        before: id of the media that the source item showed before.
        enabled: whether the source item was enabled before.
        bin_made: whether the bin was made for it, or for another result.
        track_made: whether the track above was made for it.
    """

    job: str
    record: str
    pattern: str
    mode: str
    media: str
    first: int
    count: int
    clip: str
    name: str
    before: str = ""
    enabled: bool = True
    bin_made: bool = False
    track_made: bool = False

    @property
    def text(self) -> str:
        """For the marker."""
        return json.dumps({"format": _FORMAT, "version": _VERSION, **asdict(self)}, sort_keys=True)

    @classmethod
    def parse(cls, text: object) -> Note | None:
        """The note in a marker's custom data, None where it is somebody else's."""
        if not isinstance(text, str) or _FORMAT not in text:
            return None
        try:
            values = json.loads(text)
            if (values.pop("format"), values.pop("version")) != (_FORMAT, _VERSION):
                return None
            return cls(**values)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


def notes_of(item: api.Item) -> tuple[Note, ...]:
    """The results that an item shows or holds as takes, the oldest first."""
    found = []
    for marker in markers(item).values():
        note = Note.parse(marker.get("customData"))
        if note is not None:
            found.append(note)
    return tuple(found)


def markers(item: api.Item) -> dict[int, dict[str, object]]:
    """The markers of an item by frame."""
    told = maybe(item.GetMarkers) or {}
    return {frame: dict(told[key]) for key in sorted(told) if (frame := whole(key)) is not None}


def write(item: api.Item, note: Note, text: str) -> None:
    """Put a note on an item.

    Resolve takes one marker a frame, and by its version counts from the item's or its media's first frame.

    Raises:
        PlaceFailed: no marker could be set.
    """
    for frame in _free_frames(item):
        maybe(item.AddMarker, frame, COLOUR, NAME, text, 1, note.text)
        if note in notes_of(item):
            return
    raise PlaceFailed(
        f"TimelineItem.AddMarker did not take effect for {item.GetName()!r}",
        hint="delete a marker of the clip, or unlock its track, and apply again",
    )


def _free_frames(item: api.Item) -> Iterator[int]:
    length, left = whole(item.GetDuration(), 1) or 1, whole(maybe(item.GetLeftOffset), 0) or 0
    taken, tried = markers(item), 0
    for frame in chain(range(length), range(left, left + length)):
        if frame not in taken:
            yield frame
            tried += 1
            if tried == _MOST_TRIES:
                return


def erase(item: api.Item, note: Note) -> None:
    """Take a note off an item.

    Raises:
        PlaceFailed: it stays.
    """
    for _ in range(2):
        maybe(item.DeleteMarkerByCustomData, note.text)
        if note not in notes_of(item):
            return
    raise PlaceFailed(f"TimelineItem.DeleteMarkerByCustomData did not take effect for {item.GetName()!r}")
