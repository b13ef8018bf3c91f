"""A face that grows over a shot."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from faceplate.swap.base import FaceResult
from faceplate.swap.mesh.prepared import Prepared

from .conftest import crop_of, enlarged, result_of, swap

Photo = tuple[np.ndarray, np.ndarray]


@pytest.mark.parametrize("threshold", [192.0, 384.0])
def test_no_frame_in_which_the_coarse_grid_changes_its_step(photo: Photo, stranger: Prepared, threshold: float) -> None:
    """Just under and just over the width at which the step doubles, the result is the same."""
    crop = crop_of(*enlarged(photo[0] * 0.4, photo[1], threshold / 93.1))
    middle = crop.landmarks.mean(0)
    now = swap(crop, stranger).facts["face_px"]

    def at(width: float) -> FaceResult:
        sized = (crop.landmarks - middle) * np.float32(width / now) + middle
        made = swap(dataclasses.replace(crop, landmarks=sized.astype(np.float32)), stranger)
        assert made.facts["face_px"] == pytest.approx(width, abs=0.002)
        return made

    under, over = at(threshold - 0.004), at(threshold + 0.004)
    light = float(crop.view.mean())
    mattes = [made.matte_core * (1.0 - made.matte_occluder) for made in (under, over)]
    assert float((mattes[0] - mattes[1]).abs().max()) < 0.1  # 0.3 without the way over
    apart = (result_of(crop, under) - result_of(crop, over)).abs()
    assert float(apart.mean()) < 1e-3 * light
    assert float(apart.max()) < 0.08 * light
