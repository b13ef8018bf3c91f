"""The comp: exact where nothing changes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from faceplate.swap.comp import compose, element, final_matte, over, stacked_mattes

ANY = hnp.arrays(np.float32, (3, 4, 5), elements=st.floats(width=32, allow_nan=True, allow_infinity=True))
FINITE = hnp.arrays(np.float32, (3, 4, 5), elements=st.floats(-1e4, 1e4, width=32))
MATTE = hnp.arrays(np.float32, (4, 5), elements=st.sampled_from([0.0, 0.25, 0.5, 1.0]).map(np.float32))


def bits(tensor: torch.Tensor) -> np.ndarray:
    return tensor.contiguous().numpy().view(np.uint32)


@given(plate=ANY, edited=ANY, matte=MATTE)
def test_plate_is_kept_bit_for_bit_where_the_matte_is_zero(
    plate: np.ndarray, edited: np.ndarray, matte: np.ndarray
) -> None:
    made = compose(torch.from_numpy(plate), torch.from_numpy(edited), torch.from_numpy(matte))
    untouched = np.broadcast_to(matte == 0, plate.shape)
    np.testing.assert_array_equal(bits(made)[untouched], plate.view(np.uint32)[untouched])


@given(plate=ANY, matte=MATTE)
def test_an_identity_edit_gives_the_plate_bit_for_bit(plate: np.ndarray, matte: np.ndarray) -> None:
    made = compose(torch.from_numpy(plate), torch.from_numpy(plate.copy()), torch.from_numpy(matte))
    np.testing.assert_array_equal(bits(made), plate.view(np.uint32))


@given(plate=FINITE, edited=FINITE, matte=MATTE)
def test_inside_it_is_the_linear_mix(plate: np.ndarray, edited: np.ndarray, matte: np.ndarray) -> None:
    made = compose(torch.from_numpy(plate), torch.from_numpy(edited), torch.from_numpy(matte)).numpy()
    expected = plate.astype(np.float64) + matte * (edited.astype(np.float64) - plate)
    np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-2)
    whole = np.broadcast_to(matte == 1, plate.shape) & (edited != plate)
    np.testing.assert_array_equal(made[whole], edited[whole])


def test_a_partial_matte_over_infinity_keeps_infinity() -> None:
    plate = torch.full((3, 1, 1), torch.inf)
    assert compose(plate, torch.ones(3, 1, 1), torch.tensor([[0.5]])).isinf().all()


def test_final_matte_multiplies_and_strength_zero_is_zero() -> None:
    core, occluder = torch.tensor([[1.0, 0.5, 1.0]]), torch.tensor([[0.0, 0.5, 1.0]])
    holdout = torch.tensor([[0.25, 0.0, 0.0]])
    made = final_matte(core, occluder, holdout, 0.8)
    torch.testing.assert_close(made, torch.tensor([[0.6, 0.2, 0.0]]))
    assert not final_matte(core, occluder, None, 0.0).any()
    assert torch.equal(core, torch.tensor([[1.0, 0.5, 1.0]]))


def test_a_holdout_that_is_no_number_keeps_the_plate() -> None:
    made = final_matte(torch.ones(1, 3), torch.zeros(1, 3), torch.tensor([[torch.nan, torch.inf, -torch.inf]]))
    assert made.tolist() == [[0.0, 0.0, 1.0]]


def test_element_is_premultiplied_and_empty_outside() -> None:
    edited = torch.tensor([[[0.5, torch.nan]]] * 3)
    made = element(edited, torch.tensor([[0.5, 0.0]]))
    assert made[:, 0, 0].tolist() == [0.25, 0.25, 0.25, 0.5]
    assert made[:, 0, 1].tolist() == [0.0, 0.0, 0.0, 0.0]


@given(mattes=st.lists(MATTE, min_size=1, max_size=4))
def test_stacked_mattes_sum_to_the_coverage_of_all(mattes: list[np.ndarray]) -> None:
    left = stacked_mattes([torch.from_numpy(matte) for matte in mattes])
    total = sum(part.numpy().astype(np.float64) for part in left)
    expected = 1.0 - np.prod([1.0 - matte.astype(np.float64) for matte in mattes], axis=0)
    np.testing.assert_allclose(total, expected, atol=1e-6)
    np.testing.assert_array_equal(left[-1].numpy(), mattes[-1])


def test_over_agrees_with_composing_one_after_the_other() -> None:
    generator = torch.Generator().manual_seed(0)
    plate, first, second = (torch.rand(3, 6, 6, generator=generator) for _ in range(3))
    matte_1, matte_2 = (torch.rand(6, 6, generator=generator) for _ in range(2))
    both = over(element(second, matte_2), element(first, matte_1))
    expected = compose(compose(plate, first, matte_1), second, matte_2)
    torch.testing.assert_close(both[:3] + plate * (1.0 - both[3:]), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("empty", [torch.zeros(4, 2, 2)])
def test_over_of_nothing_is_exact(empty: torch.Tensor) -> None:
    bottom = torch.full((4, 2, 2), torch.nan)
    assert over(empty, bottom).isnan().all()


def test_minus_zero_keeps_its_sign_where_nothing_is_added() -> None:
    plate = torch.tensor([[[-0.0, -0.0, -0.0, 0.5]]] * 3)
    edited = torch.tensor([[[-0.0, 0.3, 0.3, 0.7]]] * 3)
    made = compose(plate, edited, torch.tensor([[0.5, 0.0, 1.0, 0.5]]))
    np.testing.assert_array_equal(bits(made[:, :, :2]), bits(plate[:, :, :2]))
    torch.testing.assert_close(made[0, 0, 2:], torch.tensor([0.3, 0.6]))
