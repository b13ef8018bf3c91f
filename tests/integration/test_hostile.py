"""Bad luck beyond bad input: strange names and numbers, things in the way, folders that vanish, poor terminals."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.conftest import Cli, Ran, leftovers, outputs, start


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def shot(small_plate: str, folder: Path, *names: str) -> Path:
    """Copies of the plate's first frames under other names."""
    folder.mkdir()
    for source, name in zip(sorted(Path(small_plate).parent.glob("*.exr")), names, strict=False):
        shutil.copy(source, folder / name)
    return folder


def apply(cli: Cli, plate: object, identity: object, output: object, *more: object) -> Ran:
    return cli("apply", plate, "--identity", identity, "-o", output, "--json", *more)


def refused(ran: Ran, kind: str, code: int = 2) -> str:
    assert ran.code == code, ran.out + ran.err
    error = ran.event("error")
    assert error["type"] == kind
    assert error["hint"]
    return f"{error['message']} {error['found']} {error['hint']}"


def test_a_stray_file_with_a_far_number(cli: Cli, small_plate: str, identity: Path, out: Path, tmp_path: Path) -> None:
    plate = shot(small_plate, tmp_path / "plate", "p.1001.exr", "p.400000000.exr")
    text = refused(apply(cli, plate / "p.####.exr", identity, out / "o.####.exr"), "SequenceError")
    assert "400000000" in text
    ran = apply(cli, plate / "p.####.exr", identity, out / "o.####.exr", "--frames", "1001")
    assert (ran.code, list(outputs(out))) == (0, ["o.1001.exr"])


def test_a_date_is_no_frame_number(cli: Cli, small_plate: str, identity: Path, out: Path, tmp_path: Path) -> None:
    plate = shot(small_plate, tmp_path / "plate", "p_20251130123456.exr")
    ran = apply(cli, plate / "p_20251130123456.exr", identity, out / "o.####.exr")
    assert (ran.code, list(outputs(out))) == (0, ["o.0001.exr"])


def test_a_hole_of_the_plate_is_not_filled(cli: Cli, small_plate: str, identity: Path, tmp_path: Path) -> None:
    plate = shot(small_plate, tmp_path / "plate", "p.1001.exr", "p.1003.exr")
    before = outputs(plate)
    words = ("--missing", "hold", "--frames", "1002")
    refused(apply(cli, plate / "p.####.exr", identity, plate / "p.####.exr", *words), "OutputError")
    assert outputs(plate) == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes of POSIX")
def test_a_pipe_under_a_frames_name(cli: Cli, small_plate: str, identity: Path, out: Path, tmp_path: Path) -> None:
    plate = shot(small_plate, tmp_path / "plate", "p.1001.exr", "p.1002.exr")
    os.mkfifo(plate / "p.1003.exr")
    ran = apply(cli, plate / "p.####.exr", identity, out / "o.####.exr")
    assert (ran.code, list(ran.event("done")["failed"])) == (1, ["1003"])
    assert "regular" in ran.event("done")["failed"]["1003"]["found"]
    os.mkfifo(tmp_path / "pipe.png")
    ran = cli("identity", "make", "p", tmp_path / "pipe.png", "-o", tmp_path / "p.fpid", "--json")
    assert "regular" in refused(ran, "IdentityError")
    os.mkfifo(tmp_path / "pipe.fpid")
    assert "regular" in refused(apply(cli, small_plate, tmp_path / "pipe.fpid", out / "o.####.exr"), "IdentityError")


@pytest.mark.parametrize("name", ["lock", "thumbs", "manifest.jsonl", "job.json", "report.html"])
def test_something_in_the_way(name: str, cli: Cli, small_plate: str, identity: Path, out: Path) -> None:
    folder = out / "o.faceplate"
    if name == "thumbs":
        folder.mkdir()
        (folder / name).write_text("mine")
    else:
        (folder / name).mkdir(parents=True)
    ran = apply(cli, small_plate, identity, out / "o.####.exr", "--frames", "1001")
    refused(ran, "ManifestError" if name == "manifest.jsonl" else "OutputError")
    assert leftovers(out) == []


