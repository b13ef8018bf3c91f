"""The mesh engine: what must hold for every picture."""

from __future__ import annotations

import dataclasses
from typing import Any

import cv2
import numpy as np
import pytest
import torch

from faceplate.errors import IdentityError
from faceplate.face import FaceTexture
from faceplate.faces import rectify, topology
from faceplate.frame import Box
from faceplate.swap.base import FaceResult
from faceplate.swap.mesh.engine import MeshEngine
from faceplate.swap.mesh.prepared import Prepared

from .conftest import crop_of, enlarged, identity_of, result_of, swap

Plate = tuple[np.ndarray, np.ndarray]


def same(a: FaceResult, b: FaceResult) -> bool:
    return all(
        torch.equal(getattr(a, name), getattr(b, name)) for name in ("edited", "matte_core", "matte_occluder", "st")
    )


@pytest.mark.parametrize("settings", [{}, {"shape": 1.0}, {"keep_eyes": False, "detail": 0.0}])
def test_edited_equals_the_view_wherever_the_matte_is_zero(
    plate: Plate, stranger: Prepared, settings: dict[str, Any]
) -> None:
    crop = crop_of(*plate, **settings)
    made = swap(crop, stranger)
    outside = made.matte_core == 0
    assert 0.2 < outside.float().mean() < 0.8
    assert torch.equal(made.edited[:, outside], crop.view[:, outside])
    assert ((made.matte_core >= 0) & (made.matte_core <= 1)).all()
    assert ((made.matte_occluder >= 0) & (made.matte_occluder <= 1)).all()
    border = torch.ones_like(outside)
    border[3:-3, 3:-3] = False
    assert outside[border].all()
    changed = (made.edited - crop.view).abs().amax(0)[made.matte_core > 0.9]
    assert changed.mean() > 0.005


def test_a_texture_that_knows_nothing_changes_nothing(plate: Plate, texture: FaceTexture) -> None:
    nothing = FaceTexture(texture.colour, np.zeros_like(texture.coverage), texture.detail_px)
    crop = crop_of(*plate)
    made = swap(crop, MeshEngine().prepare(identity_of(nothing)))
    assert not made.matte_core.any()
    assert torch.equal(made.edited, crop.view)


def test_static_plate_is_bit_identical_over_frames_and_runs(plate: Plate, stranger: Prepared) -> None:
    crop = crop_of(*plate, shape=0.4)
    again = dataclasses.replace(crop, frame=77, view=crop.view.clone(), landmarks=crop.landmarks.copy())
    first = swap(crop, stranger)
    assert same(first, swap(again, stranger))
    both = MeshEngine().swap([crop, again], stranger)
    assert same(first, both[0])
    assert same(first, both[1])


def test_the_crop_itself_is_left_alone(plate: Plate, stranger: Prepared) -> None:
    crop = crop_of(*plate, shape=0.5)
    view, landmarks = crop.view.clone(), crop.landmarks.copy()
    swap(crop, stranger)
    assert torch.equal(view, crop.view)
    np.testing.assert_array_equal(landmarks, crop.landmarks)


def test_small_changes_of_the_input_make_small_changes_of_the_result(plate: Plate, stranger: Prepared) -> None:
    """Guards against flicker: no decision in the engine flips on noise."""
    crop = crop_of(*plate)
    base = result_of(crop, swap(crop, stranger))
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(crop.view.shape, generator=generator) * 1e-4
    changes = []
    for scale in (1.0, 4.0):
        near = dataclasses.replace(crop, view=crop.view + noise * scale)
        changes.append(float((result_of(near, swap(near, stranger)) - base).abs().mean()))
    assert changes[0] < 3e-4
    assert changes[1] < 6.0 * changes[0]
    shift = np.random.default_rng(0).normal(0, 0.02, (478, 1)).astype(np.float32) * np.float32([1, 1, 0])
    moves = []
    for scale in (1.0, 4.0):
        near = dataclasses.replace(crop, landmarks=crop.landmarks + shift * np.float32(scale))
        moves.append(float((result_of(near, swap(near, stranger)) - base).abs().mean()))
    assert moves[0] < 1e-3
    assert moves[1] < 6.0 * moves[0]


