from __future__ import annotations

import numpy as np
import pytest

from faceplate.faces import rectify
from faceplate.faces.appearance import SIZE, AppearanceSampler, build_appearance, centred, light_texture, log_texture
from faceplate.faces.view import LinearPlateView
from tests.support.plates import moving_plate
from tests.unit.core.faces.made import TO_REC709, view

PLATE = moving_plate(512, 288, 8, face_width_px=120, motion="linear", travel_px=60, grain=0)
COVERED = rectify.coverage(SIZE)


def test_a_texture_is_log_light_with_zero_mean_and_nothing_off_the_face() -> None:
    texture = log_texture(view(PLATE), PLATE.truth_landmarks(1001))
    seen = np.isfinite(texture[..., 0])
    assert not seen[~COVERED].any()
    assert seen[COVERED].mean() > 0.85
    np.testing.assert_allclose(texture[seen].mean(0), 0, atol=1e-5)
    assert 0.3 < texture[seen].std() < 3


def test_more_light_changes_nothing() -> None:
    brighter = LinearPlateView(PLATE.frame(1001), PLATE.data_window, to_rec709=TO_REC709, exposure=1.5)
    a, b = (log_texture(v, PLATE.truth_landmarks(1001)) for v in (view(PLATE), brighter))
    # But for what is so dark that it stands on the floor.
    assert np.nanquantile(np.abs(a - b), 0.97) < 0.02


def test_what_lies_outside_the_picture_is_not_known() -> None:
    landmarks = PLATE.truth_landmarks(1001).copy()
    landmarks[:, 0] -= landmarks[:468, 0].mean()
    texture = log_texture(view(PLATE), landmarks)
    seen = np.isfinite(texture[..., 0])
    assert not seen[:, : SIZE // 3].any()
    assert seen[:, SIZE * 2 // 3 :].sum() > 300


def test_a_moving_face_looks_the_same_and_an_occluder_does_not() -> None:
    textures = [log_texture(view(PLATE, f), PLATE.truth_landmarks(f)).astype(np.float16) for f in PLATE.numbers]
    usual = build_appearance(textures)
    known = np.isfinite(usual.spread)
    assert np.median(usual.spread[known]) < 0.08
    occluded = PLATE.with_occluder("microphone")
    middle = 1005
    now = log_texture(view(occluded, middle), PLATE.truth_landmarks(middle))
    apart = np.abs(now - usual.median).mean(-1)
    matte = occluded.occluder_matte(middle)
    covered = rectify.rectify(matte, PLATE.truth_landmarks(middle), SIZE) > 0.95
    assert np.nanmedian(apart[covered & known]) > 5 * np.nanmedian(apart[known & ~covered])


def test_median_and_spread_are_robust_and_half_precise() -> None:
    base = np.zeros((SIZE, SIZE, 3), np.float16)
    textures = [base + np.float16(value) for value in (0.0, 0.1, -0.1, 0.0, 9.0)]
    textures[0][:10] = textures[1][:10] = textures[2][:10] = textures[3][:10] = np.nan
    result = build_appearance(textures)
    assert np.isnan(result.median[:10]).all()
    assert np.isnan(result.spread[:10]).all()
    np.testing.assert_allclose(result.median[10:], 0.0, atol=1e-3)
    np.testing.assert_allclose(result.spread[10:], 0.14826, atol=2e-3)
    assert np.array_equal(result.spread[10:], result.spread[10:].astype(np.float16).astype(np.float32))


def test_long_tracks_are_summed_up_from_a_bounded_even_sample() -> None:
    sampler, texture = AppearanceSampler(), light_texture(view(PLATE), PLATE.truth_landmarks(1001))
    for frame in range(1, 301):
        sampler.add(frame, texture + np.float32(frame % 8 == 0) * np.where(COVERED[..., None], rng_stops(), 0))
    # every eighth frame is what is kept of 300, and those alone are different
    assert sampler.result(frozenset(range(1, 5))) is None
    usual = sampler.result(frozenset(range(1, 301)))
    assert usual is not None
    expected = centred(texture + np.where(COVERED[..., None], rng_stops(), 0))
    np.testing.assert_allclose(usual.median[COVERED], expected[COVERED], atol=0.06)


def rng_stops() -> np.ndarray:
    return np.random.default_rng(0).uniform(0.0, 0.5, (SIZE, SIZE, 1)).astype(np.float32)


def test_a_texture_comes_back_to_a_fortieth_of_a_stop() -> None:
    sampler, texture = AppearanceSampler(), light_texture(view(PLATE), PLATE.truth_landmarks(1001))
    sampler.add(7, texture)
    again = sampler.texture(7)
    assert again is not None
    np.testing.assert_allclose(again, texture, atol=0.0251)
    assert sampler.texture(8) is None


@pytest.mark.parametrize("frames", [7, 8])
def test_the_centre_is_the_median_of_what_was_seen(frames: int) -> None:
    random = np.random.default_rng(frames)
    textures = random.normal(0, 1, (frames, SIZE, SIZE, 3)).astype(np.float16)
    textures[random.random((frames, SIZE, SIZE)) < 0.2] = np.nan
    usual = build_appearance(list(textures))
    known = np.isfinite(usual.spread)
    seen = textures[:, known].astype(np.float32)
    median = np.nanmedian(seen, axis=0)
    spread = 1.4826 * np.nanmedian(np.abs(seen - median), axis=0).mean(-1)
    assert known.mean() > 0.99
    np.testing.assert_array_equal(usual.median[known], median.astype(np.float16))
    np.testing.assert_allclose(usual.spread[known], spread, rtol=1e-3)
