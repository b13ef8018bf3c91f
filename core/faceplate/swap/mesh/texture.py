"""Photos of a person merged into one texture in canonical UV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from ...errors import IdentityError
from ...face import MESH_POINTS, FaceTexture, Points
from ...faces import rectify, topology
from .facing import facing
from .pictures import Image, Mask, looked_up, resized, softened
from .skin import in_uv, skin_mask

_LIGHT_SIGMA = 0.08
"""Of the UV side: what is coarser than this is taken as light and matched between photos."""
_MIRROR_COVERAGE = 0.8
"""A mirrored texel is a guess: it hides this much of the plate at most."""
_SEAM_SIGMA = 0.01
_LEAST = 2.0**-12


@dataclass(frozen=True, slots=True, eq=False)
class PhotoView:
    """One photo of the person.

    Attributes:
        picture: (h, w, 3) float32, linear light, Rec.709 primaries, skin about 0.18.
        landmarks: (478, 3) float32, px of the picture.
        matte: (h, w) float32 0..1 person matte, or None.
    """

    picture: Image
    landmarks: Points
    matte: Mask | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Sheet:
    """A photo laid out in UV: colour (S, S, 3), known (S, S) 0..1, weight (S, S) for merging."""

    colour: Image
    known: Mask
    weight: Mask


def build_texture(views: Sequence[PhotoView]) -> FaceTexture:
    """Merge photos: each texel from the photos that see it most squarely, sharpest and unobstructed.

    Args:
        views: at least one.

    Returns:
        Texture of 512, 1024 or 2048 texels a side, about two texels a pixel of the largest face.

    Raises:
        IdentityError: no photo, or a photo without a usable face.
    """
    if not views:
        raise IdentityError("an identity needs at least one photo")
    for index, view in enumerate(views):
        _check(view, index)
    widths = [_face_width(view) for view in views]
    size = 512
    while size < 2048 and size < 2 * max(widths):
        size *= 2
    sheets = [_lay_out(view, width / max(widths), size) for view, width in zip(views, widths, strict=True)]
    colour, known = _merge(sheets, size)
    colour, known = _mirror(colour, known, size)
    colour = _fill(colour, known)
    return FaceTexture(np.clip(colour, 0.0, 60000.0).astype(np.float16), known.astype(np.float16), float(max(widths)))


def _check(view: PhotoView, index: int) -> None:
    picture = view.picture
    if picture.ndim != 3 or picture.shape[2] != 3 or view.landmarks.shape != (MESH_POINTS, 3):
        raise IdentityError(
            f"photo {index + 1} has the wrong form",
            expected="(h, w, 3) colour and (478, 3) landmarks",
            found=f"{picture.shape} and {view.landmarks.shape}",
        )
    inside = (view.landmarks[: topology.FACE_POINTS, :2] >= 0) & (
        view.landmarks[: topology.FACE_POINTS, :2] <= [picture.shape[1], picture.shape[0]]
    )
    if not np.isfinite(view.landmarks).all() or inside.all(1).mean() < 0.5:
        raise IdentityError(
            f"photo {index + 1} shows less than half of a face", hint="take a photo that holds the whole face"
        )


def _face_width(view: PhotoView) -> float:
    points = view.landmarks[: topology.FACE_POINTS, :2]
    axis = points[263] - points[33]
    along = points @ (axis / max(float(np.hypot(*axis)), 1e-6))
    return float(np.ptp(along))


def _lay_out(view: PhotoView, relative_size: float, size: int) -> _Sheet:
    picture, landmarks = np.maximum(view.picture, 0.0), view.landmarks
    width = _face_width(view)
    if width > 0.75 * size:  # finer than the texels can hold
        scale = 0.75 * size / width
        whole = (max(1, round(picture.shape[1] * scale)), max(1, round(picture.shape[0] * scale)))
        scales = np.array([*(np.array(whole) / picture.shape[1::-1]), scale], np.float32)
        picture, landmarks = resized(picture, *whole, cv2.INTER_AREA), landmarks * scales
    at = rectify.interpolate(landmarks[:, :2], size)
    colour = looked_up(picture, at, cv2.INTER_CUBIC)
    matte = view.matte
    if matte is not None and matte.shape != picture.shape[:2]:
        matte = resized(matte, picture.shape[1], picture.shape[0], cv2.INTER_AREA)
    mask = skin_mask(picture, landmarks, matte)
    towards = rectify.interpolate(np.clip(facing(landmarks), 0.0, 1.0)[:, None], size)[..., 0]
    height, width_px = picture.shape[:2]
    framed = ((at > 0.5) & (at < [width_px - 0.5, height - 0.5])).all(-1)
    clear = in_uv(mask, landmarks, size) * framed
    known = clear * np.clip((towards - 0.04) / 0.26, 0.0, 1.0)
    return _Sheet(np.maximum(colour, 0.0), known, known * towards**2 * relative_size)


def _match(colour: Image, to: Image, weight: Mask) -> Image:
    """Bring the low frequencies of a sheet to another's, by the texels that both know."""
    size = colour.shape[0]
    sigma = _LIGHT_SIGMA * size
    floor = np.maximum(weight, 0.0)[..., None]
    total = max(float(weight.sum()), 1e-6)
    mean_from, mean_to = (colour * floor).sum((0, 1)) / total, (to * floor).sum((0, 1)) / total
    over = softened(to * floor, sigma) + 0.02 * mean_to + _LEAST * 0.01
    under = softened(colour * floor, sigma) + 0.02 * mean_from + _LEAST * 0.01
    return np.asarray(colour * np.clip(over / under, 0.05, 20.0), np.float32)


