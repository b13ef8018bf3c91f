"""An open plate: which files, which frames, which colour, and each frame as a scene-linear value."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from .colour.decide import ColourDecision, decide_space
from .colour.spaces import ColourConfig
from .colour.video import with_video_space
from .errors import ColourSpaceError, MissingFrameError, SequenceError, SettingError, UnsupportedImageError
from .frame import Box, Frame, StoredImage
from .job import MissingPolicy
from .media.formats import is_movie
from .media.movies.movie import Movie
from .media.movies.tags import AS_TAGGED, CodesAre
from .media.read import check_matches, read_image
from .media.sequence import MOST_FRAMES, ImageSequence, open_sequence, parse_frame_range

_LOG_IN_VIDEO = "; if it was shot in log, name the camera's space in the job: such files often carry these tags too"


@dataclass(frozen=True, slots=True)
class FrameSource:
    """Where the pixels of one output frame come from.

    Attributes:
        number: frame number of the output.
        path: file to read; None for a missing frame that is skipped.
        state: "present", "held" (the nearest earlier file stands in) or "skipped".
        source: frame number of `path`.
    """

    number: int
    path: Path | None
    state: Literal["present", "held", "skipped"]
    source: int


@dataclass(frozen=True, slots=True, eq=False)
class Plate:
    """A plate on disk.

    Attributes:
        pattern: as the user gave it.
        sequence: the files.
        config: OCIO configuration.
        decision: the space of the files and how it was decided.
        colour_space: the linear space in which `read` returns frames: the files' own, or the linear twin of an encoded
            space.
        first: the image that all others must match.
        movie: the open movie, None for files of one frame each.
        codes: what the job says about a movie's code values.
    """

    pattern: str
    sequence: ImageSequence
    config: ColourConfig
    decision: ColourDecision
    colour_space: str
    first: StoredImage
    movie: Movie | None = None
    codes: CodesAre = AS_TAGGED

    @property
    def is_encoded(self) -> bool:
        """True when the files are not linear, so that reading converts."""
        return self.colour_space != self.decision.space

    def read(self, source: FrameSource, window: Box | None = None) -> Frame:
        """One frame, scene-linear.

        Args:
            source: which one.
            window: what of it is wanted; only movies, whose pixels are costly to make, give less than all.

        Raises:
            ImageReadError: absent or damaged file.
            FrameMismatchError: raster, channels or colour tag are not those of the first frame.
        """
        if source.path is None:
            raise MissingFrameError(f"{self.pattern}: frame {source.number} is missing")
        if self.movie is not None:
            return self.to_frame(dataclasses.replace(self.movie.read(source.source, window), number=source.number))
        image = read_image(source.path, source.number)
        check_matches(self.first, image)
        return self.to_frame(image)

    def to_frame(self, image: StoredImage) -> Frame:
        """A stored image of this plate as a scene-linear frame. Half stays half where no conversion is needed."""
        if image.pixels.shape[2] < 3:
            raise UnsupportedImageError(
                f"{image.path} has no colour",
                expected="RGB or RGBA",
                found=", ".join(image.channels),
                hint="give the colour picture; a matte can be passed with --holdout",
            )
        pixels = image.pixels[..., :4]
        if self.is_encoded:
            rgb = np.ascontiguousarray(pixels[..., :3], np.float32)
            linear = self.config.transform(self.decision.space, self.colour_space).numpy(rgb)
            pixels = np.concatenate([linear, pixels[..., 3:].astype(np.float32)], axis=-1)
        return Frame(
            pixels=pixels,
            colour_space=self.colour_space,
            data_window=image.data_window,
            display_window=image.display_window,
            pixel_aspect=image.pixel_aspect,
            number=image.number,
            stored=image,
        )

    def sources(self, frames: str | None, missing: MissingPolicy) -> tuple[FrameSource, ...]:
        """The frames of a job, in order.

        Args:
            frames: range text such as "1001-1100x2,1105"; None for first to last, holes included.
            missing: what a hole means.

        Raises:
            MissingFrameError: a hole, and `missing` is "error".
            SequenceError: the range lies outside the sequence, or cannot be read as a range.
        """
        on_disk = self.sequence.frames
        if not frames and on_disk[-1] - on_disk[0] >= MOST_FRAMES:
            raise SequenceError(
                f"{self.pattern} runs from {on_disk[0]} to {on_disk[-1]} with {len(on_disk)} files",
                expected=f"at most {MOST_FRAMES // 1_000_000} million frames",
                hint="move away the file that does not belong to the shot, or give --frames",
            )
        asked = parse_frame_range(frames) if frames else tuple(range(on_disk[0], on_disk[-1] + 1))
        outside = [number for number in asked if not on_disk[0] <= number <= on_disk[-1]]
        if outside:
            raise SequenceError(
                f"{self.pattern}: frames {_few(outside)} lie outside the sequence",
                expected=f"frames within {on_disk[0]}-{on_disk[-1]}",
                hint="give --frames inside that range",
            )
        present = set(on_disk)
        holes = [number for number in asked if number not in present]
        if holes and missing == "error":
            raise MissingFrameError(
                f"{self.pattern}: {len(holes)} of {len(asked)} frames are missing",
                found=f"no file for {_few(holes)}",
                hint="render them, or run with --missing hold (repeat the frame before) or --missing skip",
            )
        return tuple(self._source(number, present, missing) for number in asked)

    def _source(self, number: int, present: set[int], missing: MissingPolicy) -> FrameSource:
        if number in present:
            return FrameSource(number, self.sequence.path(number), "present", number)
        if missing == "hold":
            before = max(frame for frame in present if frame < number)
            return FrameSource(number, self.sequence.path(before), "held", before)
        return FrameSource(number, None, "skipped", number)

    def facts(self) -> Mapping[str, str]:
        """What the report says about the plate's colour."""
        note = f" ({self.decision.note})" if self.decision.note else ""
        return {
            "file space": f"{self.decision.space}, by {self.decision.source}{note}",
            "working space": self.colour_space,
            "OCIO configuration": self.config.name,
        }


