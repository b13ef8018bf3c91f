"""The face mesh: triangles, canonical UV, mirror pairs and named groups of points.

The data (`data/topology.json`, provenance in its note) covers the 468 face points; the 10 iris points have no
triangles. UV is a disc-shaped one-to-one map of the face: u grows to screen right for a face that looks at the camera
(the subject's left), v grows downwards, both 0..1. Files that compositors read count v from the bottom; that flip is
done where they are written.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

FACE_POINTS = 468

FACE_OVAL = (
    *(10, 338, 297, 332, 284, 251, 389, 356, 454, 323, 361, 288, 397, 365, 379, 378, 400, 377),
    *(152, 148, 176, 149, 150, 136, 172, 58, 132, 93, 234, 127, 162, 21, 54, 103, 67, 109),
)
"""Outline of the face, clockwise on screen from the middle of the forehead."""
RIGHT_EYE = (33, 246, 161, 160, 159, 158, 157, 173, 133, 155, 154, 153, 145, 144, 163, 7)
LEFT_EYE = (263, 466, 388, 387, 386, 385, 384, 398, 362, 382, 381, 380, 374, 373, 390, 249)
"""Eyelid outlines from the outer corner over the upper lid. Right and left are the subject's."""
INNER_LIPS = (78, 95, 88, 178, 87, 14, 317, 402, 318, 324, 308, 415, 310, 311, 312, 13, 82, 81, 80, 191)
OUTER_LIPS = (61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291, 409, 270, 269, 267, 0, 37, 39, 40, 185)
RIGHT_BROW = (70, 63, 105, 66, 107, 55, 65, 52, 53, 46)
LEFT_BROW = (300, 293, 334, 296, 336, 285, 295, 282, 283, 276)
NOSTRILS = (1, 2, 98, 327, 94, 19, 64, 294)
CHEEKS = (50, 101, 118, 117, 205, 36, 280, 330, 347, 346, 425, 266, 1, 4, 5, 195, 197, 187, 411)
"""Points that lie on bare skin in nearly every picture: cheeks and the bridge of the nose."""
RIGID = (33, 133, 362, 263, 168, 6, 197, 195, 5, 4, 1, 234, 454, 127, 356, 10, 109, 338)
"""Points that expressions hardly move."""


@cache
def _data() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(files(__package__).joinpath("data/topology.json").read_text("utf-8"))
    return document


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


@cache
def triangles(*, holes_filled: bool = True) -> NDArray[np.int32]:
    """(T, 3) int32 point indices; facing the camera their normal has negative z. 898 triangles, or 852 without the
    ones that close the eyes and the mouth.
    """
    every = np.array(_data()["triangles"], np.int32)
    return _frozen(every if holes_filled else every[: _data()["skin_triangles"]])


@cache
def uv() -> NDArray[np.float32]:
    """(468, 2) float32, canonical u and v of each point, 0..1, v down."""
    return _frozen(np.array(_data()["uv"], np.float32))


@cache
def canonical() -> NDArray[np.float32]:
    """(468, 3) float32, a frontal symmetric face of width 1: x right, y down, z away from the camera."""
    return _frozen(np.array(_data()["canonical"], np.float32))


@cache
def mirror() -> NDArray[np.int32]:
    """(468,) int32, the index of each point's mirror image."""
    return _frozen(np.array(_data()["mirror"], np.int32))
