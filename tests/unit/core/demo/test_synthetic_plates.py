"""The synthetic plates are where they say they are: the truth that other tests lean on."""

import dataclasses
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import OpenEXR
import pytest

from faceplate.demo.portrait import REC709_TO_AP1, load_portrait, luminance, portrait_landmarks
from tests.support import plates
from tests.support.plates import SyntheticPlate, moving_plate

HEAD = slice(60, 188), slice(165, 285)


def seen_from_portrait(plate: SyntheticPlate, number: int, face: int = 0) -> np.ndarray:
    """The plate brought back to portrait pixels by the truth alone."""
    affine = plate.transform(number, face).copy()
    affine[:, 2] += affine[:, :2] @ [0.5, 0.5] - 0.5
    affine[:, 2] -= [plate.data_window.x0, plate.data_window.y0]
    picture = np.nan_to_num(plate.frame(number).astype(np.float32))
    return cv2.warpAffine(picture, affine, (512, 512), flags=cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP)


def shift_px(found: np.ndarray) -> tuple[float, float]:
    """Shift in portrait px between the face and the true face."""
    truth, seen = (
        cv2.GaussianBlur(luminance(picture)[HEAD], (0, 0), 2.0)
        for picture in (load_portrait() @ REC709_TO_AP1.T, found)
    )
    criteria = (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_COUNT, 60, 1e-8)
    _, warp = cv2.findTransformECC(truth, seen, np.eye(2, 3, dtype=np.float32), cv2.MOTION_TRANSLATION, criteria)
    return float(warp[0, 2]), float(warp[1, 2])


