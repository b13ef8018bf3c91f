"""Finds faces again in the next frame.

A face whose picture goes on without a doubt is carried there by optical flow, and the landmark net is asked around the
carried square only: a square fixed to the skin trembles less than one made from each answer anew. Where the flow holds
all over the face (no blink, no word, nothing in front) the net is asked in every second frame. Where the flow breaks
off, the net is unsure or wants another square, the face is looked for with the detector and measured with care.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..face import Detection
from . import topology
from .appearance import AppearanceSampler
from .crop import Roi, blend_rois, carry_roi, roi_from_detection, roi_from_landmarks, turn_between, unsqueeze
from .detect import detect_near
from .flow import FlowPatch, flow_patch, point_flow, steady
from .landmarks import CROP, LandmarkSettings, MeshFace, mean_face, measure_in, measure_mean, put_right, settle, spread
from .nets import FaceNets
from .view import PlateView

_SURE = 0.9
_NEAR_START = 0.1
_RUN_AWAY = 0.5
_AGREES = 0.25
_RIDE = 0.6
_GOES_ON = 0.75
_OFF_COURSE = 0.08
_DRAW = 0.1
_CONFIRM_EVERY = 8
# How far a face may move, grow and turn (in sides, as a factor - 1, in degrees) in a flow patch that stays where it is.
_DRIFT = 0.03
# All squares are asked every so many frames, in between only the middle one, put right by what they said: 0.12 px rms
# after smoothing (400 px face, grain, camera move) as with all in every frame; the middle one left as it is 0.35.
_SURVEY_EVERY = 8
# Share of points that the flow may lose (reliability below 0.5) in a calm face. A turning head has 0.02, a blink 0.2.
_CALM = 0.05
_TURN_DEG = 3.0


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
class Live:
    """A track being followed: where it was last, and the picture of that place.

    Attributes:
        track: the track.
        face: as it was seen last.
        patch: the picture of it there.
        velocity: unsqueezed px a frame.
        misses: frames since it was seen.
        unconfirmed: frames since the detector was asked.
        unsurveyed: frames since all squares were asked.
        unasked: frames since the net was asked.
        ahead: the picture in the frame that is being taken; None where none was made yet.
    """

    track: RawTrack
    face: RawFace
    patch: FlowPatch
    velocity: tuple[float, float] = (0.0, 0.0)
    misses: int = 0
    unconfirmed: int = 0
    unsurveyed: int = 0
    unasked: int = 0
    ahead: FlowPatch | None = None

    def start(self, pixel_aspect: float) -> Roi:
        """Where to look next."""
        return self._moved(roi_from_landmarks(self.face.mesh.landmarks, pixel_aspect))

    def window(self) -> Roi:
        """Where to take the next flow patch: in the same place while the face stays about there.

        A picture that does not change is so the same to the bit.
        """
        expected, held = self._moved(self.face.mesh.roi), self.patch.roi
        moved = max(abs(expected.u - held.u), abs(expected.v - held.v), abs(expected.side - held.side))
        turned = abs(np.degrees(turn_between(expected.angle, held.angle)))
        return held if moved <= _DRIFT * held.side and turned <= _TURN_DEG else expected

    def _moved(self, roi: Roi) -> Roi:
        steps = self.misses + 1
        return Roi(roi.u + steps * self.velocity[0], roi.v + steps * self.velocity[1], roi.side, roi.angle)


@dataclass(frozen=True, slots=True, eq=False)
class _Lock:
    """Where to measure, and how the picture moved there since the frame before."""

    roi: Roi
    patch: FlowPatch
    flow: NDArray[np.float32] | None = None
    reliability: NDArray[np.float32] | None = None

    @property
    def is_calm(self) -> bool:
        """Whether the flow holds all over the face."""
        return self.reliability is not None and float((self.reliability < 0.5).mean()) < _CALM


class Follower:
    """Takes faces from one frame to the next.

    Args:
        nets: detector and mesh.
        threshold: detector score from which it counts.
        landmarks: how landmarks are measured where a face has to be looked for.
    """

    def __init__(self, nets: FaceNets, threshold: float, landmarks: LandmarkSettings) -> None:
        self._nets = nets
        self._threshold = threshold
        self._landmarks = landmarks

    def follow(self, lives: Sequence[Live], view: PlateView) -> dict[Live, RawFace]:
        """The faces found again, `ahead` set. One whose picture did not change by a bit keeps its landmarks."""
        found: dict[Live, RawFace] = {}
        rides: dict[Live, _Lock] = {}
        for live in lives:
            if live.misses > 0:
                continue
            patch = flow_patch(view, live.window())
            if patch.roi == live.patch.roi and np.array_equal(patch.picture, live.patch.picture):
                found[live] = _held(live.face)
            elif (ride := _ride(live, patch, view.pixel_aspect)) is not None:
                rides[live] = ride
        found.update(self._measure(rides, view))
        found.update(self._look([live for live in lives if live not in found], view))
        return found

    def _measure(self, rides: Mapping[Live, _Lock], view: PlateView) -> dict[Live, RawFace]:
        """Those of the carried faces that the net, asked where it is needed, and from time to time the detector, finds
        where they should be.
        """
        due = [live for live in rides if live.unconfirmed + 1 >= _CONFIRM_EVERY or not live.face.detected]
        surveyed = {live for live in rides if live.unsurveyed + 1 >= _SURVEY_EVERY}
        calm = {live for live, ride in rides.items() if live.unasked == 0 and ride.is_calm} - surveyed - {*due}
        asked = {live: ride for live, ride in rides.items() if live not in calm}
        answers = dict(zip(asked, self._ask(view, asked, surveyed), strict=True))
        faces = [answers[live] if live in answers else _carried(live.face.mesh, ride) for live, ride in rides.items()]
        near = dict(zip(due, self._near(view, [rides[live].roi for live in due]), strict=True))
        found = {}
        for (live, ride), mesh in zip(rides.items(), faces, strict=True):
            wanted = roi_from_landmarks(mesh.landmarks, view.pixel_aspect)
            if mesh.score < _SURE or roi_distance(wanted, ride.roi) > _OFF_COURSE:
                continue
            seen = near.get(live)
            if seen is not None and not agrees(mesh, seen, view.pixel_aspect):
                continue
            live.ahead, live.unconfirmed = ride.patch, 0 if live in near else live.unconfirmed + 1
            live.unsurveyed = 0 if live in surveyed else live.unsurveyed + 1
            live.unasked = live.unasked + 1 if live in calm else 0
            found[live] = RawFace(mesh, seen is not None or live not in near, ride.flow, ride.reliability)
        return found

    def _ask(self, view: PlateView, rides: Mapping[Live, _Lock], surveyed: Set[Live]) -> list[MeshFace]:
        """The net's mean answer over squares around each place, for those not `surveyed` told by the middle one."""
        counts = [self._landmarks.squares if live in surveyed else 1 for live in rides]
        places = [
            (spread(ride.roi, number), partial(ride.patch.cut, size=CROP, pixel_aspect=view.pixel_aspect))
            for ride, count in zip(rides.values(), counts, strict=True)
            for number in range(count)
        ]
        answers = iter(measure_in(places, self._nets.mesh, view.pixel_aspect))
        faces = []
        for (live, ride), count in zip(rides.items(), counts, strict=True):
            group = [next(answers) for _ in range(count)]
            offset = None if live in surveyed else live.face.mesh.offset
            mean = mean_face(group, ride.roi, view.pixel_aspect)
            faces.append(mean if offset is None else put_right(group[0], offset, view.pixel_aspect))
        return faces

    def _look(self, lives: Sequence[Live], view: PlateView) -> dict[Live, RawFace]:
        """Search around the places where faces should be."""
        starts = [live.start(view.pixel_aspect) for live in lives]
        near = self._near(view, starts)
        places = [_place(roi, seen, view.pixel_aspect) for roi, seen in zip(starts, near, strict=True)]
        settled = settle(view, self._nets.mesh, places, self._landmarks)
        locks = [None if face is None else _lock(live, face, view) for live, face in zip(lives, settled, strict=True)]
        rides = [None if lock is None else lock.roi for lock in locks]
        faces = measure_mean(view, self._nets.mesh, rides, self._landmarks)
        found = {}
        for live, start, seen, lock, mesh in zip(lives, starts, near, locks, faces, strict=True):
            if lock is None or mesh is None or not _believable(mesh, start, seen, view.pixel_aspect):
                continue
            live.ahead, live.unconfirmed, live.unsurveyed, live.unasked = lock.patch, 0, 0, 0
            found[live] = RawFace(mesh, seen is not None, lock.flow, lock.reliability)
        return found

    def _near(self, view: PlateView, rois: Sequence[Roi]) -> list[Detection | None]:
        return detect_near(view, self._nets.detector, rois, self._threshold) if rois else []


