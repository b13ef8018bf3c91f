"""Between slots of a frame ring and frames: no pixel is copied that need not be."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from faceplate.colour.spaces import ColourConfig
from faceplate.errors import SettingError, UnsupportedImageError
from faceplate.frame import Box, Frame, Pixels
from faceplate.media.exr import ExrLayer, to_half
from faceplate.pipeline import SwappedFrame
from faceplate_client import wire
from faceplate_client.errors import RingError
from faceplate_client.slots import FrameHeader, FrameType, Ring, as_array

from ..errors import Refused
from ..rings import RingTable

_COLOUR = (("R", "G", "B"), ("R", "G", "B", "A"))


@dataclass(eq=False)
class Slot:
    """A slot in the server's hand.

    Attributes:
        ring: where it is.
        reference: as the client named it.
        header: of the frame in it, None where it is room for a result.
        memory: the frame's bytes, or all of the slot.
    """

    ring: Ring
    reference: wire.SlotRef
    header: FrameHeader | None
    memory: memoryview

    def array(self, header: FrameHeader) -> Any:
        """(H, W, C) of the slot's memory as `header` lays it out, row 0 on top, writable.

        Raises:
            Refused: it does not fit.
        """
        room = self.ring.pixels(self.reference.slot)
        if header.nbytes > room.nbytes:
            raise Refused(
                "ring",
                "the result does not fit its slot",
                expected=f"at least {header.nbytes} bytes",
                found=f"{room.nbytes} bytes",
                hint="make the frame ring with larger slots",
            )
        return as_array(header, room[: header.nbytes])


class Slots(Protocol):
    """What a frame's work needs of its job's slots."""

    def take(self, reference: wire.SlotRef) -> Slot:
        """A slot that the job names."""
        ...

    def finish(self, slot: Slot, header: FrameHeader) -> None:
        """The result is in it."""
        ...


class SlotsInHand:
    """In a worker process: slots that the server has taken for the job, and hands back itself.

    Args:
        table: of rings that this process has mapped.

    Attributes:
        results: slots with a result, and its header.
    """

    def __init__(self, table: RingTable) -> None:
        self._table = table
        self.results: list[tuple[wire.SlotRef, FrameHeader]] = []

    def take(self, reference: wire.SlotRef) -> Slot:
        """A slot's memory here.

        Raises:
            RingError: the ring is gone or damaged.
        """
        ring = self._table.ring(reference)
        header = ring.header(reference.slot)
        return Slot(ring, reference, header, ring.pixels(reference.slot, header.nbytes if header else None))

    def finish(self, slot: Slot, header: FrameHeader) -> None:
        """Note the result for the server."""
        self.results.append((slot.reference, header))


class SlotsOfJob:
    """The slots of one job, in the server: taken when needed, and all handed back at its end, whatever happens.

    Args:
        table: of mapped rings.
    """

    def __init__(self, table: RingTable) -> None:
        self._table = table
        self._held: dict[tuple[int, int], Slot] = {}

    def take(self, reference: wire.SlotRef) -> Slot:
        """A slot that the job names.

        Raises:
            RingError: stale, in another hand, damaged header.
            Refused: named twice, or beyond the limits.
        """
        key = reference.generation, reference.slot
        if key in self._held:
            raise Refused("ring", f"slot {reference.slot} is named twice", hint="give each picture a slot of its own")
        ring = self._table.ring(reference)
        if reference.slot >= ring.slots:
            raise Refused("ring", f"the ring has no slot {reference.slot}", expected=f"0..{ring.slots - 1}")
        header, memory = ring.take(reference)
        self._held[key] = Slot(ring, reference, header, memory)
        return self._held[key]

    def finish(self, slot: Slot, header: FrameHeader) -> None:
        """Hand a slot back with a result."""
        del self._held[slot.reference.generation, slot.reference.slot]
        slot.ring.finish(slot.reference, header)

    def finish_all(self, results: Iterable[tuple[wire.SlotRef, FrameHeader]]) -> None:
        """Hand slots back with the results that a worker process put there."""
        for reference, header in results:
            self.finish(self._held[reference.generation, reference.slot], header)

    def give_back(self) -> None:
        """Hand back all that is still held, without results."""
        while self._held:
            _, slot = self._held.popitem()
            try:
                slot.ring.give_back(slot.reference)
            except RingError:
                continue  # its owner took it back meanwhile, which is what was wanted


@dataclass(frozen=True, eq=False)
class SlotPlate:
    """A plate frame from a slot.

    Attributes:
        frame: scene-linear; its pixels are the slot's own memory where the slot is linear already.
        space: canonical name of the space of the slot's pixels.
        source: where that was found: "job", "header" or "default".
        stored: (H, W, C) as they came.
    """

    frame: Frame
    space: str
    source: str
    stored: Pixels

    @property
    def is_encoded(self) -> bool:
        """True when the slot is not linear, so that reading converts."""
        return self.frame.colour_space != self.space


def plate_of(slot: Slot, config: ColourConfig, asked: str | None, number: int) -> SlotPlate:
    """The plate in a slot.

    Args:
        slot: with a frame.
        config: OCIO configuration.
        asked: colour space that the job names, over the header's.
        number: of the frame.

    Raises:
        Refused: the slot is empty.
        UnsupportedImageError: neither RGB nor RGBA.
        ColourSpaceError: an unknown space.
    """
    header = slot.header
    if header is None:
        raise Refused("ring", "the plate's slot holds no frame", hint="publish the frame before the job is sent")
    if header.channels not in _COLOUR:
        raise UnsupportedImageError(
            "the plate's slot has the wrong channels", expected="R,G,B or R,G,B,A", found=",".join(header.channels)
        )
    name, source = (asked, "job") if asked else (header.colour_space, "header")
    if not name:
        name, source = config.scene_linear, "default"
    space = config.resolve(name)
    linear = config.linear_twin(space)
    stored = slot.array(header)
    pixels = stored if linear == space else _decoded(stored, config, space, linear)
    frame = Frame(pixels, linear, Box(*header.covers), Box(*header.shows), header.pixel_aspect, number)
    return SlotPlate(frame, space, source, stored)


def _decoded(stored: Pixels, config: ColourConfig, space: str, linear: str) -> Pixels:
    rgb = np.ascontiguousarray(stored[..., :3], np.float32)
    return np.concatenate([config.transform(space, linear).numpy(rgb), stored[..., 3:].astype(np.float32)], axis=-1)


def header_like(plate: SlotPlate, given: FrameHeader, number: int) -> FrameHeader:
    """The header of the result of a plate that came in a slot: as it came."""
    return dataclasses.replace(given, colour_space=plate.space, frame=number)


def header_of(frame: Frame) -> FrameHeader:
    """The header of a frame that came from a file: top row first."""
    height, width, channels = frame.pixels.shape
    window, display = frame.data_window, frame.display_window
    return FrameHeader(
        width,
        height,
        _COLOUR[channels - 3],
        FrameType.HALF if frame.pixels.dtype == np.float16 else FrameType.FLOAT,
        frame.colour_space,
        frame=frame.number,
        pixel_aspect=frame.pixel_aspect,
        data_window=(window.x0, window.y0, window.x1, window.y1),
        display_window=(display.x0, display.y0, display.x1, display.y1),
    )


def write_encoded(out: Any, plate: SlotPlate, swapped: SwappedFrame, config: ColourConfig) -> None:
    """Write the result of an encoded plate as it came; values outside the matte are the plate's own, bit for bit."""
    if not np.may_share_memory(out, plate.stored):
        np.copyto(out, plate.stored)
    if swapped.window.is_empty:
        return
    rows, columns = swapped.window.slices(plate.frame.data_window)
    changed = np.ascontiguousarray(swapped.pixels[rows, columns, :3], np.float32)
    changed = config.transform(plate.frame.colour_space, plate.space).numpy(changed)
    stored = to_half(changed) if out.dtype == np.float16 else changed
    np.copyto(out[rows, columns, :3], stored, where=(swapped.matte > 0)[..., None])


