"""Timelines for tests, made with OTIO itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import opentimelineio as otio

Rate = float


def time(value: float, rate: Rate = 24) -> Any:
    return otio.opentime.RationalTime(value, rate)


def span(start: float, length: float, rate: Rate = 24) -> Any:
    return otio.opentime.TimeRange(time(start, rate), time(length, rate))


def clip(
    name: str,
    start: float,
    length: float,
    *,
    url: str | None = None,
    available: tuple[float, float] | None = None,
    rate: Rate = 24,
    speed: float | None = None,
) -> Any:
    """A clip of `length` timeline frames that begins at media frame `start`."""
    reference = otio.schema.MissingReference()
    if url is not None:
        reference = otio.schema.ExternalReference(url, span(*available, rate) if available else None)
    made = otio.schema.Clip(name, reference, span(start, length, rate))
    if speed == 0:
        made.effects.append(otio.schema.FreezeFrame())
    elif speed is not None:
        made.effects.append(otio.schema.LinearTimeWarp(time_scalar=speed))
    return made


def gap(length: float, rate: Rate = 24) -> Any:
    return otio.schema.Gap(source_range=span(0, length, rate))


def dissolve(before: float, after: float, rate: Rate = 24) -> Any:
    return otio.schema.Transition(
        "dissolve", otio.schema.TransitionTypes.SMPTE_Dissolve, time(before, rate), time(after, rate)
    )


def track(items: Iterable[Any], name: str = "V1", kind: str = otio.schema.TrackKind.Video) -> Any:
    made = otio.schema.Track(name, kind=kind)
    made.extend(items)
    return made


def timeline(*tracks: Sequence[Any] | Any, name: str = "cut", start: Any = None) -> Any:
    made = otio.schema.Timeline(name, global_start_time=start)
    for number, items in enumerate(tracks):
        made.tracks.append(items if isinstance(items, otio.schema.Track) else track(items, f"V{number + 1}"))
    return made
