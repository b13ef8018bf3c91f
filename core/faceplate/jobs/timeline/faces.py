"""The faces of a timeline's sources: found once where the timeline looks, kept in sidecars, pictured for the sheet."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import FaceplateError, SidecarError
from ...face import Observation, Origin, Track
from ...faces.shot import ShotFaces
from ...faces.sidecar import frame_ranges, read_sidecar, sidecar_path
from ...frame import Frame
from ...media.atomic import atomic_write
from ...media.file_hash import file_hash
from ...media.timelines.folders import Run
from ...plate import FrameSource, Plate, open_plate
from ...report.contact import face_picture, frame_picture
from ..analyse import AnalyseJob, run_analyse
from ..cancel import CancelToken
from ..events import Emit, note
from ..hashes import HashCache
from ..spec import Workbench
from .plan import ShotPlan, merge, ranges_text

_RUN_IN = 8
"""Frames before and after a part that are analysed too, so that smoothing has neighbours at its ends."""
_LONG = 40
_ROOM = 0.45
"""Room around a face in its picture, fraction of its extent."""


@dataclass(frozen=True, slots=True, eq=False)
class Looked:
    """A source whose faces are at hand: much data, one source at a time.

    Attributes:
        plan: what is rendered of it.
        sidecar: file with the faces.
        faces: what is in it.
        tracks: those that are seen in frames to be rendered.
    """

    plan: ShotPlan
    sidecar: Path
    faces: ShotFaces
    tracks: tuple[Track, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SeenTrack:
    """What is kept of a track.

    Attributes:
        id: of the track.
        frames: where it is seen, of the frames to be rendered, in words.
        width_px: its mean width.
        weight: how much is seen of it.
        runs: stretches of frames in which it is seen.
        vector: what a recogniser says of it, unit length; None where it says nothing for certain.
        rule: index of the rule of the command line that takes it, None where none does.
    """

    id: int
    frames: str
    width_px: float
    weight: float
    runs: tuple[Run, ...]
    vector: NDArray[np.float32] | None = None
    rule: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class SeenShot:
    """What is kept of a source whose faces are known; little, whatever its length.

    Attributes:
        plan: what is rendered of it.
        sidecar: file with the faces.
        tracks: those that are seen in frames to be rendered.
        all_tracks: numbers of all tracks in the sidecar.
        pictures: for the contact sheet.
    """

    plan: ShotPlan
    sidecar: Path
    tracks: tuple[SeenTrack, ...]
    all_tracks: frozenset[int]
    pictures: ShotPictures


@dataclass(frozen=True, slots=True, eq=False)
class ShotPictures:
    """Pictures of a source for the contact sheet.

    Attributes:
        whole: JPEG of a frame, empty where none could be read.
        faces: JPEG by track.
    """

    whole: bytes
    faces: Mapping[int, bytes]


def analysed_parts(shot: ShotPlan) -> tuple[Run, ...]:
    """The frames that are looked at: those to render and some around them, without the holes."""
    numbers = shot.media.numbers
    wide = merge((max(a - _RUN_IN, numbers.first), min(b + _RUN_IN, numbers.last)) for a, b in shot.parts)
    return tuple((max(a, low), min(b, high)) for a, b in wide for low, high in numbers.runs if low <= b and a <= high)


def see_shot(
    shot: ShotPlan, folder: Path, input_space: str | None, bench: Workbench, emit: Emit, cancel: CancelToken
) -> Looked:
    """The faces of a source: from the sidecar beside the plate where it fits, else looked for and kept in `folder`.

    Raises:
        InputError: the plate cannot be read.
        Cancelled: asked to stop.
    """
    parts = analysed_parts(shot)
    own = folder / f"{shot.name}.faces.json"
    path = _beside(shot, emit)
    if path is None:
        path = run_analyse(AnalyseJob(shot.media.plate, ranges_text(parts), own, input_space), bench, emit, cancel)
    faces = read_sidecar(path)
    wanted = [range(first, last + 1) for first, last in shot.parts]
    tracks = tuple(
        track for track in faces.tracks if any(frame in part for frame in track.observations for part in wanted)
    )
    return Looked(shot, path, faces, tracks)


def _beside(shot: ShotPlan, emit: Emit) -> Path | None:
    """The sidecar beside the plate, where it was made of these very frames and holds all of them."""
    path = sidecar_path(shot.media.plate)
    if not path.is_file():
        return None
    try:
        faces = read_sidecar(path)
    except SidecarError as error:
        emit(note(f"{path} is not used: {error}"))
        return None
    hashes = HashCache()
    known = faces.source.hashes if faces.source else {}
    for first, last in shot.parts:
        for number in range(first, last + 1):
            if shot.media.numbers.missing(number, number):
                continue
            if known.get(number) != hashes.get(_file(shot, number)):
                emit(note(f"{path} is not used: frame {number} is not in it, or has changed since"))
                return None
    emit(note(f"faces: {path}"))
    return path


def _file(shot: ShotPlan, number: int) -> Path:
    before, mark, after = shot.media.plate.partition("#" * shot.media.numbers.width)
    if shot.media.is_movie or not mark:
        return Path(shot.media.plate)
    return Path(f"{before}{number:0{shot.media.numbers.width}d}{after}")


def frames_text(looked: Looked, track: Track) -> str:
    """Where a track is seen, of the frames to be rendered."""
    inside = [frame for frame in track.observations if any(a <= frame <= b for a, b in looked.plan.parts)]
    text = frame_ranges(inside)
    return text if len(text) < _LONG else f"{inside[0]}-{inside[-1]} with gaps"


def shot_pictures(seen: Looked, folder: Path, input_space: str | None, bench: Workbench) -> ShotPictures:
    """The pictures of a source, from an earlier run where the faces are the same.

    Raises:
        OutputError: they cannot be kept.
    """
    key = json.dumps([file_hash(seen.sidecar), [track.id for track in seen.tracks], seen.plan.frames])
    note_file = folder / f"{seen.plan.name}.json"
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        kept: Any = json.loads(note_file.read_text("utf-8"))
        if kept["key"] == key:
            faces = {track.id: (folder / f"{seen.plan.name}.{track.id}.jpg").read_bytes() for track in seen.tracks}
            return ShotPictures((folder / f"{seen.plan.name}.jpg").read_bytes(), faces)
    made = _draw(seen, input_space, bench)
    for name, data in {"": made.whole, **{f".{track}": data for track, data in made.faces.items()}}.items():
        with atomic_write(folder / f"{seen.plan.name}{name}.jpg") as temporary:
            temporary.write_bytes(data)
    with atomic_write(note_file) as temporary:
        temporary.write_text(json.dumps({"key": key}), "utf-8")
    return made


def _draw(seen: Looked, input_space: str | None, bench: Workbench) -> ShotPictures:
    try:
        plate = open_plate(seen.plan.media.plate, bench.config, input_space)
    except FaceplateError:
        return ShotPictures(b"", {track.id: b"" for track in seen.tracks})
    wanted = {track.id: _clearest(track, seen.plan.parts) for track in seen.tracks}
    whole_at = _fullest(seen)
    whole, faces = b"", dict[int, bytes]()
    for number in sorted({whole_at, *(each.frame for each in wanted.values())}):
        try:
            frame = plate.read(FrameSource(number, plate.sequence.path(number), "present", number))
            linear = _linear(plate, frame)
        except FaceplateError:
            continue  # it fails where it is rendered
        if number == whole_at:
            boxes = [(track, *_box(each, frame)) for track, each in seen.faces.in_frame(number).items()]
            whole = frame_picture(linear, boxes)
        for track, each in wanted.items():
            if each.frame == number:
                faces[track] = _face(linear, _box(each, frame))
    return ShotPictures(whole, {track: faces.get(track, b"") for track in wanted})


def _linear(plate: Plate, frame: Frame) -> NDArray[np.float32]:
    """All of a frame's pixels in linear Rec.709."""
    rgb = np.ascontiguousarray(frame.pixels[..., :3], np.float32)
    return plate.config.to_rec709(frame.colour_space).numpy(rgb)


