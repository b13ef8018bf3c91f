"""Where a shot cuts: the picture changes at once and stays changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import cv2
import numpy as np
from numpy.typing import NDArray

from .view import Picture

_SIZE = (64, 36)
_FLAT = 1e-4
_SUSPECT = 0.12
_ABOVE_NEIGHBOURS = 3.0
_REACH = 2
_BLUR = 1.5
_BLANK = 0.01
_LONGEST_BLANK = 8
_SAME_COLOURS = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class _Look:
    grey: NDArray[np.float32]
    histogram: NDArray[np.float64]

    @property
    def is_blank(self) -> bool:
        """True for black, white and other empty frames."""
        return float(self.grey.std()) < _BLANK


def _look(overview: Picture) -> _Look:
    small = np.asarray(cv2.resize(overview, _SIZE, interpolation=cv2.INTER_AREA), np.float32)
    grey = cv2.GaussianBlur(small.mean(2), (0, 0), _BLUR)
    codes = np.minimum((small * 6).astype(int), 5) @ (36, 6, 1)
    return _Look(np.asarray(grey, np.float32), np.bincount(codes.ravel(), minlength=216) / codes.size)


def _difference(a: _Look, b: _Look) -> float:
    """0 for the same picture, about 1 for unrelated ones; blind to gain and offset as far as colours stay."""
    x, y = a.grey - a.grey.mean(), b.grey - b.grey.mean()
    alike = float((x * y).mean() + _FLAT) / float(np.sqrt(((x**2).mean() + _FLAT) * ((y**2).mean() + _FLAT)))
    return max(1.0 - alike, 0.5 * _colour_difference(a, b))


def _colour_difference(a: _Look, b: _Look) -> float:
    """Share of the picture whose colours the other one does not have."""
    return 1.0 - float(np.minimum(a.histogram, b.histogram).sum())


@dataclass(slots=True)
class CutFinder:
    """Takes frames in order; `cuts` is known once all are in."""

    _frames: list[int] = field(default_factory=list)
    _steps: list[float] = field(default_factory=list)
    _skips: list[float] = field(default_factory=list)
    _recent: list[_Look] = field(default_factory=list)
    _picture: _Look | None = None
    _blanks: int = 0

    def add(self, frame: int, overview: Picture) -> bool:
        """True when the frame may be the first after a cut: worth a full search for faces."""
        look = _look(overview)
        previous = self._recent
        self._steps.append(_difference(previous[-1], look) if previous else 0.0)
        self._skips.append(_difference(previous[-2], look) if len(previous) > 1 else 1.0)
        self._frames.append(frame)
        self._recent = [*previous[-1:], look]
        suspect = self._steps[-1] > _SUSPECT
        self._bridge(look)
        return suspect

    def _bridge(self, look: _Look) -> None:
        """A few empty frames between two that look alike are a flash or a dropout, not two cuts."""
        if look.is_blank:
            self._blanks += 1
            return
        last = self._picture if 0 < self._blanks <= _LONGEST_BLANK else None
        # What moved meanwhile changes places but hardly the colours.
        if last is not None and _colour_difference(last, look) < _SAME_COLOURS:
            self._steps[-1] = self._steps[-1 - self._blanks] = 0.0
        self._picture, self._blanks = look, 0

    def cuts(self, same_face: Callable[[int], bool | None]) -> tuple[int, ...]:
        """First frame after each cut.

        A cut stands out from the changes around it (a pan does not), the frame after it does not look like the frame
        before it (after a flash it does), and no face goes on through it.

        Args:
            same_face: whether the picture of a face goes on from the frame before into this one; None where no face
                is in both.
        """
        found = []
        for index, (frame, step) in enumerate(zip(self._frames, self._steps, strict=True)):
            if step <= _SUSPECT or not self._stays(index):
                continue
            goes_on = same_face(frame)
            if goes_on is False or (goes_on is None and self._stands_out(index)):
                found.append(frame)
        return tuple(found)

    def _stays(self, index: int) -> bool:
        step = self._steps[index]
        to_come = index + 1 >= len(self._skips) or self._skips[index + 1] > 0.5 * step
        return to_come and (index < 2 or self._skips[index] > 0.5 * step)

    def _stands_out(self, index: int) -> bool:
        near = range(max(1, index - _REACH), min(len(self._steps), index + _REACH + 1))
        around = [self._steps[other] for other in near if other != index]
        return not around or self._steps[index] > _ABOVE_NEIGHBOURS * float(np.median(around))
