"""Follows faces from frame to frame, forward, then backward for what was found late or lost.

What comes out is raw: what the nets saw in each frame and how the picture moved between frames. `assemble` makes
tracks of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from ..face import Detection
from . import topology
from .appearance import AppearanceSampler
from .crop import Roi, blend_rois, carry_roi, roi_from_detection, roi_from_landmarks, unsqueeze
from .detect import DetectSettings, detect_faces, detect_near, detect_quick
from .flow import FlowPatch, flow_patch, point_flow, steady
from .landmarks import CROP, LandmarkSettings, MeshFace, locate, measure_mean, same_face, settle
from .nets import FaceNets
from .view import Picture, PlateView

ViewOf = Callable[[int], PlateView]

_SURE = 0.9
_NEAR_START = 0.1
_RUN_AWAY = 0.5
_AGREES = 0.25
_REJOIN = 1.0
_RIDE = 0.6
_OFF_COURSE = 0.08
_DRAW = 0.1
_GOES_ON = 0.8
_BREAKS_OFF = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class RawFace:
    """One face in one frame, before smoothing.

    Attributes:
        mesh: landmarks, presence and square.
        detected: the detector saw it in this frame too.
        flow: (478, 2) float32 plate px, motion from the frame before; None where that frame has no face.
        reliability: (478,) float32 0..1 of `flow`.
    """

    mesh: MeshFace
    detected: bool
    flow: NDArray[np.float32] | None = None
    reliability: NDArray[np.float32] | None = None


@dataclass(slots=True, eq=False)
class RawTrack:
    """One face over time.

    Attributes:
        faces: by frame.
        appearance: what it looked like.
    """

    faces: dict[int, RawFace] = field(default_factory=dict)
    appearance: AppearanceSampler = field(default_factory=AppearanceSampler)


@dataclass(slots=True, eq=False)
class _Live:
    """A track being followed: where it was last, and the pictures of that place."""

    track: RawTrack
    face: RawFace
    patch: Picture
    flow_patch: FlowPatch
    velocity: tuple[float, float] = (0.0, 0.0)
    misses: int = 0
    ahead: FlowPatch | None = None

    def start(self, pixel_aspect: float) -> Roi:
        """Where to look next."""
        roi = roi_from_landmarks(self.face.mesh.landmarks, pixel_aspect)
        steps = self.misses + 1
        return Roi(roi.u + steps * self.velocity[0], roi.v + steps * self.velocity[1], roi.side, roi.angle)


def _patch(view: PlateView, roi: Roi) -> Picture:
    return view.sample(roi.matrix(CROP, view.pixel_aspect), (CROP, CROP))


class Tracker:
    """Goes through a shot once, frame by frame in order, then back where that helps.

    Args:
        nets: detector and mesh.
        detect: how hard to look for new faces.
        landmarks: how landmarks are measured.
        max_gap: a face lost for so many frames is still the same track when it comes back.
    """

    def __init__(self, nets: FaceNets, detect: DetectSettings, landmarks: LandmarkSettings, max_gap: int) -> None:
        self.tracks: list[RawTrack] = []
        self._nets = nets
        self._detect = detect
        self._landmarks = landmarks
        self._max_gap = max_gap
        self._live: list[_Live] = []

    def step(self, frame: int, view: PlateView, *, search: bool) -> None:
        """Take the next frame.

        Args:
            frame: its number.
            view: its picture.
            search: look everywhere; otherwise only a quick look at the whole frame finds new faces (a full one
                follows at once where a face is lost).
        """
        seen = self._follow(self._live, view)
        self._drop_doubles(seen)
        lost = [live for live in self._live if live not in seen]
        search = search or any(live.misses == 0 for live in lost)
        taken = [face.mesh for face in seen.values()]
        fresh = self._find_new(view, taken, search=search)
        seen.update(self._rejoin(lost, fresh, view))
        for live in self._live:
            if live in seen:
                self._advance(live, frame, seen[live], view)
            else:
                live.misses += 1
        self._live = [live for live in self._live if live.misses <= self._max_gap]
        for face in fresh[: max(0, self._detect.max_faces - len(self._live))]:
            track = RawTrack()
            self.tracks.append(track)
            roi = face.mesh.roi
            self._live.append(_Live(track, face, _patch(view, roi), flow_patch(view, roi)))
            self._record(track, frame, face, view)

    def _follow(self, lives: Sequence[_Live], view: PlateView) -> dict[_Live, RawFace]:
        """The faces found again. One whose picture did not change by a bit keeps its landmarks."""
        held, moved = {}, []
        for live in lives:
            if live.misses == 0 and np.array_equal(_patch(view, live.face.mesh.roi), live.patch):
                points = len(live.face.mesh.landmarks)
                still = np.zeros((points, 2), np.float32), np.ones(points, np.float32)
                held[live] = replace(live.face, flow=still[0], reliability=still[1])
            else:
                moved.append(live)
        starts = [live.start(view.pixel_aspect) for live in moved]
        near = detect_near(view, self._nets.detector, starts, self._detect.threshold) if starts else []
        places = [_place(roi, seen, view.pixel_aspect) for roi, seen in zip(starts, near, strict=True)]
        settled = settle(view, self._nets.mesh, places, self._landmarks)
        locks = [None if face is None else _lock(live, face, view) for live, face in zip(moved, settled, strict=True)]
        rides = [None if lock is None else lock.roi for lock in locks]
        faces = measure_mean(view, self._nets.mesh, rides, self._landmarks)
        found = dict(held)
        for live, start, seen, lock, mesh in zip(moved, starts, near, locks, faces, strict=True):
            if lock is None or mesh is None or not _believable(mesh, start, seen, view.pixel_aspect):
                continue
            live.ahead = lock.patch
            found[live] = RawFace(mesh, seen is not None, lock.flow, lock.reliability)
        return found

    def _drop_doubles(self, seen: dict[_Live, RawFace]) -> None:
        """Where two tracks have run onto one face the longer one keeps it, and the other ends."""
        order = sorted(seen, key=lambda live: -len(live.track.faces))
        for index, live in enumerate(order):
            if any(other in seen and same_face(seen[other].mesh, seen[live].mesh) for other in order[:index]):
                del seen[live]
                self._live.remove(live)

    def _find_new(self, view: PlateView, taken: Sequence[MeshFace], *, search: bool) -> list[RawFace]:
        look = detect_faces if search else detect_quick
        found = look(view, self._nets.detector, self._detect)
        places = [roi_from_detection(seen, view.pixel_aspect) for seen in found]
        free = [
            (seen, roi)
            for seen, roi in zip(found, places, strict=True)
            if not any(np.hypot(roi.u - face.roi.u, roi.v - face.roi.v) < 0.33 * face.roi.side for face in taken)
        ]
        faces = locate(view, self._nets.mesh, [roi for _, roi in free], self._landmarks)
        fresh: list[RawFace] = []
        for (seen, _), mesh in zip(free, faces, strict=True):
            if mesh is None or not _agrees(mesh, seen, view.pixel_aspect):
                continue
            if not any(same_face(mesh, other) for other in [*taken, *(face.mesh for face in fresh)]):
                fresh.append(RawFace(mesh, detected=True))
        return fresh

    def _rejoin(self, lost: Sequence[_Live], fresh: list[RawFace], view: PlateView) -> dict[_Live, RawFace]:
        """Give new faces to tracks that were lost nearby; those given are taken out of `fresh`."""
        if not lost or not fresh:
            return {}
        cost = np.array([[_distance(live.start(view.pixel_aspect), face.mesh.roi) for face in fresh] for live in lost])
        rows, columns = linear_sum_assignment(np.minimum(cost, 1e3))
        pairs = [(row, column) for row, column in zip(rows, columns, strict=True) if cost[row, column] < _REJOIN]
        joined = {lost[row]: fresh[column] for row, column in pairs}
        fresh[:] = [face for index, face in enumerate(fresh) if index not in {column for _, column in pairs}]
        return joined

    def _advance(self, live: _Live, frame: int, face: RawFace, view: PlateView) -> None:
        before = live.face
        roi = face.mesh.roi
        if face.mesh is not before.mesh:
            after = live.ahead or flow_patch(view, roi)
            if live.misses == 0 and face.flow is None:
                flow, reliability = _flow(live.flow_patch, after, before.mesh, face.mesh)
                face = replace(face, flow=flow, reliability=reliability)
            live.patch, live.flow_patch = _patch(view, roi), after
        steps = live.misses + 1
        live.velocity = (roi.u - before.mesh.roi.u) / steps, (roi.v - before.mesh.roi.v) / steps
        live.face, live.misses, live.ahead = face, 0, None
        self._record(live.track, frame, face, view)

    def _record(self, track: RawTrack, frame: int, face: RawFace, view: PlateView) -> None:
        track.faces[frame] = face
        track.appearance.add(frame, view, face.mesh.landmarks)

    def same_face(self, frame: int) -> bool | None:
        """Whether the picture of a face goes on from the frame before into this one; None where no face tells."""
        means = [
            float(face.reliability.mean())
            for track in self.tracks
            if (face := track.faces.get(frame)) is not None and face.reliability is not None
        ]
        if not means or _BREAKS_OFF < max(means) < _GOES_ON:
            return None
        return max(means) >= _GOES_ON

    def spans(self, before: int, after: int) -> bool:
        """Whether a face was followed from one frame to another, over frames in which it was not seen."""
        return any(
            before in track.faces and after in track.faces and not any(before < frame < after for frame in track.faces)
            for track in self.tracks
        )

    def backward(self, frames: Sequence[int], cuts: frozenset[int], view_of: ViewOf, check: Callable[[], None]) -> None:
        """Follow each track backward from where it begins or comes back, up to a cut or as far as it is seen.

        A track that so meets the end of another one continues it: they become one.

        Args:
            frames: all frame numbers, rising.
            cuts: first frame after each cut.
            view_of: opens a frame again.
            check: called before each frame that is opened; raises to stop.
        """
        lives: dict[int, _Live] = {}
        for earlier, later in zip(reversed(frames[:-1]), reversed(frames[1:]), strict=True):
            wanted = [
                track
                for track in self.tracks
                if later in track.faces and earlier not in track.faces and later not in cuts
            ]
            if not wanted:
                lives.clear()
                continue
            check()
            later_view = None
            for track in wanted:
                if id(track) not in lives:
                    later_view = later_view or view_of(later)
                    lives[id(track)] = _resume(track, later, later_view)
            lives = {id(track): lives[id(track)] for track in wanted}
            self._step_back(earlier, later, lives, view_of(earlier))

    def _step_back(self, earlier: int, later: int, lives: dict[int, _Live], view: PlateView) -> None:
        found = self._follow(list(lives.values()), view)
        for key, live in list(lives.items()):
            face = found.get(live)
            if face is None:
                del lives[key]
                continue
            other = self._owner(earlier, face.mesh)
            if other is not None:
                del lives[key]
                if later not in other.faces and not set(other.faces) & set(live.track.faces):
                    self._join(other, live.track)
                continue
            self._retreat(live, earlier, later, face, view)

    def _retreat(self, live: _Live, earlier: int, later: int, face: RawFace, view: PlateView) -> None:
        ahead = live.track.faces[later]
        if face.mesh is live.face.mesh:
            flow, reliability = face.flow, face.reliability
            here = live.flow_patch
        else:
            here = flow_patch(view, face.mesh.roi)
            flow, reliability = _flow(here, live.flow_patch, face.mesh, live.face.mesh)
        live.track.faces[later] = replace(ahead, flow=flow, reliability=reliability)
        live.velocity = face.mesh.roi.u - live.face.mesh.roi.u, face.mesh.roi.v - live.face.mesh.roi.v
        live.face = replace(face, flow=None, reliability=None)
        live.patch, live.flow_patch, live.ahead = _patch(view, face.mesh.roi), here, None
        self._record(live.track, earlier, live.face, view)

    def _owner(self, frame: int, mesh: MeshFace) -> RawTrack | None:
        for track in self.tracks:
            if frame in track.faces and same_face(track.faces[frame].mesh, mesh):
                return track
        return None

    def _join(self, first: RawTrack, second: RawTrack) -> None:
        first.faces.update(second.faces)
        first.appearance.merge(second.appearance)
        self.tracks.remove(second)


@dataclass(frozen=True, slots=True, eq=False)
class _Lock:
    """Where to measure, and how the picture moved there since the frame before."""

    roi: Roi
    patch: FlowPatch
    flow: NDArray[np.float32] | None = None
    reliability: NDArray[np.float32] | None = None


def _lock(live: _Live, settled: MeshFace, view: PlateView) -> _Lock:
    """Let the square ride on the picture: moved by the flow, drawn only slowly to where the net would have it.

    A square that trembles makes the landmarks tremble; one that is fixed to the skin does not.
    """
    patch = flow_patch(view, settled.roi)
    if live.misses > 0:
        return _Lock(settled.roi, patch)
    flow, reliability = _flow(live.flow_patch, patch, live.face.mesh, settled)
    roi = settled.roi
    if float(reliability.mean()) > _RIDE:
        points = live.face.mesh.landmarks[:, :2]
        carried = carry_roi(live.face.mesh.roi, points, flow, reliability, view.pixel_aspect)
        if _distance(carried, settled.roi) < _OFF_COURSE:
            roi = blend_rois(carried, settled.roi, _DRAW)
    return _Lock(roi, patch, flow, reliability)


def _resume(track: RawTrack, frame: int, view: PlateView) -> _Live:
    face = track.faces[frame]
    roi = face.mesh.roi
    return _Live(track, face, _patch(view, roi), flow_patch(view, roi))


def _flow(
    before: FlowPatch, after: FlowPatch, start: MeshFace, end: MeshFace
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    flow, reliability = point_flow(before, after, start.landmarks[:, :2], end.landmarks[:, :2])
    return steady(start.landmarks[:, :2], flow, reliability), reliability


def _place(start: Roi, seen: Detection | None, pixel_aspect: float) -> Roi:
    """Where to put the first square: the track's own place is better than the detector's unless the face moved far."""
    if seen is None:
        return start
    place = roi_from_detection(seen, pixel_aspect)
    return start if _distance(start, place) < _NEAR_START else place


def _distance(a: Roi, b: Roi) -> float:
    """How far two squares are from each other, in sides and halvings or doublings of size."""
    return float(np.hypot(a.u - b.u, a.v - b.v) / (0.5 * (a.side + b.side)) + abs(np.log2(a.side / b.side)))


def _believable(mesh: MeshFace, start: Roi, seen: Detection | None, pixel_aspect: float) -> bool:
    if seen is not None:
        return _agrees(mesh, seen, pixel_aspect)
    return mesh.score >= _SURE and _distance(start, mesh.roi) < _RUN_AWAY


_KEYPOINTS: Mapping[int, tuple[int, ...]] = {0: (33, 133), 1: (263, 362), 2: (1,), 3: (13, 14)}
"""Detector key points (right eye, left eye, nose, mouth) as points of the mesh."""


def _agrees(mesh: MeshFace, seen: Detection, pixel_aspect: float) -> bool:
    """True where eyes, nose and mouth lie where the detector has them; the net also answers to a face upside down."""
    points = unsqueeze(mesh.landmarks[: topology.FACE_POINTS], pixel_aspect)
    keypoints = unsqueeze(seen.keypoints, pixel_aspect)
    apart = [np.hypot(*(points[list(mine), :2].mean(0) - keypoints[its])) for its, mine in _KEYPOINTS.items()]
    return float(np.mean(apart)) < _AGREES * mesh.roi.side / 1.5