def _box(seen: Observation, frame: Frame) -> tuple[float, float, float, float]:
    """Extent of a face in pixels of the frame's data window."""
    points = seen.landmarks[:468, :2]
    (x0, y0), (x1, y1) = points.min(0), points.max(0)
    left, top = frame.data_window.x0, frame.data_window.y0
    return float(x0 - left), float(y0 - top), float(x1 - left), float(y1 - top)


def _face(linear: NDArray[np.float32], box: tuple[float, float, float, float]) -> bytes:
    height, width = linear.shape[:2]
    half = max(box[2] - box[0], box[3] - box[1]) * (0.5 + _ROOM)
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    columns = slice(max(0, round(x - half)), min(width, round(x + half)))
    rows = slice(max(0, round(y - half)), min(height, round(y + half)))
    crop = linear[rows, columns]
    return face_picture(np.ascontiguousarray(crop)) if crop.size else b""


def _clearest(track: Track, parts: Sequence[Run]) -> Observation:
    """The observation that shows best who it is: wide, facing, truly seen."""
    inside = [each for each in track.observations.values() if any(a <= each.frame <= b for a, b in parts)]

    def rank(each: Observation) -> tuple[float, int]:
        seen = 0.3 if each.origin is Origin.FILLED else 1.0
        return each.width_px * each.score * seen * (1 - abs(each.yaw_deg) / 120), -each.frame

    return max(inside, key=rank)


def _fullest(seen: Looked) -> int:
    """The frame with most faces, the middle one of several; of a source without a face the middle of its first part."""
    first, last = seen.plan.parts[0]
    counts: dict[int, int] = {}
    for track in seen.tracks:
        for frame in track.observations:
            if any(a <= frame <= b for a, b in seen.plan.parts):
                counts[frame] = counts.get(frame, 0) + 1
    if not counts:
        return (first + last) // 2
    best = sorted(frame for frame, count in counts.items() if count == max(counts.values()))
    return best[len(best) // 2]
