"""NASA's astronaut as plate and as photo, and the calls that nearly every test makes."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest
import torch

from faceplate.demo.portrait import load_portrait, portrait_landmarks
from faceplate.face import Appearance, FaceTexture, Identity
from faceplate.faces import topology
from faceplate.frame import Box
from faceplate.job import SwapSettings
from faceplate.swap.base import FaceCrop, FaceResult
from faceplate.swap.mesh.engine import MeshEngine
from faceplate.swap.mesh.prepared import Prepared
from faceplate.swap.mesh.texture import PhotoView, build_texture


def enlarged(picture: np.ndarray, landmarks: np.ndarray, factor: float) -> tuple[np.ndarray, np.ndarray]:
    large = cv2.resize(picture, None, fx=factor, fy=factor, interpolation=cv2.INTER_CUBIC)
    return np.maximum(large, 0.0), (landmarks * np.float32(factor)).astype(np.float32)


def identity_of(texture: FaceTexture, shape: np.ndarray | None = None) -> Identity:
    return Identity("test", "0" * 64, texture, topology.canonical() if shape is None else shape, {})


def crop_of(
    plate: np.ndarray,
    landmarks: np.ndarray,
    *,
    yaw: float = 0.0,
    appearance: Appearance | None = None,
    pixel_aspect: float = 1.0,
    **settings: Any,
) -> FaceCrop:
    chosen = SwapSettings(**settings)
    raster = Box(0, 0, plate.shape[1], plate.shape[0])
    window = MeshEngine().window(landmarks, chosen).intersect(raster)
    rows, columns = window.slices(raster)
    view = torch.from_numpy(np.ascontiguousarray(plate[rows, columns].transpose(2, 0, 1), np.float32))
    moved = landmarks - np.array([window.x0, window.y0, 0], np.float32)
    return FaceCrop(view, window, moved.astype(np.float32), pixel_aspect, yaw, chosen, appearance, 1)


def swap(crop: FaceCrop, prepared: Prepared) -> FaceResult:
    return MeshEngine().swap([crop], prepared)[0]


def result_of(crop: FaceCrop, made: FaceResult) -> torch.Tensor:
    matte = made.matte_core * (1.0 - made.matte_occluder)
    return crop.view + matte * (made.edited - crop.view)


@pytest.fixture(scope="session")
def photo() -> tuple[np.ndarray, np.ndarray]:
    return load_portrait(), portrait_landmarks()


@pytest.fixture(scope="session")
def texture(photo: tuple[np.ndarray, np.ndarray]) -> FaceTexture:
    return build_texture([PhotoView(*photo)])


@pytest.fixture(scope="session")
def stranger(texture: FaceTexture) -> Prepared:
    """Another skin: hers with its channels changed and a fine pattern, so that a swap differs everywhere."""
    size = texture.colour.shape[0]
    v, u = np.mgrid[0:size, 0:size] / size
    pattern = 1.0 + 0.25 * np.sin(u * 220) * np.sin(v * 220)
    colour = np.asarray(texture.colour, np.float32) * np.float32([0.5, 0.42, 0.38]) * pattern[..., None]
    changed = FaceTexture(colour.astype(np.float16), texture.coverage, 250.0)
    shape = topology.canonical() * np.float32([1.0, 1.12, 1.0])
    return MeshEngine().prepare(identity_of(changed, shape))


@pytest.fixture(scope="session")
def plate(photo: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Her portrait with a 186 px wide face, grain and light from the side, dark enough to be doubled unclipped."""
    picture, landmarks = enlarged(*photo, 2.0)
    light = np.linspace(0.25, 0.45, picture.shape[1], dtype=np.float32)[None, :, None]
    grain = np.random.default_rng(1).normal(1.0, 0.03, picture.shape)
    return np.clip(picture * light * grain, 0.0, 0.49).astype(np.float32), landmarks
