"""The fictional person: what ships is what the generator makes, and it is somebody else than the portrait."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from faceplate.demo import person
from faceplate.demo.person import PHOTOS, SCALE, encode_photo, load_person, make_person, write_person
from faceplate.demo.person_paint import Sheet, beard_density, groove, inside_distance, strokes
from faceplate.demo.person_shape import PHOTO_WINDOW, person_shape, turn, warp
from faceplate.demo.portrait import linear_to_srgb, load_portrait, mirrored_order, portrait_landmarks, read_data
from faceplate.errors import OutputError


@pytest.fixture(scope="module")
def photos() -> list[np.ndarray]:
    return make_person()


def sheet() -> Sheet:
    height, width = round(PHOTO_WINDOW.height * SCALE), round(PHOTO_WINDOW.width * SCALE)
    points = (person_shape().landmarks[:, :2] - [PHOTO_WINDOW.x0, PHOTO_WINDOW.y0]) * SCALE
    return Sheet(height, width, SCALE, points.astype(np.float32))


def procrustes(first: np.ndarray, second: np.ndarray) -> float:
    """Shape distance 0..1 after best similarity, of (N, 2) points."""
    a, b = ((p - p.mean(0)) / np.sqrt(((p - p.mean(0)) ** 2).sum()) for p in (first, second))
    return float(np.sqrt(max(0.0, 1 - np.linalg.svd(a.T @ b)[1].sum() ** 2)))


def test_the_shipped_photos_are_the_generated_ones(photos: list[np.ndarray]) -> None:
    for name, photo in zip(PHOTOS, photos, strict=True):
        shipped = cv2.imdecode(np.frombuffer(read_data(name), np.uint8), cv2.IMREAD_COLOR)[..., ::-1]
        apart = np.abs(shipped.astype(int) - encode_photo(photo).astype(int))
        # A hair may land on the neighbouring pixel where another BLAS rounds the last bit.
        assert (apart <= 1).mean() > 0.9995


def test_loading_gives_linear_light_of_the_same_size(photos: list[np.ndarray]) -> None:
    for loaded, photo in zip(load_person(), photos, strict=True):
        assert loaded.dtype == np.float32
        assert loaded.shape == photo.shape
        assert 0 <= loaded.min() <= loaded.max() <= 1
        assert np.abs(linear_to_srgb(loaded) - linear_to_srgb(photo)).mean() < 0.5 / 255


def test_the_photos_are_small_enough_to_ship_and_the_face_large_enough_to_use() -> None:
    assert sum(len(read_data(name)) for name in PHOTOS) < 1_500_000
    assert np.ptp(sheet().points[:468, 0]) > 300


def test_the_proportions_are_another_person_s() -> None:
    before, after = portrait_landmarks()[:468, :2], person_shape().landmarks[:468, :2]
    # Two photos of one person in one pose differ by less than 0.02.
    assert procrustes(before, after) > 0.035

    def relative(points: np.ndarray, a: int, b: int) -> float:
        return float(np.linalg.norm(points[a] - points[b]) / np.linalg.norm(points[33] - points[263]))

    assert relative(after, 58, 288) > 1.05 * relative(before, 58, 288), "jaw"
    assert relative(after, 129, 358) > 1.05 * relative(before, 129, 358), "nose wings"
    assert relative(after, 159, 145) < 0.9 * relative(before, 159, 145), "eye opening"
    assert relative(after, 13, 14) < 0.15 * relative(before, 13, 14), "mouth opening"


def test_the_shape_is_even_on_both_sides() -> None:
    order = mirrored_order()[:468]
    moved = person_shape().landmarks[:468, :2] - portrait_landmarks()[:468, :2]
    across = np.abs(moved[:, 0] + moved[order, 0])
    assert across.mean() < 1.0


def test_skin_is_darker_and_the_jaw_darker_still(photos: list[np.ndarray]) -> None:
    points = sheet().points
    portrait, front = load_portrait(), photos[0]

    def patch(picture: np.ndarray, at: np.ndarray, reach: int) -> np.ndarray:
        x, y = at.astype(int)
        return picture[y - reach : y + reach, x - reach : x + reach].reshape(-1, 3).mean(0)

    ours, hers = patch(front, points[50], 12), patch(portrait, portrait_landmarks()[50, :2], 3)
    assert (ours < 0.75 * hers).all()
    assert ours[2] / ours[0] < hers[2] / hers[0]
    assert patch(front, points[199], 12).mean() < 0.75 * ours.mean()
    assert patch(front, points[105] + [0, 4], 3).mean() < 0.3 * ours.mean()


def test_the_second_photo_turns_the_head_and_lights_the_side(photos: list[np.ndarray]) -> None:
    front, side = photos
    x, y = sheet().points[1].astype(int)
    template = front[y - 30 : y + 30, x - 50 : x + 50].mean(-1)
    found = cv2.matchTemplate(side.mean(-1), template, cv2.TM_CCOEFF_NORMED)
    shift = cv2.minMaxLoc(found)[3][0] - (x - 50)
    assert shift > 40
    middle = front.shape[1] // 2
    balance = [p[:, middle:].mean() / p[:, :middle].mean() for p in photos]
    assert balance[1] > 1.5 * balance[0]


def test_another_seed_gives_other_stubble_on_the_same_person(photos: list[np.ndarray]) -> None:
    other = make_person(8)[0]
    apart = np.abs(linear_to_srgb(other) - linear_to_srgb(photos[0])).mean()
    assert 0.002 < apart < 0.05


def test_warping_to_where_it_was_changes_nothing_and_points_go_where_they_are_sent() -> None:
    picture = np.zeros((100, 100, 3), np.float32)
    picture[48:52, 28:32] = 1.0
    corner = np.array([PHOTO_WINDOW.x0, PHOTO_WINDOW.y0])
    corners = np.array([[0.0, 0.0], [100, 0], [0, 100], [100, 100], [50, 10], [50, 90]]) + corner
    assert np.allclose(warp(picture, 1.0, corners, corners), picture, atol=1e-4)
    spot = np.array([[30.0, 50.0]]) + corner
    sent = warp(picture, 1.0, np.vstack([corners, spot + np.array([15, 5])]), np.vstack([corners, spot]))
    weight = np.clip(sent[..., 0], 0, None)
    rows, columns = np.mgrid[0:100, 0:100] + 0.5
    assert (columns * weight).sum() / weight.sum() == pytest.approx(45, abs=1.0)
    assert (rows * weight).sum() / weight.sum() == pytest.approx(55, abs=1.0)


def test_no_turn_is_the_same_picture() -> None:
    picture = np.random.default_rng(0).random((80, 90, 3), np.float32)
    assert np.array_equal(turn(picture, 1.0, np.array([180.0, 50.0]), 0.0), picture)


def test_stubble_grows_on_the_jaw_and_neither_on_lips_nor_brow() -> None:
    paper = sheet()
    density = beard_density(paper)

    def at(index: int) -> float:
        x, y = paper.points[index].astype(int)
        return float(density[y, x])

    assert at(199) > 0.7
    assert at(164) > 0.3
    assert min(at(172), at(397)) > 0.3
    assert max(at(13), at(16), at(9), at(1), at(50)) < 0.1


def test_a_groove_is_dark_on_its_line_with_light_below() -> None:
    paper = Sheet(80, 120, 1.0, np.zeros((478, 2), np.float32))
    layer = groove(paper, np.array([[20.0, 40.0], [60.0, 40.0], [100.0, 40.0]]), 1.5, 0.5)
    assert 0.35 < layer.max() <= 0.5
    assert abs(int(layer[:, 60].argmax()) - 40) <= 1
    assert layer[43:48, 60].min() < -0.05
    assert abs(layer[:, 5]).max() < 0.05


def test_strokes_and_distances_lie_where_they_are_drawn() -> None:
    paper = Sheet(40, 60, 1.0, np.zeros((478, 2), np.float32))
    layer = strokes(paper, np.array([[10.5, 20.5]]), np.array([[20.0, 0.0]]), np.array([0.5]))
    assert layer[20, 20] == pytest.approx(0.5, abs=0.06)
    assert layer[24, 20] == 0
    distance = inside_distance(paper, np.array([[10.0, 10.0], [50.0, 10.0], [50.0, 30.0], [10.0, 30.0]]))
    assert distance[20, 30] == pytest.approx(10, abs=1)
    assert distance[20, 2] == pytest.approx(-8, abs=1)


def test_an_unwritable_folder_is_an_output_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(person, "make_person", lambda seed: load_person())
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError):
        write_person(tmp_path / "file")
