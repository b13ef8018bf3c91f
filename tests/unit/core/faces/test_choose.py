from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from faceplate.errors import SettingError
from faceplate.faces.choose import resolve_assignments
from faceplate.job import Assignment
from tests.unit.core.faces.made import made_track

BIG = made_track(1, range(1, 11), width=200)
SMALL = made_track(2, range(1, 11), x=600, width=80)
AFTER_CUT = made_track(3, range(11, 14), width=90)
LATER_SMALL = made_track(4, range(12, 14), x=600, width=60, label="extra")
TRACKS = (BIG, SMALL, AFTER_CUT, LATER_SMALL)


def give(name: str, track: int | Literal["main", "all", "auto"] = "main") -> Assignment:
    return Assignment(Path(f"{name}.fpid"), track)


def test_main_is_the_biggest_and_after_a_cut_the_biggest_of_what_follows() -> None:
    assert resolve_assignments(TRACKS, [give("jane")]) == {1: 0, 3: 0}


def test_main_counts_frames_and_size() -> None:
    brief = made_track(5, range(1, 3), width=150)
    assert resolve_assignments([brief, SMALL], [give("jane")]) == {2: 0}


def test_all_takes_every_track() -> None:
    assert resolve_assignments(TRACKS, [give("jane", "all")]) == {1: 0, 2: 0, 3: 0, 4: 0}


def test_named_tracks_go_first_then_main_then_all() -> None:
    wanted = [give("crowd", "all"), give("jane", "main"), give("joe", 1)]
    assert resolve_assignments(TRACKS, wanted) == {1: 2, 2: 1, 3: 1, 4: 0}


def test_no_faces_is_no_error_unless_one_is_named() -> None:
    assert resolve_assignments([], [give("jane"), give("joe", "all")]) == {}
    with pytest.raises(SettingError, match="no face was found"):
        resolve_assignments([], [give("jane", 1)])


def test_an_absent_track_is_answered_with_those_there_are() -> None:
    with pytest.raises(SettingError) as caught:
        resolve_assignments(TRACKS, [give("jane", 9)])
    assert caught.value.expected is not None
    assert "track 4 (extra): frames 12-13, 60 px wide" in caught.value.expected


@pytest.mark.parametrize("track", [2, "main", "all"])
def test_two_identities_on_one_track_are_refused(track: int | Literal["main", "all"]) -> None:
    with pytest.raises(SettingError, match="two identities") as caught:
        resolve_assignments(TRACKS, [give("jane", track), give("joe", track)])
    assert "jane.fpid and joe.fpid" in str(caught.value)


def test_whom_the_recogniser_found_goes_before_main_and_after_named_tracks() -> None:
    wanted = [give("jane", "auto"), give("joe", 1), give("extra")]
    assert resolve_assignments(TRACKS, wanted, {1: 0, 2: 0, 99: 0}) == {1: 1, 2: 0, 3: 2}
    assert resolve_assignments(TRACKS, wanted[:1], {}) == {}


def test_one_frame_cannot_be_recognised() -> None:
    with pytest.raises(SettingError, match="looks at the whole shot"):
        resolve_assignments(TRACKS, [give("jane", "auto")])
