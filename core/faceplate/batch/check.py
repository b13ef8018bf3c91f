"""Checks what a job wrote: all frames there, whole, of one raster, with timecodes that count on."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import OpenImageIO as oiio

from ..errors import FaceplateError, ImageReadError, InputError, ManifestError
from ..faces.sidecar import frame_ranges
from ..frame import Box
from ..job import FINISHED
from ..jobs.cancel import CancelToken
from ..jobs.events import Emit, progress
from ..jobs.manifest import FrameRecord, read_records
from ..jobs.reporting import MANIFEST_FILE
from ..jobs.spec import job_folder
from ..media.file_hash import file_hash
from ..media.formats import is_movie
from ..media.movies.movie import Movie
from ..media.read import read_image
from ..media.sequence import is_pattern, open_sequence, output_path, parse_frame_range

Timecode = tuple[int, int, int, int]
"""Hours, minutes, seconds, frames."""
_MOST = 200
"""Frames that a problem names at most."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found.

    Attributes:
        output: as given.
        frames: how many were expected.
        problems: sentences; none where all is well.
    """

    output: str
    frames: int
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Head:
    raster: Box
    timecode: Timecode | None


def check_output(
    output: str, frames: str | None, plate: str | None, emit: Emit, cancel: CancelToken, *, conformed: bool = False
) -> Checked:
    """Check a result.

    A frame whose hash is that of the job's manifest is whole; others are read to their end. Movies are decoded.

    Args:
        output: pattern, file or movie.
        frames: range that has to be there; None for the frames of the job folder, or from first to last on disk.
        plate: what the result should be like: raster and timecodes; None compares the frames with each other.
        emit: takes progress.
        cancel: asked between frames.
        conformed: whether a movie has other frames than the job made, for its own rate.

    Raises:
        InputError: nothing there, or `frames` or `plate` cannot be read.
        Cancelled: asked to stop.
    """
    records = _records(output)
    if is_movie(output):
        movie = Movie(Path(output))
        wanted = movie.numbers if conformed else _wanted_of_movie(movie, frames, records)
        return _check_movie(movie, output, wanted, plate, emit, cancel)
    wanted = _wanted(output, frames, records)
    like = {} if plate is None or is_movie(plate) else dict(open_sequence(plate).files)
    problems: dict[str, list[int]] = {}
    heads: dict[int, _Head] = {}
    for done, number in enumerate(wanted, start=1):
        cancel.check()
        path = output_path(output, number) if is_pattern(output) else Path(output)
        wrong, head = _look(path, records.get(number))
        if wrong:
            problems.setdefault(wrong, []).append(number)
        if head is not None:
            heads[number] = head
        emit(progress("check", done, len(wanted)))
    _compare(heads, like, problems)
    return Checked(output, len(wanted), tuple(_sentence(text, found) for text, found in problems.items()))


def _sentence(text: str, frames: Sequence[int]) -> str:
    return f"{text}: {frame_ranges(frames[:_MOST])}" + (
        f" and {len(frames) - _MOST} more" if len(frames) > _MOST else ""
    )


def _records(output: str) -> Mapping[int, FrameRecord]:
    path = job_folder(output) / MANIFEST_FILE
    try:
        return read_records(path) if path.is_file() else {}
    except ManifestError:
        return {}  # the job itself says that it is damaged; frames are read instead


def _wanted(output: str, frames: str | None, records: Mapping[int, FrameRecord]) -> Sequence[int]:
    if frames is not None:
        return parse_frame_range(frames)
    if records:
        return sorted(number for number, record in records.items() if record.state.value != "skipped")
    on_disk = open_sequence(output).frames
    return range(on_disk[0], on_disk[-1] + 1)


def _look(path: Path, record: FrameRecord | None) -> tuple[str, _Head | None]:
    """(what is wrong with a frame, what its header says)."""
    if not path.is_file():
        failed = record is not None and record.state not in FINISHED
        return ("failed, no file" if failed else "no file"), None
    try:
        head = _head(path)
        if record is not None and record.output_hash:
            if file_hash(path) != record.output_hash:
                return "not as the job wrote it", head
        else:
            read_image(path)
    except FaceplateError as error:
        return f"cannot be read ({error.found or error.message})", None
    return "", head


def _head(path: Path) -> _Head:
    opened = oiio.ImageInput.open(str(path))
    if opened is None:
        raise ImageReadError(f"{path} cannot be read", found=oiio.geterror())
    try:
        spec = opened.spec()
        raster = Box(spec.full_x, spec.full_y, spec.full_x + spec.full_width, spec.full_y + spec.full_height)
        return _Head(raster, _timecode(spec.get_string_attribute("smpte:TimeCode")))
    finally:
        opened.close()


def _timecode(text: str) -> Timecode | None:
    parts = text.replace(";", ":").split(":")
    return (int(parts[0]), int(parts[1]), int(parts[2]), int(parts[3])) if len(parts) == 4 else None


def _compare(heads: Mapping[int, _Head], like: Mapping[int, Path], problems: dict[str, list[int]]) -> None:
    plate: dict[int, _Head] = {}
    for number in heads:
        if number in like:
            try:
                plate[number] = _head(like[number])
            except ImageReadError:
                continue  # a damaged plate frame is the job's to tell
    first = next(iter(heads.values()), None)
    for number, head in heads.items():
        wanted = plate.get(number, first)
        assert wanted is not None
        if head.raster != wanted.raster:
            problems.setdefault(f"another raster than {_size(wanted.raster)}", []).append(number)
        if number in plate and head.timecode != plate[number].timecode:
            problems.setdefault("another timecode than the plate", []).append(number)
    for before, number in itertools.pairwise(heads):
        if (
            number not in plate
            and number == before + 1
            and not _follows(heads[before].timecode, heads[number].timecode)
        ):
            problems.setdefault("the timecode does not count on", []).append(number)


def _size(box: Box) -> str:
    return f"{box.width}x{box.height}"


def _follows(before: Timecode | None, after: Timecode | None) -> bool:
    """Whether a timecode is one frame later than another, at whatever rate; drop frame leaves 0 and 1 out."""
    if before is None or after is None:
        return before is after
    seconds = [(one[0] * 60 + one[1]) * 60 + one[2] for one in (before, after)]
    if seconds[0] == seconds[1]:
        return after[3] == before[3] + 1
    return (seconds[1] - seconds[0]) % 86400 == 1 and before[3] >= 22 and after[3] in (0, 2, 4)


def _wanted_of_movie(movie: Movie, frames: str | None, records: Mapping[int, FrameRecord]) -> Sequence[int]:
    if frames is not None:
        return parse_frame_range(frames)
    return sorted(records) or movie.numbers


def _check_movie(
    movie: Movie, output: str, numbers: Sequence[int], plate: str | None, emit: Emit, cancel: CancelToken
) -> Checked:
    problems: dict[str, list[int]] = {}
    if len(movie) != len(numbers):
        problems[f"{len(numbers)} frames expected, {len(movie)} found; the last"] = [movie.numbers[-1]]
    for done, number in enumerate(movie.numbers, start=1):
        cancel.check()
        try:
            movie.picture(number)
        except InputError as error:
            problems.setdefault(f"cannot be read ({error.found or error.message})", []).append(number)
        emit(progress("check", done, len(movie)))
    if plate is not None and is_movie(plate):
        _compare_movies(movie, Movie(Path(plate)), numbers, problems)
    return Checked(output, len(numbers), tuple(_sentence(text, found) for text, found in problems.items()))


def _compare_movies(made: Movie, plate: Movie, numbers: Sequence[int], problems: dict[str, list[int]]) -> None:
    sizes = [(one.facts.width, one.facts.height) for one in (made, plate)]
    if sizes[0] != sizes[1]:
        problems[f"another raster than {sizes[1][0]}x{sizes[1][1]}"] = [1]
    if numbers[0] in plate.numbers:
        code = plate.timecode(numbers[0])
        if code is not None and str(made.timecode(1)) != str(code):
            problems[f"another timecode than the plate ({code})"] = [1]
