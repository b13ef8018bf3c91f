"""The converted nets against the originals, run by LiteRT on the same inputs."""

import zipfile
from pathlib import Path

import cv2
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter  # type: ignore[import-untyped]
from numpy.typing import NDArray

from faceplate.models.sessions import SessionPool
from tests.unit.core.models.crops import best_face

pytestmark = pytest.mark.network

# Largest difference allowed, about five times what was measured on the inputs below (and seen elsewhere), with the size
# of the numbers themselves: detector 4e-5 of 197, mesh 1.1e-4 of 163, iris 4e-5 of 50, matte 8.7e-5 of 1.
TOLERANCES = {"face_detector": 5e-4, "face_mesh": 5e-4, "iris": 2e-4, "selfie": 2e-4}


def litert_outputs(content: bytes, image: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    """Outputs of the tflite file for one NCHW picture, in the file's order."""
    interpreter = Interpreter(model_content=content, num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(
        interpreter.get_input_details()[0]["index"], np.ascontiguousarray(image.transpose(0, 2, 3, 1))
    )
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def pictures(size: int, astronaut: NDArray[np.uint8], pool: SessionPool) -> list[NDArray[np.float32]]:
    """The astronaut, her face, and noise, as (1, 3, size, size) in 0..1."""
    (x, y), side, _ = best_face(pool.get("face_detector"), astronaut)
    rows, columns = (slice(int(middle - side / 2), int(middle + side / 2)) for middle in (y, x))
    found = []
    for crop in (astronaut, astronaut[rows, columns]):
        scaled = cv2.resize(crop, (size, size), interpolation=cv2.INTER_AREA)
        found.append(np.asarray(scaled, np.float32) / np.float32(255))
    found.append(np.random.default_rng(0).random((size, size, 3), np.float32))
    return [np.ascontiguousarray(picture.transpose(2, 0, 1)[None]) for picture in found]


@pytest.mark.parametrize("model_id", TOLERANCES)
def test_net_equals_litert(
    model_id: str, pool: SessionPool, mediapipe_wheel: Path, astronaut: NDArray[np.uint8]
) -> None:
    net = pool.get(model_id)
    with zipfile.ZipFile(mediapipe_wheel) as wheel:
        content = wheel.read(net.card.source.file)
    for picture in pictures(net.card.inputs[0].shape[1], astronaut, pool):
        image = (picture - net.card.mean[0]) / np.float32(net.card.std[0])
        expected = litert_outputs(content, image)
        found = list(net.run({"image": image}).values())
        assert len(found) == len(expected)
        for ours, theirs in zip(found, expected, strict=True):
            # One channel at most where there is height and width, so NHWC and NCHW lie alike in memory.
            np.testing.assert_allclose(ours.ravel(), theirs.ravel(), rtol=0, atol=TOLERANCES[model_id])