def test_twice_the_exposure_gives_twice_the_result(plate: Plate, stranger: Prepared) -> None:
    picture, landmarks = plate
    once, twice = crop_of(picture, landmarks, occluders=False), crop_of(2 * picture, landmarks, occluders=False)
    a, b = swap(once, stranger), swap(twice, stranger)
    assert 0.6 < float(twice.view.max()) < 0.8  # under the knee where clipped values lose their say
    torch.testing.assert_close(a.matte_core, b.matte_core)
    unclipped = (twice.view.amax(0) < 0.5) & (b.matte_core > 0.5)
    ratio = (b.edited / a.edited.clamp(min=1e-3))[:, unclipped]
    assert ratio.quantile(0.02) > 1.85
    assert ratio.quantile(0.98) < 2.15
    assert ratio.median() == pytest.approx(2.0, rel=0.02)
    assert b.facts["exposure_stops"] - a.facts["exposure_stops"] == pytest.approx(1.0, abs=0.03)


def test_the_plates_light_is_on_the_new_skin(plate: Plate, stranger: Prepared) -> None:
    """The result's low frequencies are the plate's, though the source is half as bright and of another colour."""
    crop = crop_of(*plate)
    made = swap(crop, stranger)
    weight = (made.matte_core * (1 - made.matte_occluder) > 0.95).float().numpy()
    face = made.facts["face_px"]

    def low(image: torch.Tensor) -> np.ndarray:
        planes = image.numpy().transpose(1, 2, 0) * weight[..., None]
        mean = cv2.GaussianBlur(planes, (0, 0), 0.09 * face)
        return mean / np.maximum(cv2.GaussianBlur(weight, (0, 0), 0.09 * face), 1e-3)[..., None]

    ratio = (low(made.edited) / low(crop.view))[weight > 0]
    assert abs(np.median(ratio) - 1) < 0.02
    assert np.quantile(np.abs(ratio - 1), 0.95) < 0.10
    raw = swap(crop_of(*plate, colour=0.0), stranger)
    assert np.median(np.abs(low(raw.edited) / low(crop.view) - 1)[weight > 0]) > 0.2


@pytest.mark.parametrize(("switch", "outline"), [("keep_eyes", topology.LEFT_EYE), ("keep_mouth", topology.INNER_LIPS)])
def test_kept_features_are_the_plates_own_pixels(
    plate: Plate, stranger: Prepared, switch: str, outline: tuple[int, ...]
) -> None:
    kept, given = crop_of(*plate), crop_of(*plate, **{switch: False})
    hole = np.zeros(kept.view.shape[1:], np.uint8)
    cv2.fillPoly(hole, [np.round(kept.landmarks[list(outline), :2]).astype(np.int32)], 1)
    middle = torch.from_numpy(cv2.erode(hole, np.ones((5, 5), np.uint8)) > 0)
    assert middle.sum() > 30
    result = result_of(kept, swap(kept, stranger))
    assert float((result - kept.view)[:, middle].abs().max()) < 0.02 * float(kept.view.mean())
    assert float(swap(given, stranger).matte_core[middle].min()) > 0.5


def test_closed_lips_have_no_teeth_to_give(plate: Plate, texture: FaceTexture) -> None:
    shut = topology.canonical().copy()
    for upper, lower in ((82, 87), (13, 14), (312, 317)):
        shut[[upper, lower]] = shut[[upper, lower]].mean(0)
    engine = MeshEngine()
    closed, opened = engine.prepare(identity_of(texture, shut)), engine.prepare(identity_of(texture))
    kept, given = crop_of(*plate), crop_of(*plate, keep_mouth=False)
    assert same(swap(given, closed), swap(kept, closed))
    assert [swap(given, each).facts["mouth_kept"] for each in (closed, opened)] == [1.0, 0.0]
    assert swap(kept, opened).facts["mouth_kept"] == 1.0


def test_a_lone_frame_says_that_its_matte_knows_of_no_other(plate: Plate, stranger: Prepared) -> None:
    alone = crop_of(*plate)
    assert swap(alone, stranger).facts["matte_over_time"] == 0.0
    cover = np.zeros((96, 96), np.uint8)
    cover[:, :48] = 255
    told = swap(dataclasses.replace(alone, cover=cover), stranger)
    assert told.facts["matte_over_time"] == 1.0
    u = told.st[0].numpy()
    blocked = told.matte_occluder.numpy()
    assert blocked[(u > 0.2) & (u < 0.4)].mean() > 0.97
    assert blocked[(u > 0.6) & (u < 0.8)].mean() < 0.03


