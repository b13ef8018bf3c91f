"""Face tracks in Blender's Clip Editor, and corrected ones on their way back into the result."""

from __future__ import annotations

from pathlib import Path

import pytest

from faceplate.face import Origin
from faceplate.faces.corrections import NAMED
from faceplate.faces.sidecar import read_sidecar
from tests.hosts.blender.conftest import Blender
from tests.integration.server.conftest import Running


def test_there_and_back(blender: Blender, server: Running, shot: dict[str, Path], tmp_path: Path) -> None:
    told = blender.run(
        "tracking",
        "there_and_back",
        plates=shot["plates"],
        server=server.place.folder,
        identity=shot["identity"],
        out=tmp_path,
        timeout=240,
    )
    width, height = told["size"]
    assert told["tracks"] == sorted(f"Faceplate 1 {name}" for name in NAMED)
    (sidecar,) = told["sidecar"]
    (track,) = read_sidecar(Path(sidecar)).tracks
    for name, index in NAMED.items():
        for frame, u, v in told["markers"][f"Faceplate 1 {name}"]:
            x, y = track.observations[1000 + frame].landmarks[index, :2]
            if (name, frame) == ("chin", 2):
                y -= 6
            elif (name, frame) == ("nose tip", 3):
                x -= 4
            assert (u * width, (1 - v) * height) == pytest.approx((x, y), abs=0.02)
    assert [track.observations[frame].origin is Origin.EDITED for frame in (1001, 1002, 1003)] == [False, True, True]
    assert [name.split(".")[-2] for name in told["changed"]] == ["1002", "1003"]
    assert len(told["files"]) == 3
    x, y = track.observations[1002].landmarks[NAMED["chin"], :2]
    assert (told["chin"][0] * width, (1 - told["chin"][1]) * height) == pytest.approx((x, y), abs=0.02)
