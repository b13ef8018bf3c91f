from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faceplate.faces.measure import landmark_jitter
from faceplate.faces.smooth import fuse, local_quadratic

seeds = st.integers(0, 2**32 - 1)
lengths = st.integers(1, 40)


def made_times(random: np.random.Generator, count: int) -> np.ndarray:
    """Rising frame numbers with gaps."""
    return 1001 + np.cumsum(random.choice([1, 1, 1, 1, 4], count))


@settings(max_examples=40, deadline=None)
@given(seed=seeds, count=lengths, memory=st.floats(0, 40))
def test_a_face_at_rest_comes_back_bit_for_bit(seed: int, count: int, memory: float) -> None:
    random = np.random.default_rng(seed)
    net = np.repeat(random.normal(500, 300, (1, 7, 2)), count, axis=0)
    reliability = random.uniform(0, 1, (max(0, count - 1), 7)).round()
    flow = np.where(reliability[..., None] > 0, 0.0, 99.0) * np.ones((max(0, count - 1), 7, 2))
    confidence = random.uniform(0.1, 1, count)
    smooth = fuse(made_times(random, count), net, confidence, flow, reliability, 100.0, memory=memory)
    assert np.array_equal(smooth, net)


@settings(max_examples=40, deadline=None)
@given(seed=seeds, count=st.integers(2, 40))
def test_any_motion_that_the_flow_sees_is_kept(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    net = np.cumsum(random.normal(0, 30, (count, 5, 2)), axis=0)
    smooth = fuse(np.arange(count), net, np.ones(count), np.diff(net, axis=0), np.ones((count - 1, 5)), 100.0)
    # The stand-in for missing flow would bend it; where the flow is sure it counts for a fiftieth.
    straight = fuse(np.arange(count), net * 0, np.ones(count), net[1:] * 0, np.ones((count - 1, 5)), 100.0)
    assert np.array_equal(straight, net * 0)
    assert np.isfinite(smooth).all()


@settings(max_examples=40, deadline=None)
@given(seed=seeds, count=st.integers(4, 40), reliable=st.booleans())
def test_linear_and_quadratic_motion_is_kept(seed: int, count: int, reliable: bool) -> None:
    random = np.random.default_rng(seed)
    times = made_times(random, count)
    at = (times - times[0]).astype(float)[:, None, None]
    net = (
        random.normal(0, 300, (1, 4, 2))
        + at * random.normal(0, 9, (1, 4, 2))
        + at**2 * random.normal(0, 0.1, (1, 4, 2))
    )
    trust = np.full((count - 1, 4), float(reliable))
    smooth = fuse(times, net, np.ones(count), np.diff(net, axis=0), trust, 100.0)
    short = len(times) > 3 and min(np.sum(np.abs(times - t) <= 6) for t in times) >= 3
    if short:
        np.testing.assert_allclose(smooth, net, atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(seed=seeds, count=st.integers(2, 30))
def test_time_has_no_direction(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    times = made_times(random, count)
    net, flow = random.normal(0, 5, (count, 6, 2)), random.normal(0, 5, (count - 1, 6, 2))
    confidence, reliability = random.uniform(0.2, 1, count), random.uniform(0, 1, (count - 1, 6))
    forward = fuse(times, net, confidence, flow, reliability, 100.0)
    back = fuse(-times[::-1], net[::-1], confidence[::-1], -flow[::-1], reliability[::-1], 100.0)
    np.testing.assert_allclose(back[::-1], forward, atol=1e-9)


def test_local_quadratic_at_the_ends_has_no_bias() -> None:
    times = np.arange(30)
    values = (3.0 - 0.7 * times + 0.05 * times**2)[:, None]
    np.testing.assert_allclose(local_quadratic(times, values, np.ones(30)), values, atol=1e-9)


def test_the_tremble_of_the_net_falls_and_nothing_lags() -> None:
    random = np.random.default_rng(5)
    times = np.arange(60)
    path = np.stack([300 + 120 * np.sin(times / 6), 200 + 60 * np.cos(times / 4)], -1)
    from faceplate.faces.topology import canonical

    truth = path[:, None] + canonical()[None, :, :2] * 400
    net = truth + random.normal(0, 0.25, truth.shape)
    flow = np.diff(truth, axis=0) + random.normal(0, 0.03, (59, *truth.shape[1:]))
    before = landmark_jitter(net, truth)
    after = landmark_jitter(fuse(times, net, np.ones(60), flow, np.ones((59, 468)), 400.0), truth)
    assert before.jitter_px == pytest.approx(0.25 * np.sqrt(2), rel=0.03)
    assert after.jitter_px < 0.3 * before.jitter_px
    assert abs(after.lag_frames) < 1e-3
    assert abs(after.lag_correlation) < 0.3


def test_a_blink_is_the_nets_to_tell() -> None:
    """Lids close for four frames, by 5 % of the face; flow thinks that nothing moved."""
    net = np.zeros((30, 1, 2))
    net[13:17, 0, 1] = 20.0
    smooth = fuse(np.arange(30), net, np.ones(30), np.zeros((29, 1, 2)), np.ones((29, 1)), 400.0)
    assert smooth[13:17, 0, 1].min() > 17.0
    assert np.abs(np.delete(smooth[:, 0, 1], range(13, 17))).max() < 3.0


def test_flow_that_drifts_for_long_is_not_believed() -> None:
    net = np.zeros((40, 1, 2))
    flow = np.full((39, 1, 2), 2.0)
    smooth = fuse(np.arange(40), net, np.ones(40), flow, np.ones((39, 1)), 400.0)
    assert np.abs(smooth).max() < 1.0


def test_no_smoothing_gives_the_net_back() -> None:
    net = np.random.default_rng(0).normal(size=(9, 4, 2))
    assert np.array_equal(fuse(np.arange(9), net, np.ones(9), net[1:], np.ones((8, 4)), 1.0, memory=0), net)
