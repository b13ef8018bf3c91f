"""What a job says of movies beyond their tags: matrix and range, a matte that is a movie, frames that fail."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faceplate.jobs import apply as apply_job
from faceplate.jobs.movie import MOVIE_FILE
from faceplate.media.movies.movie import Movie
from faceplate.media.read import read_image
from tests.integration.conftest import Cli
from tests.support.movies import Clip, damage, face_clip, linear_decode

FFV1 = Clip("ffv1", "yuv422p10le", 480, 300)
PRORES = Clip("prores_ks", "yuv422p10le", 480, 300)


def test_matrix_and_range_over_the_tags(cli: Cli, identity: Path, tmp_path: Path) -> None:
    plate = face_clip(tmp_path / "x.mkv", FFV1, count=1)
    words = ("apply", plate, "--identity", identity, "--layers", "element", "--set", "strength=0")
    said = ("--input-matrix", "bt601", "--input-range", "full")
    words = ("apply", plate, "--identity", identity)
    assert cli(*words, "-o", tmp_path / "o.mkv", *said).code == 0
    made, given = Movie(tmp_path / "o.mkv"), Movie(plate)
    assert (made.facts.colour.tags.matrix, made.facts.colour.tags.range) == (6, 2)
    changed = [a != b for a, b in zip(made.picture(1).planes, given.picture(1).planes, strict=True)]
    assert 0.02 < changed[0].mean() < 0.6, "codes outside the matte are the plate's, whatever they are called"
    assert cli(*words, "-o", tmp_path / "o.####.exr", *said, "--input-space", "Linear Rec.709 (sRGB)").code == 0
    codes = [plane[0, 0].astype(float) for plane in given.picture(1).planes]
    luma, blue, red = codes[0] / 1023, (codes[1] - 512) / 1023, (codes[2] - 512) / 1023
    wanted = luma + np.array([1.402 * red, -0.344136 * blue - 0.714136 * red, 1.772 * blue])  # BT.601, full range
    np.testing.assert_allclose(read_image(tmp_path / "o.0001.exr").pixels[0, 0, :3], wanted, atol=1e-3)
    again = cli(*words, "-o", tmp_path / "o.####.exr", "--input-space", "Linear Rec.709 (sRGB)", "--json")
    assert again.event("done")["counts"] == {"done": 1}, "another matrix makes frames stale"


@pytest.mark.parametrize("words", [("--input-matrix", "bt2100"), ("--input-range", "wide"), ("--failed", "maybe")])
def test_words_that_are_none(words: tuple[str, str], cli: Cli, identity: Path, tmp_path: Path) -> None:
    ran = cli("apply", tmp_path / "x.mov", "--identity", identity, "-o", tmp_path / "o.mov", *words, "--json")
    assert (ran.code, ran.event("error")["type"]) == (2, "SettingError")
    assert "expected" in ran.event("error")


def test_pictures_have_no_matrix(cli: Cli, small_plate: str, identity: Path, tmp_path: Path) -> None:
    ran = cli(
        "apply", small_plate, "--identity", identity, "-o", tmp_path / "o.####.exr", "--input-range", "full", "--json"
    )
    assert (ran.code, ran.event("error")["type"]) == (2, "SettingError")


def matte_clip(path: Path, clip: Clip, count: int) -> Path:
    """White on the left half in its first frame, all white in the others."""
    pictures = []
    for number in range(count):
        planes = [np.full_like(plane, 512) for plane in clip.noise(1)[0]]
        planes[0][:] = 940
        if number == 0:
            planes[0][:, clip.width // 2 :] = 64
        pictures.append(tuple(planes))
    return clip.write(path, pictures)


def test_a_movie_as_hold_out(cli: Cli, small_plate: str, identity: Path, tmp_path: Path) -> None:
    matte = matte_clip(tmp_path / "matte.mkv", FFV1, 3)
    words = ("apply", small_plate, "--identity", identity, "-o", tmp_path / "o.####.exr", "--holdout", matte, "--json")
    assert cli(*words, "--frames", "1001-1002").code == 0
    for number, kept in ((1001, np.s_[:, :240]), (1002, np.s_[:, :])):
        plate = read_image(Path(small_plate).with_name(f"plate.{number}.exr")).pixels
        made = read_image(tmp_path / f"o.{number}.exr").pixels
        np.testing.assert_array_equal(made[kept].view(np.uint16), plate[kept].view(np.uint16))
        assert (made != plate).any() == (number == 1001)
    ran = cli(*words)
    assert (ran.code, sorted(ran.event("done")["failed"])) == (1, ["1004", "1005", "1006"])
    assert "no frame for frame 1004" in ran.event("done")["failed"]["1004"]["message"]
    ran = cli(*words[:-2], f"{matte}:A", "--json")
    assert (ran.code, ran.event("error")["type"]) == (2, "InputError")
    ran = cli("apply", small_plate, "--identity", identity, "-o", matte, "--holdout", matte, "--fps", "24", "--json")
    assert (ran.code, ran.event("error")["type"]) == (2, "OutputError"), "what a job reads is not overwritten"


def test_a_movie_with_failed_frames(cli: Cli, identity: Path, tmp_path: Path) -> None:
    plate = face_clip(tmp_path / "x.mov", PRORES)
    damage(plate, 0.55, 400)
    words = ("apply", plate, "--identity", identity, "-o", tmp_path / "o.mov", "--codec", "prores_422hq", "--json")
    ran = cli(*words)
    (bad,) = map(int, ran.event("done")["failed"])
    assert ran.code == 1
    assert not (tmp_path / "o.mov").exists()
    ran = cli(*words, "--failed", "plate")
    assert ran.code == 1
    assert [event["text"] for event in ran.events if event["event"] == "warning" and "repeated" in event["text"]]
    made = linear_decode(tmp_path / "o.mov")
    assert len(made) == 6
    assert [pts for pts, _ in made] == [pts for pts, _ in linear_decode(face_clip(tmp_path / "y.mov", PRORES))]
    assert made[bad - 1][1] == made[bad - 2][1], "the frame before stands in"
    assert made[bad][1] != made[bad - 1][1]


def test_a_frame_that_fails_for_its_matte_shows_the_plate(cli: Cli, identity: Path, tmp_path: Path) -> None:
    plate = face_clip(tmp_path / "x.mkv", FFV1, count=3)
    matte = matte_clip(tmp_path / "matte.mkv", FFV1, 2)
    words = ("apply", plate, "--identity", identity, "-o", tmp_path / "o.mkv", "--holdout", f"{matte}:Y")
    assert cli(*words, "--failed", "plate").code == 1
    made, given = linear_decode(tmp_path / "o.mkv"), linear_decode(plate)
    assert [a[1] == b[1] for a, b in zip(made, given, strict=True)] == [False, True, True]


def test_frames_first_then_the_movie(cli: Cli, identity: Path, tmp_path: Path) -> None:
    """As a farm does it: chunks side by side, then one task that encodes."""
    plate = face_clip(tmp_path / "x.mov", PRORES, count=4)
    whole = ("apply", plate, "--identity", identity, "-o", tmp_path / "a" / "o.mov")
    parts = ("apply", plate, "--identity", identity, "-o", tmp_path / "b" / "o.mov")
    assert cli(*whole).code == 0
    for part in ("1-2", "2-4"):
        ran = cli(*parts, "--frames", part, "--no-movie", "--progress", "percent")
        assert ran.code == 0
        assert "Progress: 100%" in ran.out
        assert not (tmp_path / "b" / "o.mov").exists()
    ran = cli(*parts, "--json")
    assert ran.event("done")["counts"] == {"kept": 4}
    assert (tmp_path / "a" / "o.mov").read_bytes() == (tmp_path / "b" / "o.mov").read_bytes()


def test_a_movie_does_not_wait_for_a_frame_that_it_does_not_show(
    cli: Cli, identity: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plate = face_clip(tmp_path / "x.mkv", FFV1, count=2)
    note, early = tmp_path / "o.faceplate" / MOVIE_FILE, []
    write_patch = apply_job.write_patch

    def late(path: Path, *others: Any) -> None:
        if path.stem == "0000002":  # at half the rate nobody sees it: the movie is whole before it is made
            end = time.monotonic() + 20
            while not note.exists() and time.monotonic() < end:
                time.sleep(0.02)
            early.append(note.exists())
        write_patch(path, *others)

    monkeypatch.setattr(apply_job, "write_patch", late)
    words = ("apply", plate, "--identity", identity, "-o", tmp_path / "o.mkv", "--fps", "12", "--json")
    ran = cli(*words)
    assert (ran.code, ran.event("done")["counts"], early) == (0, {"done": 2}, [True])
    assert len(Movie(tmp_path / "o.mkv")) == 1
    assert cli(*words).event("done")["counts"] == {"kept": 2}
