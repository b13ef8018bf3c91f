from __future__ import annotations

import numpy as np
import pytest

from faceplate.face import Detection
from faceplate.faces.crop import roi_from_landmarks
from faceplate.faces.detect import DetectSettings, detect_faces, detect_near, detect_quick, merge_detections
from faceplate.faces.view import LinearPlateView
from faceplate.frame import Box
from tests.support.plates import SyntheticPlate, moving_plate
from tests.unit.core.faces.made import nets, view


def check_found(plate: SyntheticPlate, found: list[Detection]) -> None:
    """Each face of the plate once, at its place, with its size and turn, and nothing else."""
    assert len(found) == plate.faces
    for face in range(plate.faces):
        truth = plate.truth_landmarks(1001, face)
        centre, width = truth[:468, :2].mean(0), plate.face_width_px
        nearest = min(found, key=lambda seen: np.hypot(*(np.subtract(seen.centre, centre))))
        apart = np.subtract(nearest.centre, centre) * (plate.pixel_aspect, 1.0)
        assert np.hypot(*apart) < 0.25 * width
        assert 0.75 * width < nearest.size[1] < 1.5 * width
        turn = nearest.angle_deg - np.degrees(roi_from_landmarks(truth, plate.pixel_aspect).angle)
        assert abs((turn + 180) % 360 - 180) < 25
        assert nearest.score > 0.5


@pytest.mark.parametrize("width", [40, 90, 250, 700])
def test_faces_from_40_px_to_frame_filling(width: int) -> None:
    plate = moving_plate(1280, 720, 2, face_width_px=width, travel_px=0)
    check_found(plate, detect_faces(view(plate), nets().detector, DetectSettings()))


def test_40_px_faces_in_a_4k_frame() -> None:
    plate = moving_plate(3840, 2160, 2, face_width_px=40, faces=3, travel_px=0, grain=0)
    check_found(plate, detect_faces(view(plate), nets().detector, DetectSettings(rotations="never")))


def test_a_40_px_face_in_the_corner_of_an_8k_frame() -> None:
    pixels = np.full((4320, 7680, 3), 0.3, np.float16)
    plate = moving_plate(256, 256, 2, face_width_px=40, travel_px=0)
    pixels[4000:4256, 7400:7656] = plate.frame(1001)
    large = LinearPlateView(pixels, Box(0, 0, 7680, 4320))
    found = detect_faces(large, nets().detector, DetectSettings(rotations="never"))
    centre = np.add(plate.truth_landmarks(1001)[:468, :2].mean(0), (7400, 4000))
    assert [np.hypot(*np.subtract(seen.centre, centre)) < 10 for seen in found] == [True]


def test_twenty_faces() -> None:
    plate = moving_plate(1600, 900, 2, face_width_px=60, faces=20, travel_px=0)
    check_found(plate, detect_faces(view(plate), nets().detector, DetectSettings()))


def test_no_more_than_asked_for_and_the_best_first() -> None:
    plate = moving_plate(1280, 720, 2, face_width_px=60, faces=4, travel_px=0)
    found = detect_faces(view(plate), nets().detector, DetectSettings(max_faces=2))
    assert len(found) == 2
    assert found[0].score * found[0].size[1] >= found[1].score * found[1].size[1]


@pytest.mark.parametrize("angle", range(-150, 181, 30))
def test_any_turn_in_the_plane(angle: int) -> None:
    plate = moving_plate(512, 288, 2, face_width_px=80, angle_deg=angle, travel_px=0)
    found = detect_faces(view(plate), nets().detector, DetectSettings())
    truth = np.degrees(roi_from_landmarks(plate.truth_landmarks(1001), 1.0).angle)
    best = found[0]
    assert abs((best.angle_deg - truth + 180) % 360 - 180) < 25
    assert np.hypot(*(np.subtract(best.centre, plate.truth_landmarks(1001)[:468, :2].mean(0)))) < 20


def test_upside_down_is_not_found_when_turning_is_off() -> None:
    plate = moving_plate(512, 288, 2, face_width_px=80, angle_deg=180, travel_px=0)
    assert detect_faces(view(plate), nets().detector, DetectSettings(rotations="never")) == []


def test_a_squeezed_plate_is_looked_at_unsqueezed() -> None:
    plate = moving_plate(640, 720, 2, face_width_px=150, pixel_aspect=2.0, travel_px=0)
    check_found(plate, detect_faces(view(plate), nets().detector, DetectSettings()))


def test_overscan_moves_nothing() -> None:
    plate = moving_plate(512, 288, 2, face_width_px=80, overscan=32, travel_px=0)
    assert view(plate).origin == (-32, -32)
    check_found(plate, detect_faces(view(plate), nets().detector, DetectSettings()))


def test_the_quick_look_finds_large_faces_only() -> None:
    large, small = (moving_plate(1280, 720, 2, face_width_px=width, travel_px=0) for width in (200, 20))
    check_found(large, detect_quick(view(large), nets().detector, DetectSettings()))
    assert detect_quick(view(small), nets().detector, DetectSettings()) == []


def test_an_empty_frame_has_no_face() -> None:
    empty = LinearPlateView(np.full((288, 512, 3), 0.18, np.float16), Box(0, 0, 512, 288))
    assert detect_faces(empty, nets().detector, DetectSettings()) == []


def test_looking_near_answers_for_each_square() -> None:
    plate = moving_plate(512, 288, 2, face_width_px=80, travel_px=0)
    there = roi_from_landmarks(plate.truth_landmarks(1001), 1.0)
    nowhere = type(there)(60.0, 60.0, 60.0, 0.0)
    found = detect_near(view(plate), nets().detector, [nowhere, there], 0.5)
    assert found[0] is None
    assert found[1] is not None
    assert np.hypot(found[1].centre[0] - there.u, found[1].centre[1] - there.v) < 20


def made(x: float, size: float, score: float) -> Detection:
    points = np.array([[x - 1, 0], [x + 1, 0], [x, 1], [x, 2], [x, 0], [x, 0]], np.float32)
    return Detection((x, 0.0), (size, size), score, points, 0.0)


def test_overlapping_boxes_become_their_weighted_mean() -> None:
    merged = merge_detections([made(0, 10, 0.5), made(2, 10, 1.0), made(40, 10, 0.7)], 1.0)
    assert [seen.score for seen in merged] == [1.0, 0.7]
    assert merged[0].centre[0] == pytest.approx(4 / 3)
    np.testing.assert_allclose(merged[0].keypoints[0], [1 / 3, 0], rtol=1e-6)


def test_merging_does_not_depend_on_the_order() -> None:
    boxes = [made(x, 10, 0.5 + x / 100) for x in (0, 3, 6, 9, 30)]
    forward, back = merge_detections(boxes, 1.0), merge_detections(boxes[::-1], 1.0)
    assert [(a.centre, a.score) for a in forward] == [(b.centre, b.score) for b in back]
