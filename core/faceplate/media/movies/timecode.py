"""SMPTE timecode: text, frame counts, drop frame, and the packed words that DPX and OpenImageIO use."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

_TEXT = re.compile(r"(\d{1,2}):(\d{2}):(\d{2})([:;.,])(\d{2,3})")


@dataclass(frozen=True, slots=True)
class Timecode:
    """A start timecode and what is needed to count on from it.

    Attributes:
        frames: frames since 00:00:00:00, without the numbers that drop frame leaves out.
        fps: numbers a second, the rate rounded up: 24 for 24000/1001.
        drop: drop frame, which leaves numbers out so that the clock keeps time (30 and 60 only).
    """

    frames: int
    fps: int
    drop: bool = False

    @classmethod
    def parse(cls, text: str, rate: Fraction) -> Timecode | None:
        """ "01:00:00:00", with ";" before the frames for drop frame; None where it is no timecode at that rate.

        Args:
            text: as a container gives it.
            rate: frames a second.
        """
        match = _TEXT.fullmatch(text.strip())
        fps = round(rate)
        if match is None or fps < 1:
            return None
        hours, minutes, seconds, frame = (int(match[index]) for index in (1, 2, 3, 5))
        drop = match[4] != ":" and fps % 30 == 0
        if hours > 23 or minutes > 59 or seconds > 59 or frame >= fps:
            return None
        count = ((hours * 60 + minutes) * 60 + seconds) * fps + frame
        if drop:
            total = hours * 60 + minutes
            count -= fps // 15 * (total - total // 10)
        return cls(count, fps, drop)

    def plus(self, frames: int) -> Timecode:
        """The timecode so many frames later; past midnight it begins again."""
        a_day = 24 * 3600 * self.fps - (fps_left_out(self.fps) if self.drop else 0)
        return Timecode((self.frames + frames) % a_day, self.fps, self.drop)

    @property
    def fields(self) -> tuple[int, int, int, int]:
        """(hours, minutes, seconds, frame)."""
        number = self.frames
        if self.drop:
            step = self.fps // 15
            tens, rest = divmod(number, 600 * self.fps - 9 * step)
            number += step * (9 * tens + max(0, (rest - step) // (60 * self.fps - step)))
        seconds, frame = divmod(number, self.fps)
        return seconds // 3600 % 24, seconds // 60 % 60, seconds % 60, frame

    def __str__(self) -> str:
        hours, minutes, seconds, frame = self.fields
        return f"{hours:02d}:{minutes:02d}:{seconds:02d}{';' if self.drop else ':'}{frame:02d}"

    def packed(self) -> tuple[int, int] | None:
        """(time and flags, user bits) as SMPTE 12M packs them; None above 39 frames a second, which it cannot say."""
        hours, minutes, seconds, frame = self.fields
        if frame > 39 or self.fps > 40:
            return None
        word = 0
        for shift, value in ((24, hours), (16, minutes), (8, seconds), (0, frame)):
            word |= (value // 10 << 4 | value % 10) << shift
        return word | (1 << 6 if self.drop else 0), 0


def fps_left_out(fps: int) -> int:
    """Numbers that drop frame leaves out in 24 hours."""
    return fps // 15 * (24 * 60 - 24 * 6)
