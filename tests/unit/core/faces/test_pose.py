from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faceplate.faces.pose import fit_similarity, from_face, to_face, yaw_degrees
from faceplate.faces.topology import canonical

FACE = np.vstack([canonical(), canonical()[:10]]).astype(float)


@settings(max_examples=30, deadline=None)
@given(
    u=st.floats(-500, 500),
    v=st.floats(-500, 500),
    scale=st.floats(20, 2000),
    angle=st.floats(-3.1, 3.1),
    aspect=st.sampled_from([1.0, 2.0, 0.5]),
)
def test_a_pose_is_found_and_undone(u: float, v: float, scale: float, angle: float, aspect: float) -> None:
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    placed = FACE * scale
    placed[:, :2] = placed[:, :2] @ turn.T + (u, v)
    placed[:, 0] /= aspect
    pose = fit_similarity(placed, aspect)
    assert np.exp(pose.log_scale) == pytest.approx(scale, rel=1e-6)
    assert abs((pose.angle - angle + np.pi) % (2 * np.pi) - np.pi) < 1e-6
    np.testing.assert_allclose(to_face(placed, pose, aspect), FACE, atol=1e-6)
    np.testing.assert_allclose(from_face(FACE, pose, aspect), placed, atol=1e-5 * scale)


@pytest.mark.parametrize("yaw", [-60, -20, 0, 35, 70])
@pytest.mark.parametrize("roll", [0, 90, -150])
def test_yaw_is_positive_to_the_subjects_left_whatever_the_roll(yaw: float, roll: float) -> None:
    """The nose of a head that turns to its left moves to screen right."""
    a, r = np.radians(yaw), np.radians(roll)
    # Forward is -z; at positive yaw it gains +x.
    turn = np.array([[np.cos(a), 0, -np.sin(a)], [0, 1, 0], [np.sin(a), 0, np.cos(a)]])
    spin = np.array([[np.cos(r), -np.sin(r), 0], [np.sin(r), np.cos(r), 0], [0, 0, 1]])
    placed = FACE @ turn.T @ spin.T * 300 + (500, 400, 0)
    if yaw > 0 and roll == 0:
        assert placed[1, 0] - placed[[234, 454], 0].mean() > 0
    assert yaw_degrees(placed, 1.0) == pytest.approx(yaw, abs=0.01)
    placed[:, 0] /= 2.0
    assert yaw_degrees(placed, 2.0) == pytest.approx(yaw, abs=0.01)
