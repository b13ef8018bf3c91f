"""Makes tracks of raw observations: split at cuts, drop flicker, smooth, fill gaps, number."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from ..face import Observation, Origin, Points, Track
from . import topology
from .appearance import Texture
from .crop import unsqueeze
from .follow import RawFace, RawTrack
from .occluders import covers
from .pose import Similarity, fit_similarity, from_face, to_face, yaw_degrees
from .shot import AnalyseSettings, quantise
from .smooth import fuse

Array = NDArray[np.float64]

_AROUND = 4


def assemble_tracks(
    raw: Sequence[RawTrack],
    frames: Sequence[int],
    cuts: Sequence[int],
    settings: AnalyseSettings,
    pixel_aspect: float,
    look: Callable[[int, Points], Texture],
) -> tuple[Track, ...]:
    """Finished tracks, numbered from 1 by first frame, then by how much of the shot they fill.

    Args:
        raw: as they were followed.
        frames: of the shot, rising.
        cuts: first frame after each cut.
        settings: of the analysis.
        pixel_aspect: width / height of a pixel.
        look: `light_texture` of a frame and landmarks; asked for the frames that are filled.
    """
    parts = [(track, part) for track in raw for part in _split(track.faces, cuts)]
    kept = [(track, part) for track, part in parts if _is_long_enough(part, frames, cuts, settings.min_length)]
    readable = set(frames)
    tracks = []
    for track, part in kept:
        seen = _smooth(part, settings.smoothing, pixel_aspect)
        # holes and damaged frames are no frames of the shot: nothing is said of them
        between = _fill(seen, settings.max_gap, pixel_aspect)
        filled = {frame: face for frame, face in between.items() if frame in readable}
        for frame, face in filled.items():
            track.appearance.add(frame, look(frame, face.landmarks))
        ordered = dict(sorted({**seen, **filled}.items()))
        usual = track.appearance.result(frozenset(part))
        found = covers(track.appearance, usual, list(ordered))
        tracks.append(Track(0, {f: replace(o, cover=found.get(f)) for f, o in ordered.items()}, usual))
    tracks.sort(key=lambda track: (track.first, -track.weight))
    return tuple(
        Track(number, track.observations, track.appearance, track.label) for number, track in enumerate(tracks, 1)
    )


def _split(faces: dict[int, RawFace], cuts: Sequence[int]) -> list[dict[int, RawFace]]:
    parts: dict[int, dict[int, RawFace]] = {}
    for frame in sorted(faces):
        parts.setdefault(bisect.bisect_right(cuts, frame), {})[frame] = faces[frame]
    return list(parts.values())


def _is_long_enough(part: dict[int, RawFace], frames: Sequence[int], cuts: Sequence[int], least: int) -> bool:
    take = bisect.bisect_right(cuts, next(iter(part)))
    available = sum(bisect.bisect_right(cuts, frame) == take for frame in frames)
    return len(part) >= min(least, available) and any(face.detected for face in part.values())


def _smooth(part: dict[int, RawFace], memory: float, pixel_aspect: float) -> dict[int, Observation]:
    times = np.array(sorted(part))
    faces = [part[int(time)] for time in times]
    # Unsqueezed, so that distances mean the same in both directions.
    net = np.stack([unsqueeze(face.mesh.landmarks, pixel_aspect) for face in faces])
    confidence = np.array([max(face.mesh.score, 1e-3) ** 2 for face in faces])
    flow = np.zeros((len(times) - 1, net.shape[1], 2))
    reliability = np.zeros((len(times) - 1, net.shape[1]))
    for index, face in enumerate(faces[1:]):
        if face.flow is not None and face.reliability is not None and times[index + 1] - times[index] == 1:
            flow[index] = unsqueeze(face.flow, pixel_aspect)
            reliability[index] = face.reliability
    width = float(np.median(np.ptp(net[:, : topology.FACE_POINTS, 0], axis=1)))
    plane = fuse(times, net[..., :2], confidence, flow, reliability, width, memory=memory)
    depth = fuse(times, net[..., 2:], confidence, flow[..., :1], np.zeros_like(reliability), width, memory=memory)
    smooth = np.concatenate([plane, depth], -1)
    smooth[..., 0] /= pixel_aspect
    origins = [Origin.DETECTED if face.detected else Origin.TRACKED for face in faces]
    return {
        int(time): observe(int(time), points, face.mesh.score, origin, pixel_aspect)
        for time, points, face, origin in zip(times, smooth, faces, origins, strict=True)
    }


def observe(
    frame: int, landmarks: NDArray[np.floating], score: float, origin: Origin, pixel_aspect: float
) -> Observation:
    """An observation with quantised landmarks (plate px), its score to four decimals and its yaw to two."""
    points = quantise(landmarks)
    return Observation(frame, points, round(score, 4), origin, round(yaw_degrees(points, pixel_aspect), 2))


def _fill(seen: dict[int, Observation], max_gap: int, pixel_aspect: float) -> dict[int, Observation]:
    """Interpolate gaps of at most `max_gap` frames: the pose by a cubic spline, the shape linearly."""
    times = sorted(seen)
    filled: dict[int, Observation] = {}
    for index, (before, after) in enumerate(itertools.pairwise(times)):
        if not 1 < after - before <= max_gap + 1:
            continue
        near = times[max(0, index + 1 - _AROUND) : index + 1 + _AROUND]
        poses = [fit_similarity(seen[time].landmarks, pixel_aspect) for time in near]
        table = np.array([[pose.u, pose.v, pose.log_scale, pose.angle] for pose in poses])
        table[:, 3] = np.unwrap(table[:, 3])
        path = CubicSpline(near, table, axis=0, bc_type="not-a-knot")
        here = near.index(before)
        start = to_face(seen[before].landmarks, poses[here], pixel_aspect)
        end = to_face(seen[after].landmarks, poses[here + 1], pixel_aspect)
        for frame in range(before + 1, after):
            part = (frame - before) / (after - before)
            points = from_face(start + (end - start) * part, Similarity(*path(frame).tolist()), pixel_aspect)
            score = min(seen[before].score, seen[after].score)
            filled[frame] = observe(frame, points, score, Origin.FILLED, pixel_aspect)
    return filled
