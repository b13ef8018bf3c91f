"""What the bench of the neural engine works on: random nets in a folder, a face in a plate, somebody to put there."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray

from ..colour.model_view import encode_display
from ..demo.portrait import load_portrait, portrait_landmarks
from ..face import Identity, Observation, Origin
from ..faces import topology
from ..faces.appearance import SIZE
from ..frame import Box, Frame
from ..job import SwapSettings
from ..models.store import ModelStore
from ..models.user import add, look_at
from ..pipeline import FaceTask
from ..swap.base import ShotSolve

SWAPPER, DETECTOR, RECOGNISER = "inswapper_128", "det_10g", "w600k_r50"
CROP_PX = {(1920, 1080): 368.0, (4096, 2160): 735.0}
"""Side of the swapper's square in the plate: a face as wide as half of it."""
_SPACE = "lin_rec709_scene"


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """A face in a plate.

    Attributes:
        frame: half, linear Rec.709.
        codes: (H, W, 3) the same as 8-bit BGR.
        landmarks: (478, 3) plate px.
    """

    frame: Frame
    codes: NDArray[np.uint8]
    landmarks: NDArray[np.float32]

    def task(self, who: Identity, **settings: Any) -> FaceTask:
        """The face becomes somebody, as in a job whose shot has been analysed: nothing covers it, and what an engine
        settles for a shot is settled.
        """
        seen = Observation(1, self.landmarks, 1.0, Origin.DETECTED, 0.0, np.zeros((SIZE, SIZE), np.uint8))
        solve = ShotSolve((1.02, 1.0, 0.98), 1, 5)
        return FaceTask(1, seen, who, SwapSettings(**settings), 1.0, solve=solve)


def make_nets(folder: Path, width: float = 1.0) -> ModelStore:
    """Random nets in a user's folder of their own."""
    from ..models.random import detectors, recognisers, swappers

    files = {
        "inswapper_128.onnx": (SWAPPER, swappers.inswapper(width)),
        "det_10g.onnx": (DETECTOR, detectors.scrfd(0, width, score_bias=-30.0)),
        "w600k_r50.onnx": (RECOGNISER, recognisers.arcface(0, width)),
    }
    given = folder / "given"
    given.mkdir(parents=True)
    for name, (model_id, content) in files.items():
        (given / name).write_bytes(content)
        add(look_at(given / name, model_id), folder / "models", "bench", in_place=True)
    return ModelStore.of_user(folder / "models")


def make_scene(width: int, height: int) -> Scene:
    """NASA's portrait in a plate of this size, the swapper's square as large as `CROP_PX` says."""
    from ..swap.neural.place import find_crop

    linear, landmarks = load_portrait(), portrait_landmarks()
    factor = CROP_PX[width, height] / find_crop(landmarks, "arcface_128", 128).covers_px
    middle = landmarks[:468, :2].mean(0) * factor
    shift = np.array([width / 2, height / 2], np.float32) - middle
    index = np.array([[factor, 0, 0], [0, factor, 0]], np.float64)
    index[:, 2] = shift + 0.5 * factor - 0.5  # OpenCV counts from the centre of the first pixel
    plate = cv2.warpAffine(linear, index, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT)
    grain = np.asarray(np.random.default_rng(1).normal(1.0, 0.02, (height, width, 3)), np.float32)
    pixels = np.clip(plate * grain, 0.0, 1.0).astype(np.float16)
    raster = Box(0, 0, width, height)
    codes = encode_display(torch.from_numpy(pixels.astype(np.float32))).numpy()[..., ::-1]
    moved = landmarks * np.float32(factor)
    moved[:, :2] += shift
    eight = np.ascontiguousarray(np.clip(np.rint(codes * 255), 0, 255).astype(np.uint8))
    return Scene(Frame(pixels, _SPACE, raster, raster, number=1), eight, moved.astype(np.float32))


def somebody(seed: int = 0) -> Identity:
    """An identity that is an embedding."""
    vector = np.random.default_rng(seed).standard_normal(512).astype(np.float32)
    return Identity(
        f"somebody {seed}",
        f"{seed:064x}",
        None,  # type: ignore[arg-type]
        topology.canonical(),
        {RECOGNISER: vector / np.linalg.norm(vector)},
    )
