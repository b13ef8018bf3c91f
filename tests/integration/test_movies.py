"""Movies through the whole job: into EXR, and back into movies."""

from __future__ import annotations

import json
import signal
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import OpenEXR
import pytest

from faceplate.colour.spaces import ColourConfig
from faceplate.jobs.patches import read_patch
from faceplate.media.movies.movie import Movie
from faceplate.media.movies.tags import Tags
from faceplate.media.read import read_image
from faceplate.plate import open_plate
from tests.integration.conftest import SMALL, Cli, leftovers, start
from tests.support.movies import UNTAGGED, Clip, damage, face_clip

H264 = Clip("libx264", "yuv420p", 480, 300, options={"g": "6", "bf": "2", "crf": "10"})
PRORES = Clip("prores_ks", "yuv422p10le", 480, 300, timecode="01:00:00:00", metadata={"comment": "take 3"})


def report_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "job.json").read_text("utf-8"))
    return found


def test_a_movie_becomes_an_exr_sequence(cli: Cli, identity: Path, tmp_path: Path) -> None:
    plate = face_clip(tmp_path / "A001.mov", PRORES)
    assert cli("analyse", plate).code == 0
    ran = cli("apply", plate, "--identity", identity, "-o", tmp_path / "out.####.exr", "--json")
    assert ran.code == 0
    assert ran.event("done")["counts"] == {"done": 6}
    read = open_plate(str(plate), ColourConfig.open())
    decode = read.config.transform("camera_rec709", "lin_rec709_scene")
    for number in range(1, 7):
        image = read_image(tmp_path / f"out.{number:04d}.exr", number)
        file = OpenEXR.File(str(image.path), separate_channels=True)
        outside = file.channels()["matte.A"].pixels == 0
        assert 0.5 < outside.mean() < 0.98
        assert read.movie is not None
        by_ocio = decode.numpy(read.movie.read(number).pixels)
        (source,) = read.sources(str(number), "error")
        np.testing.assert_allclose(read.read(source).pixels, by_ocio, atol=1e-6)
        wanted = read.read(source).pixels.astype(np.float16)
        np.testing.assert_array_equal(image.pixels[outside].view(np.uint16), wanted[outside].view(np.uint16))
        code = file.header()["timeCode"]
        assert (code.hours, code.frame) == (1, number - 1)
        assert file.header()["framesPerSecond"] == Fraction(24)
        assert file.header()["movie/comment"] == "take 3"
    assert "transfer bt709, primaries bt709, matrix bt709, limited range" in str(report_of(tmp_path / "out.faceplate"))


def test_a_range_of_a_movie_and_again(cli: Cli, identity: Path, tmp_path: Path) -> None:
    plate = face_clip(tmp_path / "x.mp4", H264)
    words = ("apply", plate, "--identity", identity, "-o", tmp_path / "o.####.exr", "--json")
    assert cli(*words, "--frames", "3-4").event("done")["counts"] == {"done": 2}
    assert sorted(path.name for path in tmp_path.glob("o.*.exr")) == ["o.0003.exr", "o.0004.exr"]
    assert cli(*words).event("done")["counts"] == {"kept": 2, "done": 4}
    ran = cli(*words, "--frames", "5-9")
    assert ran.code == 2
    assert "within 1-6" in ran.event("error")["expected"]


def test_untagged_hd_is_bt709_and_said_so(cli: Cli, identity: Path, tmp_path: Path) -> None:
    clip = Clip("libx264", "yuv420p", 1280, 720, tags=UNTAGGED, options={"crf": "10"})
    plate = face_clip(tmp_path / "x.mp4", clip, count=1, face_width_px=300)
    assert cli("apply", plate, "--identity", identity, "-o", tmp_path / "o.####.exr").code == 0
    colour = next(line for line in report_of(tmp_path / "o.faceplate")["colours"] if line["what"] == "plate")
    assert (colour["space"], colour["source"]) == ("Camera Rec.709", "default")
    assert "untagged: transfer and primaries assumed" in colour["note"]
    assert "matrix and range assumed" in colour["note"]


def test_the_job_names_the_camera(cli: Cli, identity: Path, tmp_path: Path) -> None:
    plate = face_clip(tmp_path / "x.mov", PRORES, count=1)
    words = ("apply", plate, "--identity", identity, "-o", tmp_path / "o.####.exr", "--input-space", "ARRI LogC4")
    assert cli(*words).code == 0
    decode = ColourConfig.open().transform("ARRI LogC4", "Linear ARRI Wide Gamut 4")
    wanted = decode.numpy(Movie(plate).read(1).pixels)
    found = read_image(tmp_path / "o.0001.exr").pixels
    np.testing.assert_allclose(found[0, 0], wanted[0, 0], rtol=1e-3)


