"""Files that cannot be used are refused with a typed error: no crash, no partial picture, nothing printed."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import OpenEXR
import OpenImageIO as oiio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faceplate.errors import ImageReadError, InputError, UnsupportedImageError
from faceplate.media.exr import read_exr
from faceplate.media.exr_layout import read_layout
from tests.support.exr import write_flat, write_hostile

RGB = np.random.default_rng(0).random((40, 64, 3)).astype(np.float16)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "x.exr"
    write_flat(path, {"RGB": RGB})
    return path.read_bytes()


@pytest.fixture(scope="module")
def whole_parts(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "x.exr"
    write_hostile(path)
    return path.read_bytes()


def test_every_truncation_is_refused_and_nothing_is_printed(
    whole: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.exr"
    for size in [*range(500), *range(500, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(ImageReadError):
            read_exr(path)
    path.write_bytes(whole)
    assert read_exr(path).pixels.tobytes() == RGB.tobytes()
    assert capfd.readouterr() == ("", "")


def test_a_truncated_last_part_is_not_dropped_in_silence(whole_parts: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.exr"
    for missing in (1, 100, 5000):
        path.write_bytes(whole_parts[:-missing])
        with pytest.raises(ImageReadError, match="not completely written"):
            read_exr(path)


def test_a_part_that_cannot_be_decoded_is_not_dropped_in_silence(whole_parts: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.exr"
    middle = len(whole_parts) // 2  # in the plate's part
    path.write_bytes(whole_parts[:middle] + b"\xff" * 3000 + whole_parts[middle + 3000 :])
    with pytest.raises(ImageReadError, match="cannot decode") as caught:
        read_exr(path)
    assert caught.value.found == "2 readable parts of 3"


def test_a_file_that_is_still_being_written_is_refused(whole: bytes, tmp_path: Path) -> None:
    table = _table_start(whole)
    (tmp_path / "x.exr").write_bytes(whole[:table] + bytes(8) + whole[table + 8 :])
    with pytest.raises(ImageReadError, match="not completely written"):
        read_exr(tmp_path / "x.exr")


def _table_start(data: bytes) -> int:
    """Where the chunk table of a one-part file begins: its first entry points behind the table."""
    for at in range(8, 1000):
        (offset,) = struct.unpack_from("<Q", data, at)
        if offset == at + 8 * 3:  # 40 rows in chunks of 16
            return at
    raise AssertionError("no chunk table")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=st.lists(st.tuples(st.integers(0, 700), st.integers(0, 255)), min_size=1, max_size=4))
def test_flipped_bytes_give_a_picture_or_a_typed_error(
    edits: list[tuple[int, int]], whole: bytes, tmp_path: Path
) -> None:
    broken = bytearray(whole)
    for at, value in edits:
        broken[at] = value
    path = tmp_path / "x.exr"
    path.write_bytes(broken)
    try:
        image = read_exr(path)
    except (ImageReadError, UnsupportedImageError):
        return
    assert image.pixels.shape[:2] == (image.data_window.height, image.data_window.width)


@pytest.mark.parametrize(
    ("content", "found"),
    [(b"", "an empty file"), (b"just some text\n", "another kind"), (b"\x89PNG\r\n\x1a\n" + bytes(50), "another kind")],
)
def test_other_files_are_named_for_what_they_are(content: bytes, found: str, tmp_path: Path) -> None:
    (tmp_path / "x.exr").write_bytes(content)
    with pytest.raises(ImageReadError) as caught:
        read_exr(tmp_path / "x.exr")
    assert found in str(caught.value)


def test_absent_files_and_folders_are_read_errors(tmp_path: Path) -> None:
    with pytest.raises(ImageReadError, match="No such file"):
        read_exr(tmp_path / "x.exr")
    with pytest.raises(ImageReadError, match="directory"):
        read_exr(tmp_path)


def test_deep_data_is_refused_with_a_hint(tmp_path: Path) -> None:
    samples = np.empty((4, 5), object)
    for y, x in np.ndindex(samples.shape):
        samples[y, x] = np.ones(x % 3, np.float32)
    header = {"compression": OpenEXR.ZIPS_COMPRESSION, "type": OpenEXR.deepscanline}
    OpenEXR.File(header, {name: samples.copy() for name in "RGBAZ"}).write(str(tmp_path / "x.exr"))
    with pytest.raises(UnsupportedImageError, match="deep") as caught:
        read_exr(tmp_path / "x.exr")
    assert "flatten" in str(caught.value.hint)


@pytest.mark.parametrize("names", [("Y",), ("R", "G"), ("Z", "A"), ("diffuse.R", "diffuse.G", "diffuse.B")])
def test_files_without_colour_are_refused_and_their_channels_listed(names: tuple[str, ...], tmp_path: Path) -> None:
    write_flat(tmp_path / "x.exr", {name: RGB[..., 0] for name in names})
    with pytest.raises(UnsupportedImageError, match="has no colour") as caught:
        read_exr(tmp_path / "x.exr")
    assert caught.value.found == ", ".join(sorted(names))


def test_integer_colour_is_refused(tmp_path: Path) -> None:
    write_flat(tmp_path / "x.exr", {name: np.ones((4, 5), np.uint32) for name in "RGB"})
    with pytest.raises(UnsupportedImageError, match="integer colour"):
        read_exr(tmp_path / "x.exr")


def test_luminance_and_chroma_files_are_refused(whole: bytes, tmp_path: Path) -> None:
    channel = whole.index(b"B\0\x01\0\0\0")
    subsampled = whole[: channel + 10] + struct.pack("<2i", 2, 2) + whole[channel + 18 :]
    (tmp_path / "x.exr").write_bytes(subsampled)
    with pytest.raises(UnsupportedImageError, match="subsampled"):
        read_exr(tmp_path / "x.exr")


@pytest.mark.parametrize(
    ("window", "error"),
    [
        ((0, 0, -1, -1), UnsupportedImageError),
        ((10, 0, 9, 39), UnsupportedImageError),
        ((0, 0, 2**31 - 1, 2**31 - 1), UnsupportedImageError),
        ((-(2**31), -(2**31), 2**31 - 1, 2**31 - 1), UnsupportedImageError),
        ((0, 0, 8191, 8191), ImageReadError),
    ],
)
def test_empty_and_absurd_windows_are_refused_before_memory_is_taken(
    window: tuple[int, int, int, int], error: type[InputError], whole: bytes, tmp_path: Path
) -> None:
    at = whole.index(b"dataWindow\0box2i\0") + len("dataWindow.box2i.") + 4
    (tmp_path / "x.exr").write_bytes(whole[:at] + struct.pack("<4i", *window) + whole[at + 16 :])
    with pytest.raises(error):
        read_exr(tmp_path / "x.exr")


@pytest.mark.parametrize("name", [name for name in OpenEXR.Compression.__members__ if name.endswith("N")])
@pytest.mark.parametrize("height", [1, 16, 33, 300, 1025])
def test_the_chunk_table_is_counted_right_for_every_compression(name: str, height: int, tmp_path: Path) -> None:
    path = tmp_path / "x.exr"
    write_flat(path, {"RGB": np.zeros((height, 8, 3), np.float16)}, compression=getattr(OpenEXR, name))
    assert read_layout(path)[0].data_window.height == height
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    with pytest.raises(ImageReadError):
        read_layout(path)


@pytest.mark.parametrize("mode", ["mip", "one"])
@pytest.mark.parametrize("size", [(1, 1), (64, 48), (65, 31), (200, 3)])
def test_the_chunk_table_is_counted_right_for_tiles(mode: str, size: tuple[int, int], tmp_path: Path) -> None:
    path = tmp_path / "x.exr"
    pixels = np.random.default_rng(0).random((size[1], size[0], 4), np.float32)
    if mode == "mip":
        assert oiio.ImageBufAlgo.make_texture(oiio.MakeTxTexture, oiio.ImageBuf(pixels), str(path))
    else:
        tiles = OpenEXR.TileDescription()
        tiles.xSize, tiles.ySize, tiles.mode = 16, 32, OpenEXR.ONE_LEVEL
        write_flat(path, {"RGBA": pixels}, type=OpenEXR.tiledimage, tiles=tiles)
    assert read_exr(path).pixels.shape[:2] == (size[1], size[0])
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ImageReadError):
        read_exr(path)
