"""A face's pose: where it lies, how big and turned it is, and its shape in its own coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import topology
from .crop import squeeze, unsqueeze

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Similarity:
    """Face coordinates (`topology.canonical`, width 1) to unsqueezed px.

    Attributes:
        u: of the face's origin, unsqueezed px.
        v: of the face's origin, px.
        log_scale: natural logarithm of px a face width.
        angle: radians, clockwise on screen.
    """

    u: float
    v: float
    log_scale: float
    angle: float


def fit_similarity(landmarks: NDArray[np.floating[Any]], pixel_aspect: float) -> Similarity:
    """Least squares over the points that expressions hardly move (Umeyama 1991, in the plane)."""
    rigid = list(topology.RIGID)
    source = topology.canonical()[rigid, :2].astype(np.float64)
    target = unsqueeze(landmarks[rigid, :2], pixel_aspect)
    a, b = source - source.mean(0), target - target.mean(0)
    # As complex numbers a similarity is one factor.
    factor = np.vdot(a @ (1, 1j), b @ (1, 1j)) / (a**2).sum()
    offset = target.mean(0) @ (1, 1j) - factor * (source.mean(0) @ (1, 1j))
    return Similarity(
        float(offset.real), float(offset.imag), float(np.log(max(abs(factor), 1e-9))), float(np.angle(factor))
    )


def to_face(landmarks: NDArray[np.floating[Any]], pose: Similarity, pixel_aspect: float) -> Array:
    """(N, 3) plate px to face coordinates."""
    points = unsqueeze(landmarks, pixel_aspect)
    factor = np.exp(pose.log_scale + 1j * pose.angle)
    plane = (points[:, :2] @ (1, 1j) - (pose.u + 1j * pose.v)) / factor
    return np.column_stack([plane.real, plane.imag, points[:, 2] / abs(factor)])


def from_face(shape: Array, pose: Similarity, pixel_aspect: float) -> Array:
    """The inverse of `to_face`."""
    factor = np.exp(pose.log_scale + 1j * pose.angle)
    plane = (shape[:, :2] @ (1, 1j)) * factor + (pose.u + 1j * pose.v)
    return squeeze(np.column_stack([plane.real, plane.imag, shape[:, 2] * abs(factor)]), pixel_aspect)


def yaw_degrees(landmarks: NDArray[np.floating[Any]], pixel_aspect: float) -> float:
    """Head turn, the subject's left positive, -90..90: from the rotation that fits the rigid points in space.

    The fit is Kabsch's; in-plane rotation does not count.
    """
    rigid = list(topology.RIGID)
    source = topology.canonical()[rigid].astype(np.float64)
    target = unsqueeze(landmarks[rigid], pixel_aspect)
    u, _, vt = np.linalg.svd((source - source.mean(0)).T @ (target - target.mean(0)))
    flip = np.diag([1.0, 1.0, np.sign(np.linalg.det(vt.T @ u.T))])
    rotation = vt.T @ flip @ u.T
    # The face looks towards the camera (-z); turn the roll away along its own left-right axis on screen.
    forward, sideways = -rotation[:, 2], rotation[:, 0]
    roll = np.arctan2(sideways[1], sideways[0])
    along = np.cos(roll) * forward[0] + np.sin(roll) * forward[1]
    return float(np.degrees(np.clip(np.arctan2(along, max(-forward[2], 1e-9)), -np.pi / 2, np.pi / 2)))
