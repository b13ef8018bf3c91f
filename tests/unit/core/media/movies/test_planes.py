"""Range, matrix and chroma against the formulas of the standards in double precision."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from faceplate.media.movies.layout import layout_of
from faceplate.media.movies.planes import WEIGHTS, Coding, Matrix, Scale, downsample, from_rgb, to_rgb, to_values

DEPTHS = {8: "yuv444p", 10: "yuv444p10le", 12: "yuv444p12le", 16: "yuv444p16le"}
matrices = st.sampled_from(sorted(WEIGHTS))


def by_hand(y: int, cb: int, cr: int, bits: int, matrix: str, *, full: bool) -> NDArray[np.float64]:
    """R'G'B' by the equations of BT.709-6 items 3.2 to 3.5, solved as a linear system."""
    kr, kb = WEIGHTS[matrix]
    k = 2 ** (bits - 8)
    if full:
        luma, blue, red = (y / (2**bits - 1), (cb - 128 * k) / (2**bits - 1), (cr - 128 * k) / (2**bits - 1))
    else:
        luma, blue, red = (y / k - 16) / 219, (cb / k - 128) / 224, (cr / k - 128) / 224
    rows = np.array([[kr, 1 - kr - kb, kb], [0, 0, 1], [1, 0, 0]])
    return np.linalg.solve(rows, [luma, blue * 2 * (1 - kb) + luma, red * 2 * (1 - kr) + luma])


@given(st.sampled_from(sorted(DEPTHS)), matrices, st.booleans(), st.integers(0, 2**32 - 1))
@settings(max_examples=80, deadline=None)
def test_rgb_by_hand(bits: int, matrix: Matrix, full: bool, seed: int) -> None:
    layout = layout_of(DEPTHS[bits])
    codes = np.random.default_rng(seed).integers(0, layout.largest + 1, (3, 1, 4)).astype(layout.dtype)
    found = to_rgb(tuple(codes), layout, Coding(matrix, full))
    for column in range(4):
        wanted = by_hand(*(int(plane[0, column]) for plane in codes), bits, matrix, full=full)
        np.testing.assert_allclose(found[0, column], wanted, atol=2e-6)


def test_known_colours() -> None:
    # BT.709 100 % bars in 10 bits: white, yellow, cyan, green, magenta, red, blue, black (SMPTE RP 219).
    luma = [940, 877, 754, 691, 313, 250, 127, 64]
    blue = [512, 64, 615, 167, 857, 409, 960, 512]
    red = [512, 553, 64, 105, 919, 960, 471, 512]
    planes = tuple(np.array([row], np.uint16) for row in (luma, blue, red))
    found = to_rgb(planes, layout_of("yuv444p10le"), Coding("bt709", False))
    bars = [[1, 1, 1], [1, 1, 0], [0, 1, 1], [0, 1, 0], [1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 0, 0]]
    np.testing.assert_allclose(found[0], bars, atol=0.0016)  # half a code of luma and of chroma
    np.testing.assert_array_equal(
        np.concatenate(from_rgb(np.array([bars], np.float32), layout_of("yuv444p10le"), Coding("bt709", False))),
        [luma, blue, red],
    )


def test_super_whites_and_sub_blacks_are_kept() -> None:
    grey = np.array([[4, 64, 940, 1019]], np.uint16)
    none = np.full((1, 4), 512, np.uint16)
    found = to_rgb((grey, none, none), layout_of("yuv444p10le"), Coding("bt709", False))
    np.testing.assert_allclose(found[0, :, 0], [-60 / 876, 0, 1, 955 / 876], atol=1e-6)


@given(st.sampled_from(sorted(DEPTHS)), matrices, st.booleans(), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_every_code_comes_back(bits: int, matrix: Matrix, full: bool, seed: int) -> None:
    layout = layout_of(DEPTHS[bits])
    codes = tuple(np.random.default_rng(seed).integers(0, layout.largest + 1, (3, 8, 9)).astype(layout.dtype))
    coding = Coding(matrix, full)
    back = from_rgb(to_rgb(codes, layout, coding), layout, coding)
    worst = max(int(np.abs(a.astype(int) - b.astype(int)).max()) for a, b in zip(codes, back, strict=True))
    assert worst == 0


@pytest.mark.parametrize("name", ["gbrp", "gbrap12le", "gbrp10le", "rgba64le"])
@pytest.mark.parametrize("full", [False, True])
def test_rgb_and_alpha_codes_come_back(name: str, full: bool) -> None:
    layout = layout_of(name)
    rng = np.random.default_rng(5)
    codes = tuple(rng.integers(0, layout.largest + 1, (7, 8)).astype(layout.dtype) for _ in layout.slots)
    rgb = to_rgb(codes, layout, Coding("rgb", full))
    assert rgb.shape == (7, 8, 4 if layout.alpha else 3)
    if layout.alpha:
        np.testing.assert_allclose(rgb[..., 3], codes[3] / layout.largest, atol=1e-6)
    for before, after in zip(codes, from_rgb(rgb, layout, Coding("rgb", full)), strict=True):
        np.testing.assert_array_equal(before, after)


SITINGS = {"left": (0.0, 0.5), "centre": (0.5, 0.5), "top left": (0.0, 0.0)}


@pytest.mark.parametrize("siting", SITINGS.values(), ids=SITINGS)
@pytest.mark.parametrize("name", ["yuv420p16le", "yuv422p16le", "yuv440p12le"])
def test_a_ramp_of_chroma_stays_where_it_is(name: str, siting: tuple[float, float]) -> None:
    layout = layout_of(name)
    width, height = 40, 24
    rows, columns = layout.size(1, width, height)
    # Chroma sample (i, j) lies at (i << shift) + phase in luma pixels.
    x = (np.arange(columns) << layout.shift_x) + siting[0] * ((1 << layout.shift_x) - 1)
    y = (np.arange(rows) << layout.shift_y) + siting[1] * ((1 << layout.shift_y) - 1)
    scale = Scale.of(layout, full_range=False).chroma
    plane = np.rint(scale[0] + scale[1] * (0.004 * x[None] - 0.006 * y[:, None])).astype(np.uint16)
    luma = np.full((height, width), layout.largest // 2, np.uint16)
    _, blue, _ = to_values((luma, plane, plane), layout, Coding("bt709", False, siting))
    wanted = 0.004 * np.arange(width)[None] - 0.006 * np.arange(height)[:, None]
    inner = (slice(2, -2), slice(2, -2))
    np.testing.assert_allclose(blue[inner], wanted[inner], atol=1.2 / scale[1])


@pytest.mark.parametrize("phase", [0.0, 0.5])
@pytest.mark.parametrize("shift", [1, 2])
@pytest.mark.parametrize("size", [16, 17, 1])
def test_downsampling_keeps_level_and_place(phase: float, shift: int, size: int) -> None:
    flat = np.full((3, size), 0.25, np.float32)
    narrow = downsample(flat, shift, phase, 1)
    assert narrow.shape == (3, -(-size >> shift))
    np.testing.assert_allclose(narrow, 0.25, atol=1e-6)
    if size > 8:
        ramp = np.arange(size, dtype=np.float32)[None]
        places = (np.arange(narrow.shape[1]) << shift) + phase * ((1 << shift) - 1)
        np.testing.assert_allclose(downsample(ramp, shift, phase, 1)[0, 1:-2], places[1:-2], atol=1e-5)
