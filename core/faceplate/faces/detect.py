"""Finds faces in a whole frame: a detector net on overlapping tiles of an image pyramid.

A tile is a 192 px square of a level, so that nothing is resampled; a level serves faces of 20 to 80 px of its own
(the net finds smaller ones too, but scores them low and places the eyes badly), every second level is searched, and the
last one holds the whole frame. What was found is looked at again, upright and in the middle of a picture of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from ..face import Detection
from .crop import Roi, is_at, roi_from_detection
from .nets import Net, sigmoid, to_input
from .view import Affine, Picture, PlateView

Rotations = Literal["auto", "always", "never"]
Array = NDArray[np.float64]

TILE = 192
_ANCHORS = 48
_STRIDE = 112
_SMALLEST = 20.0
# On a CPU a tile of a larger batch costs more: it leaves the cache.
_BATCH = 4
_FEW_TILES = 16
_EDGE_SLACK = 0.04
_SAME_FACE = 0.3
_SURROUND = 2.0
_NEAR = 0.2
_CANDIDATES = 4
# Deviation of display values below which a tile is sky, leader or letterbox.
_FEATURELESS = 0.003


@dataclass(frozen=True, slots=True)
class DetectSettings:
    """How hard to look.

    Attributes:
        min_face_px: the smallest face to find, its width in unsqueezed px.
        threshold: detector score from which a box counts; the landmark net has the last word.
        max_faces: the best by score times size are kept.
        rotations: turned heads. "always" looks at every tile in four orientations, "never" only upright; "auto" turns
            the coarse tiles, and all of them where nothing was found.
    """

    min_face_px: float = 40.0
    threshold: float = 0.4
    max_faces: int = 20
    rotations: Rotations = "auto"


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """One pyramid level.

    Attributes:
        picture: (h, w, 3), unsqueezed.
        scale: (x, y) plate px a level px.
    """

    picture: Picture
    scale: tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class _Tile:
    """A square picture for the net.

    Attributes:
        picture: (192, 192, 3).
        matrix: (2, 3) from px of the square before it was turned to plate px.
        turn: (2, 3) from px of `picture` to px before the turn.
        inner: edges (left, top, right, bottom), before the turn, behind which the frame goes on.
    """

    picture: Picture
    matrix: Affine
    turn: Affine
    inner: tuple[bool, bool, bool, bool]


_UPRIGHT = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
# np.rot90 takes (x, y) to (y, TILE - x); these undo one, two and three of it.
_TURNS = (
    np.array([[0.0, -1.0, TILE], [1.0, 0.0, 0.0]]),
    np.array([[-1.0, 0.0, TILE], [0.0, -1.0, TILE]]),
    np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, TILE]]),
)


def detect_faces(view: PlateView, net: Net, settings: DetectSettings, known: Sequence[Roi] = ()) -> list[Detection]:
    """All faces of a frame, tiled search.

    Args:
        view: the frame.
        net: the detector.
        settings: how hard to look.
        known: the landmark net's squares of faces that need not be found again.

    Returns:
        The best first (score times size), at most `settings.max_faces`.
    """
    groups = [list(_tiles(level, view.origin)) for level in _levels(view, settings.min_face_px)]
    coarse = [tile for group in groups if len(group) <= _FEW_TILES for tile in group]
    fine = [tile for group in groups if len(group) > _FEW_TILES for tile in group]
    turned = {"always": fine + coarse, "auto": coarse, "never": []}[settings.rotations]
    candidates = _run(fine + coarse + _turned(turned), net, view, settings)
    unknown = _unknown(candidates, known, view.pixel_aspect)
    found = _confirm(view, net, settings, unknown)
    if not found and len(unknown) == len(candidates) and settings.rotations == "auto":
        again = _run(_turned(fine), net, view, settings)
        found = _confirm(view, net, settings, _unknown(again, known, view.pixel_aspect))
    return found


def detect_quick(view: PlateView, net: Net, settings: DetectSettings, known: Sequence[Roi] = ()) -> list[Detection]:
    """Faces of about a twentieth of the frame's longer side or more, upright; one run on the thinned frame.

    Arguments as of `detect_faces`.
    """
    picture = view.overview(TILE)
    level = _Level(picture, (view.width / picture.shape[1], view.height / picture.shape[0]))
    candidates = _run(list(_tiles(level, view.origin)), net, view, settings)
    return _confirm(view, net, settings, _unknown(candidates, known, view.pixel_aspect))


def detect_near(view: PlateView, net: Net, rois: Sequence[Roi], threshold: float) -> list[Detection | None]:
    """Look for one face in the middle of each square (the landmark net's squares, turned upright).

    Returns:
        One a square, in order; None where the detector's score stays below `threshold`.
    """
    tiles = []
    for roi in rois:
        matrix = Roi(roi.u, roi.v, roi.side * _SURROUND, roi.angle).matrix(TILE, view.pixel_aspect)
        tiles.append(_Tile(view.sample(matrix, (TILE, TILE)), matrix, _UPRIGHT, (False,) * 4))
    found: list[Detection | None] = []
    for roi, candidates in zip(rois, _candidates(tiles, net, view.pixel_aspect, threshold), strict=True):
        merged = merge_detections(candidates, view.pixel_aspect)
        reach = _NEAR * roi.side * _SURROUND
        # The nearest, not the best: a neighbour must not take over.
        apart = [np.hypot(seen.centre[0] * view.pixel_aspect - roi.u, seen.centre[1] - roi.v) for seen in merged]
        nearest = int(np.argmin(apart)) if merged else 0
        found.append(merged[nearest] if merged and apart[nearest] < reach else None)
    return found


def _unknown(candidates: Sequence[Detection], known: Sequence[Roi], pixel_aspect: float) -> list[Detection]:
    return [seen for seen in candidates if not any(is_at(roi_from_detection(seen, pixel_aspect), roi) for roi in known)]


def _confirm(view: PlateView, net: Net, settings: DetectSettings, candidates: Sequence[Detection]) -> list[Detection]:
    rois = [roi_from_detection(seen, view.pixel_aspect) for seen in candidates]
    again = [seen for seen in detect_near(view, net, rois, settings.threshold) if seen is not None]
    merged = merge_detections(again, view.pixel_aspect)
    return sorted(merged, key=lambda seen: (-seen.score * seen.size[1], seen.centre))[: settings.max_faces]


def _levels(view: PlateView, min_face_px: float) -> Iterable[_Level]:
    number = max(0, int(np.floor(np.log2(max(min_face_px / _SMALLEST, 1.0)))))
    while True:
        picture = view.reduced(number)
        width = max(1, round(picture.shape[1] * view.pixel_aspect))
        scale = 2**number * picture.shape[1] / width, float(2**number)
        if width != picture.shape[1]:
            wide = cv2.resize(picture, (width, picture.shape[0]), interpolation=cv2.INTER_LINEAR)
            picture = np.asarray(wide, np.float32)
        yield _Level(picture, scale)
        if max(picture.shape[:2]) <= TILE:
            return
        number += 2


def _starts(length: int) -> list[int]:
    """Corners of tiles over `length` px, evenly spread with enough overlap."""
    if length <= TILE:
        return [0]
    count = 1 + -(-(length - TILE) // _STRIDE)
    return [round(index * (length - TILE) / (count - 1)) for index in range(count)]


def _tiles(level: _Level, origin: tuple[int, int]) -> Iterable[_Tile]:
    height, width = level.picture.shape[:2]
    (scale_x, scale_y), (x0, y0) = level.scale, origin
    for top in _starts(height):
        for left in _starts(width):
            part = level.picture[top : top + TILE, left : left + TILE]
            if cv2.meanStdDev(part)[1].max() < _FEATURELESS:
                continue
            square = np.zeros((TILE, TILE, 3), np.float32)
            square[: part.shape[0], : part.shape[1]] = part
            inner = (left > 0, top > 0, left + TILE < width, top + TILE < height)
            matrix = np.array([[scale_x, 0.0, left * scale_x + x0], [0.0, scale_y, top * scale_y + y0]])
            yield _Tile(square, matrix, _UPRIGHT, inner)


def _turned(tiles: Sequence[_Tile]) -> list[_Tile]:
    """Each tile three times: turned by one, two and three quarters."""
    return [
        _Tile(np.rot90(tile.picture, number + 1), tile.matrix, turn, tile.inner)
        for tile in tiles
        for number, turn in enumerate(_TURNS)
    ]


@cache
def _anchors() -> NDArray[np.float32]:
    y, x = np.mgrid[:_ANCHORS, :_ANCHORS]
    return ((np.stack([x, y], -1).reshape(-1, 2) + 0.5) * (TILE / _ANCHORS)).astype(np.float32)


def _run(tiles: Sequence[_Tile], net: Net, view: PlateView, settings: DetectSettings) -> list[Detection]:
    groups = _candidates(tiles, net, view.pixel_aspect, settings.threshold)
    merged = merge_detections([seen for group in groups for seen in group], view.pixel_aspect)
    return sorted(merged, key=lambda seen: (-seen.score, seen.centre))[: _CANDIDATES * settings.max_faces]


def _candidates(tiles: Sequence[_Tile], net: Net, pixel_aspect: float, threshold: float) -> Iterable[list[Detection]]:
    """What the net sees in each tile, in plate px, overlapping boxes not yet merged."""
    for first in range(0, len(tiles), _BATCH):
        batch = tiles[first : first + _BATCH]
        out = net.run({"image": to_input([tile.picture for tile in batch], net.card)})
        scores = sigmoid(out["scores"][..., 0])
        for tile, score, regressors in zip(batch, scores, out["regressors"], strict=True):
            keep = score >= threshold
            points = regressors[keep].reshape(-1, 8, 2).astype(np.float64)
            points[:, 0] += _anchors()[keep]
            points[:, 2:] += _anchors()[keep][:, None]
            seen = [_to_plate(tile, float(s), p, pixel_aspect) for s, p in zip(score[keep], points, strict=True)]
            yield [item for item in seen if item is not None]


def _to_plate(tile: _Tile, score: float, item: Array, pixel_aspect: float) -> Detection | None:
    """A detection in plate px from centre, size and six points; None where an inner edge of the tile cuts the face."""
    centre, size = item[0], item[1]
    corners = np.array([centre - size / 2, centre + size / 2])
    before = np.concatenate([corners, item[:1], item[2:]]) @ tile.turn[:, :2].T + tile.turn[:, 2]
    low, high = before[:2].min(0), before[:2].max(0)
    slack = _EDGE_SLACK * float(size.max())
    cut = np.array([low[0] < slack, low[1] < slack, high[0] > TILE - slack, high[1] > TILE - slack])
    if (cut & tile.inner).any() or size.min() <= 0:
        return None
    plate = before[2:] @ tile.matrix[:, :2].T + tile.matrix[:, 2]
    # One tile px is as long in every direction once x is unsqueezed.
    length = size * np.hypot(tile.matrix[0, 0] * pixel_aspect, tile.matrix[1, 0])
    return _detection(plate[0], length, score, plate[1:], pixel_aspect)


def _detection(centre: Array, size: Array, score: float, keypoints: Array, pixel_aspect: float) -> Detection:
    eyes = (keypoints[1] - keypoints[0]) * (pixel_aspect, 1.0)
    angle = float(np.degrees(np.arctan2(eyes[1], eyes[0])))
    return Detection(
        (float(centre[0]), float(centre[1])),
        (float(size[0]), float(size[1])),
        score,
        keypoints.astype(np.float32),
        angle,
    )


def merge_detections(candidates: Sequence[Detection], pixel_aspect: float) -> list[Detection]:
    """Weighted non-maximum suppression: each group of overlapping boxes becomes its mean, weighted by score.

    The group's score is its best one. Boxes overlap where intersection over union of the upright squares exceeds 0.3.
    """
    left = sorted(candidates, key=lambda seen: (-seen.score, seen.centre))
    merged = []
    while left:
        best = left[0]
        group = [seen for seen in left if seen is best or overlap(best, seen, pixel_aspect) > _SAME_FACE]
        left = [seen for seen in left if not any(seen is other for other in group)]
        weights = np.array([seen.score for seen in group])
        weights /= weights.sum()
        centre = weights @ np.array([seen.centre for seen in group])
        size = weights @ np.array([seen.size for seen in group])
        keypoints = np.tensordot(weights, np.stack([seen.keypoints for seen in group]), 1)
        merged.append(_detection(centre, size, best.score, keypoints, pixel_aspect))
    return merged


def overlap(a: Detection, b: Detection, pixel_aspect: float) -> float:
    """Intersection over union of two detections as upright squares of unsqueezed px."""
    distance = np.abs(np.subtract(a.centre, b.centre)) * (pixel_aspect, 1.0)
    common = np.clip((a.size[1] + b.size[1]) / 2 - distance, 0.0, min(a.size[1], b.size[1])).prod()
    return float(common / max(a.size[1] ** 2 + b.size[1] ** 2 - common, 1e-9))
