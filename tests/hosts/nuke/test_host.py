"""The adapter against what Nuke does and does not: graphs it may read past, renders, colour, views, windows, undo."""

from __future__ import annotations

import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import nuke
import numpy as np
import OpenEXR
import pytest
from nuke.document import APP

from faceplate_client import slate
from faceplate_client.errors import BadClip, BadFrames, BakeFailed, CannotDo, ClipGone, HostError, PlaceFailed
from faceplate_client.frame_maths import Span
from faceplate_client.host import Clip, Feature, PlaceMode, Result, Scope, Tag
from faceplate_client.result_folder import file_of
from faceplate_nuke import colours, graph, host, placing, scratch
from faceplate_nuke.host import NukeHost
from tests.hosts.nuke.conftest import NukeStage
from tests.support.plates import moving_plate

MEDIA = Span(1001, 1004)


@pytest.fixture(scope="session")
def plates(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A plate with overscan and pixels that are twice as wide as high, with a time code."""
    return moving_plate(96, 54, 4, face_width_px=24, overscan=6, pixel_aspect=2.0).write(tmp_path_factory.mktemp("p"))


def head(path: str | Path) -> dict[str, Any]:
    with OpenEXR.File(str(path)) as file:
        return dict(file.header())


def planes(path: str | Path) -> dict[str, Any]:
    with OpenEXR.File(str(path), separate_channels=True) as file:
        return {name: np.asarray(one.pixels) for name, one in file.channels().items()}


def bake(group: Any, frames: Span, folder: Path, view: str = "") -> str:
    here = NukeHost()
    pattern = str(folder / f"b{'.' + view if view else ''}.v001.####.exr")
    for _ in here.bake(here.clip(group.fullName(), view), frames, pattern):
        pass
    return pattern


# What the server reads itself


def test_a_plain_read_is_read_by_the_server(stage: NukeStage, plates: str) -> None:
    read = stage.plate(plates, MEDIA)
    passed = nuke.create("Grade", nuke.create("NoOp", nuke.create("Dot", read)), white=2.0, disable=True)
    clip = NukeHost().clip(stage.group(passed).fullName())
    assert (clip.source, clip.media, clip.used, clip.start) == (plates, MEDIA, MEDIA, 1001)
    assert (clip.colour_space, clip.size, clip.pixel_aspect, clip.fps) == ("lin_ap1_scene", (96, 54), 2.0, 24.0)
    assert not clip.needs_bake


def test_a_read_that_starts_elsewhere(stage: NukeStage, plates: str) -> None:
    read = stage.plate(plates, MEDIA, frame_mode="start at", frame="11")
    clip = NukeHost().clip(stage.group(read, Span(12, 13)).fullName())
    assert (clip.start, clip.used, clip.media) == (12, Span(1002, 1003), MEDIA)
    assert (clip.head_handles, clip.tail_handles) == (1, 1)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"frame": "frame/2"}, "retimed"),
        ({"frame_mode": "offset", "frame": "10"}, "retimed"),
        ({"file": "/show/[value root.name]/x.%04d.exr"}, "only Nuke can resolve"),
        ({"file": "plates/x.%04d.exr"}, "only Nuke can resolve"),
        ({"file": "/show/x.%04d.%02d.exr"}, "only Nuke can resolve"),
        ({"file": "/show/still.exr"}, "single file"),
        ({"file": "/show/x.%04d.mov"}, "movie"),
        ({"last": 1003}, "no files for all of frames"),
        ({"disable": True}, "disabled"),
        ({"raw": False, "colorspace": "AlexaV3LogC"}, "which only Nuke knows"),
    ],
)
def test_what_is_more_than_reading_is_rendered_by_nuke(
    change: dict[str, Any], why: str, stage: NukeStage, plates: str
) -> None:
    read = stage.plate(plates, MEDIA)
    group = stage.group(read, MEDIA)
    for name, value in change.items():
        read[name].setValue(value)
    clip = NukeHost().clip(group.fullName())
    assert clip.needs_bake
    assert why in clip.processed
    assert (clip.used, clip.timeline, clip.source) == (MEDIA, MEDIA, "")


def test_a_node_that_does_something_is_rendered(stage: NukeStage, plates: str) -> None:
    grade = nuke.create("Grade", stage.plate(plates, MEDIA), name="Balance", white=2.0)
    clip = NukeHost().clip(stage.group(grade).fullName())
    assert clip.processed == "Balance is no Read of files"
    grade["disable"].setValue(True)
    grade["disable"].setAnimated()
    grade["disable"].animation(0).setKey(1, 1)
    assert NukeHost().clip(stage.group(grade).fullName()).needs_bake, "a switch that is animated is no plain one"


def test_ranges(stage: NukeStage, plates: str) -> None:
    group = stage.group(stage.plate(plates, MEDIA))
    name = group.fullName()
    assert NukeHost().clip(name).timeline == MEDIA
    group["range"].setValue("script")
    assert NukeHost().clip(name).timeline == Span(1, 100)
    for knob, value in {"range": "custom", "first": 1002, "last": 1001}.items():
        group[knob].setValue(value)
    with pytest.raises(BadFrames):
        NukeHost().clip(name)


def test_groups_without_input_in_groups_and_gone(stage: NukeStage, plates: str) -> None:
    lone = nuke.toNode(host.add_group())
    lone.setInput(0, None)
    here = NukeHost()
    assert here.clips(Scope.ALL) == ()
    assert here.group_names() == ["Faceplate1"]
    with pytest.raises(BadClip, match="no input"):
        here.clip("Faceplate1")
    group = stage.group(stage.plate(plates, MEDIA))
    nuke.delete(group)
    with pytest.raises(ClipGone):
        here.clip("Faceplate2")
    with pytest.raises(ValueError, match="not attached"):
        group.name()
    # one inside of another group is found from the root, whatever group is current
    outer = nuke.create("Group", name="Shot")
    inner = stage.group(stage.plate(plates, MEDIA))
    for node in (inner.input(0), inner):
        node.data.owner = outer.data.uid
    assert here.group_names() == ["Faceplate1", "Shot.Faceplate2"]
    assert here.clip("Shot.Faceplate2").source == plates
    with pytest.raises(CannotDo):
        here.layout(Clip("x", "x", 1, Span(1, 1), processed="x"))


# Rendering


def test_a_render_is_exact_and_keeps_what_the_plate_carries(stage: NukeStage, plates: str, tmp_path: Path) -> None:
    grade = nuke.create("Grade", stage.plate(plates, MEDIA), white=-3.5)
    group = stage.group(grade)
    before, steps = nuke.snapshot(), len(APP.undo_stack)
    path = file_of(bake(group, Span(1002, 1003), tmp_path), 1002)
    assert nuke.snapshot() == before
    assert len(APP.undo_stack) == steps, "a render is nothing that one would undo"
    assert APP.executed == [(f"{group.fullName()}.Render", 1002, "main"), (f"{group.fullName()}.Render", 1003, "main")]
    source, made = planes(file_of(plates, 1002)), planes(path)
    assert made["R"].dtype == np.float32
    np.testing.assert_array_equal(made["R"], source["R"].astype(np.float32) * np.float32(-3.5))
    plate, render = head(file_of(plates, 1002)), head(path)
    for name in ("dataWindow", "displayWindow"):
        np.testing.assert_array_equal(np.array(render[name]), np.array(plate[name]))
    assert tuple(render["dataWindow"][0]) == (-6, -6)
    assert render["pixelAspectRatio"] == 2.0
    assert str(render["timeCode"]) == str(plate["timeCode"])


def test_a_render_may_be_half_and_cut_to_the_format(stage: NukeStage, plates: str, tmp_path: Path) -> None:
    group = stage.group(nuke.create("Grade", stage.plate(plates, MEDIA), white=0.5))
    group["data_window"].setValue("crop to format")
    group["depth"].setValue("half")
    path = file_of(bake(group, Span(1001, 1001), tmp_path), 1001)
    assert planes(path)["R"].dtype == np.float16
    assert np.array(head(path)["dataWindow"]).tolist() == [[0, 0], [95, 53]]
    assert group.node("Bound")["disable"].value()


def test_proxy_mode_is_off_in_a_render_and_on_again(stage: NukeStage, plates: str, tmp_path: Path) -> None:
    group = stage.group(nuke.create("Grade", stage.plate(plates, MEDIA)))
    nuke.root()["proxy"].setValue(True)
    path = file_of(bake(group, Span(1001, 1001), tmp_path), 1001)
    assert np.array(head(path)["displayWindow"]).tolist() == [[0, 0], [95, 53]]
    assert nuke.root()["proxy"].value() is True
    group.input(0).input(0)["file"].setValue("/nowhere/x.%04d.exr")
    with pytest.raises(BakeFailed, match="No such file"):
        bake(group, Span(1002, 1002), tmp_path)
    assert nuke.root()["proxy"].value() is True
    assert group.node("Render")["disable"].value() is True
    assert group.node("Render")["file"].value() == ""
    assert (APP.undo_off, APP.executing) == (0, 0)


def test_nothing_is_rendered_while_nuke_is_at_work(stage: NukeStage, plates: str, tmp_path: Path) -> None:
    group = stage.group(nuke.create("Grade", stage.plate(plates, MEDIA)))
    APP.executing += 1
    with pytest.raises(BakeFailed, match="already executing") as caught:
        bake(group, Span(1001, 1001), tmp_path)
    assert "stop that" in caught.value.hint
    APP.executing -= 1
    # from a callback, as a careless studio script would do it
    said: list[str] = []

    def from_a_knob() -> None:
        with pytest.raises(BakeFailed) as error:
            bake(group, Span(1001, 1001), tmp_path)
        said.append(str(error.value))

    nuke.addKnobChanged(from_a_knob)
    nuke.root()["fps"].setValue(25)
    assert "already executing" in said[0]


def test_cancel_in_nukes_own_meter_stops_between_frames(stage: NukeStage, plates: str, tmp_path: Path) -> None:
    group = stage.group(nuke.create("Grade", stage.plate(plates, MEDIA)))
    here = NukeHost()
    APP.cancel_at = 1002
    steps = here.bake(here.clip(group.fullName()), MEDIA, str(tmp_path / "b.####.exr"))
    assert next(steps) == 1001
    assert here.show(None)
    assert next(steps) == 1002
    assert not here.show(None), "the action hears of it before its next step"
    steps.close()
    assert [path.name for path in tmp_path.iterdir()] == ["b.1001.exr"]
    assert here.show(None), "once"


def test_off_the_main_thread_the_stand_in_refuses(stage: NukeStage, plates: str) -> None:
    group = stage.group(stage.plate(plates, MEDIA))
    said: list[str] = []

    def touch() -> None:
        for act in (group.name, lambda: NukeHost().clips(Scope.ALL), lambda: group["first"].setValue(3)):
            try:
                act()
            except AssertionError as error:
                said.append(str(error))

    thread = threading.Thread(target=touch)
    thread.start()
    thread.join()
    assert len(said) == 3
    with pytest.raises(RuntimeError, match="wait for ever"):
        nuke.executeInMainThreadWithResult(print)


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
    assert "/studio/config.ocio" in host.surroundings().colour.text


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


def test_files_of_views(stage: NukeStage) -> None:
    assert graph.pattern_of("/p/%V/x.%04d.exr", "left") == "/p/left/x.####.exr"
    assert graph.pattern_of("/p/x_%v.####.exr", "right") == "/p/x_r.####.exr"
    assert graph.pattern_of("/p/x.%d.exr", "") == "/p/x.#.exr"
    assert graph.pattern_of("/p/%V/x.%04d.exr", "") is None
    assert placing.with_views("/r/a.left.v001.%04d.exr", "left") == "/r/a.%V.v001.%04d.exr"


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
    host.add_label(lambda: None)
    assert nuke.labelOf(group) is None


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
    host.say("a word")
    assert "a word" in capfd.readouterr().err
    assert host.asked("start?") is False
    assert host.script_file() is None
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
