"""Detectors, landmarks, recognisers: what goes in and comes out, worked out by hand; random nets run through."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from faceplate.errors import ModelError
from faceplate.models.random import detectors, landmarks, recognisers
from faceplate.nets.base import TensorNet, Tensors
from faceplate.nets.detectors import Scrfd, YoloFace, YuNet, detector_for
from faceplate.nets.detectors.boxes import Fit, suppress
from faceplate.nets.landmarks.crops import box_placements, to_picture
from faceplate.nets.landmarks.fan import Fan, FiveTo68
from faceplate.nets.landmarks.points_106 import Points106
from faceplate.nets.recognisers.arcface import ArcFace, Converter, unit
from faceplate.nets.templates import TEMPLATES
from tests.support.random_nets import net_of

WIDTH = 0.15
RED = torch.tensor([1.0, 0.5, 0.25]).view(1, 3, 1, 1)


def red(height: int, width: int) -> torch.Tensor:
    return RED.expand(1, 3, height, width).contiguous()


@pytest.fixture(scope="module")
def scrfd() -> TensorNet:
    return net_of("det_10g", detectors.scrfd(0, WIDTH))


@pytest.fixture(scope="module")
def yolo() -> TensorNet:
    return net_of("yoloface_8n", detectors.yoloface(0, WIDTH))


@pytest.fixture(scope="module")
def yunet() -> TensorNet:
    return net_of("yunet_2023mar", detectors.yunet(0, WIDTH))


def test_fit_is_the_largest_that_goes_in() -> None:
    assert Fit.into((1080, 1920), 640) == Fit(640, 360, 640, 640, 360 / 1080)
    assert Fit.into((1080, 1920), 640, multiple=32) == Fit(640, 360, 640, 384, 360 / 1080)
    assert Fit.into((200, 100), 640, multiple=32) == Fit(320, 640, 320, 640, 3.2)


def test_scrfd_pre(scrfd: TensorNet) -> None:
    adapter = Scrfd(scrfd)
    image = adapter.pre(red(540, 960))["image"]
    assert image.shape == (1, 3, 384, 640)
    expected = [(255 * value - 127.5) / 128 for value in (1.0, 0.5, 0.25)]
    np.testing.assert_allclose(image[0, :, 100, 100], expected, atol=1e-6)
    np.testing.assert_allclose(image[0, :, 370, 100], -127.5 / 128, atol=1e-6)
    assert adapter.pre(red(540, 960), square=True)["image"].shape == (1, 3, 640, 640)


def empty_scrfd(height: int, width: int) -> Tensors:
    outputs = {}
    for stride in (8, 16, 32):
        count = 2 * (height // stride) * (width // stride)
        for kind, length in (("score", 1), ("box", 4), ("points", 10)):
            outputs[f"{kind}_{stride}"] = torch.zeros(1, count, length)
    return outputs


def test_scrfd_post(scrfd: TensorNet) -> None:
    """One face in the second anchor of row 2, column 5 at stride 16, of a picture twice the input's size."""
    outputs = empty_scrfd(384, 640)
    index = 2 * (2 * 40 + 5) + 1
    outputs["score_16"][0, index] = 0.9
    outputs["box_16"][0, index] = torch.tensor([1.0, 2.0, 3.0, 4.0])
    outputs["points_16"][0, index] = torch.tensor([0.5, 0.25] * 5)
    (faces,) = Scrfd(scrfd).post(outputs, (720, 1280))
    np.testing.assert_allclose(
        faces.boxes, [[2 * (80 - 16) + 0.5, 2 * 0 + 0.5, 2 * (80 + 48) + 0.5, 2 * (32 + 64) + 0.5]]
    )
    np.testing.assert_allclose(faces.points[0], [[2 * (80 + 8) + 0.5, 2 * (32 + 4) + 0.5]] * 5)
    np.testing.assert_allclose(faces.scores, [0.9])


def test_scrfd_of_several_pictures_is_each_alone(scrfd: TensorNet) -> None:
    pictures = torch.rand(3, 3, 120, 200, generator=torch.Generator().manual_seed(0))
    adapter = Scrfd(scrfd)
    together = adapter.detect(pictures, threshold=0.3)
    assert any(len(faces) for faces in together)
    for index, faces in enumerate(together):
        (alone,) = adapter.detect(pictures[index : index + 1], threshold=0.3)
        torch.testing.assert_close(alone.boxes, faces.boxes)
        torch.testing.assert_close(alone.points, faces.points)


