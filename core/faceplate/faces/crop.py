"""Regions of interest: the turned square around a face that a net looks at.

Squares live in *unsqueezed* pixels: plate x multiplied by the pixel aspect, plate y as it is, so that a circle is
round and an angle is an angle on anamorphic plates too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..face import Detection
from . import topology
from .view import Affine

Array = NDArray[np.float64]

MESH_ROI_SCALE = 1.5
"""Side of the landmark net's crop over the longer side of the face: what the net was trained with."""

_SAME_PLACE = 0.33


@dataclass(frozen=True, slots=True)
class Roi:
    """A turned square.

    Attributes:
        u: centre, unsqueezed px.
        v: centre, px.
        side: px.
        angle: radians, clockwise on screen; 0 is upright.
    """

    u: float
    v: float
    side: float
    angle: float

    def matrix(self, size: int, pixel_aspect: float) -> Affine:
        """(2, 3) from px of a crop of `size` px a side to plate px."""
        cos, sin = np.cos(self.angle) * self.side / size, np.sin(self.angle) * self.side / size
        linear = np.array([[cos, -sin], [sin, cos]])
        offset = np.array([self.u, self.v]) - linear @ (size / 2, size / 2)
        affine = np.hstack([linear, offset[:, None]])
        affine[0] /= pixel_aspect
        return affine


def unsqueeze(points: NDArray[np.floating[Any]], pixel_aspect: float) -> Array:
    """(N, 2 or 3) plate px to unsqueezed px, float64."""
    out = np.array(points, np.float64)
    out[:, 0] *= pixel_aspect
    return out


def squeeze(points: NDArray[np.floating[Any]], pixel_aspect: float) -> Array:
    """The inverse of `unsqueeze`."""
    out = np.array(points, np.float64)
    out[:, 0] /= pixel_aspect
    return out


def roi_from_landmarks(landmarks: NDArray[np.floating[Any]], pixel_aspect: float) -> Roi:
    """The square for the landmark net around landmarks (468 or more points, plate px)."""
    face = unsqueeze(landmarks[: topology.FACE_POINTS, :2], pixel_aspect)
    axis = face[263] - face[33]
    angle = float(np.arctan2(axis[1], axis[0]))
    cos, sin = np.cos(angle), np.sin(angle)
    upright = face @ np.array([[cos, -sin], [sin, cos]])
    low, high = upright.min(0), upright.max(0)
    u, v = np.array([[cos, -sin], [sin, cos]]) @ ((low + high) / 2)
    return Roi(float(u), float(v), float((high - low).max()) * MESH_ROI_SCALE, angle)


def roi_from_detection(seen: Detection, pixel_aspect: float) -> Roi:
    """The square for the landmark net around a detector's box, turned so that the eyes lie level."""
    return Roi(
        seen.centre[0] * pixel_aspect,
        seen.centre[1],
        max(seen.size) * MESH_ROI_SCALE,
        float(np.radians(seen.angle_deg)),
    )


def carry_roi(
    roi: Roi,
    points: NDArray[np.floating[Any]],
    flow: NDArray[np.floating[Any]],
    weights: NDArray[np.floating[Any]],
    pixel_aspect: float,
) -> Roi:
    """The square moved as the points in it moved: weighted least-squares similarity.

    Args:
        roi: before.
        points: (N, 2) plate px before.
        flow: (N, 2) plate px, how each moved.
        weights: (N,) at least 0, not all 0.
        pixel_aspect: width / height of a pixel.
    """
    # As complex numbers a similarity is one factor and one offset.
    before = unsqueeze(points[:, :2], pixel_aspect) @ (1, 1j)
    after = before + unsqueeze(flow, pixel_aspect) @ (1, 1j)
    share = weights / weights.sum()
    middle, target = share @ before, share @ after
    factor = (share * (before - middle).conj()) @ (after - target) / (share @ np.abs(before - middle) ** 2)
    place = target + factor * (roi.u + 1j * roi.v - middle)
    return Roi(float(place.real), float(place.imag), float(roi.side * abs(factor)), roi.angle + float(np.angle(factor)))


def is_at(roi: Roi, face: Roi) -> bool:
    """True where a square's centre lies within a third of the side of a face's."""
    return bool(np.hypot(roi.u - face.u, roi.v - face.v) < _SAME_PLACE * face.side)


def blend_rois(a: Roi, b: Roi, part: float) -> Roi:
    """The square `part` of the way from a to b."""
    turn = turn_between(a.angle, b.angle)
    return Roi(
        a.u + part * (b.u - a.u), a.v + part * (b.v - a.v), a.side + part * (b.side - a.side), a.angle + part * turn
    )


def turn_between(a: float, b: float) -> float:
    """From angle a to angle b the short way round, radians."""
    return float((b - a + np.pi) % (2 * np.pi) - np.pi)
