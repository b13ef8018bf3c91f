"""Frame numbers: spans, and the way between a timeline and the frames of a source.

    source        media.first ........ used.first ===== used.last ........ media.last
                              head handles       |visible|       tail handles
    timeline                            start ------- start + len(used) - 1

A clip without retiming shows source frame `used.first + n` at timeline frame `start + n`. A retimed clip has no such
mapping that a host would tell; it is baked first, and then timeline and file numbers are the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from .errors import BadFrames

_ONE = re.compile(r"(-?\d+)(?:-(-?\d+))?", re.ASCII)
_LARGEST = 2**31
MOST_FRAMES = 10_000_000


@dataclass(frozen=True, order=True)
class Span:
    """Frames from `first` to `last`, both included.

    Raises:
        BadFrames: `last` lies before `first`, or a number is out of range.
    """

    first: int
    last: int

    def __post_init__(self) -> None:
        if not -_LARGEST < self.first <= self.last < _LARGEST:
            raise BadFrames("no such frames", expected="a first frame, then a last one", found=f"{self}")

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.first, self.last + 1))

    def __contains__(self, frame: object) -> bool:
        return isinstance(frame, int) and self.first <= frame <= self.last

    def __str__(self) -> str:
        return f"{self.first}-{self.last}" if self.first != self.last else f"{self.first}"

    def meet(self, other: Span) -> Span | None:
        """The frames of both, None where they share none."""
        first, last = max(self.first, other.first), min(self.last, other.last)
        return Span(first, last) if first <= last else None

    def moved(self, by: int) -> Span:
        """The same number of frames, `by` later."""
        return Span(self.first + by, self.last + by)

    def widened(self, frames: int, within: Span) -> Span:
        """With `frames` more at either end, as far as `within` has them.

        Raises:
            BadFrames: a negative number, or `within` does not hold this span.
        """
        if frames < 0:
            raise BadFrames("handles cannot be negative", found=str(frames))
        if self.meet(within) != self:
            raise BadFrames("the clip uses frames that its source does not have", expected=str(within), found=str(self))
        return Span(max(self.first - frames, within.first), min(self.last + frames, within.last))


@dataclass(frozen=True)
class TimeMap:
    """The mapping between timeline frames and source frames of a clip that is not retimed.

    Attributes:
        start: timeline frame that shows `used.first`.
        used: source frames that are visible.
    """

    start: int
    used: Span

    @property
    def timeline(self) -> Span:
        """Timeline frames of the clip."""
        return Span(self.start, self.start + len(self.used) - 1)

    def to_source(self, frame: int) -> int:
        """The source frame at a timeline frame; beyond the clip's ends the count goes on, as for handles."""
        return self.used.first + frame - self.start

    def to_timeline(self, frame: int) -> int:
        """The timeline frame of a source frame; beyond the clip's ends the count goes on."""
        return self.start + frame - self.used.first

    def part(self, timeline: Span) -> TimeMap | None:
        """The map of the part of the clip that lies in a stretch of the timeline, None where nothing does."""
        common = self.timeline.meet(timeline)
        if common is None:
            return None
        return TimeMap(common.first, Span(self.to_source(common.first), self.to_source(common.last)))


def as_text(frames: Iterable[int]) -> str:
    """Frame numbers as the server reads them: "1001-1010,1012". Empty for none."""
    return ",".join(str(span) for span in spans(frames))


def spans(frames: Iterable[int]) -> tuple[Span, ...]:
    """The runs of successive numbers, rising."""
    found: list[Span] = []
    for frame in sorted(set(frames)):
        if found and found[-1].last == frame - 1:
            found[-1] = Span(found[-1].first, frame)
        else:
            found.append(Span(frame, frame))
    return tuple(found)


def from_text(text: str) -> tuple[int, ...]:
    """The inverse of `as_text`: rising, each once.

    Raises:
        BadFrames: not such a text, or more than 10 million frames.
    """
    numbers: set[int] = set()
    for piece in text.split(",") if text else ():
        match = _ONE.fullmatch(piece.strip())
        if match is None:
            raise BadFrames(f"{text!r} names no frames", expected="for example 1001-1010,1012", found=piece)
        span = Span(int(match[1]), int(match[2] or match[1]))
        if len(span) + len(numbers) > MOST_FRAMES:
            raise BadFrames("too many frames", expected=f"at most {MOST_FRAMES}", found=text[:60])
        numbers.update(span)
    return tuple(sorted(numbers))


def keys_to_source(keys: Sequence[tuple[int, float]], times: TimeMap) -> tuple[tuple[int, float], ...]:
    """Keys of a setting from timeline frames to source frames."""
    return tuple((times.to_source(frame), value) for frame, value in keys)
