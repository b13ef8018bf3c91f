"""Writes a movie: pictures as code values, sound copied, tags on the codec and on every frame; then reads it back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import Any

import av
import numpy as np

from ...errors import FaceplateError, OutputError
from ..atomic import output_error
from .codecs import MovieCodec, encoder_params
from .layout import Layout, Planes, write_planes
from .movie import Movie
from .planes import Coding, from_rgb
from .sound import SoundCopy
from .tags import Tags
from .timecode import Timecode

_CONTAINERS = {".mov": "mov", ".mp4": "mp4", ".m4v": "mp4", ".mkv": "matroska", ".mxf": "mxf"}
_COARSE = (".mkv", ".mxf")
"""Containers that do not keep the time base."""


@dataclass(frozen=True, slots=True, eq=False)
class MovieFormat:
    """What a movie is to be like.

    Attributes:
        codec: of the pictures.
        layout: of their codes.
        coding: likewise.
        tags: to write.
        width: px, as coded (before rotation).
        height: px.
        rate: frames a second, mean.
        time_base: of the time stamps.
        frames: how many there will be.
        rotation: degrees counter-clockwise by which players have to turn the pictures.
        pixel_aspect: width / height of one coded pixel.
        timecode: of the first frame.
        metadata: text for the container.
    """

    codec: MovieCodec
    layout: Layout
    coding: Coding
    tags: Tags
    width: int
    height: int
    rate: Fraction
    time_base: Fraction
    frames: int
    rotation: int = 0
    pixel_aspect: Fraction = Fraction(1)
    timecode: Timecode | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


class MovieWriter:
    """Writes one movie file; a context manager, finished when its block ends.

    Args:
        file: temporary file to write, or memory.
        target: the name it will have, for errors.
        made: what to write.
        sound: where sound comes from.

    Raises:
        OutputError: the disk is full, or FFmpeg refuses.
    """

    def __init__(self, file: Path | BytesIO, target: Path, made: MovieFormat, sound: SoundCopy | None) -> None:
        self._target, self._made, self._sound = target, made, sound
        suffix = target.suffix.lower()
        options = {"fflags": "+bitexact"}
        if _CONTAINERS[suffix] in ("mov", "mp4"):
            options["movflags"] = "+use_metadata_tags"
            if made.time_base.numerator == 1:
                options["video_track_timescale"] = str(made.time_base.denominator)
        try:
            name = file if isinstance(file, BytesIO) else str(file)
            self._container = av.open(name, "w", format=_CONTAINERS[suffix], container_options=options)
            self._container.metadata.update(made.metadata)
            self._stream = self._open_stream()
            if sound is not None:
                sound.add_to(self._container, target)
        except (av.FFmpegError, ValueError, OSError) as error:
            raise output_error(target, error) from error

    def _open_stream(self) -> Any:
        made = self._made
        options = {**made.codec.options, **encoder_params(made.codec, made.coding, made.frames)}
        stream: Any = self._container.add_stream(made.codec.encoder, made.rate, options=options)
        stream.width, stream.height, stream.pix_fmt = made.width, made.height, made.layout.name
        stream.time_base = made.time_base
        context = stream.codec_context
        context.time_base = made.time_base
        context.flags |= av.codec.context.Flags.bitexact
        if made.codec.encoder in ("prores_ks", "dnxhd", "ffv1"):
            context.thread_count, context.thread_type = 4, "SLICE"  # slices do not depend on their number
        tags = made.tags
        context.color_primaries, context.color_trc = tags.primaries, tags.transfer
        context.colorspace, context.color_range = tags.matrix, tags.range
        if made.pixel_aspect != 1:
            context.sample_aspect_ratio = made.pixel_aspect
        if made.codec.name == "h265":
            context.codec_tag = "hvc1" if self._target.suffix.lower() in (".mov", ".mp4", ".m4v") else context.codec_tag
        if made.timecode is not None:
            stream.metadata["timecode"] = str(made.timecode)
        if "reel_name" in made.metadata:
            stream.metadata["reel_name"] = made.metadata["reel_name"]
        if made.rotation:
            stream.set_display_rotation(made.rotation)
        return stream

    def drop(self) -> None:
        """End without finishing: for a movie that nobody will read."""
        with suppress(av.FFmpegError, OSError):
            self._container.close()

    def __enter__(self) -> MovieWriter:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self._container.mux(self._stream.encode())
                if self._sound is not None:
                    self._sound.mux(self._container, None)
            self._container.close()
        except (av.FFmpegError, OSError) as error:
            if kind is None:
                raise output_error(self._target, error) from error

    def write(self, planes: Planes, stamp: int, duration: int) -> None:
        """Write the next picture.

        Args:
            planes: its codes in the layout of the format.
            stamp: when it is shown, in the time base.
            duration: for how long.

        Raises:
            OutputError: see the class.
        """
        made = self._made
        frame: Any = av.VideoFrame(made.width, made.height, made.layout.name)
        write_planes(frame, planes)
        frame.pts, frame.time_base, frame.duration = stamp, made.time_base, duration
        frame.color_primaries, frame.color_trc = made.tags.primaries, made.tags.transfer
        frame.colorspace, frame.color_range = made.tags.matrix, made.tags.range
        try:
            self._container.mux(self._stream.encode(frame))
            if self._sound is not None:
                self._sound.mux(self._container, float(stamp * made.time_base))
        except (av.FFmpegError, OSError) as error:
            raise output_error(self._target, error) from error


def try_format(made: MovieFormat, target: Path, sound: SoundCopy | None) -> None:
    """Encode one black frame into memory: what the encoder or the container refuses is known before any work.

    Raises:
        OutputError: it cannot be written like that.
    """
    writer = MovieWriter(BytesIO(), target, dataclasses.replace(made, frames=1), sound)
    black = np.zeros((made.height, made.width, 4 if made.layout.alpha else 3), np.float32)
    writer.write(from_rgb(black, made.layout, made.coding), 0, 1)
    writer.drop()


def check_written(path: Path, target: Path, made: MovieFormat, stamps: Sequence[int], sound: Mapping[int, int]) -> None:
    """Read a finished movie and compare it with what was asked for.

    Args:
        path: the file.
        target: the name it will have.
        made: what was asked for.
        stamps: of all frames, in the time base.
        sound: bytes written by audio stream.

    Raises:
        OutputError: number of frames, their times, raster, timecode, colour tags or sound are not those.
    """
    try:
        movie = Movie(path)
        heard = _sound_bytes(path)
    except FaceplateError as error:
        raise _differs(target, "a movie that can be read", str(error)) from error
    facts = movie.facts
    if len(movie) != len(stamps):
        raise _differs(target, f"{len(stamps)} frames", str(len(movie)))
    grain = Fraction(1, 1000) if target.suffix.lower() in _COARSE else made.time_base
    first, wanted = movie.time(movie.numbers[0]), stamps[0] * made.time_base
    for number, stamp in zip(movie.numbers, stamps, strict=True):
        off = (movie.time(number) - first) - (stamp * made.time_base - wanted)
        if abs(off) > grain:
            raise _differs(
                target, f"frame {number} at {float(stamp * made.time_base):.4f} s", f"{float(off):+.4f} s off"
            )
    upright = (made.height, made.width) if made.rotation % 180 else (made.width, made.height)
    if (facts.width, facts.height, facts.rotation) != (*upright, made.rotation % 360):
        raise _differs(
            target, f"{upright}, turned by {made.rotation}", f"{facts.width}x{facts.height}, {facts.rotation}"
        )
    if made.timecode is not None and str(facts.timecode) != str(made.timecode):
        raise _differs(target, f"timecode {made.timecode}", str(facts.timecode))
    _check_colour(target, made, movie)
    if heard != sum(sound.values()):
        raise _differs(target, f"{sum(sound.values())} bytes of sound", str(heard))


def _check_colour(target: Path, made: MovieFormat, movie: Movie) -> None:
    """Tags that the container cannot hold may be absent, but none may be another."""
    found = movie.facts.colour.tags
    names = ("primaries", "transfer", "range", *(() if made.layout.model == "rgb" else ("matrix",)))
    for name in names:
        asked, got = getattr(made.tags, name), getattr(found, name)
        silent = 0 if name == "range" else 2
        same = {5: 6}.get(asked, asked) == {5: 6}.get(got, got) if name == "matrix" else asked == got
        if asked != silent and got != silent and not same:
            raise _differs(target, f"colour tag {name} {asked}", str(got))


def _sound_bytes(path: Path) -> int:
    with av.open(str(path)) as container:
        streams = container.streams.audio
        return sum(packet.size for packet in container.demux(*streams)) if streams else 0


def _differs(target: Path, expected: str, found: str) -> OutputError:
    return OutputError(
        f"the movie that was written to {target} is not what it should be",
        expected=expected,
        found=found,
        hint="choose another codec or container, or write an EXR sequence",
    )