def _merge(sheets: Sequence[_Sheet], size: int) -> tuple[Image, Mask]:
    """Two bands: light and colour averaged broadly, detail from the best sheet, so that no seam shows."""
    if len(sheets) == 1:
        return sheets[0].colour, sheets[0].known
    first = max(sheets, key=lambda sheet: float(sheet.weight.sum()))
    low, high = np.zeros((size, size, 3), np.float32), np.zeros((size, size, 3), np.float32)
    low_total, high_total = np.zeros((size, size, 1), np.float32), np.zeros((size, size, 1), np.float32)
    known = np.zeros((size, size), np.float32)
    for sheet in sheets:
        colour = sheet.colour
        if sheet is not first:
            colour = _match(colour, first.colour, np.minimum(sheet.known, first.known))
        weight = softened(sheet.weight, _SEAM_SIGMA * size) * (sheet.known > 0)
        sharp = (weight**4)[..., None]
        around = softened(sheet.known, 3 * _SEAM_SIGMA * size)[..., None]
        base = softened(colour * sheet.known[..., None], 3 * _SEAM_SIGMA * size) / np.maximum(around, 1e-4)
        low += base * weight[..., None]
        low_total += weight[..., None]
        high += (colour - base) * sharp
        high_total += sharp
        known = np.maximum(known, sheet.known)
    merged = low / np.maximum(low_total, 1e-8) + high / np.maximum(high_total, 1e-12)
    return np.maximum(merged, 0.0).astype(np.float32), known


def _mirror(colour: Image, known: Mask, size: int) -> tuple[Image, Mask]:
    """Where one side is unknown and the other known, mirror it over, in this side's light. UV is symmetric in u."""
    other, other_known = np.ascontiguousarray(colour[:, ::-1]), np.ascontiguousarray(known[:, ::-1])
    other = _match(other, colour, np.minimum(known, other_known))
    share = _MIRROR_COVERAGE * other_known
    total = np.maximum(known + (1.0 - known) * share, 1e-6)
    mixed = (colour * known[..., None] + other * ((1.0 - known) * share)[..., None]) / total[..., None]
    return np.asarray(mixed, np.float32), np.maximum(known, share).astype(np.float32)


def _fill(colour: Image, known: Mask) -> Image:
    """Unknown texels from ever wider surroundings (push and pull), so that filtering meets no hole."""
    weight = np.clip(known, 0.0, 1.0)[..., None]
    levels = [(colour * weight, weight)]
    while levels[-1][0].shape[0] > 4:
        half = levels[-1][0].shape[0] // 2
        total, mass = (resized(each, half, half, cv2.INTER_AREA) for each in levels[-1])
        levels.append((total, mass[..., None]))
    total, mass = levels[-1]
    result = np.zeros_like(total) + total.sum((0, 1)) / max(float(mass.sum()), 1e-6)
    for total, mass in reversed(levels):
        side = total.shape[0]
        result = resized(np.asarray(result, np.float32), side, side)
        trust = np.clip(mass, 0.0, 1.0)
        result = result * (1.0 - trust) + total / np.maximum(mass, 1e-6) * trust
    return np.asarray(result, np.float32)
