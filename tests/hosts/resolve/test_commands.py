"""The menu and the command line: dialogs, console, settings, batches; with a real server where frames are made."""

from __future__ import annotations

import dataclasses
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import pytest

from faceplate.cli.main import main as faceplate
from faceplate_client.errors import BadClip, CannotDo, HostError
from faceplate_client.frame_maths import Span
from faceplate_client.host import PlaceMode
from faceplate_client.task import Servers
from faceplate_resolve import connect
from faceplate_resolve.__main__ import main
from faceplate_resolve.commands import CANCELLED, FAILED, Commands, menu
from faceplate_resolve.settings import Settings, load, save, settings_file
from faceplate_resolve.talk import Console
from tests.contract.hosts.conftest import PLATE
from tests.hosts.resolve.fake.application import UNMANAGED, Fusion, Resolve
from tests.hosts.resolve.fake.ui import Bmd, Dispatcher, UIManager, Window
from tests.hosts.resolve.fake.world import World
from tests.hosts.resolve.shots import shot
from tests.hosts.resolve.stage import ResolveStage
from tests.integration.server.conftest import Running
from tests.support.movies import Clip as Movie
from tests.support.movies import face_clip, linear_decode

ROOT = Path(__file__).parents[3]
SIZE = (PLATE.width, PLATE.height)
MEDIA = Span(1001, 1003)


@pytest.fixture
def settings_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "settings" / "resolve.json"
    monkeypatch.setenv("FACEPLATE_RESOLVE_SETTINGS", str(path))
    return path


@pytest.fixture
def one_server(server: Running, monkeypatch: pytest.MonkeyPatch) -> Running:
    """What `Settings.servers` finds."""
    monkeypatch.setattr(Settings, "servers", lambda self, *, start: Servers(server.place))
    return server


@pytest.fixture
def plate(original: str, tmp_path: Path) -> str:
    folder = tmp_path / "plate"
    folder.mkdir()
    for frame in MEDIA:
        name = Path(original).name.replace("####", str(frame))
        shutil.copy(Path(original).with_name(name), folder / name)
    return str(folder / Path(original).name)


def press(*buttons: str, change: Callable[[Window], None] = lambda window: None) -> Callable[[Window], str]:
    """An artist who fills in the dialog and presses these buttons, then OK everywhere."""
    left = list(buttons)

    def act(window: Window) -> str:
        if "Identity" in window.items:
            change(window)
            return left.pop(0) if left else "OK"
        return "OK"

    return act


def run_menu(name: str, resolve: Resolve, dispatcher: Dispatcher) -> int:
    return menu(name, resolve, Fusion(resolve.world, UIManager()), Bmd(dispatcher))


# The menu


def test_apply_refresh_and_remove_from_the_menu(
    plate: str,
    identity: Path,
    one_server: Running,
    settings_path: Path,
    tmp_path: Path,
) -> None:
    resolve = Resolve(start=86400)
    stage = ResolveStage(resolve)
    stage.add_clip("sh010", plate, MEDIA, MEDIA, 86410, SIZE)
    before = stage.snapshot()

    def fill(window: Window) -> None:
        window.items["Identity"].Text = str(identity)
        window.items["Folder"].Text = str(tmp_path / "out")
        window.items["Strength"].Text = "0.8"

    dispatcher = Dispatcher(press(change=fill))
    assert run_menu("apply", resolve, dispatcher) == 0
    asked, progress, told = dispatcher.windows
    assert "sh010: frames 1001-1003" in asked.items["About"].Text
    assert "3 of 3" in progress.items["Text"].Text or "place" in progress.items["Text"].Text
    assert not progress.shown
    assert "1 done" in told.items["Text"].Text
    assert "no consent record" in told.items["Text"].Text
    assert (
        Path(stage.shown_file(86411))
        == tmp_path / "out" / "The_Long_Take_Reel_1" / "sh010" / "v001" / "sh010.v001.1002.exr"
    )
    kept = load(settings_path)
    assert (kept.identity, kept.settings, kept.folder) == (str(identity), {"strength": 0.8}, str(tmp_path / "out"))
    dispatcher = Dispatcher(press())
    assert run_menu("refresh", resolve, dispatcher) == 0
    assert "1 done" in dispatcher.windows[-1].items["Text"].Text
    assert run_menu("remove", resolve, Dispatcher(press())) == 0
    assert stage.snapshot() == before
    dispatcher = Dispatcher(press())
    assert run_menu("remove", resolve, dispatcher) == FAILED
    assert "have no result" in dispatcher.windows[-1].items["Text"].Text


