"""What time and hair do to the fictional person: brows, stubble, lines, pores, spots; painted as layers of coverage.

Layers are (H, W) float32, made in photo px from the person's own landmarks; every random choice comes from the seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from .portrait import Points

Layer = NDArray[np.float32]

OVAL: tuple[int, ...] = (10, 338, 297, 332, 284, 251, 389, 356, 454, 323, 361, 288, 397, 365, 379, 378, 400, 377)
OVAL += (152, 148, 176, 149, 150, 136, 172, 58, 132, 93, 234, 127, 162, 21, 54, 103, 67, 109)
LIPS = (61, 185, 40, 39, 37, 0, 267, 269, 270, 409, 291, 375, 321, 405, 314, 17, 84, 181, 91, 146)
LIP_LINE = (61, 78, 191, 80, 81, 82, 13, 312, 311, 310, 415, 308, 291)
INNER_LIPS = (78, 191, 80, 81, 82, 13, 312, 311, 310, 415, 308, 324, 318, 402, 317, 14, 87, 178, 88, 95)
RIGHT_EYE = (33, 246, 161, 160, 159, 158, 157, 173, 133, 155, 154, 153, 145, 144, 163, 7)
LEFT_EYE = (263, 466, 388, 387, 386, 385, 384, 398, 362, 382, 381, 380, 374, 373, 390, 249)
_BROWS = (((70, 63, 105, 66, 107), (46, 53, 52, 65, 55)), ((300, 293, 334, 296, 336), (276, 283, 282, 295, 285)))
_SHIFT = 4


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """What the layers are painted on.

    Attributes:
        height: px.
        width: px.
        unit: photo px to a portrait px.
        points: (478, 2) landmarks in photo px.
    """

    height: int
    width: int
    unit: float
    points: Points

    def blank(self) -> Layer:
        """A layer of zeros."""
        return np.zeros((self.height, self.width), np.float32)

    def grid(self) -> tuple[Layer, Layer]:
        """x as a row and y as a column of pixel centres."""
        x = np.arange(self.width, dtype=np.float32)[None] + np.float32(0.5)
        return x, np.arange(self.height, dtype=np.float32)[:, None] + np.float32(0.5)


def blur(layer: Layer, sigma: float) -> Layer:
    """Gaussian of deviation `sigma` px."""
    return np.asarray(cv2.GaussianBlur(layer, (0, 0), sigma), np.float32)


def _unit(mask: NDArray[np.uint8]) -> Layer:
    return np.asarray(mask, np.float32) / np.float32(255)


def _fixed(points: NDArray[np.floating]) -> NDArray[np.int32]:
    return np.rint((np.asarray(points) - 0.5) * (1 << _SHIFT)).astype(np.int32)


def inside_distance(sheet: Sheet, points: NDArray[np.floating]) -> Layer:
    """Signed distance to a polygon, px, positive inside."""
    mask = np.zeros((sheet.height, sheet.width), np.uint8)
    cv2.fillPoly(mask, [_fixed(points)], 255, cv2.LINE_8, _SHIFT)
    within, without = (cv2.distanceTransform(part, cv2.DIST_L2, 5) for part in (mask, 255 - mask))
    return np.asarray(within - without, np.float32)


def polygon(sheet: Sheet, points: NDArray[np.floating], soft: float) -> Layer:
    """Filled polygon, its edge softened by `soft` px."""
    mask = np.zeros((sheet.height, sheet.width), np.uint8)
    cv2.fillPoly(mask, [_fixed(points)], 255, cv2.LINE_AA, _SHIFT)
    return blur(_unit(mask), soft)


def landmark_polygon(sheet: Sheet, indices: Sequence[int], soft: float, grow: float = 1.0) -> Layer:
    """Polygon through landmarks, grown about its middle by a factor."""
    points = sheet.points[list(indices)]
    middle = points.mean(0)
    return polygon(sheet, middle + (points - middle) * grow, soft)


def strokes(
    sheet: Sheet, starts: NDArray[np.floating], ways: NDArray[np.floating], alphas: NDArray[np.floating]
) -> Layer:
    """Short hairs as antialiased lines; where they cross, the darkest counts.

    Args:
        sheet: to paint on.
        starts: (N, 2) px.
        ways: (N, 2) px.
        alphas: (N,) 0..1.
    """
    layer = np.zeros((sheet.height, sheet.width), np.uint8)
    order = np.argsort(alphas, kind="stable")
    for start, end, alpha in zip(_fixed(starts[order]), _fixed((starts + ways)[order]), alphas[order], strict=True):
        cv2.line(layer, start.tolist(), end.tolist(), int(255 * alpha), 1, cv2.LINE_AA, _SHIFT)
    return _unit(layer)


def curve(points: NDArray[np.floating], count: int = 40) -> NDArray[np.float64]:
    """A smooth line through points (N, 2): a cubic in N >= 4, else the lower power that fits."""
    steps = np.linspace(0.0, 1.0, len(points))
    degree = min(3, len(points) - 1)
    fine = np.linspace(0.0, 1.0, count)
    return np.stack([np.polyval(np.polyfit(steps, points[:, axis], degree), fine) for axis in (0, 1)], -1)


def groove(sheet: Sheet, points: NDArray[np.floating], width: float, depth: float) -> Layer:
    """A crease in the skin: darkness along a line that fades to its ends, minus the light on its lower lip.

    Args:
        sheet: to paint on.
        points: (N, 2) px along the crease.
        width: deviation of its profile, px.
        depth: peak of the layer.
    """
    line = curve(points)
    fade = np.sin(np.linspace(0.12, np.pi - 0.12, len(line) - 1))
    dark = np.zeros((sheet.height, sheet.width), np.uint8)
    for start, end, strength in zip(_fixed(line[:-1]), _fixed(line[1:]), fade, strict=True):
        cv2.line(dark, start.tolist(), end.tolist(), int(255 * strength), 2, cv2.LINE_AA, _SHIFT)
    soft = blur(_unit(dark), width)
    soft *= np.float32(depth / max(float(soft.max()), 1e-6))
    lit = np.roll(blur(soft, width), round(2.2 * width), 0)
    return np.asarray(soft - 0.55 * lit, np.float32)


def brow_hairs(sheet: Sheet, random: np.random.Generator) -> tuple[Layer, Layer]:
    """Two layers: the shadow under thick brows, and their hairs."""
    shadow, starts, ways, alphas = sheet.blank(), [], [], []
    for side, (top, bottom) in enumerate(_BROWS):
        upper, lower = curve(sheet.points[list(top)], 60), curve(sheet.points[list(bottom)], 60)
        upper, lower = upper + np.array([0.0, 1.2]) * sheet.unit, lower + np.array([0.0, 0.3]) * sheet.unit
        outline = np.vstack([upper, lower[::-1]])
        shadow = np.maximum(shadow, polygon(sheet, outline, 1.1 * sheet.unit))
        along, across = random.uniform(0, 1, 900), random.beta(1.6, 1.6, 900)
        index = np.minimum((along * 59).astype(int), 58)
        at = upper[index] * (1 - across[:, None]) + lower[index] * across[:, None]
        # Listed from the temple inwards: hairs rise near the nose and lie down towards the temple.
        outward = -1.0 if side == 0 else 1.0
        angle = np.radians(18 + 52 * along**1.5 + random.normal(0, 12, 900))
        length = sheet.unit * random.uniform(1.6, 3.6, 900)
        starts.append(at)
        ways.append(np.stack([outward * np.cos(angle), -np.sin(angle)], -1) * length[:, None])
        taper = np.clip(np.minimum(along, 1 - along) * 7, 0.25, 1)
        alphas.append(random.uniform(0.35, 0.8, 900) * taper)
    return shadow, strokes(sheet, np.vstack(starts), np.vstack(ways), np.concatenate(alphas))


def beard_density(sheet: Sheet) -> Layer:
    """Where stubble grows, 0..1: jaw, chin, upper lip, the upper neck; not on lips or cheekbones."""
    points = sheet.points
    cheek_line = points[[234, 132, 58, 214, 207, 206, 165, 167, 164, 393, 391, 426, 427, 434, 288, 361, 454]]
    low = points[[323, 361, 288, 397, 365, 379, 378, 400, 377, 152, 148, 176, 149, 150, 136, 172, 58, 132, 93]]
    grown = low + [0.0, 7.0 * sheet.unit] * (np.hypot(*(low - points[1]).T) > 30 * sheet.unit)[:, None]
    area = polygon(sheet, np.vstack([cheek_line, grown]), 2.6 * sheet.unit)
    lips = landmark_polygon(sheet, LIPS, 0.7 * sheet.unit, 1.06)
    centre = points[152] * [1.0, 1.0] + [0.0, -8.0 * sheet.unit]
    x, y = sheet.grid()
    chin = np.exp(-0.5 * (((x - centre[0]) / (17 * sheet.unit)) ** 2 + ((y - centre[1]) / (13 * sheet.unit)) ** 2))
    middle = points[164]
    lip = np.exp(-0.5 * (((x - middle[0]) / (17 * sheet.unit)) ** 2 + ((y - middle[1]) / (4.5 * sheet.unit)) ** 2))
    return np.asarray(np.clip(area * (0.62 + 0.35 * chin + 0.4 * lip), 0, 1) * (1 - lips), np.float32)


def stubble(sheet: Sheet, density: Layer, count: int, random: np.random.Generator) -> Layer:
    """Thousands of short hairs that follow the jaw."""
    x, y = random.uniform(0, sheet.width - 1, 8 * count), random.uniform(0, sheet.height - 1, 8 * count)
    keep = np.flatnonzero(random.uniform(0, 1, 8 * count) < density[y.astype(int), x.astype(int)])[:count]
    at = np.stack([x[keep], y[keep]], -1)
    middle = sheet.points[1]
    outward = np.clip((at[:, 0] - middle[0]) / (45 * sheet.unit), -1, 1)
    angle = np.radians(90 - 38 * outward + random.normal(0, 20, len(at)))
    length = sheet.unit * random.uniform(0.35, 1.1, len(at))
    ways = np.stack([np.cos(angle), np.sin(angle)], -1) * length[:, None]
    return strokes(sheet, at, ways, random.uniform(0.12, 0.62, len(at)))


def age_lines(sheet: Sheet, random: np.random.Generator) -> Layer:
    """Creases: forehead, between the brows, crow's feet, bags under the eyes, nose to mouth, mouth to chin."""
    unit, points, total = sheet.unit, sheet.points.astype(np.float64), sheet.blank()
    for level, depth in ((0.30, 0.32), (0.54, 0.36)):
        left, middle, right = (
            points[a] * (1 - level) + points[b] * level for a, b in ((105, 103), (9, 10), (334, 332))
        )
        line = np.array(
            [left, (left + middle) / 2 + [0, -0.8 * unit], middle, (right + middle) / 2 + [0, -0.8 * unit], right]
        )
        total += groove(sheet, line + random.normal(0, 0.5 * unit, line.shape), 0.55 * unit, depth)
    for inner, sign in ((55, 1.0), (285, -1.0)):
        top = points[inner] + [sign * 3.5 * unit, -5.5 * unit]
        total += groove(sheet, top + np.array([[0.0, 0.0], [sign * 0.5, 5.0], [0.0, 9.0]]) * unit, 0.6 * unit, 0.4)
    for corner, sign in ((33, -1.0), (263, 1.0)):
        for tilt in (-0.5, 0.05, 0.55):
            start = points[corner] + [sign * 3 * unit, (1.5 * tilt + 0.5) * unit]
            way = np.array([sign * np.cos(tilt), np.sin(tilt)]) * 8.5 * unit
            total += groove(
                sheet, np.array([start, start + way * 0.5 + [0, 0.5 * unit], start + way]), 0.42 * unit, 0.3
            )
    for eye in ((33, 145, 133), (263, 374, 362)):
        bag = points[list(eye)] + np.array([[0.0, 3.5], [0.0, 6.8], [0.0, 5.0]]) * unit
        total += groove(sheet, bag, 0.9 * unit, 0.36)
    for wing, cheek, corner in ((129, 206, 61), (358, 426, 291)):
        fold = np.array([points[wing], points[cheek], points[corner] + (points[corner] - points[14]) * 0.16])
        total += groove(sheet, fold, 0.95 * unit, 0.42)
    for corner, sign in ((61, -1.0), (291, 1.0)):
        start = points[corner] + [sign * 1.5 * unit, 1.5 * unit]
        total += groove(
            sheet,
            start + np.array([[0.0, 0.0], [sign * 1.8, 5.0], [sign * 0.8, 10.0]]) * unit,
            0.8 * unit,
            0.34,
        )
    return total


def spots(sheet: Sheet, count: int, random: np.random.Generator) -> Layer:
    """Freckles and sun spots, and one mole on the left cheek, as absorption."""
    total, low, high = sheet.blank(), sheet.points[list(OVAL)].min(0), sheet.points[list(OVAL)].max(0)
    x, y = sheet.grid()
    where = random.uniform(low, high, (count, 2))
    size, depth = sheet.unit * random.uniform(0.25, 0.75, count), random.uniform(0.05, 0.22, count)
    where = np.vstack([where, sheet.points[425] + [2 * sheet.unit, 3 * sheet.unit]])
    for (cx, cy), radius, dark in zip(where, [*size, 1.05 * sheet.unit], [*depth, 1.1], strict=True):
        reach = int(4 * radius) + 2
        rows = slice(max(0, int(cy) - reach), int(cy) + reach)
        columns = slice(max(0, int(cx) - reach), int(cx) + reach)
        square = (x[:, columns] - cx) ** 2 + (y[rows] - cy) ** 2
        total[rows, columns] += np.float32(dark) * np.exp(-0.5 * square / np.float32(radius**2))
    return total
