"""Movies as they are written: what is in the file, read by our reader and by FFmpeg's own."""

from __future__ import annotations

import dataclasses
import resource
from collections.abc import Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from faceplate.errors import OutputError
from faceplate.media.atomic import atomic_write
from faceplate.media.movies.codecs import CODECS, coding_for, layout_for
from faceplate.media.movies.convert import convert
from faceplate.media.movies.encode import MovieFormat, MovieWriter, check_written, try_format
from faceplate.media.movies.movie import Movie
from faceplate.media.movies.sound import SoundCopy
from faceplate.media.movies.tags import Tags
from tests.support.movies import Clip

SOURCE = Clip("prores_ks", "yuv422p10le", 256, 128, timecode="01:00:00:00", metadata={"title": "sh010"}, audio=True)
PAIRS = [(name, suffix) for name, codec in CODECS.items() for suffix in codec.suffixes if suffix != ".m4v"]


@pytest.fixture(scope="module")
def plate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return SOURCE.write(tmp_path_factory.mktemp("plate") / "x.mov", SOURCE.noise(6))


def wanted(movie: Movie, codec: str, **more: object) -> MovieFormat:
    facts, made = movie.facts, CODECS[codec]
    layout = layout_for(made, movie.picture(1).layout, alpha=False)
    plain = MovieFormat(
        codec=made,
        layout=layout,
        coding=coding_for(made, layout, facts.colour),
        tags=facts.colour.written,
        width=facts.width,
        height=facts.height,
        rate=facts.rate,
        time_base=movie.index.time_base,
        frames=len(movie),
        timecode=facts.timecode,
        metadata=facts.metadata,
    )
    return dataclasses.replace(plain, **more)  # type: ignore[arg-type]


def write(movie: Movie, path: Path, made: MovieFormat, stamps: list[int] | None = None) -> dict[int, int]:
    with closing(SoundCopy(movie.path)) as sound, MovieWriter(path, path, made, sound) as writer:
        for number, stamp in zip(movie.numbers, stamps or movie.index.pts, strict=True):
            picture = movie.picture(number)
            planes = convert(picture.planes, picture.layout, movie.facts.colour.coding, made.layout, made.coding)
            writer.write(planes, stamp, 512)
    return sound.written


def sound_of(path: Path) -> bytes:
    with av.open(str(path)) as container:
        return b"".join(bytes(packet) for packet in container.demux(audio=0))


@pytest.mark.parametrize(("codec", "suffix"), PAIRS)
def test_every_codec_in_every_container(codec: str, suffix: str, plate: Path, tmp_path: Path) -> None:
    movie = Movie(plate)
    path, made = tmp_path / f"x{suffix}", wanted(movie, codec)
    check_written(path, path, made, movie.index.pts, write(movie, path, made))
    again = Movie(path)
    assert len(again) == 6
    assert again.facts.timecode == movie.facts.timecode
    kept = again.facts.colour.tags
    assert kept in (Tags(1, 1, 1, 1), *([Tags(1, 1, 1, 0)] if suffix == ".mxf" else []))  # unsaid is read as limited
    assert sound_of(path) == sound_of(plate)
    if suffix != ".mxf":
        assert again.facts.metadata["title"] == "sh010"
    picture, mine = again.picture(4), movie.picture(4)
    if codec == "ffv1":
        for before, after in zip(mine.planes, picture.planes, strict=True):
            np.testing.assert_array_equal(before, after)
    else:
        assert np.abs(mine.planes[0].astype(float) * (picture.layout.largest + 1) / 1024 - picture.planes[0]).mean() < 8


@pytest.mark.parametrize("codec", ["prores_422hq", "dnxhr_hqx", "ffv1", "h264", "h265"])
def test_the_same_pictures_give_the_same_bytes(codec: str, plate: Path, tmp_path: Path) -> None:
    movie, suffix = Movie(plate), CODECS[codec].suffixes[0]
    files = [tmp_path / f"{name}{suffix}" for name in "ab"]
    for path in files:
        write(movie, path, wanted(movie, codec))
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize("codec", ["prores_422hq", "h264"])
def test_uneven_times_are_kept(codec: str, plate: Path, tmp_path: Path) -> None:
    movie, path = Movie(plate), tmp_path / "x.mov"
    stamps = [0, 512, 1024, 5120, 5632, 9000]
    made = wanted(movie, codec)
    check_written(path, path, made, stamps, write(movie, path, made, stamps))
    again = Movie(path)
    assert [again.time(number) for number in again.numbers] == [stamp * made.time_base for stamp in stamps]
    assert again.facts.variable


