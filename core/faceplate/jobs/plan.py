"""Who is where, and becomes whom: tracks and assignments resolved for the whole shot before the first frame."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ..colour.model_view import exposure_from_medians
from ..colour.spaces import ColourConfig
from ..errors import FaceplateError, InputError
from ..face import Identity, Observation, Track
from ..faces.rectify import coverage, rectify
from ..frame import Box, Frame
from ..job import SwapSettings
from ..pipeline import FacePipeline, FaceTask
from ..plate import FrameSource, Plate
from ..swap.base import ShotEngine, ShotSolve
from .spec import Hands, digest

_EXPOSURE_SAMPLES = 9
_EXPOSURE_TEXELS = 48
_SOLVE_EVERY = 2
"""Of the frames that decide the exposure: a net takes longer than a median."""


@dataclass(frozen=True, slots=True, eq=False)
class PlannedFace:
    """One track and who it becomes.

    Attributes:
        track: the track.
        identity: who it becomes.
        exposure: power of two for the model's view, one for the whole track.
        solve: what the engine has settled for the whole track, None where it settles nothing.
    """

    track: Track
    identity: Identity
    exposure: float
    solve: ShotSolve | None = None

    def seen(self, frame: int) -> Observation:
        """Where the face is in `frame`."""
        return self.track.observations[frame]

    def task(self, seen: Observation, settings: SwapSettings) -> FaceTask:
        """The face in one frame and what it becomes."""
        return FaceTask(
            track=self.track.id,
            observation=seen,
            identity=self.identity,
            settings=settings,
            exposure=self.exposure,
            appearance=self.track.appearance,
            solve=self.solve,
        )

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
        return digest(facts if self.solve is None else [*facts, asdict(self.solve)])


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


def looks(plate: Plate, planned: PlannedFace, pipeline: FacePipeline, frames: Sequence[int]) -> list[Any]:
    """What frames of a track say to a `ShotEngine`. One that cannot be read does not count; it fails where it is
    processed.
    """
    found = []
    for number in frames:
        source = FrameSource(number, plate.sequence.path(number), "present", number)
        try:
            frame = plate.read(source)
        except InputError:
            continue
        found.append(pipeline.look(frame, planned.task(planned.seen(number), SwapSettings())))
    return [look for look in found if look is not None]


def track_solve(
    plate: Plate, planned: PlannedFace, pipeline: FacePipeline, hands: Hands | None = None
) -> ShotSolve | None:
    """What the engine settles for a track, from a few frames spread over all of it, whatever part the job covers; None
    where it settles nothing.
    """
    if not isinstance(pipeline.engine, ShotEngine):
        return None
    frames = solve_frames(plate, planned.track)
    told = looks(plate, planned, pipeline, frames) if hands is None else hands.look(plate, planned, frames)
    return pipeline.engine.solve(told)


def solve_frames(plate: Plate, track: Track) -> list[int]:
    """The frames that decide what is settled for a track."""
    return exposure_frames(plate, track)[::_SOLVE_EVERY]


def settled_words(plan: ShotPlan) -> tuple[str, ...]:
    """What the engine settled for each track, for the artist and the report."""
    return tuple(
        f"track {face.track.id}: {face.solve.boost} x {face.solve.boost} crops for the net, colour "
        + " ".join(f"{name} x {gain:.3f}" for name, gain in zip("RGB", face.solve.gain, strict=True))
        + f", settled over {face.solve.looks} frames"
        for face in plan.planned
        if face.solve is not None
    )


def make_plan(
    plate: Plate,
    chosen: Mapping[int, Identity],
    tracks: Sequence[Track],
    pipeline: FacePipeline | None = None,
    hands: Hands | None = None,
) -> ShotPlan:
    """The plan of a shot.

    Args:
        plate: for exposures, and what the engine settles.
        chosen: identity by track id.
        tracks: of the shot.
        pipeline: of the job; None for an engine that settles nothing for a track.
        hands: that do the work of its nets elsewhere; None for this process.
    """
    planned = [
        PlannedFace(track, chosen[track.id], track_exposure(plate, track)) for track in tracks if track.id in chosen
    ]
    if pipeline is not None:
        planned = [replace(one, solve=track_solve(plate, one, pipeline, hands)) for one in planned]
    return ShotPlan(planned)
