from __future__ import annotations

import numpy as np
import pytest

from faceplate.face import Detection
from faceplate.faces.crop import (
    Roi,
    blend_rois,
    carry_roi,
    roi_from_detection,
    roi_from_landmarks,
    squeeze,
    unsqueeze,
)
from faceplate.faces.landmarks import LandmarkSettings, MeshFace, locate, measure, measure_mean, put_right, same_face
from tests.support.plates import SyntheticPlate, moving_plate
from tests.unit.core.faces.made import mean_error, nets, view


def found(plate: SyntheticPlate, start: Roi) -> np.ndarray:
    face = locate(view(plate), nets().mesh, [start], LandmarkSettings())[0]
    assert face is not None
    assert face.score > 0.95
    return face.landmarks


def true_roi(plate: SyntheticPlate) -> Roi:
    return roi_from_landmarks(plate.truth_landmarks(1001), plate.pixel_aspect)


@pytest.mark.parametrize(("width", "angle"), [(40, 0), (120, 0), (120, 75), (120, 180)])
def test_the_error_is_small_beside_the_face(width: int, angle: int) -> None:
    plate = moving_plate(512, 288, 2, face_width_px=width, angle_deg=angle, travel_px=0)
    assert mean_error(found(plate, true_roi(plate)), plate.truth_landmarks(1001)) < 0.012 * width


def test_where_the_square_starts_hardly_matters() -> None:
    plate = moving_plate(512, 288, 2, face_width_px=120, travel_px=0)
    roi = true_roi(plate)
    a = found(plate, Roi(roi.u + 18, roi.v - 14, roi.side * 1.25, roi.angle + 0.3))
    b = found(plate, Roi(roi.u - 20, roi.v + 12, roi.side * 0.85, roi.angle - 0.3))
    assert mean_error(a, b) < 0.004 * 120


def test_a_squeezed_plate_gives_the_same_face() -> None:
    plate = moving_plate(320, 288, 2, face_width_px=120, pixel_aspect=2.0, travel_px=0)
    landmarks = found(plate, true_roi(plate))
    wide, truth = unsqueeze(landmarks, 2.0), unsqueeze(plate.truth_landmarks(1001), 2.0)
    assert mean_error(wide, truth) < 0.012 * 120


def test_where_no_face_is_none_is_found() -> None:
    plate = moving_plate(512, 288, 2, face_width_px=60, travel_px=0)
    there, nowhere = true_roi(plate), Roi(30.0, 250.0, 40.0, 0.0)
    results = locate(view(plate), nets().mesh, [nowhere, there, nowhere], LandmarkSettings())
    assert [result is None for result in results] == [True, False, True]


def test_same_face_goes_by_the_distance_of_the_squares() -> None:
    plate = moving_plate(512, 288, 2, face_width_px=60, faces=2, travel_px=0)
    rois = [roi_from_landmarks(plate.truth_landmarks(1001, face), 1.0) for face in range(2)]
    a, b = locate(view(plate), nets().mesh, rois, LandmarkSettings())
    assert a is not None
    assert b is not None
    assert same_face(a, a)
    assert not same_face(a, b)


def test_a_squares_matrix_puts_its_middle_at_its_centre() -> None:
    roi = Roi(100.0, 50.0, 40.0, np.pi / 2)
    matrix = roi.matrix(192, 2.0)
    np.testing.assert_allclose(matrix[:, :2] @ (96, 96) + matrix[:, 2], [50, 50], atol=1e-9)
    # A quarter turn clockwise: right in the crop is down in the plate.
    np.testing.assert_allclose(matrix[:, :2] @ (192, 96) + matrix[:, 2], [50, 70], atol=1e-9)


def test_squeeze_undoes_unsqueeze() -> None:
    points = np.array([[3.0, 4.0, 5.0]])
    assert unsqueeze(points, 2.0).tolist() == [[6, 4, 5]]
    assert squeeze(unsqueeze(points, 2.0), 2.0).tolist() == points.tolist()


def test_a_detections_square_stands_upright_on_the_eyes() -> None:
    seen = Detection((10.0, 20.0), (30.0, 40.0), 0.9, np.zeros((6, 2), np.float32), 90.0)
    assert roi_from_detection(seen, 1.0) == Roi(10.0, 20.0, 60.0, np.pi / 2)


@pytest.mark.parametrize("aspect", [1.0, 2.0])
def test_a_square_rides_on_the_flow(aspect: float) -> None:
    """Points that turn by 10 degrees, grow by 5 % and move take the square with them; one wild point without weight."""
    random = np.random.default_rng(2)
    points = random.uniform(0, 200, (60, 2))
    factor, offset = 1.05 * np.exp(1j * np.radians(10)), 30 - 12j
    after = (points * (aspect, 1.0)) @ (1, 1j) * factor + offset
    flow = np.stack([after.real / aspect, after.imag], -1) - points
    flow[7], weights = 500.0, np.ones(60)
    weights[7] = 0.0
    roi = Roi(120.0, 90.0, 80.0, 0.3)
    place = (roi.u + 1j * roi.v) * factor + offset
    moved = carry_roi(roi, points, flow, weights, aspect)
    expected = (place.real, place.imag, 84.0, 0.3 + np.radians(10))
    np.testing.assert_allclose([moved.u, moved.v, moved.side, moved.angle], expected, rtol=1e-9)


def test_blending_squares_goes_the_short_way_round() -> None:
    half = blend_rois(Roi(0, 0, 10, np.radians(170)), Roi(4, 8, 20, np.radians(-170)), 0.5)
    assert (half.u, half.v, half.side) == (2, 4, 15)
    assert half.angle == pytest.approx(np.pi)


@pytest.mark.parametrize(("angle", "aspect"), [(0, 1.0), (75, 1.0), (20, 2.0)])
def test_the_middle_square_put_right_says_what_all_squares_say(angle: int, aspect: float) -> None:
    plate = moving_plate(512, 288, 2, face_width_px=120, angle_deg=angle, pixel_aspect=aspect, travel_px=0)
    roi = true_roi(plate)
    mean = measure_mean(view(plate), nets().mesh, [roi], LandmarkSettings())[0]
    alone = measure(view(plate), nets().mesh, [roi])[0]
    assert mean is not None
    assert mean.offset is not None
    assert mean_error(alone.landmarks, mean.landmarks) > 0.1
    np.testing.assert_allclose(put_right(alone, mean.offset, aspect).landmarks, mean.landmarks, atol=1e-9)


def test_the_offset_of_the_middle_square_turns_and_grows_with_it() -> None:
    offset = np.array([[0.01, 0.0, 0.02]])
    face = MeshFace(np.zeros((1, 3)), 1.0, Roi(50.0, 60.0, 200.0, np.pi / 2))
    np.testing.assert_allclose(put_right(face, offset, 2.0).landmarks, [[0.0, 2.0, 4.0]], atol=1e-12)
    upright = MeshFace(np.zeros((1, 3)), 1.0, Roi(50.0, 60.0, 100.0, 0.0))
    np.testing.assert_allclose(put_right(upright, offset, 2.0).landmarks, [[0.5, 0.0, 2.0]], atol=1e-12)
