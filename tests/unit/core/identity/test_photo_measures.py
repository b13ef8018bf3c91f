"""Pose, shape, sharpness, orientation and crops."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import OpenImageIO as oiio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from faceplate.colour.spaces import ColourConfig
from faceplate.demo.portrait import load_portrait, portrait_face_width, portrait_landmarks, srgb_to_linear
from faceplate.errors import IdentityError
from faceplate.faces import rectify, topology
from faceplate.faces.pose import yaw_degrees
from faceplate.identity.photo_measures import (
    face_width,
    fit_pose,
    mean_shape,
    posed_shape,
    sharpness,
    skin_level,
)
from faceplate.identity.photo_picture import CROP_SIDE, cut_face, decode_crop, encode_crop, read_photo, upright

Image = np.ndarray


def _turned(yaw: float, pitch: float, roll: float, scale: float, x: float, y: float) -> np.ndarray:
    """The canonical face: turned to the subject's left (screen right), raised, leaned clockwise on screen."""
    turn = Rotation.from_euler("z", roll, degrees=True) * Rotation.from_euler("YX", [-yaw, -pitch], degrees=True)
    return np.asarray(topology.canonical() @ turn.as_matrix().T * scale + [x, y, 0], np.float32)


@given(
    st.floats(-80, 80),
    st.floats(-40, 40),
    st.floats(-180, 180),
    st.floats(20, 2000),
    st.floats(0, 4000),
    st.floats(0, 4000),
)
def test_pose_gives_back_the_turn_whatever_the_roll(
    yaw: float, pitch: float, roll: float, scale: float, x: float, y: float
) -> None:
    points = _turned(yaw, pitch, roll, scale, x, y)
    pose = fit_pose(points)
    assert pose.scale == pytest.approx(scale, rel=1e-3)
    assert yaw_degrees(points, 1.0) == pytest.approx(yaw, abs=0.1)
    assert np.allclose(posed_shape(points, pose), topology.canonical(), atol=5e-3)


def test_yaw_is_positive_to_the_subjects_left_and_ignores_the_roll() -> None:
    for roll in (0, 90, 180, -90):
        assert yaw_degrees(_turned(30, 0, roll, 200, 500, 500), 1.0) == pytest.approx(30, abs=0.1)
    nose = _turned(30, 0, 0, 200, 0, 0)[1] - topology.canonical()[1] * 200
    assert nose[0] > 0  # the subject's left is screen right


def test_mean_shape_has_unit_width_and_prefers_frontal_photos() -> None:
    frontal = np.asarray(topology.canonical(), np.float64)
    wide = frontal * [1.3, 1.0, 1.0]
    both = mean_shape([frontal, wide], [0.0, 0.0])
    assert both.dtype == np.float32
    assert float(np.ptp(both[:, 0])) == pytest.approx(1.0, abs=1e-6)
    height = np.ptp(frontal[:, 1])
    assert np.ptp(both[:, 1]) == pytest.approx(height / 1.15, rel=1e-5)
    leaning = mean_shape([frontal, wide], [0.0, 75.0])
    assert np.ptp(leaning[:, 1]) == pytest.approx(height, rel=0.03)


def test_face_width_and_skin_level_of_the_portrait() -> None:
    assert face_width(portrait_landmarks()) == pytest.approx(portrait_face_width(), rel=1e-5)
    level = skin_level(np.array(load_portrait()), portrait_landmarks())
    assert 0.2 < level < 0.6
    assert skin_level(np.array(load_portrait()) * np.float32(0.25), portrait_landmarks()) == pytest.approx(level / 4)
    assert skin_level(np.zeros((512, 512, 3), np.float32), portrait_landmarks()) == 0.0


def _resized(factor: float, way: int) -> tuple[np.ndarray, np.ndarray]:
    size = round(512 * factor)
    picture = cv2.resize(np.array(load_portrait()), (size, size), interpolation=way)
    return picture, np.asarray(portrait_landmarks() * (size / 512), np.float32)


def test_sharpness_does_not_depend_on_size_or_exposure() -> None:
    sharp = sharpness(np.array(load_portrait()), portrait_landmarks())
    for factor in (0.9, 0.75, 0.6):
        assert sharpness(*_resized(factor, cv2.INTER_AREA)) == pytest.approx(sharp, rel=0.12)
    for gain in (0.05, 8.0):
        picture = np.array(load_portrait()) * np.float32(gain)
        assert sharpness(picture, portrait_landmarks()) == pytest.approx(sharp, rel=0.01)


def test_sharpness_falls_with_blur_motion_and_enlargement() -> None:
    portrait = np.array(load_portrait())
    blurred = [
        sharpness(cv2.GaussianBlur(portrait, (0, 0), sigma), portrait_landmarks()) for sigma in (0.01, 0.5, 1, 2, 4)
    ]
    assert blurred == sorted(blurred, reverse=True)
    assert blurred[0] > 0.35
    assert blurred[3] < 0.2
    streak = np.full((1, 9), 1 / 9, np.float32)
    assert sharpness(cv2.filter2D(portrait, -1, streak), portrait_landmarks()) < 0.22
    assert sharpness(cv2.filter2D(portrait, -1, streak.T), portrait_landmarks()) < 0.22
    assert sharpness(*_resized(4.0, cv2.INTER_CUBIC)) < 0.2
    assert sharpness(np.zeros_like(portrait), portrait_landmarks()) == 0.0


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_agrees_with_openimageio(orientation: int) -> None:
    picture = np.random.default_rng(3).random((5, 7, 3), np.float32)
    buffer = oiio.ImageBuf(picture)
    buffer.specmod().attribute("Orientation", orientation)
    assert np.array_equal(upright(picture, orientation), oiio.ImageBufAlgo.reorient(buffer).get_pixels(oiio.FLOAT))


