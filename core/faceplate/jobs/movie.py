"""The last step of a job whose output is a movie: plate and patches become one file, whole or not at all."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..colour.transform import ColourTransform
from ..errors import InputError
from ..frame import Box
from ..media.atomic import atomic_write
from ..media.movies.convert import convert
from ..media.movies.encode import MovieWriter, check_written
from ..media.movies.layout import Planes
from ..media.movies.planes import from_rgb
from ..media.sequence import ImageSequence
from ..plate import FrameSource, Plate
from .cancel import CancelToken
from .events import Emit, note, progress
from .hashes import HashCache
from .movie_plan import MoviePlan
from .output import check_not_input
from .patches import Patch, patch_path, read_patch
from .spec import Workbench, digest
from .stamp import coded_patch, element, stamp

MOVIE_FILE = "movie.json"
_AHEAD = 3


def patch_paths(
    plate: Plate, output: str, folder: Path, sources: Sequence[FrameSource], holdout: ImageSequence | None
) -> dict[int, Path]:
    """Where the frames of a movie are kept until it is made.

    Raises:
        OutputError: the movie is one of the files that the job reads.
    """
    check_not_input(plate, [Path(output)], sources, holdout)
    return {source.number: patch_path(folder, source.number) for source in sources}


def stand_in(plan: MoviePlan, plate: Plate, lacking: frozenset[int]) -> tuple[MoviePlan, list[int]]:
    """A plan in which the plate stands in for frames that failed, and for one that cannot be read its neighbour.

    Args:
        plan: as the job has it.
        plate: open.
        lacking: frame numbers that have no patch.

    Returns:
        (the plan; the frames that cannot be read).

    Raises:
        ImageReadError: no frame at all can be read.
    """
    bad: dict[int, InputError] = {}
    for source in plan.times.shown:
        if source.number in lacking and source.number not in bad:
            try:
                plate.read(source)
            except InputError as error:
                bad[source.number] = error
    good = [source for source in plan.times.shown if source.number not in bad]
    if not good:
        raise next(iter(bad.values()))
    shown, latest = [], good[0]
    for source in plan.times.shown:
        latest = source if source.number not in bad else latest
        shown.append(latest)
    return dataclasses.replace(plan, times=dataclasses.replace(plan.times, shown=shown)), sorted(bad)


class _Pictures:
    """Code values of each frame of the movie."""

    def __init__(
        self, plan: MoviePlan, plate: Plate, patches: Mapping[int, Path], ready: Callable[[int], None] | None
    ) -> None:
        self._plan, self._plate, self._patches, self._ready = plan, plate, patches, ready
        self._encode: ColourTransform | None = None
        if plan.space != plate.colour_space:
            self._encode = plate.config.transform(plate.colour_space, plan.space)

    def __call__(self, source: FrameSource) -> Planes:
        plan, made = self._plan, self._plan.made
        patch = self._patch(source)
        if plan.element:
            size = (made.height, made.width)
            return element(size, made.layout, made.coding, patch, self._encode, premultiplied=plan.premultiplied)
        return stamp(self._base(source), made.layout, made.coding, patch, self._encode)

    def _patch(self, source: FrameSource) -> Patch:
        """Of a frame, in the movie's own pixels."""
        display = self._plate.first.display_window
        if source.number not in self._patches:
            return Patch(Box(0, 0, 1, 1), np.zeros((1, 1, 3), np.float32), np.zeros((1, 1), np.float32))
        if self._ready is not None:
            self._ready(source.number)
        patch = read_patch(self._patches[source.number])
        window = patch.window.intersect(display)
        rows, columns = window.slices(patch.window)
        moved = Box(window.x0 - display.x0, window.y0 - display.y0, window.x1 - display.x0, window.y1 - display.y0)
        inside = Patch(moved, patch.rgb[rows, columns], patch.matte[rows, columns])
        return coded_patch(inside, self._plan.made.rotation, display.width, display.height)

    def _base(self, source: FrameSource) -> Planes:
        """The plate's codes, as near to its own as the movie's layout allows."""
        made, movie = self._plan.made, self._plate.movie
        if movie is not None:
            picture = movie.picture(source.source)
            return convert(picture.planes, picture.layout, movie.facts.colour.coding, made.layout, made.coding)
        frame = self._plate.read(source)
        display = frame.display_window
        rgb = np.zeros((display.height, display.width, 3), np.float32)
        inside = frame.data_window.intersect(display)
        rgb[inside.slices(display)] = frame.crop(inside)
        return from_rgb(rgb if self._encode is None else self._encode.numpy(rgb), made.layout, made.coding)


