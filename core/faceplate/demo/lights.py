"""Lights of the demo set, computed at each frame's own place so that they move by fractions of a pixel without ringing.

Bulbs and a tube of saturated blue (outside the gamut of AP1, hence negative red and green) stand on the set; a
reflection of the sun slides over cheek and hair.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from ..frame import Box

Canvas = NDArray[np.float32]
Affine = NDArray[np.float64]

_COARSE = 8


@dataclass(frozen=True, slots=True)
class Lamp:
    """A light on the set: a capsule (a disc where both ends agree) with a halo.

    Attributes:
        start: one end, portrait px.
        end: the other end, portrait px.
        radius: portrait px.
        colour: scene-linear ACEScg of its face.
        halo: what the lens spreads, as a fraction of the colour.
        spread: deviation of the halo, portrait px.
    """

    start: tuple[float, float]
    end: tuple[float, float]
    radius: float
    colour: tuple[float, float, float]
    halo: float
    spread: float


def _bulb(x: float, y: float, radius: float, value: float) -> Lamp:
    return Lamp((x, y), (x, y), radius, (value, 0.66 * value, 0.3 * value), 0.008, 11.0)


LAMPS = (
    _bulb(92.0, 12.0, 4.2, 34.0),
    _bulb(104.0, 44.0, 4.6, 42.0),
    _bulb(111.0, 78.0, 4.4, 38.0),
    _bulb(113.0, 112.0, 4.0, 33.0),
    _bulb(336.0, 18.0, 4.6, 44.0),
    _bulb(344.0, 52.0, 4.2, 36.0),
    _bulb(347.0, 86.0, 3.8, 31.0),
    Lamp((487.0, -40.0), (493.0, 236.0), 2.4, (-0.75, -0.28, 8.0), 0.035, 20.0),
    Lamp((487.0, -40.0), (493.0, 235.0), 0.9, (8.0, 10.0, 24.0), 0.0, 20.0),
)


def _distance(
    x: NDArray[np.float32], y: NDArray[np.float32], start: NDArray[np.float64], end: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Distance of every point to the line from start to end."""
    way = end - start
    along = ((x - start[0]) * way[0] + (y - start[1]) * way[1]) / max(float(way @ way), 1e-9)
    along = np.clip(along, 0.0, 1.0)
    return np.asarray(np.hypot(x - (start[0] + along * way[0]), y - (start[1] + along * way[1])), np.float32)


def _centres(window: Box, step: int = 1) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """x as a row and y as a column of the cells' centres, plate px."""
    half = np.float32(step / 2)
    x = np.arange(window.x0, window.x1, step, dtype=np.float32)[None] + half
    y = np.arange(window.y0, window.y1, step, dtype=np.float32)[:, None] + half
    return x, y


def _place(affine: Affine, point: tuple[float, float]) -> NDArray[np.float64]:
    return np.asarray(affine[:, :2] @ point + affine[:, 2], np.float64)


def _scale(affine: Affine) -> float:
    return float(np.sqrt(abs(np.linalg.det(affine[:, :2]))))


def add_lamps(canvas: Canvas, window: Box, affine: Affine) -> None:
    """Add lamps and their halos, in place.

    Args:
        canvas: (H, W, 3) float32 ACEScg over `window`.
        window: what the canvas covers, plate px.
        affine: (2, 3), portrait px to plate px.
    """
    scale = _scale(affine)
    coarse_x, coarse_y = _centres(window, _COARSE)
    halos = np.zeros((coarse_y.shape[0], coarse_x.shape[1], 3), np.float32)
    for lamp in LAMPS:
        start, end = _place(affine, lamp.start), _place(affine, lamp.end)
        far = _distance(coarse_x, coarse_y, start, end) / np.float32(scale * lamp.spread)
        # A core and a wide skirt, as glass and haze give them.
        veil = np.float32(lamp.halo) * (np.exp(-0.5 * far * far) + 0.3 / (1 + far * far) ** 1.5)
        halos += veil[..., None] * np.array(lamp.colour, np.float32)
        _draw(canvas, window, lamp, start, end, scale)
    height, width = halos.shape[0] * _COARSE, halos.shape[1] * _COARSE
    fine = cv2.resize(halos, (width, height), interpolation=cv2.INTER_LINEAR)
    canvas += fine[: window.height, : window.width]


def _draw(
    canvas: Canvas, window: Box, lamp: Lamp, start: NDArray[np.float64], end: NDArray[np.float64], scale: float
) -> None:
    reach = lamp.radius * scale * 1.5 + 2
    low, high = np.minimum(start, end) - reach, np.maximum(start, end) + reach
    area = Box(int(low[0]), int(low[1]), int(high[0]) + 1, int(high[1]) + 1).intersect(window)
    if area.is_empty:
        return
    x, y = _centres(area)
    radius = np.float32(lamp.radius * scale)
    # Edge soft by half the radius: the lamps stand behind the plane of focus.
    cover = np.clip((radius * np.float32(1.3) - _distance(x, y, start, end)) / (radius * np.float32(0.6) + 1), 0, 1)
    cover = (cover * cover * (3 - 2 * cover))[..., None]
    part = area.slices(window)
    canvas[part] = canvas[part] * (1 - cover) + cover * np.array(lamp.colour, np.float32)


_SUN_PATH = np.array([[150.0, 196.0], [180.0, 160.0], [193.0, 118.0], [196.0, 84.0], [222.0, 40.0]])


def sun_position(phase: float) -> tuple[float, float]:
    """Where the sun's reflection lies on the portrait (px) at `phase` 0..1 of the shot: ring, cheek, temple, hair."""
    knots = np.linspace(0.0, 1.0, len(_SUN_PATH))
    return float(np.interp(phase, knots, _SUN_PATH[:, 0])), float(np.interp(phase, knots, _SUN_PATH[:, 1]))


def add_sun(canvas: Canvas, window: Box, affine: Affine, centre: tuple[float, float]) -> None:
    """Multiply the light where the sun's reflection falls, in place: its core lifts skin to 20 and more.

    Args:
        canvas: (H, W, 3) float32 ACEScg over `window`.
        window: what the canvas covers, plate px.
        affine: (2, 3), portrait px to plate px, for the size of the spot.
        centre: plate px of the core.
    """
    scale = _scale(affine)
    reach = 30.0 * scale
    area = Box(
        int(centre[0] - reach), int(centre[1] - reach), int(centre[0] + reach), int(centre[1] + reach)
    ).intersect(window)
    if area.is_empty:
        return
    x, y = _centres(area)
    across = ((x - centre[0]) * 0.9 + (y - centre[1]) * 0.44) / np.float32(scale)
    along = ((y - centre[1]) * 0.9 - (x - centre[0]) * 0.44) / np.float32(scale)
    core = np.exp(-0.5 * ((across / 1.7) ** 2 + (along / 4.5) ** 2))
    skirt = np.exp(-0.5 * ((across / 5.0) ** 2 + (along / 9.0) ** 2))
    gain = (1 + 62.0 * core + 1.3 * skirt)[..., None] * np.array([1.0, 0.97, 0.9], np.float32)
    part = area.slices(window)
    canvas[part] *= np.maximum(gain, 1.0).astype(np.float32)
