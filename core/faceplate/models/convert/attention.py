"""The three operators that MediaPipe adds to tflite for the attention mesh, in plain ONNX.

Written from the behaviour of MediaPipe's tflite operations (Landmarks2TransformMatrix, TransformTensorBilinear,
TransformLandmarks, each version 2). A transform is a 4 x 4 matrix, as in the tflite file, that maps (x, y, 0, 1) of the
small crop to pixels of the feature map.
"""

from __future__ import annotations

import numpy as np

from ...errors import ModelError
from .builder import GraphBuilder
from .graph import Operation
from .lowering import Lowering, Rule

# (2, 3) affine -> (4, 4): rows @ affine @ columns + corner.
_ROWS = np.eye(4, 2, dtype=np.float32)
_COLUMNS = np.eye(4, dtype=np.float32)[[0, 1, 3]]
_CORNER = np.diag(np.array([0, 0, 1, 1], np.float32))


def _affine(build: GraphBuilder, matrix: str) -> tuple[str, str]:
    """Linear part (N, 2, 2) and shift (N, 2, 1) of a transform (N, 4, 4)."""
    top = build.take(matrix, 0, 2, 1)
    return build.take(top, 0, 2, 2), build.take(top, 3, 4, 2)


def _landmarks_to_matrix(low: Lowering, op: Operation) -> str:
    """The crop around a subset of the landmarks, upright along the line between two of them.

    The subset is rotated by minus the line's angle, its bounding box taken, and the box, scaled, becomes the crop. The
    line's unit vector holds cosine and sine, so no angle is ever computed.
    """
    build, options = low.builder, op.options
    if options["target_rotation_radians"] != 0:
        raise ModelError("Landmarks2TransformMatrix is known for a target rotation of 0 only")
    width, height = options["output_width"], options["output_height"]
    points = build.take(low.name(op.inputs[0]), 0, 2, 2)
    left = build.node("Gather", [points, build.integers([options["left_rotation_idx"]])], axis=1)
    right = build.node("Gather", [points, build.integers([options["right_rotation_idx"]])], axis=1)
    line = build.node("Sub", [right, left])
    unit = build.node("Div", [line, build.node("ReduceL2", [line], axes=[2], keepdims=1)])
    # (c, s) -> [[c, s], [-s, c]]: a row of points times this turns it by the angle, times its transpose back.
    turn = build.reshape(build.node("MatMul", [unit, build.floats([[1, 0, 0, 1], [0, 1, -1, 0]])]), (2, 2))
    turn_back = build.node("Transpose", [turn], perm=[0, 2, 1])
    subset = build.node("Gather", [points, build.integers(options["subset_idxs"])], axis=1)
    upright = build.node("MatMul", [subset, turn_back])
    high = build.node("ReduceMax", [upright], axes=[1], keepdims=1)
    lowest = build.node("ReduceMin", [upright], axes=[1], keepdims=1)
    middle = build.node("Mul", [build.node("Add", [high, lowest]), build.floats(0.5)])
    centre = build.node("Transpose", [build.node("MatMul", [middle, turn])], perm=[0, 2, 1])
    per_pixel = build.floats([options["scale_x"] / width, options["scale_y"] / height])
    scale = build.node("Mul", [build.node("Sub", [high, lowest]), per_pixel])
    linear = build.node("Mul", [turn_back, scale])
    to_centre = build.node("MatMul", [linear, build.floats([[width / 2], [height / 2]])])
    affine = build.node("Concat", [linear, build.node("Sub", [centre, to_centre])], axis=2)
    square = build.node("MatMul", [build.node("MatMul", [build.floats(_ROWS), affine]), build.floats(_COLUMNS)])
    return build.node("Add", [square, build.floats(_CORNER)])


def _crop(low: Lowering, op: Operation) -> str:
    """The feature map under the transform, bilinear; 0 where the centre falls outside the outer pixel centres."""
    build = low.builder
    height, width = op.options["output_height"], op.options["output_width"]
    _, source_height, source_width, _ = low.shape(op.inputs[0])
    rows, columns = np.mgrid[0:height, 0:width].astype(np.float32) + np.float32(0.5)
    linear, shift = _affine(build, low.name(op.inputs[1]))
    centres = build.floats(np.stack([columns.ravel(), rows.ravel()]))
    place = build.node("Add", [build.node("MatMul", [linear, centres]), shift])
    place = build.node("Transpose", [build.node("Sub", [place, build.floats(0.5)])], perm=[0, 2, 1])
    last = np.array([source_width - 1, source_height - 1], np.float32)
    inside = build.node(
        "And",
        [
            build.node("GreaterOrEqual", [place, build.floats(0.0)]),
            build.node("LessOrEqual", [place, build.floats(last)]),
        ],
    )
    inside = build.node("ReduceMin", [build.node("Cast", [inside], to=1)], axes=[2], keepdims=1)
    grid = build.node("Sub", [build.node("Mul", [place, build.floats(2 / last)]), build.floats(1.0)])
    sampled = build.node(
        "GridSample",
        [low.name(op.inputs[0]), build.reshape(grid, (height, width, 2))],
        mode="bilinear",
        padding_mode="zeros",
        align_corners=1,
    )
    return build.node("Mul", [sampled, build.reshape(inside, (1, height, width))])


def _move_landmarks(low: Lowering, op: Operation) -> str:
    """Points (N, P, 2) of the small crop, in pixels of the feature map."""
    if low.shape(op.inputs[0])[-1] != 2:
        raise ModelError("TransformLandmarks is known for points in the plane only")
    build = low.builder
    linear, shift = _affine(build, low.name(op.inputs[1]))
    linear, shift = (build.node("Transpose", [part], perm=[0, 2, 1]) for part in (linear, shift))
    return build.node("Add", [build.node("MatMul", [low.name(op.inputs[0]), linear]), shift])


ATTENTION_OPERATORS: dict[str, Rule] = {
    "Landmarks2TransformMatrix": _landmarks_to_matrix,
    "TransformTensorBilinear": _crop,
    "TransformLandmarks": _move_landmarks,
}
