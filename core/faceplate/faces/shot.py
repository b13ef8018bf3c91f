"""The faces of a shot, as analysis finds them and the sidecar keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingError
from ..face import Observation, Origin, Points, Track
from ..frame import Box
from .detect import DetectSettings
from .landmarks import LandmarkSettings
from .smooth import MEMORY_FRAMES

QUANTUM = 1024
"""Landmarks are multiples of 1/1024 px, so that the sidecar's four decimals give back the same bits."""
WEAK_SCORE = 0.9
WEAK_YAW_DEG = 60.0


def quantise(landmarks: NDArray[np.floating[Any]]) -> Points:
    """(N, 3) float32, rounded to multiples of 1/1024 px (exact in float32 up to 16384 px); doing it twice is once."""
    # Adding zero turns -0 into 0, which JSON cannot tell apart.
    return (np.rint(np.asarray(landmarks, np.float64) * QUANTUM) / QUANTUM + 0.0).astype(np.float32)


@dataclass(frozen=True, slots=True)
class AnalyseSettings:
    """How a shot is analysed.

    Attributes:
        detect: looking for faces.
        landmarks: measuring them.
        search_every: frames from one full search to the next; between them a quick look finds new faces of about a
            twentieth of the frame's longer side or more, and smaller ones are traced back from the next full search.
        max_gap: most frames in a row that are filled where a face was not seen.
        min_length: tracks seen in fewer frames are dropped as flicker, unless the shot (or the part between two
            cuts) is shorter.
        smoothing: frames to each side over which landmarks are averaged along the optical flow; 0 for none.

    Raises:
        SettingError: a value is out of range.
    """

    detect: DetectSettings = field(default_factory=DetectSettings)
    landmarks: LandmarkSettings = field(default_factory=LandmarkSettings)
    search_every: int = 24
    max_gap: int = 8
    min_length: int = 3
    smoothing: float = MEMORY_FRAMES

    def __post_init__(self) -> None:
        for name, value, low, high in (
            ("search_every", self.search_every, 1, 10_000),
            ("max_gap", self.max_gap, 0, 100),
            ("min_length", self.min_length, 1, 1000),
            ("smoothing", self.smoothing, 0, 100),
            ("min_face_px", self.detect.min_face_px, 10, 10_000),
            ("threshold", self.detect.threshold, 0.05, 0.95),
            ("max_faces", self.detect.max_faces, 1, 100),
            ("min_score", self.landmarks.min_score, 0.05, 0.99),
            ("iterations", self.landmarks.iterations, 1, 10),
            ("squares", self.landmarks.squares, 1, 5),
        ):
            if not low <= value <= high:
                raise SettingError(
                    f"analysis setting {name} is out of range", expected=f"{low}..{high}", found=str(value)
                )


@dataclass(frozen=True, slots=True)
class ShotSource:
    """The plate that was analysed.

    Attributes:
        pattern: the sequence as the user names it.
        hashes: content hash of each frame's file, by frame number.
        display_window: the raster.
        data_window: what was looked at, of the first frame.
        pixel_aspect: width / height of a pixel.
        colour_space: in which the plate was read.
    """

    pattern: str
    hashes: Mapping[int, str]
    display_window: Box
    data_window: Box
    pixel_aspect: float
    colour_space: str


@dataclass(frozen=True, slots=True, eq=False)
class ShotFaces:
    """Every face of a shot.

    Attributes:
        frames: all frame numbers, rising.
        tracks: by rising id.
        cuts: first frame after each cut.
        settings: of the analysis.
        nets: SHA-256 of each net's file by its id.
        source: the plate; None where it was never a file.
        extras: what else stood in the sidecar, kept when it is written again.
    """

    frames: tuple[int, ...]
    tracks: tuple[Track, ...]
    cuts: tuple[int, ...]
    settings: AnalyseSettings
    nets: Mapping[str, str]
    source: ShotSource | None = None
    extras: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def track(self, track_id: int) -> Track | None:
        """The track with that id."""
        return next((track for track in self.tracks if track.id == track_id), None)

    def in_frame(self, frame: int) -> dict[int, Observation]:
        """What was seen in a frame, by track id."""
        return {track.id: track.observations[frame] for track in self.tracks if frame in track.observations}

    @property
    def no_face(self) -> tuple[int, ...]:
        """Frames without any face: a fact, not an error."""
        return tuple(frame for frame in self.frames if not self.in_frame(frame))

    @property
    def weak(self) -> dict[int, tuple[int, ...]]:
        """By track id, the frames worth a look: filled, low score, or turned far."""
        found = {track.id: tuple(f for f, seen in track.observations.items() if is_weak(seen)) for track in self.tracks}
        return {track_id: frames for track_id, frames in found.items() if frames}

    @property
    def drops(self) -> dict[int, tuple[int, ...]]:
        """By track id, the frames inside the track's own range that have no observation (too long a gap to fill)."""
        found = {
            track.id: tuple(f for f in self.frames if track.first < f < track.last and f not in track.observations)
            for track in self.tracks
        }
        return {track_id: frames for track_id, frames in found.items() if frames}


def is_weak(seen: Observation) -> bool:
    """True for an observation that a person should look at."""
    return seen.origin is Origin.FILLED or seen.score < WEAK_SCORE or abs(seen.yaw_deg) > WEAK_YAW_DEG
