"""An EXR's colour tags name the space they were made for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import PyOpenColorIO as ocio
import pytest

from faceplate.colour.decide import decide_space
from faceplate.colour.spaces import ColourConfig
from faceplate.colour.tags import exr_tags
from faceplate.media.exr import write_exr
from faceplate.media.read import read_image


def test_every_linear_space_is_found_again(tmp_path: Path) -> None:
    config = ColourConfig.open()
    spaces = [name for name in config.names if config.is_linear(name)]
    assert len(spaces) > 15
    for space in spaces:
        path = tmp_path / "tagged.exr"
        write_exr(path, np.zeros((2, 2, 3), np.float32), attributes=exr_tags(config, space))
        decision = decide_space(config, read_image(path), None)
        assert (decision.space, decision.source) == (space, "file tag")


def test_without_an_id_the_primaries_speak_and_without_those_nothing() -> None:
    raw = ocio.Config.CreateRaw()
    for name, aliases in (("house linear", ["lin_ap1_scene"]), ("other linear", [])):
        raw.addColorSpace(ocio.ColorSpace(name=name, aliases=aliases, referenceSpace=ocio.REFERENCE_SPACE_SCENE))
    config = ColourConfig(raw, "test")
    tags = exr_tags(config, "house linear")
    assert tags["chromaticities"] == pytest.approx([0.713, 0.293, 0.165, 0.830, 0.128, 0.044, 0.32168, 0.33767])
    assert "colorInteropID" not in tags
    assert exr_tags(config, "other linear") == {}
