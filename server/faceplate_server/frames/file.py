"""A file made of a frame that came through memory."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from faceplate.colour.spaces import ColourConfig
from faceplate.colour.tags import exr_tags
from faceplate.colour.transform import ColourTransform
from faceplate.deliver import Delivery, frame_layers
from faceplate.errors import OutputError
from faceplate.frame import Frame
from faceplate.media.exr import to_half, write_exr
from faceplate.pipeline import SwappedFrame


def write_from_slot(path: Path, frame: Frame, swapped: SwappedFrame, delivery: Delivery, config: ColourConfig) -> str:
    """Write a new EXR in the frame's linear space, which its header names.

    Args:
        path: of the file.
        frame: the plate.
        swapped: the result.
        delivery: layers and attributes.
        config: the frame's colour configuration.

    Returns:
        The space of the file: the frame's, or the scene_linear role's where an EXR has no word for the frame's.

    Raises:
        OutputError: no EXR, or it cannot be written.
    """
    if path.suffix.lower() != ".exr" or "element" in delivery.layers:
        raise OutputError(
            f"cannot write {path.name} from a frame in memory", expected="an .exr file with the whole plate"
        )
    space = frame.colour_space
    tags = exr_tags(config, space)
    if not tags and space != config.scene_linear:
        swapped = _converted(swapped, config.transform(space, config.scene_linear))
        space, tags = config.scene_linear, exr_tags(config, config.scene_linear)
    layers, attributes = frame_layers(swapped, frame.data_window, delivery)
    write_exr(
        path,
        swapped.pixels,
        layers=layers,
        attributes={**tags, **attributes},
        data_window=frame.data_window,
        display_window=frame.display_window,
        pixel_aspect=frame.pixel_aspect,
    )
    return space


def _converted(swapped: SwappedFrame, change: ColourTransform) -> SwappedFrame:
    """Picture and face layer in another linear space, in the types that they had."""
    changed = change.numpy(swapped.pixels[..., :3])
    rgb = to_half(changed) if swapped.pixels.dtype == np.float16 else changed
    pixels = np.concatenate([rgb, swapped.pixels[..., 3:]], axis=-1)
    return dataclasses.replace(swapped, pixels=pixels, face=change.numpy(swapped.face))
