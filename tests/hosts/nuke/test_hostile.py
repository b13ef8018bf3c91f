"""Artists and scripts at their worst: expressions, odd names, copies, groups in groups, changes in mid-work."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nuke
import numpy as np
import OpenEXR
import pytest
from nuke.document import APP
from nuke.knobs import Knob

from faceplate_client.errors import BadClip, BakeFailed, ClientError, ClipGone, PlaceFailed
from faceplate_client.frame_maths import Span
from faceplate_client.host import Tag
from faceplate_client.job_record import load
from faceplate_client.result_folder import file_of
from faceplate_nuke import application, buttons, knobs, rendering, work
from faceplate_nuke.files import file_at
from faceplate_nuke.host import NukeHost
from tests.contract.hosts.bench import files
from tests.hosts.nuke.conftest import NukeStage, turn_until_idle
from tests.hosts.nuke.test_buttons import THREE, bench, group_of, pressed  # noqa: F401 - a fixture
from tests.hosts.nuke.test_host import MEDIA, bake
from tests.hosts.nuke.test_placing import result_of


@pytest.fixture
def group(stage: NukeStage, plates: str) -> Any:
    return stage.group(stage.plate(plates, MEDIA), MEDIA, identity="/show/jane.fpid")


# What the artist set


def test_an_expression_is_sampled_frame_by_frame(group: Any) -> None:
    group["strength"].setExpression("frame / 10")
    assert not group["strength"].isAnimated(), "as it may be"
    assert dict(knobs.recipe_of(group, Span(1, 4)).settings["strength"]) == {1: 0.1, 2: 0.2, 3: 0.3, 4: 0.4}


def test_a_node_that_is_switched_off_by_an_expression_is_rendered(stage: NukeStage, plates: str) -> None:
    grade = nuke.create("Grade", stage.plate(plates, MEDIA), disable=True)
    grade["disable"].setExpression("frame > 1002")
    assert NukeHost().clip(stage.group(grade).fullName()).needs_bake


def test_a_hold_out_is_a_sequence_and_not_the_frame_at_hand(group: Any) -> None:
    nuke.frame(1003)
    for said, sent in (
        ("/show/roto.%04d.exr", "/show/roto.####.exr"),
        ("/show/roto.####.exr", "/show/roto.####.exr"),
        ("/show/still.exr", "/show/still.exr"),
    ):
        group["holdout"].setValue(said)
        assert knobs.recipe_of(group, THREE).holdout == (sent, "A")
    for said in ("/show/[value x].%04d.exr", "/show/%V/x.%04d.exr", "roto.%04d.exr", "$HOME/x.exr"):
        group["holdout"].setValue(said)
        with pytest.raises(BadClip, match="only Nuke can resolve"):
            knobs.recipe_of(group, THREE)


@pytest.mark.parametrize(
    ("knob", "value", "said"),
    [
        ("identity", "jane.fpid", "full path"),
        ("other_settings", "boost=nan", "boost=nan"),
        ("cache_folder", "x", "full"),
    ],
)
def test_what_cannot_be_meant_is_said_before_anything_is_done(group: Any, knob: str, value: str, said: str) -> None:
    group[knob].setValue(value)
    with pytest.raises(BadClip, match=said):
        work.process(NukeHost(), group.fullName())


@pytest.mark.parametrize("folder", ["/show/[take 2]/x", "/show/$JOB", "/show/100%/x", "/show/#1"])
def test_results_never_go_where_nuke_would_read_something_else(
    group: Any, folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file knob's brackets are run, $ is a variable, % and # stand for frames."""
    there = tmp_path / folder[1:]
    there.mkdir(parents=True)
    nuke.scriptSaveAs(str(there / "shot.nk"))
    with pytest.raises(BadClip, match="for something else") as caught:
        work.process(NukeHost(), group.fullName())
    assert "Cache Folder" in caught.value.hint
    group["cache_folder"].setValue(str(tmp_path / "fine"))
    work.process(NukeHost(), group.fullName())


