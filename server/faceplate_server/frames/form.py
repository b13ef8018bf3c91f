"""Results in the form that a host takes: its channels, number type, row order and colour space."""

from __future__ import annotations

import dataclasses

import numpy as np

from faceplate.colour.spaces import ColourConfig
from faceplate.frame import Frame, Pixels
from faceplate.media.exr import to_half
from faceplate.pipeline import SwappedFrame
from faceplate_client import wire
from faceplate_client.slots import FrameHeader, FrameType

from ..errors import Refused
from .bridge import Slot, SlotPlate, write_encoded

_COLOUR = (("R", "G", "B"), ("R", "G", "B", "A"))


def check_form(message: wire.SubmitFrame) -> None:
    """Refuse a form that no result can have.

    Raises:
        Refused: channels that are no picture's, or no slot of its own for the result.
    """
    form = message.form
    if form is None:
        return
    if not isinstance(message.output, wire.SlotRef):
        raise Refused("input", "a form needs an output slot", hint="offer a slot for the result, or leave the form out")
    if form.channels not in _COLOUR:
        raise Refused(
            "input",
            "results cannot have these channels",
            expected="R,G,B or R,G,B,A",
            found=",".join(form.channels) or "none",
            hint="update the plug-in",
        )


def write_result(
    slot: Slot,
    header: FrameHeader,
    frame: Frame,
    swapped: SwappedFrame,
    plate: SlotPlate | None,
    form: wire.FrameForm | None,
    config: ColourConfig,
) -> FrameHeader:
    """Put a result into its slot, where it is not there already; the header that it has there.

    Args:
        slot: room for it.
        header: of the result as the plate came.
        frame: the plate.
        swapped: the result; in the slot already where the plate is linear and no form is asked for.
        plate: where the plate came in a slot.
        form: that the host wants.
        config: OCIO configuration.

    Raises:
        Refused: it does not fit.
        ColourSpaceError: an unknown space.
    """
    if form is None:
        if plate is not None and plate.is_encoded:
            write_encoded(slot.array(header), plate, swapped, config)
        return header
    pixels, space = swapped.pixels, frame.colour_space
    if plate is not None and plate.is_encoded and form.colour_space is None:
        pixels, space = np.empty(plate.stored.shape, plate.stored.dtype), plate.space
        write_encoded(pixels, plate, swapped, config)
    wanted = space if form.colour_space is None else config.resolve(form.colour_space)
    if wanted != space:
        rgb = config.transform(space, wanted).numpy(np.ascontiguousarray(pixels[..., :3], np.float32))
        pixels = np.concatenate([rgb, pixels[..., 3:].astype(np.float32)], axis=-1)
    made = dataclasses.replace(
        header,
        channels=form.channels,
        dtype=FrameType.HALF if form.dtype == "half" else FrameType.FLOAT,
        bottom_up=form.bottom_up,
        colour_space=wanted,
    )
    _copy(slot.array(made), pixels)
    return made


def _copy(out: Pixels, pixels: Pixels) -> None:
    """Alpha that the plate lacks is 1, what it has more is left out; half holds what exceeds it at its largest."""
    common = min(out.shape[2], pixels.shape[2])
    source = pixels[..., :common]
    out[..., :common] = to_half(source) if out.dtype == np.float16 else source
    out[..., common:] = 1
