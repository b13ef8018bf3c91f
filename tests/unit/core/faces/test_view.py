from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faceplate.faces.crop import Roi
from faceplate.faces.view import LINEAR_LIMIT, LinearPlateView, encode_srgb
from faceplate.frame import Box

IDENTITY = np.array([[1.0, 0, 0], [0, 1.0, 0]])


def ramp(height: int, width: int, dtype: type = np.float32) -> np.ndarray:
    """Red is x / width and green y / height at each pixel's centre."""
    y, x = np.mgrid[:height, :width] + 0.5
    return np.stack([x / width, y / height, np.full_like(x, 0.25)], -1).astype(dtype)


def test_srgb_matches_the_standards_two_pieces() -> None:
    linear = np.array([-1.0, 0.0, 0.001, 0.0031308, 0.18, 1.0, 7.0])
    expected = [0.0, 0.0, 0.01292, 0.04045, 0.46135612, 1.0, 1.0]
    np.testing.assert_allclose(encode_srgb(linear), expected, atol=1.2e-4)


def test_sampling_pixel_for_pixel_gives_the_plate() -> None:
    pixels = ramp(20, 30)
    view = LinearPlateView(pixels, Box(0, 0, 30, 20))
    np.testing.assert_allclose(view.sample_linear(IDENTITY, (30, 20)), pixels, atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(
    u=st.floats(80, 120),
    v=st.floats(70, 90),
    side=st.floats(12, 140),
    angle=st.floats(-3.1, 3.1),
    aspect=st.sampled_from([1.0, 2.0, 0.5]),
)
def test_a_ramp_is_sampled_where_the_matrix_says(u: float, v: float, side: float, angle: float, aspect: float) -> None:
    view = LinearPlateView(ramp(160, 200), Box(-7, 5, 193, 165), pixel_aspect=aspect)
    matrix = Roi(u * aspect, v, side * min(aspect, 1.0), angle).matrix(16, aspect)
    crop = view.sample_linear(matrix, (16, 16))
    centres = np.stack(np.meshgrid(np.arange(16) + 0.5, np.arange(16) + 0.5), -1)
    plate = centres @ matrix[:, :2].T + matrix[:, 2]
    # OpenCV places samples to 1/32 px of the level it reads.
    inside = ((plate > (0, 12)) & (plate < (186, 158))).all(-1)
    tolerance = 0.03 * max(1.0, side / 16)
    assert np.abs(crop[..., 0] * 200 - 7 - plate[..., 0])[inside].max() < tolerance
    assert np.abs(crop[..., 1] * 160 + 5 - plate[..., 1])[inside].max() < tolerance


def test_shrinking_an_8k_frame_reads_a_part_of_it() -> None:
    y, x = np.mgrid[:1000, :1400] + 0.5
    view = LinearPlateView(np.stack([x / 1400, y / 1000, x * 0], -1).astype(np.float32), Box(0, 0, 1400, 1000))
    matrix = Roi(700.0, 500.0, 640.0, 0.2).matrix(16, 1.0)
    crop = view.sample_linear(matrix, (16, 16))
    centres = np.stack(np.meshgrid(np.arange(16) + 0.5, np.arange(16) + 0.5), -1)
    plate = centres @ matrix[:, :2].T + matrix[:, 2]
    # A fortieth of a crop pixel.
    np.testing.assert_allclose(crop[..., 0] * 1400, plate[..., 0], atol=1.0)
    np.testing.assert_allclose(crop[..., 1] * 1000, plate[..., 1], atol=1.0)


@pytest.mark.parametrize("size", [(1, 1), (3, 900), (900, 3), (17, 17)])
def test_tiny_and_narrow_pictures_can_be_shrunk(size: tuple[int, int]) -> None:
    view = LinearPlateView(np.full((*size, 3), 0.5, np.float16), Box(0, 0, size[1], size[0]))
    small = view.sample_linear(np.array([[300.0, 0, 0], [0, 300.0, 0]]), (4, 4))
    np.testing.assert_array_equal(small, np.float32(0.5))


def test_minifying_averages_in_linear_light() -> None:
    checker = np.indices((256, 256)).sum(0) % 2
    view = LinearPlateView(np.repeat(checker[..., None], 3, 2).astype(np.float16), Box(0, 0, 256, 256))
    small = view.sample(np.array([[4.0, 0, 0], [0, 4.0, 0]]), (64, 64))
    np.testing.assert_allclose(small, encode_srgb(np.array(0.5)), atol=1e-4)


def test_hostile_pixels_become_finite_and_do_not_shine_over() -> None:
    pixels = np.full((64, 64, 3), 0.18, np.float16)
    pixels[10, 10], pixels[20, 20], pixels[30, 30], pixels[40, 40] = np.nan, np.inf, -np.inf, 60000
    view = LinearPlateView(pixels, Box(0, 0, 64, 64))
    for picture in (view.sample(IDENTITY, (64, 64)), view.overview(), view.reduced(2)):
        assert np.isfinite(picture).all()
        assert picture.min() >= 0
        assert picture.max() <= 1
    assert view.sample_linear(IDENTITY, (64, 64))[40, 40, 0] == LINEAR_LIMIT
    assert view.sample(IDENTITY, (64, 64))[10, 10, 0] == 0


@pytest.mark.parametrize("shape", [(101, 203), (64, 64), (33, 1000)])
def test_a_crop_has_the_same_bits_whether_the_pyramid_is_there_or_not(shape: tuple[int, int]) -> None:
    pixels = np.random.default_rng(3).normal(0.3, 0.2, (*shape, 3)).astype(np.float16)
    bare, searched = (LinearPlateView(pixels, Box(0, 0, shape[1], shape[0])) for _ in range(2))
    searched.reduced(4)
    for side in (20.0, 45.0, 90.0, 170.0):
        matrix = Roi(shape[1] / 2 + 0.3, shape[0] / 2, side, 0.4).matrix(16, 1.0)
        assert np.array_equal(bare.sample(matrix, (16, 16)), searched.sample(matrix, (16, 16)))


def test_beyond_the_picture_the_edge_repeats() -> None:
    pixels = np.full((8, 8, 3), 0.5, np.float32)
    view = LinearPlateView(pixels, Box(0, 0, 8, 8))
    far = view.sample_linear(np.array([[1.0, 0, 500], [0, 1.0, -500]]), (4, 4))
    np.testing.assert_array_equal(far, np.float32(0.5))


def test_matrix_and_exposure_are_applied() -> None:
    pixels = np.full((4, 4, 3), (0.1, 0.2, 0.3), np.float32)
    swap = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 0]])
    view = LinearPlateView(pixels, Box(0, 0, 4, 4), to_rec709=swap, exposure=2.0)
    np.testing.assert_allclose(view.sample_linear(IDENTITY, (4, 4))[0, 0], [0.6, 0.4, 0.2], rtol=1e-6)


