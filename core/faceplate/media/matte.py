"""One channel of any picture as a matte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import OpenImageIO as oiio
from numpy.typing import NDArray

from ..errors import ImageReadError, InputError
from ..frame import Box


def _channel(names: list[str], layer: str) -> int | None:
    """Index of a channel by its full name, or the layer's A, R or Y; without a name the file's A, else its first."""
    if not layer:
        return names.index("A") if "A" in names else 0
    wanted = (layer, f"{layer}.A", f"{layer}.R", f"{layer}.Y")
    return next((names.index(name) for name in wanted if name in names), None)


def read_matte(path: Path, layer: str = "") -> tuple[NDArray[np.float32], Box, Box]:
    """A matte as its file holds it.

    Args:
        path: any format that OpenImageIO reads; all parts of an EXR are searched.
        layer: channel or layer name, "" for the alpha, else the first channel.

    Returns:
        ((H, W) float32, NaN as 0, clipped to 0..1; the data window it covers; the display window).

    Raises:
        ImageReadError: absent or damaged.
        InputError: no such layer.
    """
    opened = oiio.ImageInput.open(str(path))
    if opened is None:
        raise ImageReadError(f"{path} cannot be read", found=oiio.geterror(), hint="check the hold-out's file")
    names: list[str] = []
    try:
        part = 0
        while opened.seek_subimage(part, 0):
            spec = opened.spec()
            own = list(spec.channelnames)
            names += own
            index = _channel(own, layer)
            if index is not None:
                pixels = opened.read_image(part, 0, index, index + 1, "float")
                if pixels is None:
                    raise ImageReadError(f"{path} is damaged", found=opened.geterror(), hint="render the matte again")
                plane = np.clip(np.nan_to_num(pixels[..., 0], nan=0.0), 0.0, 1.0)
                data = Box(spec.x, spec.y, spec.x + spec.width, spec.y + spec.height)
                full = (spec.full_x, spec.full_y, spec.full_x + spec.full_width, spec.full_y + spec.full_height)
                return plane, data, Box(*full)
            part += 1
    finally:
        opened.close()
    raise InputError(
        f"{path} has no layer or channel {layer!r}",
        found=", ".join(names) or "no picture",
        hint="name one of these after the colon: --holdout PATTERN:LAYER",
    )