def test_a_group_that_is_none_of_this_plug_ins_is_said(group: Any) -> None:
    here, name = NukeHost(), group.fullName()
    group["faceplate_version"].setValue(knobs.LAYOUT + 1)
    with pytest.raises(BadClip, match="layout 2"):
        here.clip(name)
    group["faceplate_version"].setValue(knobs.LAYOUT)
    lost = group.data.knobs.pop("strength")
    with pytest.raises(BadClip, match="strength"):
        here.clip(name)
    assert here.group_names() == [name]
    group.data.knobs["strength"] = lost
    group.data.cls = "FaceplateHero"  # exported as a gizmo
    with pytest.raises(ClipGone, match="gizmo") as caught:
        here.clip(name)
    assert "Copy to Group" in caught.value.hint
    group.press("process_range")
    assert "Copy to Group" in APP.messages[-1]


@pytest.mark.parametrize(("kind", "hint"), [("LiveGroup", "Make Editable"), ("Precomp", "open that script")])
def test_a_group_where_nothing_can_be_changed_is_refused_first(
    group: Any, kind: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer = nuke.create("Group", name="Shot")
    outer.data.cls = kind
    group.data.owner = outer.data.uid
    monkeypatch.setattr("nuke.nodes.Node.published", lambda _: True, raising=False)
    for button in ("process_range", "find_faces"):
        group.press(button)
        assert hint in APP.messages[-1]
    monkeypatch.setattr("nuke.nodes.Node.published", lambda _: False)
    if kind == "LiveGroup":
        assert work.process(NukeHost(), "Shot.Faceplate1")


def test_every_button_is_at_most_one_step_of_undo(group: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, name = NukeHost(), group.fullName()
    here.place(here.clip(name), result_of(here.clip(name), tmp_path))
    monkeypatch.setattr(buttons.subprocess, "Popen", lambda *_, **__: None)
    steps, before = len(APP.undo_stack), nuke.snapshot()
    for button in ("reload", "reveal", "cancel"):
        group.press(button)
    assert (len(APP.undo_stack), nuke.snapshot()) == (steps, before)
    group.press("remove")
    assert len(APP.undo_stack) == steps + 1
    assert group["faceplate_state"].value() == "not processed"
    assert nuke.Undo.undo() == "Faceplate: Remove"
    assert nuke.snapshot() == before


def test_a_label_never_fails_and_never_holds_the_program_up(group: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    buttons.install()
    buttons.close()
    told: list[int] = []

    def slow(*_: object) -> str:
        told.append(1)
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass
        return "stale"

    with monkeypatch.context() as patch:
        patch.setattr(buttons.graph, "state_of", slow)
        assert [nuke.labelOf(group) for _ in range(5)] == ["Faceplate1\nstale"] * 5
    assert len(told) == 1, "the others come soon after one that took long"
    buttons.close()
    group.data.knobs.pop("strength")
    assert nuke.labelOf(group) == "Faceplate1\nmade by another plug-in"


# What the server reads itself


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"useLifetime": True}, "lifetime"),
        ({"format": "96 54 1.0"}, "another format"),
        ({"format": "192 54 2.0"}, "another format"),
    ],
)
def test_a_picture_that_is_not_the_files_is_rendered(group: Any, change: dict[str, Any], why: str) -> None:
    read = group.input(0)
    for name, value in change.items():
        read[name].setValue(value)
    clip = NukeHost().clip(group.fullName())
    assert clip.needs_bake
    assert why in clip.processed


def test_views_in_one_file_are_rendered(stage: NukeStage, tmp_path: Path) -> None:
    plane = np.zeros((54, 96), np.float16)
    for name, head in (("mono", {}), ("stereo", {"multiView": ["left", "right"]})):
        OpenEXR.File({"type": OpenEXR.scanlineimage, **head}, {"R": plane, "right.R": plane}).write(
            str(tmp_path / f"{name}.0001.exr")
        )
    nuke.root()["views"].setValue("left right")
    for name, rendered in (("mono", False), ("stereo", True)):
        group = stage.group(stage.plate(str(tmp_path / f"{name}.####.exr"), Span(1, 1)))
        assert NukeHost().clip(group.fullName(), "right").needs_bake is rendered


