"""The fictional person's proportions: where the points of the portrait go, and the smooth warp that takes them there.

Face axes here: u along the line through the eye corners to the right of the picture, v down the face, in portrait px
from the middle between the eyes.
"""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import RBFInterpolator

from ..frame import Box
from .portrait import Image, portrait_landmarks

Pts = NDArray[np.float64]

PHOTO_WINDOW = Box(132, 8, 324, 214)
"""What a photo of the person shows, portrait px."""

# Columns of lip points from the inner edge over two rows between to the outer edge.
UPPER_LIP = (
    (191, 80, 81, 82, 13, 312, 311, 310, 415),
    (183, 42, 41, 38, 12, 268, 271, 272, 407),
    (184, 74, 73, 72, 11, 302, 303, 304, 408),
    (185, 40, 39, 37, 0, 267, 269, 270, 409),
)
LOWER_LIP = (
    (95, 88, 178, 87, 14, 317, 402, 318, 324),
    (96, 89, 179, 86, 15, 316, 403, 319, 325),
    (77, 90, 180, 85, 16, 315, 404, 320, 307),
    (146, 91, 181, 84, 17, 314, 405, 321, 375),
)
_COARSE = 6


class FaceAxes(NamedTuple):
    """Origin between the eyes and the two unit vectors, portrait px."""

    origin: Pts
    across: Pts
    down: Pts

    def to_face(self, points: Pts) -> Pts:
        """Portrait px (N, 2) to (u, v)."""
        rest = points - self.origin
        return np.stack([rest @ self.across, rest @ self.down], -1)

    def to_portrait(self, uv: Pts) -> Pts:
        """(u, v) (N, 2) to portrait px."""
        return np.asarray(self.origin + uv[:, :1] * self.across + uv[:, 1:] * self.down)


def face_axes() -> FaceAxes:
    """The axes of the portrait's face."""
    points = portrait_landmarks().astype(np.float64)[:, :2]
    across = points[263] - points[33]
    across /= np.hypot(*across)
    return FaceAxes((points[33] + points[263]) / 2, across, np.array([-across[1], across[0]]))


def _bump(u: Pts, v: Pts, at: tuple[float, float], size: tuple[float, float]) -> Pts:
    return np.asarray(np.exp(-0.5 * (((u - at[0]) / size[0]) ** 2 + ((v - at[1]) / size[1]) ** 2)))


def _reshape(uv: Pts) -> Pts:
    """Smooth change of proportions, in face axes: heavy jaw, long broad nose, narrow eyes, low brows, high forehead."""
    u, v = uv[:, 0], uv[:, 1]
    side, far = np.sign(u), np.clip(np.abs(u) / 40.0, 0.0, 1.2)
    du, dv = np.zeros_like(u), np.zeros_like(v)
    du += side * far * (4.2 * np.exp(-0.5 * ((v - 56.0) / 17.0) ** 2) + 1.2 * np.exp(-0.5 * ((v - 18.0) / 18.0) ** 2))
    dv += 7.0 * np.clip((v - 40.0) / 36.0, 0.0, 1.0)
    du += 0.22 * u * _bump(u, v, (0.0, 27.0), (13.0, 9.0))
    dv += 5.0 * _bump(u, v, (0.0, 27.0), (13.0, 12.0))
    du += 0.22 * u * _bump(u, v, (0.0, 8.0), (8.0, 12.0))
    for eye in (-19.0, 19.0):
        near = _bump(u, v, (eye, 0.0), (10.0, 5.5))
        dv -= 0.30 * v * near
        dv += 1.6 * _bump(u, v, (eye * 1.55, 0.0), (7.0, 6.0))
        du -= 0.10 * (u - eye) * near
        dv += 4.2 * _bump(u, v, (eye, -12.0), (13.0, 4.5))
        dv += 3.4 * _bump(u, v, (eye * 1.05, 43.0), (7.0, 7.0))
        du -= 3.4 * np.sign(eye) * _bump(u, v, (eye * 1.05, 43.0), (8.0, 7.0))
    dv -= 10.0 * np.clip((-v - 14.0) / 12.0, 0.0, 1.0) * np.exp(-0.5 * (u / 42.0) ** 2)
    return np.stack([u + du, v + dv], -1)