def test_yoloface_pre_and_post(yolo: TensorNet) -> None:
    adapter = YoloFace(yolo)
    image = adapter.pre(red(320, 640))["image"]
    assert image.shape == (1, 3, 640, 640)
    np.testing.assert_allclose(image[0, :, 5, 5], [1.0, 0.5, 0.25], atol=1e-6)
    assert image[0, :, 330, 5].abs().max() == 0
    faces = torch.zeros(1, 20, 8400)
    faces[0, :, 77] = torch.tensor([100.0, 80.0, 40.0, 60.0, 0.8, *([90.0, 70.0, 0.5] * 5)])
    (found,) = adapter.post({"faces": faces}, (320, 640))
    np.testing.assert_allclose(found.boxes, [[80.5, 50.5, 120.5, 110.5]])
    np.testing.assert_allclose(found.points[0], [[90.5, 70.5]] * 5)
    assert adapter.run(adapter.pre(red(64, 64)))["faces"].shape == (1, 20, 8400)


def test_yunet_pre_and_post(yunet: TensorNet) -> None:
    adapter = YuNet(yunet)
    image = adapter.pre(red(640, 640))["image"]
    np.testing.assert_allclose(image[0, :, 9, 9], [0.25 * 255, 0.5 * 255, 255.0], atol=1e-4)
    outputs = {name: torch.zeros_like(value) for name, value in adapter.run({"image": image}).items()}
    cell = 3 * 80 + 7
    outputs["cls_8"][0, cell], outputs["obj_8"][0, cell] = 0.9, 0.4
    outputs["bbox_8"][0, cell] = torch.tensor([0.5, 0.25, math.log(4.0), math.log(2.0)])
    outputs["kps_8"][0, cell] = torch.tensor([1.0, 2.0] * 5)
    (found,) = adapter.post(outputs, (640, 640))
    np.testing.assert_allclose(found.boxes, [[60 - 16 + 0.5, 26 - 8 + 0.5, 60 + 16 + 0.5, 26 + 8 + 0.5]], atol=1e-4)
    np.testing.assert_allclose(found.points[0], [[56 + 8 + 0.5, 24 + 16 + 0.5]] * 5)
    np.testing.assert_allclose(found.scores, [0.6], atol=1e-6)


def test_detector_by_the_card(scrfd: TensorNet, yolo: TensorNet, yunet: TensorNet) -> None:
    assert [type(detector_for(net)) for net in (scrfd, yolo, yunet)] == [Scrfd, YoloFace, YuNet]
    with pytest.raises(ModelError, match="cannot be used as recogniser"):
        detector_for(net_of("w600k_r50", recognisers.arcface(0, 0.05)))


def test_the_less_sure_of_two_boxes_goes() -> None:
    boxes = torch.tensor([[0.0, 0, 9, 9], [1.0, 0, 10, 9], [9.0, 9, 18, 18], [0.0, 0, 4, 9]])
    # 9 of 11 columns are shared by the first two; the last is half of the first.
    assert suppress(boxes, 0.4).tolist() == [0, 2]
    assert suppress(boxes, 0.6).tolist() == [0, 2, 3]
    assert suppress(boxes[:0], 0.4).tolist() == []


def test_box_placement_turns_the_head_upright() -> None:
    boxes = torch.tensor([[100.0, 50.0, 200.0, 150.0]])
    placement = box_placements(boxes, 256, 195, 90.0)
    down = to_picture(torch.tensor([[[128.0, 128.0], [128.0, 128.0 + 195 / 2]]]), placement)[0]
    np.testing.assert_allclose(down[0], [150, 100], atol=1e-4)
    # A head turned clockwise by a quarter has its chin on the left.
    np.testing.assert_allclose(down[1], [100, 100], atol=1e-4)


