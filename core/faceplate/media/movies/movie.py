"""A movie as a plate: facts, numbered frames, timecode.

Frames are numbered from 1, as Nuke's Read counts the frames of a movie and as a lone picture is numbered here; the
start timecode travels in the metadata of each frame. A frame is the one that is shown `number - 1` frames after the
first, whatever the time stamps say: with a variable frame rate its time is in `Movie.time`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ...errors import FrameMismatchError, MissingFrameError, UnsupportedImageError
from ...frame import Box, StoredImage
from .decode import Decoder, Picture
from .planes import to_rgb, window_rgb
from .probe import FrameIndex, chroma_siting, index_frames, open_container
from .tags import AS_TAGGED, CodesAre, MovieColour, Tags, colour_of
from .timecode import Timecode

FIRST_FRAME = 1
"""Number of a movie's first frame."""

_PROGRESSIVE = (0, 1)
_EVEN = 0.02
_OLD_FILE = ("encoder", "major_brand", "minor_version", "compatible_brands", "handler_name", "vendor_id", "timecode")


@dataclass(frozen=True, slots=True)
class MovieFacts:
    """What a movie is like.

    Attributes:
        codec: FFmpeg's name.
        pixel_format: likewise.
        width: px, upright.
        height: px, upright.
        rotation: degrees counter-clockwise by which the coded pictures are turned to stand upright: 0, 90, 180, 270.
        pixel_aspect: width / height of one pixel, upright.
        rate: frames a second, mean.
        variable: whether the time between frames varies.
        timecode: of the first frame, None where there is none.
        colour: of its code values.
        metadata: text of container and picture stream.
    """

    codec: str
    pixel_format: str
    width: int
    height: int
    rotation: int
    pixel_aspect: float
    rate: Fraction
    variable: bool
    timecode: Timecode | None
    colour: MovieColour
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class MovieCarrier:
    """What a frame of a movie carries along for writing it back.

    Attributes:
        picture: as decoded, not turned.
        facts: of the movie.
    """

    picture: Picture
    facts: MovieFacts


class Movie:
    """An open movie. May be used from several threads.

    Args:
        path: the file.
        codes: what the job says about its code values.

    Attributes:
        path: the file.
        index: its frames.
        facts: about it.

    Raises:
        ImageReadError: absent, empty, damaged, cut off, no movie.
        UnsupportedImageError: no picture stream, interlaced, mirrored, a pixel format or matrix that is not read.
        SettingError: what the job says cannot be.
    """

    def __init__(self, path: Path, codes: CodesAre = AS_TAGGED) -> None:
        self.path = path
        container, stream = open_container(path)
        with container:
            order = int(stream.codec_context.field_order)
            if order not in _PROGRESSIVE:
                raise interlaced(path)
            self.index: FrameIndex = index_frames(path, container, stream)
            self._decoder = Decoder(path, self.index)
            first = self._decoder.picture(0)
            if first.interlaced:
                raise interlaced(path)
            self.facts = _facts(self.index, container, stream, first, codes)
        self._first = (first.layout, first.planes[0].shape, first.tags)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.index)

    @property
    def numbers(self) -> range:
        """The frame numbers."""
        return range(FIRST_FRAME, FIRST_FRAME + len(self.index))

    def time(self, number: int) -> Fraction:
        """Seconds at which a frame is shown, as the container counts."""
        return self.index.pts[number - FIRST_FRAME] * self.index.time_base

    def timecode(self, number: int) -> Timecode | None:
        """Of a frame; with a variable rate the one nearest to its time."""
        start, facts = self.facts.timecode, self.facts
        if start is None:
            return None
        if not facts.variable:
            return start.plus(number - FIRST_FRAME)
        return start.plus(round((self.time(number) - self.time(FIRST_FRAME)) * start.fps))

    def picture(self, number: int) -> Picture:
        """A frame as decoded.

        Raises:
            MissingFrameError: no such number.
            ImageReadError: damaged.
            FrameMismatchError: another raster, pixel format or colour tag than the first frame.
            UnsupportedImageError: two fields in it.
        """
        if number not in self.numbers:
            raise MissingFrameError(
                f"{self.path} has no frame {number}", expected=f"{self.numbers[0]}-{self.numbers[-1]}"
            )
        picture = self._decoder.picture(number - FIRST_FRAME)
        if picture.interlaced:
            raise interlaced(self.path)
        found = (picture.layout, picture.planes[0].shape, picture.tags)
        if found != self._first:
            raise FrameMismatchError(
                f"frame {number} of {self.path} is not like its first frame",
                expected=_words(self._first),
                found=_words(found),
                hint="split the movie there, and run the parts as separate jobs",
            )
        return picture

    def read(self, number: int, window: Box | None = None) -> StoredImage:
        """A frame as R'G'B' of the movie's own transfer curve and primaries, upright; see `planes`.

        Args:
            number: of the frame.
            window: what of it is wanted, inside the picture; None for all. A turned movie is given whole.

        Raises:
            as `picture`.
        """
        picture, facts = self.picture(number), self.facts
        whole, coding = Box(0, 0, facts.width, facts.height), facts.colour.coding
        if window is None or facts.rotation:
            window = whole
            pixels = turn(to_rgb(picture.planes, picture.layout, coding), facts.rotation)
        else:
            pixels = window_rgb(picture.planes, picture.layout, coding, window)
        return StoredImage(
            pixels=pixels,
            channels=("R", "G", "B", "A") if picture.layout.alpha else ("R", "G", "B"),
            data_window=window,
            display_window=whole,
            pixel_aspect=facts.pixel_aspect,
            number=number,
            path=self.path,
            file_format="movie",
            bit_depth=f"uint{picture.layout.bits}",
            metadata=self._metadata(number),
            carrier=MovieCarrier(picture, facts),
        )

    def _metadata(self, number: int) -> dict[str, Any]:
        facts = self.facts
        found: dict[str, Any] = {f"movie/{name}": text for name, text in facts.metadata.items()}
        reel = facts.metadata.get("reel_name")
        if reel:
            found["reelName"] = reel
        if not facts.variable:
            found["FramesPerSecond"] = float(facts.rate)
        timecode = self.timecode(number)
        packed = timecode.packed() if timecode else None
        if timecode:
            found["movie/timecode"] = str(timecode)
        if packed:
            found["smpte:TimeCode"] = packed
        return found