def _close_mouth(uv: Pts) -> Pts:
    """Inner lips (face axes) brought together on a smooth line, so that the person does not smile with bare teeth."""
    closed = uv.copy()
    middle = 0.5 * (uv[list(UPPER_LIP[0])] + uv[list(LOWER_LIP[0])])
    line = np.polyval(np.polyfit(middle[:, 0], middle[:, 1], 2), middle[:, 0])
    # Without the teeth between them the lips would swell: `swell` takes their outer edges back.
    for rows, gap, swell in ((UPPER_LIP, -0.32, 1.2), (LOWER_LIP, 0.32, -3.4)):
        inner, outer = uv[list(rows[0])], uv[list(rows[3])]
        inner_to = np.column_stack([middle[:, 0], line + gap])
        outer_to = outer.copy()
        outer_to[:, 1] += swell * np.clip(1 - (outer[:, 0] / 18.0) ** 2, 0, 1)
        for row in rows:
            share = ((uv[list(row), 1] - inner[:, 1]) / (outer[:, 1] - inner[:, 1]))[:, None]
            closed[list(row)] = inner_to + share * (outer_to - inner_to)
    return closed


# Outline of the portrait's hair and where the person's shorter hair ends, portrait px.
_HAIR = np.array(
    [
        [[229.0, 16.5], [229.0, 25.0]],
        [[196.0, 26.0], [201.0, 32.0]],
        [[262.0, 26.0], [256.0, 33.0]],
        [[172.0, 45.0], [184.0, 50.0]],
        [[285.0, 48.0], [274.0, 54.0]],
        [[155.0, 68.0], [174.5, 70.0]],
        [[299.0, 76.0], [283.5, 77.0]],
        [[154.5, 95.0], [171.5, 93.0]],
        [[301.0, 92.0], [286.5, 95.0]],
        [[163.0, 112.0], [172.5, 108.0]],
        [[296.0, 114.0], [284.0, 112.0]],
        [[172.0, 120.0], [175.0, 117.0]],
        [[280.0, 128.0], [280.0, 126.0]],
        [[176.0, 130.0], [175.5, 131.0]],
        [[275.0, 135.0], [277.0, 136.0]],
    ]
)


# Outlines in the portrait, px: the head with hair, ears and neck; the skin of it (the upper part is the hairline).
HEAD_OUTLINE = np.array(
    [
        [229.0, 16.0], [262.0, 26.0], [285.0, 48.0], [299.0, 76.0], [302.0, 93.0], [297.0, 112.0], [287.0, 127.0],
        [281.0, 134.5], [274.0, 137.0], [268.0, 138.0], [265.0, 150.0], [259.0, 163.0], [254.0, 172.0], [252.5, 192.0],
        [188.0, 192.0], [189.0, 158.0], [184.5, 146.0], [182.0, 132.5], [175.0, 131.0], [170.5, 122.0], [163.0, 113.0],
        [154.0, 95.0], [155.0, 68.0], [172.0, 45.0], [196.0, 26.0],
    ]
)  # fmt: skip
SKIN_OUTLINE = np.array(
    [
        [190.0, 75.0], [200.0, 77.5], [215.0, 80.0], [233.0, 82.0], [245.0, 85.5], [256.0, 88.5], [264.5, 91.0],
        [268.0, 98.0], [269.5, 110.0], [270.0, 128.0], [281.0, 128.0], [280.5, 135.0], [274.0, 137.0], [268.0, 139.0],
        [265.0, 150.0], [259.0, 163.0], [255.0, 172.0], [256.0, 196.0], [183.0, 196.0], [185.0, 160.0], [183.0, 146.0],
        [181.5, 132.5], [175.0, 131.0], [171.0, 121.0], [181.0, 119.0], [182.0, 105.0], [184.0, 92.0], [186.5, 79.0],
    ]
)  # fmt: skip


class Shape(NamedTuple):
    """The person's landmarks and the warp's controls, portrait px.

    Attributes:
        landmarks: (478, 3) where the person has the mesh points; z as in the portrait.
        target: (N, 2) controls in the person's picture.
        source: (N, 2) the same controls in the portrait.
    """

    landmarks: Pts
    target: Pts
    source: Pts

    def move(self, points: Pts) -> Pts:
        """Where points of the portrait (N, 2) lie in the person's picture."""
        spline = RBFInterpolator(self.source, self.target - self.source, kernel="thin_plate_spline", smoothing=0.3)
        return np.asarray(points + spline(points), np.float64)


def border_points(step: int = 24) -> Pts:
    """Points on the edge of the photo and beyond, which hold still."""
    window = PHOTO_WINDOW.grow(6)
    x, y = np.arange(window.x0, window.x1 + step, step), np.arange(window.y0, window.y1 + step, step)
    sides = [(float(a), float(b)) for a in x for b in (window.y0, window.y1)]
    sides += [(float(a), float(b)) for b in y for a in (window.x0, window.x1)]
    return np.unique(np.array(sides), axis=0)


