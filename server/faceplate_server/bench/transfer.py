"""Frames to the server and back with the null engine, over two copies of the same memory.

To the server: the host copies its picture into a slot. The null engine leaves it there, or copies it into another slot.
Back: the host has the header and a view of the slot, where it can read the result (`Ring.view`), or copies that into
memory of its own. So two, two or three copies are in the three ways, beside messages and threads:

| way | copies |
|---|---|
| plate's slot, copied out | host in, host out |
| another slot, read where it lies | host in, server |
| another slot, copied out | host in, server, host out |
"""

from __future__ import annotations

from typing import Any

import numpy as np

from faceplate_client import Client, FrameHeader, Ring, wire
from faceplate_client.slot_header import FrameType
from faceplate_client.slots import as_array

from .statistics import QUIET, Figures, median, percentile, seconds_of

WAYS = (
    "result in the plate's slot, copied out",
    "result in another slot, read where it lies",
    "result in another slot, copied out",
)
_RUNS = 40
_WARM = 6
_FRAME_S = 30.0


class _Trip:
    """One picture, its way to the server and back into an array of the host's own.

    Args:
        client: of the server.
        ring: with two slots.
        header: of the picture.
    """

    def __init__(self, client: Client, ring: Ring, header: FrameHeader) -> None:
        self.client, self.ring, self.header = client, ring, header
        kind = np.float32 if header.dtype is FrameType.FLOAT else np.float16
        shape = (header.height, header.width, len(header.channels))
        self.pixels = np.random.default_rng(0).random(shape, np.float32).astype(kind)
        self.middle = np.empty_like(self.pixels)
        self.back = np.zeros_like(self.pixels)

    def copy_twice(self) -> None:
        """The yardstick."""
        np.copyto(self.middle, self.pixels)
        np.copyto(self.back, self.middle)

    def through(self, *, own_slot: bool, copied: bool = True) -> None:
        """To the server and back, into the plate's slot or another one.

        Raises:
            AssertionError: the picture that came back is another one.
        """
        plate = self.ring.put(self.header, self.pixels)
        room = None if own_slot else self.ring.offer(self.ring.acquire())
        job = self.client.submit_frame(frame=1, plate=plate, output=room, assignments=(), engine="null")
        end = self.client.result(job, _FRAME_S)
        assert isinstance(end, wire.FrameResult)
        assert isinstance(end.output, wire.SlotRef)
        with self.ring.view(end.output) as (header, memory):
            result = as_array(header, memory)
            if copied:
                np.copyto(self.back, result)
            elif not np.array_equal(result[::64, 0], self.pixels[::64, 0]):
                raise AssertionError("the null engine changed a frame")
        if not own_slot:
            self.ring.release(plate.slot)


def transfer(client: Client, folder: Any, width: int, height: int, kind: FrameType) -> Figures:
    """The ways of moving a frame, interleaved.

    Args:
        client: of the server.
        folder: for the frame ring.
        width: of the picture.
        height: of the picture.
        kind: of its numbers; it is RGBA.

    Raises:
        AssertionError: a frame came back with other bits.
    """
    header = FrameHeader(width, height, dtype=kind, colour_space="ACEScg")
    with Ring.create(2, header.nbytes, folder) as ring:
        trip = _Trip(client, ring, header)
        ways = (
            trip.copy_twice,
            lambda: trip.through(own_slot=True),
            lambda: trip.through(own_slot=False, copied=False),
            lambda: trip.through(own_slot=False),
        )
        for _ in range(_WARM):
            for way in ways:
                way()
        rows = []
        for _ in range(_RUNS):
            rows.append([seconds_of(way) for way in ways])
            trip.back[0, 0] = 0
        trip.through(own_slot=False)
        if trip.back.tobytes() != trip.pixels.tobytes():
            raise AssertionError("the null engine changed a frame")
        client.release(ring)
    columns = list(zip(*rows, strict=True))
    copies, *times = [median(column) for column in columns]
    quiet_copies, *quiet = [percentile(column, QUIET) for column in columns]
    return {
        "two copies, ms": round(1e3 * copies, 2),
        **{f"{way}, ms": round(1e3 * one, 2) for way, one in zip(WAYS, times, strict=True)},
        **{f"{way} / two copies": round(one / copies, 2) for way, one in zip(WAYS, times, strict=True)},
        **{
            f"{way} / two copies, least disturbed tenth": round(one / quiet_copies, 2)
            for way, one in zip(WAYS, quiet, strict=True)
        },
    }
