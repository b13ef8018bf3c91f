"""What the movie of a job will be: frames, times, codec, colour; found out, and tried, before the first frame."""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..colour.video import knows
from ..errors import OutputError, SettingError
from ..media.carried import exr_attributes
from ..media.movies.codecs import MovieCodec, check_codec, codec_named, coding_for, fitting_codec, layout_for
from ..media.movies.encode import MovieFormat, try_format
from ..media.movies.layout import Layout
from ..media.movies.movie import Movie, MovieFacts
from ..media.movies.sound import SoundCopy
from ..media.movies.tags import MATRIX_POINTS, MovieColour, Tags, colour_of
from ..media.movies.timecode import Timecode
from ..media.read import read_image
from ..plate import FrameSource, Plate
from .spec import ApplyJob

_TAGGED = (
    ("camera_rec709", Tags(1, 1, 1, 1)),
    ("srgb_rec709_scene", Tags(1, 13, 1, 1)),
    ("g24_rec709_scene", Tags(1, 1, 1, 1)),
    ("rec1886_rec709_display", Tags(1, 1, 1, 1)),
    ("rec2100_pq_display", Tags(9, 16, 9, 1)),
    ("rec2100_hlg_display", Tags(9, 18, 9, 1)),
    ("lin_rec709_scene", Tags(1, 8, 1, 1)),
)
"""Tags of the spaces that a plate of pictures is written in; of any other space only the matrix is tagged."""

_OF_THE_FILE = ("language", "timecode", "duration", "encoder")


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """When each frame of a movie is shown.

    Attributes:
        rate: frames a second, mean.
        base: seconds of one unit.
        shown: frames of the plate in order; a conformed movie repeats some or leaves some out.
        stamps: when, in units.
        durations: for how long.
        timecode: of the first.
        part: seconds of the plate's movie from which to which sound is taken; None for all, as it is.
    """

    rate: Fraction
    base: Fraction
    shown: Sequence[FrameSource]
    stamps: Sequence[int]
    durations: Sequence[int]
    timecode: Timecode | None
    part: tuple[Fraction, Fraction] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class MoviePlan:
    """What will be written.

    Attributes:
        target: the file.
        made: what it is like.
        times: its frames.
        space: colour space of its code values.
        sound: the movie whose sound is copied, or None.
        element: whether the face alone is written.
        premultiplied: likewise, its alpha.
        notes: what the movie is, for people.
    """

    target: Path
    made: MovieFormat
    times: Times
    space: str
    sound: Path | None
    element: bool
    premultiplied: bool
    notes: tuple[str, ...]

    def open_sound(self) -> SoundCopy | None:
        """The sound to copy, opened."""
        if self.sound is None:
            return None
        return SoundCopy(self.sound, *(self.times.part or (None, None)))


def plan_movie(job: ApplyJob, plate: Plate, sources: Sequence[FrameSource]) -> MoviePlan:
    """What the movie of a job will be; one black frame of it is encoded in memory to see that it can.

    Args:
        job: its output is a movie.
        plate: open.
        sources: frames of the job.

    Raises:
        OutputError, SettingError: it cannot be written like that.
        ColourSpaceError: no such space.
    """
    _check_frames(job, sources)
    movie, wanted = plate.movie, job.movie
    if movie is not None and wanted.space is not None:
        raise SettingError(
            "a movie comes out in its own colour",
            found=f"--output-space {wanted.space}",
            hint="leave --output-space out, or write an EXR sequence and convert that",
        )
    facts = None if movie is None else movie.facts
    source = None if facts is None else plate.first.carrier.picture.layout
    is_element = "element" in job.layers
    alpha = is_element or (source is not None and source.alpha)
    codec = _codec(job, facts, source, alpha=alpha, is_element=is_element)
    colour, space = _colour(job, plate)
    times = _picture_times(job, sources) if movie is None else _movie_times(job, movie, sources)
    made = _format(plate, facts, codec, layout_for(codec, source, alpha=alpha), colour, times)
    lost = (f"{codec.title} holds no alpha: the plate's is left out",) if alpha and not made.layout.alpha else ()
    plan = MoviePlan(
        target=Path(job.output),
        made=made,
        times=times,
        space=space,
        sound=None if movie is None else movie.path,
        element=is_element,
        premultiplied=wanted.alpha == "premultiplied",
        notes=(_describe(Path(job.output), made, colour, times), *lost),
    )
    _try(plan)
    return plan


def _check_frames(job: ApplyJob, sources: Sequence[FrameSource]) -> None:
    numbers = [source.number for source in sources]
    if any(source.path is None for source in sources) or numbers != list(range(numbers[0], numbers[-1] + 1)):
        raise OutputError(
            f"the frames for {job.output} have holes",
            expected="frames one after the other",
            hint="give --frames without gaps, and --missing hold for missing ones; or write an EXR sequence",
        )


def _codec(
    job: ApplyJob, facts: MovieFacts | None, source: Layout | None, *, alpha: bool, is_element: bool
) -> MovieCodec:
    suffix = Path(job.output).suffix.lower()
    if job.movie.codec is not None:
        codec = codec_named(job.movie.codec)
    else:
        codec = fitting_codec(suffix, source, facts.codec if facts else "", alpha=alpha)
    check_codec(codec, suffix, alpha=is_element)
    return codec


