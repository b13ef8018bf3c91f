"""Which media time a timeline shows: as OTIO computes it where it does, frame by frame by hand where it does not."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import opentimelineio as otio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faceplate.media.timelines.times import exact_rate, seconds
from faceplate.media.timelines.uses import Use, find_uses, timeline_rate
from tests.support.timelines import clip, dissolve, gap, span, time, timeline, track

RATES = st.sampled_from([24.0, 25.0, 24000 / 1001, 23.976, 30000 / 1001, 60.0])
ZERO = Fraction(0)


def shown(use: Use, rate: Fraction) -> dict[int, Fraction]:
    """Media frame by timeline frame."""
    return dict(use.positions(rate, use.rate, ZERO))


@st.composite
def items(draw: st.DrawFn, rate: float, depth: int = 0) -> list[Any]:
    """Clips, gaps, nests, dissolves where they have room."""
    made: list[Any] = []
    for number in range(draw(st.integers(1, 5))):
        length = draw(st.integers(9, 40))
        kind = draw(st.sampled_from(["clip", "clip", "gap", "nest"] if depth < 2 else ["clip", "gap"]))
        if kind == "gap":
            made.append(gap(length, rate))
        elif kind == "clip":
            if made and isinstance(made[-1], otio.schema.Clip) and draw(st.booleans()):
                made.append(dissolve(draw(st.integers(0, 4)), draw(st.integers(0, 4)), rate))
            made.append(clip(f"c{depth}{number}", draw(st.integers(0, 90_000)), length, rate=rate))
        else:
            nest = otio.schema.Stack(
                "nest", [track(draw(items(rate, depth + 1))) for _ in range(draw(st.integers(1, 2)))]
            )
            whole = nest.available_range().duration.value
            if whole > 3:
                begin = draw(st.integers(0, int(whole) - 3))
                nest.source_range = span(begin, draw(st.integers(2, int(whole) - begin)), rate)
            made.append(nest)
    return made


def by_otio(document: Any, rate: float) -> dict[int, dict[int, float]]:
    """Media frame by timeline frame of each clip, found and transformed by OTIO; without transitions."""
    found: dict[int, dict[int, float]] = {}

    def down(container: Any, at: Any, tick: int) -> None:
        if isinstance(container, otio.schema.Clip):
            found.setdefault(id(container), {})[tick] = at.value
        elif isinstance(container, otio.schema.Stack):
            for child in container:
                if child.trimmed_range().contains(container.transformed_time(at, child)):
                    down(child, container.transformed_time(at, child), tick)
        else:
            for index, child in enumerate(container):
                if isinstance(child, otio.schema.Gap | otio.schema.Transition):
                    continue
                if container.range_of_child_at_index(index).contains(at):
                    down(child, container.transformed_time(at, child), tick)

    for each in document.video_tracks():
        for tick in range(round(each.duration().value)):
            down(each, time(tick, rate), tick)
    return found


@settings(max_examples=60, deadline=None)
@given(data=st.data(), rate=RATES)
def test_without_retimes_as_otio_computes_it(data: st.DataObject, rate: float) -> None:
    document = timeline(data.draw(items(rate)), data.draw(items(rate)))
    exact = exact_rate(rate)
    expected = by_otio(document, rate)
    mine = {id(use.clip): use for use in find_uses(document)}
    assert set(expected) <= set(mine)
    assert all(use.ticks(exact) for key, use in mine.items() if key in expected)
    for key, frames in expected.items():
        positions = shown(mine[key], exact)
        for tick, value in frames.items():
            assert positions[tick] == pytest.approx(value, abs=1e-6)
        # what is there besides lies in a transition beside the clip
        assert len(positions) - len(frames) <= 8


@settings(max_examples=60, deadline=None)
@given(
    start=st.integers(0, 90_000),
    length=st.integers(1, 200),
    speed=st.sampled_from([0.25, 0.5, 0.8, 1.0, 1.5, 2.0, 4.0, 0.0, -1.0, -2.0]),
    before=st.integers(0, 50),
    rate=RATES,
)
def test_retimes_frame_by_frame(start: int, length: int, speed: float, before: int, rate: float) -> None:
    document = timeline(
        [gap(before, rate), clip("a", start, length, rate=rate, speed=speed)]
        if before
        else [clip("a", start, length, rate=rate, speed=speed)]
    )
    exact = exact_rate(rate)
    ways = [shown(use, exact) for use in find_uses(document)]
    scale = Fraction(speed).limit_denominator(1000)
    down = {before + step: start + step * scale for step in range(length)}
    assert ways[0] == down
    if speed < 0:
        up = {before + step: start + length * -scale - 1 + step * scale for step in range(length)}
        assert ways[1] == up
    assert len(ways) == (2 if speed < 0 else 1)


@given(before=st.integers(0, 8), after=st.integers(0, 8), speed=st.sampled_from([1.0, 2.0]))
@settings(max_examples=40, deadline=None)
def test_dissolves_reach_into_both_clips(before: int, after: int, speed: float) -> None:
    document = timeline([clip("a", 100, 20), dissolve(before, after), clip("b", 500, 20, speed=speed)])
    a, b = find_uses(document)
    assert a.ticks(Fraction(24)) == range(20 + after)
    assert b.ticks(Fraction(24)) == range(20 - before, 40)
    assert shown(b, Fraction(24))[20 - before] == 500 - before * Fraction(speed)
    by_otio_range = document.tracks[0].range_of_child_at_index(2)
    assert by_otio_range.start_time.value - before == b.ticks(Fraction(24))[0]
    assert (a.shown, b.shown) == (
        (Fraction(100, 24), Fraction(120, 24)),
        (Fraction(500, 24), Fraction(500 + int(20 * speed), 24)),
    )


def test_a_retimed_nest_multiplies_and_trims() -> None:
    nest = otio.schema.Stack("nest", [track([clip("a", 1000, 30), clip("b", 2000, 30, speed=2.0)])])
    nest.source_range = span(10, 20)
    nest.effects.append(otio.schema.LinearTimeWarp(time_scalar=2.0))
    a, b = find_uses(timeline([gap(5), nest]))
    assert shown(a, Fraction(24)) == {5 + step: 1010 + 2 * step for step in range(10)}
    assert shown(b, Fraction(24)) == {15 + step: 2000 + 4 * step for step in range(10)}
    assert (a.nested, a.speed, b.speed) == (True, 2, 4)


def test_a_frozen_nest_shows_one_frame() -> None:
    nest = otio.schema.Stack("nest", [track([clip("a", 1000, 30), clip("b", 2000, 30)])])
    nest.source_range = span(31, 12)
    nest.effects.append(otio.schema.FreezeFrame())
    (b,) = find_uses(timeline([nest]))
    assert b.clip.name == "b"
    assert set(shown(b, Fraction(24)).values()) == {Fraction(2001)}
    assert b.extent(Fraction(24), Fraction(24), ZERO) == (2001, 2001)


def test_mixed_rates_show_the_frame_of_that_moment() -> None:
    document = timeline([clip("a", 0, 24, rate=24), clip("b", 50, 25, rate=25)])
    a, b = find_uses(document)
    assert timeline_rate(document) == 24
    assert len(a.ticks(Fraction(24))) == 24
    positions = dict(b.positions(Fraction(24), Fraction(25), ZERO))
    assert positions == {24 + step: 50 + Fraction(25 * step, 24) for step in range(24)}
    assert b.extent(Fraction(24), Fraction(25), ZERO) == (50, 74)


def test_what_is_switched_off_or_no_picture_is_not_there() -> None:
    off, hidden = clip("off", 0, 10), track([clip("hidden", 0, 10)])
    off.enabled, hidden.enabled = False, False
    sound = track([clip("sound", 0, 10)], kind=otio.schema.TrackKind.Audio)
    assert [use.clip.name for use in find_uses(timeline([off, clip("on", 3, 10)], hidden, sound))] == ["on"]


def test_unknown_retimes_are_a_problem_and_no_guess() -> None:
    odd = clip("odd", 0, 10)
    odd.effects.append(otio.schema.TimeEffect(name="", effect_name="Twixtor"))
    (use,) = find_uses(timeline([odd]))
    assert "Twixtor" in use.problem
    nan = clip("nan", 0, 10)
    nan.effects.append(otio.schema.LinearTimeWarp(time_scalar=float("inf")))
    (use,) = find_uses(timeline([nan]))
    assert "inf" in use.problem


def test_the_whole_may_be_trimmed() -> None:
    document = timeline([clip("a", 100, 20), clip("b", 500, 20)])
    document.tracks.source_range = span(15, 10)
    a, b = find_uses(document)
    assert shown(a, Fraction(24)) == {step: 115 + step for step in range(5)}
    assert shown(b, Fraction(24)) == {5 + step: 500 + step for step in range(5)}


def test_ntsc_rates_are_exact_over_a_day() -> None:
    for spelled in (23.976, 23.98, 24000 / 1001, 23.976023976):
        assert exact_rate(spelled) == Fraction(24000, 1001)
    assert exact_rate(29.97) == Fraction(30000, 1001)
    assert exact_rate(25.0) == 25
    frames = 24 * 3600 * 24
    assert seconds(time(frames, 23.976)) * Fraction(24000, 1001) == frames
