"""The matte of what must stay the plate: a file for all frames, a sequence, or a movie."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import FrameMismatchError, InputError, MissingFrameError
from ..frame import Box, Frame
from ..job import HoldOut
from ..media.formats import is_movie
from ..media.matte import read_matte
from ..media.movies.layout import Component
from ..media.movies.movie import Movie
from ..media.movies.planes import Scale
from ..media.sequence import ImageSequence, is_pattern, open_sequence
from ..plate import FrameSource
from .hashes import HashCache

_PARTS = {"R": 0, "G": 1, "B": 2}


@dataclass(frozen=True, slots=True, eq=False)
class HoldOutFiles:
    """An open hold-out.

    Attributes:
        asked: as the job names it.
        sequence: its files.
        movie: the open movie, None for pictures.
        first: frame of the plate that goes with the first frame of a movie.
    """

    asked: HoldOut
    sequence: ImageSequence
    movie: Movie | None = None
    first: int = 1

    def path(self, source: FrameSource) -> Path:
        """The file for a frame; one that was named without a pattern holds for all frames.

        Raises:
            MissingFrameError: there is none.
        """
        if self.movie is not None:
            return self.movie.path
        return self.sequence.path(source.source if is_pattern(self.asked.pattern) else self.sequence.frames[0])

    def key(self, source: FrameSource, hashes: HashCache) -> str:
        """Stands for the matte's bytes."""
        found = hashes.get(self.path(source))
        return found if self.movie is None else f"{found} {self._number(source)}"

    def check(self, source: FrameSource) -> NDArray[np.float32]:
        """The matte of a frame, before the job begins: what is wrong with all of them is found there.

        Raises:
            InputError: no such layer; unreadable.
        """
        return self._plane(source)[0]

    def read(self, source: FrameSource, frame: Frame) -> NDArray[np.float32]:
        """The matte over the data window of a frame: (H, W) float32, 1 keeps the plate.

        Raises:
            FrameMismatchError: it is of another raster.
            InputError: absent, unreadable, no such layer.
        """
        plane, window, raster = self._plane(source)
        return fit_holdout(str(self.path(source)), plane, window, frame, raster)

    def _number(self, source: FrameSource) -> int:
        assert self.movie is not None
        return source.source - self.first + self.movie.numbers[0]

    def _plane(self, source: FrameSource) -> tuple[NDArray[np.float32], Box, Box]:
        if self.movie is None:
            return read_matte(self.path(source), self.asked.layer)
        number = self._number(source)
        if number not in self.movie.numbers:
            raise MissingFrameError(
                f"the hold-out {self.movie.path} has no frame for frame {source.number}",
                expected=f"at least {number} frames",
                found=str(len(self.movie)),
                hint="its first frame goes with the plate's first; render the matte as long as the plate",
            )
        whole = Box(0, 0, self.movie.facts.width, self.movie.facts.height)
        return movie_matte(self.movie, number, self.asked.layer), whole, whole


def open_holdout(asked: HoldOut, first: int) -> HoldOutFiles:
    """Find the files of a hold-out, or open its movie.

    Args:
        asked: as the job names it.
        first: number of the plate's first frame.

    Raises:
        SequenceError, ImageReadError, UnsupportedImageError: it cannot be used.
    """
    if is_movie(asked.pattern) and not os.path.isdir(asked.pattern):
        movie = Movie(Path(asked.pattern))
        return HoldOutFiles(asked, ImageSequence(asked.pattern, {1: movie.path}), movie, first)
    return HoldOutFiles(asked, open_sequence(asked.pattern))


def movie_matte(movie: Movie, number: int, layer: str = "") -> NDArray[np.float32]:
    """A matte out of a movie: code values as they are, 0 black and 1 white, no transfer curve undone.

    Args:
        movie: open.
        number: of the frame.
        layer: "A", "R", "G", "B" or "Y" (luma); "" for alpha where there is one, else luma (R of RGB).

    Returns:
        (H, W) float32, upright, 0..1.

    Raises:
        InputError: no such channel.
        ImageReadError: damaged.
    """
    picture = movie.picture(number)
    layout, coding = picture.layout, movie.facts.colour.coding
    scale = Scale.of(layout, full_range=coding.full_range)
    name = layer or ("A" if layout.alpha else "R" if layout.model == "rgb" else "Y")
    if name == "A" and layout.alpha:
        plane = _levels(picture.planes[-1], scale.alpha)
    elif name == "Y" and layout.model != "rgb":
        plane = _levels(picture.planes[0], scale.luma)
    elif name in _PARTS:
        plane = movie.read(number).pixels[..., _PARTS[name]].astype(np.float32)
        return np.clip(plane, 0.0, 1.0)
    else:
        raise InputError(
            f"{movie.path} has no channel {layer!r}",
            expected="R, G, B" + ("" if layout.model == "rgb" else ", Y") + (", A" if layout.alpha else ""),
            hint="name one of these after the colon: --holdout MOVIE:A",
        )
    turned = np.rot90(plane, movie.facts.rotation // 90)
    return np.clip(np.ascontiguousarray(turned, np.float32), 0.0, 1.0)


def _levels(codes: Component, scale: tuple[float, float]) -> NDArray[np.float32]:
    """As `planes.values_of`, by division: white is 1 and no less, or it would not keep the plate's bits."""
    offset, gain = scale
    return (codes.astype(np.float32) - np.float32(offset)) / np.float32(gain)


def fit_holdout(name: str, plane: NDArray[np.float32], window: Box, frame: Frame, raster: Box) -> NDArray[np.float32]:
    """A matte that covers `window` over the data window of a frame: (H, W) float32, 0 where it says nothing.

    Args:
        name: for the error.
        plane: (h, w) 0..1.
        window: what `plane` covers.
        frame: of the plate.
        raster: display window of the matte, which has to be the plate's.

    Raises:
        FrameMismatchError: the matte is of another raster.
    """
    if raster != frame.display_window:
        raise FrameMismatchError(
            f"the hold-out {name} does not fit the plate",
            expected=f"the plate's raster {frame.display_window}",
            found=f"{raster}",
            hint="render the matte at the plate's size",
        )
    full = np.zeros((frame.data_window.height, frame.data_window.width), np.float32)
    common = window.intersect(frame.data_window)
    rows, columns = common.slices(frame.data_window)
    full[rows, columns] = plane[common.slices(window)]
    return full
