"""What of a photo is this person's skin, brow, eye or lip: the rest must not land on anybody's forehead."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from ...face import Points
from ...faces import rectify, topology
from ...faces.zones import ZONE_SIZE, zones
from .pictures import Image, Mask, looked_up, resized, softened

_WORK_FACE = 256.0
"""Face width at which the photo is segmented, px."""
_FAR_FROM_SKIN = 5.0
"""Standard deviations of the cheeks' colour beyond which a pixel outside the face is surely no skin."""
_LEAST_BACKGROUND = 200
_ROUNDS = 4
_HOLE_SHARE = 0.02
_HAIR_REACH, _AS_HAIR = 18, 4.0
_STRAND, _RIM = (0.7, 1.2), (1.3, 2.0)
"""Stops by which something thin is darker than what lies around it: between them a strand of hair on the forehead
rises, and a rim of glasses in the middle of the face, where folds are dark too."""
_SHADE = (0.06, 0.11)
"""Distance from hair over the forehead, fraction of the face width, at which skin begins to count and counts in full:
what lies closer carries the hair's shadow and edge, which belong to that hairstyle and not to the skin."""


def skin_mask(picture: Image, landmarks: Points, matte: Mask | None = None) -> Mask:
    """Soft mask of the photo's usable face.

    Colours of cheeks and nose say what skin is, what surely is not skin around the face says what hair, background and
    clothes are; a graph cut (GrabCut, Rother, Kolmogorov and Blake 2004) draws the line. Thin dark things outside brows
    and eyes (strands, rims of glasses) are taken out on top. Brows, eyes, lips and nostrils count as skin; so does what
    the cut keeps of a beard.

    Args:
        picture: (h, w, 3) linear Rec.709 float32.
        landmarks: (478, 3) px.
        matte: (h, w) person matte 0..1, or None.

    Returns:
        (h, w) float32 0..1.
    """
    scale = _WORK_FACE / max(float(np.ptp(landmarks[: topology.FACE_POINTS, 0])), 1.0)
    low, high = _bounds(picture.shape[:2], landmarks)
    part = picture[low[1] : high[1], low[0] : high[0]]
    width, height = max(8, round(part.shape[1] * scale)), max(8, round(part.shape[0] * scale))
    small = np.maximum(resized(part, width, height, cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC), np.float32(0))
    size = (width, height)
    points = (landmarks[: topology.FACE_POINTS, :2] - low) * (np.array(size) / (high - low))
    parts = {name: _project(getattr(zones(), name), points, size) for name in ("own", "cheeks", "exposed", "sockets")}
    parts["face"] = _project(np.ones((ZONE_SIZE, ZONE_SIZE), np.float32), points, size)
    person = None if matte is None else resized(matte[low[1] : high[1], low[0] : high[0]], width, height)
    distance = _distance(_features(small), parts["cheeks"])
    mask = _cut(small, distance, parts, person)
    mask *= 1.0 - _thin_dark(small, parts["exposed"]) * np.maximum(parts["exposed"], parts["sockets"])
    reach = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (7, 7))
    mask[:] = cv2.erode(mask, reach)
    patch = _patches(mask, parts)
    mask *= 1.0 - _under_hair(patch) * parts["exposed"] * parts["sockets"]
    mask = np.maximum(mask, parts["own"] * (parts["face"] > 0.5) * ~_overgrown(patch, distance))
    if person is not None:
        mask = mask * np.clip(person * 2.0, 0.0, 1.0)
    mask = softened(mask, 2.0)
    result = np.zeros(picture.shape[:2], np.float32)
    result[low[1] : high[1], low[0] : high[0]] = resized(mask, part.shape[1], part.shape[0])
    return np.clip(result, 0.0, 1.0)


def _bounds(shape: tuple[int, ...], landmarks: Points) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    points = landmarks[: topology.FACE_POINTS, :2]
    margin = 0.35 * float(np.ptp(points, axis=0).max())
    low = np.maximum(np.floor(points.min(0) - margin), 0).astype(np.intp)
    high = np.minimum(np.ceil(points.max(0) + margin), [shape[1], shape[0]]).astype(np.intp)
    return low, np.maximum(high, low + 1)


