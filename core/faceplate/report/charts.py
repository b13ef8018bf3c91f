"""What a report plots over time, and the strips that show where every frame and track came from."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..job import FrameState
from .plots import Axis, Plot, Series, make_plot
from .values import FaceRow, FrameRow, JobReport

_STRIP_COLUMNS = 900


@dataclass(frozen=True, slots=True)
class _Quantity:
    title: str
    unit: str
    hint: str
    value: Callable[[FaceRow], float | None]
    floor: float | None = 0.0
    ceiling: float | None = None
    least: float = 1e-3


_CONFIDENCE = _Quantity(
    "Confidence",
    "score",
    "Of the landmark net. Below the dashed line a face counts as weak.",
    lambda face: face.score,
    ceiling=1.0,
)
_OTHERS = (
    _Quantity(
        "Jitter",
        "px",
        "Frame-to-frame shake of the rigid points. A spike is a jump, a plateau a nervous track.",
        lambda face: face.jitter_px,
        least=0.2,
    ),
    _Quantity(
        "Face size",
        "px",
        "Width of the face in the plate. Where it exceeds the photos', the detail is not theirs.",
        lambda face: face.width_px,
    ),
    _Quantity(
        "Head turn",
        "degrees",
        "Positive to the subject's left. Profiles fade out as the settings say.",
        lambda face: face.yaw_deg,
        floor=None,
        least=20.0,
    ),
    _Quantity(
        "Matte area",
        "% of frame",
        "Final matte. A sudden drop is an occluder or a lost face.",
        lambda face: 100 * face.matte_area,
        least=0.1,
    ),
    _Quantity(
        "Occluded",
        "% of matte",
        "How much of the face stayed plate because something is in front of it.",
        lambda face: 100 * face.occluded,
        least=10.0,
    ),
    _Quantity(
        "Exposure of the change",
        "stops",
        "How much brighter the change made the skin. A step shows as flicker.",
        lambda face: face.exposure_stops,
        floor=None,
        least=0.2,
    ),
)


@dataclass(frozen=True, slots=True)
class Cell:
    """A run of frames in one state.

    Attributes:
        x: user units.
        width: user units.
        kind: CSS class.
        text: for the tooltip.
    """

    x: float
    width: float
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Strip:
    """A row of cells over time.

    Attributes:
        label: what it shows.
        cells: left to right.
    """

    label: str
    cells: tuple[Cell, ...]


def _series(rows: Sequence[FrameRow], value: Callable[[FaceRow], float | None]) -> Series:
    found: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for row in rows:
        for face in row.faces:
            number = value(face)
            if number is not None:
                found[face.track].append((row.frame, number))
    return found


def report_plots(report: JobReport) -> tuple[Plot, ...]:
    """The plots of a report; those without any value are left out."""
    made = (
        make_plot(
            report.rows,
            _series(report.rows, quantity.value),
            quantity.title,
            quantity.unit,
            quantity.hint,
            floor=quantity.floor,
            ceiling=quantity.ceiling,
            least=quantity.least,
            guide=report.weak_below if quantity is _CONFIDENCE else None,
        )
        for quantity in (_CONFIDENCE, *_OTHERS)
    )
    return tuple(plot for plot in made if plot is not None)


_STATE_KINDS: Mapping[FrameState, tuple[int, str]] = {
    FrameState.DONE: (0, "s-done"),
    FrameState.NO_FACE: (1, "s-noface"),
    FrameState.HELD: (2, "s-held"),
    FrameState.SKIPPED: (3, "s-skipped"),
    FrameState.FAILED: (4, "s-failed"),
}
_ORIGIN_KINDS: Mapping[str, tuple[int, str]] = {
    "detected": (0, "o-detected"),
    "tracked": (1, "o-tracked"),
    "edited": (2, "o-edited"),
    "filled": (4, "o-filled"),
}
_WEAK = (3, "o-weak")


def report_strips(report: JobReport) -> tuple[Strip, ...]:
    """The state of every frame, then of every track's face in it. In a crowded strip the worst state shows."""
    if not report.rows:
        return ()
    states = {row.frame: (*_STATE_KINDS[row.state], row.state.value) for row in report.rows}
    strips = [_strip("frames", states, report.rows)]
    tracks: dict[int, dict[int, tuple[int, str, str]]] = defaultdict(dict)
    for row in report.rows:
        for face in row.faces:
            weak = face.score < report.weak_below
            origin = _ORIGIN_KINDS.get(face.origin, (1, "o-tracked"))
            kind = max(origin, _WEAK) if weak else origin
            tracks[face.track][row.frame] = (*kind, f"{face.origin}, weak" if weak else face.origin)
    strips.extend(_strip(f"track {track}", cells, report.rows) for track, cells in sorted(tracks.items()))
    return tuple(strips)


def _strip(label: str, kinds: Mapping[int, tuple[int, str, str]], rows: Sequence[FrameRow]) -> Strip:
    axis = Axis(rows)
    per_column = math.ceil(axis.count / _STRIP_COLUMNS)
    columns: dict[int, tuple[int, str, str]] = {}
    for frame, kind in kinds.items():
        column = (frame - axis.first) // per_column
        columns[column] = max(columns.get(column, kind), kind)
    cells: list[Cell] = []
    start: int | None = None
    for column in sorted(columns):
        follows = columns.get(column + 1) == columns[column]
        start = column if start is None else start
        if not follows:
            first = axis.first + start * per_column
            last = min(axis.last, axis.first + (column + 1) * per_column - 1)
            x, end = axis.x(first - 0.5), axis.x(last + 0.5)
            frames = str(first) if first == last else f"{first}-{last}"
            cells.append(Cell(round(x, 2), round(end - x, 2), columns[column][1], f"{frames}: {columns[column][2]}"))
            start = None
    return Strip(label, tuple(cells))
