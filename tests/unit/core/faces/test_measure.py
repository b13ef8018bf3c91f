from __future__ import annotations

import numpy as np
import pytest

from faceplate.faces.measure import landmark_jitter
from faceplate.faces.topology import canonical

TIMES = np.arange(200)
PATH = np.stack([100 * np.sin(TIMES / 9), 40 * np.cos(TIMES / 7)], -1)


def face(path: np.ndarray, angle: np.ndarray | float = 0.0) -> np.ndarray:
    cos, sin = np.cos(angle) * np.ones(len(path)), np.sin(angle) * np.ones(len(path))
    turn = np.stack([np.stack([cos, -sin], -1), np.stack([sin, cos], -1)], -2)
    return path[:, None] + np.einsum("nij,pj->npi", turn, canonical()[:, :2] * 400.0)


def test_white_noise_is_its_own_jitter_and_flicker() -> None:
    truth = face(PATH)
    noisy = truth + np.random.default_rng(1).normal(0, 0.2, truth.shape)
    figures = landmark_jitter(noisy, truth)
    assert figures.jitter_px == pytest.approx(0.2 * np.sqrt(2), rel=0.02)
    assert figures.flicker_px == pytest.approx(0.2 * np.sqrt(2), rel=0.02)
    assert abs(figures.lag_correlation) < 0.15


def test_an_offset_fixed_to_the_face_is_no_jitter_even_when_it_turns() -> None:
    angle = TIMES / 20
    truth = face(PATH, angle)
    offset = face(np.zeros_like(PATH), angle) * 0.01
    figures = landmark_jitter(truth + offset, truth)
    assert figures.jitter_px < 1e-9
    assert figures.mean_error_px > 1


@pytest.mark.parametrize("frames", [0.5, 1.0, -1.0])
def test_a_lag_is_measured_in_frames(frames: float) -> None:
    late = np.stack([100 * np.sin((TIMES - frames) / 9), 40 * np.cos((TIMES - frames) / 7)], -1)
    figures = landmark_jitter(face(late), face(PATH))
    assert figures.lag_frames == pytest.approx(frames, rel=0.02)
    assert abs(figures.lag_correlation) > 0.95


def test_the_truth_has_no_error() -> None:
    figures = landmark_jitter(face(PATH), face(PATH))
    assert (figures.jitter_px, figures.flicker_px, figures.mean_error_px, figures.lag_frames) == (0, 0, 0, 0)
