"""Editors: what they tell their nets, by hand; rotations against scipy; a face that nobody edits stays."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from faceplate.errors import ModelError, SettingError
from faceplate.models.random.editors import EDITORS
from faceplate.nets.editors import expression as live
from faceplate.nets.editors.age import FranAge, StyleAge
from faceplate.nets.editors.expression import LivePortrait, opening
from faceplate.nets.editors.motion import (
    LOWER_FACE,
    UPPER_FACE,
    Expression,
    Motion,
    in_picture,
    limited,
    rotation,
    with_controls,
    with_expression,
)
from tests.support.random_nets import WIDTH, net_of
from tests.unit.core.nets.given import Given, landmarks, picture, points_in, turned_points

GREY = torch.full((2, 3, 4, 4), 0.75)


def test_fran_is_told_two_ages():
    fran = FranAge(Given("fran"))
    inputs = fran.pre(GREY, 35, 120)
    assert torch.equal(inputs["target"], GREY)
    assert torch.allclose(inputs["direction"], torch.tensor([[0.35, 1.0], [0.35, 1.0]]))
    assert torch.equal(fran.post({"output": GREY * 2}), torch.ones_like(GREY))


@pytest.mark.parametrize(("years", "told"), [(100, -2.5), (-100, 2.5), (20, -0.5), (300, -2.5)])
def test_styleganex_is_told_a_direction(years, told):
    inputs = StyleAge(Given("styleganex_age")).pre(GREY, GREY, years)
    assert torch.equal(inputs["target"], torch.full_like(GREY, 0.5))
    assert inputs["direction"].flatten().tolist() == pytest.approx([told, told])


def test_styleganex_keeps_the_colours_of_what_it_saw():
    before = picture(48, 1) * 0.5 + 0.2
    made = torch.nn.functional.interpolate(picture(48, 2), scale_factor=2)  # 0..1, other mean and contrast
    after = StyleAge(Given("styleganex_age")).post({"output": made * 2 - 1}, before)
    assert after.shape[-1] == 96
    for statistic in (torch.mean, torch.std):
        for channel in range(3):
            found, expected = statistic(after[0, channel]), statistic(before[0, channel])
            assert float(found) == pytest.approx(float(expected), abs=0.01)


@pytest.mark.parametrize(("adapter", "model_id"), [(FranAge, "fran"), (StyleAge, "styleganex_age")])
def test_nobody_ages_by_no_years(adapter, model_id):
    crops, points = picture(600), turned_points(150) + 220
    assert adapter(Given(model_id)).edit(crops, points, 0) is crops
    aged = adapter(net_of(model_id, EDITORS[model_id](WIDTH))).edit(crops, points, 30)
    assert aged.shape == crops.shape
    assert float((aged - crops).abs().max()) > 0.005
    assert torch.equal(aged[0, :, 0, 0], crops[0, :, 0, 0])  # outside the square of a small face


@given(*(st.floats(-80, 80) for _ in range(3)))
def test_rotation_is_scipys(pitch, yaw, roll):
    found = rotation(*(torch.tensor([[angle]], dtype=torch.float64) for angle in (pitch, yaw, roll)))
    expected = Rotation.from_euler("xyz", [pitch, yaw, roll], degrees=True).as_matrix()
    np.testing.assert_allclose(found[0].numpy(), expected, atol=1e-12)


def some_motion(seed: int = 0, count: int = 1) -> Motion:
    random = np.random.default_rng(seed)

    def drawn(*shape: int, scale: float = 1.0) -> torch.Tensor:
        return torch.from_numpy((random.standard_normal((count, *shape)) * scale).astype(np.float32))

    return Motion(
        drawn(1, scale=10),
        drawn(1, scale=10),
        drawn(1, scale=10),
        drawn(1, scale=0.1) + 1.2,
        drawn(3, scale=0.1),
        drawn(21, 3, scale=0.01),
        drawn(21, 3, scale=0.3),
    )


def test_points_in_the_picture_by_hand():
    motion = some_motion(3)
    turn = Rotation.from_euler("xyz", [float(a) for a in (motion.pitch, motion.yaw, motion.roll)], degrees=True)
    by_hand = (
        float(motion.scale) * (motion.points[0].numpy() @ turn.as_matrix().T + motion.expression[0].numpy())
        + motion.translation[0].numpy()
    )
    np.testing.assert_allclose(in_picture(motion)[0].numpy(), by_hand, atol=1e-5)


def still() -> Motion:
    motion = some_motion(1)
    return dataclasses.replace(motion, expression=torch.zeros(1, 21, 3))


def test_controls_by_hand():
    moved = with_controls(still(), Expression(gaze_x=0.5, smile=-1.0)).expression[0]
    assert float(moved[11, 0]) == pytest.approx(0.0075)
    assert float(moved[15, 0]) == pytest.approx(0.010)
    assert float(moved[14, 1]) == pytest.approx(0.02)
    assert float(moved[19, 1]) == pytest.approx(-0.02)
    assert float(moved[3, 1]) == pytest.approx(-0.0045)
    changed = {tuple(at) for at in moved.nonzero().tolist()}
    assert {point for point, _ in changed} == {11, 15, 14, 17, 19, 20, 3, 7}


def test_a_head_turns_as_far_as_heads_do():
    motion = dataclasses.replace(still(), pitch=torch.tensor([[5.0]]), yaw=torch.tensor([[70.0]]))
    turned = with_controls(motion, Expression(pitch=-1.0, yaw=-1.0, roll=0.5))
    assert float(turned.pitch) == pytest.approx(25.0)
    assert float(turned.yaw) == pytest.approx(70.0)  # already further than 60: no further
    assert float(turned.roll) == pytest.approx(min(float(motion.roll) + 7.5, max(20.0, float(motion.roll))))
    assert float(with_controls(motion, Expression(yaw=1.0)).yaw) == pytest.approx(10.0)


@given(st.floats(-1, 1), st.sampled_from([field.name for field in dataclasses.fields(Expression)]))
def test_no_control_leaves_what_faces_do(value, name):
    motion = some_motion(2)
    moved = with_controls(motion, Expression(**{name: value})).expression
    assert torch.equal(moved, limited(moved, motion.expression))
    assert torch.equal(with_controls(motion, Expression()).expression, motion.expression)
    tamed = limited(motion.expression * 100, torch.zeros(1, 21, 3))
    assert tamed.abs().max() < 0.23


def test_the_plates_expression_comes_back_by_parts():
    mine, plates = some_motion(4), some_motion(5)
    both = with_expression(mine, plates, 1.0).expression
    for point in range(21):
        source = plates if point in UPPER_FACE + LOWER_FACE else mine
        assert torch.equal(both[0, point], limited(source.expression, mine.expression)[0, point]), point
    upper = with_expression(mine, plates, 0.5, lower=False).expression
    assert torch.equal(upper[0, list(LOWER_FACE)], mine.expression[0, list(LOWER_FACE)])
    middle = limited((mine.expression + plates.expression) / 2, mine.expression)
    assert torch.allclose(upper[0, list(UPPER_FACE)], middle[0, list(UPPER_FACE)])
    assert torch.equal(with_expression(mine, plates, 0.0).expression, mine.expression)


def test_a_control_out_of_range_is_refused():
    with pytest.raises(SettingError, match="smile"):
        Expression(smile=1.5)


def nets(**without: bool) -> dict[str, object]:
    made = {net.card.kind: net for net in (net_of(name, EDITORS[name](WIDTH)) for name in EDITORS if "live" in name)}
    return {kind: net for kind, net in made.items() if kind not in without}


def test_live_portrait_end_to_end_on_random_nets():
    editor = LivePortrait(nets())
    crops = torch.cat([picture(300, 1), picture(300, 2)])
    points = torch.cat([points_in(300), turned_points(300)])
    faces = [landmarks(), landmarks()]
    assert editor.edit(crops, points, Expression(), faces) is crops
    assert editor.restore(crops, crops, points, 0.0) is crops
    edited = editor.edit(crops, points, Expression(smile=1.0, eyes=-0.5, lips=0.3, yaw=0.2), faces)
    again = editor.edit(crops[1:], points[1:], Expression(smile=1.0, eyes=-0.5, lips=0.3, yaw=0.2), faces[1:])
    assert torch.allclose(edited[1:], again, atol=1e-6)
    assert (edited - crops).abs().max() > 0.02
    restored = editor.restore(crops, crops.flip(0), points, 1.0)
    assert restored.shape == crops.shape


def test_the_same_expression_asks_for_the_points_that_are_there():
    asked = nets()
    generator = Given("live_portrait_generator", lambda inputs: {"output": torch.zeros(1, 3, 512, 512)})
    asked[live.GENERATOR] = generator
    LivePortrait(asked).restore(picture(256), picture(256), points_in(256), 1.0)
    (told,) = generator.asked
    assert torch.equal(told["source"], told["target"])
    assert told["feature_volume"].shape == (1, 32, 16, 64, 64)


def test_eyes_and_lips_are_opened_from_where_they_are():
    motion_net = nets()
    eyes = Given("live_portrait_eye_retargeter", lambda inputs: {"output": torch.zeros(1, 63)})
    motion_net[live.EYES] = eyes
    LivePortrait(motion_net).edit(picture(256), points_in(256), Expression(eyes=1.0), [landmarks()])
    (told,) = eyes.asked
    assert told["input"].shape == (1, 66)
    first, second, wanted = told["input"][0, 63:].tolist()
    assert wanted == pytest.approx(0.6)
    assert 0.15 < first < 0.6  # her eyes are open
    assert first == pytest.approx(opening(landmarks(), (160, 153, 133, 33)))
    assert second == pytest.approx(opening(landmarks(), (385, 373, 263, 362)))


def test_what_is_missing_is_named():
    with pytest.raises(ModelError, match="more nets") as caught:
        LivePortrait(
            {
                live.FEATURES: net_of(
                    "live_portrait_feature_extractor", EDITORS["live_portrait_feature_extractor"](WIDTH)
                )
            }
        )
    assert "liveportrait_motion" in str(caught.value.hint)
    less = nets(**{live.LIPS: True})
    with pytest.raises(ModelError, match="liveportrait_lips is not there"):
        LivePortrait(less).edit(picture(64), points_in(64), Expression(lips=1.0), [landmarks()])
    with pytest.raises(ModelError, match="gfpgan"):
        FranAge(Given("gfpgan_1_4"))
