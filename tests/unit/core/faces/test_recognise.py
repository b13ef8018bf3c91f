"""A track is one person over its whole length, or nobody."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from faceplate.face import Observation, Origin, Track
from faceplate.faces.recognise import (
    MatchLimits,
    References,
    TrackVector,
    best_frames,
    combine,
    match_tracks,
    seen_together,
    unit_vector,
)


def person(seed: int) -> NDArray[np.float32]:
    return unit_vector(np.random.default_rng(seed).standard_normal(512))


def looks(who: NDArray[np.float32], count: int, noise: float, seed: int) -> NDArray[np.float32]:
    """Vectors of any length whose cosine to the person is about 1 / sqrt(1 + noise**2)."""
    random = np.random.default_rng(seed)
    around = who + noise * random.standard_normal((count, 512)) / np.sqrt(512)
    return (around * random.uniform(5, 30, (count, 1))).astype(np.float32)


def track_of(*parts: NDArray[np.float32]) -> TrackVector:
    vectors = np.concatenate(parts)
    return combine(list(range(1001, 1001 + len(vectors))), vectors, "made")


PEOPLE = {"jane": References(person(1)[None], "Jane"), "tom": References(person(2)[None], "Tom")}


def test_a_track_is_the_person_it_shows() -> None:
    jane = track_of(looks(person(1), 12, 1.0, 3))
    found = match_tracks({1: jane}, PEOPLE)[1]
    assert found.person == "jane"
    assert found.similarity > 0.85
    assert not jane.mixed
    assert found.reason.startswith(f"Jane {found.similarity:.2f}, threshold 0.35, next Tom")


@given(st.integers(0, 4), st.integers(0, 2**16))
def test_bad_looks_do_not_pull_a_track_away(bad: int, seed: int) -> None:
    noise = np.random.default_rng(seed).standard_normal((bad, 512)).astype(np.float32)
    vector = track_of(looks(person(1), 12 - bad, 0.8, seed), noise)
    found = match_tracks({1: vector}, PEOPLE)[1]
    assert found.person == "jane"
    assert found.similarity > 0.8
    assert len(vector.frames) >= 12 - bad - 1


@pytest.mark.parametrize("strangers", [3, 5, 6])
def test_a_track_of_two_people_is_nobody(strangers: int) -> None:
    vector = track_of(looks(person(1), 12 - strangers, 0.5, 1), looks(person(2), strangers, 0.5, 2))
    assert vector.mixed
    found = match_tracks({1: vector}, PEOPLE)[1]
    assert found.person is None
    assert "more than one person" in found.reason


def test_a_stranger_is_nobody() -> None:
    found = match_tracks({1: track_of(looks(person(9), 6, 0.5, 1))}, PEOPLE)[1]
    assert found.person is None
    assert "below the threshold" in found.reason


def test_one_between_two_people_is_nobody() -> None:
    half = unit_vector(person(1) + person(2))
    found = match_tracks({1: track_of(looks(half, 6, 0.2, 1))}, PEOPLE)[1]
    assert found.person is None
    assert "too close to the next person" in found.reason
    assert match_tracks({1: track_of(looks(half, 6, 0.2, 1))}, PEOPLE, MatchLimits(margin=0.0))[1].person is not None


def test_any_reference_of_a_person_counts() -> None:
    people = {"jane": References(np.stack([person(5), person(1)])), "tom": PEOPLE["tom"]}
    assert match_tracks({1: track_of(looks(person(1), 3, 0.5, 1))}, people)[1].person == "jane"


def test_nobody_is_in_two_places() -> None:
    sure, unsure = track_of(looks(person(1), 8, 0.3, 1)), track_of(looks(person(1), 8, 1.5, 2))
    found = match_tracks({1: unsure, 2: sure}, PEOPLE, together=[(1, 2)])
    assert (found[1].person, found[2].person) == (None, "jane")
    assert "another face in the same frames is more like Jane" in found[1].reason
    assert match_tracks({1: unsure, 2: sure}, PEOPLE)[1].person == "jane"


def observation(frame: int, width: float, yaw: float = 0.0, origin: Origin = Origin.DETECTED) -> Observation:
    landmarks = np.zeros((478, 3), np.float32)
    landmarks[0, 0], landmarks[1, 0] = -width / 2, width / 2
    landmarks[263, 0] = 10.0
    return Observation(frame, landmarks, 0.9, origin, yaw)


def test_the_best_look_of_each_part_of_a_track() -> None:
    seen = [observation(f, 100.0 + (50.0 if f % 5 == 3 else 0.0), 70.0 if f == 8 else 0.0) for f in range(1, 16)]
    track = Track(1, {one.frame: one for one in seen})
    assert best_frames(track, 3) == [3, 6, 13]
    assert best_frames(track, 99) == list(range(1, 16))


def test_filled_frames_are_no_looks() -> None:
    seen = [observation(1, 50.0), observation(2, 500.0, origin=Origin.FILLED)]
    assert best_frames(Track(1, {one.frame: one for one in seen})) == [1]


def test_tracks_that_share_a_frame() -> None:
    tracks = [
        Track(i, {f: observation(f, 50.0) for f in frames}) for i, frames in ((1, (1, 2)), (4, (2, 3)), (5, (3,)))
    ]
    assert seen_together(tracks) == [(1, 4), (4, 5)]
