"""CMX 3600 edit decision lists, made fit for OTIO's adapter, and what it reads amiss put right.

An EDL names no frame rate, so the user does. Drop frame stands in its own line; the adapter looks for semicolons. After
a dissolve the adapter gives the incoming clip the outgoing one's file.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from ...errors import InputError

_EVENT = re.compile(r"^\s*(\d+)\s")
_CODE = re.compile(r"\b(\d{2}:\d{2}:\d{2}):(\d{2})\b")
_FIELDS = 8


def prepare(text: str) -> str:
    """The list with drop-frame timecode written as such.

    Raises:
        InputError: it holds events that the adapter would leave out.
    """
    lines, drop, last = [], False, ("", "", "")
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        word = line.strip().upper()
        if word.startswith("FCM"):
            drop = "NON" not in word and "DROP" in word
        event = _EVENT.match(line)
        if event:
            fields = line.split()
            if last[0] == event[1] and last[1] != last[2]:
                raise InputError(
                    f"event {event[1]} of the EDL begins with a clip of its own before its transition",
                    hint="export the timeline with one clip an event, or as OTIO",
                )
            last = (event[1], fields[-2], fields[-1]) if len(fields) >= _FIELDS else ("", "", "")
        lines.append(_CODE.sub(r"\1;\2", line) if drop and event else line)
    return "\n".join(lines)


def finish(timeline: Any, rate: Fraction) -> list[str]:
    """Put right what the adapter reads amiss; notes about it."""
    import opentimelineio as otio

    notes = []
    for track in timeline.tracks:
        for before, item in zip([None, *track], track, strict=False):
            if not isinstance(item, otio.schema.Clip):
                continue
            if isinstance(before, otio.schema.Transition):
                item.media_reference = otio.schema.MissingReference()
            for effect in item.effects:
                if isinstance(effect, otio.schema.LinearTimeWarp) and effect.time_scalar:
                    # M2 counts in the whole rate: "048.0" is double speed at 23.976 too.
                    told = Fraction(effect.time_scalar).limit_denominator(1_000_000) * rate
                    effect.time_scalar = float(told.limit_denominator(100) / round(rate))
    if len(timeline.tracks) and not any(track.kind == otio.schema.TrackKind.Video for track in timeline.tracks):
        notes.append("the EDL has no picture track")
    return notes