def interlaced(path: Path) -> UnsupportedImageError:
    """The refusal of fields: a face that moved between two fields is in neither."""
    return UnsupportedImageError(
        f"{path} is interlaced",
        expected="progressive frames",
        found="two fields in each frame",
        hint="deinterlace it first, for example: ffmpeg -i IN -vf bwdif -c:v prores_ks -profile:v 3 OUT.mov",
    )


def turn(pixels: Any, degrees: int) -> Any:
    """An array (H, W, ...) turned counter-clockwise by a multiple of 90 degrees, contiguous."""
    return np.ascontiguousarray(np.rot90(pixels, degrees // 90)) if degrees % 360 else pixels


def _words(found: Any) -> str:
    layout, (height, width), tags = found
    return f"{width}x{height} {layout.name}, colour tags {tags}"


def _facts(index: FrameIndex, container: Any, stream: Any, first: Picture, codes: CodesAre) -> MovieFacts:
    rotation = round(first.rotation) % 360
    if rotation % 90 or first.mirrored:
        raise UnsupportedImageError(
            "the movie is to be shown mirrored or turned by an odd angle",
            expected="a turn of 0, 90, 180 or 270 degrees",
            found=f"{first.rotation} degrees{', mirrored' if first.mirrored else ''}",
            hint="render it upright first",
        )
    height, width = first.planes[0].shape
    context = stream.codec_context
    told = (context.color_primaries, context.color_trc, context.colorspace, context.color_range)
    silent = (2, 2, 2, 0)
    tags = Tags(*(int(b if a == none else a) for a, b, none in zip(first.tags, told, silent, strict=True)))
    tags = codes.over(tags, first.layout)
    aspect = stream.sample_aspect_ratio or context.sample_aspect_ratio or Fraction(1)
    metadata = {**container.metadata, **stream.metadata}
    rate, variable = _rate(index, stream)
    sideways = rotation in (90, 270)
    return MovieFacts(
        codec=context.name,
        pixel_format=first.layout.name,
        width=height if sideways else width,
        height=width if sideways else height,
        rotation=rotation,
        pixel_aspect=float(1 / aspect if sideways else aspect) if aspect else 1.0,
        rate=rate,
        variable=variable,
        timecode=_timecode(container, metadata, rate),
        colour=colour_of(tags, first.layout, width, height, chroma_siting(stream)),
        metadata=MappingProxyType({name: text for name, text in metadata.items() if name not in _OLD_FILE}),
    )


def _rate(index: FrameIndex, stream: Any) -> tuple[Fraction, bool]:
    """(frames a second, whether the time between frames varies by more than rounding)."""
    told = stream.average_rate or stream.guessed_rate or Fraction(24)
    if len(index) < 3:
        return Fraction(told), False
    steps = np.diff(np.asarray(index.pts))
    # A time base as coarse as Matroska's millisecond rounds each stamp.
    variable = int(steps.max() - steps.min()) > max(1, round(_EVEN * float(np.mean(steps))))
    if not variable and steps.max() == steps.min():
        return 1 / (int(steps[0]) * index.time_base), False
    return Fraction(told), variable


def _timecode(container: Any, metadata: Mapping[str, str], rate: Fraction) -> Timecode | None:
    texts = [metadata.get("timecode"), metadata.get("TIMECODE")]
    texts += [stream.metadata.get("timecode") for stream in container.streams]
    return next((found for text in texts if text and (found := Timecode.parse(text, rate))), None)
