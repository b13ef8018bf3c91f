"""Frames of the timeline and of the source: whatever the trim, there and back is the same frame."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faceplate.media.sequence import parse_frame_range
from faceplate_client.errors import BadClip, BadFrames
from faceplate_client.frame_maths import Span, TimeMap, as_text, from_text, keys_to_source, spans
from faceplate_client.host import Clip

FRAME = st.integers(-100_000, 100_000)
QUICK = settings(max_examples=200, deadline=None, database=None)


@st.composite
def some_span(draw: st.DrawFn) -> Span:
    first = draw(FRAME)
    return Span(first, first + draw(st.integers(0, 500)))


@st.composite
def trimmed(draw: st.DrawFn) -> tuple[Span, Span, int]:
    """(frames of the source, those that are used, timeline start)."""
    media = draw(some_span())
    first = draw(st.integers(media.first, media.last))
    return media, Span(first, draw(st.integers(first, media.last))), draw(FRAME)


@QUICK
@given(trimmed())
def test_there_and_back(case: tuple[Span, Span, int]) -> None:
    _, used, start = case
    times = TimeMap(start, used)
    assert len(times.timeline) == len(used)
    assert [times.to_source(frame) for frame in times.timeline] == list(used)
    assert [times.to_timeline(frame) for frame in used] == list(times.timeline)


@QUICK
@given(trimmed(), some_span())
def test_a_part_of_a_clip_shows_the_same_frames(case: tuple[Span, Span, int], stretch: Span) -> None:
    _, used, start = case
    whole = TimeMap(start, used)
    part = whole.part(stretch)
    common = set(whole.timeline) & set(stretch)
    if part is None:
        assert common == set()
        return
    assert set(part.timeline) == common
    assert all(part.to_source(frame) == whole.to_source(frame) for frame in common)


@QUICK
@given(trimmed(), st.integers(0, 600))
def test_handles_are_what_the_source_has(case: tuple[Span, Span, int], handles: int) -> None:
    media, used, start = case
    clip = Clip("id", "name", start, used, media, "/x.####.exr")
    wide = used.widened(handles, media)
    assert used.first - wide.first == min(handles, clip.head_handles)
    assert wide.last - used.last == min(handles, clip.tail_handles)
    assert wide.meet(media) == wide
    assert wide.meet(used) == used


@QUICK
@given(st.sets(st.integers(-300, 300), max_size=60))
def test_text_is_what_the_server_reads(frames: set[int]) -> None:
    text = as_text(frames)
    assert from_text(text) == tuple(sorted(frames))
    assert sum(len(span) for span in spans(frames)) == len(frames)
    if frames:
        assert parse_frame_range(text) == tuple(sorted(frames))


@QUICK
@given(some_span(), some_span())
def test_spans_meet_like_sets(one: Span, other: Span) -> None:
    common = one.meet(other)
    assert set(common or ()) == set(one) & set(other)
    assert one.moved(7).moved(-7) == one


def test_keys_move_with_the_clip() -> None:
    assert keys_to_source(((11, 0.5), (13, 1.0)), TimeMap(11, Span(1003, 1010))) == ((1003, 0.5), (1005, 1.0))


@pytest.mark.parametrize("text", ["a", "1-", "5-3", "1..3", "--2", "1-20000000"])
def test_no_frames(text: str) -> None:
    with pytest.raises(BadFrames):
        from_text(text)


def test_what_makes_no_span_or_clip() -> None:
    with pytest.raises(BadFrames, match="found 5-3"):
        Span(5, 3)
    with pytest.raises(BadFrames, match="negative"):
        Span(1, 2).widened(-1, Span(0, 9))
    with pytest.raises(BadFrames, match="does not have"):
        Span(1, 20).widened(1, Span(0, 9))
    with pytest.raises(BadClip, match="does not have"):
        Clip("id", "name", 1, Span(1, 20), Span(1, 10), "/x.####.exr")
    with pytest.raises(BadClip, match="go together"):
        Clip("id", "name", 1, Span(1, 20), Span(1, 20))
