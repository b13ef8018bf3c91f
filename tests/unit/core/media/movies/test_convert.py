"""From one layout of code values to another: exact where it can be, the nearest code where it must."""

from __future__ import annotations

import numpy as np
import pytest

from faceplate.errors import OutputError, SettingError
from faceplate.media.movies.codecs import CODECS, check_codec, codec_named, coding_for, fitting_codec, layout_for
from faceplate.media.movies.convert import convert
from faceplate.media.movies.layout import layout_of
from faceplate.media.movies.planes import Coding, to_rgb
from faceplate.media.movies.tags import Tags, colour_of
from tests.support.movies import Clip

VIDEO = Coding("bt709", False)


@pytest.mark.parametrize("name", ["yuv420p", "yuv422p10le", "yuva444p12le", "gbrp16le", "gray10le"])
def test_the_same_layout_gives_the_same_codes(name: str) -> None:
    (planes,) = Clip(pixels=name, width=33, height=21).noise(1)
    coding = Coding("rgb" if "gbr" in name else "bt709", False)
    for before, after in zip(planes, convert(planes, layout_of(name), coding, layout_of(name), coding), strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize(("narrow", "wide"), [("yuv422p", "yuv422p10le"), ("yuv420p10le", "yuv420p16le")])
def test_a_deeper_layout_holds_every_code(narrow: str, wide: str) -> None:
    (planes,) = Clip(pixels=narrow).noise(1)
    small, large = layout_of(narrow), layout_of(wide)
    deep = convert(planes, small, VIDEO, large, VIDEO)
    for before, after in zip(planes, deep, strict=True):
        np.testing.assert_array_equal(before.astype(int) << (large.bits - small.bits), after)
    for before, after in zip(planes, convert(deep, large, VIDEO, small, VIDEO), strict=True):
        np.testing.assert_array_equal(before, after)


def test_12_bits_in_10_are_off_by_half_a_code() -> None:
    (planes,) = Clip(pixels="yuv444p12le").noise(1)
    out = convert(planes, layout_of("yuv444p12le"), VIDEO, layout_of("yuv444p10le"), VIDEO)
    assert max(np.abs(a / 4 - b).max() for a, b in zip(planes, out, strict=True)) <= 0.5


def test_full_range_in_limited() -> None:
    ramp = np.arange(256, dtype=np.uint8).reshape(16, 16)
    layout, full = layout_of("yuv444p"), Coding("bt709", True)
    out = convert((ramp, ramp, ramp), layout, full, layout_of("yuv444p10le"), VIDEO)
    np.testing.assert_array_equal(out[0], np.rint(64 + ramp / 255 * 876))
    np.testing.assert_array_equal(out[1], np.rint(512 + (ramp.astype(float) - 128) / 255 * 896))
    back = convert(out, layout_of("yuv444p10le"), VIDEO, layout, full)
    np.testing.assert_array_equal(back[0], ramp)


@pytest.mark.parametrize("siting", [(0.0, 0.5), (0.0, 0.0), (0.5, 0.5)])
def test_chroma_changes_along_one_axis_only(siting: tuple[float, float]) -> None:
    coding = Coding("bt709", False, siting)
    clip = Clip(pixels="yuv420p10le", width=40, height=24)
    luma, blue, red = clip.noise(1)[0]
    stripes = np.repeat(blue[:1], blue.shape[0], 0)  # the same in all rows: nothing to resample downwards
    out = convert((luma, stripes, red), layout_of("yuv420p10le"), coding, layout_of("yuv422p10le"), coding)
    np.testing.assert_array_equal(out[0], luma)
    np.testing.assert_array_equal(out[1], np.repeat(stripes[:1], 24, 0))
    back = convert(out, layout_of("yuv422p10le"), coding, layout_of("yuv420p10le"), coding)
    np.testing.assert_array_equal(back[1], stripes)


def test_rgb_becomes_the_nearest_video_codes() -> None:
    (planes,) = Clip(pixels="gbrp").noise(1)
    out = convert(planes, layout_of("gbrp"), Coding("rgb", True), layout_of("yuv444p10le"), VIDEO)
    rgb = to_rgb(out, layout_of("yuv444p10le"), VIDEO)
    assert np.abs(rgb * 255 - np.stack(planes, -1)).max() < 1  # a code of the file


def test_alpha_comes_and_goes() -> None:
    (planes,) = Clip(pixels="yuva444p12le").noise(1)
    plain = convert(planes, layout_of("yuva444p12le"), VIDEO, layout_of("yuv444p10le"), VIDEO)
    assert len(plain) == 3
    opaque = convert(plain, layout_of("yuv444p10le"), VIDEO, layout_of("yuva444p10le"), VIDEO)
    assert (opaque[3] == 1023).all()
    kept = convert(planes, layout_of("yuva444p12le"), VIDEO, layout_of("yuva444p10le"), VIDEO)
    np.testing.assert_array_equal(kept[3], np.rint(planes[3] / 4095 * 1023))


@pytest.mark.parametrize(
    ("suffix", "pixels", "encoder", "alpha", "codec", "layout"),
    [
        (".mov", "yuv422p10le", "prores", False, "prores_422hq", "yuv422p10le"),
        (".mov", "yuva444p12le", "prores", True, "prores_4444", "yuva444p10le"),
        (".mov", "yuv444p12le", "prores", False, "prores_4444", "yuv444p10le"),
        (".mov", "yuv420p", "h264", False, "prores_422hq", "yuv422p10le"),
        (".mov", "yuv422p10le", "dnxhd", False, "dnxhr_hqx", "yuv422p10le"),
        (".mov", "gbrp10le", "dnxhd", False, "dnxhr_444", "gbrp10le"),
        (".mxf", "yuv422p10le", "dnxhd", False, "dnxhr_hqx", "yuv422p10le"),
        (".mkv", "yuv420p", "h264", False, "ffv1", "yuv420p"),
        (".mkv", "p010le", "hevc", False, "ffv1", "yuv420p10le"),
        (".mkv", "rgba", "png", True, "ffv1", "bgra"),
        (".mkv", "rgb48be", "png", False, "ffv1", "gbrp16le"),
        (".mp4", "yuv420p10le", "hevc", False, "h265", "yuv420p10le"),
        (".mp4", "yuv420p", "h264", False, "h264", "yuv420p10le"),
    ],
)
def test_the_codec_that_fits(suffix: str, pixels: str, encoder: str, alpha: bool, codec: str, layout: str) -> None:
    source = layout_of(pixels)
    found = fitting_codec(suffix, source, encoder, alpha=alpha)
    assert found.name == codec
    assert layout_for(found, source, alpha=alpha).name == layout
    check_codec(found, suffix, alpha=alpha and found.alpha)


def test_what_cannot_be_written_is_refused() -> None:
    with pytest.raises(OutputError, match="cannot hold ProRes 422 HQ"):
        check_codec(CODECS["prores_422hq"], ".mp4", alpha=False)
    with pytest.raises(OutputError, match="no alpha"):
        check_codec(CODECS["dnxhr_hqx"], ".mov", alpha=True)
    with pytest.raises(OutputError, match="not written as"):
        fitting_codec(".webm", None, "", alpha=False)
    with pytest.raises(SettingError) as caught:
        codec_named("prores_444")
    assert "prores_4444" in str(caught.value.hint)


def test_full_range_stays_where_the_codec_can_say_it() -> None:
    layout = layout_of("yuv420p")
    colour = colour_of(Tags(1, 1, 1, 2), layout, 1920, 1080, None)
    assert coding_for(CODECS["h264"], layout_of("yuv420p10le"), colour).full_range
    assert not coding_for(CODECS["prores_422hq"], layout_of("yuv422p10le"), colour).full_range
    rgb = colour_of(Tags(9, 16), layout_of("gbrp10le"), 1920, 1080, None)
    assert coding_for(CODECS["prores_4444"], layout_of("yuv444p10le"), rgb) == Coding("bt2020", False, (0.0, 0.0))