def _held(face: RawFace) -> RawFace:
    points = len(face.mesh.landmarks)
    return replace(face, flow=np.zeros((points, 2), np.float32), reliability=np.ones(points, np.float32))


def _carried(mesh: MeshFace, ride: _Lock) -> MeshFace:
    """The face moved as the flow says; the rest as the net said last."""
    landmarks = mesh.landmarks.copy()
    landmarks[:, :2] += 0.0 if ride.flow is None else ride.flow
    return replace(mesh, landmarks=landmarks, roi=ride.roi)


def _ride(live: Live, patch: FlowPatch, pixel_aspect: float) -> _Lock | None:
    """The square carried by the flow, drawn a little to where the net would have it; None where the flow breaks off."""
    mesh = live.face.mesh
    points = mesh.landmarks[:, :2]
    expected = points + np.array(live.velocity) / (pixel_aspect, 1.0)
    flow, reliability = face_flow(live.patch, patch, points, expected)
    if float(reliability.mean()) < _GOES_ON:
        return None
    base = blend_rois(mesh.roi, roi_from_landmarks(mesh.landmarks, pixel_aspect), _DRAW)
    return _Lock(carry_roi(base, points, flow, reliability, pixel_aspect), patch, flow, reliability)


def _lock(live: Live, settled: MeshFace, view: PlateView) -> _Lock:
    """Let the square ride on the picture: moved by the flow, drawn only slowly to where the net would have it.

    A square that trembles makes the landmarks tremble; one that is fixed to the skin does not.
    """
    patch = flow_patch(view, settled.roi)
    if live.misses > 0:
        return _Lock(settled.roi, patch)
    flow, reliability = face_flow(live.patch, patch, live.face.mesh.landmarks[:, :2], settled.landmarks[:, :2])
    roi = settled.roi
    if float(reliability.mean()) > _RIDE:
        points = live.face.mesh.landmarks[:, :2]
        carried = carry_roi(live.face.mesh.roi, points, flow, reliability, view.pixel_aspect)
        if roi_distance(carried, settled.roi) < _OFF_COURSE:
            roi = blend_rois(carried, settled.roi, _DRAW)
    return _Lock(roi, patch, flow, reliability)