def _project(zone: Mask, points: NDArray[np.floating], size: tuple[int, int]) -> Mask:
    """A UV zone drawn into the photo: (height, width)."""
    width, height = size
    uv = np.zeros((height, width, 2), np.float32)
    inside = np.zeros((height, width), np.uint8)
    for triangle in topology.triangles():
        corners = points[triangle].astype(np.float32)
        x, y, w, h = cv2.boundingRect(corners)
        x0, y0, x1, y1 = max(x, 0), max(y, 0), min(x + w + 1, width), min(y + h + 1, height)
        if x1 <= x0 or y1 <= y0:
            continue
        patch = np.zeros((y1 - y0, x1 - x0), np.uint8)
        cv2.fillConvexPoly(patch, np.round((corners - 0.5 - [x0, y0]) * 16).astype(np.int32), 1, shift=4)
        to_uv = cv2.getAffineTransform(corners, topology.uv()[triangle])
        gy, gx = np.mgrid[y0:y1, x0:x1] + 0.5
        at = np.stack([gx, gy, np.ones_like(gx)], -1) @ to_uv.T
        uv[y0:y1, x0:x1][patch > 0] = at[patch > 0]
        inside[y0:y1, x0:x1] |= patch
    return looked_up(zone, uv * ZONE_SIZE) * inside


def _features(picture: Image) -> Image:
    """(h, w, 3) lightness, red-green and blue-green in stops; lightness counts less, because it follows the light."""
    stops = np.log2(softened(picture, 1.5) + np.float32(0.004))
    return np.stack(
        [stops.mean(2) * 0.6, (stops[..., 0] - stops[..., 1]) * 2.0, (stops[..., 2] - stops[..., 1]) * 1.0], -1
    ).astype(np.float32)


def _distance(features: Image, cheeks: Mask) -> Image:
    """Mahalanobis distance of each pixel to the colour of the cheeks, which is fitted robustly."""
    samples = features[cheeks > 0.5]
    if len(samples) < 16:
        return np.zeros(features.shape[:2], np.float32)
    centre = np.median(samples, 0)
    apart = np.abs(samples - centre).sum(1)
    covariance = np.cov(samples[apart <= np.percentile(apart, 85)].T) + np.diag([0.04, 0.012, 0.02])
    difference = features - centre
    squared = np.einsum("hwi,ij,hwj->hw", difference, np.linalg.inv(covariance), difference)
    return np.asarray(np.sqrt(np.maximum(squared, 0.0)), np.float32)


def _cut(small: Image, distance: Image, parts: dict[str, Mask], person: Mask | None) -> Image:
    face, protected = parts["face"] > 0.5, parts["own"] > 0.3
    labels = np.full(face.shape, cv2.GC_PR_BGD, np.uint8)
    labels[face & (distance < _FAR_FROM_SKIN)] = cv2.GC_PR_FGD
    labels[(parts["cheeks"] > 0.5) & (distance < 3.0)] = cv2.GC_FGD
    # a band around the oval is undecided: forehead, ears and neck are skin too
    outside = cv2.dilate(face.astype(np.uint8), np.ones((9, 9), np.uint8)) == 0
    background = outside & (distance > _FAR_FROM_SKIN)
    if person is not None:
        background |= person < 0.05
    labels[background & ~protected] = cv2.GC_BGD
    if (labels == cv2.GC_BGD).sum() < _LEAST_BACKGROUND or (labels == cv2.GC_FGD).sum() < _LEAST_BACKGROUND // 4:
        # nothing around the face differs from skin (or no cheek is in sight): colour distance has to do
        return np.asarray(face * np.clip((_FAR_FROM_SKIN + 1.0 - distance) / 2.0, 0.0, 1.0), np.float32)
    # dark brows and lips would teach the skin model the colour of hair: they are cut by zone, not by colour
    skin_only = small.copy()
    mean_skin = np.median(small[(parts["cheeks"] > 0.5)], 0)
    skin_only[protected] = mean_skin
    coded = _eight_bit(_features(skin_only))
    cv2.setRNGSeed(0)
    cv2.grabCut(coded, labels, (0, 0, 1, 1), np.zeros((1, 65)), np.zeros((1, 65)), _ROUNDS, cv2.GC_INIT_WITH_MASK)
    kept = (labels == cv2.GC_FGD) | (labels == cv2.GC_PR_FGD)
    return np.asarray(_without_holes(kept & face, parts), np.float32)


