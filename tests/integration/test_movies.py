"""Movies through the whole job: into EXR, and back into movies."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import OpenEXR
import pytest

from faceplate.colour.spaces import ColourConfig
from faceplate.media.movies.movie import Movie
from faceplate.media.read import read_image
from tests.integration.conftest import Cli, leftovers
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
    movie, decode = Movie(plate), ColourConfig.open().transform("camera_rec709", "lin_rec709_scene")
    for number in range(1, 7):
        image = read_image(tmp_path / f"out.{number:04d}.exr", number)
        file = OpenEXR.File(str(image.path), separate_channels=True)
        outside = file.channels()["matte.A"].pixels == 0
        assert 0.5 < outside.mean() < 0.98
        wanted = decode.numpy(movie.read(number).pixels).astype(np.float16)
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
    np.testing.assert_array_equal(found[0, 0], wanted[0, 0].astype(np.float16))


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