def _colour(job: ApplyJob, plate: Plate) -> tuple[MovieColour, str]:
    """(meaning of the code values, their space)."""
    if plate.movie is not None:
        return plate.movie.facts.colour, plate.decision.space
    config, display = plate.config, plate.first.display_window
    space = config.resolve(job.movie.space or "camera_rec709")
    known = {config.resolve(name): tags for name, tags in _TAGGED if knows(config, name)}
    tags = known.get(space, Tags(2, 2, 1, 1))
    layout = layout_for(codec_named("prores_4444"), None, alpha=False)
    return dataclasses.replace(colour_of(tags, layout, display.width, display.height, None), assumed=()), space


def _format(
    plate: Plate, facts: MovieFacts | None, codec: MovieCodec, layout: Layout, colour: MovieColour, times: Times
) -> MovieFormat:
    display = plate.first.display_window
    turned = facts is not None and facts.rotation % 180 != 0
    width, height = (display.height, display.width) if turned else (display.width, display.height)
    coding = coding_for(codec, layout, colour)
    tags = dataclasses.replace(colour.written, range=2 if coding.full_range else 1)
    if coding.matrix != colour.coding.matrix:
        tags = dataclasses.replace(tags, matrix=MATRIX_POINTS[coding.matrix])
    aspect = Fraction(plate.first.pixel_aspect).limit_denominator(10_000)
    metadata = {} if facts is None else facts.metadata
    return MovieFormat(
        codec=codec,
        layout=layout,
        coding=coding,
        tags=tags,
        width=width,
        height=height,
        rate=times.rate,
        time_base=times.base,
        frames=len(times.shown),
        rotation=facts.rotation if facts else 0,
        pixel_aspect=1 / aspect if turned else aspect,
        timecode=times.timecode,
        metadata={name: text for name, text in metadata.items() if name.lower() not in _OF_THE_FILE},
    )


def _movie_times(job: ApplyJob, movie: Movie, sources: Sequence[FrameSource]) -> Times:
    numbers, base = [source.source for source in sources], movie.index.time_base
    all_stamps = movie.index.pts
    first, last = numbers[0] - movie.numbers[0], numbers[-1] - movie.numbers[0]
    step = max(1, round(1 / (movie.facts.rate * base)))
    ends = [*all_stamps[1:], all_stamps[-1] + step]
    whole = len(numbers) == len(movie)
    start, end = all_stamps[first] * base, ends[last] * base
    if job.movie.rate is not None:
        return _conformed(job.movie.rate, movie, sources, start, end)
    shift = 0 if whole else all_stamps[first]
    return Times(
        rate=movie.facts.rate,
        base=base,
        shown=sources,
        stamps=[all_stamps[at] - shift for at in range(first, last + 1)],
        durations=[ends[at] - all_stamps[at] for at in range(first, last + 1)],
        timecode=movie.timecode(numbers[0]),
        part=None if whole else (start, end),
    )


def _conformed(rate: Fraction, movie: Movie, sources: Sequence[FrameSource], start: Fraction, end: Fraction) -> Times:
    """At each tick of the new rate the frame that is on the screen then: the length, and so the sound, stays."""
    begins = [movie.time(source.source) - start for source in sources]
    count = max(1, round((end - start) * rate))
    shown = [sources[bisect.bisect_right(begins, Fraction(at) / rate) - 1] for at in range(count)]
    code = movie.timecode(sources[0].source)
    return Times(
        rate=rate,
        base=Fraction(1, rate.numerator),
        shown=shown,
        stamps=[at * rate.denominator for at in range(count)],
        durations=[rate.denominator] * count,
        timecode=None if code is None else Timecode.parse(str(code), rate),
        part=(start, end),
    )


def _picture_times(job: ApplyJob, sources: Sequence[FrameSource]) -> Times:
    first = sources[0].path
    assert first is not None
    image = read_image(first, sources[0].source)
    said = image.metadata if image.file_format == "exr" else exr_attributes(image)
    rate = job.movie.rate or said.get("framesPerSecond")
    if rate is None:
        raise OutputError(
            f"{first.name} does not say how many frames a second the plate has",
            expected="the attribute framesPerSecond, or --fps",
            hint="give --fps, e.g. --fps 24 or --fps 24000/1001",
        )
    rate = Fraction(rate)
    count = len(sources)
    return Times(
        rate=rate,
        base=Fraction(1, rate.numerator),
        shown=sources,
        stamps=[at * rate.denominator for at in range(count)],
        durations=[rate.denominator] * count,
        timecode=_timecode(said.get("timeCode"), rate),
    )


def _timecode(value: Any, rate: Fraction) -> Timecode | None:
    """Of an EXR's attribute."""
    if value is None:
        return None
    mark = ";" if value.dropFrame else ":"
    text = f"{value.hours:02d}:{value.minutes:02d}:{value.seconds:02d}{mark}{value.frame:02d}"
    return Timecode.parse(text, rate)


def _describe(target: Path, made: MovieFormat, colour: MovieColour, times: Times) -> str:
    rate = f"{made.rate.numerator}/{made.rate.denominator}" if made.rate.denominator != 1 else str(made.rate)
    uneven = "" if len(set(times.durations)) <= 2 else ", variable"
    code = f", timecode {made.timecode}" if made.timecode else ""
    kind = "full" if made.coding.full_range else "limited"
    said = f"transfer {colour.transfer or 'as tagged'}, matrix {made.coding.matrix}, {kind} range"
    return (
        f"{target.name}: {made.codec.title} ({made.layout.name}), {made.width}x{made.height}, "
        f"{len(times.shown)} frames, {rate} frames/s{uneven}, {said}{code}"
    )


def _try(plan: MoviePlan) -> None:
    sound = plan.open_sound()
    with closing(sound) if sound is not None else nullcontext():
        try_format(plan.made, plan.target, sound)
