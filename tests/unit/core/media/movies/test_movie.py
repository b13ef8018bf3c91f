"""What a movie says about itself, and which files are refused."""

from __future__ import annotations

import os
from fractions import Fraction
from io import BytesIO
from pathlib import Path

import av
import numpy as np
import pytest

from faceplate.errors import FaceplateError, ImageReadError, UnsupportedImageError
from faceplate.media.movies.movie import Movie
from faceplate.media.movies.probe import chroma_siting
from tests.support.movies import UNTAGGED, Clip

PRORES = Clip("prores_ks", "yuv422p10le")
H264 = Clip("libx264", "yuv420p", options={"g": "6"})


@pytest.mark.parametrize("name", ["x.mov", "x.mp4", "x.mkv", "x.mxf"])
def test_timecode_counts_on(name: str, tmp_path: Path) -> None:
    made = Clip(
        "dnxhd", "yuv422p10le", 256, 128, Fraction(25), options={"profile": "dnxhr_hqx"}, timecode="10:59:59:23"
    )
    if name in ("x.mp4", "x.mkv"):
        made = Clip("libx264", "yuv420p", rate=Fraction(25), timecode="10:59:59:23")
    movie = Movie(made.write(tmp_path / name, made.noise(4)))
    assert [str(movie.timecode(number)) for number in movie.numbers] == [
        *("10:59:59:23", "10:59:59:24", "11:00:00:00", "11:00:00:01")
    ]
    assert movie.read(3).metadata["smpte:TimeCode"] == (0x11000000, 0)
    assert movie.facts.rate == 25


def test_drop_frame(tmp_path: Path) -> None:
    made = Clip("prores_ks", "yuv422p10le", rate=Fraction(30000, 1001), timecode="00:00:59;29")
    movie = Movie(made.write(tmp_path / "x.mov", made.noise(2)))
    assert str(movie.timecode(2)) == "00:01:00;02"
    assert movie.facts.rate == Fraction(30000, 1001)


@pytest.mark.parametrize("degrees", [90, 180, -90])
def test_rotation_is_applied(degrees: int, tmp_path: Path) -> None:
    made = Clip("png", "rgb24", tags=(1, 13, 0, 2), rotation=degrees)
    pictures = made.noise(2)
    movie = Movie(made.write(tmp_path / "x.mov", pictures))
    turned = np.rot90(np.stack(pictures[1], -1), degrees // 90)
    image = movie.read(2)
    assert (image.display_window.width, image.display_window.height) == (turned.shape[1], turned.shape[0])
    np.testing.assert_array_equal(np.rint(image.pixels * 255), turned)


def test_mirrored_is_refused(tmp_path: Path) -> None:
    with av.open(str(tmp_path / "x.mov"), "w") as container:
        stream = container.add_stream("png", 24)
        stream.width, stream.height, stream.pix_fmt = 96, 64, "rgb24"
        stream.set_display_rotation(0, hflip=True)
        made = Clip("png", "rgb24")
        container.mux(stream.encode(made.frame(made.noise(1)[0])))
        container.mux(stream.encode())
    with pytest.raises(UnsupportedImageError, match="mirrored"):
        Movie(tmp_path / "x.mov")


@pytest.mark.parametrize("codec", ["prores_ks", "libx264", "dnxhd"])
def test_interlaced_is_refused_with_a_hint(codec: str, tmp_path: Path) -> None:
    options = {"prores_ks": {"flags": "+ildct"}, "libx264": {"flags": "+ildct+ilme", "x264-params": "tff=1"}}
    made = {
        "prores_ks": Clip("prores_ks", "yuv422p10le"),
        "libx264": Clip("libx264", "yuv420p"),
        "dnxhd": Clip("dnxhd", "yuv422p", 1920, 1080, Fraction(25)),
    }[codec]
    path = tmp_path / "x.mov"
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, made.rate, options=options.get(codec, {"flags": "+ildct", "b": "120M"}))
        stream.width, stream.height, stream.pix_fmt = made.width, made.height, made.pixels
        stream.codec_context.field_order = 2
        if codec == "dnxhd":
            stream.bit_rate = 120_000_000
        frame = made.frame(made.noise(1)[0])
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    with pytest.raises(UnsupportedImageError, match="interlaced") as caught:
        Movie(path)
    assert caught.value.hint is not None
    assert "bwdif" in caught.value.hint


