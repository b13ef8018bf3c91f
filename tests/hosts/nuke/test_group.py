"""The group as it ships: the text parses, its knobs are the plug-in's, nothing in it needs the plug-in."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import nuke
import pytest
from nuke.document import APP

from faceplate.deliver import LAYERS
from faceplate.job import SETTING_FIELDS
from faceplate_client.errors import BadClip, HostError
from faceplate_client.frame_maths import Span
from faceplate_nuke import application, buttons, knobs, placing
from tests.hosts.nuke.conftest import NukeStage

TEXT = application.GROUP_FILE.read_text("utf-8")
BUILT_IN = {"name", "label", "help", "note_font_size", "tile_color", "xpos", "ypos", "selected", "disable"}


@pytest.fixture
def group() -> Any:
    nuke.create("NoOp", name="Plates").setSelected(True)
    made = nuke.toNode(application.add_group())
    assert made is not None
    return made


def test_its_knobs_are_the_plug_ins(group: Any) -> None:
    there = {
        name for name, knob in group.knobs().items() if knob.data.is_user and knob.data.kind not in ("label", "tab")
    }
    assert there == set(knobs.KNOBS)
    assert len(set(knobs.KNOBS)) == len(knobs.KNOBS)
    assert {node.name() for node in group.nodes()} == set(knobs.INSIDE)
    assert group["faceplate_version"].value() == knobs.LAYOUT
    assert knobs.is_ours(group)
    assert not knobs.is_ours(nuke.toNode("Plates"))


def test_its_settings_are_the_servers(group: Any) -> None:
    assert set(knobs.SETTINGS) <= set(SETTING_FIELDS), "those of other engines go through Other Settings"
    for name in knobs.SETTINGS:
        field = SETTING_FIELDS[name]
        assert knobs.SETTINGS[name] == float(field.default)
        assert float(group[name].value()) == float(field.default), name
        if not isinstance(field.default, bool):
            assert group[name].data.facts["range"] == (field.metadata["low"], field.metadata["high"])
    assert set(group["layers"].values()) == set(knobs.LAYER_SETS)
    assert set(knobs.LAYER_SETS["all"]) == set(LAYERS) - {"element"}
    assert set(group["depth"].values()) == set(knobs.DEPTHS)
    assert tuple(group["range"].values()) == knobs.RANGES
    assert group["data_window"].values() == [knobs.KEEP, knobs.CROP]
    assert all(
        group[name].data.facts.get("tooltip") for name in knobs.KNOBS if not name.startswith(("faceplate", "last"))
    )


def test_it_is_wired_behind_the_selected_node_in_one_step_of_undo() -> None:
    plate = nuke.create("NoOp", name="Plates")
    plate.setSelected(True)
    before, steps = nuke.snapshot(), len(APP.undo_stack)
    name = application.add_group()
    group = nuke.toNode(name)
    assert group.input(0) == plate
    for node, index, below in placing.WIRES:
        assert group.node(node).input(index) == group.node(below)
    assert len(APP.undo_stack) == steps + 1
    assert nuke.Undo.undo() == "Faceplate"
    assert nuke.snapshot() == before
    assert application.add_group() != application.add_group(), "a second one has a name of its own"


def test_wires_that_a_stack_gave_the_wrong_way_are_set_right(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    twisted = TEXT.replace("push $N1\n Switch", "push 0\n Switch")
    (tmp_path / "twisted.nk").write_text(twisted, "utf-8")
    monkeypatch.setattr(application, "GROUP_FILE", tmp_path / "twisted.nk")
    group = nuke.toNode(application.add_group())
    for node, index, below in placing.WIRES:
        assert group.node(node).input(index) == group.node(below)


def test_without_the_plug_in_it_opens_and_its_buttons_say_so(group: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "faceplate_nuke"]:
        monkeypatch.setitem(sys.modules, name, None)
    for button in knobs.BUTTONS:
        group.press(button)
    assert len(APP.messages) == len(knobs.BUTTONS)
    assert all("not installed" in text for text in APP.messages)


def test_every_button_is_answered(group: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pressed: list[tuple[str, str]] = []
    monkeypatch.setattr(buttons, "press", lambda button, name: pressed.append((button, name)))
    for button in knobs.BUTTONS:
        group.press(button)
    assert pressed == [(button, group.fullName()) for button in knobs.BUTTONS]
    assert set(buttons._BUTTONS) == set(knobs.BUTTONS)


def test_nothing_in_it_runs_by_itself(group: Any) -> None:
    assert not re.search(r"onCreate|knobChanged|updateUI|autolabel|beforeRender|afterRender|\{\{|python", TEXT)
    assert not any(node["name"].isAnimated() for node in group.nodes())
    assert group.node("Render")["disable"].value(), "a farm that renders all Writes leaves it alone"
    read = group.node("Result")
    assert {name: read[name].value() for name in placing.EMPTY} == placing.EMPTY
    assert (group.node("Show")["which"].value(), group.node("ByFrame")["which"].value()) == (0, 0)


def test_a_script_with_it_is_saved_and_opened_as_it_was(group: Any, tmp_path: Path, stage: NukeStage) -> None:
    group["identity"].setValue('/show/[odd] "name" $x {a}/jane.fpid')
    group["strength"].setAnimated()
    for frame, value in ((1, 0.0), (5, 1.0)):
        group["strength"].animation(0).setKey(frame, value)
    before = group.facts()
    nuke.scriptSaveAs(str(tmp_path / "shot.nk"))
    nuke.reset()
    nuke.scriptOpen(str(tmp_path / "shot.nk"))
    again = nuke.toNode("Faceplate1")
    assert again.facts() == before
    assert again.input(0).name() == "Plates"
    assert [node.name() for node in again.nodes()] != []
    assert again.node("Show").input(1) == again.node("ByFrame")


def test_a_text_that_nuke_does_not_take_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bad.nk").write_text(TEXT.replace("on_error", "on_err").replace("raw true", "raww true"), "utf-8")
    monkeypatch.setattr(application, "GROUP_FILE", tmp_path / "bad.nk")
    with pytest.raises(HostError, match="made no Faceplate group"):
        application.add_group()
    assert APP.open_step == 0


# What the artist set


def test_the_recipe_is_what_was_set(group: Any) -> None:
    group["identity"].setValue("/show/jane.fpid")
    group["track"].setValue("2")
    recipe = knobs.recipe_of(group, Span(1, 3))
    assert [(one.identity, one.track) for one in recipe.assignments] == [("/show/jane.fpid", 2)]
    assert (recipe.settings, recipe.layers, recipe.engine, recipe.holdout) == ({}, (), "mesh", None)
    values = {"track": "All", "shape": 0.5, "keep_eyes": False, "layers": "picture", "handles": 8, "missing": "hold"}
    for name, value in {
        **values,
        "holdout": "/m.####.exr",
        "project": "Film",
        "commercial": True,
        "engine": "null",
    }.items():
        group[name].setValue(value)
    group["render_input"].setValue(True)
    group["other_settings"].setValue("boost=2, reference_paste=1")
    recipe = knobs.recipe_of(group, Span(1, 3))
    assert recipe.assignments[0].track == "all"
    others = {"boost": ((0, 2.0),), "reference_paste": ((0, 1.0),)}
    assert recipe.settings == {"shape": ((0, 0.5),), "keep_eyes": ((0, 0.0),), **others}
    assert (recipe.layers, recipe.handles, recipe.missing, recipe.project) == (("rgba",), 8, "hold", "Film")
    assert (recipe.holdout, recipe.commercial, recipe.bake, recipe.engine) == (("/m.####.exr", "A"), True, True, "null")


def test_animated_settings_are_sampled_frame_by_frame(group: Any) -> None:
    group["identity"].setValue("/show/jane.fpid")
    group["strength"].setAnimated()
    for frame, value in ((1, 0.0), (4, 0.5), (5, 1.0)):
        group["strength"].animation(0).setKey(frame, value)
    sampled = dict(knobs.recipe_of(group, Span(1, 8)).settings["strength"])
    assert sampled == {1: 0.0, 3: 0.0, 4: 0.5, 5: 1.0, 8: 1.0}, "inside of a stretch that stays the same none is needed"
    assert knobs.recipe_of(group, Span(5, 5)).settings["strength"] == ((5, 1.0),)


def test_what_cannot_be_a_recipe_is_said(group: Any) -> None:
    with pytest.raises(BadClip, match="no identity"):
        knobs.recipe_of(group, Span(1, 1))
    group["identity"].setValue("/show/jane.fpid")
    group["track"].setValue("her")
    with pytest.raises(BadClip, match="her"):
        knobs.recipe_of(group, Span(1, 1))
    for name, value in {"track": "main", "other_settings": "boost: 2"}.items():
        group[name].setValue(value)
    with pytest.raises(BadClip, match="boost"):
        knobs.recipe_of(group, Span(1, 1))


def test_results_in_the_document_hold_no_brackets(group: Any) -> None:
    facts = {"record": "r", "clip": "c", "pattern": "p", "first": 1, "last": 2, "before": {"show": 0, "space": "x"}}
    told = {"": {"job": "fp-1", "file": "/show/[take] $1/x.%04d.exr", **facts}}
    knobs.set_results(group, told)
    assert not set("[]") & set(group[knobs.RESULTS].value())
    assert knobs.results_of(group) == told
    for damaged in ("{", "3", '{"left": 4}', '{"left": {"job": "fp-1"}}', json.dumps({"": {**told[""], "last": "x"}})):
        group[knobs.RESULTS].setValue(damaged)
        assert knobs.results_of(group) == {}