def assemble(
    plan: MoviePlan,
    plate: Plate,
    folder: Path,
    patches: Mapping[int, Path],
    attributes: Mapping[str, Any],
    bench: Workbench,
    hashes: HashCache,
    emit: Emit,
    cancel: CancelToken,
    ready: Callable[[int], None] | None = None,
) -> str:
    """Make the movie, unless it is there already and made of the same.

    Args:
        plan: what to write.
        plate: open.
        folder: of the job.
        patches: by frame number; a frame without one is the plate's own.
        attributes: of every frame; text and numbers go into the movie's metadata.
        bench: threads, and whose turn it is.
        hashes: of files.
        emit: takes progress.
        cancel: asked between frames.
        ready: returns when the patch of a frame is there; None where all are, as for a movie that may be made already.

    Returns:
        The hash of the movie.

    Raises:
        Cancelled: asked to stop; nothing is left under the name.
        OutputError: it cannot be written, or is not what was asked for when read back.
        ImageReadError: a frame of the plate cannot be read.
    """
    metadata = {**plan.made.metadata, **_texts(attributes)}
    plan = dataclasses.replace(plan, made=dataclasses.replace(plan.made, metadata=metadata))
    if ready is None:
        kept = _kept(folder / MOVIE_FILE)
        same = kept.get("key") == _key(plan, plate, patches, hashes)
        if same and os.path.isfile(plan.target) and hashes.get(plan.target) == kept.get("hash"):
            emit(note(f"{plan.target} is made already"))
            return str(kept["hash"])
    with atomic_write(plan.target) as temporary:
        _write(temporary, plan, _Pictures(plan, plate, patches, ready), bench, emit, cancel)
    key = _key(plan, plate, patches, hashes)
    made = hashes.get(plan.target)
    with atomic_write(folder / MOVIE_FILE) as temporary:
        temporary.write_text(json.dumps({"key": key, "hash": made, "movie": plan.target.name}), "utf-8")
    return made


def _write(path: Path, plan: MoviePlan, pictures: _Pictures, bench: Workbench, emit: Emit, cancel: CancelToken) -> None:
    times, made = plan.times, plan.made
    sound = plan.open_sound()
    with closing(sound) if sound is not None else nullcontext(), MovieWriter(path, plan.target, made, sound) as writer:
        ready = _ahead(pictures, times.shown, bench.threads)
        for done, (planes, stamp_, duration) in enumerate(
            zip(ready, times.stamps, times.durations, strict=True), start=1
        ):
            with bench.turn():
                cancel.check()
                writer.write(planes, stamp_, duration)
            emit(progress("encode", done, len(times.shown)))
    check_written(path, plan.target, made, times.stamps, sound.written if sound is not None else {})


def _ahead(pictures: _Pictures, shown: Sequence[FrameSource], threads: int) -> Iterator[Planes]:
    """Pictures in order, the next ones being made while one is encoded."""
    waiting: deque[Future[Planes]] = deque()
    left = iter(shown)
    with ThreadPoolExecutor(max(1, threads), thread_name_prefix="picture") as pool:
        try:
            for source in itertools.islice(left, _AHEAD):
                waiting.append(pool.submit(pictures, source))
            while waiting:
                planes = waiting.popleft().result()
                for source in itertools.islice(left, 1):
                    waiting.append(pool.submit(pictures, source))
                yield planes
        finally:
            for future in waiting:
                future.cancel()


def _texts(attributes: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: str(value) for name, value in attributes.items() if isinstance(value, str | int | float) and value != ""
    }


def _key(plan: MoviePlan, plate: Plate, patches: Mapping[int, Path], hashes: HashCache) -> str:
    """Digest of all that decides the movie's bytes."""
    made, times = plan.made, plan.times
    # only those that are shown: the others may not be made yet
    made_of = {one.number: hashes.get(patches[one.number]) for one in times.shown if one.number in patches}
    frames = [[source.number, source.source, made_of.get(source.number)] for source in times.shown]
    inputs = sorted({hashes.get(source.path) for source in times.shown if source.path is not None})
    return digest(
        {
            "tool": __version__,
            "inputs": inputs,
            "frames": frames,
            "times": [list(times.stamps), list(times.durations), str(times.base), str(times.part)],
            "codec": [made.codec.name, dict(made.codec.options), made.layout.name, str(made.coding), str(made.tags)],
            "container": [plan.target.suffix.lower(), str(made.timecode), dict(made.metadata), made.rotation],
            "colour": [plan.space, plate.colour_space, plate.config.name],
            "element": [plan.element, plan.premultiplied],
        }
    )


def _kept(path: Path) -> Mapping[str, Any]:
    """What an earlier run noted; nothing where there is no such note, or a damaged one."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