@pytest.mark.parametrize(
    ("number", "siting"), [(0, (0.0, 0.5)), (1, (0.5, 0.5)), (2, (0.0, 0.0))], ids=["left", "centre", "top left"]
)
@pytest.mark.parametrize("name", ["x.mp4", "x.mkv", "x.mov"])
def test_chroma_siting_is_read(number: int, siting: tuple[float, float], name: str, tmp_path: Path) -> None:
    made = Clip("libx264", "yuv420p", options={"x264-params": f"chromaloc={number}"})
    path = made.write(tmp_path / name, made.noise(1))
    assert Movie(path).facts.colour.coding.siting == siting


def test_no_siting_in_a_file_without_one(tmp_path: Path) -> None:
    path = PRORES.write(tmp_path / "x.mov", PRORES.noise(1))
    with av.open(str(path)) as container:
        assert chroma_siting(container.streams.video[0]) is None


def test_pixel_aspect_metadata_and_alpha(tmp_path: Path) -> None:
    made = Clip("prores_ks", "yuva444p10le", metadata={"title": "sh010", "comment": "take 3"})
    with av.open(BytesIO(), "w", format="mov"):
        pass
    movie = Movie(made.write(tmp_path / "x.mov", made.noise(1)))
    image = movie.read(1)
    assert image.channels == ("R", "G", "B", "A")
    assert image.metadata["movie/title"] == "sh010"
    assert not any("major_brand" in name for name in image.metadata)


def test_untagged(tmp_path: Path) -> None:
    made = Clip("prores_ks", "yuv422p10le", 1280, 720, tags=UNTAGGED)
    colour = Movie(made.write(tmp_path / "x.mov", made.noise(1))).facts.colour
    assert {"transfer", "primaries", "matrix"} <= set(colour.assumed)
    assert colour.coding.matrix == "bt709"


def refused(path: Path) -> FaceplateError:
    with pytest.raises((ImageReadError, UnsupportedImageError)) as caught:
        Movie(path)
    assert caught.value.hint
    assert caught.value.exit_code == 2
    return caught.value


@pytest.mark.parametrize("share", [0.02, 0.4, 0.8])
@pytest.mark.parametrize("name", ["x.mov", "x.mp4", "x.mkv", "x.mxf", "fast.mov", "fast.mp4"])
def test_cut_off(share: float, name: str, tmp_path: Path) -> None:
    made = Clip("dnxhd", "yuv422p10le", 256, 128, options={"profile": "dnxhr_hqx"}) if "mxf" in name else PRORES
    made = H264 if name.endswith(("mp4", "mkv")) else made
    path = made.write(tmp_path / name.replace("fast", "slow"), made.noise(24))
    if name.startswith("fast"):
        path = front(path, tmp_path / name)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    refused(path)


def front(path: Path, out: Path) -> Path:
    """The same movie with its table at the front."""
    with av.open(str(path)) as source, av.open(str(out), "w", options={"movflags": "faststart"}) as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(source.streams.video[0]):
            if packet.dts is not None:
                packet.stream = stream
                target.mux(packet)
    return out


def test_what_is_no_movie(tmp_path: Path) -> None:
    path = tmp_path / "x.mov"
    assert "No such file" in str(refused(path))
    path.write_bytes(b"")
    assert "is empty" in str(refused(path))
    for content in (
        b"hello" * 99,
        b"\0" * 4096,
        b"\x89PNG\r\n\x1a\n" + b"\0" * 99,
        np.random.default_rng(1).bytes(9999),
    ):
        path.write_bytes(content)
        refused(path)
    path.unlink()
    os.mkfifo(path)
    assert "not a regular file" in str(refused(path))


@pytest.mark.parametrize(
    "script",
    ["#EXTM3U\n#EXTINF:1,\nreal.mp4\n#EXT-X-ENDLIST\n", "ffconcat version 1.0\nfile 'real.mp4'\n", "<smil/>"],
    ids=["playlist", "concat", "xml"],
)
def test_scripts_that_name_other_files_are_not_followed(script: str, tmp_path: Path) -> None:
    H264.write(tmp_path / "real.mp4", H264.noise(3))
    (tmp_path / "x.mov").write_text(script)
    refused(tmp_path / "x.mov")


def test_sound_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.mov"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("pcm_s16le", 48000, layout="mono")
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 4800), np.int16), "s16", "mono")
        sound.sample_rate, sound.pts = 48000, 0
        container.mux(stream.encode(sound))
    assert "audio" in str(refused(path))


def test_a_name_is_never_taken_for_a_protocol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = H264.write(tmp_path / "x.mp4", H264.noise(2))
    made.rename(tmp_path / "concat:x %d #1.mp4")
    assert len(Movie(Path("concat:x %d #1.mp4"))) == 2
