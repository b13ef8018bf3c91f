"""Our adapters against InsightFace's own classes, on the same random nets and NASA's astronaut."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from faceplate.models.random import detectors, landmarks, recognisers
from faceplate.nets.detectors import Scrfd, YuNet
from faceplate.nets.landmarks.crops import to_picture
from faceplate.nets.landmarks.points_106 import Points106
from faceplate.nets.recognisers.arcface import ArcFace, unit
from faceplate.nets.templates import cut
from tests.support.random_nets import net_of

from .pictures import as_tensor, astronaut, write

BOX = np.array([170.3, 60.2, 282.9, 210.7], np.float32)
POINTS = np.array([[199.0, 118.0], [248.5, 115.0], [225.0, 143.0], [205.0, 170.0], [247.0, 168.0]], np.float32)


@pytest.fixture(scope="module")
def zoo() -> Any:
    return pytest.importorskip("insightface.model_zoo", reason="pip install --no-deps insightface==2.1")


def wide_picture(width: int) -> NDArray[np.uint8]:
    """(360, width, 3) of two faces; 640 px go into the net as they are."""
    face = astronaut()
    return np.ascontiguousarray(np.hstack([face, face[:, ::-1]])[20:380, 100 : 100 + width])


def scrfd_both(zoo: Any, folder: Path, seed: int, width: int) -> tuple[Any, NDArray[np.float32], NDArray[np.float32]]:
    """Our faces, and InsightFace's boxes and points, of one picture."""
    content = detectors.scrfd(seed, 0.15)
    theirs = zoo.scrfd.SCRFD(write(folder, "det_10g.onnx", content))
    theirs.prepare(-1, input_size=(640, 640))
    picture = wide_picture(width)
    adapter = Scrfd(net_of("det_10g", content))
    outputs = adapter.run(adapter.pre(as_tensor(picture), antialias=False, square=True))
    threshold = between(torch.cat([outputs[f"score_{stride}"] for stride in (8, 16, 32)], 1))
    (ours,) = adapter.post(outputs, (360, width), threshold=threshold, square=True)
    boxes, points = theirs.detect(picture[..., ::-1].copy(), det_thresh=threshold)
    return ours, boxes, points


@pytest.mark.parametrize("seed", [1, 2])
def test_scrfd_finds_what_insightface_finds(zoo: Any, tmp_path: Path, seed: int) -> None:
    ours, boxes, points = scrfd_both(zoo, tmp_path, seed, 640)
    assert len(boxes) > 30
    assert len(ours) == len(boxes)
    order = nearest(ours, boxes, points)
    np.testing.assert_allclose(ours.boxes.numpy()[order] - 0.5, boxes[:, :4], atol=0.01)
    np.testing.assert_allclose(ours.points.numpy()[order] - 0.5, points, atol=0.01)
    np.testing.assert_allclose(ours.scores.numpy()[order], boxes[:, 4], atol=1e-4)


def test_scrfd_in_a_picture_that_is_shrunk(zoo: Any, tmp_path: Path) -> None:
    """InsightFace rounds the small picture to 8 bits, which a net of random weights feels; few boxes sit at a limit."""
    ours, boxes, points = scrfd_both(zoo, tmp_path, 1, 700)
    order = nearest(ours, boxes, points)
    at = np.concatenate([ours.boxes.numpy()[order], ours.points.flatten(1).numpy()[order]], 1) - 0.5
    far = np.abs(at - np.concatenate([boxes[:, :4], points.reshape(-1, 10)], 1)).max(1)
    assert abs(len(ours) - len(boxes)) <= 0.05 * len(boxes)
    assert (far < 0.5).mean() > 0.95


