"""An identity's texture on the device, as levels that are already filtered for smaller and smaller faces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import cv2
import numpy as np
import torch

from ...errors import IdentityError
from ...face import Identity, Points
from ...faces import rectify, topology
from ...faces.zones import ZONE_SIZE, zones
from .fields import sample
from .pictures import Image, Mask, resized, softened

ZONE_ORDER = ("eyes", "mouth", "lips", "features")
_SMALLEST = 32
_UPPER_LIP, _LOWER_LIP = (82, 13, 312), (87, 14, 317)
"""Points of the inner lips that meet where the mouth is closed."""
_CLOSED, _OPEN = 0.015, 0.035
"""Distance between them, face widths."""
_AN_OCTAVE = 2
"""Levels from a face width to half of it."""
_ALONE = 0.35
"""Part of the way to the next level within which a level does alone: to look up one costs half of what two do."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """What `MeshEngine.prepare` makes of an identity.

    Attributes:
        levels: level k (3, S_k, S_k) float32 linear light, filtered for a face of `widths[k]` px.
        widths: face width in px that each level is filtered for, falling by steps of half an octave.
        masks: (5, ZONE_SIZE, ZONE_SIZE) float32: the zones in ZONE_ORDER, then the texture's coverage.
        shape: (468, 3) float32.
        detail_px: width of the face in the photos.
        mouth: 0..1, how far the photos show what is between the lips; 0 where they are closed.
    """

    levels: tuple[torch.Tensor, ...]
    widths: tuple[float, ...]
    masks: torch.Tensor
    shape: Points
    detail_px: float
    mouth: float

    def skin(self, grid: torch.Tensor, face_px: float, out: torch.Tensor) -> None:
        """The texture at a `fields.uv_grid`, filtered for a face that many px wide, into (3, h, w) `out`."""
        down = _AN_OCTAVE * np.log2(self.widths[0] / max(face_px, 1e-3))
        level = float(np.clip(down, 0.0, len(self.levels) - 1))
        index = int(level)
        share = min(max((level - index - _ALONE) / (1.0 - 2.0 * _ALONE), 0.0), 1.0)
        if share in (0.0, 1.0):
            out.copy_(sample(self.levels[index + int(share)], grid))
        else:
            torch.lerp(sample(self.levels[index], grid), sample(self.levels[index + 1], grid), share, out=out)


def prepare(identity: Identity, device: torch.device) -> Prepared:
    """Filter and upload. See `Prepared`.

    Raises:
        IdentityError: the texture is not square, too small or not finite.
    """
    colour = np.asarray(identity.texture.colour, np.float32)
    size = colour.shape[0]
    if colour.shape != (size, size, 3) or size < _SMALLEST or identity.texture.coverage.shape != (size, size):
        raise IdentityError(
            f"identity {identity.name!r} has a face texture of the wrong form",
            expected=f"square RGB of at least {_SMALLEST} texels and a coverage of the same size",
            found=f"{colour.shape} and {identity.texture.coverage.shape}",
            hint="make the identity again from its photos",
        )
    if not (np.isfinite(colour).all() and np.isfinite(identity.texture.coverage).all()):
        raise IdentityError(
            f"the face texture of identity {identity.name!r} holds values that are no numbers",
            hint="make the identity again from its photos",
        )
    widths, pictures = [size / 2.0], [colour]
    while widths[-1] >= _SMALLEST / 2:
        widths.append(widths[-1] * 2 ** (-1 / _AN_OCTAVE))
        pictures.append(_for_width(colour, widths[-1]))
    coverage = resized(np.asarray(identity.texture.coverage, np.float32), ZONE_SIZE, ZONE_SIZE, cv2.INTER_AREA)
    masks = np.stack([*(getattr(zones(), name) for name in ZONE_ORDER), coverage])
    return Prepared(
        levels=tuple(_upload(picture, device) for picture in pictures),
        widths=tuple(widths),
        masks=torch.from_numpy(masks).to(device),
        shape=identity.shape,
        detail_px=identity.texture.detail_px,
        mouth=_openness(identity.shape),
    )


def _openness(shape: Points) -> float:
    apart = float(np.linalg.norm(shape[list(_UPPER_LIP)] - shape[list(_LOWER_LIP)], axis=1).mean())
    share = (apart / max(float(np.ptp(shape[:, 0])), 1e-6) - _CLOSED) / (_OPEN - _CLOSED)
    return min(max(share, 0.0), 1.0)


def _upload(picture: Image, device: torch.device) -> torch.Tensor:
    # a texel's channels stay side by side in memory: one place to read instead of three
    return torch.from_numpy(np.ascontiguousarray(picture)).to(device).permute(2, 0, 1)


def _for_width(colour: Image, width: float) -> Image:
    """The texture with every detail removed that a face `width` px wide cannot show. The blur follows the stretch of
    the UV map. Its strength is what comes closest to area-filtering a picture four times as large.
    """
    size = min(colour.shape[0], max(_SMALLEST, round(3 * width)))
    small = resized(colour, size, size, cv2.INTER_AREA)
    texels_a_pixel = resized(stretch(), size, size) * (size / width)
    sigma = np.sqrt(np.maximum((0.25 * texels_a_pixel) ** 2 - 0.25, 0.0))
    steps = (0.0, 0.7, 1.4, 2.8)
    stack = [small, *(softened(small, s) for s in steps[1:])]
    result = np.zeros_like(small)
    for index, picture in enumerate(stack):
        # linear in sigma between neighbouring blurs
        result += picture * np.interp(sigma, steps, np.eye(len(steps))[index])[..., None].astype(np.float32)
    return result


@cache
def stretch() -> Mask:
    """(ZONE_SIZE, ZONE_SIZE) float32, UV length covered by one face width at each texel (largest direction) on the
    canonical face seen from the front; kept under 2.5, outside the face as at its edge.
    """
    corners, flat = topology.uv()[topology.triangles()], topology.canonical()[topology.triangles()][..., :2]
    to_uv = (corners[:, 1:] - corners[:, :1]).transpose(0, 2, 1)
    to_face = (flat[:, 1:] - flat[:, :1]).transpose(0, 2, 1).astype(np.float64)
    size = np.abs(np.linalg.det(to_face))
    usable = size > 1e-7
    factor = np.full(len(size), 2.5)
    factor[usable] = np.linalg.norm(to_uv[usable] @ np.linalg.inv(to_face[usable]), ord=2, axis=(1, 2))
    factor = np.clip(factor, 0.5, 2.5)
    total, count = np.zeros(topology.FACE_POINTS), np.zeros(topology.FACE_POINTS)
    for corner in range(3):
        np.add.at(total, topology.triangles()[:, corner], factor)
        np.add.at(count, topology.triangles()[:, corner], 1.0)
    texels = rectify.interpolate((total / np.maximum(count, 1))[:, None], ZONE_SIZE)[..., 0]
    known = rectify.coverage(ZONE_SIZE).astype(np.float32)
    weight = softened(known, 6.0)
    smooth = softened(texels * known, 6.0) / np.maximum(weight, 1e-6)
    result = np.where(weight > 1e-3, smooth, np.float32(2.0)).astype(np.float32)
    result.flags.writeable = False
    return result
