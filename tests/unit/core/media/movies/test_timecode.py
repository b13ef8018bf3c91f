"""Counting timecode, with and without drop frame."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faceplate.media.movies.timecode import Timecode

NTSC = Fraction(30000, 1001)


def plus(text: str, rate: Fraction, frames: int) -> str:
    start = Timecode.parse(text, rate)
    assert start is not None
    return str(start.plus(frames))


@pytest.mark.parametrize(
    ("text", "rate", "frames", "wanted"),
    [
        ("01:00:00:00", Fraction(24), 1, "01:00:00:01"),
        ("01:00:00:23", Fraction(24000, 1001), 1, "01:00:01:00"),
        ("23:59:59:24", Fraction(25), 1, "00:00:00:00"),
        ("00:00:59;29", NTSC, 1, "00:01:00;02"),  # SMPTE 12M: numbers 0 and 1 are left out
        ("00:09:59;29", NTSC, 1, "00:10:00;00"),  # but in every tenth minute
        ("00:00:59:29", NTSC, 1, "00:01:00:00"),
        ("23:59:59;29", NTSC, 1, "00:00:00;00"),
        ("00:00:59;59", Fraction(60000, 1001), 1, "00:01:00;04"),
        ("00:00:00;00", NTSC, 107892, "01:00:00;00"),  # an hour of 29.97
    ],
)
def test_counting(text: str, rate: Fraction, frames: int, wanted: str) -> None:
    assert plus(text, rate, frames) == wanted


@given(st.integers(0, 24 * 3600 * 30 - 2592 - 1), st.booleans())
def test_text_and_back(frames: int, drop: bool) -> None:
    timecode = Timecode(frames, 30, drop)
    assert Timecode.parse(str(timecode), NTSC) == timecode


@pytest.mark.parametrize("text", ["", "1:2", "01:00:00:24", "25:00:00:00", "01:61:00:00", "reel 5"])
def test_what_is_no_timecode(text: str) -> None:
    assert Timecode.parse(text, Fraction(24)) is None


def test_packed_as_smpte_12m() -> None:
    timecode = Timecode.parse("12:34:56;19", NTSC)
    assert timecode is not None
    assert timecode.packed() == (0x12345659, 0)  # 19 with the drop frame flag, bit 6
    assert Timecode.parse("01:00:00:45", Fraction(60)).packed() is None  # type: ignore[union-attr]
