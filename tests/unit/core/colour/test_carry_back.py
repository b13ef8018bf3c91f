"""The way back from the model's view: range kept, no ghosts, identity exact.

A mock model (a smooth colour gain and 10 % texture in sRGB code values, clamped, optionally rounded to 8 bit) edits the
view of a synthetic ACEScg plate. The right answer is the same edit made on the plate itself. Three simpler ways back
are computed beside ours, to show that this test can tell good from bad.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.ndimage import gaussian_filter

from faceplate.colour import model_view
from faceplate.colour.model_view import auto_exposure, carry_back, decode_display, encode_display, to_linear_view
from faceplate.colour.spaces import ColourConfig
from faceplate.errors import ColourSpaceError

SIZE = 320
CONFIG = ColourConfig.open("ocio://studio-config-v4.0.0_aces-v2.0_ocio-v2.5")
TO_709, FROM_709 = CONFIG.to_rec709("ACEScg"), CONFIG.from_rec709("ACEScg")
EPSILON = 1e-3
GHOST_LEVEL = 0.2


@dataclass(frozen=True)
class Scene:
    """Everything (3, h, w); masks (h, w)."""

    plate: torch.Tensor
    truth: torch.Tensor
    gain: torch.Tensor
    exposure: float
    core: torch.Tensor
    green: torch.Tensor
    spot: torch.Tensor


def make_scene() -> Scene:
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:SIZE, 0:SIZE] / SIZE
    plate = np.zeros((3, SIZE, SIZE))
    for sigma in (24, 8, 2):
        noise = np.stack([gaussian_filter(rng.standard_normal((SIZE, SIZE)), sigma, mode="wrap") for _ in range(3)])
        plate += noise / noise.std(axis=(1, 2), keepdims=True) * 0.25
    plate = 0.25 * np.exp2(plate) + rng.normal(0, 0.004, plate.shape)
    for cx, cy, radius, value in ((0.45, 0.40, 0.03, 20), (0.60, 0.55, 0.015, 119), (0.50, 0.70, 0.05, 3)):
        plate += value * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / radius**2 * 2)
    green = np.hypot(x - 0.35, y - 0.5)
    plate[:, green < 0.05] *= np.array([[0.02], [1.0], [0.02]])
    dark = np.hypot(x - 0.5, y - 0.3) < 0.04
    plate[:, dark] = rng.normal(0.0, 0.008, (3, int(dark.sum())))
    gain = np.stack([1 + 0.25 * np.sin(6 * x + 1), 1 + 0.2 * np.cos(5 * y), 0.9 + 0.2 * np.sin(4 * (x + y))])
    gain *= 1 + 0.1 * rng.standard_normal((1, SIZE, SIZE))
    stored = torch.from_numpy(plate.astype(np.float16)).float()
    factors = torch.from_numpy(gain.astype(np.float32))
    return Scene(
        plate=stored,
        truth=stored * factors,
        gain=factors,
        exposure=auto_exposure(TO_709.torch(stored)),
        core=torch.from_numpy(np.hypot(x - 0.5, y - 0.5) < 0.33),
        green=torch.from_numpy(green < 0.045),
        spot=torch.from_numpy(np.hypot(x - 0.6, y - 0.55) < 0.03),
    )


SCENE = make_scene()
VIEW = to_linear_view(SCENE.plate, TO_709, SCENE.exposure)


def model(gain: torch.Tensor | float, *, rounds: bool, spot: float | None = None) -> torch.Tensor:
    """The mock net: the edited view, decoded to linear light."""
    codes = encode_display(decode_display(encode_display(VIEW)) * gain)
    if spot is not None:
        codes = torch.where(SCENE.spot, encode_display(torch.tensor(spot)), codes)
    codes = codes.clamp(0, 1)
    return decode_display((codes * 255).round() / 255 if rounds else codes)


def in_plate(view: torch.Tensor) -> torch.Tensor:
    return FROM_709.torch(view) / SCENE.exposure


def direct(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    return in_plate(after)


def residual(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    return SCENE.plate + in_plate(after) - in_plate(before)


def ratio(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    old, new = in_plate(before).clamp_min(0) + EPSILON, in_plate(after).clamp_min(0) + EPSILON
    return SCENE.plate * (new / old).clamp(1 / 16, 16)


def ours(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    return carry_back(SCENE.plate, before, after, from_709=FROM_709, exposure=SCENE.exposure)


WayBack = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
REGIONS = {
    "in range": SCENE.core & (SCENE.plate * SCENE.exposure <= 1) & (SCENE.plate > 0.02),
    "bright": SCENE.core & (SCENE.plate * SCENE.exposure > 1.2),
    "near zero": SCENE.core & (SCENE.plate < 0),
    "outside 709": (SCENE.core & SCENE.green).expand(3, -1, -1),
}


def errors(way: WayBack, region: str, *, rounds: bool = False) -> tuple[float, float]:
    """(median, 90th percentile) of the error in per cent of the truth, or of 0.02 where that is more."""
    result = way(model(1.0, rounds=rounds), model(SCENE.gain, rounds=rounds))
    relative = ((result - SCENE.truth).abs() / SCENE.truth.abs().clamp_min(0.02))[REGIONS[region]].double()
    return float(100 * relative.median()), float(100 * torch.quantile(relative[:1_000_000], 0.9))


def ghost(way: WayBack) -> float:
    """The brightest value left where the model painted 0.2 over a highlight of 119, in the view's exposure."""
    result = way(model(1.0, rounds=False), model(1.0, rounds=False, spot=GHOST_LEVEL)) * SCENE.exposure
    return float(result[:, SCENE.spot].max())