def test_brows_belong_to_the_identity(plate: Plate, stranger: Prepared) -> None:
    crop = crop_of(*plate)
    core = swap(crop, stranger).matte_core.numpy()
    for brow in (topology.LEFT_BROW, topology.RIGHT_BROW):
        inner = cv2.fillConvexPoly(
            np.zeros(core.shape, np.uint8), cv2.convexHull(np.round(crop.landmarks[list(brow), :2]).astype(np.int32)), 1
        )
        assert np.quantile(core[inner > 0], 0.05) > 0.78  # 0.8 where a tail under her hair is mirrored


@pytest.mark.parametrize(("yaw", "low", "high"), [(0.0, 0.99, 1.0), (62.5, 0.45, 0.55), (75.0, 0.0, 0.0), (-90, 0, 0)])
def test_profiles_fade_to_the_plate(plate: Plate, stranger: Prepared, yaw: float, low: float, high: float) -> None:
    crop = crop_of(*plate, yaw=yaw, shape=0.5)
    made = swap(crop, stranger)
    assert low <= float(made.matte_core.max()) <= high + 1e-6
    if high == 0.0:
        assert torch.equal(made.edited, crop.view)


def test_minified_four_times_it_does_not_sparkle(photo: Plate, texture: FaceTexture) -> None:
    """A texture of fine checks on a small face is the grey that an area filter makes of it."""
    size = 512
    checks = np.indices((size, size)).sum(0) // 2 % 2
    colour = np.repeat((0.02 + 0.36 * checks)[..., None], 3, 2).astype(np.float16)
    fine = FaceTexture(colour, np.ones_like(texture.coverage), 400.0)
    picture, landmarks = enlarged(*photo, 1.0)
    crop = crop_of(picture, landmarks, colour=0.0, detail=0.0, occluders=False, keep_eyes=False, keep_mouth=False)
    made = swap(crop, MeshEngine().prepare(identity_of(fine)))
    inner = made.matte_core > 0.99
    values = made.edited[1][inner]
    assert values.mean() == pytest.approx(0.20, abs=0.01)
    assert values.std() < 0.02


def test_a_smaller_face_is_the_larger_one_area_filtered(photo: Plate, texture: FaceTexture) -> None:
    size = texture.colour.shape[0]
    noise = cv2.GaussianBlur(np.random.default_rng(3).normal(0, 1, (size, size, 3)), (0, 0), 1.0)
    colour = np.clip(0.2 + 0.15 * noise / noise.std(), 0.01, 1.0).astype(np.float16)
    prepared = MeshEngine().prepare(identity_of(FaceTexture(colour, np.ones_like(texture.coverage), 256.0)))
    raw = {"colour": 0.0, "detail": 0.0, "occluders": False, "keep_eyes": False, "keep_mouth": False}
    made = []
    for factor in (1.0, 4.0):
        picture, landmarks = enlarged(*photo, factor)
        whole = crop_of(picture, landmarks, **raw)
        view = torch.from_numpy(np.ascontiguousarray(picture.transpose(2, 0, 1)))
        box = Box(0, 0, view.shape[2], view.shape[1])
        made.append(swap(dataclasses.replace(whole, view=view, window=box, landmarks=landmarks), prepared))
    inner = made[0].matte_core > 0.99
    reference = torch.nn.functional.avg_pool2d(made[1].edited[None], 4)[0]
    wrong = (made[0].edited - reference)[:, inner]
    assert wrong.square().mean().sqrt() < 0.35 * (reference - reference.mean((1, 2), True))[:, inner].std()
    assert made[0].edited[:, inner].std() == pytest.approx(float(reference[:, inner].std()), rel=0.15)


def test_detail_follows_the_plates_grain(photo: Plate, stranger: Prepared) -> None:
    picture, landmarks = enlarged(*photo, 2.0)
    quiet = np.clip(picture * 0.4, 0, 0.49)
    noisy = np.clip(quiet * np.random.default_rng(2).normal(1.0, 0.10, quiet.shape), 0, 0.8).astype(np.float32)

    def fine_energy(plate: np.ndarray, detail: float) -> tuple[float, float]:
        crop = crop_of(plate, landmarks, detail=detail, occluders=False)
        made = swap(crop, stranger)
        u, v = made.st.numpy()
        cheeks = (np.abs(u - 0.29) < 0.05) & (np.abs(v - 0.48) < 0.06) & (made.matte_core.numpy() > 0.99)
        high = [
            image.numpy()[1] - cv2.GaussianBlur(image.numpy()[1], (0, 0), 1.5) for image in (made.edited, crop.view)
        ]
        return float(high[0][cheeks].std()), float(high[1][cheeks].std())

    for plate in (quiet, noisy):
        made, wanted = fine_energy(plate, 1.0)
        raw, _ = fine_energy(plate, 0.0)
        assert abs(np.log2(made / wanted)) < 0.75 * abs(np.log2(raw / wanted)) or made == pytest.approx(wanted, rel=0.3)


