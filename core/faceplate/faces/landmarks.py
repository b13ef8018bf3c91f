"""Dense landmarks: the mesh net on a turned square around each face.

The net's answer depends a little on where its square lies, and the next square is made from its answer. So the square
is moved until it is at rest, and the last answer is the mean over a few squares spread around that place: measured on
a moving plate with grain (400 px face), five squares halve the jitter of one (0.49 to 0.26 px rms). By how much the
middle square alone is off that mean changes slowly, so that it can be put right for some frames by one look at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .crop import Roi, roi_from_landmarks
from .nets import Net, sigmoid, to_input
from .view import Picture, PlateView

Look = Callable[[Roi], Picture]

CROP = 192
_BATCH = 20
# Offsets of the squares: u and v in sides, side as a factor - 1, angle in radians.
_SPREAD = (
    (0.0, 0.0, 0.0, 0.0),
    (0.04, 0.04, 0.06, 0.06),
    (-0.04, -0.04, 0.06, -0.06),
    (0.04, -0.04, -0.06, -0.06),
    (-0.04, 0.04, -0.06, 0.06),
)
_AT_REST = 0.02
_TURN_AT_REST = np.radians(3.0)


@dataclass(frozen=True, slots=True)
class LandmarkSettings:
    """How landmarks are measured.

    Attributes:
        min_score: presence below which there is no face.
        iterations: most squares tried until the place is at rest.
        squares: the last answer is the mean over so many squares, 1..5.
    """

    min_score: float = 0.5
    iterations: int = 4
    squares: int = 5


@dataclass(frozen=True, slots=True, eq=False)
class MeshFace:
    """Landmarks of one face in one picture.

    Attributes:
        landmarks: (478, 3) float64, plate px, z in unsqueezed px.
        score: presence 0..1.
        roi: the square that they were measured in.
        offset: (478, 3), from the answer of the middle square to the mean over all, in sides along the axes of the
            square; None where one square was asked.
    """

    landmarks: NDArray[np.float64]
    score: float
    roi: Roi
    offset: NDArray[np.float64] | None = None


def measure(view: PlateView, net: Net, rois: Sequence[Roi]) -> list[MeshFace]:
    """One net run a square: landmarks and presence as the net gives them."""

    def look(roi: Roi) -> Picture:
        return view.sample(roi.matrix(CROP, view.pixel_aspect), (CROP, CROP))

    return measure_in([(roi, look) for roi in rois], net, view.pixel_aspect)


def measure_in(places: Sequence[tuple[Roi, Look]], net: Net, pixel_aspect: float) -> list[MeshFace]:
    """As `measure`, each square in a picture of its own.

    Args:
        places: a square and what gives the (192, 192, 3) picture of a square.
        net: the mesh.
        pixel_aspect: width / height of a pixel.
    """
    found = []
    for first in range(0, len(places), _BATCH):
        batch = places[first : first + _BATCH]
        out = net.run({"image": to_input([look(roi) for roi, look in batch], net.card)})
        scores = sigmoid(out["presence"].reshape(-1))
        for (roi, _), points, score in zip(batch, out["landmarks"].astype(np.float64), scores, strict=True):
            matrix = roi.matrix(CROP, pixel_aspect)
            plane = points[:, :2] @ matrix[:, :2].T + matrix[:, 2]
            depth = points[:, 2:] * (roi.side / CROP)
            found.append(MeshFace(np.hstack([plane, depth]), float(score), roi))
    return found


def locate(view: PlateView, net: Net, rois: Sequence[Roi], settings: LandmarkSettings) -> list[MeshFace | None]:
    """Landmarks of the faces near the given squares.

    Returns:
        One a square, in order; None where the net sees no face there.
    """
    settled = settle(view, net, rois, settings)
    rough = measure_mean(view, net, [None if face is None else face.roi for face in settled], settings)
    # Once more from the mean's own square, which trembles less than that of a single answer.
    places = [None if face is None else roi_from_landmarks(face.landmarks, view.pixel_aspect) for face in rough]
    return measure_mean(view, net, places, settings)


def settle(view: PlateView, net: Net, rois: Sequence[Roi], settings: LandmarkSettings) -> list[MeshFace | None]:
    """Move each square until it is at rest.

    Returns:
        One a square, in order: the net's last answer, with the square that it asks for in `roi`; None where the net
        sees no face.
    """
    results: list[MeshFace | None] = [None] * len(rois)
    moving = dict(enumerate(rois))
    for _ in range(settings.iterations):
        faces = measure(view, net, list(moving.values()))
        still: dict[int, Roi] = {}
        for index, face in zip(moving, faces, strict=True):
            place = _follow(face, view.pixel_aspect) if face.score >= settings.min_score else None
            results[index] = None if place is None else replace(face, roi=place)
            if place is not None and not _at_rest(face.roi, place):
                still[index] = place
        moving = still
    return results


def measure_mean(
    view: PlateView, net: Net, places: Sequence[Roi | None], settings: LandmarkSettings
) -> list[MeshFace | None]:
    """The mean answer over squares spread around each place; None for None, and where the mean presence is low."""
    kept = [roi for roi in places if roi is not None]
    faces = measure(view, net, [spread(roi, number) for roi in kept for number in range(settings.squares)])
    means = []
    for number, roi in enumerate(kept):
        group = faces[number * settings.squares : (number + 1) * settings.squares]
        mean = mean_face(group, roi, view.pixel_aspect)
        means.append(mean if mean.score >= settings.min_score else None)
    ready = iter(means)
    return [None if roi is None else next(ready) for roi in places]


def mean_face(faces: Sequence[MeshFace], roi: Roi, pixel_aspect: float) -> MeshFace:
    """Mean landmarks and presence of several answers about the face in a square, the first from that square itself."""
    landmarks = np.mean([face.landmarks for face in faces], axis=0)
    axes = roi.matrix(1, pixel_aspect)[:, :2]
    apart = landmarks - faces[0].landmarks
    offset = np.hstack([apart[:, :2] @ np.linalg.inv(axes).T, apart[:, 2:] / roi.side])
    return MeshFace(landmarks, float(np.mean([face.score for face in faces])), roi, offset)


def put_right(face: MeshFace, offset: NDArray[np.float64], pixel_aspect: float) -> MeshFace:
    """The answer of the middle square moved to where the mean over all squares would have it, see `MeshFace.offset`."""
    axes = face.roi.matrix(1, pixel_aspect)[:, :2]
    apart = np.hstack([offset[:, :2] @ axes.T, offset[:, 2:] * face.roi.side])
    return replace(face, landmarks=face.landmarks + apart, offset=offset)


def spread(roi: Roi, number: int) -> Roi:
    """One of the five squares around a place; number 0 is the place itself."""
    right, down, grow, turn = _SPREAD[number]
    return Roi(roi.u + right * roi.side, roi.v + down * roi.side, roi.side * (1 + grow), roi.angle + turn)


def _follow(face: MeshFace, pixel_aspect: float) -> Roi | None:
    """The square that the landmarks ask for; None where they have run away."""
    following = roi_from_landmarks(face.landmarks, pixel_aspect)
    return following if 0.4 < following.side / face.roi.side < 2.5 else None


def _at_rest(before: Roi, after: Roi) -> bool:
    moved = max(abs(after.u - before.u), abs(after.v - before.v), abs(after.side - before.side))
    turned = abs((after.angle - before.angle + np.pi) % (2 * np.pi) - np.pi)
    return moved <= _AT_REST * before.side and turned <= _TURN_AT_REST


def same_face(a: MeshFace, b: MeshFace) -> bool:
    """True where two results lie on the same face: their centres closer than a third of the smaller square."""
    distance = np.hypot(a.roi.u - b.roi.u, a.roi.v - b.roi.v)
    return bool(distance < 0.33 * min(a.roi.side, b.roi.side))
