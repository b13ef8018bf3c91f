"""One frame on the GPU equals the same frame on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from faceplate.colour.spaces import ColourConfig
from faceplate.face import Observation, Origin
from faceplate.faces.nets import FaceNets
from faceplate.identity.photos import make_identity, photo_tools
from faceplate.job import SwapSettings
from faceplate.models.sessions import SessionPool
from faceplate.pipeline import FacePipeline, FaceTask, SwappedFrame
from faceplate.swap.mesh.engine import MeshEngine
from tests.integration.conftest import person_photos
from tests.support.plates import moving_plate


@pytest.mark.gpu
def test_cuda_gives_what_the_cpu_gives() -> None:
    config = ColourConfig.open()
    plate = moving_plate(960, 540, 1, face_width_px=200, motion="static")
    with SessionPool(device="cpu", threads=1) as pool:
        made, _ = make_identity("person", person_photos(), None, photo_tools(FaceNets.load(pool), config))
    seen = Observation(1001, plate.truth_landmarks(1001), 1.0, Origin.DETECTED, 0.0)
    task = FaceTask(1, seen, made.identity, SwapSettings(), 1.0)

    def run(device: str) -> SwappedFrame:
        return FacePipeline(config, MeshEngine(device), torch.device(device)).process(plate.as_frame(1001), [task])

    here, there = run("cpu"), run("cuda")
    again = run("cuda")
    np.testing.assert_array_equal(there.pixels.view(np.uint16), again.pixels.view(np.uint16))
    assert abs(here.window.x0 - there.window.x0) <= 1
    difference = np.abs(here.pixels.astype(np.float32) - there.pixels.astype(np.float32))
    assert np.percentile(difference, 99.9) < 2e-3
    outside = np.ones(difference.shape[:2], bool)
    rows, columns = here.window.union(there.window).slices(plate.data_window)
    outside[rows, columns] = False
    assert (difference[outside] == 0).all()
