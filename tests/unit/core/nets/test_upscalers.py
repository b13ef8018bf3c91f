"""Upscalers: a picture in tiles is the picture in one piece."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from faceplate.errors import ModelError
from faceplate.models.random.upscalers import UPSCALERS
from faceplate.nets.upscalers.tiled import Tiling, Upscaler
from tests.support.random_nets import WIDTH, net_of
from tests.unit.core.nets.given import Given, picture


def smooth(scale: int):
    """A net that looks one pixel around."""

    def run(inputs):
        near = functional.avg_pool2d(functional.pad(inputs["input"], (1, 1, 1, 1), mode="reflect"), 3, 1)
        return {"output": functional.interpolate(near, scale_factor=scale, mode="nearest")}

    return run


@pytest.mark.parametrize(("model_id", "scale"), [("real_esrgan_x2", 2), ("real_esrgan_x4", 4), ("real_esrgan_x8", 8)])
def test_scale_and_range_by_hand(model_id, scale):
    upscaler = Upscaler(Given(model_id))
    assert upscaler.scale == scale
    tile = torch.full((1, 3, 8, 8), 0.75)
    assert torch.equal(upscaler.pre(tile)["input"], tile)
    assert upscaler.post({"output": torch.tensor([-0.5, 0.5, 1.5]).view(1, 1, 1, 3).expand(1, 3, 1, 3)}).flatten()[
        :3
    ].tolist() == [0.0, 0.5, 1.0]


@settings(max_examples=40, deadline=None)
@given(
    height=st.integers(1, 90),
    width=st.integers(1, 90),
    margin=st.integers(1, 8),
    blend=st.integers(0, 8),
    batch=st.integers(1, 3),
)
def test_tiles_are_not_seen(height, width, margin, blend, batch):
    whole = picture(96)[..., :height, :width].contiguous()
    tiling = Tiling(32, margin, blend, batch)
    out = Upscaler(Given("real_esrgan_x2", smooth(2)), tiling).upscale(whole)
    if min(height, width) > 1:
        expected = smooth(2)({"input": whole})["output"]
        # at the picture's own edge one picture is mirrored by the tiling and the other by the net: both do it alike
        assert torch.allclose(out, expected, atol=1e-5)
    assert out.shape == (1, 3, 2 * height, 2 * width)


def test_a_random_net_in_tiles_is_the_net_on_the_whole():
    upscaler = Upscaler(net_of("real_esrgan_x4", UPSCALERS["real_esrgan_x4"](WIDTH)), Tiling(64, 8, 8))
    whole = torch.cat([picture(150, 1), picture(150, 2)])[..., :100, :]
    expected = upscaler.post(upscaler.run(upscaler.pre(whole)))
    inner = slice(16, -16)  # the net puts nothing beyond the picture's edge, the tiling a mirror
    assert torch.allclose(upscaler.upscale(whole)[..., inner, inner], expected[..., inner, inner], atol=1e-5)


def test_tiles_that_disagree_are_crossfaded():
    """A net that makes every other tile brighter leaves no step."""
    calls = iter(range(1000))

    def moody(inputs):
        out = functional.interpolate(inputs["input"], scale_factor=2, mode="nearest")
        return {"output": out + 0.2 * (next(calls) % 2)}

    out = Upscaler(Given("real_esrgan_x2", moody), Tiling(64, 8, 16)).upscale(torch.full((1, 3, 64, 200), 0.5))
    steps = out.diff(dim=-1).abs()
    assert out.min() >= 0.5
    assert out.max() <= 0.7001
    assert 0 < steps.max() < 0.2 / 30


@pytest.mark.parametrize("how", [{"tile": 32, "margin": 16}, {"tile": 30}, {"margin": -1}, {"batch": 0}])
def test_tiles_that_keep_nothing_are_refused(how):
    with pytest.raises(ModelError, match="tiles"):
        Tiling(**how)


def test_another_kind_is_refused():
    with pytest.raises(ModelError, match="no upscaler"):
        Upscaler(Given("gfpgan_1_4"))