def test_hdr_tags_and_rotation(plate: Path, tmp_path: Path) -> None:
    movie, path = Movie(plate), tmp_path / "x.mp4"
    made = wanted(movie, "h265", tags=Tags(9, 16, 9, 1), rotation=90, pixel_aspect=Fraction(4, 3))
    check_written(path, path, made, movie.index.pts, write(movie, path, made))
    facts = Movie(path).facts
    assert (facts.colour.transfer, facts.colour.primaries, facts.rotation) == ("pq", "bt2020", 90)
    assert (facts.width, facts.height, facts.pixel_aspect) == (128, 256, 0.75)


def test_what_is_not_as_it_should_be_is_found(plate: Path, tmp_path: Path) -> None:
    movie, path = Movie(plate), tmp_path / "x.mov"
    made = wanted(movie, "prores_422hq")
    sound = write(movie, path, made)
    stamps = list(movie.index.pts)
    for wrong, times, heard in (
        (made, stamps[:-1], sound),
        (made, [*stamps[:-1], stamps[-1] + 512], sound),
        (dataclasses.replace(made, width=128), stamps, sound),
        (dataclasses.replace(made, tags=Tags(9, 16, 9, 1)), stamps, sound),
        (dataclasses.replace(made, rotation=90), stamps, sound),
        (made, stamps, {0: 1}),
    ):
        with pytest.raises(OutputError, match="not what it should be"):
            check_written(path, path, wrong, times, heard)
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(OutputError, match="not what it should be"):
        check_written(path, path, made, stamps, sound)


def test_a_part_takes_its_sound_along(plate: Path, tmp_path: Path) -> None:
    movie, path = Movie(plate), tmp_path / "x.mov"
    made = dataclasses.replace(wanted(movie, "prores_422hq"), timecode=None)
    start, end = movie.time(3), movie.time(5)
    with closing(SoundCopy(plate, start, end)) as sound, MovieWriter(path, path, made, sound) as writer:
        for at, number in enumerate((3, 4)):
            writer.write(movie.picture(number).planes, 512 * at, 512)
    with av.open(str(path)) as container:
        packets = [packet for packet in container.demux(audio=0) if packet.size]
        first, last = packets[0], packets[-1]
        assert 0 <= first.pts * first.time_base < Fraction(1024, 48000)
        length = (last.pts + last.duration) * last.time_base
        assert abs(length - (end - start)) <= Fraction(2048, 48000)
    assert sound_of(path) in sound_of(plate)


def test_what_the_encoder_refuses_is_known_before(plate: Path, tmp_path: Path) -> None:
    movie = Movie(plate)
    for codec, made in (("dnxhr_hqx", {"width": 64, "height": 48}), ("h264", {"width": 255, "height": 127})):
        with pytest.raises(OutputError):
            try_format(wanted(movie, codec, **made), tmp_path / "x.mov", None)
    for codec in CODECS:
        try_format(wanted(movie, codec), tmp_path / f"x{CODECS[codec].suffixes[0]}", None)
    assert list(tmp_path.iterdir()) == []


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Files cannot grow beyond a size, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [10_000, 60_000, 150_000])
def test_a_full_disk_is_an_error_and_leaves_nothing(size: int, plate: Path, tmp_path: Path) -> None:
    movie, path = Movie(plate), tmp_path / "x.mov"
    made = wanted(movie, "prores_4444")
    with pytest.raises(OutputError, match=r"x\.mov"), room_for(size), atomic_write(path) as temporary:  # noqa: PT012
        with closing(SoundCopy(plate)) as sound, MovieWriter(temporary, path, made, sound) as writer:
            for number in movie.numbers:
                picture = movie.picture(number)
                coding = movie.facts.colour.coding
                writer.write(
                    convert(picture.planes, picture.layout, coding, made.layout, made.coding), 512 * number, 512
                )
        check_written(temporary, path, made, [512 * number for number in movie.numbers], sound.written)
    assert list(tmp_path.iterdir()) == []