def test_st_is_the_canonical_uv_counted_from_the_bottom(plate: Plate, stranger: Prepared) -> None:
    crop = crop_of(*plate)
    st = swap(crop, stranger).st.numpy()
    for point in (1, 50, 280, 199, 9):
        x, y = np.floor(crop.landmarks[point, :2]).astype(int)
        expected = topology.uv()[point] * [1, -1] + [0, 1]
        np.testing.assert_allclose(st[:, y, x], expected, atol=0.02)
    assert st.min() == 0.0
    assert st.max() <= 1.0
    assert (st[:, 0, 0] == 0).all()


def test_facts(plate: Plate, stranger: Prepared) -> None:
    facts = swap(crop_of(*plate), stranger).facts
    assert facts["source_px"] == 250.0
    assert facts["face_px"] == pytest.approx(186.2, abs=0.5)
    assert 0.5 < facts["coverage"] <= 1.0
    assert 0.0 <= facts["occluded"] < 0.2


def test_anamorphic_pixels_give_the_same_face_squeezed(photo: Plate, stranger: Prepared) -> None:
    picture, landmarks = enlarged(*photo, 2.0)
    picture = picture * 0.4
    squeezed = cv2.resize(picture, None, fx=0.5, fy=1.0, interpolation=cv2.INTER_AREA)
    narrow = (landmarks * np.float32([0.5, 1.0, 0.5])).astype(np.float32)
    wide = swap(crop_of(picture, landmarks, detail=0.0), stranger)
    slim = swap(crop_of(squeezed, narrow, pixel_aspect=2.0, detail=0.0), stranger)
    assert slim.facts["face_px"] == pytest.approx(wide.facts["face_px"], rel=0.01)
    assert slim.facts["exposure_stops"] == pytest.approx(wide.facts["exposure_stops"], abs=0.05)
    area = 2.0 * float(slim.matte_core.sum()) / float(wide.matte_core.sum())
    assert area == pytest.approx(1.0, abs=0.05)


def test_a_face_half_outside_the_plate_is_worked_on_as_far_as_it_is_there(plate: Plate, stranger: Prepared) -> None:
    picture, landmarks = plate
    cut = int(landmarks[1, 0])
    part = crop_of(picture[:, cut:], landmarks - np.float32([cut, 0, 0]))
    made = swap(part, stranger)
    whole = swap(crop_of(picture, landmarks), stranger)
    assert made.edited.shape == part.view.shape
    # the edge of the raster is no edge of the face
    assert float(made.matte_core[:, 0].max()) > 0.95
    assert float(made.matte_core.sum()) == pytest.approx(0.5 * float(whole.matte_core.sum()), rel=0.15)


def test_a_face_wholly_outside_its_crop_leaves_it(plate: Plate, stranger: Prepared) -> None:
    crop = crop_of(*plate)
    away = dataclasses.replace(crop, landmarks=crop.landmarks + np.float32([5000, 0, 0]))
    made = swap(away, stranger)
    assert torch.equal(made.edited, crop.view)
    assert not made.matte_core.any()


def test_another_engines_identity_is_refused(plate: Plate) -> None:
    with pytest.raises(IdentityError, match="another engine"):
        MeshEngine().swap([crop_of(*plate)], object())  # type: ignore[arg-type]


@pytest.mark.parametrize("fault", ["shape", "nan", "coverage"])
def test_unusable_textures_are_refused(texture: FaceTexture, fault: str) -> None:
    colour, coverage = texture.colour, texture.coverage
    if fault == "shape":
        colour = colour[:, :200]
    elif fault == "nan":
        colour = colour.copy()
        colour[0, 0] = np.nan
    else:
        coverage = coverage[:100]
    with pytest.raises(IdentityError):
        MeshEngine().prepare(identity_of(FaceTexture(colour, coverage, 90.0)))


