"""Every pixel format that is read, against swscale where that only moves bytes."""

from __future__ import annotations

import av
import numpy as np
import pytest

from faceplate.errors import UnsupportedImageError
from faceplate.media.movies.layout import layout_of, read_planes, write_planes
from tests.support.movies import Clip

FORMATS = (
    *("yuv420p", "yuv422p", "yuv444p", "yuv440p", "yuv411p", "yuv410p", "yuvj420p", "yuva420p", "yuva444p"),
    *("yuv420p10le", "yuv422p10le", "yuv444p12le", "yuva444p12le", "yuv422p16le", "yuv420p10be", "yuva444p10le"),
    *("gbrp", "gbrap", "gbrp10le", "gbrap12le", "gbrp16be", "gray", "gray10le", "gray16le", "ya8", "ya16le"),
    *("nv12", "nv21", "nv16", "nv24", "p010le", "p012le", "p016le", "p210le", "p410le", "p416le"),
    *("yuyv422", "uyvy422", "yvyu422", "ayuv64le"),
    *("rgb24", "bgr24", "rgba", "bgra", "argb", "abgr", "rgb0", "0rgb", "rgb48le", "rgb48be", "rgba64le", "bgra64be"),
)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("size", [(50, 38), (53, 37)])
def test_codes_survive_a_frame(name: str, size: tuple[int, int]) -> None:
    clip = Clip(pixels=name, width=size[0], height=size[1])
    (planes,) = clip.noise(1)
    layout, frame = layout_of(name), av.VideoFrame(*size, name)
    components = av.VideoFormat(name).components
    assert len(planes) == len(components)
    assert layout.bits == components[0].bits
    assert layout.alpha == any(component.is_alpha for component in components)
    write_planes(frame, planes)
    for written, read in zip(planes, read_planes(frame), strict=True):
        assert written.dtype == read.dtype == layout.dtype
        np.testing.assert_array_equal(written, read)


@pytest.mark.parametrize(
    ("planar", "other"),
    [
        *(("yuv420p", other) for other in ("nv12", "nv21")),
        *(("yuv422p", other) for other in ("yuyv422", "uyvy422", "yvyu422", "nv16")),
        *(("gbrp", other) for other in ("rgb24", "bgr24", "rgb0", "0rgb")),
        *(("gbrap", other) for other in ("rgba", "bgra", "argb", "abgr")),
        *(("gbrp16le", other) for other in ("rgb48le", "rgb48be")),
        *(("yuv420p10le", other) for other in ("p010le", "yuv420p10be")),
        *(("yuv444p16le", "p416le"), ("yuva444p16le", "ayuv64le"), ("gbrap16le", "rgba64be")),
    ],
)
def test_same_codes_as_when_swscale_moves_the_bytes(planar: str, other: str) -> None:
    clip = Clip(pixels=planar, width=64, height=48)
    (planes,) = clip.noise(1)
    moved = clip.frame(planes).reformat(format=other, src_color_range=1, dst_color_range=1)
    assert moved.format.name == other
    for ours, theirs in zip(planes, read_planes(moved), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", ["pal8", "bayer_rggb8", "grayf32le", "gbrpf32le", "rgb565le", "monob", "xyz12le"])
def test_what_is_not_read_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedImageError, match="pixel format"):
        layout_of(name)
