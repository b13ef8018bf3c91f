"""Code values of one layout as those of another, touching no more than has to be touched.

Where two layouts share the colour model and the matrix, each plane is only scaled to the other depth and range, and
chroma is resampled only along the axis whose size differs: the same layout gives the same codes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .layout import Component, Layout, Planes
from .planes import Coding, Float, Scale, downsample, from_rgb, resample_up, to_codes, to_rgb, values_of


def convert(planes: Planes, layout: Layout, coding: Coding, target: Layout, wanted: Coding) -> Planes:
    """The same picture in another layout.

    Args:
        planes: codes.
        layout: of the codes.
        coding: of the codes.
        target: layout to convert to. Alpha that it lacks is left out; alpha that the source lacks is opaque.
        wanted: its coding.
    """
    if target.model != layout.model or coding.matrix != wanted.matrix:
        return from_rgb(to_rgb(planes, layout, coding), target, wanted)
    before, after = Scale.of(layout, full_range=coding.full_range), Scale.of(target, full_range=wanted.full_range)
    height, width = planes[0].shape
    count = {"yuv": 3, "rgb": 3, "gray": 1}[layout.model]
    out: list[Component] = []
    for component in range(count):
        chroma = layout.model == "yuv" and component > 0
        scales = (before.chroma, after.chroma) if chroma else (before.luma, after.luma)
        if chroma and (layout.shift_x, layout.shift_y) != (target.shift_x, target.shift_y):
            values = _resize(values_of(planes[component], scales[0]), layout, target, wanted, (height, width))
            out.append(to_codes(values, scales[1], target))
        else:
            out.append(_rescale(planes[component], *scales, target))
    if target.alpha:
        full: Any = np.full((height, width), target.largest).astype(target.dtype)
        out.append(_rescale(planes[-1], before.alpha, after.alpha, target) if layout.alpha else full)
    return tuple(out)


def _rescale(plane: Component, before: tuple[float, float], after: tuple[float, float], target: Layout) -> Component:
    if before == after:
        return plane
    return to_codes(values_of(plane, before), after, target)


def _resize(plane: Float, layout: Layout, target: Layout, wanted: Coding, size: tuple[int, int]) -> Float:
    """Chroma from one grid to the other, along each axis that differs."""
    for axis, (old, new) in enumerate(((layout.shift_y, target.shift_y), (layout.shift_x, target.shift_x))):
        siting = wanted.siting[1 - axis]
        if old > new:
            plane = resample_up(plane, old - new, siting, -(-size[axis] >> new), axis)
        elif new > old:
            plane = downsample(plane, new - old, siting, axis)
    return plane