def test_pixels_that_are_not_square_are_rendered_where_no_exr_says_so(stage: NukeStage, plates: str) -> None:
    group = stage.group(stage.plate(plates.replace(".exr", ".dpx"), MEDIA))
    assert not NukeHost().clip(group.fullName()).needs_bake
    group.input(0)["format"].setValue("96 54 2.0")
    nuke.root()["format"].setValue("96 54 2.0")
    assert "not square" in NukeHost().clip(group.fullName()).processed


def test_files_of_any_number_of_digits() -> None:
    assert [str(file_at(pattern, 7)) for pattern in ("/a/x.#.exr", "/a/x.#####.exr")] == [
        "/a/x.7.exr",
        "/a/x.00007.exr",
    ]


# What makes a result stale


def test_a_new_working_space_makes_it_stale(group: Any, tmp_path: Path) -> None:
    here, name = NukeHost(), group.fullName()
    here.place(here.clip(name), result_of(here.clip(name), tmp_path))
    nuke.root()["workingSpaceLUT"].setValue("Utility - Linear - sRGB")
    assert here.state(name) == "stale 1001-1004"


def test_a_group_in_a_group_sees_what_is_above_both(stage: NukeStage, plates: str, tmp_path: Path) -> None:
    grade = nuke.create("Grade", stage.plate(plates, MEDIA))
    outer = nuke.create("Group", grade, name="Shot")
    inner = stage.group(grade, MEDIA)
    source = nuke.create("Input", name="In")
    for node in (source, inner):
        node.data.owner = outer.data.uid
    inner.data.inputs[0] = source.data.uid
    here, name = NukeHost(), "Shot.Faceplate1"
    assert here.clip(name).processed == "In is no Read of files"
    here.place(here.clip(name), result_of(here.clip(name), tmp_path))
    assert here.state(name).startswith("fresh")
    grade["white"].setValue(2.0)
    assert here.state(name).startswith("stale")


# Placing


def result_tag(job: str) -> Tag:
    return Tag(job, "/none/record.json")


