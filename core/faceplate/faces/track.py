"""Follows faces from frame to frame, forward, then backward for what was found late or lost.

What comes out is raw: what the nets saw in each frame and how the picture moved between frames. `assemble` makes
tracks of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from .appearance import light_texture
from .crop import is_at, roi_from_detection
from .detect import DetectSettings, detect_faces, detect_quick
from .flow import FlowPatch, flow_patch
from .follow import Follower, Live, RawFace, RawTrack, agrees, face_flow, roi_distance
from .landmarks import LandmarkSettings, MeshFace, locate, same_face
from .nets import FaceNets
from .view import PlateView

ViewOf = Callable[[int], PlateView]

_REJOIN = 1.0
_GOES_ON = 0.8
_BREAKS_OFF = 0.2
_QUICK_EVERY = 4
_ESTABLISHED = 3


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
        self._follower = Follower(nets, detect.threshold, landmarks)
        self._live: list[Live] = []
        self._unlooked = 0

    def step(self, frame: int, view: PlateView, *, search: bool) -> None:
        """Take the next frame.

        Args:
            frame: its number.
            view: its picture.
            search: look everywhere; otherwise only a quick look at every fourth frame finds new faces. A full one
                follows at once where a face is lost, and quick ones in every frame until it is back.
        """
        seen = self._follower.follow(self._live, view)
        self._drop_doubles(seen)
        lost = [live for live in self._live if live not in seen]
        # What was seen in a frame or two only was no face, or the full search found it a moment ago.
        search = search or any(live.misses == 0 and len(live.track.faces) >= _ESTABLISHED for live in lost)
        taken = [face.mesh for face in seen.values()]
        self._unlooked += 1
        due = search or bool(lost) or self._unlooked >= _QUICK_EVERY
        fresh = self._find_new(view, taken, search=search) if due else []
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
            self._live.append(Live(track, face, flow_patch(view, face.mesh.roi)))
            self._record(track, frame, face, view)

    def _drop_doubles(self, seen: dict[Live, RawFace]) -> None:
        """Where two tracks have run onto one face the longer one keeps it, and the other ends."""
        order = sorted(seen, key=lambda live: -len(live.track.faces))
        for index, live in enumerate(order):
            if any(other in seen and same_face(seen[other].mesh, seen[live].mesh) for other in order[:index]):
                del seen[live]
                self._live.remove(live)

    def _find_new(self, view: PlateView, taken: Sequence[MeshFace], *, search: bool) -> list[RawFace]:
        self._unlooked = 0
        look = detect_faces if search else detect_quick
        found = look(view, self._nets.detector, self._detect, [face.roi for face in taken])
        places = [roi_from_detection(seen, view.pixel_aspect) for seen in found]
        free = [
            (seen, roi)
            for seen, roi in zip(found, places, strict=True)
            if not any(is_at(roi, face.roi) for face in taken)
        ]
        faces = locate(view, self._nets.mesh, [roi for _, roi in free], self._landmarks)
        fresh: list[RawFace] = []
        for (seen, _), mesh in zip(free, faces, strict=True):
            if mesh is None or not agrees(mesh, seen, view.pixel_aspect):
                continue
            if not any(same_face(mesh, other) for other in [*taken, *(face.mesh for face in fresh)]):
                fresh.append(RawFace(mesh, detected=True))
        return fresh

    def _rejoin(self, lost: Sequence[Live], fresh: list[RawFace], view: PlateView) -> dict[Live, RawFace]:
        """Give new faces to tracks that were lost nearby; those given are taken out of `fresh`."""
        if not lost or not fresh:
            return {}
        cost = np.array(
            [[roi_distance(live.start(view.pixel_aspect), face.mesh.roi) for face in fresh] for live in lost]
        )
        rows, columns = linear_sum_assignment(np.minimum(cost, 1e3))
        pairs = [(row, column) for row, column in zip(rows, columns, strict=True) if cost[row, column] < _REJOIN]
        joined = {lost[row]: fresh[column] for row, column in pairs}
        fresh[:] = [face for index, face in enumerate(fresh) if index not in {column for _, column in pairs}]
        return joined

    def _advance(self, live: Live, frame: int, face: RawFace, view: PlateView) -> None:
        before = live.face
        roi = face.mesh.roi
        if face.mesh is not before.mesh:
            after = live.ahead or flow_patch(view, roi)
            if live.misses == 0 and face.flow is None:
                face = _with_flow(face, live.patch, after, before.mesh, face.mesh)
            live.patch = after
        steps = live.misses + 1
        live.velocity = (roi.u - before.mesh.roi.u) / steps, (roi.v - before.mesh.roi.v) / steps
        live.face, live.misses, live.ahead = face, 0, None
        self._record(live.track, frame, face, view)

    def _record(self, track: RawTrack, frame: int, face: RawFace, view: PlateView) -> None:
        track.faces[frame] = face
        track.appearance.add(frame, light_texture(view, face.mesh.landmarks))

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
        lives: dict[int, Live] = {}
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

    def _step_back(self, earlier: int, later: int, lives: dict[int, Live], view: PlateView) -> None:
        found = self._follower.follow(list(lives.values()), view)
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

    def _retreat(self, live: Live, earlier: int, later: int, face: RawFace, view: PlateView) -> None:
        if face.mesh is live.face.mesh:
            here, step = live.patch, face
        else:
            here = live.ahead or flow_patch(view, face.mesh.roi)
            step = _with_flow(face, here, live.patch, face.mesh, live.face.mesh)
        ahead = live.track.faces[later]
        live.track.faces[later] = replace(ahead, flow=step.flow, reliability=step.reliability)
        live.velocity = face.mesh.roi.u - live.face.mesh.roi.u, face.mesh.roi.v - live.face.mesh.roi.v
        live.face = replace(face, flow=None, reliability=None)
        live.patch, live.ahead = here, None
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


def _resume(track: RawTrack, frame: int, view: PlateView) -> Live:
    face = track.faces[frame]
    return Live(track, face, flow_patch(view, face.mesh.roi))


def _with_flow(face: RawFace, before: FlowPatch, after: FlowPatch, start: MeshFace, end: MeshFace) -> RawFace:
    flow, reliability = face_flow(before, after, start.landmarks[:, :2], end.landmarks[:, :2])
    return replace(face, flow=flow, reliability=reliability)
