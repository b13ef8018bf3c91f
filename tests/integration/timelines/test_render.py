"""Timelines through the real command line: plan, who is who, results in place, resume, failures."""

from __future__ import annotations

import html
import json
import re
import shutil
import signal
import time
import tomllib
from pathlib import Path
from typing import Any

import av
import numpy as np
import OpenEXR
import opentimelineio as otio
import pytest

from faceplate.media.movies.movie import Movie
from tests.integration.conftest import Cli, leftovers, start
from tests.integration.timelines.conftest import CODE, Cut
from tests.support.browser import browse, complaints
from tests.support.movies import damage


def rendered(folder: Path) -> dict[str, bytes]:
    """Results by path below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("[!.]*.exr"))}


def clips_of(path: Path) -> dict[str, Any]:
    return {clip.name: clip for clip in otio.adapters.read_from_file(str(path)).find_clips()}


def test_from_a_cut_to_a_cut(cli: Cli, once: Path, cut: Cut) -> None:
    results = rendered(once)
    assert list(results) == [f"A001/A001.000{n}.exr" for n in range(1, 5)] + [
        f"sh010/sh010.{n}.exr" for n in range(1002, 1005)
    ]
    assert leftovers(once) == []

    # The clips play the results: the frame that each shows first is the plate's, with the change in it.
    placed = clips_of(once / "cut.faceplate.otio")
    assert placed["shot"].metadata["note"]["take"] == 3
    for name, frame in (("a", 2), ("b", 1), ("again", 3), ("shot", 1002)):
        clip, was = placed[name], next(each for each in cut.document.find_clips() if each.name == name)
        assert clip.source_range == was.source_range
        reference = clip.media_reference
        index = clip.source_range.start_time - reference.available_range.start_time
        file = Path(reference.target_url_for_image_number(round(index.value)).removeprefix("file://"))
        assert file.name.split(".")[1] == f"{frame:04d}"
        header = OpenEXR.File(str(file), separate_channels=True)
        assert header.channels()["matte.A"].pixels.max() > 0.9
        if name != "shot":
            assert header.header()["timeCode"].frame == frame - 1
        assert clip.media_references()["original"] is not None

    # Outside the matte the plate, bit for bit.
    plate = OpenEXR.File(str(cut.media / "sh010.1003.exr")).channels()["RGB"].pixels
    after = OpenEXR.File(str(once / "sh010/sh010.1003.exr"), separate_channels=True).channels()
    outside = after["matte.A"].pixels == 0
    mine = np.stack([after[name].pixels for name in "RGB"], -1)
    np.testing.assert_array_equal(mine[outside].view(np.uint16), plate[outside].view(np.uint16))


def test_again_does_what_is_missing(cli: Cli, identity: Path, once: Path, cut: Cut, tmp_path: Path) -> None:
    words = ("render", cut.path, "-o", tmp_path / "out", "--identity", identity, "--json")
    planned = cli(*words, "--dry-run")
    assert planned.code == 0
    assert {event["shot"]: event["frames"] for event in planned.events if event["event"] == "plan"} == {
        "A001": "1-4",
        "sh010": "1002-1004",
    }
    assert not (tmp_path / "out").exists()
    shutil.copytree(once, tmp_path / "out")
    (tmp_path / "out/sh010/sh010.1003.exr").unlink()
    ran = cli(*words)
    assert (ran.code, ran.event("done")["frames"]) == (0, {"kept": 6, "done": 1})
    assert ran.event("done")["shots"] == {"kept": 1, "done": 1}
    assert rendered(tmp_path / "out") == rendered(once)


def test_killed_and_run_again_gives_the_same_bytes(
    cli: Cli, identity: Path, once: Path, cut: Cut, tmp_path: Path
) -> None:
    out = tmp_path / "killed"
    words = ("render", cut.path, "-o", out, "--identity", identity, "--only", "shot", "--json")
    process = start(words)
    deadline = time.monotonic() + 120
    while not list(out.glob("sh010/*.exr")) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (out / "cut.faceplate.otio").exists()
    assert cli(*words).code == 0
    assert rendered(out) == {name: data for name, data in rendered(once).items() if name.startswith("sh010")}
    assert leftovers(out) == []


def test_movies_and_elements(cli: Cli, identity: Path, cut: Cut, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = cli(
        "render", cut.path, "-o", out, "--identity", identity, "--to", "mov", "--only", "a", "--handles", 1, "--json"
    )
    assert ran.code == 0, ran.out
    movie = Movie(out / "A001.mov")
    assert (len(movie), str(movie.timecode(1))) == (4, "01:00:00:00")
    with av.open(str(out / "A001.mov")) as container:
        assert len(container.streams.audio) == 1
    placed = clips_of(out / "cut.faceplate.otio")
    assert placed["a"].media_reference.available_range.start_time.value == CODE
    assert "media" in placed["again"].media_reference.target_url  # not asked for: as it was

    ran = cli(
        "render", cut.path, "-o", tmp_path / "element", "--identity", identity, "--element", "--only", "shot", "--json"
    )
    assert ran.code == 0, ran.out
    document = otio.adapters.read_from_file(str(tmp_path / "element/cut.faceplate.otio"))
    assert [track.name for track in document.tracks] == ["V1", "V1 faceplate", "V2"]
    file = OpenEXR.File(str(tmp_path / "element/sh010/sh010.1002.exr"), separate_channels=True)
    window = file.header()["dataWindow"]
    assert window[1][0] - window[0][0] < 300  # the face alone
    ran = cli("render", cut.path, "-o", out, "--identity", identity, "--element", "--layers", "rgba")
    assert (ran.code, "do not go together" in ran.err) == (2, True)


def test_who_is_who_is_kept(cli: Cli, identity: Path, cut: Cut, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("render", cut.path, "-o", out, "--only", "shot", "--json")
    ran = cli(*words)  # nobody is assigned: refused, with the page to look at
    assert ran.code == 2
    assert "nobody is assigned" in ran.event("error")["message"]
    people = out / "cut.people.toml"
    assert tomllib.loads(people.read_text("utf-8")) == {"people": {}, "shots": {"sh010": {"1": "?"}}}
    assert not (out / "cut.faceplate.otio").exists()

    shutil.copy(identity, out / "jane.fpid")
    text = people.read_text("utf-8").replace("[people]\n", '[people]\nanna = "jane.fpid"  # our lead\n')
    people.write_text(text.replace('1 = "?"', '1 = "anna"'), "utf-8")
    ran = cli(*words)
    assert ran.code == 0, ran.out
    after = people.read_text("utf-8")
    assert 'anna = "jane.fpid"  # our lead' in after
    assert '1 = "anna"' in after
    assert ran.event("done")["frames"] == {"done": 3}

    # A new shot is added, what somebody wrote stays.
    ran = cli("render", cut.path, "-o", out, "--faces-only", "--json")
    assert (ran.code, ran.event("done")["state"]) == (0, "faces")
    assert tomllib.loads(people.read_text("utf-8")) == {
        "people": {"anna": "jane.fpid"},
        "shots": {"sh010": {"1": "anna"}, "A001": {"1": "?"}},
    }
    people.write_text(people.read_text("utf-8").replace('"anna"', '"ana"'), "utf-8")
    ran = cli(*words)
    assert (ran.code, ran.event("error")["hint"]) == (2, "did you mean anna?")


def test_the_contact_sheet_in_a_browser(cli: Cli, identity: Path, cut: Cut, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert cli("render", cut.path, "-o", out, "--faces-only").code == 0
    page = out / "cut.contact.html"
    shown = browse(page.as_uri(), tmp_path, "--dump-dom")
    assert complaints(shown.stderr) == []
    assert shown.stdout.count('class="one unknown"') == 2
    assert shown.stdout.count("data:image/jpeg;base64,") == 4
    assert 'id="bar"' in shown.stdout
    assert 'id="bar" hidden' not in shown.stdout  # the script ran
    assert "http" not in page.read_text("utf-8").replace("http-equiv", "")
    # Somebody types a name: the page gives the file back with it, and the file is understood.
    script = """<script>addEventListener("load", () => {
      const input = document.querySelector('[data-shot="sh010"] input');
      input.value = 'Jörg "J"'; input.dispatchEvent(new Event("input"));
      document.body.dataset.made = JSON.stringify(faceplateText());
    });</script></body>"""
    changed = tmp_path / "typed.html"
    changed.write_text(page.read_text("utf-8").replace("</body>", script), "utf-8")
    dom = browse(changed.as_uri(), tmp_path, "--dump-dom").stdout
    made = json.loads(html.unescape(re.search(r'data-made="([^"]*)"', dom)[1]))  # type: ignore[index]
    assert tomllib.loads(made) == {
        "people": {'Jörg "J"': ""},
        "shots": {"A001": {"1": "?"}, "sh010": {"1": 'Jörg "J"'}},
    }
    (out / "cut.people.toml").write_text(made, "utf-8")
    assert cli("render", cut.path, "-o", out, "--faces-only").code == 0
    assert tomllib.loads((out / "cut.people.toml").read_text("utf-8")) == tomllib.loads(made)


def test_a_source_that_fails_does_not_stop_the_others(
    cli: Cli, identity: Path, once: Path, cut: Cut, tmp_path: Path
) -> None:
    spoiled = tmp_path / "media"
    shutil.copytree(cut.media, spoiled)
    damage(spoiled / "sh010.1003.exr", 0.3, 4000)
    text = cut.path.read_text("utf-8").replace(cut.media.as_uri(), spoiled.as_uri())
    cut.path.write_text(text, "utf-8")
    out = tmp_path / "out"
    shutil.copytree(once, out)
    ran = cli("render", cut.path, "-o", out, "--identity", identity, "--json")
    assert ran.code == 1, ran.out
    done = ran.event("done")
    assert done["shots"] == {"failed": 1, "kept": 1}
    assert done["failed"]["sh010"]["frames"] == "1003"
    placed = clips_of(out / "cut.faceplate.otio")
    assert placed["shot"].media_reference.target_url_base.endswith("/media/")
    assert placed["a"].media_reference.name == "A001.####.exr"


def test_what_is_wrong_with_the_whole_is_said_before_a_picture_is_read(
    cli: Cli, identity: Path, cut: Cut, tmp_path: Path
) -> None:
    text = cut.path.read_text("utf-8").replace("A001.mov", "B001.mov")
    cut.path.write_text(text, "utf-8")
    words = ("render", cut.path, "-o", tmp_path / "out", "--identity", identity)
    ran = cli(*words, "--json")
    assert ran.code == 2
    missing = [event["text"] for event in ran.events if event["event"] == "warning"]
    assert len(missing) == 3
    assert all("media not found" in each and "B001.mov" in each for each in missing)
    assert ran.event("error")["found"].count("B001.mov") == 3
    assert not list((tmp_path / "out").rglob("*.exr"))
    shown = cli(*words, "--dry-run")
    assert shown.code == 2
    assert "sh010" in shown.out
    assert "a (V1 at 01:00:00:00): media not found" in shown.out
    ran = cli(*words, "--missing-media", "skip", "--faces-only")
    assert ran.code == 0


def test_what_is_wrong_with_every_source_stops_the_run(
    cli: Cli, identity: Path, once: Path, cut: Cut, tmp_path: Path
) -> None:
    shutil.copytree(once, tmp_path / "out")
    ran = cli("render", cut.path, "-o", tmp_path / "out", "--identity", identity, "--restore", "nobody", "--json")
    assert ran.code in (2, 3)
    assert "nobody" in ran.event("error")["message"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--identity", "x.fpid@3"), "is no person"),
        (("--to", "gif"), "not rendered as .gif"),
        (("--relink", "x"), "no FROM=TO"),
        (("--rate", "x"), "is no rate"),
        (("--missing-media", "x"), "is unknown"),
        (("--set", "strenght=1"), "strength"),
        (("--only", "nobody"), "is called 'nobody'"),
    ],
)
def test_wrong_words(cli: Cli, cut: Cut, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    ran = cli("render", cut.path, "-o", tmp_path / "out", *words)
    assert ran.code == 2
    assert said in ran.err
