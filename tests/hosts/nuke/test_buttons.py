"""The buttons in a Nuke with a window: threads, the meter, Cancel, the label, what is said; with a real server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nuke
import numpy as np
import pytest
from nuke.document import APP

from faceplate_client.errors import HostError
from faceplate_client.frame_maths import Span
from faceplate_client.job_record import load
from faceplate_client.result_folder import file_of
from faceplate_nuke import buttons, scratch, servers
from faceplate_nuke.host import NukeHost
from tests.contract.hosts.bench import files
from tests.contract.hosts.conftest import MakeBench
from tests.hosts.nuke.conftest import NukeStage, turn_until_idle
from tests.integration.server.conftest import Running

THREE = Span(1001, 1003)


@pytest.fixture
def bench(make_bench: MakeBench, server: Running, stage: NukeStage, talks_to: Callable[..., None]) -> Any:
    """A bench whose server the buttons use, and a script that was saved."""
    made = make_bench(NukeHost(), stage, server, False)
    talks_to(server.place.folder)
    nuke.scriptSaveAs(str(made.folder / "shot.nk"))
    return made


def group_of(bench: Any, timeline: Span = THREE, **values: Any) -> Any:
    read = bench.stage.plate(bench.plate, bench.media)
    return bench.stage.group(read, timeline, identity=bench.identity, **values)


def pressed(group: Any, button: str) -> None:
    """The artist presses, and waits."""
    group.press(button)
    turn_until_idle()
    assert APP.printed == []


def test_process_range_is_what_the_command_line_makes(bench: Any) -> None:
    group = group_of(bench, bench.media)
    steps = len(APP.undo_stack)
    before = nuke.snapshot()
    pressed(group, "process_range")
    assert APP.messages == [], "a result that is done is seen"
    (placed,) = NukeHost().results()
    assert files(placed.pattern, bench.media) == files(bench.reference, bench.media)
    assert placed.pattern.startswith(str(bench.folder / "faceplate" / "shot" / "Faceplate1" / "v001"))
    assert group["faceplate_state"].value() == "fresh 1001-1008"
    assert "OCIO aces_1.2" in group["faceplate_colour"].value()
    (meter,) = APP.meters
    assert any("swap" in text for text in meter.messages)
    assert APP.executed == [], "nothing was written twice"
    assert [name for name, _ in APP.undo_stack[steps:]] == ["Faceplate: Apply"], "one step"
    nuke.Undo.undo()
    assert nuke.snapshot() == before
    assert threading.active_count() == 1 or not any(t.name.startswith("faceplate") for t in threading.enumerate())


def test_a_graph_is_rendered_into_memory_and_nothing_is_left(bench: Any, tmp_path: Path) -> None:
    read = bench.stage.plate(bench.plate, bench.media)
    group = bench.stage.group(nuke.create("Grade", read, white=0.5), THREE, identity=bench.identity)
    folders: list[Path] = []
    nuke.addBeforeFrameRender(lambda: folders.append(Path(group.node("Render")["file"].value()).parent))
    pressed(group, "process_range")
    assert APP.messages == []
    assert [frame for _, frame, _ in APP.executed] == [1001, 1002, 1003]
    if Path("/dev/shm").is_dir():
        assert folders[0].parent == scratch.default_folder() / scratch.NAME
    assert not folders[0].exists()
    record = load(NukeHost().results()[0].tag.record)
    assert record.baked.endswith("is no Read of files")
    # the shot outside of the matte is the graded plate, to the bit
    result, plate = nuke.picture(group, 1002), nuke.picture(group.input(0), 1002)
    outside = result.channels["matte.alpha"] == 0
    assert 0.2 < outside.mean() < 0.999
    for channel in ("rgba.red", "rgba.green", "rgba.blue"):
        np.testing.assert_array_equal(result.channels[channel][outside], plate.channels[channel][outside])
        assert np.abs(result.channels[channel] - plate.channels[channel])[~outside].max() > 0.01


def test_a_frame_then_more_then_other_settings(bench: Any) -> None:
    group = group_of(bench)
    nuke.frame(1002)
    pressed(group, "process_frame")
    (placed,) = NukeHost().results()
    first = load(placed.tag.record)
    assert (placed.timeline, first.whole) == (Span(1002, 1002), False)
    stamp = file_of(placed.pattern, 1002).stat().st_mtime_ns
    pressed(group, "process_range")
    (placed,) = NukeHost().results()
    record = load(placed.tag.record)
    assert (record.id, placed.timeline) == (first.id, THREE), "it grows"
    assert file_of(placed.pattern, 1002).stat().st_mtime_ns == stamp, "as in the whole: nothing is done twice"
    before = files(placed.pattern, THREE)
    group["strength"].setValue(0.5)
    assert NukeHost().state(group.fullName()).startswith("stale")
    pressed(group, "process_range")
    (placed,) = NukeHost().results()
    other = load(placed.tag.record)
    assert (other.path.parent.name, record.path.parent.name) == ("v002", "v001"), "a new version"
    assert other.recipe.settings == {"strength": ((0, 0.5),)}
    assert files(record.pattern, THREE) == before
    group.press("remove")
    assert NukeHost().results() == ()
    assert group["faceplate_state"].value() == "not processed"
    assert group.node("Show")["which"].value() == 0


def test_cancel_by_button_and_by_meter_keeps_what_is_done(bench: Any) -> None:
    buttons.install()
    group = group_of(bench, bench.media)
    before = nuke.snapshot()
    for way in ("button", "meter"):
        group.press("process_range")
        task = buttons.RUNNING.task
        assert task is not None
        group.press("process_range")
        assert APP.messages.pop() == "Faceplate is at work: wait, or press Cancel."
        while not task.progress.done and not task.ended:  # the first word of it: all eight take half a second
            APP.pump()
        assert group["faceplate_state"].value().startswith("running")
        assert "running" in (nuke.labelOf(group) or "")
        if way == "button":
            group.press("cancel")
        else:
            APP.meters[-1].cancelled = True
        turn_until_idle()
        said = APP.messages.pop()
        assert "1 cancelled" in said
        assert "process again" in said
        assert nuke.snapshot() == before, "no result stands in the group, and its label is as before"
    pressed(group, "process_range")
    (placed,) = NukeHost().results()
    assert load(placed.tag.record).path.parent.name == "v001", "it went on there"
    assert files(placed.pattern, bench.media) == files(bench.reference, bench.media)
    group.press("cancel")
    assert APP.messages == ["Faceplate is not at work."]


def test_cancel_in_nukes_render_window_stops_the_action(bench: Any, capfd: pytest.CaptureFixture[str]) -> None:
    read = bench.stage.plate(bench.plate, bench.media)
    group = bench.stage.group(nuke.create("Grade", read, white=0.5), THREE, identity=bench.identity)
    before = nuke.snapshot()
    APP.cancel_at = 1002
    pressed(group, "process_range")
    assert "1 cancelled" in APP.messages.pop()
    assert [frame for _, frame, _ in APP.executed] == [1001]
    assert nuke.snapshot() == before
    APP.cancel_at, APP.executing = None, 1
    pressed(group, "process_range")
    APP.executing = 0
    assert "stop that" in capfd.readouterr().err, "no window can be opened then"
    assert nuke.snapshot() == before


def test_a_failed_frame_is_counted_in_the_label(bench: Any) -> None:
    file_of(bench.plate, 1002).write_bytes(b"no picture")
    group = group_of(bench)
    pressed(group, "process_range")
    assert group["faceplate_state"].value() == "fresh 1001-1003, failed 1"
    assert "frame 1002" in APP.messages[-1]
    assert "slate" in APP.messages[-1]


def test_the_label_tells_the_state_and_changes_nothing(bench: Any) -> None:
    buttons.install()
    group = group_of(bench)
    assert nuke.labelOf(group) == "Faceplate1\nnot processed"
    assert nuke.labelOf(group.input(0)) is None
    pressed(group, "process_range")
    assert nuke.labelOf(group) == "Faceplate1\nfresh 1001-1003"
    group["shape"].setValue(0.5)
    assert nuke.labelOf(group) == "Faceplate1\nstale 1001-1003"
    NukeHost().set_state(group.fullName(), "running swap 2 of 3")
    assert nuke.labelOf(group) == "Faceplate1\nstale 1001-1003", "a script that was saved in mid-work"
    assert set(APP.menus["Nodes"]) == {"Faceplate/Faceplate"}
    APP.menus["Nodes"]["Faceplate/Faceplate"]()
    assert nuke.toNode("Faceplate2") is not None


def test_all_groups_from_the_menu_and_all_views(bench: Any) -> None:
    buttons.install()
    nuke.root()["views"].setValue("left right")
    group_of(bench, Span(1001, 1002))
    group_of(bench, Span(1001, 1001), views="right")
    APP.menus["Nuke"]["Render/Faceplate/Process All Groups"]()
    turn_until_idle()
    assert APP.messages == []
    placed = NukeHost().results()
    assert [(one.clip_id, one.view) for one in placed] == [
        ("Faceplate1", "left"),
        ("Faceplate1", "right"),
        ("Faceplate2", "right"),
    ]
    for view in ("left", "right"):
        assert Path(nuke.shownFile(nuke.toNode("Faceplate1"), 1001, view)).is_file()
    assert nuke.toNode("Faceplate1").node("Result")["file"].value().endswith("Faceplate1.%V.v001.%04d.exr")
    assert nuke.shownFile(nuke.toNode("Faceplate2"), 1001, "left") == str(file_of(bench.plate, 1001))


def test_faces_the_server_and_what_is_wrong(bench: Any, talks_to: Callable[..., None], tmp_path: Path) -> None:
    group = group_of(bench)
    before = nuke.snapshot()
    pressed(group, "find_faces")
    assert "frames 1001-1003" in APP.messages[-1]
    pressed(group, "check")
    assert "Faceplate server: ready, version" in APP.messages[-1]
    group.press("reveal")
    assert "has no result" in APP.messages[-1]
    group["identity"].setValue("")
    group.press("process_range")
    assert "Choose an identity file" in APP.messages[-1]
    group["identity"].setValue(bench.identity)
    nuke.frame(5)
    group.press("process_frame")
    assert "does not have frame 5" in APP.messages[-1]
    # no server: a question, and no is no
    talks_to(tmp_path / "nowhere")
    APP.answer = False
    count = len(APP.messages)
    group.press("process_range")
    turn_until_idle()
    assert APP.messages[count:] == ["No Faceplate server is running. Start it?"]
    # yes starts one; a program that is not there is named
    talks_to(tmp_path / "nowhere", program="no-such-faceplate")
    APP.answer = True
    group.press("process_range")
    turn_until_idle()
    assert "no-such-faceplate" in APP.messages[-1]
    assert "full path" in APP.messages[-1]
    assert nuke.snapshot() == before


def test_a_script_that_is_closed_in_mid_work(bench: Any) -> None:
    buttons.install()
    group = group_of(bench, bench.media)
    group.press("process_range")
    task = buttons.RUNNING.task
    assert task is not None
    for call in APP.callbacks["onScriptClose"]:
        call()
    assert buttons.RUNNING.task is None
    assert task.ended or task._closing.is_set()
    end = threading.Event()
    while not task.ended:
        APP.pump()
        end.wait(0.01)
    end.wait(3 * buttons.POLL_S)
    APP.waiting.clear()


def test_a_server_settings_file(tmp_path: Path) -> None:
    assert servers.load_settings([tmp_path]) == servers.ServerSettings()
    (tmp_path / servers.FILE).write_text('{"program": "/opt/f/faceplate", "name": "gpu0", "start": true}')
    settings = servers.load_settings([tmp_path / "none", tmp_path])
    made = settings.servers()
    assert (made.command, made.start, made.place.name) == (
        ("/opt/f/faceplate", "serve", "--name", "gpu0"),
        True,
        "gpu0",
    )
    installed = tmp_path / "plug-in" / servers.INSTALLED
    installed.parent.mkdir()
    installed.write_text('{"program": "/env/bin/faceplate"}')
    assert servers.load_settings([installed.parent]).program == "/env/bin/faceplate", "the one that installed it"
    assert servers.load_settings([tmp_path, installed.parent]).program == "/opt/f/faceplate", "what the artist says"
    (tmp_path / servers.FILE).write_text('{"name": "gpu0"}')
    settings = servers.load_settings([tmp_path, installed.parent])
    assert (settings.program, settings.name) == ("/env/bin/faceplate", "gpu0")
    for damaged in ('{"progam": "x"}', '{"start": "yes"}', "[", "[]"):
        (tmp_path / servers.FILE).write_text(damaged)
        with pytest.raises(HostError):
            servers.load_settings([tmp_path])
