"""What a warm sidecar is asked once, however many frames there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from faceplate.errors import SettingError
from faceplate.faces.shot import AnalyseSettings, ShotFaces
from faceplate.job import Assignment
from faceplate_server.frames import faces as frame_faces
from faceplate_server.frames.faces import _Shot


def test_the_choice_of_tracks_is_made_once_for_each_set_of_people(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def choose(tracks: Any, assignments: Any) -> dict[int, int]:
        asked.append(assignments)
        if assignments[0].track == 9:
            raise SettingError("there is no track 9")
        return {1: 0}

    monkeypatch.setattr(frame_faces, "resolve_assignments", choose)
    shot = _Shot(ShotFaces((), (), (), AnalyseSettings(), {}))
    main, second, absent = ((Assignment(Path("/a.fpid"), track),) for track in ("main", 2, 9))
    assert [shot.chosen(who) for who in (main, main, second, main)] == [{1: 0}] * 4
    assert asked == [main, second]
    for _ in range(2):  # a mistake is told every time
        with pytest.raises(SettingError):
            shot.chosen(absent)
    for number in range(500):
        shot.chosen((Assignment(Path(f"/{number}.fpid")),))
    assert len(shot.choices) <= frame_faces._CHOICES
