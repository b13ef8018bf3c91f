"""EXR read-modify-write: what nobody changed is the same bits in the file that was written."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import OpenEXR
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from faceplate.errors import OutputError, UnsupportedImageError
from faceplate.frame import Box
from faceplate.media.exr import ExrLayer, read_exr, to_half, write_exr
from tests.support.exr import HEIGHT, WIDTH, all_halves, contents, hostile_attributes, write_flat, write_hostile


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "plate.1001.exr"
    write_hostile(path)
    return path


def test_reads_the_first_part_with_colour_and_its_windows(hostile: Path) -> None:
    image = read_exr(hostile, 1001)
    assert image.channels == ("R", "G", "B", "A")
    assert image.pixels.dtype == np.float16
    assert image.pixels[..., 0].tobytes() == all_halves().tobytes()
    assert image.data_window == Box(-16, -28, -16 + WIDTH, -28 + HEIGHT)
    assert image.display_window == Box(0, 0, 240, 200)
    assert (image.pixel_aspect, image.number, image.bit_depth) == (2.0, 1001, "half")
    assert image.metadata["nuke/node_hash"] == "1a2b3c"


def test_rewriting_without_a_change_keeps_every_attribute_channel_and_part(hostile: Path, tmp_path: Path) -> None:
    image = read_exr(hostile)
    write_exr(tmp_path / "out.exr", image.pixels, image=image)
    before, after = contents(hostile), contents(tmp_path / "out.exr")
    assert len(before[1][0]) >= len(hostile_attributes())
    assert after == before


def test_new_colour_layers_and_attributes_change_only_themselves(hostile: Path, tmp_path: Path) -> None:
    image = read_exr(hostile)
    pixels = np.array(image.pixels)
    pixels[100:110, 50:60, :3] = np.float16(0.25)
    matte = np.zeros((HEIGHT, WIDTH), np.float16)
    matte[100:110, 50:60] = 1
    stmap = {"R": np.full((HEIGHT, WIDTH), 1 / 3, np.float32), "G": np.zeros((HEIGHT, WIDTH), np.float32)}
    write_exr(
        tmp_path / "out.exr",
        pixels,
        image=image,
        layers=[ExrLayer("matte", {"A": matte}), ExrLayer("st", stmap)],
        attributes={"faceplate/job": "j1", "faceplate/strength": 0.5, "faceplate/tracks": 2, "isoSpeed": 400.0},
    )
    before, after = contents(hostile), contents(tmp_path / "out.exr")
    assert (after[0], after[2]) == (before[0], before[2])
    attributes, channels = after[1]
    added = {
        "faceplate/job": ("string", b"j1"),
        "faceplate/strength": ("float", struct.pack("<f", 0.5)),
        "faceplate/tracks": ("int", struct.pack("<i", 2)),
        "isoSpeed": ("float", struct.pack("<f", 400)),
    }
    assert attributes == before[1][0] | added
    assert channels.pop("matte.A") == (f"float16 {matte.shape}", matte.tobytes())
    assert channels.pop("st.R")[1] == stmap["R"].tobytes()
    assert channels.pop("st.G")[0].startswith("float32")
    for index, name in enumerate("RGBA"):
        assert channels[name][1] == np.ascontiguousarray(pixels[..., index]).tobytes()
    assert {n: c for n, c in channels.items() if n not in "RGBA"} == {
        n: c for n, c in before[1][1].items() if n not in "RGBA"
    }


def test_our_layer_replaces_the_one_of_that_name_and_no_other(hostile: Path, tmp_path: Path) -> None:
    image = read_exr(hostile)
    ours = np.ones((HEIGHT, WIDTH), np.float16)
    write_exr(tmp_path / "out.exr", image.pixels, image=image, layers=[ExrLayer("spec", {"G": ours})])
    before, after = contents(hostile)[1][1], contents(tmp_path / "out.exr")[1][1]
    assert after["spec.G"][1] == ours.tobytes()
    assert "spec.R" not in after
    assert {n: c for n, c in after.items() if "spec" not in n} == {n: c for n, c in before.items() if "spec" not in n}
    write_exr(tmp_path / "top.exr", image.pixels, image=image, layers=[ExrLayer("", {"mask": ours})])
    top = contents(tmp_path / "top.exr")[1][1]
    assert top["mask"][1] == ours.tobytes()
    assert top["spec.R"] == before["spec.R"]


@pytest.mark.parametrize(
    ("name", "number"),
    [("none", 0), ("rle", 1), ("zips", 2), ("zip", 3), ("piz", 4), ("htj2k256", 10), ("htj2k32", 11), ("zstd", 13)],
)
def test_lossless_compressions_are_kept_and_keep_every_bit_pattern(name: str, number: int, tmp_path: Path) -> None:
    halves = all_halves()
    write_exr(tmp_path / "in.exr", np.stack([halves] * 3, -1), compression=name)  # type: ignore[arg-type]
    image = read_exr(tmp_path / "in.exr")
    write_exr(tmp_path / "out.exr", image.pixels, image=image)
    (attributes, channels) = contents(tmp_path / "out.exr")[0]
    assert attributes["compression"][1][0] == number
    assert contents(tmp_path / "in.exr")[0][0] == attributes
    assert {values for _, values in channels.values()} == {halves.tobytes()}


@pytest.mark.parametrize("name", ["B44", "B44A", "DWAA", "DWAB"])
def test_lossy_input_becomes_zip(name: str, tmp_path: Path) -> None:
    ramp = np.linspace(0, 1, HEIGHT * WIDTH * 3).reshape(HEIGHT, WIDTH, 3).astype(np.float16)
    write_flat(tmp_path / "in.exr", {"RGB": ramp}, compression=getattr(OpenEXR, f"{name}_COMPRESSION"))
    image = read_exr(tmp_path / "in.exr")
    write_exr(tmp_path / "out.exr", image.pixels, image=image)
    again = read_exr(tmp_path / "out.exr")
    assert again.metadata["compression"] == OpenEXR.ZIP_COMPRESSION
    assert again.pixels.tobytes() == image.pixels.tobytes()


def test_lj2k_is_refused(tmp_path: Path) -> None:
    ramp = np.zeros((HEIGHT, WIDTH, 3), np.float16)
    write_flat(tmp_path / "in.exr", {"RGB": ramp}, compression=OpenEXR.LJ2K_COMPRESSION)
    with pytest.raises(UnsupportedImageError, match="LJ2K"):
        read_exr(tmp_path / "in.exr")


def test_pxr24_is_kept_for_half_and_left_for_float(tmp_path: Path) -> None:
    halves = np.stack([all_halves()] * 3, -1)
    write_flat(tmp_path / "in.exr", {"RGB": halves}, compression=OpenEXR.PXR24_COMPRESSION)
    image = read_exr(tmp_path / "in.exr")
    write_exr(tmp_path / "half.exr", image.pixels, image=image)
    assert read_exr(tmp_path / "half.exr").metadata["compression"] == OpenEXR.PXR24_COMPRESSION
    layer = ExrLayer("id", {"R": np.full((HEIGHT, WIDTH), 1.0000001, np.float32)})
    write_exr(tmp_path / "float.exr", image.pixels, image=image, layers=[layer])
    again = read_exr(tmp_path / "float.exr")
    assert again.metadata["compression"] == OpenEXR.ZIP_COMPRESSION
    assert again.pixels.tobytes() == halves.tobytes()


def test_channels_of_mixed_types_keep_their_types_and_bits(tmp_path: Path) -> None:
    halves = all_halves()
    wide = np.random.default_rng(0).random((HEIGHT, WIDTH), np.float32)
    write_flat(tmp_path / "in.exr", {"R": halves, "G": halves, "B": halves, "A": wide})
    image = read_exr(tmp_path / "in.exr")
    assert (image.pixels.dtype, image.bit_depth) == (np.float32, "float")
    write_exr(tmp_path / "same.exr", image.pixels, image=image)
    assert contents(tmp_path / "same.exr") == contents(tmp_path / "in.exr")
    pixels = np.array(image.pixels)
    pixels[3, 4] = [1e6, -1e6, 0.5, 0.25]
    write_exr(tmp_path / "out.exr", pixels, image=image)
    out = {name: channel.pixels for name, channel in OpenEXR.File(str(tmp_path / "out.exr"), True).channels().items()}
    assert [out[name][3, 4] for name in "RGBA"] == [65504, -65504, 0.5, 0.25]
    assert (out["R"] != halves).sum() == (np.isnan(halves).sum() + 1)


def test_lower_case_names_stay_lower_case(tmp_path: Path) -> None:
    planes = {name: np.full((4, 5), value, np.float32) for name, value in zip("rgb", (1, 2, 3), strict=True)}
    write_flat(tmp_path / "in.exr", planes)
    image = read_exr(tmp_path / "in.exr")
    assert image.channels == ("r", "g", "b")
    assert image.pixels[0, 0].tolist() == [1, 2, 3]
    write_exr(tmp_path / "out.exr", image.pixels * 2, image=image)
    assert read_exr(tmp_path / "out.exr").pixels[3, 4].tolist() == [2, 4, 6]
    assert set(contents(tmp_path / "out.exr")[0][1]) == {"r", "g", "b"}


def test_alpha_may_be_added_and_is_kept_when_only_colour_is_given(tmp_path: Path) -> None:
    rgba = np.random.default_rng(1).random((6, 7, 4), np.float32)
    write_exr(tmp_path / "rgb.exr", np.ascontiguousarray(rgba[..., :3]))
    write_exr(tmp_path / "rgba.exr", rgba, image=read_exr(tmp_path / "rgb.exr"))
    image = read_exr(tmp_path / "rgba.exr")
    assert image.pixels.tobytes() == rgba.tobytes()
    write_exr(tmp_path / "again.exr", rgba[..., :3] * 0, image=image)
    again = read_exr(tmp_path / "again.exr").pixels
    assert (again[..., 3] == rgba[..., 3]).all()
    assert not again[..., :3].any()


def test_mip_levels_of_the_old_picture_are_dropped(tmp_path: Path) -> None:
    import OpenImageIO as oiio

    buffer = oiio.ImageBuf(np.random.default_rng(0).random((48, 64, 4), np.float32))
    assert oiio.ImageBufAlgo.make_texture(oiio.MakeTxTexture, buffer, str(tmp_path / "in.exr"))
    image = read_exr(tmp_path / "in.exr")
    write_exr(tmp_path / "out.exr", image.pixels, image=image)
    again = read_exr(tmp_path / "out.exr")
    assert again.metadata["tiles"].mode == OpenEXR.ONE_LEVEL
    assert again.pixels.tobytes() == image.pixels.tobytes()


def test_an_aces_container_flag_goes_when_it_would_no_longer_be_true(tmp_path: Path) -> None:
    pixels = np.ones((8, 8, 3), np.float16)
    write_flat(tmp_path / "in.exr", {"RGB": pixels}, compression=OpenEXR.NO_COMPRESSION, acesImageContainerFlag=1)
    image = read_exr(tmp_path / "in.exr")
    write_exr(tmp_path / "same.exr", pixels, image=image)
    assert read_exr(tmp_path / "same.exr").metadata["acesImageContainerFlag"] == 1
    matte = ExrLayer("matte", {"A": np.ones((8, 8), np.float16)})
    write_exr(tmp_path / "out.exr", pixels, image=image, layers=[matte])
    assert "acesImageContainerFlag" not in read_exr(tmp_path / "out.exr").metadata


def test_a_fresh_element_has_its_own_data_window_inside_the_raster(tmp_path: Path) -> None:
    rgba = np.random.default_rng(2).random((20, 30, 4)).astype(np.float16)
    window, display = Box(-5, 40, 25, 60), Box(0, 0, 1920, 1080)
    write_exr(tmp_path / "e.exr", rgba, data_window=window, display_window=display, pixel_aspect=2.0)
    image = read_exr(tmp_path / "e.exr")
    assert (image.data_window, image.display_window, image.pixel_aspect) == (window, display, 2.0)
    assert image.pixels.tobytes() == rgba.tobytes()
    assert image.metadata["compression"] == OpenEXR.ZIP_COMPRESSION


def test_an_element_of_a_plate_keeps_its_attributes_but_not_its_other_channels(hostile: Path, tmp_path: Path) -> None:
    plate = read_exr(hostile)
    element = np.ones((4, 6, 4), np.float32)
    write_exr(tmp_path / "e.exr", element, image=plate, keep="attributes", data_window=Box(10, 10, 16, 14))
    ((attributes, channels),) = contents(tmp_path / "e.exr")
    assert set(channels) == set("RGBA")
    before = contents(hostile)[1][0]
    assert {name for name in before if attributes.get(name) != before[name]} == {"dataWindow"}
    assert attributes["dataWindow"][1] == struct.pack("<4i", 10, 10, 15, 13)


def test_layers_in_their_own_window_leave_the_plate_part_alone(hostile: Path, tmp_path: Path) -> None:
    image = read_exr(hostile)
    window = Box(3, 4, 23, 14)
    matte = np.random.default_rng(3).random((10, 20), np.float32)
    for turn, layer in enumerate((matte, matte * 0.5)):  # a second run replaces the part of the first
        source = image if turn == 0 else read_exr(tmp_path / "0.exr")
        out = tmp_path / f"{turn}.exr"
        write_exr(out, image.pixels, image=source, layers=[ExrLayer("matte", {"A": layer})], layer_window=window)
        *parts, (attributes, channels) = contents(out)
        assert parts == contents(hostile)
        assert channels == {"matte.A": ("float32 (10, 20)", layer.tobytes())}
        assert attributes["dataWindow"][1] == struct.pack("<4i", 3, 4, 22, 13)
        assert attributes["timeCode"] == parts[1][0]["timeCode"]


def test_mattes_of_an_earlier_run_do_not_stay_in_their_part(tmp_path: Path) -> None:
    pixels = np.ones((8, 9, 3), np.float16)
    ones = np.ones((2, 3), np.float16)
    write_exr(tmp_path / "1.exr", pixels, layers=[ExrLayer("m", {"A": ones})], layer_window=Box(1, 1, 4, 3))
    image = read_exr(tmp_path / "1.exr")
    write_exr(tmp_path / "kept.exr", pixels, image=image)
    assert contents(tmp_path / "kept.exr") == contents(tmp_path / "1.exr")
    write_exr(tmp_path / "2.exr", pixels, image=image, layers=[ExrLayer("m", {"A": pixels[..., 0]})])
    assert [set(channels) for _, channels in contents(tmp_path / "2.exr")] == [{"R", "G", "B", "m.A"}]


def test_strided_pixels_and_layers_are_written_right(tmp_path: Path) -> None:
    wide = np.random.default_rng(4).random((12, 14, 6), np.float32)
    for pixels in (wide[2:, 3:, :4], wide[::-1, ::2, 1:4], np.asfortranarray(wide[..., :3])):
        layer = wide[: pixels.shape[0], : pixels.shape[1], 5]
        write_exr(tmp_path / "x.exr", pixels, layers=[ExrLayer("m", {"A": layer})])
        (_, channels), names = contents(tmp_path / "x.exr")[0], "RGBA"[: pixels.shape[2]]
        for index, name in enumerate(names):
            assert channels[name][1] == pixels[..., index].tobytes()
        assert channels["m.A"][1] == layer.tobytes()


def test_reading_and_writing_leave_the_image_as_it_was(hostile: Path, tmp_path: Path) -> None:
    image = read_exr(hostile)
    with pytest.raises(ValueError, match="read-only"):
        image.pixels[0, 0, 0] = 0
    for turn in range(2):
        layer = ExrLayer("spec", {"A": np.zeros((HEIGHT, WIDTH), np.float32)})
        write_exr(tmp_path / f"{turn}.exr", image.pixels, image=image, layers=[layer], attributes={"x": turn})
    write_exr(tmp_path / "last.exr", image.pixels, image=image)
    assert contents(tmp_path / "last.exr") == contents(hostile)


@pytest.mark.parametrize(
    "arguments",
    [
        {"pixels": np.zeros((4, 4), np.float32)},
        {"pixels": np.zeros((4, 4, 2), np.float32)},
        {"pixels": np.zeros((4, 4, 3), np.float64)},
        {"data_window": Box(0, 0, 5, 4)},
        {"layers": [ExrLayer("m", {"A": np.zeros((4, 5), np.float32)})]},
        {"layers": [ExrLayer("m", {"A": np.zeros((4, 4), np.float64)})]},
        {"layers": [ExrLayer("", {"A": np.zeros((4, 4), np.float32)})]},
        {"attributes": {"dataWindow": 1}},
        {"attributes": {"": 1}},
        {"attributes": {"x": 1 << 31}},
        {"attributes": {"x": {}}},
    ],
)
def test_mistakes_of_the_caller_are_refused(arguments: dict[str, object], tmp_path: Path) -> None:
    call: dict[str, object] = {"pixels": np.zeros((4, 4, 3), np.float32), **arguments}
    with pytest.raises(ValueError, match=r".+"):
        write_exr(tmp_path / "x.exr", **call)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_pixels_of_another_type_or_window_than_the_kept_image_are_refused(hostile: Path, tmp_path: Path) -> None:
    image = read_exr(hostile)
    with pytest.raises(ValueError, match="float16"):
        write_exr(tmp_path / "x.exr", image.pixels.astype(np.float32), image=image)
    with pytest.raises(ValueError, match="attributes"):
        write_exr(tmp_path / "x.exr", image.pixels[:4, :4], image=image, data_window=Box(0, 0, 4, 4))


def test_an_unwritable_target_is_an_output_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="folder does not exist"):
        write_exr(tmp_path / "no" / "x.exr", np.zeros((4, 4, 3), np.float32))


@given(npst.arrays(np.float32, 64, elements=st.floats(width=32)))
def test_to_half_rounds_clamps_and_never_makes_an_inf(values: np.ndarray) -> None:
    half = to_half(values)
    assert not np.isinf(half).any()
    assert (np.isnan(half) == np.isnan(values)).all()
    inside = np.abs(values) <= 65504
    assert (half[inside] == values[inside].astype(np.float16)).all()
    assert (np.abs(half[~inside & ~np.isnan(values)]) == 65504).all()
