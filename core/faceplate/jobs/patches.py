"""What a job of a movie keeps of each frame: the changed pixels alone, linear, and the matte.

The movie is made from the plate and these at the end, so that a kill loses at most the frames in flight, a changed
frame is rendered alone, and another codec renders none. One EXR a frame, float32: R, G, B of the result (or of the
premultiplied face) and A, the matte, over the window that changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..deliver import Delivery
from ..frame import Box, Frame
from ..media.exr import write_exr
from ..media.read import read_image
from ..pipeline import SwappedFrame
from ..plate import Plate

PATCHES_FOLDER = "frames"


@dataclass(frozen=True, slots=True, eq=False)
class Patch:
    """The changed part of a frame.

    Attributes:
        window: plate px, upright.
        rgb: (h, w, 3) float32, linear in the plate's space.
        matte: (h, w) float32; 0 where the plate stays.
    """

    window: Box
    rgb: NDArray[np.float32]
    matte: NDArray[np.float32]

    @property
    def is_empty(self) -> bool:
        """True where nothing changed."""
        return not bool(self.matte.any())


def patch_path(folder: Path, frame: int) -> Path:
    """The patch of a frame in a job folder."""
    return folder / PATCHES_FOLDER / f"{frame:07d}.exr"


def write_patch(path: Path, plate: Plate, frame: Frame, swapped: SwappedFrame, delivery: Delivery) -> None:
    """Keep one frame, atomically; of the arguments of `deliver.write_frame`.

    Raises:
        OutputError: it cannot be written.
    """
    window = swapped.window
    if window.is_empty:
        corner = frame.data_window
        window = Box(corner.x0, corner.y0, corner.x0 + 1, corner.y0 + 1)
        pixels = np.zeros((1, 1, 4), np.float32)
    else:
        pixels = np.empty((window.height, window.width, 4), np.float32)
        rows, columns = window.slices(frame.data_window)
        pixels[..., :3] = swapped.face if "element" in delivery.layers else swapped.pixels[rows, columns, :3]
        pixels[..., 3] = swapped.matte
    write_exr(
        path,
        pixels,
        attributes=dict(delivery.attributes),
        data_window=window,
        display_window=frame.display_window,
        compression="none",  # packed, float32 grain is a fifth smaller and takes ten times as long
    )


def read_patch(path: Path) -> Patch:
    """A patch again.

    Raises:
        ImageReadError: absent or damaged.
    """
    image = read_image(path)
    pixels = np.asarray(image.pixels, np.float32)
    return Patch(image.data_window, pixels[..., :3], pixels[..., 3])
