"""Colour, placing, views, state and temporary files, against what Nuke does and does not."""

from __future__ import annotations

import ntpath
import os
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nuke
import numpy as np
import pytest
from nuke.document import APP

from faceplate_client import slate
from faceplate_client.errors import BadClip, ClipGone, HostError, PlaceFailed
from faceplate_client.frame_maths import Span
from faceplate_client.host import Clip, Feature, PlaceMode, Result, Scope, Tag
from faceplate_client.result_folder import file_of
from faceplate_nuke import application, colours, files, scratch
from faceplate_nuke.host import NukeHost
from tests.hosts.nuke.conftest import NukeStage
from tests.hosts.nuke.test_host import MEDIA, bake, planes

# Colour


def test_the_working_space_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    here, root = NukeHost(), nuke.root()
    assert here.project().working_space == "lin_ap1_scene"
    for values, space in (
        ({"workingSpaceLUT": "scene_linear"}, "lin_ap1_scene"),
        ({"OCIO_config": "nuke-default", "workingSpaceLUT": "linear"}, "lin_rec709_scene"),
        ({"colorManagement": "Nuke"}, "lin_rec709_scene"),
    ):
        for name, value in values.items():
            root[name].setValue(value)
        assert here.project().working_space == space
    for name, value in {"colorManagement": "OCIO", "OCIO_config": "custom", "workingSpaceLUT": "house linear"}.items():
        root[name].setValue(value)
    with pytest.raises(HostError, match="house linear") as caught:
        here.project()
    assert "$OCIO" in caught.value.hint
    monkeypatch.setenv("OCIO", "/studio/config.ocio")
    assert here.project().working_space == "house linear", "both sides have the studio's configuration"
    assert "/studio/config.ocio" in application.surroundings().colour.text


def test_names_of_spaces() -> None:
    aces = colours.Management(True, "fn-nuke_cg-config-v1.0.0_aces-v1.3_ocio-v2.1", False, "ACEScg")
    for said, space in (
        ("default (sRGB - Texture)", "srgb_rec709_scene"),
        ("scene_linear (ACES - ACEScg)", "lin_ap1_scene"),
        ("Linear Rec.709 (sRGB)", "lin_rec709_scene"),
        ("Utility/Linear\tUtility - Linear - Rec.709", None),
        ("Input - ARRI - V3 LogC (EI800) - Wide Gamut", "ARRI LogC3 (EI800)"),
        ("unheard of", None),
    ):
        found = colours.file_space(said, aces)
        assert (found.space if found else None) == space, said
    assert colours.file_space("anything", replace(aces, studio=True)) == colours.FileSpace("anything", "")
    assert colours.same("ACEScg", "lin_ap1_scene")
    assert not colours.same("ACEScg", "lin_rec709_scene")
    assert colours.nuke_name(("lin_rec709_scene",), ["raw", "Utility - Linear - sRGB\tx"]) == "Utility - Linear - sRGB"
    assert colours.nuke_name(("lin_rec709_scene",), ["raw"]) is None


def test_every_server_name_is_one() -> None:
    from faceplate.colour.spaces import ColourConfig

    config = ColourConfig.open()
    for space in colours._LINEAR:
        assert config.is_linear(config.resolve(space)), space
    for space, (linear, _) in colours._ENCODED.items():
        assert config.linear_twin(config.resolve(space)) == config.resolve(linear), space


# Placing


def result_of(clip: Clip, folder: Path, **more: Any) -> Result:
    """Slates stand for results."""
    pattern = str(folder / f"r{'.' + clip.view if clip.view else ''}.v001.####.exr")
    for frame in clip.used:
        slate.write_exr(file_of(pattern, frame), 96, 54, "x")
    facts: dict[str, Any] = {"colour_space": "ACEScg", "interop_id": "lin_ap1_scene", "pixel_aspect": 1.0, "fps": 24.0}
    facts |= {"pattern": pattern, "files": clip.used, "used": clip.used, "start": clip.start, "mode": PlaceMode.NODE}
    facts |= {"covers_clip": True, "name": "r", "tag": Tag("fp-1", str(folder / "record.json"))}
    return Result(**{**facts, **more})


def test_a_result_in_another_space_is_converted_by_nuke_or_refused(
    stage: NukeStage, plates: str, tmp_path: Path
) -> None:
    group = stage.group(stage.plate(plates, MEDIA))
    here, read = NukeHost(), group.node("Result")
    clip = here.clip(group.fullName())
    before = nuke.snapshot()
    other = result_of(clip, tmp_path, colour_space="Linear Rec.709 (sRGB)", interop_id="lin_rec709_scene")
    with pytest.raises(PlaceFailed, match="no colour space"):
        here.place(clip, other)
    assert nuke.snapshot() == before, "refused before anything was touched"
    APP.colour_spaces.append("Utility - Linear - sRGB")
    placed = here.place(clip, other)
    assert (read["raw"].value(), read["colorspace"].value()) == (False, "Utility - Linear - sRGB")
    here.remove(placed)
    assert nuke.snapshot() == before
    here.place(clip, result_of(clip, tmp_path))
    assert read["raw"].value() is True