def test_fan_pre_and_post() -> None:
    adapter = Fan(net_of("2dfan4", landmarks.fan(0, 0.05, stacks=1)))
    assert adapter.pre(red(256, 256))["image"][0, :, 3, 3].tolist() == [1.0, 0.5, 0.25]
    heatmaps = torch.zeros(1, 68, 64, 64)
    heatmaps[0, :34, 5, 5] = 0.9
    points, score = adapter.post({"points": torch.full((1, 68, 3), 10.25), "heatmaps": heatmaps})
    assert (points == 41.0).all()
    np.testing.assert_allclose(score, [0.5], atol=1e-6)
    points, score = adapter.measure(red(256, 256))
    assert points.shape == (1, 68, 2)
    assert 0 <= float(score) <= 1
    placement = adapter.place(torch.tensor([[0.0, 0.0, 100.0, 195.0]]))
    np.testing.assert_allclose(placement[0], [[1, 0, 128 - 50], [0, 1, 128 - 97.5]])


def test_68_points_follow_the_five() -> None:
    adapter = FiveTo68(net_of("fan_68_5", landmarks.five_to_68(0, WIDTH)))
    five = torch.tensor(TEMPLATES["ffhq_512"])[None] * 300 + torch.tensor([40.0, 70.0])
    np.testing.assert_allclose(adapter.pre(five)["points_5"][0], TEMPLATES["ffhq_512"], atol=1e-6)
    unit_points = torch.rand(1, 68, 2, generator=torch.Generator().manual_seed(1))
    expected = unit_points * 300 + torch.tensor([40.0, 70.0])
    torch.testing.assert_close(adapter.post({"points_68": unit_points}, five), expected, atol=1e-3, rtol=0)
    assert adapter.guess(five).shape == (1, 68, 2)


def test_106_points_pre_and_post() -> None:
    adapter = Points106(net_of("2d106det", landmarks.points_106(0, WIDTH)))
    np.testing.assert_allclose(adapter.pre(red(192, 192))["image"][0, :, 0, 0], [255, 127.5, 63.75], atol=1e-4)
    points = adapter.post({"points": torch.tensor([[-1.0, 1.0] * 106])})
    assert (points == torch.tensor([0.5, 192.5])).all()
    placement = adapter.place(torch.tensor([[10.5, 20.5, 74.5, 148.5]]))
    np.testing.assert_allclose(placement[0], [[1, 0, 96 - 42 + 0.5 - 0.5], [0, 1, 96 - 84]], atol=1e-9)


def test_arcface_pre_and_post() -> None:
    adapter = ArcFace(net_of("w600k_r50", recognisers.arcface(0, 0.05)))
    np.testing.assert_allclose(adapter.pre(red(112, 112))["image"][0, :, 0, 0], [1.0, 0.0, -0.5], atol=1e-6)
    assert (adapter.space, adapter.size) == ("w600k_r50", 112)
    vectors = adapter.embed(torch.rand(2, 3, 112, 112))
    assert vectors.shape == (2, 512)
    np.testing.assert_allclose(unit(vectors).norm(dim=1), 1.0, atol=1e-6)
    points = torch.tensor(
        [[38.2946, 51.6963], [73.5318, 51.5014], [56.0252, 71.7366], [41.5493, 92.3655], [70.7299, 92.2041]]
    )
    np.testing.assert_allclose(adapter.place(points + 0.5), [[1, 0, 0], [0, 1, 0]], atol=1e-4)


def test_converter_takes_its_own_space_only() -> None:
    adapter = Converter(net_of("crossface_ghost", recognisers.crossface(0, 0.05)))
    assert adapter.spaces == ("w600k_r50", "ghost")
    vectors = torch.rand(2, 512)
    assert adapter.pre(vectors, "w600k_r50")["embedding"] is vectors
    assert adapter.post({"converted": vectors}) is vectors
    assert adapter.convert(vectors, "w600k_r50").shape == (2, 512)
    with pytest.raises(ModelError, match="another recogniser"):
        adapter.convert(vectors, "glintr100")


@pytest.mark.parametrize(
    "make", [detectors.scrfd, detectors.yoloface, detectors.yunet, landmarks.points_106, recognisers.arcface]
)
def test_random_nets_have_the_same_bytes_each_time(make: object) -> None:
    assert make(3, 0.05) == make(3, 0.05)  # type: ignore[operator]
    assert make(3, 0.05) != make(4, 0.05)  # type: ignore[operator]
