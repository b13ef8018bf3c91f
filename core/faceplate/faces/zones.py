"""Where eyes, lips, brows, forehead and so on lie in canonical UV: soft masks drawn once from the topology."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache

import cv2
import numpy as np
from numpy.typing import NDArray

from . import topology

Mask = NDArray[np.float32]

ZONE_SIZE = 256
"""Texels a side of every zone."""

_FOREHEAD = (
    *(21, 54, 103, 67, 109, 10, 338, 297, 332, 284, 251),
    *(300, 293, 334, 296, 336, 9, 107, 66, 105, 63, 70),
)


@dataclass(frozen=True, slots=True, eq=False)
class Zones:
    """Soft masks (ZONE_SIZE, ZONE_SIZE) float32 0..1 in canonical UV, v down.

    Attributes:
        eyes: between the lids.
        mouth: inside the lips.
        lips: the lips with a wide margin (where a beard ends) and what is inside them.
        features: brows, eyes, lips, nostrils with a margin: what is no bare skin on anybody.
        own: brows, eyes, lips, nostrils without a margin: on the person whatever their colour.
        cheeks: bare skin in nearly every picture.
        exposed: forehead and outer band, where hair and hands come in and no expression folds.
        sockets: around the eyes down to the cheeks, where the rims of glasses lie.
    """

    eyes: Mask
    mouth: Mask
    lips: Mask
    features: Mask
    own: Mask
    cheeks: Mask
    exposed: Mask
    sockets: Mask


def _polygons(*groups: tuple[int, ...], grow: float = 0.0, soft: float = 0.0, hull: bool = False) -> Mask:
    mask = np.zeros((ZONE_SIZE, ZONE_SIZE), np.float32)
    for group in groups:
        points = topology.uv()[list(group)] * ZONE_SIZE - 0.5
        if hull:
            points = np.asarray(cv2.convexHull(points), np.float32)[:, 0]
        cv2.fillPoly(mask, [np.round(points * 16).astype(np.int32)], (1.0,), cv2.LINE_AA, 4)
    mask = np.clip(mask / max(float(mask.max()), 1e-6), 0.0, 1.0)
    if grow > 0:
        reach = 2 * round(grow * ZONE_SIZE) + 1
        mask[:] = cv2.dilate(mask, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (reach, reach)))
    if soft > 0:
        mask[:] = cv2.GaussianBlur(mask, (0, 0), soft * ZONE_SIZE)
    return np.asarray(mask, np.float32)


@cache
def zones() -> Zones:
    """The masks; the same arrays each time, read-only."""
    t = topology
    v, u = (np.mgrid[0:ZONE_SIZE, 0:ZONE_SIZE].astype(np.float32) + 0.5) / ZONE_SIZE
    radius = np.hypot(u - 0.5, v - 0.5)
    band = np.clip((radius - 0.36) / 0.06, 0.0, 1.0) * np.clip((0.80 - v) / 0.15, 0.25, 1.0)
    features = np.maximum(
        _polygons(t.RIGHT_BROW, t.LEFT_BROW, hull=True, grow=0.022, soft=0.010),
        _polygons(t.RIGHT_EYE, t.LEFT_EYE, t.OUTER_LIPS, t.NOSTRILS, hull=True, grow=0.020, soft=0.010),
    )
    cheeks = _polygons(
        (50, 101, 118, 117, 205, 36, 187), (280, 330, 347, 346, 425, 266, 411), hull=True, grow=0.02, soft=0.01
    )
    bridge = _polygons((6, 197, 195, 5, 45, 275, 3, 248), hull=True, grow=0.01, soft=0.01)
    made = Zones(
        eyes=_polygons(t.RIGHT_EYE, t.LEFT_EYE, grow=0.004, soft=0.006),
        mouth=_polygons(t.INNER_LIPS, grow=0.004, soft=0.006),
        lips=_polygons(t.OUTER_LIPS, hull=True, grow=0.050, soft=0.020),
        features=features,
        own=np.maximum(
            _polygons(t.RIGHT_BROW, t.LEFT_BROW, hull=True, grow=0.012, soft=0.004),
            _polygons(t.RIGHT_EYE, t.LEFT_EYE, t.OUTER_LIPS, t.NOSTRILS, hull=True, grow=0.020, soft=0.008),
        ),
        cheeks=np.maximum(cheeks, bridge) * (1 - features),
        exposed=np.maximum(_polygons(_FOREHEAD, soft=0.012), band).astype(np.float32) * (1 - features),
        sockets=np.clip((0.50 - v) / 0.05, 0.0, 1.0).astype(np.float32),
    )
    for field in fields(made):
        getattr(made, field.name).flags.writeable = False
    return made


@cache
def zone_at(name: str, size: int) -> Mask:
    """One of the masks averaged to (size, size), read-only."""
    small = np.asarray(cv2.resize(getattr(zones(), name), (size, size), interpolation=cv2.INTER_AREA), np.float32)
    small.flags.writeable = False
    return small
