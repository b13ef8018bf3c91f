"""The demo plate: its truth, its range, its header."""

import dataclasses
from pathlib import Path

import cv2
import numpy as np
import OpenEXR
import pytest

from faceplate.demo import plate
from faceplate.demo.plate import DemoPlateSpec, landmark_transform, render_plate_frame, warp_points, write_plate
from faceplate.demo.portrait import portrait_landmarks
from faceplate.demo.still import STILL_WINDOW, film_still
from faceplate.errors import OutputError, SettingError

SMALL = DemoPlateSpec(width=480, height=270, overscan=8)


def sample(picture: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Cubic samples (N, C) at points given from the picture's corner, centre of the first pixel at 0.5."""
    at = (points - 0.5).astype(np.float32)[:, None]
    return cv2.remap(picture, at[..., 0], at[..., 1], cv2.INTER_CUBIC)[:, 0]


@pytest.mark.parametrize("number", [1001, 1012, 1036, 1048])
def test_the_truth_is_where_the_picture_is(number: int) -> None:
    spec = dataclasses.replace(SMALL, width=1920, height=1080)
    random = np.random.default_rng(number)
    points = np.vstack([portrait_landmarks()[:, :2], random.uniform([60, 20], [460, 280], (600, 2))])
    still = cv2.GaussianBlur(film_still(spec.still_scale, spec.seed), (0, 0), 2.0)
    film = cv2.GaussianBlur(plate._film(spec, number), (0, 0), 2.0)
    truth = sample(still, (points - [STILL_WINDOW.x0, STILL_WINDOW.y0]) * spec.still_scale)
    corner = [spec.windows.data.x0, spec.windows.data.y0]

    def error(dx: float, dy: float) -> float:
        return float(np.abs(sample(film, warp_points(spec, number, points) - corner + [dx, dy]) - truth).mean())

    # The best agreement lies at no shift: a parabola through shifts of one pixel has its foot there.
    for axis in ((1.0, 0.0), (0.0, 1.0)):
        left, middle, right = (error(axis[0] * s, axis[1] * s) ** 2 for s in (-1.0, 0.0, 1.0))
        assert abs(0.5 * (left - right) / (left - 2 * middle + right)) < 0.05
    assert error(0, 0) < 0.004


def test_without_a_head_turn_the_camera_is_the_whole_truth() -> None:
    spec = dataclasses.replace(SMALL, yaw_deg=0.0)
    affine = landmark_transform(spec, 1020)
    expected = portrait_landmarks()[:, :2] @ affine[:, :2].T + affine[:, 2]
    assert np.allclose(warp_points(spec, 1020, portrait_landmarks()), expected, atol=1e-4)


def test_the_head_turns_to_both_sides_while_the_set_stays() -> None:
    nose, far = np.array([[223.0, 131.0]]), np.array([[420.0, 60.0]])
    turned = []
    for number in SMALL.numbers:
        still = dataclasses.replace(SMALL, yaw_deg=0.0)
        turned.append(warp_points(SMALL, number, nose)[0] - warp_points(still, number, nose)[0])
        assert np.allclose(warp_points(SMALL, number, far), warp_points(still, number, far), atol=0.01)
    sideways = np.array(turned)[:, 0]
    assert sideways.max() > 5
    assert sideways.min() < -5
    # Positive is to the subject's left, which is to the right of the picture.
    assert np.argmax(sideways) == np.argmax([plate.head_angles(SMALL, n)[0] for n in SMALL.numbers])


def test_the_face_is_as_wide_as_a_close_up_has_it_and_stays_inside() -> None:
    spec = DemoPlateSpec()
    for number in spec.numbers:
        points = warp_points(spec, number, portrait_landmarks()[:468])
        assert 300 < np.ptp(points[:, 0]) < 420
        assert points.min() > 100
        assert (points.max(0) < [1820, 980]).all()


def test_every_frame_has_highlights_above_20_negatives_and_finite_half() -> None:
    for number in SMALL.numbers[::6]:
        pixels, windows = render_plate_frame(SMALL, number)
        assert pixels.dtype == np.float16
        assert pixels.shape == (windows.data.height, windows.data.width, 4)
        assert np.isfinite(pixels).all()
        assert pixels[..., :3].max() > 20
        assert pixels[..., :3].min() < -0.1
        assert (pixels[..., 3] == 1).all()


def test_the_sun_lifts_the_face_above_20() -> None:
    most = 0.0
    for number in SMALL.numbers[::4]:
        pixels, windows = render_plate_frame(SMALL, number)
        hull = cv2.convexHull(np.ascontiguousarray(warp_points(SMALL, number, portrait_landmarks()[:468]), np.float32))
        mask = np.zeros(pixels.shape[:2], np.uint8)
        cv2.fillConvexPoly(mask, (hull - [windows.data.x0, windows.data.y0]).astype(np.int32), 1)
        most = max(most, float(pixels[mask > 0, :3].max()))
    assert most > 20


def test_exposure_rises_by_the_stops_that_were_asked_for() -> None:
    spec = dataclasses.replace(SMALL, grain=0.0, exposure_from=0.0, exposure_to=0.0)
    ramp = dataclasses.replace(spec, exposure_from=-0.5, exposure_to=0.7)
    for number, stops in ((1001, -0.5), (1048, 0.7)):
        flat, lit = (render_plate_frame(s, number)[0][150:160, 200:210, 0].astype(np.float64) for s in (spec, ramp))
        assert np.log2(lit.mean() / flat.mean()) == pytest.approx(stops, abs=0.01)


def test_grain_changes_with_the_frame_and_the_same_frame_gives_the_same_bytes() -> None:
    first, again = (render_plate_frame(SMALL, 1005)[0] for _ in range(2))
    assert first.tobytes() == again.tobytes()
    assert first.tobytes() != render_plate_frame(dataclasses.replace(SMALL, seed=21), 1005)[0].tobytes()
    clean = dataclasses.replace(SMALL, grain=0.0)
    noise = [
        (render_plate_frame(SMALL, n)[0].astype(np.float64) - render_plate_frame(clean, n)[0])[..., 1].ravel()
        for n in (1005, 1006)
    ]
    assert abs(np.corrcoef(noise)[0, 1]) < 0.05


def test_written_frames_carry_windows_colour_and_running_timecode(tmp_path: Path) -> None:
    spec, seen = DemoPlateSpec(frames=3, first=1023, width=160, height=90, overscan=4), []
    pattern = write_plate(spec, tmp_path / "shot", on_frame=seen.append)
    assert pattern == str(tmp_path / "shot" / "demo_plate.####.exr")
    assert seen == [1023, 1024, 1025]
    for number in spec.numbers:
        with OpenEXR.File(pattern.replace("####", str(number))) as exr:
            header, pixels = dict(exr.header()), exr.channels()["RGBA"].pixels.copy()
        assert np.array_equal(pixels.view(np.uint16), render_plate_frame(spec, number)[0].view(np.uint16))
        assert [w.tolist() for w in header["dataWindow"]] == [[-4, -4], [163, 93]]
        assert [w.tolist() for w in header["displayWindow"]] == [[0, 0], [159, 89]]
        code = header["timeCode"]
        assert (code.hours, code.minutes, code.seconds, code.frame) == (1, 0, 0, number - 1023)
        assert header["colorInteropID"] == "lin_ap1_scene"
        assert header["chromaticities"] == pytest.approx((0.713, 0.293, 0.165, 0.83, 0.128, 0.044, 0.32168, 0.33767))
        assert header["framesPerSecond"] == 24
        assert header["compression"] == OpenEXR.ZIP_COMPRESSION
        assert header["nuke/input/filename"] == f"demo_plate.{number}.exr"


def test_what_cannot_be_made_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="height"):
        DemoPlateSpec(width=480, height=480)
    with pytest.raises(SettingError, match="no such frame"):
        render_plate_frame(SMALL, 1000)
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError):
        write_plate(SMALL, tmp_path / "file" / "shot")