def test_the_scene_has_what_it_is_for() -> None:
    bright, negative = REGIONS["bright"], REGIONS["near zero"]
    assert SCENE.plate.max() > 100
    assert bright.sum() > 2000
    assert negative.sum() > 500
    outside = TO_709.torch(SCENE.plate)[:, SCENE.green].amin(0)
    assert (outside < 0).float().mean() > 0.95


@pytest.mark.parametrize("rounds", [False, True], ids=["float", "8 bit"])
@pytest.mark.parametrize(
    ("region", "median", "ninetieth"),
    [("in range", 2.0, 8.8), ("bright", 1.3, 9.3), ("near zero", 3.1, 12.0), ("outside 709", 1.0, 5.5)],
)
def test_errors_stay_within_the_published_table(region: str, median: float, ninetieth: float, rounds: bool) -> None:
    found = errors(ours, region, rounds=rounds)
    assert found[0] <= median
    assert found[1] <= ninetieth


def test_simpler_ways_back_fail_where_the_table_says() -> None:
    assert errors(direct, "bright")[0] > 20 * errors(ours, "bright")[0]
    assert errors(direct, "near zero")[0] > 5 * errors(ours, "near zero")[0]
    assert errors(residual, "bright")[0] > 5 * errors(ours, "bright")[0]
    assert errors(residual, "outside 709")[0] > 10 * errors(ours, "outside 709")[0]
    assert ghost(residual) > 20
    assert ghost(ratio) > 5


def test_a_removed_highlight_leaves_no_ghost() -> None:
    assert ghost(ours) == pytest.approx(GHOST_LEVEL, abs=0.02)


def bits(values: torch.Tensor) -> torch.Tensor:
    return values.contiguous().view(torch.int32)


@pytest.mark.parametrize("rounds", [False, True], ids=["float", "8 bit"])
def test_an_identity_edit_is_the_plate(rounds: bool) -> None:
    result = ours(model(1.0, rounds=rounds), model(1.0, rounds=rounds))
    assert torch.equal(bits(result), bits(SCENE.plate))


HALVES = hnp.arrays(np.uint16, hnp.array_shapes(min_dims=2, max_dims=2, max_side=6).map(lambda shape: (3, *shape)))
SPECIAL = np.array(
    [0.0, -0.0, np.nan, np.inf, -np.inf, 1e-41, -1e-7, 3e38, -3e38, 65504.0, 0.5, -0.02, 20.0], dtype=np.float32
)


@given(codes=HALVES, stops=st.integers(-12, 12))
@settings(max_examples=60, deadline=None)
def test_identity_is_bit_exact_for_every_half(codes: np.ndarray, stops: int) -> None:
    plate = torch.from_numpy(codes.view(np.float16))
    view = to_linear_view(plate, TO_709, 2.0**stops)
    assert bool(((view >= 0) & (view <= 1)).all())
    result = carry_back(plate, view, view.clone(), from_709=FROM_709, exposure=2.0**stops)
    # Torch does not keep the payload of a NaN when it makes floats of halves; that is before our arithmetic.
    wide = plate.float()
    assert torch.equal(result.isnan(), wide.isnan())
    assert torch.equal(
        bits(result.nan_to_num(0.0, torch.inf, -torch.inf)), bits(wide.nan_to_num(0.0, torch.inf, -torch.inf))
    )


@pytest.mark.parametrize("stops", [-12, 0, 12])
def test_identity_is_bit_exact_for_special_floats_in_all_mixtures(stops: int) -> None:
    values = torch.from_numpy(SPECIAL)
    plate = torch.cartesian_prod(values, values, values).T.reshape(3, 13, 169).contiguous()
    view = to_linear_view(plate, TO_709, 2.0**stops)
    result = carry_back(plate, view, view.clone(), from_709=FROM_709, exposure=2.0**stops)
    assert torch.equal(bits(result), bits(plate))


def test_an_edit_of_broken_pixels_is_finite() -> None:
    values = torch.from_numpy(SPECIAL)
    plate = torch.cartesian_prod(values, values, values).T.reshape(3, 13, 169).contiguous()
    view = to_linear_view(plate, TO_709, 1.0)
    result = carry_back(plate, view, view * 0.8 + 0.1, from_709=FROM_709, exposure=1.0)
    assert bool(torch.isfinite(result).all())


