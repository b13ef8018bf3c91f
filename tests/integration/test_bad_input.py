"""Whatever is wrong with the input: a typed error with a hint, exit code 2, nothing half-written, no traceback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from faceplate.media.exr import write_exr
from faceplate.media.read import read_image
from tests.integration.conftest import Cli, Ran, leftovers, outputs, person_photos, write_plain_exr


def refused(ran: Ran, kind: str, folder: Path) -> str:
    """Assert a proper refusal; the message with the hint."""
    assert ran.code == 2, ran.out + ran.err
    error = ran.event("error")
    assert error["type"] == kind
    assert error["hint"]
    assert outputs(folder) == {}
    assert leftovers(folder) == []
    return f"{error['message']} {error['expected']} {error['found']} {error['hint']}"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def apply(cli: Cli, plate: object, identity: object, out: Path, *more: object) -> Ran:
    return cli("apply", plate, "--identity", identity, "-o", out / "o.####.exr", "--json", *more)


def grey(path: Path, channels: int = 3, size: tuple[int, int] = (64, 48)) -> Path:
    write_plain_exr(path, np.full((size[1], size[0], channels), 0.2, np.float16))
    return path


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "ImageReadError"),
        (b"this is no picture at all", "ImageReadError"),
        (b"\x76\x2f\x31\x01" + b"\x00" * 40, "ImageReadError"),
    ],
)
def test_rubbish_files(content: bytes, kind: str, cli: Cli, identity: Path, out: Path, tmp_path: Path) -> None:
    (tmp_path / "p.1001.exr").write_bytes(content)
    refused(apply(cli, tmp_path / "p.####.exr", identity, out), kind, out)


def test_truncated_first_frame(cli: Cli, small_plate: str, identity: Path, out: Path, tmp_path: Path) -> None:
    source = Path(small_plate).parent / "plate.1001.exr"
    (tmp_path / "p.1001.exr").write_bytes(source.read_bytes()[:20000])
    refused(apply(cli, tmp_path / "p.####.exr", identity, out), "ImageReadError", out)


def test_no_such_plate(cli: Cli, identity: Path, out: Path, tmp_path: Path) -> None:
    refused(apply(cli, tmp_path / "nothing.####.exr", identity, out), "SequenceError", out)


@pytest.mark.parametrize("channels", [1, 2])
def test_plates_without_colour(channels: int, cli: Cli, identity: Path, out: Path, tmp_path: Path) -> None:
    grey(tmp_path / "p.1001.exr", channels)
    refused(apply(cli, tmp_path / "p.1001.exr", identity, out), "UnsupportedImageError", out)


def damaged_shot(small_plate: str, folder: Path) -> Path:
    shutil.copytree(Path(small_plate).parent, folder)
    return folder / Path(small_plate).name


def one_failed(ran: Ran, frame: int, kind: str, out: Path, done: int = 5) -> None:
    assert ran.code == 1, ran.out + ran.err
    event = ran.event("done")
    assert list(event["failed"]) == [str(frame)]
    assert event["failed"][str(frame)]["type"] == kind
    assert event["failed"][str(frame)]["hint"]
    assert len(outputs(out)) == done
    assert f"o.{frame}.exr" not in outputs(out)
    assert leftovers(out) == []


def test_a_truncated_frame_fails_alone_and_is_retried(
    cli: Cli, small_plate: str, identity: Path, out: Path, tmp_path: Path
) -> None:
    plate = damaged_shot(small_plate, tmp_path / "plate")
    victim = plate.parent / "plate.1004.exr"
    whole = victim.read_bytes()
    victim.write_bytes(whole[: len(whole) // 2])
    one_failed(apply(cli, plate, identity, out), 1004, "ImageReadError", out)
    victim.write_bytes(whole)
    ran = apply(cli, plate, identity, out)
    assert ran.code == 0
    assert len(outputs(out)) == 6


@pytest.mark.parametrize(("size", "channels"), [((480, 299), 3), ((480, 300), 4)])
def test_a_frame_that_changes_in_mid_shot_fails_alone(
    size: tuple[int, int], channels: int, cli: Cli, small_plate: str, identity: Path, out: Path, tmp_path: Path
) -> None:
    plate = damaged_shot(small_plate, tmp_path / "plate")
    grey(plate.parent / "plate.1004.exr", channels, size)
    one_failed(apply(cli, plate, identity, out), 1004, "FrameMismatchError", out)


def test_a_colour_tag_that_changes_in_mid_shot_fails_alone(
    cli: Cli, small_plate: str, identity: Path, out: Path, tmp_path: Path
) -> None:
    plate = damaged_shot(small_plate, tmp_path / "plate")
    victim = plate.parent / "plate.1004.exr"
    image = read_image(victim)
    write_exr(victim, image.pixels, image=image, attributes={"colorInteropID": "lin_rec709_scene"})
    one_failed(apply(cli, plate, identity, out), 1004, "FrameMismatchError", out)


def test_a_hole(cli: Cli, small_plate: str, identity: Path, out: Path, tmp_path: Path) -> None:
    plate = damaged_shot(small_plate, tmp_path / "plate")
    (plate.parent / "plate.1003.exr").unlink()
    text = refused(apply(cli, plate, identity, out), "MissingFrameError", out)
    assert "1003" in text
    assert "--missing hold" in text
    ran = apply(cli, plate, identity, out, "--missing", "skip")
    assert (ran.code, ran.event("done")["counts"]) == (0, {"done": 5, "skipped": 1})
    assert "o.1003.exr" not in outputs(out)
    ran = apply(cli, plate, identity, out, "--missing", "hold")
    assert (ran.code, ran.event("done")["counts"]["held"]) == (0, 1)
    held, before = outputs(out)["o.1003.exr"], outputs(out)["o.1002.exr"]
    assert held != b""
    assert before != b""
    report = (out / "o.faceplate" / "report.html").read_text()
    assert "1003" in report


def test_output_is_input(cli: Cli, small_plate: str, identity: Path, tmp_path: Path) -> None:
    plate = damaged_shot(small_plate, tmp_path / "plate")
    before = outputs(plate.parent)
    ran = cli("apply", plate, "--identity", identity, "-o", plate, "--json")
    assert ran.code == 2
    assert ran.event("error")["type"] == "OutputError"
    assert outputs(plate.parent) == before
    link = tmp_path / "link"
    link.symlink_to(plate.parent)
    assert cli("apply", plate, "--identity", identity, "-o", link / plate.name, "--json").code == 2
    assert outputs(plate.parent) == before


def test_one_output_for_many_frames(cli: Cli, small_plate: str, identity: Path, out: Path) -> None:
    ran = cli("apply", small_plate, "--identity", identity, "-o", out / "o.exr", "--json")
    assert "result.####.exr" in refused(ran, "OutputError", out)


def test_a_format_that_cannot_hold_it(cli: Cli, small_plate: str, identity: Path, out: Path) -> None:
    ran = cli("apply", small_plate, "--identity", identity, "-o", out / "o.####.png", "--json")
    refused(ran, "OutputError", out)


def test_output_below_a_file(cli: Cli, small_plate: str, identity: Path, out: Path) -> None:
    (out / "file").write_text("x")
    ran = cli("apply", small_plate, "--identity", identity, "-o", out / "file" / "o.####.exr", "--json")
    refused(ran, "OutputError", out)


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_unwritable_output(small_plate: str, identity: Path, out: Path) -> None:
    if os.geteuid() != 0:
        out.chmod(0o500)
        words = [
            "faceplate",
            "apply",
            small_plate,
            "--identity",
            str(identity),
            "-o",
            str(out / "o.####.exr"),
            "--json",
        ]
        ran = subprocess.run(words, capture_output=True, text=True)
    else:
        pytest.skip("root may write everywhere; the read-only mount below covers it")
    assert ran.returncode == 2


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k", "tmpfs", folder], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip(f"no right to mount: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_disk_full(cli: Cli, small_plate: str, identity: Path, small_disk: Path) -> None:
    ran = apply(cli, small_plate, identity, small_disk)
    assert ran.code == 2, ran.out
    error = ran.event("error")
    assert error["type"] == "OutputError"
    assert "full" in error["found"]
    assert leftovers(small_disk) == []
    for path in small_disk.glob("*.exr"):
        assert path.stat().st_size > 0
        assert cli("analyse", path, "-o", small_disk.parent / f"{path.stem}.faces.json").code == 0


def test_read_only_disk(cli: Cli, small_plate: str, identity: Path, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    ran = apply(cli, small_plate, identity, small_disk)
    assert ran.code == 2
    assert "read-only" in ran.event("error")["found"]


def test_unknown_colour_space(cli: Cli, small_plate: str, identity: Path, out: Path) -> None:
    text = refused(apply(cli, small_plate, identity, out, "--input-space", "ACESgc"), "ColourSpaceError", out)
    assert "ACEScg" in text


@pytest.mark.parametrize(("frames", "kind"), [("900-905", "SequenceError"), ("ten", "SequenceError"), ("", "")])
def test_ranges(frames: str, kind: str, cli: Cli, small_plate: str, identity: Path, out: Path) -> None:
    ran = apply(cli, small_plate, identity, out, "--frames", frames)
    if kind:
        refused(ran, kind, out)
    else:
        assert ran.code == 0


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "absent"])
def test_bad_identity(damage: str, cli: Cli, small_plate: str, identity: Path, out: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.fpid"
    whole = identity.read_bytes()
    if damage != "absent":
        bad.write_bytes({"cut": whole[: len(whole) // 2], "empty": b"", "text": b"hello"}[damage])
    refused(apply(cli, small_plate, bad, out), "IdentityError", out)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": "other"}'])
def test_bad_sidecar(content: str, cli: Cli, small_plate: str, identity: Path, out: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.faces.json").write_text(content)
    refused(apply(cli, small_plate, identity, out, "--faces", tmp_path / "bad.faces.json"), "SidecarError", out)


def test_a_track_that_is_not_there(cli: Cli, small_plate: str, identity: Path, out: Path) -> None:
    text = refused(apply(cli, small_plate, f"{identity}@9", out), "SettingError", out)
    assert "1" in text


def test_bad_manifest(cli: Cli, small_plate: str, identity: Path, out: Path) -> None:
    assert apply(cli, small_plate, identity, out, "--frames", "1001").code == 0
    manifest = out / "o.faceplate" / "manifest.jsonl"
    manifest.write_text("rubbish\n" + manifest.read_text())
    ran = apply(cli, small_plate, identity, out)
    assert ran.code == 2
    assert ran.event("error")["type"] == "ManifestError"
    assert "delete" in ran.event("error")["hint"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('project = "This Film"\nvalid_until = 2020-01-01', "expired"),
        ('project = "This Film"\nrevoked = 2021-01-01', "revoked"),
        ('project = "Another Film"', "another project"),
    ],
)
def test_consent_is_refused_and_the_refusal_recorded(
    line: str, words: str, cli: Cli, small_plate: str, out: Path, tmp_path: Path
) -> None:
    consent = tmp_path / "consent.toml"
    consent.write_text(f'person = "P"\nsigned_by = "P"\ndate = 2019-01-01\nscope = "all"\n{line}\n')
    bad = tmp_path / "p.fpid"
    assert cli("identity", "make", "p", *person_photos(), "--consent", consent, "-o", bad).code == 0
    text = refused(apply(cli, small_plate, bad, out, "--project", "This Film"), "ConsentError", out)
    assert words in text
    ledger = (out / "o.faceplate" / "faceplate.ledger.jsonl").read_text().splitlines()
    assert json.loads(ledger[-1])["consent"]["decision"] == "deny"


def test_unknown_command_line_words(cli: Cli, small_plate: str, identity: Path, out: Path) -> None:
    for more in (["--engine", "magic"], ["--set", "strenght=1"], ["--missing", "guess"], ["--no-such-option"]):
        ran = apply(cli, small_plate, identity, out, *more)
        assert ran.code == 2, more
        assert ran.event("error")["hint"]
