"""The portrait is NASA's, its colour arithmetic agrees with OCIO, its landmarks are consistent."""

import numpy as np
import PyOpenColorIO as ocio
import skimage.data
from hypothesis import given
from hypothesis import strategies as st

from faceplate.demo import portrait


def test_the_shipped_portrait_is_the_one_of_scikit_image() -> None:
    codes = np.rint(portrait.linear_to_srgb(portrait.load_portrait()) * 255).astype(np.uint8)
    assert np.array_equal(codes, skimage.data.astronaut())


def test_the_matrix_is_the_one_of_the_aces_configuration() -> None:
    config = ocio.Config.CreateFromBuiltinConfig("studio-config-v2.1.0_aces-v1.3_ocio-v2.3")
    cpu = config.getProcessor("Linear Rec.709 (sRGB)", "ACEScg").getDefaultCPUProcessor()
    columns = [cpu.applyRGB(np.eye(3, dtype=np.float32)[i].tolist()) for i in range(3)]
    assert np.allclose(np.array(columns).T, portrait.REC709_TO_AP1, atol=2e-6)


def test_srgb_decoding_agrees_with_ocio() -> None:
    config = ocio.Config.CreateFromBuiltinConfig("studio-config-v2.1.0_aces-v1.3_ocio-v2.3")
    cpu = config.getProcessor("srgb_tx", "Linear Rec.709 (sRGB)").getDefaultCPUProcessor()
    codes = np.linspace(0, 1, 256, dtype=np.float32)
    ramp = np.repeat(codes[:, None], 3, 1).copy()
    cpu.applyRGB(ramp)
    # OCIO's curve meets its straight part with equal slope and so differs a little from the standard's constants.
    assert np.allclose(portrait.srgb_to_linear(codes), ramp[:, 0], atol=3e-5)


@given(st.floats(0, 1, width=32))
def test_srgb_goes_there_and_back(value: float) -> None:
    there = portrait.linear_to_srgb(np.float32(value))
    assert abs(float(portrait.srgb_to_linear(there)) - value) < 2e-6


def test_landmarks_lie_on_the_face() -> None:
    points = portrait.portrait_landmarks()
    assert points.shape == (478, 3)
    assert points[:, 0].min() > 150
    assert points[:, 0].max() < 300
    # Subject's right eye is on the left of the picture; eyes above nose tip above chin; irises inside the eyes.
    assert points[33, 0] < points[133, 0] < points[362, 0] < points[263, 0]
    assert points[159, 1] < points[1, 1] < points[152, 1]
    assert points[33, 0] < points[468, 0] < points[133, 0]
    assert points[362, 0] < points[473, 0] < points[263, 0]
    # The nose tip is nearest to the camera, the face about 92 px wide.
    assert points[1, 2] < points[234, 2]
    assert 85 < portrait.portrait_face_width() < 100


def test_mirroring_twice_changes_nothing_and_swaps_the_sides() -> None:
    order = portrait.mirrored_order()
    assert np.array_equal(order[order], np.arange(478))
    pairs = {33: 263, 133: 362, 61: 291, 234: 454, 468: 473, 1: 1, 10: 10, 152: 152}
    assert {i: int(order[i]) for i in pairs} == pairs
