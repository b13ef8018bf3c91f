"""Measurements on a photo's face: pose, shape without pose, and how sharp it really is."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from ..face import Points
from ..faces import rectify, topology
from ..faces.view import encode_srgb

Image = NDArray[np.float32]

SKIN_LEVEL = 0.18
"""Linear light of mid skin in a well-exposed photograph."""

_FINEST = 512
_COARSEST = 48
_EDGE, _RIM = 0.04, 0.15
_LEVEL_TEXELS = 64
_FINE_SIGMA, _MIDDLE_SIGMA = 1.0, 4.0
_LUMINANCE = np.array([0.2126, 0.7152, 0.0722], np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Pose:
    """How a face lies in its picture: picture = scale * rotation @ canonical + offset.

    Attributes:
        scale: px a unit of the canonical face.
        rotation: (3, 3).
        offset: (3,) px.
    """

    scale: float
    rotation: NDArray[np.float64]
    offset: NDArray[np.float64]


def fit_pose(landmarks: Points) -> Pose:
    """The similarity that lays the canonical face over `landmarks` by its rigid points.

    Kabsch, Acta Cryst. A32 (1976) 922, with Umeyama's scale, IEEE PAMI 13 (1991) 376.

    Args:
        landmarks: (468 or more, 3) square px.
    """
    index = list(topology.RIGID)
    source = np.asarray(topology.canonical(), np.float64)[index]
    target = np.asarray(landmarks, np.float64)[index]
    source_mean, target_mean = source.mean(0), target.mean(0)
    left, sizes, right = np.linalg.svd((target - target_mean).T @ (source - source_mean))
    signs = np.array([1.0, 1.0, np.sign(np.linalg.det(left @ right))])
    rotation = (left * signs) @ right
    scale = float((sizes * signs).sum() / ((source - source_mean) ** 2).sum())
    return Pose(scale, rotation, target_mean - scale * rotation @ source_mean)


def posed_shape(landmarks: Points, pose: Pose) -> NDArray[np.float64]:
    """The face turned to the front and brought to the canonical one's place: (468, 3), about unit width."""
    face = np.asarray(landmarks[: topology.FACE_POINTS], np.float64)
    return np.asarray((face - pose.offset) @ pose.rotation / pose.scale)


def mean_shape(shapes: list[NDArray[np.float64]], yaws_deg: list[float]) -> Points:
    """One shape of exactly unit width from several photos; the more frontal a photo, the more it counts.

    Args:
        shapes: of `posed_shape`, at least one.
        yaws_deg: head turn in each photo.

    Returns:
        (468, 3) float32.
    """
    # A net measures depth less well than the picture plane, and a turned face shows its width as depth.
    weights = np.maximum(np.cos(np.radians(yaws_deg)) ** 2, 0.05)
    mean = np.tensordot(weights / weights.sum(), np.stack(shapes), 1)
    width = float(np.ptp(mean[:, 0]))
    return np.asarray(mean / width, np.float32)


def face_width(landmarks: Points) -> float:
    """As `Observation.width_px`, in px of the picture."""
    axis = landmarks[263, :2] - landmarks[33, :2]
    along = landmarks[: topology.FACE_POINTS, :2] @ (axis / max(float(np.hypot(*axis)), 1e-6))
    return float(np.ptp(along))


def skin_level(picture: Image, landmarks: Points) -> float:
    """Median luminance of the inner face, linear light; 0 where it holds no positive value."""
    face = rectify.rectify(picture, landmarks, _LEVEL_TEXELS)[_inner(_LEVEL_TEXELS, _RIM)] @ _LUMINANCE
    usable = face[np.isfinite(face) & (face > 0)]
    return float(np.median(usable)) if usable.size else 0.0


def sharpness(picture: Image, landmarks: Points) -> float:
    """How much of the finest detail that the face's pixels could hold is there.

    The rectified face, about a texel a pixel (at most 512), is split by Gaussians of 1 and 4 texels along rows and
    along columns; the measure is the deviation of the fine band over that of the middle one, the lesser of both
    directions, so that motion blur counts. Natural pictures have about as much contrast in each octave
    (Field, J. Opt. Soc. Am. A 4 (1987) 2379), so it depends little on the size of the face, and a face that was blurred
    or enlarged lacks the fine band. Noise counts as detail.

    Args:
        picture: (h, w, 3) float32, linear light, Rec.709 primaries.
        landmarks: (468 or more, 3) px of the picture.

    Returns:
        0 for no detail; see `photos.PhotoLimits` for what is usual.
    """
    width = face_width(landmarks)
    if width > _FINEST:
        factor = _FINEST / width
        size = max(1, round(picture.shape[1] * factor)), max(1, round(picture.shape[0] * factor))
        scale = np.array([size[0] / picture.shape[1], size[1] / picture.shape[0], factor], np.float32)
        picture = np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.float32)
        landmarks = np.asarray(landmarks * scale, np.float32)
    texels = int(np.clip(round(width), _COARSEST, _FINEST))
    level = skin_level(picture, landmarks)
    if level <= 0:
        return 0.0
    grey = encode_srgb(np.nan_to_num(picture @ _LUMINANCE) * np.float32(SKIN_LEVEL / level))
    face = rectify.rectify(np.ascontiguousarray(grey), landmarks, texels)
    inner = _inner(texels, _EDGE)
    return min(_detail_along(np.rot90(face, turn), np.rot90(inner, turn)) for turn in (0, 1))


def _inner(texels: int, share: float) -> NDArray[np.bool_]:
    """The face in UV less a rim of `share` of its side: hair and background begin there."""
    reach = max(2, round(share * texels))
    kernel = np.ones((2 * reach + 1, 2 * reach + 1), np.uint8)
    return np.asarray(cv2.erode(rectify.coverage(texels).astype(np.uint8), kernel) > 0)


def _detail_along(face: Image, inner: NDArray[np.bool_]) -> float:
    """Fine over middle band along the rows."""
    fine, middle = (
        cv2.sepFilter2D(face, -1, cv2.getGaussianKernel(2 * round(4 * sigma) + 1, sigma), np.ones(1))
        for sigma in (_FINE_SIGMA, _MIDDLE_SIGMA)
    )
    return float((face - fine)[inner].std() / max(float((fine - middle)[inner].std()), 1e-6))
