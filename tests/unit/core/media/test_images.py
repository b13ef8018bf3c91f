"""TIFF, DPX, PNG, JPEG: every code survives a round trip, and what a format cannot hold is said."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import OpenImageIO as oiio
import pytest
from numpy.typing import NDArray

from faceplate.errors import FrameMismatchError, ImageReadError, OutputError, UnsupportedImageError
from faceplate.frame import Box
from faceplate.media.carried import exr_attributes
from faceplate.media.exr import ExrLayer, read_exr, write_exr
from faceplate.media.file_hash import file_hash
from faceplate.media.images import write_image
from faceplate.media.read import check_matches, read_image

INTEGER = [
    (".tif", "uint8", 8),
    (".tif", "uint16", 16),
    (".png", "uint8", 8),
    (".png", "uint16", 16),
    (".dpx", "uint8", 8),
    (".dpx", "uint10", 10),
    (".dpx", "uint12", 12),
    (".dpx", "uint16", 16),
]


def every_code(bits: int, channels: int) -> NDArray[np.float32]:
    """(256, 256, channels) code / max in which every code appears in every channel."""
    codes = np.arange(65536, dtype=np.uint32).reshape(256, 256) & ((1 << bits) - 1)
    planes = [codes, codes.T, codes[::-1], codes[:, ::-1]][:channels]
    return np.stack(planes, -1).astype(np.float32) / np.float32((1 << bits) - 1)


def oiio_write(path: Path, codes: NDArray[Any], **attributes: Any) -> None:
    spec = oiio.ImageSpec(codes.shape[1], codes.shape[0], codes.shape[2], codes.dtype.name)
    for name, value in attributes.items():
        spec.attribute(name.replace("__", ":"), value)
    file = oiio.ImageOutput.create(str(path))
    assert file.open(str(path), spec)
    assert file.write_image(codes)
    assert file.close()


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize(("extension", "depth", "bits"), INTEGER)
def test_every_code_survives(extension: str, depth: str, bits: int, channels: int, tmp_path: Path) -> None:
    pixels = every_code(bits, channels)
    if depth == "uint10":
        pixels = np.ascontiguousarray(pixels[:, :255])  # see test_ten_bit_rgba_of_a_misread_width_is_refused
    write_image(tmp_path / f"a{extension}", pixels, bit_depth=depth)
    image = read_image(tmp_path / f"a{extension}", 7)
    assert (image.bit_depth, image.number, len(image.channels)) == (depth, 7, channels)
    assert image.pixels.dtype == np.float32
    assert image.pixels.tobytes() == pixels.tobytes()
    write_image(tmp_path / f"b{extension}", image.pixels, image=image)
    again = read_image(tmp_path / f"b{extension}")
    assert again.bit_depth == depth
    assert again.pixels.tobytes() == pixels.tobytes()


def test_codes_of_another_writer_are_code_over_max(tmp_path: Path) -> None:
    codes = np.random.default_rng(0).integers(0, 65536, (9, 8, 3), dtype=np.uint16)
    oiio_write(tmp_path / "x.tif", codes)
    assert (read_image(tmp_path / "x.tif").pixels == codes.astype(np.float32) / np.float32(65535)).all()
    ten = (codes >> 6) << 6 | codes >> 10
    oiio_write(tmp_path / "x.dpx", ten, oiio__BitsPerSample=10)
    assert (read_image(tmp_path / "x.dpx").pixels == (codes >> 6).astype(np.float32) / np.float32(1023)).all()


@pytest.mark.parametrize(("depth", "dtype"), [("half", np.float16), ("float", np.float32)])
def test_float_tiff_keeps_range_and_bits(depth: str, dtype: type, tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).normal(0, 100, (16, 17, 4)).astype(dtype)
    pixels[0, 0] = [np.inf, -np.inf, -0.0, np.nan]
    write_image(tmp_path / "a.tif", pixels, bit_depth=depth)
    image = read_image(tmp_path / "a.tif")
    assert (image.bit_depth, image.pixels.dtype) == (depth, dtype)
    assert image.pixels.tobytes() == pixels.tobytes()
    write_image(tmp_path / "b.tif", image.pixels, image=image)
    assert read_image(tmp_path / "b.tif").pixels.tobytes() == pixels.tobytes()


def test_integer_formats_cut_what_they_cannot_hold(tmp_path: Path) -> None:
    pixels = np.array([[[-1, 0.5, 2], [np.nan, np.inf, -np.inf]]], np.float32)
    write_image(tmp_path / "x.png", pixels, bit_depth="uint8")
    assert (read_image(tmp_path / "x.png").pixels * 255).tolist() == [[[0, 128, 255], [0, 255, 0]]]


@pytest.mark.parametrize("extension", [".png", ".tif"])
def test_colour_under_zero_alpha_survives(extension: str, tmp_path: Path) -> None:
    pixels = every_code(16, 4)
    pixels[..., 3] = 0
    write_image(tmp_path / f"a{extension}", pixels)
    image = read_image(tmp_path / f"a{extension}")
    write_image(tmp_path / f"b{extension}", image.pixels, image=image)
    assert read_image(tmp_path / f"b{extension}").pixels.tobytes() == pixels.tobytes()


def test_unassociated_tiff_stays_unassociated(tmp_path: Path) -> None:
    codes = np.random.default_rng(0).integers(0, 65536, (9, 8, 4), dtype=np.uint16)
    oiio_write(tmp_path / "a.tif", codes, oiio__UnassociatedAlpha=1)
    image = read_image(tmp_path / "a.tif")
    write_image(tmp_path / "b.tif", image.pixels, image=image)
    assert image.metadata["oiio:UnassociatedAlpha"] == 1
    again = read_image(tmp_path / "b.tif")
    assert again.metadata["oiio:UnassociatedAlpha"] == 1
    assert (np.rint(again.pixels * 65535) == codes).all()


def test_further_tiff_channels_and_metadata_are_kept(tmp_path: Path) -> None:
    codes = np.random.default_rng(0).integers(0, 65536, (9, 8, 6), dtype=np.uint16)
    oiio_write(tmp_path / "a.tif", codes, ImageDescription="shot 12", DateTime="2026:11:30 10:00:00")
    image = read_image(tmp_path / "a.tif")
    write_image(tmp_path / "b.tif", image.pixels, image=image, attributes={"Artist": "faceplate"})
    file = oiio.ImageInput.open(str(tmp_path / "b.tif"))
    assert (file.read_image("uint16") == codes).all()
    spec = file.spec()
    found = [spec[name] for name in ("ImageDescription", "DateTime", "Artist")]
    assert found == ["shot 12", "2026:11:30 10:00:00", "faceplate"]


def test_dpx_keeps_timecode_and_windows_and_hands_them_to_exr(tmp_path: Path) -> None:
    spec = oiio.ImageSpec(20, 10, 3, "uint16")
    spec.attribute("oiio:BitsPerSample", 10)
    spec.attribute("smpte:TimeCode", oiio.TypeTimeCode, (0x01595823, 0x87654321))
    spec.attribute("dpx:FrameRate", 23.976)
    spec.attribute("PixelAspectRatio", 2.0)
    file = oiio.ImageOutput.create("x.dpx")
    assert file.open(str(tmp_path / "a.dpx"), spec)
    assert file.write_image(np.zeros((10, 20, 3), np.uint16))
    file.close()
    image = read_image(tmp_path / "a.dpx")
    write_image(tmp_path / "b.dpx", image.pixels, image=image)
    again = read_image(tmp_path / "b.dpx")
    assert again.metadata["smpte:TimeCode"] == (0x01595823, 0x87654321)
    assert again.pixel_aspect == 2.0

    attributes = exr_attributes(image)
    assert attributes["framesPerSecond"] == Fraction(24000, 1001)
    write_exr(tmp_path / "c.exr", image.pixels, image=image, attributes=attributes)
    exr = read_exr(tmp_path / "c.exr")
    assert str(exr.metadata["timeCode"]) == "(1, 59, 58, 23, 0, 0, 0, 0, 0, 0)"
    assert exr.pixel_aspect == 2.0
    read_back = oiio.ImageInput.open(str(tmp_path / "c.exr")).spec()["smpte:TimeCode"]
    assert read_back == (0x01595823, 0x87654321)


def test_metadata_of_every_format_fits_into_exr(tmp_path: Path) -> None:
    for extension in (".tif", ".png", ".dpx", ".jpg"):
        write_image(tmp_path / f"a{extension}", np.zeros((4, 5, 3), np.float32), attributes={"DateTime": "2026"})
        image = read_image(tmp_path / f"a{extension}")
        write_exr(tmp_path / "a.exr", image.pixels, image=image, attributes=exr_attributes(image))
        assert "oiio:ColorSpace" not in read_exr(tmp_path / "a.exr").metadata


@pytest.mark.parametrize(("width", "refused"), [(255, False), (256, True), (257, False)])
def test_ten_bit_rgba_of_a_misread_width_is_refused(width: int, refused: bool, tmp_path: Path) -> None:
    pixels = every_code(10, 4)[:, np.arange(width) % 256]
    write_image(tmp_path / "x.dpx", pixels)
    if refused:
        with pytest.raises(UnsupportedImageError, match="last alpha"):
            read_image(tmp_path / "x.dpx")
    else:
        assert read_image(tmp_path / "x.dpx").pixels.tobytes() == pixels.tobytes()


def test_data_windows_survive_in_tiff(tmp_path: Path) -> None:
    spec = oiio.ImageSpec(20, 10, 3, "uint16")
    spec.x, spec.y, spec.full_width, spec.full_height = 5, 6, 64, 48
    file = oiio.ImageOutput.create("x.tif")
    assert file.open(str(tmp_path / "a.tif"), spec)
    assert file.write_image(np.zeros((10, 20, 3), np.uint16))
    file.close()
    image = read_image(tmp_path / "a.tif")
    assert (image.data_window, image.display_window) == (Box(5, 6, 25, 16), Box(0, 0, 64, 48))
    write_image(tmp_path / "b.tif", image.pixels, image=image)
    assert read_image(tmp_path / "b.tif").data_window == image.data_window


def test_jpeg_is_near_and_refuses_alpha(tmp_path: Path) -> None:
    y, x = np.mgrid[0:64, 0:64].astype(np.float32) / 63
    pixels = np.stack([x, y, (x + y) / 2], -1)
    write_image(tmp_path / "x.jpg", pixels)
    image = read_image(tmp_path / "x.jpg")
    assert image.file_format == "jpeg"
    assert np.abs(image.pixels - pixels).max() < 4 / 255
    with pytest.raises(OutputError, match="RGBA"):
        write_image(tmp_path / "y.jpg", np.zeros((4, 4, 4), np.float32))


def test_write_image_writes_exr_with_layers_and_others_refuse_them(tmp_path: Path) -> None:
    pixels = np.ones((4, 5, 3), np.float16)
    layer = ExrLayer("matte", {"A": np.ones((4, 5), np.float16)})
    write_image(tmp_path / "x.exr", pixels, layers=[layer])
    assert read_image(tmp_path / "x.exr").pixels.tobytes() == pixels.tobytes()
    with pytest.raises(OutputError, match="layers"):
        write_image(tmp_path / "x.tif", pixels, layers=[layer])
    with pytest.raises(OutputError, match="bit depth"):
        write_image(tmp_path / "x.png", pixels, bit_depth="half")
    with pytest.raises(UnsupportedImageError, match="extension") as caught:
        write_image(tmp_path / "x.bmp", pixels)
    assert ".exr" in str(caught.value.expected)
    assert [path.name for path in tmp_path.iterdir()] == ["x.exr"]


@pytest.mark.parametrize("extension", [".tif", ".dpx", ".png", ".jpg"])
def test_truncated_files_are_refused(extension: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{extension}"
    write_image(path, np.random.default_rng(0).random((40, 50, 3), np.float32))
    data = path.read_bytes()
    for size in (0, 1, 4, 9, 40, 200, len(data) // 4, len(data) // 2, len(data) * 3 // 4, len(data) - 40):
        path.write_bytes(data[:size])
        with pytest.raises((ImageReadError, UnsupportedImageError)):
            read_image(path)


def test_a_file_under_a_wrong_name_is_refused_with_its_true_format(tmp_path: Path) -> None:
    write_image(tmp_path / "x.png", np.zeros((4, 5, 3), np.float32))
    (tmp_path / "x.png").rename(tmp_path / "x.exr")
    with pytest.raises(ImageReadError) as caught:
        read_image(tmp_path / "x.exr")
    assert (caught.value.expected, caught.value.found) == ("EXR", "PNG")
    assert str(tmp_path / "x.png") in str(caught.value.hint)
    (tmp_path / "text.tif").write_text("hello")
    with pytest.raises(ImageReadError, match="no known image"):
        read_image(tmp_path / "text.tif")
    with pytest.raises(UnsupportedImageError, match="extension"):
        read_image(tmp_path / "x.webp")
    with pytest.raises(ImageReadError, match="No such file"):
        read_image(tmp_path / "absent.dpx")


@pytest.mark.parametrize("channels", [1, 2])
def test_pictures_without_colour_are_refused(channels: int, tmp_path: Path) -> None:
    oiio_write(tmp_path / "x.png", np.zeros((4, 5, channels), np.uint8))
    with pytest.raises(UnsupportedImageError, match="no colour"):
        read_image(tmp_path / "x.png")


def test_a_shot_stays_one_shot(tmp_path: Path) -> None:
    def plate(channels: int = 3, dtype: type = np.float16, **arguments: Any) -> Any:
        write_exr(tmp_path / "x.exr", np.zeros((4, 5, channels), dtype), **arguments)
        return read_exr(tmp_path / "x.exr")

    raster = Box(0, 0, 64, 48)
    tags = {"chromaticities": (0.64, 0.33, 0.3, 0.6, 0.15, 0.06, 0.3127, 0.329), "colorInteropID": "lin_rec709_scene"}
    first = plate(display_window=raster, attributes=tags)
    check_matches(first, plate(display_window=raster, attributes=tags))
    check_matches(first, plate(display_window=raster, attributes=tags, data_window=Box(9, 9, 14, 13)))
    others = {
        "display window": plate(display_window=Box(0, 0, 64, 47), attributes=tags),
        "pixel aspect": plate(display_window=raster, attributes=tags, pixel_aspect=2.0),
        "channels": plate(4, display_window=raster, attributes=tags),
        "bit depth": plate(dtype=np.float32, display_window=raster, attributes=tags),
        "colorInteropID": plate(display_window=raster, attributes=tags | {"colorInteropID": "lin_ap1_scene"}),
        "chromaticities": plate(
            display_window=raster, attributes=tags | {"chromaticities": (0.7, 0.3, 0.0, 1.0, 0.0, 0.0, 0.32, 0.34)}
        ),
    }
    for name, other in others.items():
        with pytest.raises(FrameMismatchError, match=name):
            check_matches(first, other)


def test_file_hash_is_sha256(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    # FIPS 180-2, appendix B.1
    assert file_hash(tmp_path / "x") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    with pytest.raises(ImageReadError, match="No such file"):
        file_hash(tmp_path / "absent")