def test_cancel_in_the_window(
    plate: str,
    identity: Path,
    one_server: Running,
    settings_path: Path,
    tmp_path: Path,
) -> None:
    resolve = Resolve()
    stage = ResolveStage(resolve)
    stage.add_clip("sh010", plate, MEDIA, MEDIA, 10, SIZE)
    before = stage.snapshot()
    save(Settings(identity=str(identity), folder=str(tmp_path / "out")), settings_path)
    dispatcher = Dispatcher(press(), steps=lambda window: True)
    assert run_menu("apply", resolve, dispatcher) == CANCELLED
    assert "1 cancelled" in dispatcher.windows[-1].items["Text"].Text
    assert stage.snapshot() == before


def test_a_window_that_is_closed_and_numbers_that_are_none(settings_path: Path, tmp_path: Path) -> None:
    one = shot(tmp_path)
    assert run_menu("apply", one.resolve, Dispatcher(press("No"))) == CANCELLED
    assert run_menu("apply", one.resolve, Dispatcher(press(""))) == CANCELLED
    assert not settings_path.exists()

    def fill(window: Window) -> None:
        window.items["Handles"].Text = "many"

    dispatcher = Dispatcher(press(change=fill))
    assert run_menu("apply", one.resolve, dispatcher) == FAILED
    assert "many" in dispatcher.windows[-1].items["Text"].Text
    dispatcher = Dispatcher(press())
    assert run_menu("apply", one.resolve, dispatcher) == FAILED
    assert "no identity is chosen" in dispatcher.windows[-1].items["Text"].Text


def test_no_server_is_offered_and_nothing_is_touched(
    settings_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    identity: Path,
) -> None:
    one = shot(tmp_path)
    before = one.snapshot()
    save(Settings(identity=str(identity)), settings_path)
    place = type(Servers().place)(tmp_path / "nowhere")
    monkeypatch.setattr(Settings, "servers", lambda self, *, start: Servers(place, start, ("false",), 5.0))
    said: list[str] = []

    def act(window: Window) -> str:
        if "No" in window.items and "Identity" not in window.items:
            said.append(window.items["Text"].Text)
            return "No"
        return "OK"

    dispatcher = Dispatcher(act)
    assert run_menu("apply", one.resolve, dispatcher) == FAILED
    assert "Start the Faceplate server?" in said[0]
    assert one.snapshot() == before


