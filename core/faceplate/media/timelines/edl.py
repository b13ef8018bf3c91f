"""CMX 3600 edit decision lists, made fit for OTIO's adapter, and what it reads amiss put right.

An EDL names no frame rate, so the user does. Drop frame stands in its own line; the adapter looks for semicolons. After
a dissolve the adapter gives the incoming clip the outgoing one's file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ...errors import InputError

_EVENT = re.compile(r"^\s*(\d+)\s")
_CODE = re.compile(r"\b(\d{2}:\d{2}:\d{2}):(\d{2})\b")
_FIELDS = 8
_MARK = "FACEPLATE LINE"


@dataclass(frozen=True, slots=True)
class Event:
    """One edit of a list.

    Attributes:
        number: as it stands there.
        line: of the clip that it brings: its only line, or the second of a transition.
        channel: "V", "A", ...
        is_transition: it has two lines, the outgoing clip's and the incoming one's.
        comments: the lines that follow it.
    """

    number: str
    line: int
    channel: str
    is_transition: bool
    comments: range


def events(lines: Sequence[str]) -> list[Event]:
    """The edits of a list, in order.

    Raises:
        InputError: an edit that the adapter would leave out.
    """
    starts = [(index, match[1]) for index, line in enumerate(lines) if (match := _EVENT.match(line))]
    found: list[Event] = []
    for at, (index, number) in enumerate(starts):
        fields = lines[index].split()
        following = starts[at + 1] if at + 1 < len(starts) else (len(lines), "")
        if following[1] == number and not (found and found[-1].number == number and found[-1].is_transition):
            if len(fields) >= _FIELDS and fields[-2] != fields[-1]:
                raise InputError(
                    f"event {number} of the EDL begins with a clip of its own before its transition",
                    hint="export the timeline with one clip an event, or as OTIO",
                )
            continue
        second = at > 0 and starts[at - 1][1] == number
        channel = fields[2] if len(fields) > 2 else ""
        found.append(Event(number, index, channel, second, range(index + 1, following[0])))
    return found


def is_drop(text: str) -> bool:
    """Whether a list begins in drop frame."""
    codes = (line.strip().upper() for line in text.splitlines())
    first = next((line for line in codes if line.startswith("FCM")), "")
    return "DROP" in first and "NON" not in first


def prepare(text: str) -> str:
    """The list with drop-frame timecode written as such, and each edit marked with its line for `finish`.

    Raises:
        InputError: it holds edits that the adapter would leave out.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    marked = {event.line for event in events(lines)}
    drop, made = False, []
    for number, line in enumerate(lines):
        word = line.strip().upper()
        if word.startswith("FCM"):
            drop = "NON" not in word and "DROP" in word
        made.append(_CODE.sub(r"\1;\2", line) if drop and _EVENT.match(line) else line)
        if number in marked:
            made.append(f"* {_MARK} {number}")
    return "\n".join(made)


def finish(timeline: Any, rate: Fraction) -> list[str]:
    """Put right what the adapter reads amiss; notes about it."""
    import opentimelineio as otio

    notes = []
    _begin_at_the_record_start(timeline)
    for track in timeline.tracks:
        for before, item in zip([None, *track], track, strict=False):
            if not isinstance(item, otio.schema.Clip):
                continue
            _take_mark(item)
            reference = item.media_reference
            if isinstance(before, otio.schema.Transition):
                item.media_reference = otio.schema.MissingReference()
            elif isinstance(reference, otio.schema.ImageSequenceReference):
                # Its range is the clip's, and says nothing of where the files begin.
                first, last = reference.start_frame, reference.start_frame
                name = (
                    f"{reference.name_prefix}[{first:0{reference.frame_zero_padding}d}-{last}]{reference.name_suffix}"
                )
                item.media_reference = otio.schema.ExternalReference(f"{reference.target_url_base}/{name}")
            for effect in item.effects:
                if isinstance(effect, otio.schema.LinearTimeWarp) and effect.time_scalar:
                    # M2 counts in the whole rate: "048.0" is double speed at 23.976 too.
                    told = Fraction(effect.time_scalar).limit_denominator(1_000_000) * rate
                    effect.time_scalar = float(told.limit_denominator(100) / round(rate))
    if len(timeline.tracks) and not any(track.kind == otio.schema.TrackKind.Video for track in timeline.tracks):
        notes.append("the EDL has no picture track")
    return notes


def _begin_at_the_record_start(timeline: Any) -> None:
    """The adapter keeps the first record time of a track as a negative start of its range."""
    import opentimelineio as otio

    starts = [
        otio.opentime.RationalTime(0, track.duration().rate)
        if track.source_range is None
        else -track.source_range.start_time
        for track in timeline.tracks
    ]
    if not starts:
        return
    first = min(starts)
    for track, start in zip(timeline.tracks, starts, strict=True):
        track.source_range = None
        if start > first:
            track.insert(0, otio.schema.Gap(source_range=otio.opentime.TimeRange(duration=start - first)))
    timeline.global_start_time = first


def _take_mark(item: Any) -> None:
    """The line of a clip, from the comment that `prepare` put in."""
    own = item.metadata.get("cmx_3600", {})
    comments = list(own.get("comments", ()))
    marks = [each for each in comments if str(each).startswith(_MARK)]
    if marks:
        own["line"] = int(str(marks[-1]).removeprefix(_MARK))
        rest = [each for each in comments if each not in marks]
        if rest:
            own["comments"] = rest
        else:
            del own["comments"]