def test_a_file_of_the_user_is_not_taken_for_a_probe(cli: Cli, small_plate: str, identity: Path, out: Path) -> None:
    (out / "o.probe").write_text("mine")
    assert apply(cli, small_plate, identity, out / "o.####.exr", "--frames", "1001").code == 0
    assert (out / "o.probe").read_text() == "mine"


def test_two_versions_keep_two_job_folders(cli: Cli, small_plate: str, identity: Path, out: Path) -> None:
    for version in ("v1", "v2"):
        assert apply(cli, small_plate, identity, out / f"o.{version}.####.exr", "--frames", "1001").code == 0
    ran = apply(cli, small_plate, identity, out / "o.v1.####.exr", "--frames", "1001")
    assert ran.event("done")["counts"] == {"kept": 1}
    assert {path.name for path in out.glob("*.faceplate")} == {"o.v1.faceplate", "o.v2.faceplate"}


@pytest.mark.parametrize("stem", ["take@2", "50%d_x", "ha#sh"])
def test_signs_in_the_name(stem: str, cli: Cli, small_plate: str, identity: Path, out: Path, tmp_path: Path) -> None:
    plate = shot(small_plate, tmp_path / "plate", f"{stem}.1001.exr", f"{stem}.1002.exr")
    ran = apply(cli, plate, identity, out / f"{stem}.####.exr")
    assert (ran.code, list(outputs(out))) == (0, [f"{stem}.1001.exr", f"{stem}.1002.exr"])


@pytest.mark.parametrize("place", ["plate", "output", "holdout", "identity"])
def test_endless_names(place: str, cli: Cli, small_plate: str, identity: Path, out: Path) -> None:
    long = "x" * 5000
    words = {"plate": small_plate, "output": out / "o.####.exr", "identity": identity}
    words |= {place: f"{long}@1" if place == "identity" else f"{long}.exr"}
    more = ("--holdout", words["holdout"]) if place == "holdout" else ()
    ran = apply(cli, words["plate"], words["identity"], words["output"], "--frames", "1001", *more)
    assert ran.code == 2
    assert ran.event("error")["hint"]


def test_endless_padding(cli: Cli, small_plate: str, identity: Path, out: Path) -> None:
    for pattern in ("o.%0999999999d.exr", "o.%099999999999999999999d.exr", "o.$F999.exr"):
        assert "digits" in str(apply(cli, small_plate, identity, out / pattern).event("error"))


