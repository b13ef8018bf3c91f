"""Which time of which clip a timeline shows, and when: nested, retimed, trimmed and dissolved, as exact numbers.

OTIO's own ranges know nothing of time warps, and those of a nest are not cut by what it lies in; so the timeline is
walked from the outside in, with the straight line that leads from timeline time to the time inside carried along.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ...errors import InputError
from .times import exact_rate, seconds

if TYPE_CHECKING:
    import opentimelineio as otio

Interval = tuple[Fraction, Fraction]

_FOR_EVER = Fraction(10**9)
_FINEST_SPEED = 10_000
"""Speeds are taken as fractions with at most this denominator, which holds 1000/1001."""


@dataclass(frozen=True, slots=True)
class Line:
    """Inner time = `slope` * timeline time + `offset`, for timeline times from `start` up to `end`; all in seconds."""

    slope: Fraction
    offset: Fraction
    start: Fraction
    end: Fraction

    def at(self, time: Fraction) -> Fraction:
        """The inner time at a timeline time."""
        return self.slope * time + self.offset

    def within(self, low: Fraction, high: Fraction) -> Line | None:
        """The part whose inner time lies in [low, high); None where there is none."""
        if self.slope == 0:
            return self if low <= self.offset < high else None
        a, b = sorted(((low - self.offset) / self.slope, (high - self.offset) / self.slope))
        start, end = max(self.start, a), min(self.end, b)
        return replace(self, start=start, end=end) if start < end else None

    def then(self, slope: Fraction, offset: Fraction) -> Line:
        """Followed by another line from inner time to time further in."""
        return replace(self, slope=slope * self.slope, offset=slope * self.offset + offset)


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """One clip where the timeline shows it.

    Attributes:
        clip: of the timeline.
        track: which of the timeline's tracks it lies in, from 0, the lowest.
        line: from timeline time, counted from the timeline's beginning, to the clip's media time; transitions included.
        shown: media time of the clip without its transitions, as trimmed, lowest first.
        rate: frames a second of the clip's times.
        nested: lies in a stack or track inside a track.
        either_way: plays backwards. The document does not say from which end, so there are two of it, one each way.
        problem: why its frames cannot be told, "" where they can.
    """

    clip: Any
    track: int
    line: Line
    shown: Interval
    rate: Fraction
    nested: bool = False
    either_way: bool = False
    problem: str = ""

    @property
    def speed(self) -> Fraction:
        """Media seconds a second: 1 unless retimed."""
        return self.line.slope

    def ticks(self, rate: Fraction) -> range:
        """Frames of the timeline, from 0, in which the clip is seen."""
        return range(math.ceil(self.line.start * rate), math.ceil(self.line.end * rate))

    def positions(self, rate: Fraction, media_rate: Fraction, origin: Fraction) -> Iterator[tuple[int, Fraction]]:
        """(timeline frame, position in the media in its frames from its first) one by one.

        Args:
            rate: of the timeline.
            media_rate: of the media.
            origin: media time of the media's first frame, s.
        """
        for tick in self.ticks(rate):
            yield tick, (self.line.at(tick / rate) - origin) * media_rate

    def extent(self, rate: Fraction, media_rate: Fraction, origin: Fraction) -> tuple[int, int] | None:
        """(first, last) frame of the media, from 0, that is needed; None where no frame of the timeline falls on it.

        Between two frames both are needed: some editors show the nearer, some the earlier, some mix them.
        """
        ticks = self.ticks(rate)
        if not ticks:
            return None
        ends = [(self.line.at(tick / rate) - origin) * media_rate for tick in (ticks[0], ticks[-1])]
        return math.floor(min(ends)), math.ceil(max(ends))


def timeline_rate(timeline: otio.schema.Timeline) -> Fraction:
    """Frames a second of a timeline: of its start time, else of the first item in its picture tracks; 24 when empty.

    Raises:
        InputError: an item whose length nobody knows.
    """
    start = timeline.global_start_time
    if start is not None and start.rate > 0:
        return exact_rate(start.rate)
    with _mapped():
        for track in timeline.video_tracks():
            for item in track:
                duration = item.duration()
                if duration.rate > 1:
                    return exact_rate(duration.rate)
    return Fraction(24)


def find_uses(timeline: otio.schema.Timeline) -> list[Use]:
    """All enabled clips of the picture tracks, in the order of tracks and time; those of nests too.

    Clips of tracks below others count: whether what lies above hides them, nobody can tell from the document.

    Raises:
        InputError: times that are none, an item whose length nobody knows, nests without end.
    """
    found: list[Use] = []
    whole = timeline.tracks
    start = seconds(whole.source_range.start_time) if whole.source_range else Fraction(0)
    length = seconds(whole.source_range.duration) if whole.source_range else _FOR_EVER
    line = Line(Fraction(1), start, Fraction(0), length)
    with _mapped():
        for number, track in enumerate(item for item in whole if _is_picture(item)):
            duration = seconds(track.duration())
            found += _into(track, Fraction(0), duration, (Fraction(0), Fraction(0)), line, number, False)
    return found


@contextmanager
def _mapped() -> Iterator[None]:
    """What OTIO raises about a timeline, as our error."""
    import opentimelineio as otio

    try:
        yield
    except otio.exceptions.OTIOError as error:
        raise InputError(
            "the timeline has an item whose length is not known",
            found=str(error).split("\n")[0],
            hint="export the timeline with its source ranges",
        ) from error
    except RecursionError as error:
        raise InputError("the timeline is nested too deeply", hint="flatten it in the editor") from error


def _is_picture(item: Any) -> bool:
    import opentimelineio as otio

    kind = getattr(item, "kind", otio.schema.TrackKind.Video)
    return bool(item.enabled) and kind == otio.schema.TrackKind.Video


def _into(
    item: Any,
    position: Fraction,
    duration: Fraction,
    more: Interval,
    line: Line,
    number: int,
    nested: bool,
) -> list[Use]:
    """The uses inside an item that lies in its parent from `position` on, seen `more` before and after."""
    import opentimelineio as otio

    inside = line.within(position - more[0], position + duration + more[1])
    if inside is None:
        return []
    start = seconds(item.trimmed_range().start_time)
    speed, certain, problem = warp(item.effects)
    lines = [inside.then(speed, start - speed * position)]
    if speed < 0 and not certain and not problem:
        # From the other end: the first frame shown is the last of the range.
        frame = 1 / exact_rate(item.trimmed_range().duration.rate)
        lines.append(inside.then(speed, start - speed * (duration + position) - frame))
    found = []
    for each in lines:
        if isinstance(item, otio.schema.Clip):
            shown = _shown(each, position, duration, line)
            rate = exact_rate(item.trimmed_range().start_time.rate)
            found.append(Use(item, number, each, shown, rate, nested, len(lines) > 1, problem))
        else:
            inner = _children(item, each, number, nested or not isinstance(item.parent(), otio.schema.Stack))
            if problem or len(lines) > 1:
                inner = [replace(use, problem=use.problem or problem, either_way=len(lines) > 1) for use in inner]
            found += inner
    return found


def _shown(line: Line, position: Fraction, duration: Fraction, parent: Line) -> Interval:
    """Media time of a clip without its transitions."""
    bare = parent.within(position, position + duration) or line
    low, high = sorted((line.at(bare.start), line.at(bare.end)))
    return low, high


def _children(container: Any, line: Line, number: int, nested: bool) -> list[Use]:
    import opentimelineio as otio

    found: list[Use] = []
    if isinstance(container, otio.schema.Stack):
        for child in container:
            if _is_picture(child):
                length = seconds(child.trimmed_range().duration)
                found += _into(child, Fraction(0), length, (Fraction(0), Fraction(0)), line, number, True)
        return found
    position = Fraction(0)
    children = list(container)
    for index, child in enumerate(children):
        if isinstance(child, otio.schema.Transition):
            continue
        length = seconds(child.trimmed_range().duration)
        if not isinstance(child, otio.schema.Gap) and child.enabled:
            found += _into(child, position, length, _overlap(children, index), line, number, nested)
        position += length
    return found


def _overlap(children: Sequence[Any], index: int) -> Interval:
    """How much longer a child is seen before and after, for the transitions beside it."""
    import opentimelineio as otio

    before = children[index - 1] if index else None
    after = children[index + 1] if index + 1 < len(children) else None
    head = seconds(before.in_offset) if isinstance(before, otio.schema.Transition) else Fraction(0)
    tail = seconds(after.out_offset) if isinstance(after, otio.schema.Transition) else Fraction(0)
    return head, tail


def warp(effects: Sequence[Any]) -> tuple[Fraction, bool, str]:
    """(media seconds a second, whether it surely begins at the start of the clip's range, why it cannot be told or "").

    0 is a freeze frame. The readers of this room mark what they worked out themselves as sure; in OTIO a clip that
    plays backwards may begin at either end of its range.
    """
    import opentimelineio as otio

    speed, certain = Fraction(1), True
    for effect in effects:
        ours = effect.metadata.get("faceplate", {})
        if isinstance(effect, otio.schema.LinearTimeWarp):
            if not math.isfinite(effect.time_scalar):
                return speed, False, f"its speed is {effect.time_scalar}"
            speed *= Fraction(effect.time_scalar).limit_denominator(_FINEST_SPEED)
            certain = certain and ours.get("from") == "start"
        elif isinstance(effect, otio.schema.TimeEffect):
            return (
                speed,
                False,
                f"the retime {effect.effect_name or effect.schema_name()!r} is none that OTIO describes",
            )
        elif problem := ours.get("retime", ""):
            return speed, False, str(problem)
    return speed, certain, ""