def person_shape() -> Shape:
    """The person's proportions."""
    axes, points = face_axes(), portrait_landmarks().astype(np.float64)
    moved = axes.to_portrait(_close_mouth(_reshape(axes.to_face(points[:, :2]))))
    neck = np.array([[184.0, 178.0], [254.0, 182.0], [186.0, 188.0], [252.0, 190.0]])
    neck_to = neck + np.array([[-4.0, 5.0], [4.0, 5.0], [-4.0, 4.0], [4.0, 4.0]])
    still = border_points()
    source = np.vstack([points[:468, :2], _HAIR[:, 0], neck, still])
    target = np.vstack([moved[:468], _HAIR[:, 1], neck_to, still])
    return Shape(np.column_stack([moved, points[:, 2]]), target, source)


def warp(picture: Image, scale: float, target: Pts, source: Pts, window: Box = PHOTO_WINDOW) -> Image:
    """Resample a picture so that what lies at `source` comes to lie at `target`.

    Args:
        picture: (H, W, 3) float32 that covers `window` at `scale` px a portrait px.
        scale: px a portrait px, of picture and result.
        target: (N, 2) portrait px.
        source: (N, 2) portrait px.
        window: what picture and result cover, portrait px.

    Returns:
        (H, W, 3) float32; thin-plate spline between the controls, slightly smoothed.
    """
    height, width = picture.shape[:2]
    shift = shift_field(height, width, scale, target, source, window)
    x, y = np.arange(width, dtype=np.float32)[None], np.arange(height, dtype=np.float32)[:, None]
    return np.asarray(
        cv2.remap(picture, x + shift[..., 0], y + shift[..., 1], cv2.INTER_CUBIC, None, cv2.BORDER_REFLECT_101),
        np.float32,
    )


def shift_field(
    height: int, width: int, scale: float, target: Pts, source: Pts, window: Box = PHOTO_WINDOW
) -> NDArray[np.float32]:
    """(height, width, 2) float32: what to add to a picture px at `target` to find its px at `source`."""
    spline = RBFInterpolator(target, (source - target) * scale, kernel="thin_plate_spline", smoothing=0.3)
    rows, columns = -(-height // _COARSE), -(-width // _COARSE)
    x = (np.arange(columns) + 0.5) * _COARSE / scale + window.x0
    y = (np.arange(rows) + 0.5) * _COARSE / scale + window.y0
    grid = np.stack(np.meshgrid(x, y), -1).reshape(-1, 2)
    coarse = spline(grid).reshape(rows, columns, 2).astype(np.float32)
    fine = cv2.resize(coarse, (columns * _COARSE, rows * _COARSE), interpolation=cv2.INTER_CUBIC)
    return np.asarray(fine[:height, :width], np.float32)


def turn(picture: Image, scale: float, middle: Pts, yaw_deg: float, window: Box = PHOTO_WINDOW) -> Image:
    """The picture with the head turned, positive to the right of the picture; the wall around it stays.

    The head stands out of the picture as a smooth hill, its nose as a small one on top; the inverse of the shift is
    found by fixed point, which contracts as long as the hill is less steep than the turn allows (25 degrees).

    Args:
        picture: (H, W, 3) float32 over `window`.
        scale: px a portrait px.
        middle: (2,) the nose's tip, portrait px.
        yaw_deg: angle.
        window: what the picture covers, portrait px.
    """
    height, width = picture.shape[:2]
    x = (np.arange(width) + 0.5)[None] / scale + window.x0
    y = (np.arange(height) + 0.5)[:, None] / scale + window.y0
    angle = np.radians(yaw_deg)
    shift = np.zeros((height, width))
    for _ in range(16):
        u, v = x - shift - middle[0], y - middle[1]
        head = _bump(u, v, (2.0, -18.0), (42.0, 62.0))
        nose = 15.0 * _bump(u, v, (0.0, -3.0), (11.0, 12.0))
        shift = (58.0 * head + nose) * np.sin(angle) + u * head * (np.cos(angle) - 1)
    map_x = (np.arange(width)[None] - shift * scale).astype(np.float32)
    map_y = np.repeat(np.arange(height, dtype=np.float32)[:, None], width, 1)
    return np.asarray(cv2.remap(picture, map_x, map_y, cv2.INTER_CUBIC, None, cv2.BORDER_REFLECT_101), np.float32)
