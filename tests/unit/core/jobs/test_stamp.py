"""Patches in pictures of code values: what changes and what does not."""

from __future__ import annotations

import numpy as np
import pytest

from faceplate.frame import Box
from faceplate.jobs.patches import Patch
from faceplate.jobs.stamp import coded_patch, element, stamp
from faceplate.media.movies.layout import layout_of
from faceplate.media.movies.planes import Coding, to_rgb
from tests.support.movies import Clip

VIDEO = Coding("bt709", False)
NAMES = ("yuv420p10le", "yuv422p10le", "yuv444p12le", "yuva444p10le", "gbrp", "yuv420p")


def soft_patch(seed: int = 1) -> Patch:
    rng = np.random.default_rng(seed)
    matte = np.zeros((15, 19), np.float32)
    matte[2:12, 3:16] = rng.uniform(0.1, 1, (10, 13))
    matte[6, 8] = 0  # a hole
    return Patch(Box(21, 13, 40, 28), rng.uniform(0, 1, (15, 19, 3)).astype(np.float32), matte)


def coding(name: str) -> Coding:
    return Coding("rgb", True) if name.startswith("gbr") else VIDEO


@pytest.mark.parametrize("name", NAMES)
def test_outside_the_matte_every_code_stays(name: str) -> None:
    layout, patch = layout_of(name), soft_patch()
    (base,) = Clip(pixels=name, width=64, height=48).noise(1)
    before = [plane.copy() for plane in base]
    out = stamp(base, layout, coding(name), patch, None)
    for plane, same in zip(base, before, strict=True):
        np.testing.assert_array_equal(plane, same)  # what was given is not written to
    inside = np.zeros((48, 64), bool)
    inside[13:28, 21:40] = patch.matte > 0
    for index, (old, new) in enumerate(zip(base, out, strict=True)):
        shifts = (layout.shift_x, layout.shift_y) if layout.model == "yuv" and index in (1, 2) else (0, 0)
        touched = np.zeros(old.shape, bool)
        y, x = np.nonzero(inside)
        touched[y >> shifts[1], x >> shifts[0]] = True
        np.testing.assert_array_equal(old[~touched], new[~touched])
        if index != 3:
            assert (old != new)[touched].mean() > 0.7
    if layout.alpha:
        np.testing.assert_array_equal(base[3], out[3])


@pytest.mark.parametrize("name", ["yuv444p12le", "gbrp"])
def test_inside_is_the_patch(name: str) -> None:
    layout, patch = layout_of(name), soft_patch()
    (base,) = Clip(pixels=name, width=64, height=48).noise(1)
    rgb = to_rgb(stamp(base, layout, coding(name), patch, None), layout, coding(name))
    inside = patch.matte > 0
    off = np.abs(rgb[13:28, 21:40][inside] - patch.rgb[inside]).max()
    assert off < {"yuv444p12le": 1.7 / 3504, "gbrp": 0.51 / 255}[name]


def test_an_empty_patch_is_the_picture() -> None:
    (base,) = Clip().noise(1)
    empty = Patch(Box(0, 0, 1, 1), np.zeros((1, 1, 3), np.float32), np.zeros((1, 1), np.float32))
    assert stamp(base, layout_of("yuv422p10le"), VIDEO, empty, None) is base


@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
def test_a_patch_turns_with_the_picture(degrees: int) -> None:
    patch = soft_patch()
    upright = np.zeros((48, 64, 4), np.float32)
    upright[13:28, 21:40, :3], upright[13:28, 21:40, 3] = patch.rgb, patch.matte
    coded = np.rot90(upright, -degrees // 90)
    turned = coded_patch(patch, degrees, 64, 48)
    box = turned.window
    np.testing.assert_array_equal(coded[box.y0 : box.y1, box.x0 : box.x1, :3], turned.rgb)
    np.testing.assert_array_equal(coded[box.y0 : box.y1, box.x0 : box.x1, 3], turned.matte)
    assert coded.sum() == pytest.approx(turned.rgb.sum() + turned.matte.sum(), rel=1e-4)


@pytest.mark.parametrize("premultiplied", [False, True])
def test_the_element(premultiplied: bool) -> None:
    layout, soft = layout_of("yuva444p10le"), soft_patch()
    face = Patch(soft.window, soft.rgb * soft.matte[..., None], soft.matte)
    out = element((48, 64), layout, VIDEO, face, None, premultiplied=premultiplied)
    rgba = to_rgb(out, layout, VIDEO)
    matte = np.zeros((48, 64), np.float32)
    matte[13:28, 21:40] = soft.matte
    np.testing.assert_allclose(rgba[..., 3], matte, atol=0.51 / 1023)
    inside = soft.matte > 0
    wanted = soft.rgb * (soft.matte[..., None] if premultiplied else 1)
    np.testing.assert_allclose(rgba[13:28, 21:40, :3][inside], wanted[inside], atol=1.7 / 876)
    if premultiplied:
        assert np.abs(rgba[..., :3][matte == 0]).max() < 1e-4
    else:
        assert rgba[12, 30, :3].max() > 0.05  # carried on beyond the edge
    assert np.abs(rgba[0, 0]).max() < 1e-4