@pytest.mark.parametrize("orientation", [0, 9, -1, "6", None])
def test_impossible_orientation_counts_as_upright(orientation: object) -> None:
    picture = np.random.default_rng(3).random((5, 7, 3), np.float32)
    assert np.array_equal(upright(picture, orientation), picture)


def _save(path: Path, codes: np.ndarray, **attributes: object) -> None:
    spec = oiio.ImageSpec(codes.shape[1], codes.shape[0], 3, str(codes.dtype))
    for name, value in attributes.items():
        spec.attribute(name, value)
    file = oiio.ImageOutput.create(str(path))
    assert file.open(str(path), spec)
    assert file.write_image(codes)
    assert file.close()


@pytest.fixture(name="config", scope="module")
def _config() -> ColourConfig:
    return ColourConfig.open("ocio://studio-config-v4.0.0_aces-v2.0_ocio-v2.5")


def test_a_photo_is_read_as_linear_light(tmp_path: Path, config: ColourConfig) -> None:
    codes = np.random.default_rng(1).integers(0, 256, (6, 9, 3)).astype(np.uint8)
    _save(tmp_path / "x.png", codes)
    photo = read_photo(tmp_path / "x.png", config)
    assert np.allclose(photo.linear, srgb_to_linear(codes / 255.0), atol=1e-5)
    assert photo.colour.source == "default"
    same = read_photo(tmp_path / "x.png", config, "lin_rec709_scene")
    assert np.allclose(same.linear, codes / 255.0, atol=1e-6)


def test_orientation_and_pixel_aspect_are_honoured(tmp_path: Path, config: ColourConfig) -> None:
    codes = np.zeros((40, 64, 3), np.uint8)
    codes[:8, :8] = 255
    _save(tmp_path / "x.jpg", codes, Orientation=6, Compression="jpeg:100")
    photo = read_photo(tmp_path / "x.jpg", config).linear
    assert photo.shape == (64, 40, 3)
    assert photo[:6, -6:].min() > 0.9  # the corner at the upper left of the sensor is at the upper right
    assert photo[:6, :6].max() < 0.1
    _save(tmp_path / "x.tif", codes, PixelAspectRatio=2.0)
    assert read_photo(tmp_path / "x.tif", config).linear.shape == (40, 128, 3)


@settings(max_examples=30)
@given(st.floats(0.1, 16.0), st.integers(0, 2**31))
def test_crops_survive_their_coding(brightest: float, seed: int) -> None:
    crop = np.random.default_rng(seed).random((8, 6, 3), np.float32) ** 3 * np.float32(brightest)
    png, white = encode_crop(crop)
    back = decode_crop(png, white)
    assert back.dtype == np.float32
    # half a code, times the steepest slope of the decoding
    assert np.abs(back - crop).max() <= white * (0.5 / 65535) * 2.5 + 1e-6


def test_crops_clip_only_beyond_sixteen_and_bad_ones_are_refused() -> None:
    crop = np.full((4, 4, 3), 0.18, np.float32)
    crop[0, 0] = 100.0
    back = decode_crop(*encode_crop(crop))
    assert back[0, 0, 0] == pytest.approx(16.0)
    assert back[2, 2, 1] == pytest.approx(0.18, rel=2e-3)
    with pytest.raises(IdentityError, match="cannot be decoded"):
        decode_crop(b"\x89PNG\r\n\x1a\n", 1.0)
    with pytest.raises(IdentityError, match="cannot be decoded"):
        decode_crop(cv2.imencode(".png", np.zeros((4, 4, 3), np.uint8))[1].tobytes(), 1.0)


def test_cut_face_keeps_the_face_where_its_landmarks_say() -> None:
    portrait = np.array(load_portrait())
    crop, points = cut_face(portrait, portrait_landmarks())
    assert max(crop.shape) < 300
    whole, part = (rectify.rectify(*pair, 64) for pair in ((portrait, portrait_landmarks()), (crop, points)))
    assert np.allclose(whole[rectify.coverage(64)], part[rectify.coverage(64)], atol=1e-3)


def test_a_large_face_is_brought_down_to_the_largest_crop() -> None:
    part = cv2.GaussianBlur(np.array(load_portrait()[:256, 96:352]), (0, 0), 3)
    points = np.asarray(portrait_landmarks() - [96, 0, 0], np.float32)
    large = cv2.resize(part, (3072, 3072), interpolation=cv2.INTER_LINEAR)
    crop, cut = cut_face(large, points * np.float32(12))
    assert max(crop.shape) == CROP_SIDE
    before, after = (rectify.rectify(*pair, 64)[rectify.coverage(64)] for pair in ((part, points), (crop, cut)))
    assert np.abs(before - after).max() < 0.01
