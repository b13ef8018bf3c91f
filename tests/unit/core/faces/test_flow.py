from __future__ import annotations

import numpy as np

from faceplate.faces.crop import roi_from_landmarks
from faceplate.faces.flow import flow_patch, point_flow, steady
from tests.support.plates import moving_plate
from tests.unit.core.faces.made import view


def test_flow_follows_the_face_to_a_fraction_of_a_pixel() -> None:
    plate = moving_plate(640, 360, 5, face_width_px=160, motion="rotate", sweep_deg=20)
    a, b = (plate.truth_landmarks(frame).astype(float) for frame in (1001, 1002))
    patches = [flow_patch(view(plate, f), roi_from_landmarks(p, 1.0)) for f, p in ((1001, a), (1002, b))]
    # The net's guess may be off by a pixel.
    flow, reliability = point_flow(*patches, a[:, :2], b[:, :2] + (0.8, -0.6))
    error = (steady(a[:, :2], flow, reliability) - (b - a)[:, :2])[:468]
    assert np.sqrt((error**2).sum(-1).mean()) < 0.06
    assert reliability.mean() > 0.9


def test_an_unchanged_picture_has_no_flow_at_all() -> None:
    plate = moving_plate(640, 360, 2, face_width_px=160, motion="static", grain=0)
    points = plate.truth_landmarks(1001)
    patch = flow_patch(view(plate), roi_from_landmarks(points, 1.0))
    flow, reliability = point_flow(patch, patch, points[:, :2], points[:, :2])
    assert np.abs(steady(points[:, :2], flow, reliability)).max() == 0
    assert reliability.min() == 1


def test_another_picture_is_not_relied_upon() -> None:
    plate = moving_plate(640, 360, 2, face_width_px=160, motion="cut", grain=0)
    a, b = (plate.truth_landmarks(frame) for frame in plate.numbers)
    patches = [flow_patch(view(plate, f), roi_from_landmarks(p, 1.0)) for f, p in ((1001, a), (1002, b))]
    _, reliability = point_flow(*patches, a[:, :2], b[:, :2])
    assert reliability.mean() < 0.2


def test_steadying_keeps_an_affine_motion_and_evens_out_noise() -> None:
    points = moving_plate(640, 360, 2, face_width_px=160).truth_landmarks(1001)[:, :2].astype(float)
    affine = (points @ np.array([[0.02, 0.01], [-0.015, 0.03]]) + (3, -2)).astype(np.float32)
    sure = np.ones(478, np.float32)
    np.testing.assert_allclose(steady(points, affine, sure), affine, atol=1e-4)
    noisy = affine + np.random.default_rng(0).normal(0, 0.1, affine.shape).astype(np.float32)
    left = (steady(points, noisy, sure) - affine)[:468]
    assert left.std() < 0.04


def test_a_lost_point_goes_with_its_neighbours() -> None:
    points = moving_plate(640, 360, 2, face_width_px=160).truth_landmarks(1001)[:, :2].astype(float)
    flow, sure = np.full((478, 2), 2.0, np.float32), np.ones(478, np.float32)
    flow[50], sure[50] = 90.0, 0.0
    np.testing.assert_allclose(steady(points, flow, sure)[:468], 2.0, atol=0.05)