def test_nan_is_healed_by_the_paint_and_inf_stays_huge() -> None:
    plate = torch.full((3, 1, 2), 0.3)
    plate[:, 0, 0] = torch.nan
    plate[:, 0, 1] = torch.inf
    view = to_linear_view(plate, TO_709, 1.0)
    assert view[:, 0].T.tolist() == [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    result = carry_back(plate, view, torch.tensor([0.25, 0.9]).expand(3, 1, 2), from_709=FROM_709, exposure=1.0)
    assert result[:, 0, 0].tolist() == pytest.approx([0.25] * 3, rel=1e-5)
    assert result[:, 0, 1].tolist() == pytest.approx([0.9 * 65504] * 3, rel=1e-2)


@pytest.mark.parametrize("stops", [-5, 3])
def test_exposure_scales_the_plate_and_nothing_else(stops: int) -> None:
    before, after = model(1.0, rounds=True), model(SCENE.gain, rounds=True, spot=GHOST_LEVEL)
    factor = 2.0**stops
    darker = carry_back(SCENE.plate * factor, before, after, from_709=FROM_709, exposure=SCENE.exposure / factor)
    assert torch.equal(darker, ours(before, after) * factor)


def test_a_ramp_through_both_knees_stays_a_ramp() -> None:
    plate = torch.linspace(0, 6, 6001).expand(3, 1, -1).contiguous()
    view = to_linear_view(plate, TO_709, 1.0)
    for gain in (0.8, 0.95, 1.1):
        after = decode_display((encode_display(view) * gain).clamp(0, 1))
        result = carry_back(plate, view, after, from_709=FROM_709, exposure=1.0)
        steps = result.diff(dim=-1)
        assert float(steps.min()) > 0
        assert float(steps.max()) < 3.5 * 1e-3


def test_untouched_pixels_stay_beside_touched_ones() -> None:
    before = model(1.0, rounds=False)
    after = torch.where(SCENE.spot | SCENE.green, model(SCENE.gain, rounds=False), before)
    result = ours(before, after)
    same = (before == after).all(0)
    assert 0.9 < float(same.float().mean()) < 1
    assert torch.equal(bits(result)[:, same], bits(SCENE.plate)[:, same])
    assert bool((result != SCENE.plate).any(0)[SCENE.spot].any())


def test_batches_halves_and_strides_give_the_same() -> None:
    before, after = model(1.0, rounds=False), model(SCENE.gain, rounds=False)
    expected = ours(before, after)
    half = SCENE.plate.half()
    twice = carry_back(
        torch.stack([half, half]),
        before.expand(2, -1, -1, -1),
        after.expand(2, -1, -1, -1),
        from_709=FROM_709,
        exposure=SCENE.exposure,
    )
    assert torch.equal(twice[0], expected)
    assert torch.equal(twice[1], expected)
    interleaved = half.permute(1, 2, 0).contiguous().permute(2, 0, 1)
    assert torch.equal(carry_back(interleaved, before, after, from_709=FROM_709, exposure=SCENE.exposure), expected)


def test_inputs_are_not_written_to() -> None:
    parts = SCENE.plate, model(1.0, rounds=False), model(SCENE.gain, rounds=False)
    copies = [part.clone() for part in parts]
    carry_back(*parts, from_709=FROM_709, exposure=SCENE.exposure)
    to_linear_view(parts[0], TO_709, SCENE.exposure)
    for part, copy in zip(parts, copies, strict=True):
        assert torch.equal(part, copy)


def test_the_dense_form_for_gpus_agrees() -> None:
    before, after = model(1.0, rounds=False), model(SCENE.gain, rounds=False)
    flat = [part.reshape(3, -1) for part in (SCENE.plate, before, after)]
    assert FROM_709.matrix is not None
    dense = model_view._carry_dense(*flat, FROM_709.matrix, SCENE.exposure).reshape(SCENE.plate.shape)
    torch.testing.assert_close(dense, ours(before, after), rtol=2e-6, atol=1e-7)


def test_the_dense_form_heals_and_leaves_alone_as_well() -> None:
    values = torch.from_numpy(SPECIAL)
    plate = torch.cartesian_prod(values, values, values).T.contiguous()
    view = to_linear_view(plate.unsqueeze(1), TO_709, 1.0).squeeze(1)
    assert FROM_709.matrix is not None
    same = model_view._carry_dense(plate, view, view, FROM_709.matrix, 1.0)
    assert torch.equal(bits(same), bits(plate))
    edited = model_view._carry_dense(plate, view, view * 0.8 + 0.1, FROM_709.matrix, 1.0)
    assert bool(torch.isfinite(edited).all())


def test_an_encoded_plate_is_refused() -> None:
    with pytest.raises(ColourSpaceError, match="no matrix") as caught:
        carry_back(VIEW, VIEW, VIEW, from_709=CONFIG.from_rec709("ACEScct"), exposure=1.0)
    assert "linear_twin" in (caught.value.hint or "")
