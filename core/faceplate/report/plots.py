"""Geometry of plots over time: numbers in, SVG coordinates and labels out. `charts` says what is plotted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from .values import FrameRow

LEFT, TOP, WIDTH, HEIGHT = 54.0, 10.0, 930.0, 108.0
"""The plotting area inside a canvas of `CANVAS_WIDTH` x `CANVAS_HEIGHT` user units."""
CANVAS_WIDTH, CANVAS_HEIGHT = 1000.0, 142.0
COLOURS = 6
"""Line colours in the style sheet; more tracks use them again."""

_BUCKETS = 400
_SINGLE_POINTS = 40

Series = Mapping[int, Sequence[tuple[int, float]]]
"""(frame, value) by track."""

_Place = Callable[[int, float], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Tick:
    """A label on an axis.

    Attributes:
        at: user units along the axis.
        text: label.
    """

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """One track in one plot.

    Attributes:
        track: id.
        colour: 0..`COLOURS` - 1.
        path: SVG path data; gaps where the track has no value.
        dots: (x, y) of values without neighbours, which a path would not show, and of all where there are few.
    """

    track: int
    colour: int
    path: str
    dots: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot over time.

    Attributes:
        title: what is drawn.
        unit: of the vertical axis.
        hint: how to read it, one sentence.
        lines: one a track.
        x_ticks: frame numbers.
        y_ticks: values.
        guide: y of a limit to compare with, or None.
    """

    title: str
    unit: str
    hint: str
    lines: tuple[Line, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    guide: float | None


class Axis:
    """Frames to x: a frame is a column, its value stands in the middle.

    Attributes:
        first: leftmost frame.
        last: rightmost frame.
        count: columns.
    """

    def __init__(self, rows: Sequence[FrameRow]) -> None:
        self.first, self.last = rows[0].frame, rows[-1].frame
        self.count = self.last - self.first + 1

    def x(self, frame: float) -> float:
        """User units of the middle of a frame's column; a frame plus 0.5 is its right edge."""
        return LEFT + (frame - self.first + 0.5) / self.count * WIDTH

    def ticks(self) -> tuple[Tick, ...]:
        """About ten round frame numbers."""
        step = max(1, int(_nice_step(self.count / 10)))
        start = -(-self.first // step) * step
        frames = range(start, self.last + 1, step) if self.count > 1 else [self.first]
        return tuple(Tick(round(self.x(frame), 2), str(frame)) for frame in frames)


def _nice_step(rough: float) -> float:
    """The next of 1, 2, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)


def _span(values: Sequence[float], floor: float | None, least: float) -> tuple[float, float, float]:
    """Low and high end of a vertical axis on whole steps, and the step."""
    low = min(values) if floor is None else floor
    high = max(values)
    if high - low < least:
        middle = (low + high) / 2 if floor is None else low + least / 2
        low, high = middle - least / 2, middle + least / 2
    step = _nice_step((high - low) / 3)
    return math.floor(low / step + 1e-6) * step, math.ceil(high / step - 1e-6) * step, step


def _runs(points: Sequence[tuple[int, float]]) -> Iterable[Sequence[tuple[int, float]]]:
    """Parts without a missing frame."""
    start = 0
    for index in range(1, len(points) + 1):
        if index == len(points) or points[index][0] != points[index - 1][0] + 1:
            yield points[start:index]
            start = index


def decimate(points: Sequence[tuple[int, float]], bucket: int) -> list[tuple[int, float]]:
    """Keep of every `bucket` neighbouring points the lowest and the highest, so that no spike is lost."""
    if bucket <= 1:
        return list(points)
    kept: list[tuple[int, float]] = []
    for start in range(0, len(points), bucket):
        part = points[start : start + bucket]
        kept.extend(sorted({min(part, key=lambda p: p[1]), max(part, key=lambda p: p[1])}))
    return kept


def _line(track: int, colour: int, points: Sequence[tuple[int, float]], place: _Place) -> Line:
    bucket = math.ceil(len(points) / _BUCKETS)
    path: list[str] = []
    dots: list[tuple[float, float]] = []
    for run in _runs(points):
        placed = [place(frame, value) for frame, value in decimate(run, bucket)]
        if len(placed) == 1 or len(points) <= _SINGLE_POINTS:
            dots.extend(placed)
        if len(placed) > 1:
            path.append("M" + "L".join(f"{x:g} {y:g}" for x, y in placed))
    return Line(track, colour, "".join(path), tuple(dots))


def make_plot(
    rows: Sequence[FrameRow],
    series: Series,
    title: str,
    unit: str,
    hint: str,
    *,
    floor: float | None = 0.0,
    ceiling: float | None = None,
    least: float = 1e-3,
    guide: float | None = None,
) -> Plot | None:
    """Lay out one plot.

    Args:
        rows: all frames; they set the horizontal axis.
        series: values by track, frames rising; not finite ones are left out.
        title: see `Plot`.
        unit: see `Plot`.
        hint: see `Plot`.
        floor: low end of the axis, None to follow the values.
        ceiling: a value the axis reaches at least.
        least: smallest height of the axis, so that noise is not blown up.
        guide: a value to draw as a limit.

    Returns:
        The plot, None where there is no value at all.
    """
    finite = {t: [(f, v) for f, v in points if math.isfinite(v)] for t, points in series.items()}
    values = [value for points in finite.values() for _, value in points]
    if not rows or not values:
        return None
    marks = [mark for mark in (ceiling, guide) if mark is not None]
    low, high, step = _span([*values, *marks], floor, least)
    axis = Axis(rows)

    def y(value: float) -> float:
        return round(TOP + (high - value) / (high - low) * HEIGHT, 2)

    lines = tuple(
        _line(track, index % COLOURS, points, lambda frame, value: (round(axis.x(frame), 2), y(value)))
        for index, (track, points) in enumerate(sorted(finite.items()))
        if points
    )
    count = round((high - low) / step)
    ticks = tuple(Tick(y(low + step * index), _label(low + step * index, step)) for index in range(count + 1))
    return Plot(title, unit, hint, lines, axis.ticks(), ticks, None if guide is None else y(guide))


def _label(value: float, step: float) -> str:
    digits = max(0, -math.floor(math.log10(step)))
    return f"{value + 0.0:.{digits}f}".replace("-0.0", "0.0") if abs(value) < step / 2 else f"{value:.{digits}f}"
