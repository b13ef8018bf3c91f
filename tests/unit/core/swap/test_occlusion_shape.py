"""What lies in front of the face stays; proportions move without touching the expression."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from faceplate.face import Appearance
from faceplate.faces import rectify, topology
from faceplate.swap.mesh.facing import facing
from faceplate.swap.mesh.prepared import Prepared
from faceplate.swap.mesh.shape import displacement, fit_similarity

from .conftest import crop_of, swap

Plate = tuple[np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def memory(plate: Plate) -> Appearance:
    """Nine frames of the plate: light, position and grain differ."""
    picture, landmarks = plate
    random = np.random.default_rng(0)
    seen = []
    for _ in range(9):
        moved = landmarks.copy()
        moved[:, :2] += random.normal(0, 0.4, (478, 2)) + random.normal(0, 0.5, 2)
        lit = picture * random.uniform(0.85, 1.15) * random.normal(1, 0.03, picture.shape)
        stops = np.log2(
            np.maximum(rectify.rectify(cv2.GaussianBlur(lit.astype(np.float32), (0, 0), 1), moved, 96), 1e-3)
        )
        seen.append(stops - stops[rectify.coverage(96)].mean(0))
    median = np.median(seen, 0)
    spread = 1.4826 * np.median(np.abs(np.array(seen) - median), 0).mean(-1)
    median[~rectify.coverage(96)] = np.nan
    return Appearance(median.astype(np.float32), spread.astype(np.float32))


def with_hand(plate: Plate) -> tuple[np.ndarray, np.ndarray]:
    """A hand of nearly the face's colour with darker edges, over the mouth and a cheek."""
    picture, landmarks = plate
    width = float(np.ptp(landmarks[:468, 0]))
    root = landmarks[1, :2] + np.array([0.2, 0.25]) * width
    mask = np.zeros(picture.shape[:2], np.float32)
    for turn in (-0.5, -0.25, 0.0, 0.25):
        tip = root + 0.5 * width * np.array([np.sin(turn), -np.cos(turn)])
        start = root + np.array([0.2 * turn * width, 0])
        cv2.line(mask, tuple(start.astype(int).tolist()), tuple(tip.astype(int).tolist()), 1.0, int(0.11 * width))
    palm = (int(root[0]), int(root[1] + 0.15 * width))
    cv2.ellipse(mask, palm, (int(0.17 * width), int(0.22 * width)), 0, 0, 360, 1.0, -1)
    mask = cv2.GaussianBlur(mask, (0, 0), 0.8)
    shade = 0.35 + 0.9 * cv2.GaussianBlur(mask, (0, 0), 0.03 * width)[..., None] ** 3
    skin = picture[int(landmarks[50, 1]), int(landmarks[50, 0])] * np.float32([0.9, 0.75, 0.65])
    return (picture * (1 - mask[..., None]) + skin * shade * mask[..., None]).astype(np.float32), mask


def test_a_hand_stays_in_front_of_the_face(plate: Plate, stranger: Prepared, memory: Appearance) -> None:
    picture, hand = with_hand(plate)
    crop = crop_of(picture, plate[1], appearance=memory)
    made = swap(crop, stranger)
    rows, columns = crop.window.slices(type(crop.window)(0, 0, picture.shape[1], picture.shape[0]))
    truth = hand[rows, columns] > 0.5
    face = made.matte_core.numpy() > 0.5
    found = made.matte_occluder.numpy() > 0.5
    overlap = (truth & found & face).sum() / ((truth | found) & face).sum()
    assert overlap > 0.75
    core = cv2.erode(truth.astype(np.uint8), np.ones((9, 9), np.uint8)) > 0
    assert made.matte_occluder.numpy()[core & face].mean() > 0.9
    away = cv2.dilate(truth.astype(np.uint8), np.ones((21, 21), np.uint8)) == 0
    middle = away & face & (made.st[1].numpy() < 0.68) & (made.st[1].numpy() > 0.1)
    assert made.matte_occluder.numpy()[middle].mean() < 0.03
    assert made.facts["occluded"] > 0.1


def test_a_face_without_anything_in_front_has_no_occluder(plate: Plate, stranger: Prepared, memory: Appearance) -> None:
    made = swap(crop_of(*plate, appearance=memory), stranger)
    middle = (made.matte_core.numpy() > 0.9) & (made.st[1].numpy() < 0.68)
    assert middle.sum() > 5000
    assert made.matte_occluder.numpy()[middle].mean() < 0.002
    assert np.quantile(made.matte_occluder.numpy()[middle], 0.99) < 0.05


