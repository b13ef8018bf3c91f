"""Any frame, in any order, from any thread, is the one a decode from the beginning gives."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from faceplate.colour.spaces import ColourConfig
from faceplate.errors import FrameMismatchError, ImageReadError, MissingFrameError
from faceplate.frame import Box
from faceplate.media.movies import decode
from faceplate.media.movies.movie import Movie
from faceplate.plate import open_plate
from tests.support.movies import Clip, damage, linear_decode

X264 = {"g": "12", "bf": "3"}
X265 = {"x265-params": "keyint=12:min-keyint=12:bframes=4:open-gop=1:log-level=none"}
CLIPS = {
    "b_frames.mp4": Clip("libx264", "yuv420p", options=X264),
    "b_frames.mkv": Clip("libx264", "yuv420p10le", options=X264),
    "open_gop.mp4": Clip("libx265", "yuv420p10le", options=X265),
    "intra.mov": Clip("prores_ks", "yuv422p10le"),
    "hqx.mov": Clip("dnxhd", "yuv422p10le", 256, 128, options={"profile": "dnxhr_hqx"}),
    "hqx.mxf": Clip("dnxhd", "yuv422p10le", 256, 128, options={"profile": "dnxhr_hqx"}),
    "ffv1.mkv": Clip("ffv1", "yuv444p12le", options={"g": "10"}),
    "ffv1.avi": Clip("ffv1", "yuv420p"),
}
COUNT = 40


@pytest.fixture(scope="module", params=CLIPS)
def clip(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = CLIPS[request.param]
    return made.write(tmp_path_factory.mktemp("clips") / request.param, made.noise(COUNT, seed=3))


def codes(movie: Movie, number: int) -> list[bytes]:
    return [plane.tobytes() for plane in movie.picture(number).planes]


def test_in_any_order(clip: Path) -> None:
    wanted = linear_decode(clip)
    movie = Movie(clip)
    assert movie.numbers == range(1, COUNT + 1)
    assert [int(pts) for pts in movie.index.pts] == [pts for pts, _ in wanted]
    order = list(movie.numbers) * 2
    random.Random(4).shuffle(order)
    for number in order:
        assert codes(movie, number) == wanted[number - 1][1], number


def test_from_many_threads(clip: Path) -> None:
    wanted = linear_decode(clip)
    movie = Movie(clip)
    loose = sorted(movie.numbers, key=lambda number: number + 5 * random.Random(number).random())
    with ThreadPoolExecutor(6) as pool:
        for number, found in zip(loose, pool.map(lambda number: codes(movie, number), loose), strict=True):
            assert found == wanted[number - 1][1], number


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Clip("libx264", "yuv420p", options=X264)
    clip = made.write(tmp_path / "x.mp4", made.noise(COUNT))
    one = 96 * 64 * 3 // 2
    monkeypatch.setattr(decode, "_KEPT_BYTES", 6 * one)
    movie = Movie(clip)
    for number in movie.numbers:
        movie.picture(number)
    kept = movie._decoder._kept
    assert sum(picture.nbytes for picture in kept.values()) == 6 * one
    assert max(kept) == COUNT - 1


def test_variable_frame_rate_by_time_stamps(tmp_path: Path) -> None:
    stamps = [0, 512, 1024, 2560, 4096, 4608, 9000]
    made = Clip(
        "libx264", "yuv420p", time_base=Fraction(1, 15360), rate=Fraction(30), options=X264, timecode="01:00:00:00"
    )
    movie = Movie(made.write(tmp_path / "vfr.mp4", made.noise(len(stamps)), stamps))
    assert movie.facts.variable
    assert [movie.time(number) for number in movie.numbers] == [Fraction(stamp, 15360) for stamp in stamps]
    assert "FramesPerSecond" not in movie.read(2).metadata
    wanted = linear_decode(movie.path)
    assert codes(movie, 5) == wanted[4][1]


def sound_and_failed(movie: Movie, wanted: list[tuple[int, list[bytes]]]) -> tuple[set[int], dict[int, str]]:
    sound, failed = set(), {}
    for number in movie.numbers:
        try:
            if codes(movie, number) == wanted[number - 1][1]:
                sound.add(number)
        except ImageReadError as error:
            failed[number] = error.message
    return sound, failed


@pytest.mark.parametrize("name", ["intra.mov", "hqx.mov", "hqx.mxf"])
def test_damage_fails_its_frame_and_no_other(name: str, tmp_path: Path) -> None:
    made = CLIPS[name]
    clip = made.write(tmp_path / name, made.noise(COUNT, seed=3))
    wanted = linear_decode(clip)
    damage(clip, 0.5, 120)
    sound, failed = sound_and_failed(Movie(clip), wanted)
    assert 1 <= len(failed) <= 2
    assert sound | failed.keys() == set(range(1, COUNT + 1))
    for number, message in failed.items():
        assert f"frame {number} " in message


def test_damage_in_a_long_group_ends_with_it(tmp_path: Path) -> None:
    """H.264 has no checksums: what the decoder does not notice cannot be told; the other groups must be whole."""
    made = CLIPS["b_frames.mp4"]
    clip = made.write(tmp_path / "x.mp4", made.noise(COUNT, seed=3))
    wanted = linear_decode(clip)
    damage(clip, 0.5, 120)
    movie = Movie(clip)
    sound, _ = sound_and_failed(movie, wanted)
    touched = set(movie.numbers) - sound
    assert len({movie.index.key[number - 1] for number in touched}) <= 1


def test_no_such_frame(tmp_path: Path) -> None:
    made = Clip()
    movie = Movie(made.write(tmp_path / "x.mkv", made.noise(3)))
    for number in (0, 4, -1):
        with pytest.raises(MissingFrameError, match=f"no frame {number}"):
            movie.picture(number)


def read_all(path: Path) -> None:
    movie = Movie(path)
    for number in movie.numbers:
        movie.picture(number)


def test_another_raster_in_mid_stream_is_refused(tmp_path: Path) -> None:
    first, second = Clip("libx264", "yuv420p"), Clip("libx264", "yuv420p", width=64)
    for name, made in (("a.ts", first), ("b.ts", second)):
        made.write(tmp_path / name, made.noise(5))
    both = tmp_path / "both.ts"
    both.write_bytes((tmp_path / "a.ts").read_bytes() + (tmp_path / "b.ts").read_bytes())
    with pytest.raises((ImageReadError, FrameMismatchError)):
        read_all(both)


def test_the_reader_gives_rgb_of_the_decoded_codes(tmp_path: Path) -> None:
    made = Clip("ffv1", "gbrp12le", tags=(1, 13, 0, 2))
    pictures = made.noise(3)
    movie = Movie(made.write(tmp_path / "x.mkv", pictures))
    image = movie.read(2)
    assert (image.bit_depth, image.file_format, image.number) == ("uint12", "movie", 2)
    np.testing.assert_allclose(image.pixels, np.stack(pictures[1], -1) / 4095, atol=1e-6)


@pytest.mark.parametrize("name", ["yuv420p", "yuv422p10le", "yuv444p12le", "gbrp12le"])
def test_a_window_is_read_as_it_is_in_the_whole(name: str, tmp_path: Path) -> None:
    made = Clip("ffv1", name, 201, 97, tags=(1, 1, 0, 2) if name == "gbrp12le" else (1, 1, 1, 1))
    plate = open_plate(str(made.write(tmp_path / "x.mkv", made.noise(2))), ColourConfig.open())
    (source,) = plate.sources("2", "error")
    whole = plate.read(source).pixels
    rng = np.random.default_rng(6)
    for _ in range(30):
        x0, y0 = int(rng.integers(0, 200)), int(rng.integers(0, 96))
        window = Box(x0, y0, int(rng.integers(x0 + 1, 202)), int(rng.integers(y0 + 1, 98)))
        frame = plate.read(source, window)
        assert (frame.data_window, frame.display_window) == (window, Box(0, 0, 201, 97))
        part = whole[window.slices(frame.display_window)]
        np.testing.assert_array_equal(frame.pixels.view(np.uint32), part.view(np.uint32))
