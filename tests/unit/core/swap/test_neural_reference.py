"""The swap and InsightFace's paste against InsightFace 2.1's own INSwapper, on the same random net and picture."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest
import torch

from faceplate.colour.model_view import decode_display, encode_display
from faceplate.frame import Box
from faceplate.job import SwapSettings
from faceplate.models.random.swappers import inswapper
from faceplate.nets.swappers.emap import last_initializer
from faceplate.nets.swappers.embedding import EmbeddingSwapper
from faceplate.nets.templates import five_points, place
from faceplate.swap.base import FaceCrop
from faceplate.swap.neural.engine import NeuralEngine
from faceplate.swap.neural.place import Crop
from faceplate.swap.neural.reference import reference_crop
from tests.support.random_nets import net_of, written
from tests.support.stand_in import somebody

insightface = pytest.importorskip("insightface.model_zoo.inswapper")


@pytest.fixture(scope="module")
def nets(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, EmbeddingSwapper]:
    content = inswapper(0.06)
    path: Path = written(tmp_path_factory.mktemp("net"), "inswapper_128", content)
    net = net_of("inswapper_128", content)
    net.load()
    return insightface.INSwapper(str(path), session=net._session), EmbeddingSwapper(net, last_initializer(path))


def picture_of(plate: tuple[np.ndarray, np.ndarray], factor: float) -> tuple[np.ndarray, np.ndarray]:
    """(H, W, 3) 8-bit RGB and landmarks, a photo at another size."""
    linear = torch.from_numpy(np.ascontiguousarray(plate[0].transpose(2, 0, 1)) * 2)
    codes = encode_display(linear.clamp(0, 1)).permute(1, 2, 0).numpy()
    large = cv2.resize(codes, None, fx=factor, fy=factor, interpolation=cv2.INTER_CUBIC)
    return np.clip(np.rint(large * 255), 0, 255).astype(np.uint8), (plate[1] * np.float32(factor)).astype(np.float32)


def faces(landmarks: np.ndarray) -> tuple[Any, Any]:
    """The target with its points as indices of pixels, which InsightFace counts in, and the source."""
    target = SimpleNamespace(kps=(five_points(landmarks).numpy() - 0.5).astype(np.float32))
    return target, SimpleNamespace(normed_embedding=somebody().embeddings["w600k_r50"])


def test_the_crop_that_goes_in_and_the_face_that_comes_out(plate, nets) -> None:
    theirs, ours = nets
    picture, landmarks = picture_of(plate, 1.0)
    target, source = faces(landmarks)
    made, matrix = theirs.get(picture[..., ::-1], target, source, paste_back=False)
    square = Crop(place(five_points(landmarks), "arcface_128", 128), 128)
    display = torch.from_numpy(picture.transpose(2, 0, 1).astype(np.float32) / 255)
    crop = reference_crop(display, square)
    given = cv2.warpAffine(picture, matrix, (128, 128), borderValue=0.0)
    assert np.abs(crop.permute(1, 2, 0).numpy() * 255 - given).max() <= 1.01
    who = ours.source(torch.from_numpy(source.normed_embedding))
    found = ours.post(ours.run(ours.pre(crop[None], who))).pictures[0].permute(1, 2, 0).numpy()
    difference = np.abs(np.floor(found * 255) - made[..., ::-1].astype(float))
    assert difference.max() <= 1


@pytest.mark.parametrize(("factor", "shift"), [(1.0, 0), (2.0, 0), (1.0, 230)])
def test_the_pasted_picture(plate, nets, factor: float, shift: int) -> None:
    """At two sizes, and with a face that the picture cuts."""
    theirs, ours = nets
    picture, landmarks = picture_of(plate, factor)
    picture, landmarks = picture[:, shift:], landmarks - np.array([shift, 0, 0], np.float32)
    target, source = faces(landmarks)
    expected = theirs.get(np.ascontiguousarray(picture[..., ::-1]), target, source)[..., ::-1].astype(float)
    engine = NeuralEngine("inswapper_128", ours, lambda identity, space: None)
    settings = SwapSettings(reference_paste=True)
    raster = Box(0, 0, picture.shape[1], picture.shape[0])
    window = engine.window(landmarks, settings).intersect(raster)
    rows, columns = window.slices(raster)
    codes = torch.from_numpy(picture[rows, columns].transpose(2, 0, 1).astype(np.float32) / 255)
    corner = np.array([window.x0, window.y0, 0], np.float32)
    crop = FaceCrop(decode_display(codes), window, landmarks - corner, 1.0, 0.0, settings, None, 1)
    made = engine.swap([crop], engine.prepare(somebody()))[0]
    assert set(np.unique(made.matte_core)) == {0.0, 1.0}
    found = picture.astype(float)
    found[rows, columns] = encode_display(made.edited).permute(1, 2, 0).numpy() * 255
    difference = np.abs(found - expected)
    assert math.floor(difference.max()) <= 2
    changed = np.abs(expected - picture) > 20
    assert changed.any(2).mean() > 0.02