@pytest.mark.parametrize("kind", ["empty", "text", "cut", "sound", "interlaced"])
def test_what_cannot_be_read_leaves_nothing(cli: Cli, identity: Path, tmp_path: Path, kind: str) -> None:
    plate = tmp_path / "in" / "x.mov"
    plate.parent.mkdir()
    if kind == "interlaced":
        interlaced = Clip("prores_ks", "yuv422p10le", options={"flags": "+ildct"}, interlaced=True)
        interlaced.write(plate, interlaced.noise(2))
    elif kind == "sound":
        Clip(audio=True).write_sound(plate, 0.2)
    else:
        PRORES.write(plate, PRORES.noise(4))
        whole = plate.read_bytes()
        plate.write_bytes({"empty": b"", "text": b"hello" * 99, "cut": whole[: len(whole) // 2]}[kind])
    for words in (("analyse", plate), ("apply", plate, "--identity", identity, "-o", tmp_path / "o.####.exr")):
        ran = cli(*words)
        assert ran.code == 2
        assert "x.mov" in ran.err
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["x.mov"]


def test_a_damaged_frame_fails_alone(cli: Cli, identity: Path, tmp_path: Path) -> None:
    plate = face_clip(tmp_path / "x.mov", PRORES)
    damage(plate, 0.55, 400)
    ran = cli("apply", plate, "--identity", identity, "-o", tmp_path / "o.####.exr", "--json")
    assert ran.code == 1
    assert len(ran.event("done")["failed"]) == 1
    assert len(list(tmp_path.glob("o.*.exr"))) == 5
    assert leftovers(tmp_path) == []


def patches(folder: Path, number: int, clip: Clip) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Where a frame of a job changed."""
    patch = read_patch(folder / "frames" / f"{number:07d}.exr")
    where = np.zeros((clip.height, clip.width), bool)
    box = patch.window
    where[box.y0 : box.y1, box.x0 : box.x1] = patch.matte > 0
    return where


SOUND = Clip(
    "prores_ks", "yuv422p10le", 480, 300, Fraction(24000, 1001), timecode="01:00:00:00", audio=True,
    metadata={"title": "sh010"},
)  # fmt: skip


def sound_of(path: Path) -> bytes:
    with av.open(str(path)) as container:
        return b"".join(bytes(packet) for packet in container.demux(audio=0))


def test_a_movie_becomes_a_movie(cli: Cli, identity: Path, tmp_path: Path) -> None:
    plate = face_clip(tmp_path / "A001.mov", SOUND)
    ran = cli("apply", plate, "--identity", identity, "-o", tmp_path / "out.mkv", "--json")
    assert ran.code == 0
    assert any("FFV1 (yuv422p10le), 480x300, 6 frames, 24000/1001" in event.get("text", "") for event in ran.events)
    before, after = Movie(plate), Movie(tmp_path / "out.mkv")
    assert len(after) == 6
    assert str(after.facts.timecode) == "01:00:00:00"
    assert after.facts.metadata["title"] == "sh010"
    assert after.facts.colour.tags == before.facts.colour.tags
    assert sound_of(tmp_path / "out.mkv") == sound_of(plate)
    for number in before.numbers:
        where = patches(tmp_path / "out.faceplate", number, SOUND)
        assert 0.02 < where.mean() < 0.3
        luma, blue, red = zip(before.picture(number).planes, after.picture(number).planes, strict=True)
        np.testing.assert_array_equal(luma[0][~where], luma[1][~where])
        shared = where.reshape(300, 240, 2).any(axis=2)
        for plane in (blue, red):
            np.testing.assert_array_equal(plane[0][~shared], plane[1][~shared])
        change = np.abs(luma[0].astype(int) - luma[1])[where]
        assert change.mean() > 5
    again = cli("apply", plate, "--identity", identity, "-o", tmp_path / "out.mkv", "--json")
    assert again.event("done")["counts"] == {"kept": 6}
    assert any("is made already" in event.get("text", "") for event in again.events)
    assert leftovers(tmp_path) == []


def test_a_movie_in_exr_and_in_a_movie_is_the_same(cli: Cli, identity: Path, tmp_path: Path) -> None:
    clip = Clip("ffv1", "gbrp12le", 480, 300, tags=(1, 1, 0, 2))
    plate = face_clip(tmp_path / "x.mkv", clip, count=1)
    words = ("apply", plate, "--identity", identity)
    assert cli(*words, "-o", tmp_path / "a" / "o.####.exr").code == 0
    assert cli(*words, "-o", tmp_path / "b" / "o.mkv").code == 0
    encode = ColourConfig.open().transform("lin_rec709_scene", "camera_rec709")
    linear = read_image(tmp_path / "a" / "o.0001.exr").pixels
    found = Movie(tmp_path / "b" / "o.mkv").read(1).pixels
    wanted = np.clip(encode.numpy(linear), 0, 1)  # a file of full range ends at white
    np.testing.assert_allclose(wanted, found, atol=1.5 / 1023)  # half floats against 12 bits


def test_a_part_of_a_movie(cli: Cli, identity: Path, tmp_path: Path) -> None:
    plate = face_clip(tmp_path / "x.mov", SOUND)
    words = ("apply", plate, "--identity", identity, "-o", tmp_path / "o.mov", "--json")
    assert cli(*words, "--frames", "3-5").code == 0
    movie = Movie(tmp_path / "o.mov")
    assert len(movie) == 3
    assert movie.time(1) == 0
    assert str(movie.facts.timecode) == "01:00:00:02"
    assert cli(*words).event("done")["counts"] == {"kept": 3, "done": 3}
    assert len(Movie(tmp_path / "o.mov")) == 6
    ran = cli(*words, "--frames", "1,3-5")
    assert ran.code == 2
    assert "holes" in ran.event("error")["message"]


def test_uneven_times_stay_or_are_conformed(cli: Cli, identity: Path, tmp_path: Path) -> None:
    stamps = [0, 512, 1024, 3072, 3584, 7168]
    clip = Clip("libx264", "yuv420p", 480, 300, Fraction(30), Fraction(1, 15360), options={"crf": "10", "bf": "2"})
    plate = face_clip(tmp_path / "x.mp4", clip, pts=stamps)
    words = ("apply", plate, "--identity", identity, "-o", tmp_path / "o.mp4", "--json")
    assert cli(*words).code == 0
    before, kept = Movie(plate), Movie(tmp_path / "o.mp4")
    assert [kept.time(number) for number in kept.numbers] == [before.time(number) for number in before.numbers]
    assert kept.facts.variable
    assert cli(*words, "--fps", "30").event("done")["counts"] == {"kept": 6}
    even = Movie(tmp_path / "o.mp4")
    assert not even.facts.variable
    assert even.facts.rate == 30
    assert abs(len(even) / 30 - 7168 / 15360) < 0.1
    assert [even.time(number) for number in (1, 2, 3)] == [0, Fraction(1, 30), Fraction(2, 30)]


def test_a_telephone_clip_stays_turned(cli: Cli, identity: Path, tmp_path: Path) -> None:
    """Shot upright on a phone: coded lying, with a note to turn it."""
    upright = face_clip(tmp_path / "upright.mkv", Clip("ffv1", "yuv420p", 300, 480), count=2, face_width_px=110)
    turned = Clip("libx264", "yuv420p", 480, 300, rotation=-90, options={"crf": "10"})
    coded = [
        tuple(np.ascontiguousarray(np.rot90(plane)) for plane in Movie(upright).picture(number).planes)
        for number in (1, 2)
    ]
    plate = turned.write(tmp_path / "x.mp4", coded)
    assert cli("apply", plate, "--identity", identity, "-o", tmp_path / "o.mkv").code == 0
    before, after = Movie(plate), Movie(tmp_path / "o.mkv")
    assert (after.facts.width, after.facts.height, after.facts.rotation) == (300, 480, 270)
    where = patches(tmp_path / "o.faceplate", 1, Clip(width=300, height=480))
    assert where.mean() > 0.02
    lying = np.rot90(where)
    luma = before.picture(1).planes[0], after.picture(1).planes[0]
    np.testing.assert_array_equal(luma[0][~lying], luma[1][~lying])
    assert (luma[0] != luma[1])[lying].mean() > 0.5


@pytest.mark.parametrize("alpha", ["straight", "premultiplied"])
def test_the_element_as_prores_4444(cli: Cli, identity: Path, tmp_path: Path, alpha: str) -> None:
    plate = face_clip(tmp_path / "x.mov", PRORES, count=1)
    words = ("apply", plate, "--identity", identity, "-o", tmp_path / "o.mov", "--layers", "element", "--alpha", alpha)
    assert cli(*words).code == 0
    movie = Movie(tmp_path / "o.mov")
    rgba = movie.read(1).pixels
    assert movie.facts.codec == "prores"
    assert rgba.shape[2] == 4
    where = patches(tmp_path / "o.faceplate", 1, PRORES)
    assert rgba[..., 3][~where].max() < 0.005
    assert rgba[..., 3].max() > 0.98
    patch = read_patch(tmp_path / "o.faceplate" / "frames" / "0000001.exr")
    full = patch.matte > 0.99
    box = patch.window
    encode = ColourConfig.open().transform("lin_rec709_scene", "camera_rec709")
    found = rgba[box.y0 : box.y1, box.x0 : box.x1, :3]
    assert np.abs(found[full] - encode.numpy(patch.rgb)[full]).mean() < 0.006
    edge = (patch.matte > 0.2) & (patch.matte < 0.5)
    brightness = found[edge].mean() / found[full].mean()
    assert brightness > 0.6 if alpha == "straight" else brightness < 0.5


def test_pictures_become_a_movie(cli: Cli, identity: Path, small_plate: str, tmp_path: Path) -> None:
    words = ("apply", small_plate, "--identity", identity, "-o", tmp_path / "o.mov", "--json")
    ran = cli(*words, "--fps", "24")
    assert ran.code == 0
    movie = Movie(tmp_path / "o.mov")
    assert (len(movie), movie.facts.rate) == (6, 24)
    assert movie.facts.timecode is not None
    assert movie.facts.colour.tags == Tags(1, 1, 1, 1)
    plate = SMALL.frame(1003)[..., :3].astype(np.float32)
    wanted = ColourConfig.open().transform("ACEScg", "camera_rec709").numpy(plate)
    where = patches(tmp_path / "o.faceplate", 1003, Clip(width=480, height=300))
    light = (wanted.max(axis=-1) < 1) & (wanted.min(axis=-1) > 0) & ~where
    assert np.abs(movie.read(3).pixels - wanted)[light].mean() < 0.006
    assert cli(*words, "--fps", "24", "--output-space", "rec2100_pq_display").event("done")["counts"] == {"kept": 6}
    assert Movie(tmp_path / "o.mov").facts.colour.transfer == "pq"


@pytest.mark.parametrize(
    ("name", "more", "said"),
    [
        ("o.webm", (), "not written as .webm"),
        ("o.mp4", ("--codec", "prores_4444"), "cannot hold ProRes 4444"),
        ("o.mov", ("--codec", "prores_444"), "no codec is called"),
        ("o.mov", ("--layers", "rgba,st"), "cannot hold layers"),
        ("o.mp4", ("--layers", "element", "--codec", "h264"), "no alpha"),
        ("o.mov", ("--fps", "0"), "no rate"),
        ("o.mov", ("--alpha", "both"), "unknown"),
        ("o.mov", ("--output-space", "ACEScg"), "its own colour"),
        ("x.mov", (), "plate itself"),
        ("o.mov", ("--codec", "dnxhr_hqx"), "cannot write"),
    ],
)
def test_what_cannot_be_written_is_said_before_any_work(
    cli: Cli, identity: Path, tmp_path: Path, name: str, more: tuple[str, ...], said: str
) -> None:
    tiny = Clip("prores_ks", "yuv422p10le", 64, 48)
    plate = tiny.write(tmp_path / "x.mov", tiny.noise(2))
    before = plate.read_bytes()
    ran = cli("apply", plate, "--identity", identity, "-o", tmp_path / name, *more)
    assert ran.code == 2
    assert said in ran.err
    assert plate.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["x.mov"]


def test_no_movie_with_a_hole(cli: Cli, identity: Path, tmp_path: Path) -> None:
    plate = face_clip(tmp_path / "x.mov", PRORES)
    damage(plate, 0.55, 400)
    ran = cli("apply", plate, "--identity", identity, "-o", tmp_path / "o.mov", "--json")
    assert ran.code == 1
    assert any("is not made: 1 of 6 frames failed" in event.get("text", "") for event in ran.events)
    assert not (tmp_path / "o.mov").exists()


@pytest.mark.parametrize("made", [3, 5])
def test_killed_and_run_again_gives_the_same_bytes(made: int, identity: Path, tmp_path: Path) -> None:
    """In the middle of the frames, which the encoder follows closely, and when all are made and it has a few to go."""
    plate = face_clip(tmp_path / "x.mov", SOUND, count=5)
    words: list[object] = ["apply", plate, "--identity", identity, "--json", "--device", "cpu", "-o"]
    for folder in ("whole", "killed"):
        (tmp_path / folder).mkdir()
    whole = start([*words, tmp_path / "whole" / "o.mov"], stdout=subprocess.DEVNULL)
    process = start([*words, tmp_path / "killed" / "o.mov"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "progress" and event["stage"] == "swap" and event["done"] == made:
            process.kill()
    assert process.wait() == -signal.SIGKILL
    assert whole.wait() == 0
    assert made == 5 or not (tmp_path / "killed" / "o.mov").exists()
    assert start([*words, tmp_path / "killed" / "o.mov"], stdout=subprocess.DEVNULL).wait() == 0
    assert (tmp_path / "killed" / "o.mov").read_bytes() == (tmp_path / "whole" / "o.mov").read_bytes()
    assert leftovers(tmp_path / "killed") == []
