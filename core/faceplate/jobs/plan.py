"""Who is where, and becomes whom: tracks and assignments resolved for the whole shot before the first frame."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..colour.model_view import exposure_from_medians
from ..colour.spaces import ColourConfig
from ..errors import FaceplateError
from ..face import Identity, Observation, Track
from ..faces.rectify import coverage, rectify
from ..frame import Box, Frame
from ..plate import FrameSource, Plate
from .spec import digest

_EXPOSURE_SAMPLES = 9
_EXPOSURE_TEXELS = 48


@dataclass(frozen=True, slots=True, eq=False)
class PlannedFace:
    """One track and who it becomes.

    Attributes:
        track: the track.
        identity: who it becomes.
        exposure: power of two for the model's view, one for the whole track.
    """

    track: Track
    identity: Identity
    exposure: float

    def seen(self, frame: int) -> Observation:
        """Where the face is in `frame`."""
        return self.track.observations[frame]

    def key(self, frame: int) -> str:
        """Digest of what this face brings to the frame's bytes."""
        seen = self.seen(frame)
        state = hashlib.sha256(np.ascontiguousarray(seen.landmarks).tobytes())
        if self.track.appearance is not None:
            state.update(self.track.appearance.median.tobytes())
            state.update(self.track.appearance.spread.tobytes())
        if seen.cover is not None:
            state.update(seen.cover.tobytes())
        facts = [self.track.id, self.identity.content_hash, self.exposure, seen.yaw_deg, state.hexdigest()]
        return digest(facts)


@dataclass(frozen=True, slots=True, eq=False)
class ShotPlan:
    """The faces of a shot that become somebody."""

    planned: Sequence[PlannedFace]

    def faces(self, frame: int) -> list[PlannedFace]:
        """Those that are in a frame, by track id."""
        return [face for face in self.planned if frame in face.track.observations]


def skin_median(config: ColourConfig, frame: Frame, seen: Observation) -> float:
    """Median luminance of a face in linear Rec.709 light, on the skin only; NaN when it lies outside the frame."""
    points = seen.landmarks[:468, :2]
    low, high = np.floor(points.min(0)).astype(int), np.ceil(points.max(0)).astype(int)
    window = Box(int(low[0]) - 2, int(low[1]) - 2, int(high[0]) + 2, int(high[1]) + 2).intersect(frame.data_window)
    if window.width < 8 or window.height < 8:
        return float("nan")
    rgb = config.to_rec709(frame.colour_space).numpy(np.ascontiguousarray(frame.crop(window), np.float32))
    light = np.nan_to_num(rgb @ np.array([0.2126, 0.7152, 0.0722], np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    face = rectify(light, points - [window.x0, window.y0], _EXPOSURE_TEXELS)[coverage(_EXPOSURE_TEXELS)]
    lit = face[face > 0]
    return float(np.median(lit)) if lit.size else float("nan")


def exposure_frames(plate: Plate, track: Track) -> list[int]:
    """The frames that decide a track's exposure: a few spread over all of it, of those that are on disk."""
    frames = sorted(track.observations)
    picked = sorted({frames[round(at)] for at in np.linspace(0, len(frames) - 1, _EXPOSURE_SAMPLES)})
    on_disk = set(plate.sequence.frames)
    return [number for number in picked if number in on_disk]


def track_exposure(plate: Plate, track: Track) -> float:
    """The power of two for a track, from a few frames spread over all of it, whatever part of the shot the job covers.

    A frame that cannot be read does not count; it fails where it is processed.
    """
    medians = []
    for number in exposure_frames(plate, track):
        source = FrameSource(number, plate.sequence.path(number), "present", number)
        try:
            medians.append(skin_median(plate.config, plate.read(source), track.observations[number]))
        except FaceplateError:
            continue
    return exposure_from_medians(medians)


def make_plan(plate: Plate, chosen: Mapping[int, Identity], tracks: Sequence[Track]) -> ShotPlan:
    """The plan of a shot.

    Args:
        plate: for exposures.
        chosen: identity by track id.
        tracks: of the shot.
    """
    planned = [
        PlannedFace(track, chosen[track.id], track_exposure(plate, track)) for track in tracks if track.id in chosen
    ]
    return ShotPlan(planned)
