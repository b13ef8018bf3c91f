"""How squarely each point of a mesh faces the viewer."""

from __future__ import annotations

from functools import cache

import cv2
import numpy as np
from numpy.typing import NDArray

from ...faces import topology

_NOSE_TIP, _PHILTRUM = 4, 164


@cache
def neighbour_mean() -> NDArray[np.float64]:
    """(468, 468), each row averages the neighbours of its point in the mesh; read-only."""
    matrix = np.zeros((topology.FACE_POINTS, topology.FACE_POINTS))
    for a, b, c in topology.triangles():
        matrix[[a, a, b, b, c, c], [b, c, a, c, a, b]] = 1.0
    matrix /= matrix.sum(1, keepdims=True)
    matrix.flags.writeable = False
    return matrix


@cache
def _nose_base() -> NDArray[np.intp]:
    """Points of the nose's underside."""
    hull = cv2.convexHull(topology.uv()[list(topology.NOSTRILS)])
    inside = [cv2.pointPolygonTest(hull, (float(u), float(v)), True) > -0.008 for u, v in topology.uv()]
    return np.flatnonzero(inside)


def facing(points: NDArray[np.floating]) -> NDArray[np.float32]:
    """Cosine of the angle between each point's normal and the direction to the viewer; negative faces away.

    The underside of the nose takes what its tip and the lip below have: it is small, seen in most pictures, and a hole
    there would show.

    Args:
        points: (468 or more, 3), square pixels.

    Returns:
        (468,) float32, -1..1.
    """
    corners = np.asarray(points[: topology.FACE_POINTS], np.float64)[topology.triangles()]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    total = np.zeros((topology.FACE_POINTS, 3))
    for corner in range(3):
        np.add.at(total, topology.triangles()[:, corner], normal)
    cosine = -total[:, 2] / np.maximum(np.linalg.norm(total, axis=1), 1e-9)
    # a single point in a crease (corner of an eye, of the mouth) counts as its neighbours do
    cosine = np.maximum(cosine, neighbour_mean() @ cosine)
    base = _nose_base()
    cosine[base] = np.maximum(cosine[base], min(cosine[_NOSE_TIP], cosine[_PHILTRUM]))
    return np.asarray(cosine, np.float32)
