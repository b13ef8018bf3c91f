"""The warp to a net's crop and back: points, centres of pixels, averaging."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage.transform import SimilarityTransform

from faceplate.errors import ModelError
from faceplate.faces.topology import canonical
from faceplate.nets import templates

ARCFACE = np.array([(38.2946, 51.6963), (73.5318, 51.5014), (56.0252, 71.7366), (41.5493, 92.3655), (70.7299, 92.2041)])


def placement(scale: float = 0.5, angle: float = 0.0, x: float = 0.0, y: float = 0.0) -> torch.Tensor:
    a, b = scale * np.cos(np.deg2rad(angle)), scale * np.sin(np.deg2rad(angle))
    return torch.tensor([[a, -b, x], [b, a, y]], dtype=torch.float64)


def noise(height: int, width: int, channels: int = 3) -> torch.Tensor:
    made = np.random.default_rng(7).random((channels, height, width), np.float32)
    return torch.from_numpy(np.stack([cv2.GaussianBlur(plane, (0, 0), 2.0) for plane in made]))


def test_templates_have_the_relations_that_are_known_of_them():
    at = {name: np.array(points) for name, points in templates.TEMPLATES.items()}
    np.testing.assert_allclose(at["arcface_112_v2"] * 112, ARCFACE, atol=2e-6)
    np.testing.assert_allclose(at["arcface_128"] * 128, ARCFACE + np.array([8, 0]), atol=2e-6)
    v1 = [(39.730, 51.138), (72.270, 51.138), (56.0, 68.493), (42.463, 87.010), (69.537, 87.010)]
    np.testing.assert_allclose(at["arcface_112_v1"] * 112, v1, atol=1e-5)


def test_a_template_counts_from_centres_of_pixels():
    # cv2's index 38.2946 is half a pixel further from the crop's corner
    np.testing.assert_allclose(templates.template_points("arcface_112_v2", 112)[0], ARCFACE[0] + 0.5, atol=2e-6)


def test_an_unknown_template_is_said_with_those_that_there_are():
    with pytest.raises(ModelError, match="arcface_128"):
        templates.template_points("arcface_129", 128)


def test_five_points_of_a_level_face_are_level_and_in_the_order_of_the_templates():
    left, right, nose, mouth_left, mouth_right = templates.five_points(canonical() * 100).numpy()
    assert left[0] < nose[0] < right[0]
    assert mouth_left[0] < mouth_right[0]
    assert left[1] == pytest.approx(right[1], abs=0.1)
    assert left[1] < nose[1] < mouth_left[1]


def test_five_points_are_the_means_of_the_rims_by_hand():
    landmarks = np.zeros((478, 3), np.float32)
    landmarks[[33, 160, 158, 133, 153, 144], 0] = [0, 6, 12, 18, 24, 30]
    landmarks[1], landmarks[61], landmarks[291] = (1, 2, 3), (4, 5, 6), (7, 8, 9)
    np.testing.assert_allclose(templates.five_points(landmarks), [(15, 0), (0, 0), (1, 2), (4, 5), (7, 8)])


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_the_fit_equals_umeyamas(seed):
    points = np.random.default_rng(seed).normal(0, 100, (5, 2))
    known = SimilarityTransform.from_estimate(points, ARCFACE)
    found = templates.fit_similarity(torch.from_numpy(points), torch.from_numpy(ARCFACE))
    np.testing.assert_allclose(found, known.params[:2], atol=1e-9)


@given(st.floats(0.1, 8), st.floats(-180, 180), st.floats(-900, 900), st.floats(-900, 900))
@settings(max_examples=30, deadline=None)
def test_a_fit_finds_the_similarity_that_made_the_points(scale, angle, x, y):
    truth = placement(scale, angle, x, y)
    points = torch.from_numpy(np.random.default_rng(3).normal(0, 50, (2, 5, 2)))
    goal = points @ truth[:, :2].T + truth[:, 2]
    np.testing.assert_allclose(templates.fit_similarity(points, goal), truth.expand(2, 2, 3), atol=1e-8)
    there = torch.cat([truth, torch.tensor([[0, 0, 1]])])
    back = torch.cat([templates.inverted(truth), torch.tensor([[0, 0, 1]])])
    np.testing.assert_allclose(there @ back, np.eye(3), atol=1e-8)


def test_moved_and_resized_placements_bring_the_same_point_to_the_same_place():
    truth, point = placement(0.5, 30, 3, 4), torch.tensor([10.0, 20.0], dtype=torch.float64)
    expected = truth[:, :2] @ point + truth[:, 2]
    part = templates.moved(truth, 7, -5)
    np.testing.assert_allclose(part[:, :2] @ (point - torch.tensor([7.0, -5.0])) + part[:, 2], expected)
    fine = templates.resized(truth, 4)
    np.testing.assert_allclose(fine[:, :2] @ point + fine[:, 2], 4 * expected)


def test_corners_of_a_crop_by_hand():
    # half size, shifted: crop 0..10 is plate 2..22 and 4..24
    np.testing.assert_allclose(
        templates.corners(placement(0.5, 0, -1, -2), 10), [(2, 4), (22, 4), (22, 24), (2, 24)], atol=1e-9
    )


def test_a_crop_of_the_same_size_is_the_picture_to_the_bit():
    picture = noise(16, 16)
    assert torch.allclose(templates.cut(picture, placement(1.0), 16), picture, atol=1e-6)


@pytest.mark.parametrize("factor", [2, 4, 8])
def test_a_smaller_crop_is_the_mean_over_what_its_pixels_cover(factor):
    picture = noise(64, 64)
    expected = torch.nn.functional.avg_pool2d(picture, factor)
    assert torch.allclose(templates.cut(picture, placement(1 / factor), 64 // factor), expected, atol=1e-6)


def test_an_antialiased_crop_does_not_sparkle():
    fine = torch.zeros(1, 90, 90)
    fine[..., ::2] = 1.0
    plain = templates.cut(fine, placement(1 / 3), 30, antialias=False)
    smooth = templates.cut(fine, placement(1 / 3), 30)
    inner = (slice(None), slice(2, -2), slice(2, -2))
    assert plain[inner].std() > 0.3
    assert smooth[inner].std() < 0.1
    assert smooth[inner].mean() == pytest.approx(0.5, abs=0.01)


def test_without_averaging_a_crop_is_that_of_opencv():
    picture, truth = noise(60, 80), placement(0.7, 20, 5, -3)
    index = truth.numpy().copy()  # px to cv2's indices, on both sides
    index[:, 2] += index[:, :2].sum(1) * 0.5 - 0.5
    planes = np.ascontiguousarray(picture.permute(1, 2, 0).numpy())
    known = cv2.warpAffine(planes, index, (32, 32), borderMode=cv2.BORDER_REPLICATE)
    found = templates.cut(picture, truth, 32, antialias=False).permute(1, 2, 0).numpy()
    np.testing.assert_allclose(found, known, atol=2e-3)  # OpenCV's weights may be rounded to 1/32 px


@pytest.mark.parametrize("scale", [0.4, 1.0, 2.6])
def test_a_smooth_crop_comes_back_where_it_was(scale):
    y, x = torch.meshgrid(torch.arange(80.0) + 0.5, torch.arange(100.0) + 0.5, indexing="ij")
    picture = torch.stack([x, y, x + y])
    truth = placement(scale, 15, 2, 3)
    size = round(70 * scale) + 4
    crop = templates.cut(picture, truth, size)
    back = templates.put_back(crop, templates.moved(truth, 15, 15), 40, 40)
    assert torch.allclose(back, picture[:, 15:55, 15:55], atol=0.05)


def test_outside_the_picture_its_edge_goes_on():
    crop = templates.cut(torch.full((3, 8, 8), 0.25), placement(1.0, 0, 20, 20), 8)
    assert torch.equal(crop, torch.full((3, 8, 8), 0.25))


@pytest.mark.parametrize(("height", "width"), [(8, 6), (9, 6), (7, 11)])
def test_a_cpu_halves_as_any_device_does(height, width):
    picture = noise(height, width)
    assert torch.allclose(templates._half(picture), templates.half_on_any_device(picture), atol=1e-6)
