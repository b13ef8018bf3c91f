"""The model's view: encoding, clipping, exposure."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from faceplate.colour.model_view import (
    SKIN_LEVEL,
    auto_exposure,
    decode_display,
    encode_display,
    exposure_from_medians,
    face_median,
    to_linear_view,
)
from faceplate.colour.spaces import DEFAULT_CONFIG, ColourConfig

CONFIG = ColourConfig.open(DEFAULT_CONFIG)
TO_709 = CONFIG.to_rec709("ACEScg")


def test_the_display_encoding_is_srgb() -> None:
    linear = np.linspace(0, 1, 4097)
    standard = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    codes = encode_display(torch.from_numpy(linear.astype(np.float32)))
    # OCIO's toe has the slope that meets the power smoothly, 12.9232 for the standard's rounded 12.92.
    np.testing.assert_allclose(codes.numpy(), standard, atol=1.1e-5)
    as_texture = CONFIG.transform("lin_rec709", "srgb_texture").numpy(np.repeat(linear[:, None], 3, axis=1))
    np.testing.assert_allclose(codes.numpy(), as_texture[:, 0], atol=3e-7)


def test_the_display_encoding_inverts() -> None:
    linear = torch.cat([torch.linspace(-1, 2, 3001), torch.logspace(-8, 0, 400)])
    torch.testing.assert_close(decode_display(encode_display(linear)), linear, rtol=2e-6, atol=1e-7)
    codes = torch.arange(256) / 255
    assert torch.equal((encode_display(decode_display(codes)) * 255).round(), torch.arange(256).float())


def test_the_view_is_the_exposed_plate_clipped() -> None:
    rng = np.random.default_rng(0)
    pixels = (rng.normal(0.3, 0.4, (40, 50, 3))).astype(np.float16)
    expected = np.clip(TO_709.numpy(pixels) * 2.0, 0, 1)
    view = to_linear_view(torch.from_numpy(pixels).permute(2, 0, 1), TO_709, 2.0)
    np.testing.assert_allclose(view.permute(1, 2, 0).numpy(), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("pixel", "seen"),
    [
        ((math.nan,) * 3, (0, 0, 0)),
        ((math.inf,) * 3, (1, 1, 1)),
        ((-math.inf,) * 3, (0, 0, 0)),
        ((math.inf, 0.2, 0.2), (1, 0, 0)),
        ((3e38, 3e38, 3e38), (1, 1, 1)),
        ((3e38, -3e38, 3e38), (1, 0, 1)),
    ],
)
def test_broken_pixels_are_seen_as_black_or_white(pixel: tuple[float, ...], seen: tuple[float, ...]) -> None:
    plate = torch.tensor(pixel).reshape(3, 1, 1)
    assert to_linear_view(plate, TO_709, 1.0).flatten().tolist() == list(seen)


@given(level=st.floats(1e-3, 500))
def test_exposure_is_the_power_of_two_that_brings_skin_nearest(level: float) -> None:
    face = torch.full((3, 5, 5), level)
    exposure = auto_exposure(face)
    assert math.log2(exposure).is_integer()
    assert abs(math.log2(level * exposure / SKIN_LEVEL)) <= 0.5 + 1e-4


def test_exposure_is_held_to_twelve_stops() -> None:
    assert auto_exposure(torch.full((3, 4, 4), 1e-9)) == 2.0**12
    assert auto_exposure(torch.full((3, 4, 4), 6e4)) == 2.0**-12


def test_the_median_ignores_what_is_no_light_and_what_has_no_weight() -> None:
    face = torch.full((3, 10, 10), 0.2)
    face[:, 0] = torch.nan
    face[:, 1] = torch.inf
    face[:, 2] = -5.0
    face[:, 3:8] = 30.0
    weight = torch.ones(10, 10)
    weight[3:8] = 0.0
    assert face_median(face, weight) == pytest.approx(0.2)
    weight[3:8] = 0.01
    assert face_median(face, weight) == pytest.approx(0.2)
    assert face_median(face) == pytest.approx(30.0)


def test_large_faces_are_sampled_evenly() -> None:
    face = torch.linspace(0.1, 0.3, 900).expand(3, 900, 900)
    assert face_median(face) == pytest.approx(0.2, abs=1e-3)


def test_without_light_there_is_no_median_and_no_exposure() -> None:
    assert math.isnan(face_median(torch.zeros(3, 4, 4)))
    assert auto_exposure(torch.full((3, 4, 4), torch.nan)) == 1.0
    assert exposure_from_medians([]) == 1.0
    assert exposure_from_medians([math.nan, 0.0, -1.0]) == 1.0


def test_one_exposure_for_a_track_whatever_its_gaps_and_ramps() -> None:
    ramp = [0.05 * 2 ** (frame / 25) for frame in range(101)]
    assert exposure_from_medians([*ramp, math.nan]) == exposure_from_medians(ramp) == 1.0
    assert exposure_from_medians([0.03, 0.03, 40.0]) == 8.0