def _few(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:5]))
    return shown if len(numbers) <= 5 else f"{shown} and {len(numbers) - 5} more"


def open_plate(
    pattern: str,
    config: ColourConfig,
    input_space: str | None = None,
    codes: CodesAre = AS_TAGGED,
) -> Plate:
    """Open a plate: find its files, read its first frame, decide its colour.

    Args:
        pattern: file, folder or sequence pattern; a movie is one file with many frames, the first of them number 1.
        config: OCIO configuration.
        input_space: what the job says about the files' colour, any name that the configuration resolves.
        codes: what the job says about a movie's code values.

    Raises:
        SequenceError: nothing matches.
        ImageReadError, UnsupportedImageError: the first frame cannot be used.
        ColourSpaceError: unknown space.
        SettingError: `codes` are not those of a movie like this one.
    """
    if is_movie(pattern) and not os.path.isdir(pattern):
        return _open_movie(pattern, config, input_space, codes)
    if codes != AS_TAGGED:
        raise SettingError(
            f"{pattern} is no movie: it has no matrix and no range",
            hint="leave --input-matrix and --input-range out, or name the colour with --input-space",
        )
    sequence = open_sequence(pattern)
    number = sequence.frames[0]
    first = read_image(sequence.path(number), number)
    decision = decide_space(config, first, input_space)
    plate = Plate(pattern, sequence, config, decision, config.linear_twin(decision.space), first)
    plate.to_frame(first)  # refuses a picture without colour before any work starts
    return plate


def _open_movie(path: str, config: ColourConfig, input_space: str | None, codes: CodesAre) -> Plate:
    movie = Movie(Path(path), codes)
    sequence = ImageSequence(path, dict.fromkeys(movie.numbers, movie.path))
    first, colour = movie.read(movie.numbers[0]), movie.facts.colour
    space = ""
    with suppress(ColourSpaceError):  # `decide_space` says it, unless the job names a space
        config, space = with_video_space(config, colour.transfer, colour.primaries)
    tags = {
        "movie:space": space,
        "movie:note": colour.note + (_LOG_IN_VIDEO if colour.transfer == "bt709" else ""),
        "movie:assumed": not {"transfer", "primaries"}.isdisjoint(colour.assumed),
    }
    first = dataclasses.replace(first, metadata={**first.metadata, **tags})
    decision = decide_space(config, first, input_space)
    if decision.source == "job":
        decision = dataclasses.replace(decision, note=f"{decision.note}; code values: {colour.coding_note}")
    return Plate(path, sequence, config, decision, config.linear_twin(decision.space), first, movie, codes)