def _without_holes(kept: NDArray[np.bool_], parts: dict[str, Mask]) -> NDArray[np.bool_]:
    """Close small islands inside the face (folds, moles): what is in front of a face comes in from its edge."""
    inner = (parts["face"] > 0.5) & (parts["exposed"] < 0.2)
    count, names, stats, _ = cv2.connectedComponentsWithStats((~kept).astype(np.uint8), connectivity=4)
    limit = _HOLE_SHARE * float((parts["face"] > 0.5).sum())
    for name in range(1, count):
        island = names == name
        if stats[name, cv2.CC_STAT_AREA] < limit and inner[island].all():
            kept |= island
    return kept


def _patches(mask: Mask, parts: dict[str, Mask]) -> NDArray[np.bool_]:
    """The large patches of the face that are no skin, brows, eyes, lips and nostrils apart."""
    gone = (parts["face"] > 0.5) & (mask < 0.5) & (parts["own"] < 0.5)
    count, names, stats, _ = cv2.connectedComponentsWithStats(gone.astype(np.uint8), connectivity=4)
    limit = _HOLE_SHARE * float((parts["face"] > 0.5).sum())
    return np.isin(names, [name for name in range(1, count) if stats[name, cv2.CC_STAT_AREA] > limit])


def _under_hair(patch: NDArray[np.bool_]) -> Mask:
    """1 on and next to what is no skin, falling to 0 over _SHADE."""
    if not patch.any():
        return np.zeros(patch.shape, np.float32)
    apart = cv2.distanceTransform((~patch).astype(np.uint8), cv2.DIST_L2, 5) / _WORK_FACE
    return np.asarray(1.0 - np.clip((apart - _SHADE[0]) / (_SHADE[1] - _SHADE[0]), 0.0, 1.0), np.float32)


def _overgrown(patch: NDArray[np.bool_], distance: Image) -> NDArray[np.bool_]:
    """Where hair runs on over a brow or an eye: what is as foreign to skin as hair is, joined to a large patch of it,
    and no farther from it than _HAIR_REACH. A brow with skin between itself and the fringe stays whole.
    """
    # the erosion of the mask left a seam between patch and zone: one wider step over it, then only through hair
    foreign = distance > _AS_HAIR
    patch = patch | (_grown(patch, 4) & foreign)
    for _ in range(_HAIR_REACH):
        patch |= _grown(patch, 1) & foreign
    return _grown(patch, 2)


def _grown(mask: NDArray[np.bool_], reach: int) -> NDArray[np.bool_]:
    square = np.ones((2 * reach + 1, 2 * reach + 1), np.uint8)
    return np.asarray(cv2.dilate(mask.astype(np.uint8), square) > 0)


def _eight_bit(features: Image) -> NDArray[np.uint8]:
    low, high = np.percentile(features.reshape(-1, 3), [1, 99], axis=0)
    # one scale for all, so that the weights of `_features` survive
    scale = 255.0 / max(float((high - low).max()), 1e-3)
    return np.asarray(np.clip((features - low) * scale, 0, 255), np.uint8)


def _thin_dark(small: Image, exposed: Mask) -> Mask:
    """Thin and darker than around: morphological closing against the picture, in stops."""
    stops = np.log2(small.mean(2) + 0.004).astype(np.float32)
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (13, 13))
    depth = cv2.morphologyEx(stops, cv2.MORPH_CLOSE, kernel) - stops
    low, high = (rim + (strand - rim) * exposed for strand, rim in zip(_STRAND, _RIM, strict=True))
    found = np.clip((depth - low) / (high - low), 0.0, 1.0)
    return np.asarray(cv2.dilate(found.astype(np.float32), np.ones((3, 3), np.uint8)), np.float32)


def in_uv(mask: Mask, landmarks: Points, size: int) -> Mask:
    """A photo's mask rectified to (size, size), 0 outside the face."""
    return np.clip(rectify.rectify(mask, landmarks, size), 0.0, 1.0) * rectify.coverage(size)