def test_window_holds_the_face_and_more_for_the_shape(plate: Plate) -> None:
    _, landmarks = plate
    small = crop_of(*plate).window
    large = crop_of(*plate, shape=0.5).window
    low, high = landmarks[:468, :2].min(0), landmarks[:468, :2].max(0)
    assert small.contains(Box(*np.floor(low).astype(int).tolist(), *np.ceil(high).astype(int).tolist()))
    assert large.contains(small)


def test_rendered_on_its_own_photo_the_texture_is_the_photo(photo: Plate, texture: FaceTexture) -> None:
    picture, landmarks = photo
    crop = crop_of(picture, landmarks, colour=0.0, detail=0.0, occluders=False, keep_eyes=False, keep_mouth=False)
    made = swap(crop, MeshEngine().prepare(identity_of(texture)))
    inner = made.matte_core > 0.99
    error = (made.edited - crop.view).abs().mean(0)[inner]
    assert inner.float().mean() > 0.2
    assert error.mean() < 0.03 * float(crop.view[:, inner].mean())


def test_rectified_result_shows_the_identity_and_not_the_plate(plate: Plate, texture: FaceTexture) -> None:
    """A mark of the identity lands on the spot of the plate's face where it is in UV."""
    marked = np.asarray(texture.colour, np.float32).copy()
    size = marked.shape[0]
    spot = topology.uv()[50]
    v, u = (np.mgrid[0:size, 0:size] + 0.5) / size
    marked *= np.where(np.hypot(u - spot[0], v - spot[1]) < 0.03, 0.3, 1.0)[..., None].astype(np.float32)
    engine = MeshEngine()
    clean = engine.prepare(identity_of(texture))
    dotted = engine.prepare(identity_of(FaceTexture(marked.astype(np.float16), texture.coverage, texture.detail_px)))
    crop = crop_of(*plate)
    ratio = (swap(crop, dotted).edited / swap(crop, clean).edited.clamp(min=1e-4))[1].numpy()
    flat = rectify.rectify(np.ascontiguousarray(ratio), crop.landmarks, 128)
    row, column = (spot[::-1] * 128).astype(int)
    assert flat[row, column] < 0.5
    assert flat[row, 128 - column] > 0.85


def test_a_plate_moved_by_whole_pixels_gives_the_same_face_moved(plate: Plate, stranger: Prepared) -> None:
    """No grid of the engine is tied to the raster, so that a pan does not make the face swim."""
    picture, landmarks = plate
    still = crop_of(picture, landmarks, shape=0.3)
    moved = crop_of(np.roll(picture, (5, -11), (0, 1)), landmarks + np.float32([-11, 5, 0]), shape=0.3)
    assert moved.window == Box(still.window.x0 - 11, still.window.y0 + 5, still.window.x1 - 11, still.window.y1 + 5)
    a, b = swap(still, stranger), swap(moved, stranger)
    torch.testing.assert_close(a.matte_core, b.matte_core, atol=1e-4, rtol=0)
    torch.testing.assert_close(a.edited, b.edited, atol=1e-4, rtol=1e-3)


def test_a_small_highlight_does_not_brighten_the_skin_around_it(plate: Plate, stranger: Prepared) -> None:
    picture, landmarks = plate
    lit = picture.copy()
    centre = landmarks[50, :2]
    y, x = np.mgrid[0 : lit.shape[0], 0 : lit.shape[1]] + 0.5
    away = np.hypot(x - centre[0], y - centre[1]) / 186
    lit[away < 0.04] = 1.0
    before, after = (swap(crop_of(each, landmarks, occluders=False), stranger) for each in (picture, lit))
    window = crop_of(*plate).window
    ring = torch.from_numpy(((away > 0.06) & (away < 0.10))[window.slices(Box(0, 0, 1024, 1024))])
    ratio = after.edited[:, ring].mean() / before.edited[:, ring].mean()
    assert ratio == pytest.approx(1.0, abs=0.08)


def test_a_lamp_in_front_of_the_face_stays_the_plate(plate: Plate, stranger: Prepared) -> None:
    picture, landmarks = plate
    lit = picture.copy()
    centre = landmarks[205, :2].astype(int)
    cv2.circle(lit, tuple(centre.tolist()), 14, (1.0, 1.0, 1.0), -1)
    crop = crop_of(lit, landmarks)
    made = swap(crop, stranger)
    row, column = centre[1] - crop.window.y0, centre[0] - crop.window.x0
    lamp = made.matte_occluder[row - 8 : row + 9, column - 8 : column + 9]
    assert lamp.mean() > 0.9
    assert made.matte_occluder[row - 40 : row - 30, column].max() < 0.1
