"""Puts patches into pictures of code values: outside the matte the codes stay what they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

from ..colour.transform import ColourTransform
from ..frame import Box
from ..media.movies.layout import Component, Layout, Planes
from ..media.movies.planes import Coding, from_rgb, part_of, region_of, to_rgb
from .patches import Patch

_MARGIN = 16
"""Px of straight colour carried beyond the matte, so that a codec's blur takes no black into the edge."""


def coded_patch(patch: Patch, rotation: int, width: int, height: int) -> Patch:
    """A patch of an upright picture as one of the picture as coded.

    Args:
        patch: upright.
        rotation: degrees counter-clockwise from coded to upright.
        width: of the upright picture.
        height: likewise.
    """
    window, turns = patch.window, rotation % 360 // 90
    rgb, matte = patch.rgb, patch.matte
    for _ in range(turns):  # a quarter clockwise: column x of `height` rows becomes row x
        window = Box(height - window.y1, window.x0, height - window.y0, window.x1)
        rgb, matte = np.rot90(rgb, -1), np.rot90(matte, -1)
        width, height = height, width
    return Patch(window, rgb, matte)


def stamp(base: Planes, layout: Layout, coding: Coding, patch: Patch, encode: ColourTransform | None) -> Planes:
    """A picture with a patch in it.

    Luma (or R, G, B) changes only where the matte is not 0, chroma only in samples that stand for such a pixel.

    Args:
        base: codes; not written to.
        layout: of the codes.
        coding: of the codes.
        patch: as coded, not turned.
        encode: from the patch's linear space to R'G'B'; None where they are the same.
    """
    if patch.is_empty:
        return base
    height, width = base[0].shape
    region = region_of(patch.window, layout, width, height)
    cut = tuple(plane[part_of(region, layout, index)] for index, plane in enumerate(base))
    rgb = to_rgb(cut, layout, coding)
    changed = patch.rgb if encode is None else encode.numpy(patch.rgb)
    where = np.zeros((region.height, region.width), bool)
    rows, columns = patch.window.slices(region)
    where[rows, columns] = patch.matte > 0
    inside = rgb[rows, columns, :3]
    inside[...] = np.where(where[rows, columns, None], changed, inside)
    codes = from_rgb(rgb, layout, coding)
    out = [plane.copy() for plane in base]
    for index in range(len(base) - layout.alpha):
        target = out[index][part_of(region, layout, index)]
        np.copyto(target, codes[index], where=_touched(where, layout, index))
    return tuple(out)


def element(size: tuple[int, int], layout: Layout, coding: Coding, patch: Patch, encode: ColourTransform | None,
            *, premultiplied: bool) -> Planes:  # fmt: skip
    """The face alone, with its matte as alpha.

    Args:
        size: (height, width) as coded.
        layout: with alpha.
        coding: of the codes to make.
        patch: of the premultiplied face, as coded.
        encode: see `stamp`.
        premultiplied: R'G'B' times alpha; else straight, carried on for some pixels beyond the matte.
    """
    height, width = size
    black = np.zeros((1 << layout.shift_y, 1 << layout.shift_x, 4), np.float32)
    codes = from_rgb(black, layout, coding)
    out: list[Component] = []
    for index, plane in enumerate(codes):
        full: Any = np.full(layout.size(index, width, height), plane[0, 0]).astype(layout.dtype)
        out.append(full)
    if patch.is_empty:
        return tuple(out)
    region = region_of(patch.window.grow(_MARGIN).intersect(Box(0, 0, width, height)), layout, width, height)
    matte = np.zeros((region.height, region.width), np.float32)
    straight = np.zeros((region.height, region.width, 3), np.float32)
    rows, columns = patch.window.slices(region)
    matte[rows, columns] = patch.matte
    inside = patch.matte > 0
    straight[rows, columns][inside] = patch.rgb[inside] / patch.matte[inside, None]
    if encode is not None:
        straight = encode.numpy(straight)
    straight *= matte[..., None] if premultiplied else 1
    if not premultiplied:
        straight = _carry_on(straight, matte > 0)
    codes = from_rgb(np.concatenate([straight, matte[..., None]], axis=-1), layout, coding)
    for index, plane in enumerate(codes):
        out[index][part_of(region, layout, index)] = plane
    return tuple(out)


def _carry_on(rgb: NDArray[np.float32], inside: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Colour of the nearest pixel inside, up to the margin; black beyond."""
    far, nearest = distance_transform_edt(~inside, return_indices=True)
    out: NDArray[np.float32] = rgb[nearest[0], nearest[1]]
    out[far > _MARGIN] = 0
    return out


def _touched(where: NDArray[np.bool_], layout: Layout, index: int) -> NDArray[np.bool_]:
    """Samples of a plane that stand for a pixel inside the matte."""
    if layout.model != "yuv" or index not in (1, 2):
        return where
    x, y = 1 << layout.shift_x, 1 << layout.shift_y
    rows, columns = -(-where.shape[0] // y), -(-where.shape[1] // x)
    full = np.zeros((rows * y, columns * x), bool)
    full[: where.shape[0], : where.shape[1]] = where
    touched = full[::y, ::x].copy()
    for dy in range(y):
        for dx in range(x):
            touched |= full[dy::y, dx::x]
    return touched
