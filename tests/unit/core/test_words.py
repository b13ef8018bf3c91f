"""Errors, windows, frames and settings: the words of the house."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faceplate import errors
from faceplate.errors import FaceplateError, SettingError, UnsupportedImageError
from faceplate.frame import Box, Frame
from faceplate.job import Keyed, KeyedSettings, SwapSettings, parse_setting

boxes = st.builds(Box, *(st.integers(-50, 50) for _ in range(4)))


TREE = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, FaceplateError)]


@pytest.mark.parametrize("kind", TREE)
def test_every_error_is_drawn_in_the_tree_and_survives_a_pipe(kind: type[FaceplateError]) -> None:
    assert kind.__name__ in (errors.__doc__ or "")
    error = pickle.loads(pickle.dumps(kind("m", expected="e", found="f", hint="h")))
    assert type(error) is kind
    assert error.to_dict() == {"type": kind.__name__, "message": "m", "expected": "e", "found": "f", "hint": "h"}


@given(boxes, boxes)
def test_box_intersection_and_union(a: Box, b: Box) -> None:
    inside = {(x, y) for x in range(a.x0, a.x1) for y in range(a.y0, a.y1)} if a.width * a.height < 400 else None
    both = a.intersect(b)
    assert both.width <= a.width
    assert both.height <= b.height
    if inside is not None:
        count = sum(b.x0 <= x < b.x1 and b.y0 <= y < b.y1 for x, y in inside)
        assert both.width * both.height == count
    for part in (a, b):
        assert part.is_empty or a.union(b).contains(part)


def test_frame_pixels_are_read_only_and_the_callers_array_is_not() -> None:
    mine = np.zeros((2, 3, 3), np.float16)
    frame = Frame(mine, "ACEScg", Box(-1, 0, 2, 2), Box(0, 0, 2, 2))
    with pytest.raises(ValueError, match="read-only"):
        frame.pixels[0, 0, 0] = 1
    mine[1, 1] = 4
    assert (frame.crop(Box(0, 1, 1, 2)) == 4).all()


@pytest.mark.parametrize(
    ("shape", "dtype"), [((2, 3), np.float32), ((2, 3, 3), np.uint8), ((2, 2, 3), np.float32), ((2, 3, 2), np.float32)]
)
def test_frame_refuses_pixels_of_the_wrong_form(shape: tuple[int, ...], dtype: type) -> None:
    with pytest.raises(UnsupportedImageError):
        Frame(np.zeros(shape, dtype), "ACEScg", Box(0, 0, 3, 2), Box(0, 0, 3, 2))


@given(st.lists(st.tuples(st.integers(-99, 99), st.floats(0, 1)), min_size=1, max_size=6, unique_by=lambda key: key[0]))
def test_keyed_passes_through_its_keys_and_stays_between_them(keys: list[tuple[int, float]]) -> None:
    keyed = Keyed(tuple(sorted(keys)))
    for frame, value in keys:
        assert keyed.at(frame) == value
    values = [value for _, value in keys]
    for frame in range(-110, 110, 7):
        assert min(values) - 1e-12 <= keyed.at(frame) <= max(values) + 1e-12


def test_settings_from_text() -> None:
    keyed = KeyedSettings.parse({"strength": "1001:0,1011:1", "keep_eyes": "off", "shape": 0.5})
    assert keyed.at(1006).strength == pytest.approx(0.5)
    assert keyed.at(900).strength == 0
    assert keyed.at(1006).keep_eyes is False
    assert keyed.at(1006).keep_mouth is True
    assert KeyedSettings.from_json(keyed.to_json()).at(1003) == keyed.at(1003)


def test_switches_hold_until_the_next_key() -> None:
    keyed = KeyedSettings.parse({"keep_eyes": "1001:on,1010:off"})
    assert [keyed.at(frame).keep_eyes for frame in (1000, 1009, 1010, 2000)] == [True, True, False, False]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("strenght", "1", "strength"),
        ("strength", "2", "0.0..1.0"),
        ("strength", "much", "no number"),
        ("strength", "a:1", "frame number"),
        ("strength", "5:1,3:0", "rising"),
        ("strength", "nan", "out of range"),
    ],
)
def test_wrong_settings_say_what_is_wrong(name: str, value: str, words: str) -> None:
    with pytest.raises(SettingError) as caught:
        parse_setting(name, value)
    assert words in f"{caught.value} {caught.value.hint}"
    assert caught.value.exit_code == 2


def test_settings_check_themselves() -> None:
    with pytest.raises(SettingError):
        SwapSettings(strength=float("nan"))
    with pytest.raises(SettingError):
        SwapSettings(yaw_fade_from=80, yaw_fade_to=70)
