"""The adapter against what Nuke does and does not: graphs it may read past, renders, windows, undo."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import nuke
import numpy as np
import OpenEXR
import pytest
from nuke.document import APP

from faceplate_client.errors import BadClip, BadFrames, BakeFailed, CannotDo, ClipGone
from faceplate_client.frame_maths import Span
from faceplate_client.host import Clip, Scope
from faceplate_client.result_folder import file_of
from faceplate_nuke import application
from faceplate_nuke.host import NukeHost
from tests.hosts.nuke.conftest import NukeStage

MEDIA = Span(1001, 1004)


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
    lone = nuke.toNode(application.add_group())
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
