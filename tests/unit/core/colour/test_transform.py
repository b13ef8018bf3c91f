"""Conversions: torch against OCIO, range, NaN, and arrays that must not be written to."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from faceplate.colour.operators import Matrix, Range
from faceplate.colour.spaces import DEFAULT_CONFIG, ColourConfig
from faceplate.colour.transform import ColourTransform

CONFIG = ColourConfig.open(DEFAULT_CONFIG)

ON_HOST = {
    "ACEScc",
    "ADX10",
    "ADX16",
    "Apple Log",
    "CanonLog2 CinemaGamut D55",
    "CanonLog3 CinemaGamut D55",
    "Rec.2100-HLG - Display",
    "Rec.2100-PQ - Display",
    "ST2084-P3-D65 - Display",
}
"""Spaces that OCIO makes of tables: their conversions run on the host and say so."""

LOSSY = {"ACEScc": "negatives", "Apple Log": "negatives", "CanonLog3 CinemaGamut D55": "above 14.7"}
DEVICE_SPACES = [name for name in CONFIG.names if name not in ON_HOST]


def samples() -> np.ndarray:
    """(n, 3): from -10 to 65504, dense around zero and knees, channels in unlike order."""
    ramp = np.concatenate(
        [np.linspace(-10, 10, 401), np.linspace(-0.1, 0.1, 401), np.geomspace(1e-7, 65504, 401), [0.0, 0.18]]
    )
    rng = np.random.default_rng(0)
    mixed = np.stack([ramp, rng.permutation(ramp), rng.permutation(ramp)], axis=-1)
    return np.concatenate([mixed, np.repeat(ramp[:, None], 3, axis=1)]).astype(np.float32)


def planes(pixels: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(pixels.T.copy()).unsqueeze(-1)


def by_torch(transform: ColourTransform, pixels: np.ndarray) -> np.ndarray:
    return transform.torch(planes(pixels)).squeeze(-1).numpy().T


def against(found: np.ndarray, expected: np.ndarray, floor: float = 0.02) -> float:
    """The greatest error relative to the brightest channel of the pixel: a matrix cannot do better in float32."""
    size = np.maximum(np.abs(expected).max(axis=1, keepdims=True), floor)
    return float((np.abs(found - expected) / size).max())


def test_what_runs_on_the_host_says_so() -> None:
    for name in CONFIG.names:
        for transform in (CONFIG.transform(name, "ACEScg"), CONFIG.transform("ACEScg", name)):
            assert transform.on_device == (name not in ON_HOST), transform


@pytest.mark.parametrize("name", DEVICE_SPACES)
def test_torch_is_ocio(name: str) -> None:
    encode, decode = CONFIG.transform("ACEScg", name), CONFIG.transform(name, "ACEScg")
    codes = encode.numpy(samples())
    assert against(by_torch(encode, samples()), codes) < 5e-6
    # Decoding a log code of 1 multiplies one ulp of the code by the slope of the curve there.
    assert against(by_torch(decode, codes), decode.numpy(codes)) < 5e-6


@pytest.mark.parametrize("name", DEVICE_SPACES)
def test_there_and_back_keeps_negatives_and_highlights(name: str) -> None:
    encode, decode = CONFIG.transform("ACEScg", name), CONFIG.transform(name, "ACEScg")
    assert against(by_torch(decode, by_torch(encode, samples())), samples(), floor=1e-2) < 4e-5


@pytest.mark.parametrize("name", sorted(LOSSY))
def test_curves_known_to_lose_range_do(name: str) -> None:
    """As stated at the top of `spaces`; were this to change, the statement must."""
    linear = CONFIG.linear_twin(name)
    light = np.array([[-0.5, -0.5, -0.5], [0.18, 0.18, 0.18], [100, 100, 100]], dtype=np.float32)
    back = CONFIG.transform(name, linear).numpy(CONFIG.transform(linear, name).numpy(light))
    kept = np.isclose(back, light, rtol=1e-3, atol=1e-4).all(axis=1)
    assert kept[1]
    assert not kept[0]
    assert kept[2] == (LOSSY[name] == "negatives")


@pytest.mark.parametrize("name", ["ACEScg", "srgb_texture", "ACEScct", "ARRI LogC4", "ACEScc", "Apple Log"])
def test_nan_and_infinity_stay_in_their_channel(name: str) -> None:
    pixels = np.array(
        [[np.nan, 0.2, 0.3], [np.inf, np.inf, np.inf], [0.1, -np.inf, 0.2], [0.2, 0.2, 0.2]], dtype=np.float32
    )
    for transform in (CONFIG.transform("lin_rec709", name), CONFIG.transform(name, "lin_rec709")):
        for found in (transform.numpy(pixels), by_torch(transform, pixels)):
            broken = ~np.isfinite(pixels)
            assert np.array_equal(found[broken], pixels[broken], equal_nan=True)
            assert np.isfinite(found[3]).all()


@pytest.mark.parametrize("name", ["ACEScg", "srgb_texture", "ACEScc"])
def test_inputs_are_never_written_to(name: str) -> None:
    pixels = samples()
    pixels.flags.writeable = False
    before = pixels.copy()
    transform = CONFIG.transform("lin_rec709", name)
    assert not np.shares_memory(transform.numpy(pixels), pixels)
    assert np.array_equal(pixels, before)
    given = planes(before)
    copy = given.clone()
    assert transform.torch(given).data_ptr() != given.data_ptr()
    assert torch.equal(given, copy)


def test_an_identity_gives_new_arrays_too() -> None:
    transform = CONFIG.transform("ACEScg", "ACEScg")
    given = planes(samples())
    found = transform.torch(given)
    assert torch.equal(found, given)
    assert found.data_ptr() != given.data_ptr()


def test_halves_strides_and_batches() -> None:
    transform = CONFIG.transform("ACEScg", "srgb_texture")
    picture = np.random.default_rng(0).random((6, 8, 4)).astype(np.float16)
    expected = transform.numpy(picture[..., :3].astype(np.float32))
    assert expected.dtype == np.float32
    assert np.array_equal(transform.numpy(picture[..., :3]), expected)
    assert np.array_equal(transform.numpy(picture[::2, ::-1, :3]), expected[::2, ::-1])
    batch = torch.from_numpy(picture[..., :3]).permute(2, 0, 1).expand(2, 3, 6, 8)
    found = transform.torch(batch)
    assert found.shape == (2, 3, 6, 8)
    np.testing.assert_allclose(found[1].permute(1, 2, 0).numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("shape", [(4,), (2, 2), (5, 5, 4), ()])
def test_wrong_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"expected \(\.\.\., 3"):
        CONFIG.transform("ACEScg", "srgb_texture").numpy(np.zeros(shape, dtype=np.float32))


def test_empty_pictures_pass() -> None:
    transform = CONFIG.transform("ACEScg", "srgb_texture")
    assert transform.numpy(np.zeros((0, 5, 3), dtype=np.float32)).shape == (0, 5, 3)
    assert transform.torch(torch.zeros(3, 0, 5)).shape == (3, 0, 5)


def test_a_matrix_ignores_what_a_process_allows_its_products() -> None:
    transform = CONFIG.transform("ACEScg", "lin_rec709")
    assert isinstance(transform.matrix, Matrix)
    allowed = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        assert against(by_torch(transform, samples()), transform.numpy(samples())) < 5e-7
    finally:
        torch.set_float32_matmul_precision(allowed)


def test_only_a_matrix_is_a_matrix() -> None:
    assert CONFIG.transform("ACEScg", "ACEScg").matrix is not None
    assert CONFIG.transform("ACEScg", "ACEScct").matrix is None
    assert CONFIG.transform("ACEScg", "ACEScc").matrix is None


def test_a_range_scales_then_clamps() -> None:
    found = Range(2.0, 0.5, 0.0, 1.0)(torch.tensor([-1.0, 0.1, 3.0, torch.nan]))
    assert found[:3].tolist() == pytest.approx([0.0, 0.7, 1.0])
    assert bool(found[3].isnan())