def test_the_plate_is_seen_outside_of_the_result(stage: NukeStage, plates: str, tmp_path: Path) -> None:
    read = stage.plate(plates, MEDIA, frame_mode="start at", frame="11")
    group = stage.group(read, Span(12, 13))
    here = NukeHost()
    result = result_of(here.clip(group.fullName()), tmp_path)
    nuke.frame(12)  # a curve that is made new begins with a key here
    placed = here.place(here.clip(group.fullName()), result)
    shown = [nuke.shownFile(group, frame) for frame in (11, 12, 13, 14)]
    plate = [str(file_of(plates, number)) for number in (1001, 1004)]
    assert shown == [plate[0], str(file_of(result.pattern, 1002)), str(file_of(result.pattern, 1003)), plate[1]]
    group.node("Show")["which"].setValue(0)
    assert nuke.shownFile(group, 12) == str(file_of(plates, 1002))
    here.remove(placed)
    with pytest.raises(PlaceFailed, match="no result"):
        here.remove(placed)
    nuke.delete(group)
    with pytest.raises(PlaceFailed, match="not in the script"):
        here.remove(placed)


def test_a_result_has_its_mattes_as_channels(stage: NukeStage, reference: str) -> None:
    group = stage.group(stage.plate(reference, Span(1001, 1008)))
    here = NukeHost()
    clip = here.clip(group.fullName())
    result = Result(
        *(reference, clip.used, clip.used, clip.start, PlaceMode.NODE, "ACEScg", "lin_ap1_scene", 1.0, 24.0, True, "r"),
        Tag("fp-1", "/none"),
    )
    here.place(clip, result)
    nuke.frame(1001)
    assert {"rgba.red", "face.red", "face.alpha", "matte.alpha", "matte_core.alpha"} <= set(group.channels())


def test_an_inside_that_was_changed_is_said(stage: NukeStage, plates: str, tmp_path: Path) -> None:
    group = stage.group(stage.plate(plates, MEDIA))
    nuke.delete(group.node("ByFrame"))
    here = NukeHost()
    with pytest.raises(PlaceFailed, match="ByFrame"):
        here.place(here.clip(group.fullName()), result_of(here.clip(group.fullName()), tmp_path))


def test_one_group_in_two_views(stage: NukeStage, plates: str, tmp_path: Path) -> None:
    nuke.root()["views"].setValue("left right")
    group = stage.group(stage.plate(plates, MEDIA))
    here, name = NukeHost(), group.fullName()
    before = nuke.snapshot()
    left, right = here.views(name)
    assert [clip.view for clip in here.clips(Scope.ALL)] == ["left", "right"]
    first = here.place(left, result_of(left, tmp_path))
    assert nuke.shownFile(group, 1001, "left") == str(tmp_path / "r.left.v001.1001.exr")
    assert nuke.shownFile(group, 1001, "right") == str(file_of(plates, 1001)), "not done yet: its plate"
    second = here.place(right, result_of(right, tmp_path))
    assert [nuke.shownFile(group, 1001, view)[-20:] for view in ("left", "right")] == [
        "r.left.v001.1001.exr",
        "r.right.v001.1001.exr"[-20:],
    ]
    assert {one.view for one in here.results()} == {"left", "right"}
    here.remove(first)
    assert nuke.shownFile(group, 1001, "left") == str(file_of(plates, 1001))
    assert nuke.shownFile(group, 1001, "right").endswith("r.right.v001.1001.exr")
    here.remove(second)
    assert nuke.snapshot() == before
    group["views"].setValue("right")
    assert [clip.view for clip in here.views(name)] == ["right"]
    with pytest.raises(ClipGone):
        here.clip(name, "left")
    group["views"].setValue("middle")
    with pytest.raises(BadClip, match="middle"):
        here.views(name)


def test_views_are_rendered_each_for_itself(stage: NukeStage, plates: str, tmp_path: Path) -> None:
    nuke.root()["views"].setValue("left right")
    grade = nuke.create("Grade", stage.plate(plates, MEDIA))
    grade["white"].splitView("right")
    grade["white"].setValue(4.0, 0, 0, "right")
    group = stage.group(grade)
    made = {
        view: planes(file_of(bake(group, Span(1001, 1001), tmp_path, view), 1001))["G"] for view in ("left", "right")
    }
    np.testing.assert_array_equal(made["right"], made["left"] * 4)