def test_reduced_averages_blocks_and_overview_stays_small() -> None:
    pixels = ramp(64, 96)
    view = LinearPlateView(pixels, Box(0, 0, 96, 64))
    blocks = pixels.reshape(16, 4, 24, 4, 3).mean((1, 3))
    np.testing.assert_allclose(view.reduced(2), encode_srgb(blocks), atol=2e-4)
    wide = LinearPlateView(np.zeros((30, 7680, 3), np.float16), Box(0, 0, 7680, 30))
    assert wide.overview().shape[1] == 480


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("level", [1, 2, 3])
def test_what_is_not_finite_is_black_or_at_the_limit_before_it_is_averaged(level: int, channels: int) -> None:
    """Over several bands, the last one cut."""
    pixels = np.tile(ramp(1003, 333), (1, 1, 2))[..., :channels]
    clean = pixels.copy()
    pixels[500, 100], pixels[900, 200], pixels[901, 201] = np.nan, np.inf, -np.inf
    clean[500, 100], clean[900, 200], clean[901, 201] = 0.0, LINEAR_LIMIT, -LINEAR_LIMIT
    hurt, whole = (LinearPlateView(part, Box(0, 0, 333, 1003)).reduced(level) for part in (pixels, clean))
    assert np.array_equal(hurt, whole)