@pytest.mark.parametrize("change", ["brighter", "warmer", "other side"])
def test_a_change_of_light_is_no_occluder(plate: Plate, stranger: Prepared, memory: Appearance, change: str) -> None:
    picture, landmarks = plate
    slope = np.linspace(1.5, 0.7, picture.shape[1], dtype=np.float32)[None, :, None]
    light = {"brighter": np.float32(1.9), "warmer": np.float32([1.25, 1.0, 0.7]), "other side": slope}[change]
    made = swap(crop_of((picture * light).astype(np.float32), landmarks, appearance=memory), stranger)
    middle = (made.matte_core.numpy() > 0.9) & (made.st[1].numpy() < 0.68)
    assert made.matte_occluder.numpy()[middle].mean() < 0.01


def test_the_plates_own_fringe_stays_over_her_forehead(plate: Plate, stranger: Prepared) -> None:
    made = swap(crop_of(*plate), stranger)
    u, v = made.st.numpy()
    fringe = (np.abs(u - 0.5) < 0.12) & (v > 0.90) & (v < 0.95)
    skin = (np.abs(u - 0.5) < 0.12) & (v > 0.80) & (v < 0.84)
    assert fringe.sum() > 100
    assert made.matte_occluder.numpy()[fringe].mean() > 0.6
    assert made.matte_occluder.numpy()[skin].mean() < 0.05


def test_the_switch_turns_the_occluder_off(plate: Plate, stranger: Prepared) -> None:
    assert not swap(crop_of(*plate, occluders=False), stranger).matte_occluder.any()


def moved_points(plate: Plate, shape: np.ndarray, amount: float = 1.0) -> np.ndarray:
    return plate[1][:468, :2] + displacement(plate[1], shape, amount, 1.0)


@pytest.fixture(scope="module")
def closed() -> np.ndarray:
    """A long, narrow face whose mouth is shut and whose eyes are small: all that must not come over."""
    shape = topology.canonical() * np.float32([0.85, 1.15, 1.0])
    for group in (topology.LEFT_EYE, topology.RIGHT_EYE, topology.INNER_LIPS):
        middle = shape[list(group)].mean(0)
        shape[list(group)] = middle + (shape[list(group)] - middle) * np.float32([1, 0.0, 1])
    return shape


def test_the_mouth_never_closes_and_the_eyes_keep_their_form(plate: Plate, closed: np.ndarray) -> None:
    before, after = plate[1][:468, :2], moved_points(plate, closed)
    for group in (topology.INNER_LIPS, topology.OUTER_LIPS, topology.LEFT_EYE, topology.RIGHT_EYE):
        index = list(group)
        moved = after[index] - before[index]
        np.testing.assert_allclose(moved, np.broadcast_to(moved[0], moved.shape), atol=1e-3)
    gap = before[14] - before[13]
    np.testing.assert_allclose(after[14] - after[13], gap, atol=1e-3)


def test_the_shape_moves_towards_the_identity(plate: Plate, closed: np.ndarray) -> None:
    goal = fit_similarity(closed, plate[1][:468].astype(np.float64), topology.RIGID)[:, :2]
    cheeks = [50, 280, 205, 425, 199, 175]
    before = np.linalg.norm(plate[1][cheeks, :2] - goal[cheeks], axis=1)
    after = np.linalg.norm(moved_points(plate, closed)[cheeks] - goal[cheeks], axis=1)
    assert after.mean() < 0.85 * before.mean()
    half = np.linalg.norm(moved_points(plate, closed, 0.5)[cheeks] - plate[1][cheeks, :2], axis=1)
    full = np.linalg.norm(moved_points(plate, closed)[cheeks] - plate[1][cheeks, :2], axis=1)
    np.testing.assert_allclose(half, 0.5 * full, rtol=1e-3, atol=1e-3)


def test_no_triangle_turns_over(plate: Plate, closed: np.ndarray) -> None:
    def areas(points: np.ndarray) -> np.ndarray:
        a, b, c = (points[topology.triangles()[:, corner]] for corner in range(3))
        return (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])

    before, after = areas(plate[1][:468, :2]), areas(moved_points(plate, closed))
    clear = before < -0.25
    assert (after[clear] < 0).mean() > 0.995


def test_an_identity_of_the_plates_own_shape_moves_nothing(plate: Plate) -> None:
    assert np.abs(displacement(plate[1], plate[1][:468], 1.0, 1.0)).max() < 1e-3


@pytest.mark.parametrize("yaw", [0.0, 40.0, -90.0])
def test_fit_similarity_undoes_any_pose(yaw: float) -> None:
    angle = np.deg2rad(yaw)
    turn = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    posed = topology.canonical().astype(np.float64) @ turn.T * 37.0 + [5, -3, 100]
    np.testing.assert_allclose(fit_similarity(topology.canonical(), posed, topology.RIGID), posed, atol=1e-4)


def test_facing_of_a_frontal_and_a_turned_face() -> None:
    front = facing(topology.canonical())
    assert front[[1, 50, 280, 9]].min() > 0.6
    turned = topology.canonical()[:, [2, 1, 0]] * np.float32([1, 1, -1])
    side = facing(turned)
    assert abs(side[50] - side[280]) > 0.5