def write_layer(slot: Slot, layers: Sequence[ExrLayer], frame: Frame, *, bottom_up: bool) -> FrameHeader:
    """Write the channels of one layer into a slot.

    Args:
        slot: room for it.
        layers: one, of channels that share a type.
        frame: whose windows the layer has.
        bottom_up: row order to write in.

    Raises:
        SettingError: a layer that is several in a file.
        Refused: it does not fit.
    """
    if len(layers) != 1:
        raise SettingError("this layer fits no slot", hint="write it into the result's file: leave its output out")
    channels: dict[str, NDArray[Any]] = dict(layers[0].channels)
    kind = FrameType.HALF if next(iter(channels.values())).dtype == np.float16 else FrameType.FLOAT
    header = dataclasses.replace(
        header_of(frame), channels=tuple(channels), dtype=kind, colour_space="", bottom_up=bottom_up
    )
    out = slot.array(header)
    for index, plane in enumerate(channels.values()):
        out[..., index] = plane
    return header


def matte_of(slot: Slot, layer: str) -> tuple[NDArray[np.float32], Box, Box | None]:
    """A hold-out in a slot: (h, w) 0..1, the window it covers, and its raster, None where only its window is known.

    Raises:
        Refused: the slot is empty, or has no such channel.
    """
    header = slot.header
    if header is None:
        raise Refused("ring", "the hold-out's slot holds no frame", hint="publish the matte before the job is sent")
    wanted = layer or ("A" if "A" in header.channels else header.channels[0])
    if wanted not in header.channels:
        raise Refused("input", f"the hold-out has no channel {wanted!r}", found=",".join(header.channels))
    plane = np.asarray(slot.array(header)[..., header.channels.index(wanted)], np.float32)
    told = header.display_window is not None or header.data_window is None
    return np.clip(np.nan_to_num(plane, nan=0.0), 0.0, 1.0), Box(*header.covers), Box(*header.shows) if told else None