@pytest.mark.parametrize("content", [f"strength = {'9' * 5000}", "strength = " + "[" * 5000, "strength = 2020-01-01"])
def test_settings_files(content: str, cli: Cli, small_plate: str, identity: Path, out: Path, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(content)
    words = ("--settings", tmp_path / "s.toml")
    refused(apply(cli, small_plate, identity, out / "o.####.exr", *words), "SettingError")


@pytest.mark.skipif(os.name != "posix", reason="names of any bytes are POSIX's")
def test_names_that_are_no_unicode(small_plate: str, identity: Path, out: Path, tmp_path: Path) -> None:
    bad = tmp_path / os.fsdecode(b"p\xff.1001.exr")
    shutil.copy(Path(small_plate).parent / "plate.1001.exr", bad)
    words = ["apply", str(bad), "--identity", str(identity), "-o", str(out / "o.exr")]
    for more in ([], ["--json"]):
        ran = subprocess.run([sys.executable, "-m", "faceplate", *words, *more], capture_output=True, check=False)
        assert ran.returncode == 2
        assert b"Unicode" in ran.stdout + ran.stderr
        assert b"Traceback" not in ran.stderr


def test_a_terminal_without_letters(small_plate: str, identity: Path, tmp_path: Path) -> None:
    folder = tmp_path / "Füße 日本"
    folder.mkdir()
    words = ("apply", small_plate, "--identity", identity, "-o", folder / "o.####.exr", "--frames", "1001")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    for more in ((), ("--json",)):
        with start((*words, *more), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            text, complaints = process.communicate(timeout=120)
        assert process.returncode == 0, complaints.decode()
    last = json.loads(text.splitlines()[-1])
    assert last["folder"] == str(folder / "o.faceplate")


def vanish(out: Path, when: Callable[[], bool]) -> threading.Thread:
    def watch() -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until and not when():
            time.sleep(0.002)
        shutil.rmtree(out, ignore_errors=True)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


@pytest.mark.parametrize("after", ["o.faceplate/lock", "o.faceplate/manifest.jsonl", "o.1002.exr"])
def test_the_output_vanishes(after: str, cli: Cli, small_plate: str, identity: Path, out: Path) -> None:
    thread = vanish(out, (out / after).exists)
    ran = apply(cli, small_plate, identity, out / "o.####.exr")
    thread.join()
    if ran.code != 0:  # it may have been over before
        assert ran.code == 2, ran.out + ran.err
        assert ran.event("error")["type"] in ("OutputError", "ManifestError")


def test_a_reader_that_leaves(small_plate: str, identity: Path, out: Path) -> None:
    words = ("apply", small_plate, "--identity", identity, "-o", out / "o.####.exr", "--json")
    with start(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        complaints = process.stderr.read().decode()
        process.wait(timeout=120)
    assert complaints == ""
    assert leftovers(out) == []


def test_the_hold_out_is_not_overwritten(cli: Cli, small_plate: str, identity: Path, out: Path) -> None:
    shot(small_plate, out / "mattes", *(f"m.{number}.exr" for number in range(1001, 1007)))
    before = outputs(out / "mattes")
    pattern = out / "mattes" / "m.####.exr"
    text = refused(apply(cli, small_plate, identity, pattern, "--holdout", f"{pattern}:R"), "OutputError")
    assert "hold-out" in text
    assert outputs(out / "mattes") == before


def test_keys_that_cross_are_refused_before_the_first_frame(
    cli: Cli, small_plate: str, identity: Path, out: Path
) -> None:
    words = ("--set", "yaw_fade_from=1001:0,1006:90", "--set", "yaw_fade_to=60")
    refused(apply(cli, small_plate, identity, out / "o.####.exr", *words), "SettingError")
    assert outputs(out) == {}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("redirection", [">&-", ">&- 2>&-", "> /dev/full"])
@pytest.mark.parametrize("words", ["models list", "models list --json", "report nowhere.exr --json"])
def test_an_output_that_takes_nothing(redirection: str, words: str) -> None:
    line = f'"{sys.executable}" -m faceplate {words} {redirection}'
    ran = subprocess.run(["bash", "-c", line], capture_output=True, check=False)
    assert ran.returncode in (0, 2)
    assert b"Traceback" not in ran.stderr


@pytest.mark.parametrize("damage", ["9" * 5000, "[" * 5000])
def test_damaged_job_folders(damage: str, cli: Cli, small_plate: str, identity: Path, out: Path) -> None:
    pattern = out / "o.####.exr"
    assert apply(cli, small_plate, identity, pattern, "--frames", "1001").code == 0
    manifest = out / "o.faceplate" / "manifest.jsonl"
    whole = manifest.read_text()
    manifest.write_text(whole + damage + "\n")
    refused(apply(cli, small_plate, identity, pattern, "--frames", "1001"), "ManifestError")
    manifest.write_text(whole.replace('"faces": [{', '"faces": [{"unheard_of": 1, '))
    refused(cli("report", pattern, "--json"), "ManifestError")
    manifest.write_text(whole)
    (out / "o.faceplate" / "job.json").write_text(damage)
    refused(cli("report", pattern, "--json"), "ManifestError")


@pytest.mark.parametrize("name", ["two\nlines", "red \x1b[31m", "x" * 201, "  "])
def test_names_of_people(name: str, cli: Cli, tmp_path: Path) -> None:
    ran = cli("identity", "make", name, tmp_path / "absent.png", "-o", tmp_path / "p.fpid", "--json")
    assert "name" in refused(ran, "IdentityError")


def test_two_jobs_share_a_folder(small_plate: str, identity: Path, out: Path) -> None:
    jobs = [
        start(("apply", small_plate, "--identity", identity, "-o", out / f"{name}.####.exr"), stdout=subprocess.DEVNULL)
        for name in ("a", "b")
    ]
    assert [job.wait(timeout=120) for job in jobs] == [0, 0]
    assert [len(list(out.glob(f"{name}.*.exr"))) for name in ("a", "b")] == [6, 6]
    assert leftovers(out) == []