def test_what_cannot_be_placed_as_a_whole_is_not_placed(
    group: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, name = NukeHost(), group.fullName()
    for folder in "ab":
        (tmp_path / folder).mkdir()
    for older in (False, True):
        if older:
            here.place(here.clip(name), result_of(here.clip(name), tmp_path / "a", tag=result_tag("fp-a")))
        before = nuke.snapshot()
        for broken in ("fromUserText", "changeInterpolation"):
            with monkeypatch.context() as patch:
                if broken == "fromUserText":
                    patch.setattr(Knob, broken, lambda self, text: self.setValue("/elsewhere/x.%04d.exr"))
                else:

                    def refuse(*_: object) -> None:
                        raise RuntimeError("no")

                    patch.setattr("nuke.knobs.AnimationCurve.changeInterpolation", refuse)
                with pytest.raises(PlaceFailed):
                    here.place(here.clip(name), result_of(here.clip(name), tmp_path / "b", tag=result_tag("fp-b")))
            assert nuke.snapshot() == before, broken


def test_files_before_frame_nought(group: Any, tmp_path: Path) -> None:
    here, clip = NukeHost(), NukeHost().clip(group.fullName())
    span = Span(-3, 0)
    result = result_of(clip, tmp_path, files=span, used=span, start=-3)
    here.place(clip, result)
    read = group.node("Result")
    assert [read[name].value() for name in ("first", "last", "origfirst", "origlast")] == [-3, 0, -3, 0]
    assert nuke.shownFile(group, -3) == str(file_of(result.pattern, -3))


def test_views_that_came_and_went(group: Any, tmp_path: Path) -> None:
    here, name = NukeHost(), group.fullName()
    for folder in "ab":
        (tmp_path / folder).mkdir()
    nuke.root()["views"].setValue("left right")
    left = here.clip(name, "left")
    here.place(left, result_of(left, tmp_path / "a"))
    nuke.root()["views"].setValue("main")
    only = here.clip(name)
    placed = here.place(only, result_of(only, tmp_path / "b"))
    assert [one.view for one in here.results()] == [""]
    assert nuke.shownFile(group, 1001) == str(tmp_path / "b" / "r.v001.1001.exr")
    here.remove(placed)
    assert nuke.shownFile(group, 1001) == nuke.shownFile(group.input(0), 1001)


# Rendering


def test_an_input_that_is_taken_away_is_no_black_picture(group: Any, tmp_path: Path) -> None:
    here = NukeHost()
    steps = here.bake(here.clip(group.fullName()), MEDIA, str(tmp_path / "b.####.exr"))
    assert next(steps) == 1001
    group.setInput(0, None)
    with pytest.raises(BakeFailed, match="no input any more"):
        next(steps)


def test_a_file_that_nuke_cut_short_is_no_picture(group: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = nuke.pixels.write

    def short(*words: Any) -> str:
        path = str(write(*words))
        Path(path).write_bytes(Path(path).read_bytes()[:-200])
        return path

    monkeypatch.setattr(nuke.pixels, "write", short)
    with pytest.raises(BakeFailed, match="was not written"):
        bake(group, Span(1001, 1001), tmp_path)


def test_a_full_disk_is_called_so(group: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(rendering.shutil, "disk_usage", lambda _: full)
    group.input(0)["file"].setValue("/nowhere/x.%04d.exr")
    with pytest.raises(BakeFailed) as caught:
        bake(group, Span(1001, 1001), tmp_path)
    assert "make room" in caught.value.hint


# While an action works


def at_work(group: Any, until: str = "swap") -> Any:
    """Process Range, up to its first word of a step."""
    group.press("process_range")
    task = buttons.RUNNING.task
    assert task is not None
    while task.progress.step != until and not task.ended:
        APP.pump()
    return task


def test_a_group_may_be_renamed_and_changed_meanwhile(bench: Any) -> None:  # noqa: F811
    group = group_of(bench)
    at_work(group)
    group.setName("Hero")
    nuke.create("NoOp", name="Faceplate1")
    group["strength"].setValue(0.25)
    turn_until_idle()
    assert (APP.messages, APP.printed) == ([], [])
    (placed,) = NukeHost().results()
    assert placed.clip_id == "Hero"
    assert load(placed.tag.record).recipe.settings == {}
    assert group["faceplate_state"].value() == "stale 1001-1003", "it was made with the settings before"


def test_a_result_of_a_script_that_was_closed_goes_nowhere(bench: Any) -> None:  # noqa: F811
    buttons.install()
    group = group_of(bench)
    first = at_work(group, "place")
    path = nuke.scriptName()
    nuke.scriptSaveAs(path, 1)
    for call in APP.callbacks["onScriptClose"]:
        call()
    nuke.scriptOpen(path)  # the same names: what waited for the main thread must not meet them
    before = nuke.snapshot()
    other = nuke.toNode("Faceplate1")
    while not first.ended or APP.waiting:
        APP.pump()
    assert nuke.snapshot() == before
    assert (APP.messages, APP.printed) == ([], [])
    pressed(other, "process_range")
    assert other["faceplate_state"].value() == "fresh 1001-1003"


def test_nuke_at_work_when_all_is_made(bench: Any, capfd: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    group = group_of(bench)
    before = nuke.snapshot()
    at_work(group, "place")
    APP.executing = 1
    turn_until_idle()
    APP.executing = 0
    assert "is not done twice" in capfd.readouterr().err
    assert APP.printed == []
    assert {**nuke.snapshot(), group.data.uid: 0} == {**before, group.data.uid: 0}
    pressed(group, "process_range")
    (placed,) = NukeHost().results()
    assert load(placed.tag.record).path.parent.name == "v001", "it went on there"


def test_a_fault_of_our_own_is_said(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    group = group_of(bench)

    def broken(*_: object, **__: object) -> Callable[..., Any]:
        def fault(_session: Any) -> Any:
            raise LookupError("gone astray")

        return fault

    monkeypatch.setattr(work, "process", broken)
    group.press("process_range")
    turn_until_idle()
    assert "a fault of its own: LookupError: gone astray" in APP.messages[-1]
    assert "Traceback" in APP.printed[-1]


def test_a_copy_never_writes_over_the_result_of_the_first(bench: Any) -> None:  # noqa: F811
    group = group_of(bench, result_name="hero")
    nuke.frame(1002)
    pressed(group, "process_frame")
    (first,) = NukeHost().results()
    before = files(first.pattern, Span(1002, 1002))
    text = nuke.scriptText()
    nuke.scriptReadText(text.partition("}\n")[2])  # as copied and pasted
    copy = nuke.toNode("Faceplate2")
    assert [one.clip_id for one in NukeHost().results()] == ["Faceplate1", "Faceplate2"]
    copy["strength"].setValue(0.25)
    pressed(copy, "process_frame")
    assert files(first.pattern, Span(1002, 1002)) == before
    placed = {one.clip_id: Path(one.pattern).parent.name for one in NukeHost().results()}
    assert placed == {"Faceplate1": "v001", "Faceplate2": "v002"}
    # a script that was saved under another name shows the first one's files too
    nuke.scriptSaveAs(str(bench.folder / "shot_b.nk"))
    nuke.delete(copy)
    group["strength"].setValue(0.5)
    pressed(group, "process_frame")
    assert files(first.pattern, Span(1002, 1002)) == before


def test_one_group_that_cannot_be_done_does_not_stop_all(bench: Any) -> None:  # noqa: F811
    buttons.install()
    bad, good = group_of(bench, Span(1001, 1001)), group_of(bench, Span(1001, 1001))
    bad["identity"].setValue("")
    lone = nuke.toNode(application.add_group())
    lone.setInput(0, None)
    APP.menus["Nuke"]["Render/Faceplate/Process All Groups"]()
    turn_until_idle()
    assert [one.clip_id for one in NukeHost().results()] == [good.fullName()]
    assert "no identity is chosen" in APP.messages[-1]
    assert "has no input" in APP.messages[-1]


@pytest.mark.parametrize("folder", ["/dev/null/x", "/proc/faceplate"])
def test_a_folder_that_takes_nothing_is_named(bench: Any, folder: str) -> None:  # noqa: F811
    group = group_of(bench, Span(1001, 1001))
    before = nuke.snapshot()
    group["cache_folder"].setValue(folder)
    pressed(group, "process_range")
    assert folder in APP.messages[-1]
    group["cache_folder"].setValue("")
    assert nuke.snapshot() == before


def test_frames_before_nought_are_made_and_shown(bench: Any) -> None:  # noqa: F811
    pattern = str(bench.folder / "neg.####.exr")
    for number in (-1, 0):
        shutil.copy(file_of(bench.plate, 1002 + number), file_of(pattern, number))
    group = bench.stage.group(bench.stage.plate(pattern, Span(-1, 0)), Span(-1, 0), identity=bench.identity)
    pressed(group, "process_range")
    assert APP.messages == []
    assert group["faceplate_state"].value() == "fresh -1-0"
    assert Path(nuke.shownFile(group, -1)).is_file()
    nuke.picture(group, -1)


def test_nothing_is_wrong_that_is_not_said(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    group = group_of(bench, Span(1001, 1001))
    group["identity"].setValue(str(bench.folder / "nobody.fpid"))
    pressed(group, "process_range")
    assert "nobody.fpid" in APP.messages[-1]
    for missing in ("identity", "input"):
        if missing == "input":
            group.setInput(0, None)
        group.press("process_range")
        turn_until_idle()
    assert "Wire the plate into it" in APP.messages[-1]
    with pytest.raises(ClientError):
        NukeHost().clip(group.fullName())
