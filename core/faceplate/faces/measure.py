"""How steady and how right landmarks are, against known truth: what tests assert and `faceplate bench` prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import topology


@dataclass(frozen=True, slots=True)
class JitterFigures:
    """Landmark error over a shot, plate px, of the 468 face points.

    Attributes:
        jitter_px: rms length of what is left of the error once each point's mean error, taken in the face's own axes,
            is removed: everything that moves against the skin, slow or fast.
        flicker_px: the fast part of it: rms second difference over sqrt(6), which for white noise is its deviation.
        mean_error_px: mean distance to the truth, offsets of the net's own idea of a point included.
        lag_frames: by how many frames the landmarks trail the motion: the regression of the face's position error on
            its velocity, negated. 0 where nothing moves.
        lag_correlation: correlation of that error with velocity, -1..1.
    """

    jitter_px: float
    flicker_px: float
    mean_error_px: float
    lag_frames: float
    lag_correlation: float


def landmark_jitter(found: NDArray[np.floating[Any]], truth: NDArray[np.floating[Any]]) -> JitterFigures:
    """Compare landmarks with the truth, in square pixels.

    Args:
        found: (N, 468 or more, 2 or more), one row a frame, N >= 3.
        truth: of the same frames and points.
    """
    face = slice(0, topology.FACE_POINTS)
    right = truth[:, face, :2].astype(np.float64)
    error = found[:, face, :2].astype(np.float64) - right
    axes = _face_axes(right)
    local = np.einsum("npi,nij->npj", error, axes)
    moving = local - local.mean(0)
    flicker = np.diff(local, 2, axis=0)
    lag, correlation = _lag(error, right, axes)
    return JitterFigures(
        jitter_px=float(np.sqrt((moving**2).sum(-1).mean())),
        flicker_px=float(np.sqrt((flicker**2).sum(-1).mean() / 6)),
        mean_error_px=float(np.hypot(error[..., 0], error[..., 1]).mean()),
        lag_frames=lag,
        lag_correlation=correlation,
    )


def _face_axes(truth: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N, 2, 2), columns are the face's right and down on screen."""
    right = truth[:, 263] - truth[:, 33]
    right /= np.linalg.norm(right, axis=1, keepdims=True)
    down = np.stack([-right[:, 1], right[:, 0]], -1)
    return np.stack([right, down], -1)


def _lag(error: NDArray[np.float64], truth: NDArray[np.float64], axes: NDArray[np.float64]) -> tuple[float, float]:
    """Regress the error of the face's position, its constant part in face axes removed, on the velocity."""
    constant = np.einsum("npi,nij->npj", error, axes).mean((0, 1))
    position = error.mean(1) - axes @ constant
    velocity = np.gradient(truth.mean(1), axis=0)
    # A constant velocity says nothing about lag once offsets are free.
    varying = (velocity - velocity.mean(0)).ravel()
    along = (position - position.mean(0)).ravel()
    power = float(varying @ varying)
    if power < 1e-9:
        return 0.0, 0.0
    spread = float(np.sqrt(power * (along @ along)))
    return -float(along @ varying) / power, float(along @ varying) / spread if spread > 1e-12 else 0.0