def test_files_of_views_and_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    for file, view, pattern in (
        ("/p/%V/x.%04d.exr", "left", "/p/left/x.####.exr"),
        ("/p/x_%v.####.exr", "right", "/p/x_r.####.exr"),
        ("/p/x.%d.exr", "", "/p/x.#.exr"),
        ("/p/%V/x.%04d.exr", "", None),
        ("/p/x.%4d.exr", "", None),  # filled with blanks
        ("C:/p/x.%04d.exr", "", None),
    ):
        assert files.pattern_of(file, view) == pattern, file
    assert files.with_views("/r/a.left.v001.%04d.exr", "left") == "/r/a.%V.v001.%04d.exr"
    assert files.awkward_sign("/show/a b/é") is None
    assert [files.awkward_sign(f"/show/{sign}") for sign in "[]$%#\\"] == list("[]$%#\\")
    monkeypatch.setattr(files, "os", SimpleNamespace(path=ntpath, sep="\\"))
    for file, pattern in (
        ("C:/p/x.%04d.exr", "C:/p\\x.####.exr"),
        ("//server/share/x.####.exr", "//server/share/x.####.exr"),
        ("C:\\p\\x.%04d.exr", None),  # Nuke takes a backslash for an escape
        ("x.%04d.exr", None),
    ):
        assert files.pattern_of(file, "") == pattern, file
    assert files.nuke_path("C:\\show\\r\\a.####.exr") == "C:/show/r/a.%04d.exr"
    assert files.awkward_sign("C:\\show\\x") is None


# State


def test_a_result_is_stale_when_something_above_changes(stage: NukeStage, plates: str, tmp_path: Path) -> None:
    grade = nuke.create("Grade", stage.plate(plates, MEDIA))
    group = stage.group(grade)
    here, name = NukeHost(), group.fullName()
    assert here.state(name) == "not processed"
    here.place(here.clip(name), result_of(here.clip(name), tmp_path))
    assert here.state(name) == group["faceplate_state"].value() == "fresh 1001-1004"
    for node, knob, value, stale in (
        (grade, "xpos", 400, False),
        (grade, "label", "warm", False),
        (group, "show", 0, False),
        (grade, "white", 2.0, True),
        (grade.input(0), "last", 1003, True),
        (group, "strength", 0.5, True),
        (group, "track", "2", True),
    ):
        before = node[knob].data.value
        node[knob].setValue(value)
        assert here.state(name) == f"{'stale' if stale else 'fresh'} 1001-1004", knob
        node[knob].setValue(before)
    group.setInput(0, grade.input(0))
    assert here.state(name).startswith("stale")


def test_a_renamed_group_is_found_by_its_result(stage: NukeStage, plates: str, tmp_path: Path) -> None:
    group = stage.group(stage.plate(plates, MEDIA))
    here, name = NukeHost(), group.fullName()
    here.place(here.clip(name), result_of(here.clip(name), tmp_path))
    group.setName("Hero")
    assert here.clip(name).id == "Hero"
    assert here.results()[0].clip_id == "Hero"


def test_a_terminal_has_no_undo_and_says_in_text(capfd: pytest.CaptureFixture[str]) -> None:
    assert NukeHost().about().features == {Feature.BAKE, Feature.UNDO}
    nuke.reset(gui=False)
    assert NukeHost().about().features == {Feature.BAKE}
    application.say("a word")
    assert "a word" in capfd.readouterr().err
    assert application.asked("start?") is False
    assert application.script_file() is None
    assert NukeHost().project().folder == Path.home() / "faceplate"


# Temporary files


def test_renders_lie_in_memory_where_they_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/dev/shm").is_dir():
        pytest.skip("no /dev/shm on this system")
    memory = Path("/dev/shm") / f"faceplate-test-{tmp_path.name}"
    monkeypatch.setattr(scratch, "default_folder", lambda: memory)
    try:
        found = scratch.bakes_folder((96, 54), 4, 4, tmp_path)
        assert found == memory / scratch.NAME
        assert (memory.stat().st_mode & 0o777, found.stat().st_mode & 0o777) == (0o700, 0o700)
        assert scratch.bakes_folder((100_000, 100_000), 1000, 4, tmp_path).parent == tmp_path
        assert scratch.bakes_folder((0, 0), 4, 4, tmp_path).parent == tmp_path
        assert scratch.bakes_folder((96, 54), 4, 4, tmp_path, 10**8).parent == tmp_path, "as many channels as there are"
        old, new = found / "old", found / "new"
        for folder in (old, new):
            folder.mkdir()
            (folder / "b.0001.exr").write_bytes(b"x")
        os.utime(old / "b.0001.exr", (0, 0))
        scratch.bakes_folder((96, 54), 4, 4, tmp_path)
        assert not old.exists(), "a killed Nuke left it"
        assert new.exists()
        memory.chmod(0o755)
        assert scratch.bakes_folder((96, 54), 4, 4, tmp_path).parent == tmp_path, "others could enter"
    finally:
        shutil.rmtree(memory, ignore_errors=True)
