"""Puts the parts of MediaPipe's attention mesh together to one set of 478 points.

MediaPipe does this outside the net (LandmarksRefinementCalculator, in the order mesh, lips, left eye, right eye, left
iris, right iris). The lists say which point of the mesh each point of a part replaces, in the part's own order; the net
holds the same lists for the lips and eyes, as the points around which it cuts the part's crop. "Left" is MediaPipe's
name, which here is the subject's right (the left of the picture).
"""

from __future__ import annotations

import numpy as np

from .lowering import Lowering

MESH_POINTS = 468
POINTS = 478

# fmt: off
LIPS = (
    # outer contour: below, then above without the corners
    61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291, 185, 40, 39, 37, 0, 267, 269, 270, 409,
    # inner contour
    78, 95, 88, 178, 87, 14, 317, 402, 318, 324, 308, 191, 80, 81, 82, 13, 312, 311, 310, 415,
    # nearer the outer contour
    76, 77, 90, 180, 85, 16, 315, 404, 320, 307, 306, 184, 74, 73, 72, 11, 302, 303, 304, 408,
    # nearer the inner contour
    62, 96, 89, 179, 86, 15, 316, 403, 319, 325, 292, 183, 42, 41, 38, 12, 268, 271, 272, 407,
)
LEFT_EYE_CONTOUR = (33, 7, 163, 144, 145, 153, 154, 155, 133, 246, 161, 160, 159, 158, 157, 173)
LEFT_EYE = (
    *LEFT_EYE_CONTOUR,
    # rings around the eye, from the inside out
    130, 25, 110, 24, 23, 22, 26, 112, 243, 247, 30, 29, 27, 28, 56, 190,
    226, 31, 228, 229, 230, 231, 232, 233, 244, 113, 225, 224, 223, 222, 221, 189,
    # brow and what surrounds it
    35, 124, 46, 53, 52, 65, 143, 111, 117, 118, 119, 120, 121, 128, 245, 156, 70, 63, 105, 66, 107, 55, 193,
)
RIGHT_EYE_CONTOUR = (263, 249, 390, 373, 374, 380, 381, 382, 362, 466, 388, 387, 386, 385, 384, 398)
RIGHT_EYE = (
    *RIGHT_EYE_CONTOUR,
    359, 255, 339, 254, 253, 252, 256, 341, 463, 467, 260, 259, 257, 258, 286, 414,
    446, 261, 448, 449, 450, 451, 452, 453, 464, 342, 445, 444, 443, 442, 441, 413,
    265, 353, 276, 283, 282, 295, 372, 340, 346, 347, 348, 349, 350, 357, 465, 383, 300, 293, 334, 296, 336, 285, 417,
)
# fmt: on
LEFT_IRIS = tuple(range(468, 473))
RIGHT_IRIS = tuple(range(473, 478))

# Parts in the order in which they are applied: tensor of the net, points.
_PARTS = (
    ("output_lips", LIPS),
    ("output_left_eye", LEFT_EYE),
    ("output_right_eye", RIGHT_EYE),
    ("output_left_iris", LEFT_IRIS),
    ("output_right_iris", RIGHT_IRIS),
)


def assemble(low: Lowering, output: str) -> None:
    """Add the nodes that make `output` (N, 478, 3), in pixels of the net's input.

    x and y of a refined point are the part's; z is the mesh's. An iris has the mean z of its eye's contour.
    """
    build = low.builder
    mesh = build.reshape(low.result("output_mesh_identity"), (MESH_POINTS, 3))
    rows, planes = [build.take(mesh, 0, 2, 2)], MESH_POINTS
    source = np.zeros(POINTS, np.int64)
    source[:MESH_POINTS] = np.arange(MESH_POINTS)
    for tensor, points in _PARTS:
        rows.append(build.reshape(low.result(tensor), (len(points), 2)))
        source[list(points)] = planes + np.arange(len(points))
        planes += len(points)
    plane = build.node("Gather", [build.node("Concat", rows, axis=1), build.integers(source)], axis=1)

    depth = build.take(mesh, 2, 3, 2)
    depths = [depth]
    for contour in (LEFT_EYE_CONTOUR, RIGHT_EYE_CONTOUR):
        around = build.node("Gather", [depth, build.integers(contour)], axis=1)
        # Along the last axis, where the order of summing does not depend on the batch.
        row = build.reshape(around, (1, len(contour)))
        depths.append(build.node("ReduceMean", [row], axes=[2], keepdims=1))
    source = np.arange(POINTS)
    source[list(LEFT_IRIS)], source[list(RIGHT_IRIS)] = MESH_POINTS, MESH_POINTS + 1
    depth = build.node("Gather", [build.node("Concat", depths, axis=1), build.integers(source)], axis=1)
    build.node("Concat", [plane, depth], output, axis=2)
