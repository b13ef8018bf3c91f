"""Photos to texture: what counts as skin, how photos are merged, what is filled."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from faceplate.errors import IdentityError
from faceplate.face import FaceTexture
from faceplate.faces import rectify, topology
from faceplate.faces.zones import ZONE_SIZE, zones
from faceplate.swap.mesh.engine import MeshEngine
from faceplate.swap.mesh.prepared import stretch
from faceplate.swap.mesh.skin import skin_mask
from faceplate.swap.mesh.texture import PhotoView, build_texture

from .conftest import crop_of, enlarged, identity_of, result_of, swap

Photo = tuple[np.ndarray, np.ndarray]
HAIR = np.float32([0.10, 0.07, 0.03])


@pytest.fixture(scope="module")
def large(photo: Photo) -> Photo:
    return enlarged(*photo, 2.0)


def in_uv(mask: np.ndarray, landmarks: np.ndarray, size: int = 512) -> np.ndarray:
    return rectify.rectify(mask.astype(np.float32), landmarks, size) * rectify.coverage(size)


def painted(photo: Photo, mask: np.ndarray, colour: np.ndarray) -> np.ndarray:
    soft = cv2.GaussianBlur(mask.astype(np.float32), (0, 0), 0.8)[..., None]
    texture = 1.0 + 0.2 * np.random.default_rng(0).normal(size=mask.shape)[..., None]
    return (photo[0] * (1 - soft) + colour * np.clip(texture, 0.3, 2) * soft).astype(np.float32)


def fringe_mask(photo: Photo) -> np.ndarray:
    """Hair over the whole forehead down to a little above the brows."""
    picture, landmarks = photo
    mask = np.zeros(picture.shape[:2], np.uint8)
    low, high = landmarks[:468, :2].min(0), landmarks[:468, :2].max(0)
    brows = landmarks[[*topology.LEFT_BROW, *topology.RIGHT_BROW], 1].min()
    mask[int(low[1]) - 40 : int(brows - 0.03 * (high[0] - low[0])), int(low[0]) - 5 : int(high[0]) + 5] = 1
    return mask


def test_a_painted_fringe_does_not_land_on_the_forehead(large: Photo, plate: Photo) -> None:
    hair = fringe_mask(large)
    photo = painted(large, hair, HAIR)
    texture = build_texture([PhotoView(photo, large[1])])
    inside = in_uv(cv2.erode(hair, np.ones((7, 7), np.uint8)), large[1]) > 0.99
    assert inside.mean() > 0.05
    assert float(np.quantile(texture.coverage[inside], 0.99)) < 0.05
    crop = crop_of(*plate)
    made = swap(crop, MeshEngine().prepare(identity_of(texture)))
    forehead = made.st.numpy()
    kept = rectify_lookup(inside, forehead) & (made.st.amax(0).numpy() > 0)
    change = (result_of(crop, made) - crop.view).abs().amax(0).numpy()
    assert kept.sum() > 500
    assert np.quantile(change[kept], 0.95) < 0.01


def rectify_lookup(mask: np.ndarray, st: np.ndarray) -> np.ndarray:
    size = mask.shape[0]
    column, row = np.clip((np.stack([st[0], 1 - st[1]]) * size).astype(int), 0, size - 1)
    return mask[row, column]


def test_rims_of_glasses_are_left_out_of_the_cheeks(large: Photo) -> None:
    picture, landmarks = large
    width = float(np.ptp(landmarks[:468, 0]))
    rims = np.zeros(picture.shape[:2], np.uint8)
    for eye in (topology.LEFT_EYE, topology.RIGHT_EYE):
        centre = landmarks[list(eye), :2].mean(0)
        axes = (int(0.19 * width), int(0.15 * width))
        cv2.ellipse(rims, (int(centre[0]), int(centre[1])), axes, 0, 0, 180, 1, max(2, int(0.02 * width)))
    photo = painted(large, rims, np.float32([0.01, 0.01, 0.01]))
    mask = skin_mask(photo, landmarks)
    clean = skin_mask(picture, landmarks)
    seen = (rims > 0) & (clean > 0.95)
    assert seen.sum() > 200
    assert np.quantile(mask[seen], 0.9) < 0.15
    apart = (cv2.dilate(rims, np.ones((15, 15), np.uint8)) == 0) & (clean > 0.95)
    assert np.quantile(mask[apart], 0.05) > 0.9


def test_a_hand_on_the_cheek_is_left_out(large: Photo) -> None:
    picture, landmarks = large
    width = float(np.ptp(landmarks[:468, 0]))
    hand = np.zeros(picture.shape[:2], np.uint8)
    at = landmarks[454, :2] + [-0.02 * width, 0.35 * width]
    cv2.ellipse(hand, (int(at[0]), int(at[1])), (int(0.2 * width), int(0.5 * width)), 20, 0, 360, 1, -1)
    mask = skin_mask(painted(large, hand, np.float32([0.22, 0.09, 0.05])), landmarks)
    core = cv2.erode(hand, np.ones((9, 9), np.uint8)) > 0
    assert mask[core].mean() < 0.05
    assert mask[int(landmarks[50, 1]), int(landmarks[50, 0])] > 0.95


@pytest.mark.parametrize("light", ["dim", "side"])
def test_the_mask_does_not_depend_on_the_light(large: Photo, light: str) -> None:
    picture, landmarks = large
    across = (np.arange(picture.shape[1]) - landmarks[1, 0]) / np.ptp(landmarks[:468, 0])
    side = (0.25 + 1.0 / (1 + np.exp(-6 * across))).astype(np.float32)[None, :, None]
    lit = picture * (np.float32(0.1) if light == "dim" else side)
    before, after = skin_mask(picture, landmarks) > 0.5, skin_mask(lit, landmarks) > 0.5
    assert (before & after).sum() / (before | after).sum() > 0.85


def test_brows_eyes_and_lips_are_covered(texture: FaceTexture) -> None:
    size = texture.coverage.shape[0]
    for group in (topology.LEFT_BROW, topology.RIGHT_BROW, topology.OUTER_LIPS, topology.NOSTRILS):
        u, v = (topology.uv()[list(group)].mean(0) * size).astype(int)
        assert texture.coverage[v, u] > 0.9


def test_the_person_matte_takes_out_the_background(large: Photo) -> None:
    picture, landmarks = large
    matte = np.ones(picture.shape[:2], np.float32)
    matte[:, : int(landmarks[50, 0])] = 0.0
    mask = skin_mask(picture, landmarks, matte)
    assert mask[:, : int(landmarks[50, 0]) - 8].max() < 0.05
    assert mask[int(landmarks[280, 1]), int(landmarks[280, 0])] > 0.95


def test_the_colour_is_finite_positive_and_filled_smoothly(texture: FaceTexture) -> None:
    colour = np.asarray(texture.colour, np.float32)
    assert np.isfinite(colour).all()
    assert colour.min() >= 0
    unknown = np.asarray(texture.coverage) == 0
    assert 0.2 < unknown.mean() < 0.6
    assert colour[unknown].min() > 0.02
    steps = np.abs(np.diff(colour, axis=0)).max(-1)
    assert np.quantile(steps[unknown[1:] & unknown[:-1]], 0.99) < 0.02


def test_the_unseen_side_is_mirrored_with_less_coverage(large: Photo) -> None:
    picture, landmarks = large
    half = np.ones(picture.shape[:2], np.float32)
    half[:, int(landmarks[1, 0] + 4) :] = 0.0
    texture = build_texture([PhotoView(picture, landmarks, half)])
    colour, coverage = np.asarray(texture.colour, np.float32), np.asarray(texture.coverage, np.float32)
    size = coverage.shape[0]
    for right, left in ((50, 280), (205, 425)):
        (u, v), (mirrored, _) = (topology.uv()[[right, left]] * size).astype(int)
        assert coverage[v, u] > 0.95
        assert 0.5 < coverage[v, mirrored] <= 0.82
        np.testing.assert_allclose(colour[v, mirrored], colour[v, size - 1 - mirrored], rtol=0.15)


def test_two_photos_in_different_light_merge_without_a_seam(large: Photo) -> None:
    picture, landmarks = large
    middle = int(landmarks[1, 0])
    left, right = (np.ones(picture.shape[:2], np.float32) for _ in range(2))
    left[:, middle + 60 :] = 0.0
    right[:, : middle - 60] = 0.0
    warm = (picture * np.float32([1.5, 1.0, 0.6])).astype(np.float32)
    merged = build_texture([PhotoView(picture, landmarks, left), PhotoView(warm, landmarks, right)])
    colour = np.asarray(merged.colour, np.float32)
    size = colour.shape[0]
    row = int(topology.uv()[195][1] * size)
    band = colour[row - 4 : row + 4].mean(0)
    hue = band[:, 0] / band[:, 2]
    known = slice(int(0.25 * size), int(0.75 * size))
    plain = np.asarray(build_texture([PhotoView(picture, landmarks)]).colour, np.float32)[row - 4 : row + 4].mean(0)
    expected = plain[:, 0] / plain[:, 2]
    # one of the two lights everywhere, not both side by side
    ratio = (hue / expected)[known]
    assert ratio.max() / ratio.min() < 1.25


def test_size_follows_the_face(photo: Photo) -> None:
    assert build_texture([PhotoView(*photo)]).colour.shape == (512, 512, 3)
    texture = build_texture([PhotoView(*enlarged(*photo, 3.0))])
    assert texture.colour.shape == (1024, 1024, 3)
    assert texture.detail_px == pytest.approx(3 * 93.1, abs=0.5)


def test_faults_are_named(photo: Photo) -> None:
    picture, landmarks = photo
    with pytest.raises(IdentityError, match="at least one photo"):
        build_texture([])
    with pytest.raises(IdentityError, match="photo 2 has the wrong form"):
        build_texture([PhotoView(*photo), PhotoView(picture[..., 0], landmarks)])
    with pytest.raises(IdentityError, match="less than half"):
        build_texture([PhotoView(picture, landmarks + np.float32([400, 0, 0]))])


def test_zones_lie_where_the_mesh_says() -> None:
    made = zones()
    for name, inside, outside in (
        ("eyes", topology.RIGHT_EYE, 1),
        ("mouth", topology.INNER_LIPS, 9),
        ("features", topology.LEFT_BROW, 50),
        ("lips", (13, 14, 0, 17), 50),
        ("exposed", (10, 109, 338), 205),
    ):
        mask = getattr(made, name)
        u, v = np.minimum((topology.uv()[list(inside)].mean(0) * ZONE_SIZE).astype(int), ZONE_SIZE - 1)
        assert mask[v, u] > 0.95
        u, v = (topology.uv()[outside] * ZONE_SIZE).astype(int)
        assert mask[v, u] < 0.05
    np.testing.assert_allclose(made.eyes, made.eyes[:, ::-1], atol=0.15)
    assert 0.5 <= stretch().min() <= stretch().max() <= 2.5


def test_the_skin_along_a_fringe_is_left_out_and_brows_are_not(large: Photo) -> None:
    picture, landmarks = large
    width = float(np.ptp(landmarks[:468, 0]))
    rows = np.mgrid[0 : picture.shape[0], 0 : picture.shape[1]][0]
    hull = np.zeros(picture.shape[:2], np.uint8)
    cv2.fillConvexPoly(hull, cv2.convexHull(landmarks[:468, :2].astype(np.int32)), 1)
    fringe = landmarks[[109, 10, 338], 1].mean() + 0.02 * width
    hair = ((rows < fringe) & (cv2.dilate(hull, np.ones((61, 61), np.uint8)) > 0)).astype(np.uint8)
    mask = skin_mask(painted(large, hair, HAIR * np.float32(0.3)), landmarks)
    # on the side where her own fringe is above the painted one
    middle = np.abs(np.arange(picture.shape[1]) - landmarks[9, 0] + 0.08 * width) < 0.08 * width
    near, far = (mask[int(fringe + share * width)][middle] for share in (0.05, 0.17))
    assert near.max() < 0.05
    assert far.min() > 0.9
    x, y = landmarks[list(topology.RIGHT_BROW), :2].mean(0).astype(int)
    assert mask[y, x] > 0.9


def test_hair_that_runs_over_a_brow_is_not_taken_for_brow(large: Photo) -> None:
    picture, landmarks = large
    hair = np.zeros(picture.shape[:2], np.uint8)
    tail, temple = landmarks[[276, 300], :2].mean(0), landmarks[[251, 389, 356], :2].mean(0)
    cv2.line(hair, tuple(temple.astype(int).tolist()), tuple(tail.astype(int).tolist()), 1, 14)
    cv2.line(hair, tuple(temple.astype(int).tolist()), tuple(landmarks[332, :2].astype(int).tolist()), 1, 24)
    mask = skin_mask(painted(large, hair, HAIR * np.float32(0.5)), landmarks)
    clean = skin_mask(picture, landmarks)
    on_tail = (cv2.erode(hair, np.ones((5, 5), np.uint8)) > 0) & (clean > 0.5)  # her own fringe shades it
    assert on_tail.sum() > 40
    assert np.median(mask[on_tail]) < 0.1
    assert mask[on_tail].mean() < 0.35
    for whole in (topology.RIGHT_BROW, (336, 296, 285, 295)):
        x, y = landmarks[list(whole), :2].mean(0).astype(int)
        assert mask[y, x] > 0.9