def test_the_free_edition_gets_a_line_and_no_dialog(settings_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    resolve = Resolve(World(product="DaVinci Resolve", version=(21, 0, 2)))
    dispatcher = Dispatcher(press())
    assert run_menu("apply", resolve, dispatcher) == FAILED
    assert "this is the free edition, DaVinci Resolve 21.0.2" in capsys.readouterr().out
    assert dispatcher.windows == []
    assert not resolve.world.modal
    assert menu("apply", None, None, None) == FAILED
    assert "Workspace > Scripts" in capsys.readouterr().out


def test_without_dialogs_the_console_says_what_to_write(
    settings_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = shot(tmp_path)
    assert menu("apply", one.resolve, None, None) == CANCELLED
    assert f'Write {settings_path}: {{"identity"' in capsys.readouterr().out


def test_prompts_at_a_terminal(settings_path: Path, tmp_path: Path) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = io.StringIO()
    console = Console(settings_path, out, answers=Terminal("/show/jane.fpid\ny\nn\n"))
    asked = console.ask(Settings(), "1 clip")
    assert asked == Settings(identity="/show/jane.fpid")
    assert console.confirm("Start it?")
    assert not console.confirm("Start it?")
    assert out.getvalue().startswith("1 clip\nIdentity file")


def test_a_file_stops_an_action_without_a_window(settings_path: Path) -> None:
    settings_path.parent.mkdir()
    stop = settings_path.with_name("cancel")
    stop.touch()
    window = Console(settings_path, io.StringIO()).window("Faceplate")
    assert window.step(), "an old one counts for nothing"
    stop.touch()
    assert not window.step()


@pytest.mark.parametrize("name", ["apply", "refresh", "remove", "batch", "cancel"])
def test_the_scripts_of_the_menu_find_the_package(name: str, tmp_path: Path, settings_path: Path) -> None:
    """Run as Resolve does: no `__file__`, globals of its own, the package in a fixed folder."""
    script = (ROOT / "host_plugins" / "faceplate_resolve" / "menu" / f"{name}.py").read_text("utf-8")
    code = f"exec(compile({script!r}, '<menu>', 'exec'), {{'resolve': None, 'fusion': None, 'bmd': None}})"
    environment = {"FACEPLATE_RESOLVE": str(ROOT / "host_plugins"), "FACEPLATE_RESOLVE_SETTINGS": str(settings_path)}
    settings_path.parent.mkdir()
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert settings_path.with_name("cancel").exists() == (name == "cancel")
    assert ("no access" in run.stdout) == (name != "cancel")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={}, cwd=tmp_path)
    assert "faceplate install resolve" in run.stdout


# Settings


def test_settings_are_written_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "a" / "resolve.json"
    assert load(path) == Settings()
    full = Settings(
        identity="/show/Zoë.fpid",
        track=3,
        settings={"strength": 0.5, "keep_eyes": 0},
        handles=12,
        above=True,
        colour_spaces={"lin_rec709_scene": "Linear"},
        server_command=("faceplate", "serve"),
        preset="ProRes Master",
    )
    save(full, path)
    assert load(path) == full
    assert set(json.loads(path.read_text("utf-8"))) < {spec.name for spec in dataclasses.fields(Settings)}
    assert full.manner().mode is PlaceMode.ABOVE
    assert full.choices().colour_spaces == {"lin_rec709_scene": "Linear"}
    with pytest.raises(BadClip, match="no identity file"):
        full.recipe()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "no JSON"),
        ("[]", "no object"),
        ('{"identiy": "x"}', "identiy"),
        ('{"handles": -1}', "whole number"),
        ('{"handles": true}', "whole number"),
        ('{"above": "yes"}', "true or false"),
        ('{"track": "left"}', '"main", "all"'),
        ('{"mark_colour": "Violett"}', "Violet"),
        ('{"settings": {"strenght": 1}}', "strenght"),
        ('{"server_command": "faceplate"}', "list of words"),
    ],
)
def test_settings_that_are_wrong_are_named(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "resolve.json"
    path.write_text(text, "utf-8")
    with pytest.raises(HostError) as caught:
        load(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_misspelt_key_is_guessed(tmp_path: Path) -> None:
    path = tmp_path / "resolve.json"
    path.write_text('{"identiy": "x"}', "utf-8")
    with pytest.raises(HostError) as caught:
        load(path)
    assert caught.value.hint == "did you mean 'identity'?"


def test_where_the_settings_lie() -> None:
    assert settings_file("linux", {}, "/home/a") == Path("/home/a/.config/faceplate/resolve.json")
    assert settings_file("linux", {"XDG_CONFIG_HOME": "/x"}, "/home/a") == Path("/x/faceplate/resolve.json")
    assert settings_file("darwin", {}, "/Users/a") == Path(
        "/Users/a/Library/Application Support/Faceplate/resolve.json"
    )
    assert settings_file("win32", {"APPDATA": "/r"}, "/u") == Path("/r/Faceplate/resolve.json")


# From outside


class Module:
    """Resolve's library: the running application, or none."""

    def __init__(self, resolve: Resolve | None) -> None:
        self.resolve = resolve

    def scriptapp(self, name: str) -> Any:
        assert name == "Resolve"
        return self.resolve


def test_the_library_is_looked_for_where_each_system_has_it() -> None:
    def everything(path: str) -> bool:
        return True

    assert connect.library("linux", {}, everything) == "/opt/resolve/libs/Fusion/fusionscript.so"
    assert connect.library("darwin", {}, everything).endswith("Contents/Libraries/Fusion/fusionscript.so")
    assert connect.library("win32", {}, everything).endswith("fusionscript.dll")
    assert connect.library("linux", {"RESOLVE_SCRIPT_LIB": "/my.so"}, everything) == "/my.so"
    with pytest.raises(CannotDo, match="scripting library is not there") as caught:
        connect.library("linux", {"RESOLVE_SCRIPT_LIB": "/my.so"}, lambda path: False)
    assert "RESOLVE_SCRIPT_LIB" in caught.value.hint


def test_a_library_that_does_not_load(tmp_path: Path) -> None:
    path = tmp_path / "fusionscript.so"
    path.write_bytes(b"no library")
    with pytest.raises(CannotDo, match="cannot load") as caught:
        connect.load(str(path))
    assert "Python" in caught.value.hint


def test_nobody_answers(settings_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"], Module(None)) == 2
    assert "External scripting using: Local" in capsys.readouterr().out


def test_check_says_who_is_there(
    settings_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = type(Servers().place)(tmp_path / "nowhere")
    monkeypatch.setattr(Settings, "servers", lambda self, *, start: Servers(place))
    assert main(["check"], Module(Resolve())) == 3
    said = capsys.readouterr().out
    assert "DaVinci Resolve Studio 21.0.4" in said
    assert "faceplate serve" in said


def test_a_resolve_that_is_started(tmp_path: Path, settings_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that takes a while to answer, is asked for nothing but -nogui, and is ended afterwards."""
    program = tmp_path / "resolve"
    program.write_text('#!/bin/sh\necho "$@" > "$0.words"; exec sleep 60\n', "utf-8")
    program.chmod(0o755)
    said = tmp_path / "resolve.words"

    class Slow:
        def scriptapp(self, name: str) -> Any:
            return Resolve(World(page=None)) if said.exists() and said.read_text() else None

    monkeypatch.setattr(connect, "POLL_S", 0.02)
    application, process = connect.start(Slow(), str(program), wait_s=20)
    try:
        assert application.GetProductName() == "DaVinci Resolve Studio"
    finally:
        process.terminate()
        process.wait()
    assert said.read_text() == "-nogui\n"
    with pytest.raises(CannotDo, match="no program"):
        connect.start(Slow(), str(tmp_path / "nothing"))


def test_a_batch_of_every_timeline_from_outside(
    plate: str,
    identity: Path,
    one_server: Running,
    settings_path: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    resolve = Resolve(World(page=None), start=86400)
    stage = ResolveStage(resolve)
    project = resolve.project
    clip_id = stage.add_clip("sh010", plate, MEDIA, MEDIA, 86410, SIZE)
    stage.item(clip_id)._colour = "Violet"
    stage.add_clip("sh020", plate, MEDIA, MEDIA, 86450, SIZE)
    project.add_timeline("Reel 2")
    project._presets["ProRes Master"] = {"format": "mov", "codec": "ProRes422HQ", "settings": {}}
    save(Settings(identity=str(identity), folder=str(tmp_path / "out")), settings_path)
    report = tmp_path / "report.json"
    words = ["batch", "--every", "--preset", "ProRes Master", "--render", "-o", str(tmp_path / "final"), "--save"]
    assert main([*words, "--report", str(report)], Module(resolve)) == 0
    told = json.loads(report.read_text("utf-8"))
    first, second = told["timelines"]
    assert (first["timeline"], second["timeline"], second["clips"]) == ("Reel 1", "Reel 2", None)
    assert [(clip["clip"], clip["state"]) for clip in first["clips"]["clips"]] == [("sh010", "done")]
    assert [Path(path).name for path in first["render_files"]] == ["Reel_1.mov"]
    assert told["saved"]
    assert len(resolve.manager.saved) == 1
    assert project._current._name == "Reel 2", "the timeline that was current is it again"
    assert "Reel 2: no marked clip" in capsys.readouterr().out
    # again: nothing is done twice, and what Resolve gets wrong is told
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.exr")}
    assert main(["batch", "--timeline", "Reel 1"], Module(resolve)) == 0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.exr")} == files
    assert main(["batch", "--timeline", "Reel 7"], Module(resolve)) == 2
    assert main(["batch", "--preset", "Nothing"], Module(resolve)) == 2
    assert "ProRes Master" in capsys.readouterr().out
    project._name = "Untitled Project"
    assert main(["batch", "--timeline", "Reel 1", "--save"], Module(resolve)) == 2
    assert "cannot be saved" in capsys.readouterr().out


def test_a_batch_without_identity_or_server(
    settings_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    identity: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = shot(tmp_path)
    one.item._colour = "Violet"
    before = one.snapshot()
    place = type(Servers().place)(tmp_path / "nowhere")
    monkeypatch.setattr(Settings, "servers", lambda self, *, start: Servers(place, start, ("false",), 5.0))
    save(Settings(identity="/nowhere.fpid"), settings_path)
    assert main(["batch"], Module(one.resolve)) == 2
    assert "no identity file" in capsys.readouterr().out
    save(Settings(identity=str(identity)), settings_path)
    assert main(["batch"], Module(one.resolve)) == 3
    save(Settings(), settings_path)
    assert main(["batch"], Module(one.resolve)) == 0
    assert "no marked clip" in capsys.readouterr().out, "there is no result to refresh"
    assert one.snapshot() == before


# Unmanaged projects


def test_an_unmanaged_project_gets_a_movie_for_a_movie(
    identity: Path,
    one_server: Running,
    settings_path: Path,
    tmp_path: Path,
) -> None:
    def frames_of(path: str) -> int:
        with av.open(path) as container:
            return sum(1 for _ in container.decode(video=0))

    movie = face_clip(tmp_path / "A001.mov", Movie("prores_ks", width=320, height=200, rate=Fraction(24)), 4, 96)
    resolve = Resolve(World(frames_of=frames_of), **UNMANAGED)
    stage = ResolveStage(resolve)
    media, used = Span(1, 4), Span(2, 3)
    stage.add_clip("A001", str(movie), media, used, 10, (320, 200))
    before = stage.snapshot()
    save(Settings(identity=str(identity), folder=str(tmp_path / "out"), handles=9), settings_path)
    dispatcher = Dispatcher(press())
    assert run_menu("apply", resolve, dispatcher) == 0, dispatcher.windows[-1].items["Text"].Text
    result = tmp_path / "out" / "The_Long_Take_Reel_1" / "A001" / "v001" / "A001.v001.mov"
    item = stage.timeline.items()[0]
    assert item._media._path == str(result)
    assert (item._media._count, item._left, item._duration) == (4, 1, 2), "with its handles"
    by_hand = tmp_path / "by hand.mov"
    words = ["apply", str(movie), "--identity", str(identity), "-o", str(by_hand), "--device", "cpu"]
    assert faceplate([*words, "--layers", "rgba"]) == 0
    assert [planes for _, planes in linear_decode(result)] == [planes for _, planes in linear_decode(by_hand)]
    assert run_menu("refresh", resolve, Dispatcher(press())) == 0
    assert run_menu("remove", resolve, Dispatcher(press())) == 0
    assert stage.snapshot() == before


def test_an_action_with_an_unknown_error_in_a_clip_goes_on(settings_path: Path, tmp_path: Path) -> None:
    """Errors are told, not raised: a script that raises shows the artist nothing."""
    one = shot(tmp_path)
    one.resolve.project._settings["colorScienceMode"] = "somethingNew"
    out = io.StringIO()
    assert Commands(one.resolve, Console(settings_path, out), settings_path).run("apply") == FAILED
    assert "colour science" in out.getvalue()
