"""What only a slip or an attack makes: refused with words, or looked at without falling over."""

from __future__ import annotations

import numpy as np
import pytest

from faceplate.errors import SidecarError
from faceplate.faces.sidecar_read import parse_shot
from faceplate.faces.view import LinearPlateView
from faceplate.frame import Box


@pytest.mark.parametrize("text", ['{"a":' + "9" * 5000 + "}", '{"score": 1' + "0" * 400 + "}", "[" * 5000])
def test_monstrous_numbers_and_depths_are_refused(text: str) -> None:
    with pytest.raises(SidecarError):
        parse_shot(text, "shot.faces.json")


@pytest.mark.parametrize("size", [(1, 4000), (20000, 2), (65535, 1), (1, 1)])
def test_strips_have_an_overview_of_their_own_light(size: tuple[int, int]) -> None:
    width, height = size
    view = LinearPlateView(np.full((height, width, 3), 0.2140, np.float32), Box(0, 0, width, height))
    for picture in (view.overview(), view.overview(192)):
        assert min(picture.shape[:2]) >= 1
        np.testing.assert_allclose(picture, 0.5, atol=0.002)