CASES: list[dict[str, Any]] = [
    {"motion": "static"},
    {"motion": "linear"},
    {"motion": "sine"},
    {"motion": "rotate"},
    {"motion": "cut"},
    {"motion": "linear", "overscan": 16},
    {"motion": "linear", "pixel_aspect": 2.0},
    {"motion": "static", "angle_deg": 180.0},
    {"motion": "static", "angle_deg": -73.0},
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_transform_is_exact(case: dict[str, Any]) -> None:
    plate = moving_plate(560, 420, 5, face_width_px=150, grain=0.0, travel_px=90.3, **case)
    for number in (1001, 1002, 1005):
        found = seen_from_portrait(plate, number)
        assert np.hypot(*shift_px(found)) < 0.06
        truth = load_portrait()[HEAD] @ REC709_TO_AP1.T
        assert np.abs(found[HEAD] - truth).mean() < 0.012


def test_a_small_face_is_filtered_and_still_in_place() -> None:
    plate = moving_plate(400, 300, 2, face_width_px=40, grain=0.0, motion="static", angle_deg=12.0)
    assert np.hypot(*shift_px(seen_from_portrait(plate, 1001))) * 40 / 92 < 0.05


def test_landmarks_after_a_mirrored_cut_keep_their_sides() -> None:
    plate = moving_plate(640, 360, 6, face_width_px=110, motion="cut", grain=0.0)
    assert plate.cut_at == 1004
    assert np.linalg.det(plate.transform(1004)[:, :2]) < 0 < np.linalg.det(plate.transform(1003)[:, :2])
    before, after = plate.truth_landmarks(1003), plate.truth_landmarks(1004)
    assert before[33, 0] < before[263, 0]
    assert after[33, 0] < after[263, 0]
    assert np.linalg.norm(before[1] - after[1]) > 100


def test_turning_by_the_sweep_comes_back_to_the_start() -> None:
    plate = moving_plate(300, 300, 9, face_width_px=80, motion="rotate")
    assert np.allclose(plate.transform(1001), plate.transform(1009))
    half = plate.truth_landmarks(1005)
    assert half[10, 1] > half[152, 1]


def test_twenty_faces_are_twenty_faces() -> None:
    plate = moving_plate(960, 540, 1, face_width_px=50, faces=20, grain=0.0, motion="static")
    centres = np.array([plate.truth_landmarks(1001, face).mean(0)[:2] for face in range(20)])
    apart = np.linalg.norm(centres[:, None] - centres[None], axis=-1) + 1e9 * np.eye(20)
    assert apart.min() > 100
    assert (centres > 0).all()
    assert (centres < [960, 540]).all()
    for face in (0, 7, 19):
        assert np.hypot(*shift_px(seen_from_portrait(plate, 1001, face))) * 50 / 92 < 0.05


def test_anamorphic_squeezes_the_face_to_half() -> None:
    points = portrait_landmarks()
    round_, squeezed = (
        moving_plate(400, 300, 1, face_width_px=100, pixel_aspect=aspect).truth_points(1001, points)
        for aspect in (1.0, 2.0)
    )
    assert np.ptp(squeezed[:, 0]) == pytest.approx(np.ptp(round_[:, 0]) / 2)
    assert np.ptp(squeezed[:, 1]) == pytest.approx(np.ptp(round_[:, 1]))


@pytest.mark.parametrize("kind", ["microphone", "hand"])
def test_the_occluder_is_exactly_its_matte(kind: Any) -> None:
    plain = moving_plate(480, 270, 9, face_width_px=120, grain=0.0)
    occluded = plain.with_occluder(kind)
    areas = []
    for number in plain.numbers:
        matte = occluded.occluder_matte(number)
        assert 0 <= matte.min() <= matte.max() <= 1
        assert np.array_equal(occluded.frame(number)[matte == 0], plain.frame(number)[matte == 0])
        assert (occluded.frame(number)[matte == 1] != plain.frame(number)[matte == 1]).any(1).mean() > 0.95
        hull = cv2.fillConvexPoly(
            np.zeros(matte.shape, np.uint8),
            cv2.convexHull(np.ascontiguousarray(plain.truth_landmarks(number)[:468, :2])).astype(np.int32),
            1,
        )
        areas.append(float((matte * hull).sum() / hull.sum()))
    # It comes from the side, covers a good part in the middle of the shot, and leaves.
    assert areas[0] < 0.02
    assert areas[-1] < 0.12
    assert max(areas) > 0.12
    assert not plain.occluder_matte(1001).any()


def test_hostile_values_stand_where_they_are_named_and_nowhere_else() -> None:
    plain = moving_plate(480, 270, 3, face_width_px=120)
    hostile = plain.with_hostile_values()
    frame, places = hostile.frame(1002), hostile.hostile_pixels(1002)
    values = {name: frame[place].astype(np.float32) for name, place in places.items()}
    assert np.isnan(values["face_nan"]).all()
    assert np.isnan(values["wall_nan"]).all()
    assert np.isposinf(values["face_inf"]).all()
    assert np.isneginf(values["face_minus_inf"]).all()
    assert np.isposinf(values["wall_inf"]).all()
    assert (values["face_highlight"] == 150).all()
    assert (values["wall_highlight"] == 400).all()
    assert (values["face_negative"] < -0.2).all()
    assert (values["wall_negative"] == -1).all()
    changed = (frame.view(np.uint16) != plain.frame(1002).view(np.uint16)).any(-1)
    assert 0 < changed.sum() < 400
    assert plain.hostile_pixels(1002) == {}


def test_grain_is_the_same_on_every_call_and_another_in_every_frame() -> None:
    still = moving_plate(200, 160, 3, face_width_px=60, motion="static", grain=0.02)
    clean = dataclasses.replace(still, grain=0.0)
    assert np.array_equal(plates._render(still, 1001), plates._render(still, 1001))
    wall = np.s_[:20, :40, 0]
    noise = [(still.frame(n)[wall].astype(np.float64) - clean.frame(n)[wall]).ravel() for n in (1001, 1002)]
    assert abs(np.corrcoef(noise)[0, 1]) < 0.15
    signal = float(clean.frame(1001)[wall].mean())
    assert np.std(noise) == pytest.approx(0.02 * np.sqrt(signal + 0.04), rel=0.1)


def test_written_frames_read_back_bit_for_bit(tmp_path: Path) -> None:
    plate = moving_plate(96, 64, 3, face_width_px=40, pixel_aspect=2.0, overscan=4).with_hostile_values()
    assert plate.write(tmp_path / "new") == str(tmp_path / "new" / "plate.####.exr")
    for number in plate.numbers:
        with OpenEXR.File(str(tmp_path / "new" / f"plate.{number}.exr")) as exr:
            header, pixels = exr.header(), exr.channels()["RGB"].pixels
            assert pixels.dtype == np.float16
            assert np.array_equal(pixels.view(np.uint16), plate.frame(number).view(np.uint16))
            assert header["pixelAspectRatio"] == 2.0
            assert [w.tolist() for w in header["dataWindow"]] == [[-4, -4], [99, 67]]
            assert [w.tolist() for w in header["displayWindow"]] == [[0, 0], [95, 63]]
            assert (header["timeCode"].hours, header["timeCode"].frame) == (1, number % 24)


def test_as_frame_carries_windows_and_aspect() -> None:
    frame = moving_plate(96, 64, 3, face_width_px=40, pixel_aspect=2.0, overscan=4).as_frame(1002)
    assert (frame.data_window.x0, frame.data_window.x1, frame.display_window.x1) == (-4, 100, 96)
    assert (frame.pixel_aspect, frame.number, frame.colour_space) == (2.0, 1002, "ACEScg")


def test_frames_outside_the_plate_are_refused() -> None:
    with pytest.raises(IndexError):
        moving_plate(96, 64, 3, face_width_px=40).frame(1004)