def face_flow(
    before: FlowPatch, after: FlowPatch, start: NDArray[np.floating], end: NDArray[np.floating]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Motion of each landmark from one patch to the other, evened out, and how reliable it is.

    Args:
        before: the earlier patch.
        after: the later one.
        start: (478, 2) plate px in the earlier frame.
        end: (478, 2) plate px, about where they are in the later one.
    """
    flow, reliability = point_flow(before, after, start, end)
    return steady(start, flow, reliability), reliability


def _place(start: Roi, seen: Detection | None, pixel_aspect: float) -> Roi:
    """Where to put the first square: the track's own place is better than the detector's unless the face moved far."""
    if seen is None:
        return start
    place = roi_from_detection(seen, pixel_aspect)
    return start if roi_distance(start, place) < _NEAR_START else place


def roi_distance(a: Roi, b: Roi) -> float:
    """How far two squares are from each other, in sides and halvings or doublings of size."""
    return float(np.hypot(a.u - b.u, a.v - b.v) / (0.5 * (a.side + b.side)) + abs(np.log2(a.side / b.side)))


def _believable(mesh: MeshFace, start: Roi, seen: Detection | None, pixel_aspect: float) -> bool:
    if seen is not None:
        return agrees(mesh, seen, pixel_aspect)
    return mesh.score >= _SURE and roi_distance(start, mesh.roi) < _RUN_AWAY


_KEYPOINTS: Mapping[int, tuple[int, ...]] = {0: (33, 133), 1: (263, 362), 2: (1,), 3: (13, 14)}
"""Detector key points (right eye, left eye, nose, mouth) as points of the mesh."""


def agrees(mesh: MeshFace, seen: Detection, pixel_aspect: float) -> bool:
    """True where eyes, nose and mouth lie where the detector has them; the net also answers to a face upside down."""
    points = unsqueeze(mesh.landmarks[: topology.FACE_POINTS], pixel_aspect)
    keypoints = unsqueeze(seen.keypoints, pixel_aspect)
    apart = [np.hypot(*(points[list(mine), :2].mean(0) - keypoints[its])) for its, mine in _KEYPOINTS.items()]
    return float(np.mean(apart)) < _AGREES * mesh.roi.side / 1.5
