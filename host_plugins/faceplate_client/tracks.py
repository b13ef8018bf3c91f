"""Faces that analysis found, as points for a host's tracker, and the way back of what an artist moved.

Reads the sidecar (`*.faces.json`) as a plain JSON file and changes one key of it, "corrections", which the server
applies whenever it reads the file: named points of a track in a frame, in plate px. The rest of the file stays as it
is, line by line. Points are such that an artist can find them in a picture; left and right are the subject's own.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .errors import RecordDamaged
from .job_record import write_whole

NAMED: Mapping[str, int] = MappingProxyType(
    {
        "forehead": 10,
        "chin": 152,
        "right cheek": 234,
        "left cheek": 454,
        "right brow": 105,
        "left brow": 334,
        "right eye outer": 33,
        "right eye inner": 133,
        "left eye inner": 362,
        "left eye outer": 263,
        "nose tip": 1,
        "right mouth corner": 61,
        "left mouth corner": 291,
        "upper lip": 13,
        "lower lip": 14,
    }
)
"""As in the server's `faces/corrections.py`: names, and places in the list of landmarks."""
MOVED_PX = 0.05
"""A point that moved less than this was not moved by an artist: a host's own numbers round."""
_KEY = "corrections"
_LINE = re.compile(r'^"corrections": .*?(,?)$', re.MULTILINE)

Points = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class FaceTrack:
    """One face over time.

    Attributes:
        id: as jobs name it.
        label: an artist's name for it, or "".
        frames: by frame number of the source, its named points in plate px: x right, y down, the centre of the first
            pixel of the display window at (0.5, 0.5).
    """

    id: int
    label: str
    frames: Mapping[int, Points]


@dataclass(frozen=True)
class FaceTracks:
    """All faces of a sidecar.

    Attributes:
        path: of the sidecar.
        data_window: (x0, y0, x1, y1) half-open, plate px: what a host that reads the files shows.
        tracks: by rising id.
    """

    path: Path
    data_window: tuple[int, int, int, int]
    tracks: tuple[FaceTrack, ...]

    def to_unit(self, x: float, y: float) -> tuple[float, float]:
        """Plate px to 0..1 of the picture, y up, as trackers have it."""
        x0, y0, x1, y1 = self.data_window
        return (x - x0) / (x1 - x0), 1.0 - (y - y0) / (y1 - y0)

    def to_plate(self, u: float, v: float) -> tuple[float, float]:
        """The inverse of `to_unit`."""
        x0, y0, x1, y1 = self.data_window
        return x0 + u * (x1 - x0), y0 + (1.0 - v) * (y1 - y0)


def read(path: Path) -> FaceTracks:
    """The faces of a sidecar, corrections in it included.

    Raises:
        RecordDamaged: no such file, or not a sidecar.
    """
    _, document = _load(path)
    try:
        window = tuple(int(value) for value in document["plate"]["data_window"])
        x0, y0, x1, y1 = window
        tracks = []
        for one in document["tracks"]:
            moved = document.get(_KEY, {}).get(str(one["id"]), {})
            frames = {}
            for line in one["frames"]:
                numbers = line["landmarks"]
                points = {name: (float(numbers[3 * i]), float(numbers[3 * i + 1])) for name, i in NAMED.items()}
                points.update(
                    {name: (float(x), float(y)) for name, (x, y) in moved.get(str(line["frame"]), {}).items()}
                )
                frames[int(line["frame"])] = points
            tracks.append(FaceTrack(int(one["id"]), str(one["label"]), frames))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from error
    if x1 <= x0 or y1 <= y0:
        raise _damaged(path, f"data window {window}")
    return FaceTracks(path, (x0, y0, x1, y1), tuple(sorted(tracks, key=lambda track: track.id)))


def moved(before: Points, now: Points) -> dict[str, tuple[float, float]]:
    """The points of `now` that an artist moved."""
    return {name: at for name, at in now.items() if name in before and math.dist(at, before[name]) > MOVED_PX}


def correct(path: Path, track: int, frames: Mapping[int, Points]) -> int:
    """Write where points of a track are; those that were corrected before and are not named stay so.

    Args:
        path: of the sidecar.
        track: its id.
        frames: by frame number of the source, the points that were moved, plate px.

    Returns:
        How many frames have corrections now, of this track.

    Raises:
        RecordDamaged: no such file, not a sidecar, or the track has no face in one of the frames.
        FolderFailed: the file cannot be written.
    """
    text, document = _load(path)
    found = next((one for one in read(path).tracks if one.id == track), None)
    gone = sorted(frame for frame in frames if found is None or frame not in found.frames)
    if gone:
        raise RecordDamaged(
            f"track {track} has no face in frame {gone[0]} of {path.name}",
            hint="find the faces again, then import them",
        )
    corrections: dict[str, Any] = document.get(_KEY, {})
    ours: dict[str, Any] = corrections.setdefault(str(track), {})
    for frame, points in frames.items():
        if points:
            places = {name: [round(x, 3), round(y, 3)] for name, (x, y) in points.items()}
            ours[str(frame)] = {**ours.get(str(frame), {}), **places}
    if not ours:
        del corrections[str(track)]
    write_whole(path, _with(text, corrections).encode("utf-8"))
    return len(ours)


def _with(text: str, corrections: Mapping[str, Any]) -> str:
    """The sidecar's text with its line of corrections put in, replaced."""
    line = f'"{_KEY}": {json.dumps(corrections, separators=(",", ":"))}'
    if _LINE.search(text):
        return _LINE.sub(lambda match: line + match[1], text, count=1)
    before, brace, after = text.partition("{")
    return f"{before}{brace}\n{line},{after}"


def _load(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = path.read_text("utf-8")
        document = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(document, dict) or document.get("format") != "faceplate faces":
        raise _damaged(path, "another kind of file")
    return text, document


def _damaged(path: Path, found: str) -> RecordDamaged:
    return RecordDamaged(f"{path} is no list of faces", found=found, hint="find the faces again")
