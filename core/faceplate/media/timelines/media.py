"""The media behind clips: how many frames, at which rate, and where their time begins; as little is read as will do."""

from __future__ import annotations

import bisect
import itertools
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import OpenEXR

from ...errors import InputError
from ..movies.movie import FIRST_FRAME
from ..movies.probe import index_frames, open_container
from ..movies.timecode import Timecode
from .folders import Numbers, Run
from .linking import Found
from .times import exact_rate, seconds
from .uses import Interval

_TWINS = Fraction(1, 500)
"""Rates that differ by less are the same count of frames: 24 and 23.976."""


@dataclass(frozen=True, slots=True, eq=False)
class Media:
    """One plate that a timeline uses.

    Attributes:
        plate: what `open_plate` takes.
        key: the same for every path to it.
        numbers: frame numbers on disk.
        rate: frames a second; None for pictures, which have the rate that the timeline gives them.
        timecode: of the first frame, as frames since midnight, None where the files do not say.
        times: of a movie with a variable rate, when each frame is shown, s from the first; else None.
    """

    plate: str
    key: str
    numbers: Numbers
    rate: Fraction | None
    timecode: int | None
    times: Sequence[Fraction] | None = None

    @property
    def is_movie(self) -> bool:
        """False for pictures."""
        return self.rate is not None

    def counts_at(self, rate: Fraction) -> Fraction:
        """Frames a second with which its frames are counted where the timeline says `rate`.

        An NTSC rate and its whole twin are one count: 24 frames of a 23.976 clip are 24 frames.
        """
        if self.rate is None or abs(self.rate - rate) < _TWINS * rate:
            return rate
        return self.rate

    def around(self, time: Fraction, rate: Fraction) -> Run:
        """The frame numbers beside a time, s from the first frame: one where the time falls on a frame."""
        if self.times is not None:
            index = bisect.bisect_right(self.times, time) - 1
            return self.numbers.first + index, self.numbers.first + index
        at = time * rate
        return self.numbers.first + math.floor(at), self.numbers.first + math.ceil(at)


def open_media(found: Found) -> Media:
    """What a plate is like, without decoding a picture.

    Raises:
        InputError: a movie that cannot be read.
    """
    key = os.path.realpath(found.plate)
    if found.numbers is None:
        return _open_movie(found.plate, key)
    return Media(found.plate, key, found.numbers, None, None)


def _open_movie(path: str, key: str) -> Media:
    container, stream = open_container(Path(path))
    with container:
        rate = stream.average_rate or stream.guessed_rate
        if not rate:
            raise InputError(f"{path} does not say how many frames a second it has")
        steady = stream.frames > 0 and stream.guessed_rate == stream.average_rate
        times: Sequence[Fraction] | None = None
        count = stream.frames
        if not steady:
            index = index_frames(Path(path), container, stream)
            count, times = len(index), _uneven(index.pts, index.time_base)
        texts = [{**container.metadata, **stream.metadata}] + [each.metadata for each in container.streams]
        code = _timecode(texts, Fraction(rate))
        numbers = Numbers(((FIRST_FRAME, FIRST_FRAME + count - 1),), 1)
        return Media(path, key, numbers, exact_rate(float(rate)), code.frames if code else None, times)


def _uneven(pts: Sequence[int], base: Fraction) -> Sequence[Fraction] | None:
    """Times from the first frame on; None where they are as even as a time base allows."""
    steps = [b - a for a, b in itertools.pairwise(pts)]
    if not steps or max(steps) - min(steps) <= max(1, round(0.02 * sum(steps) / len(steps))):
        return None
    return [(each - pts[0]) * base for each in pts]


def _timecode(metadata: Sequence[Any], rate: Fraction) -> Timecode | None:
    texts = (each.get("timecode") or each.get("TIMECODE") for each in metadata)
    return next((found for text in texts if text and (found := Timecode.parse(text, rate))), None)


def picture_timecode(media: Media, rate: Fraction) -> int | None:
    """Of the first picture, as frames since midnight; None where it is no EXR or says nothing."""
    first = media.numbers.first
    before, mark, after = media.plate.partition("#" * media.numbers.width)
    path = f"{before}{first:0{media.numbers.width}d}{after}" if mark else media.plate
    if not path.lower().endswith(".exr"):
        return None
    try:
        code = OpenEXR.File(path, header_only=True).header().get("timeCode")
    except (RuntimeError, ValueError, TypeError):
        return None  # the job says why it cannot be read
    if code is None:
        return None
    mark = ";" if code.dropFrame else ":"
    text = f"{code.hours:02d}:{code.minutes:02d}:{code.seconds:02d}{mark}{code.frame:02d}"
    parsed = Timecode.parse(text, rate)
    return parsed.frames if parsed else None


@dataclass(frozen=True, slots=True)
class Origin:
    """Media time of a plate's first frame.

    Attributes:
        time: s.
        note: what the user should know about how it was decided, "" for nothing.
    """

    time: Fraction
    note: str = ""


def origin(reference: Any, shown: Interval, rate: Fraction, found: Found, media: Media) -> Origin | str:
    """Where a clip's media time begins, or why that cannot be told.

    A reference with an available range says it. Else the clip's own times decide, and must leave no doubt: timecode of
    the files, the files' frame numbers, or a count from 0, the first of these in which the clip lies inside the media.

    Args:
        reference: of the clip.
        shown: media time of the clip, s.
        rate: of the clip's times.
        found: the plate.
        media: likewise.
    """
    if getattr(reference, "frame_step", 1) != 1:
        return f"its pictures are numbered in steps of {reference.frame_step}"
    available = getattr(reference, "available_range", None)
    count = media.counts_at(rate)
    start_code = media.timecode if media.is_movie else None
    if available is not None and available.duration.value > 0:
        begins = seconds(available.start_time)
        if found.start is not None:
            return Origin(begins - (found.start - media.numbers.first) / count)
        if start_code is not None and begins != start_code / count:
            length = (media.numbers.last - media.numbers.first + 1) / count
            if start_code / count < begins < start_code / count + length:
                return Origin(start_code / count)  # the range is a part of the file
        return Origin(begins)
    if not media.is_movie:
        start_code = picture_timecode(media, rate)
    return _by_the_clip(shown, count, start_code, media)


def _by_the_clip(shown: Interval, rate: Fraction, start_code: int | None, media: Media) -> Origin | str:
    length = (media.numbers.last - media.numbers.first + 1) / rate
    ways = {
        "timecode": None if start_code is None else start_code / rate,
        "frame numbers": None if media.is_movie else media.numbers.first / rate,
        "a count from 0": Fraction(0),
    }
    fitting = {name: at for name, at in ways.items() if at is not None and at <= shown[0] and shown[1] <= at + length}
    if not fitting:
        return (
            f"its times {float(shown[0]):.3f}-{float(shown[1]):.3f} s lie outside {os.path.basename(media.plate)}, "
            f"which has {media.numbers.last - media.numbers.first + 1} frames"
            + (f" from timecode {start_code / rate} s" if start_code is not None else " and no timecode")
        )
    name, time = next(iter(fitting.items()))
    doubt = len(set(fitting.values())) > 1
    return Origin(time, f"the timeline does not say where its media's time begins; taken as {name}" if doubt else "")
