from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faceplate.errors import SidecarError
from faceplate.face import Origin
from faceplate.faces.corrections import NAMED, correct, parse_corrections
from faceplate.faces.edits import carry_edits
from faceplate.faces.shot import QUANTUM
from faceplate.faces.sidecar import format_shot
from faceplate.faces.sidecar_read import parse_shot
from tests.unit.core.faces.made import made_track
from tests.unit.core.faces.test_sidecar import made_shot


def points_of(track: Any, frame: int) -> dict[str, list[float]]:
    landmarks = track.observations[frame].landmarks
    return {name: [float(value) for value in landmarks[index, :2]] for name, index in NAMED.items()}


@given(
    shift=st.tuples(st.floats(-300, 300), st.floats(-300, 300)),
    scale=st.floats(0.7, 1.4),
    degrees=st.floats(-40, 40),
)
def test_a_face_that_moves_turns_and_grows_as_one_follows_exactly(
    shift: tuple[float, float], scale: float, degrees: float
) -> None:
    track = made_track(1, range(1001, 1003), x=800.0)
    seen = track.observations[1001].landmarks[:, :2].astype(np.float64)
    turn = np.radians(degrees)
    matrix = scale * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    moved = (seen - seen.mean(0)) @ matrix.T + seen.mean(0) + shift
    wanted = {name: (float(moved[index, 0]), float(moved[index, 1])) for name, index in NAMED.items()}
    (result,) = correct((track,), {1: {1001: wanted}}, 1.0, "x")
    got = result.observations[1001]
    if got.origin is Origin.EDITED:
        assert np.abs(got.landmarks[:, :2] - moved).max() < 2 / QUANTUM
    else:
        assert np.abs(moved - seen).max() < 0.02
    assert result.observations[1002] is track.observations[1002]


def test_one_point_moves_its_surroundings_and_not_the_other_points() -> None:
    track = made_track(1, range(1001, 1002), x=800.0)
    before = track.observations[1001].landmarks
    x, y = (float(v) for v in before[NAMED["left mouth corner"], :2])
    (result,) = correct((track,), {1: {1001: {"left mouth corner": (x + 10.0, y + 6.0)}}}, 1.0, "x")
    after = result.observations[1001].landmarks
    moved = after - before
    np.testing.assert_allclose(moved[NAMED["left mouth corner"], :2], (10.0, 6.0), atol=2 / QUANTUM)
    for name, index in NAMED.items():
        if name != "left mouth corner":
            np.testing.assert_allclose(moved[index, :2], 0.0, atol=2 / QUANTUM)
    assert np.hypot(*moved[:, :2].T).max() < 1.5 * np.hypot(10, 6)
    np.testing.assert_array_equal(moved[:, 2], 0.0)


def corrected_text(points: dict[str, list[float]]) -> str:
    document = json.loads(format_shot(made_shot(), tool="test"))
    document["corrections"] = {"1": {"1002": points}}
    return json.dumps(document)


def test_a_sidecar_is_read_with_its_corrections_and_keeps_them() -> None:
    plain = made_shot()
    x, y = points_of(plain.tracks[0], 1002)["nose tip"]
    shot = parse_shot(corrected_text({"nose tip": [x + 5.0, y]}), "x")
    seen = shot.tracks[0].observations[1002]
    assert (seen.origin, seen.cover) == (Origin.EDITED, None)
    np.testing.assert_allclose(seen.landmarks[NAMED["nose tip"], :2], (x + 5.0, y), atol=2 / QUANTUM)
    again = parse_shot(format_shot(shot, tool="test"), "x")
    np.testing.assert_array_equal(again.tracks[0].observations[1002].landmarks, seen.landmarks)
    assert "corrections" in again.extras
    fresh = carry_edits(plain, shot)
    np.testing.assert_array_equal(fresh.tracks[0].observations[1002].landmarks, seen.landmarks)
    assert "corrections" in fresh.extras


def test_points_where_they_were_change_nothing() -> None:
    plain = made_shot()
    shot = parse_shot(corrected_text(points_of(plain.tracks[0], 1002)), "x")
    assert shot.tracks[0].observations[1002].origin is plain.tracks[0].observations[1002].origin


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ([], "an object"),
        ({"one": {}}, None),
        ({"one": {"1001": {"chin": [1, 2]}}}, "'one'"),
        ({"1": {"x": {"chin": [1, 2]}}}, "'x'"),
        ({"1": {"1001": {"ear": [1, 2]}}}, "'ear'"),
        ({"1": {"1001": {"chin": [1]}}}, "[x, y]"),
        ({"1": {"1001": {"chin": [1, True]}}}, "[x, y]"),
        ({"1": {"1001": {"chin": [1, 1e300]}}}, "[x, y]"),
    ],
)
def test_what_is_no_correction_is_refused(value: Any, named: str | None) -> None:
    if named is None:
        assert parse_corrections(value, "x") == {}
        return
    with pytest.raises(SidecarError) as caught:
        parse_corrections(value, "x")
    assert named in str(caught.value)


@pytest.mark.parametrize("where", [{"2": {"1001": {"chin": [1, 2]}}}, {"1": {"1008": {"chin": [1, 2]}}}])
def test_corrections_of_nothing_are_refused(where: Any) -> None:
    with pytest.raises(SidecarError, match="no face"):
        correct(made_shot().tracks, parse_corrections(where, "x"), 1.0, "x")
