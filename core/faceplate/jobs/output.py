"""Where a job writes: checks before any work, and the sweep after a kill."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..deliver import check_output_format
from ..errors import InputError, OutputError
from ..media.atomic import check_writable, output_error, remove_abandoned
from ..media.sequence import ImageSequence, is_pattern, output_path
from ..plate import FrameSource, Plate
from .spec import job_folder


def output_paths(
    plate: Plate, output: str, sources: Sequence[FrameSource], holdout: ImageSequence | None = None
) -> dict[int, Path]:
    """The file of each frame.

    Raises:
        OutputError: several frames and no pattern, or an output that is one of the plate's or the hold-out's own files.
    """
    numbers = [source.number for source in sources]
    if len(numbers) > 1 and not is_pattern(output):
        raise OutputError(
            f"{output} is one file for {len(numbers)} frames",
            expected="a pattern",
            hint="put # for each digit of the frame number, e.g. result.####.exr",
        )
    paths = {number: output_path(output, number) if is_pattern(output) else Path(output) for number in numbers}
    check_not_input(plate, paths.values(), sources, holdout)
    return paths


def check_not_input(
    plate: Plate, paths: Iterable[Path], sources: Sequence[FrameSource], holdout: ImageSequence | None
) -> None:
    """Refuse to write what the job reads.

    Raises:
        OutputError: an output is one of the plate's or the hold-out's own files.
    """
    numbers = [source.number for source in sources]
    originals = {os.path.realpath(plate.sequence.path(frame)) for frame in plate.sequence.frames}
    # A hole of the plate is the plate's too: a held frame written there would pass for footage on the next run.
    originals |= {os.path.realpath(output_path(plate.sequence.pattern, number)) for number in numbers}
    mattes = {os.path.realpath(path) for path in holdout.files.values()} if holdout else set()
    for path in paths:
        if os.path.realpath(path) in originals | mattes:
            raise OutputError(
                f"{path} is a file of the {'hold-out' if os.path.realpath(path) in mattes else 'plate'} itself",
                hint="write somewhere else: what a job reads is never overwritten",
            )


def prepare_output(plate: Plate, output: str, layers: Sequence[str]) -> Path:
    """Make the output's folder and the job folder, prove that they can be written.

    Returns:
        The job folder.

    Raises:
        OutputError: wrong format, unwritable, or a part of the path is a file.
    """
    check_output_format(plate, Path(output).suffix, layers)
    folder = job_folder(output)
    make_folder(folder)
    for place in (folder.parent, folder):
        check_writable(place)
    return folder


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, where they are absent.

    Raises:
        OutputError: it cannot be made, or a file is in its place.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise output_error(folder, error) from error


def sweep(folder: Path) -> int:
    """Remove what a killed run left half-written in a folder; the number of files. What runs now stays untouched."""
    try:
        return sum(remove_abandoned(path) for path in sorted(folder.iterdir()))
    except OSError as error:
        raise output_error(folder, error) from error


def check_range(sources: Sequence[FrameSource]) -> None:
    """Refuse a job without a frame."""
    if not any(source.path for source in sources):
        raise InputError("the range holds no frame on disk", hint="check --frames against the files")
