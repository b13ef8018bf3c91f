"""Faces for a host's tracker, against the server's own reading of the same file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faceplate.face import Origin
from faceplate.faces import corrections
from faceplate.faces.sidecar import read_sidecar, write_sidecar
from faceplate_client import tracks
from faceplate_client.errors import RecordDamaged
from tests.unit.core.faces.test_sidecar import made_shot


@pytest.fixture
def sidecar(tmp_path: Path) -> Path:
    path = tmp_path / "sh ä.faces.json"
    write_sidecar(path, made_shot(), tool="test")
    return path


def test_names_are_the_servers() -> None:
    assert dict(tracks.NAMED) == dict(corrections.NAMED)


def test_points_are_where_the_server_has_them(sidecar: Path) -> None:
    found, shot = tracks.read(sidecar), read_sidecar(sidecar)
    assert [(one.id, one.label, list(one.frames)) for one in found.tracks] == [
        (one.id, one.label, list(one.observations)) for one in shot.tracks
    ]
    for one, other in zip(found.tracks, shot.tracks, strict=True):
        for frame, points in one.frames.items():
            for name, index in tracks.NAMED.items():
                np.testing.assert_allclose(points[name], other.observations[frame].landmarks[index, :2], atol=1e-4)


@given(st.floats(-50, 2000), st.floats(-50, 1200))
def test_unit_and_back(x: float, y: float) -> None:
    found = tracks.FaceTracks(Path(), (-8, -8, 1928, 1088), ())
    u, v = found.to_unit(x, y)
    assert found.to_plate(u, v) == pytest.approx((x, y), abs=1e-6)
    assert found.to_unit(-8, 1088) == (0.0, 0.0)


def test_what_was_moved_reaches_the_server_and_the_rest_of_the_file_stays(sidecar: Path) -> None:
    before = sidecar.read_text("utf-8")
    points = tracks.read(sidecar).tracks[0].frames[1003]
    x, y = points["chin"]
    now = {**points, "chin": (x + 4.0, y), "nose tip": (points["nose tip"][0] + 0.01, points["nose tip"][1])}
    changed = tracks.moved(points, now)
    assert list(changed) == ["chin"]
    assert tracks.correct(sidecar, 1, {1003: changed}) == 1
    seen = read_sidecar(sidecar).tracks[0].observations[1003]
    assert seen.origin is Origin.EDITED
    np.testing.assert_allclose(seen.landmarks[152, :2], (x + 4.0, y), atol=2e-3)
    assert tracks.read(sidecar).tracks[0].frames[1003]["chin"] == pytest.approx((x + 4.0, y), abs=1e-3)

    # further corrections add to it; one line of the file is all that differs
    assert tracks.correct(sidecar, 1, {1003: {"forehead": (x, y - 200.0)}, 1004: {"chin": (x, y)}}) == 2
    lines = sidecar.read_text("utf-8").splitlines()
    assert [line for line in lines if not line.startswith('"corrections"')] == before.splitlines()
    assert set(json.loads("\n".join(lines))["corrections"]["1"]["1003"]) == {"chin", "forehead"}


def test_nothing_is_lost_where_it_cannot_be(sidecar: Path) -> None:
    before = sidecar.read_bytes()
    for track, frame in ((9, 1001), (1, 1008)):
        with pytest.raises(RecordDamaged, match="no face in frame"):
            tracks.correct(sidecar, track, {frame: {"chin": (1.0, 2.0)}})
    assert sidecar.read_bytes() == before
    sidecar.write_text("{", "utf-8")
    with pytest.raises(RecordDamaged):
        tracks.read(sidecar)
    sidecar.write_text('{"format": "faceplate faces", "plate": {}}', "utf-8")
    with pytest.raises(RecordDamaged):
        tracks.read(sidecar)
    with pytest.raises(RecordDamaged):
        tracks.read(sidecar.with_name("none"))