def nearest(ours: Any, boxes: NDArray[np.float32], points: NDArray[np.float32]) -> NDArray[np.int64]:
    """Which of our faces lies nearest to each of theirs."""
    mine = np.concatenate([ours.boxes.numpy(), ours.points.flatten(1).numpy()], 1)
    theirs = np.concatenate([boxes[:, :4], points.reshape(-1, 10)], 1)
    return np.asarray(np.abs(theirs[:, None] - mine[None]).max(-1).argmin(1))


def between(scores: torch.Tensor, count: int = 150) -> float:
    """A threshold that about `count` cells pass, as far from the scores around it as can be."""
    ranked = scores.flatten().sort(descending=True)[0][count - 30 : count + 30]
    gap = int((ranked[:-1] - ranked[1:]).argmax())
    return float(ranked[gap] + ranked[gap + 1]) / 2


def test_yunet_finds_what_opencv_finds(tmp_path: Path) -> None:
    content = detectors.yunet(3, 0.3, -0.5)
    size = (640, 640)
    picture = cv2.resize(astronaut(), size)
    adapter = YuNet(net_of("yunet_2023mar", content))
    outputs = adapter.run(adapter.pre(as_tensor(picture)))
    both = [outputs[f"cls_{stride}"] * outputs[f"obj_{stride}"] for stride in (8, 16, 32)]
    threshold = between(torch.cat(both, 1).sqrt())
    theirs = cv2.FaceDetectorYN.create(write(tmp_path, "yunet.onnx", content), "", size, threshold, 0.3, 5000)
    _, found = theirs.detect(picture[..., ::-1].copy())
    (ours,) = adapter.post(outputs, size, threshold=threshold, overlap=0.3)
    assert found is not None
    assert len(found) > 5
    # OpenCV thins out boxes of whole pixels: a pair near the limit may fall out differently.
    assert abs(len(ours) - len(found)) <= 0.05 * len(found)
    far = np.abs(found[:, None, 4:14] - (ours.points.flatten(1).numpy() - 0.5)[None]).max(-1)
    near = far.min(1) < 0.5
    assert near.mean() > 0.9
    order = far.argmin(1)
    left_top = ours.boxes.numpy()[order, :2] - 0.5
    np.testing.assert_allclose(left_top[near], found[near, :2], atol=0.5)
    np.testing.assert_allclose(ours.scores.numpy()[order][near], found[near, 14], atol=1e-3)


def test_106_points_lie_where_insightface_puts_them(zoo: Any, tmp_path: Path) -> None:
    content = landmarks.points_106(4, 0.5)
    theirs = zoo.landmark.Landmark(write(tmp_path, "2d106det.onnx", content))
    expected = theirs.get(astronaut()[..., ::-1].copy(), Face(bbox=BOX))
    ours = Points106(net_of("2d106det", content))
    placement = ours.place(torch.from_numpy(BOX[None] + 0.5))
    crop = cut(as_tensor(astronaut())[0], placement[0], 192, antialias=False)
    points = to_picture(ours.measure(crop[None]), placement)[0].numpy()
    assert np.ptp(expected, 0).min() > 20
    np.testing.assert_allclose(points - 0.5, expected, atol=0.5)


class Face(SimpleNamespace):
    """What InsightFace writes its results into."""

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self, name, value)


@pytest.mark.parametrize("seed", [5, 6])
def test_embeddings_point_where_insightfaces_do(zoo: Any, tmp_path: Path, seed: int) -> None:
    content = recognisers.arcface(seed, 0.15)
    theirs = zoo.arcface_onnx.ArcFaceONNX(write(tmp_path, "w600k_r50.onnx", content))
    expected = theirs.get(astronaut()[..., ::-1].copy(), Face(kps=POINTS))
    ours = ArcFace(net_of("w600k_r50", content))
    crop = cut(as_tensor(astronaut())[0], ours.place(torch.from_numpy(POINTS + 0.5)), 112, antialias=False)
    (vector,) = unit(ours.embed(crop[None])).numpy()
    assert float(vector @ expected / np.linalg.norm(expected)) >= 0.9999
