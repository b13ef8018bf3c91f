"""The host layer's adapter in real Blenders, without a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import OpenEXR
import pytest
from numpy.typing import NDArray

from tests.hosts.blender.conftest import Blender
from tests.support.exr import write_flat

FIRST, COUNT = 1001, 20
SRGB_TRIP = 4e-5
"""Relative: to the sequencer's sRGB and back, in float, which versions before 5.2 do to every strip."""


@pytest.fixture(scope="module")
def plates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Frames with the number in red, 20 in the left half's green, -0.5 in the upper half's blue."""
    folder = tmp_path_factory.mktemp("plates ä b")
    for frame in range(FIRST, FIRST + COUNT):
        write_flat(folder / f"pl ä.{frame}.exr", {"RGBA": plate(frame)})
    return folder


def plate(frame: int) -> NDArray[np.float32]:
    pixels = np.zeros((64, 128, 4), np.float32)
    pixels[..., 0], pixels[:, :64, 1], pixels[:32, :, 2], pixels[..., 3] = frame / 1000, 20.0, -0.5, 1.0
    return pixels


def read(path: Path) -> NDArray[np.float32]:
    with OpenEXR.File(str(path)) as file:
        return np.asarray(file.channels()["RGBA"].pixels)


def test_strips_are_read_as_clips(blender: Blender, plates: Path) -> None:
    told = blender.run("placing", "clips", plates=plates)
    linear = ["lin_rec709_scene", [128, 64]]
    files = "file names without a plain row of numbers"
    modifier = "strobe" if blender.number == (5, 0) else "modifiers"
    assert told["clips"] == {
        # start, used, media, why it is baked, colour space, size, head and tail handles
        "plain": [5, "1001-1020", "1001-1020", "", *linear, 0, 0],
        "cut": [43, "1004-1016", "1001-1020", "", *linear, 3, 4],
        # what is cut off for good in 4.2 to 5.0 moves the strip's end, from 5.2 on its beginning
        "hard": [7 if blender.number >= (5, 2) else 5, "1003-1020", "1001-1020", "", *linear, 2, 0],
        "still": [10, "1004", "1004", "", *linear, 0, 0],
        "acescg": [5, "1001-1020", "1001-1020", "", "lin_ap1_scene", [128, 64], 0, 0],
        "long": [5, "5-29", "None", "longer than its files", None, [128, 64], 0, 0],
        "back": [5, "5-24", "None", "reversed", None, [128, 64], 0, 0],
        "tinted": [5, "5-24", "None", modifier, None, [128, 64], 0, 0],
        'keyed "x"': [5, "5-24", "None", "animated", None, [128, 64], 0, 0],
        "faded": [5, "5-24", "None", "animated opacity", None, [128, 64], 0, 0],
        "gap": [5, "5-7", "None", files, None, [128, 64], 0, 0],
        "log": [5, "5-24", "None", "colour space Filmic Log", None, [128, 64], 0, 0],
        "in meta": [5, "1001-1020", "1001-1020", "", *linear, 0, 0],
    }
    assert told["selected"] == ["plain", "meta"]  # what lies in a meta strip that was not entered is not meant
    assert told["marked"] == ["gap"]
    assert told["meta"] == "meta strip"


def test_place_and_remove_restore_the_scene(blender: Blender, plates: Path, tmp_path: Path) -> None:
    told = blender.run("placing", "place_and_remove", plates=plates, folder=tmp_path / "résultat 1")
    places: dict[str, Any] = told["places"]
    assert places["sh010 ä"] == [2, 9, 21, True]
    assert places["sh010 ä face"] == [3, 9, 21, False]
    assert [places[name][0] for name in ("title", "above title", "blur")] == [4, 5, 6]  # they made room
    assert places["in meta"] == [1, 30, 49, True]
    assert places["in meta face"] == [2, 30, 49, False]
    assert places["still face"] == [10, 60, 84, False]  # one file, held as long as the still
    assert told["look"] == ["ADD", 0.75, True, 0.5, 3, "PREMUL", "Linear Rec.709"]
    assert told["blur"] == "sh010 ä face"  # an effect on the source takes the result
    assert told["clips"] == ["in meta", "sh010 ä", "still"]  # results are no clips
    assert told["second"] == [3, "sh010 ä face.001", "j1 j2"]
    assert told["heir"] == ["sh010 ä face.001", True, "j2"]
    assert told["differences"] == []
    assert told["after loading"] == []


def test_what_artists_change_is_kept(blender: Blender, plates: Path, tmp_path: Path) -> None:
    told = blender.run("altering", "altered", plates=plates, folder=tmp_path)
    graded, left = told["graded"]
    assert graded == [
        ["my face", 6, 0.5, 10, 23, "1006", "1019"],
        ["my face", 6, 0.5, 5, 24, "1001", "1020"],
        ["my face", 6, 0.5, 7, 22, "1003", "1018"],
        [False, 1.0, 1],  # it would have the source's look twice
    ]
    assert left == []
    assert told["renamed"] == {
        "new source": [2, False, None, []],
        "blur": [3, False, None, []],  # the title, back in its channel
        "new blur": [5, False, "new source", []],
        "late": [8, False, "new source", []],  # Blender would delete it with the result
        "source": [20, False, None, []],
    }
    copies = told["copied"]
    assert copies["pairs"] == {"strip:source face": "strip:source", "strip:face copy": "strip:source copy"}
    assert copies["half"]["source copy"] == [2, False, None, []]
    assert copies["half"]["source"][1]  # as long as its own result stands over it
    assert copies["twin"]["source"][1]
    assert copies["end"] == {"source": [2, False, None, []], "source copy": [2, False, None, []]}
    assert "the effect 'late'" in told["orphaned"][0]
    assert told["orphaned"][1]
    assert told["orphaned"][2] == []
    assert told["kinds"] == []
    assert told["lost"] == [[128, 64]]
    own, message, hint = told["linked"]
    assert own == ["ours"]
    assert "is linked from" in message
    assert "make the scene local" in hint


def test_what_cannot_be_placed_leaves_the_scene_alone(blender: Blender, plates: Path, tmp_path: Path) -> None:
    told = blender.run("placing", "refuse", plates=plates, folder=tmp_path)
    assert [(kind, bool(hint)) for kind, _, hint in told["told"]] == [
        ("FramesMissing", True),
        ("PlaceFailed", True),
        ("PlaceFailed", True),
        ("ClipGone", True),
        ("ClipGone", True),
    ]
    assert "pl ä.1002.exr" in told["told"][0][1]
    assert "no colour space" in told["told"][1][1]
    assert "no free channel" in told["told"][2][1]
    assert told["differences"] == []


def test_bakes_show_the_strip_alone(blender: Blender, plates: Path, tmp_path: Path) -> None:
    told = blender.run("placing", "bake", plates=plates, folder=tmp_path)
    assert [told[name] for name in ("plain", "tinted", "in meta", "meta")] == [[8, 9]] * 4
    assert told["differences"] == []
    assert told["during"] == ["Scene", "Scene.001"]  # in a copy, which is gone afterwards
    assert ["gone.exr" in text for text in told["refused"]] == [True, True, False, False]
    assert "half.exr is not whole" in told["refused"][2]
    assert "before frame 0" in told["refused"][3]
    assert told["saved"] == [["Scene"]] * 3
    assert "frame 8 of strip 'plain'" in told["failed"][0]
    assert told["failed"][1]
    tolerance = 0.0 if blender.number >= (5, 2) else SRGB_TRIP
    for frame, source in ((8, 1004), (9, 1005)):
        np.testing.assert_allclose(read(tmp_path / f"plain.{frame:04d}.exr"), plate(source), rtol=tolerance)
        # the meta strip's scale and opacity are left out: the result will lie in the meta strip
        np.testing.assert_allclose(
            read(tmp_path / f"in meta.{frame:04d}.exr"), plate(source)[::-1], rtol=tolerance, atol=1e-9
        )
    small = read(tmp_path / "meta.0008.exr")
    assert small[2, 5].tolist() == [0.0, 0.0, 0.0, 0.0]  # half size: nothing at the edge
    np.testing.assert_allclose(small[20, 40], [1.004, 20.0, 0.0, 1.0], rtol=SRGB_TRIP)  # its opacity is the result's
    tinted = read(tmp_path / "tinted.0008.exr")
    if blender.number == (5, 0):  # every second frame, see `scenes.process`
        np.testing.assert_allclose(tinted, plate(1003), rtol=SRGB_TRIP, atol=1e-9)
    else:
        assert 1.008 < tinted[0, 0, 0] < 1.012  # brighter by the modifier, opaque, alone


def test_the_working_space_is_told(blender: Blender) -> None:
    told = blender.run("placing", "colours")
    assert told["start"] == "lin_rec709_scene"
    if blender.number >= (5, 0):
        assert told["Linear Rec.2020"] == "lin_rec2020_scene"
        assert told["ACEScg"] == "lin_ap1_scene"
    assert told["images"] <= 2  # Render Result and Viewer Node: none of ours is left
