"""Where a shot cuts: the picture changes at once and stays changed."""

from __future__ import annotations

import itertools
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
_ABOVE_LAST = 2.0
_REACH = 2
_BLUR = 1.5
_BLANK = 0.01
_LONGEST_GAP = 8
_SAME_GREY = 0.04
_MUCH = 0.3
_SAME_COLOURS = 0.25
_SAME_PICTURE = 0.4


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


def _kept(a: _Look, b: _Look) -> float:
    """Share of the picture that looks the same."""
    return float((np.abs(a.grey - b.grey) < _SAME_GREY).mean())


@dataclass(frozen=True, slots=True, eq=False)
class _Episode:
    """A sudden change: index of its first frame, the picture before it, and the first and next few pictures of it."""

    start: int
    before: _Look
    after: list[_Look] = field(default_factory=list)


@dataclass(slots=True)
class CutFinder:
    """Takes frames in order; `cuts` is known once all are in."""

    _frames: list[int] = field(default_factory=list)
    _steps: list[float] = field(default_factory=list)
    _skips: list[float] = field(default_factory=list)
    _recent: list[_Look] = field(default_factory=list)
    _episodes: list[_Episode] = field(default_factory=list)

    def add(self, frame: int, overview: Picture) -> bool:
        """True when the frame may be the first after a cut: worth a full search for faces.

        In a shot that moves much only a change well above the last one counts.
        """
        look = _look(overview)
        previous = self._recent
        self._steps.append(_difference(previous[-1], look) if previous else 0.0)
        self._skips.append(_difference(previous[-2], look) if len(previous) > 1 else 1.0)
        self._frames.append(frame)
        self._recent = [*previous[-1:], look]
        suspect = self._steps[-1] > _SUSPECT
        if suspect:
            self._episodes.append(_Episode(len(self._frames) - 1, previous[-1]))
        for episode in self._episodes[-_LONGEST_GAP:]:
            if len(episode.after) <= _LONGEST_GAP:
                episode.after.append(look)
        return suspect and self._steps[-1] > _ABOVE_LAST * self._steps[-2]

    def cuts(self, same_face: Callable[[int], bool | None], spans: Callable[[int, int], bool]) -> tuple[int, ...]:
        """First frame after each cut.

        A cut stands out from the changes around it (a pan does not), the frame after it does not look like the frame
        before it (after a flash it does), and no face goes on through it.

        Args:
            same_face: whether the picture of a face goes on from the frame before into this one; None where no face
                is in both.
            spans: whether a face was followed from one frame to another over frames in which it was not seen.
        """
        bridged = self._bridged(spans)
        found = []
        for index, (frame, step) in enumerate(zip(self._frames, self._steps, strict=True)):
            if index in bridged or step <= _SUSPECT or not self._stays(index):
                continue
            goes_on = same_face(frame)
            if goes_on is False or (goes_on is None and self._stands_out(index)):
                found.append(frame)
        return tuple(found)

    def _bridged(self, spans: Callable[[int, int], bool]) -> set[int]:
        """Beginnings and ends of interruptions: empty frames, or something in front of a part of the picture, after
        which what was there before is there again.
        """
        found: set[int] = set()
        for episode in self._episodes:
            empty = covered = True
            for length, (gap, look) in enumerate(itertools.pairwise(episode.after), 1):
                empty = empty and gap.is_blank
                covered = covered and (gap.is_blank or _kept(episode.before, gap) > _MUCH)
                back = empty and _difference(episode.before, look) < _SAME_PICTURE
                # What moved meanwhile changes places but hardly the colours.
                if covered and not back and _colour_difference(episode.before, look) < _SAME_COLOURS:
                    back = spans(self._frames[episode.start - 1], self._frames[episode.start + length])
                if back and not look.is_blank:
                    found |= {episode.start, episode.start + length}
                    break
        return found

    def _stays(self, index: int) -> bool:
        step = self._steps[index]
        to_come = index + 1 >= len(self._skips) or self._skips[index + 1] > 0.5 * step
        return to_come and (index < 2 or self._skips[index] > 0.5 * step)

    def _stands_out(self, index: int) -> bool:
        near = range(max(1, index - _REACH), min(len(self._steps), index + _REACH + 1))
        around = [self._steps[other] for other in near if other != index]
        return not around or self._steps[index] > _ABOVE_NEIGHBOURS * float(np.median(around))
