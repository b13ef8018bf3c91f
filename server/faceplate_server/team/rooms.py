"""Slots of this server's own frame rings, for frames that came from another machine."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from faceplate_client import wire
from faceplate_client.errors import RingError
from faceplate_client.slot_header import SLOT_BYTES, FrameHeader, unpack_header
from faceplate_client.slots import Ring, State

from ..errors import Refused
from . import link

_SLOTS = 2
_RINGS = 8


@dataclass(eq=False)
class Room:
    """A slot in this side's hand.

    Attributes:
        header: of the frame that comes into it, None for room for a result.
        reference: once it was handed to the server.
    """

    ring: Ring
    slot: int
    header: FrameHeader | None = None
    reference: wire.SlotRef | None = None

    def memory(self, size: int) -> memoryview:
        """The slot's pixels."""
        return self.ring.pixels(self.slot, size)

    def hand_over(self) -> wire.SlotRef:
        """Give it to the server: as a frame, or as room."""
        if self.header is None:
            self.reference = self.ring.offer(self.slot)
        else:
            self.reference = self.ring.publish(self.slot, self.header)
        return self.reference

    def release(self) -> None:
        """The slot is free again; for a job that has ended. Harmless when the ring is closed."""
        with contextlib.suppress(RingError):
            self.ring.reclaim(self.slot)


class RoomPool:
    """The frame rings of one connection, made as they are needed. For one thread.

    Args:
        folder: of the server's rings.
        largest: bytes of one slot that the server takes.
    """

    def __init__(self, folder: Path, largest: int) -> None:
        self._folder = folder
        self._largest = largest
        self._rings: list[Ring] = []

    def take(self, size: int) -> Room:
        """A free slot of at least `size` bytes.

        Raises:
            Refused: larger than the server takes, or too many frames at once.
            RingError: shared memory is full.
        """
        if not 0 < size <= self._largest:
            limit = f"at most {self._largest} bytes"
            raise Refused("limit", "the frame is larger than the team server takes", expected=limit, found=str(size))
        for ring in self._rings:
            if ring.slot_bytes >= size and any(ring.state(slot) is State.FREE for slot in range(ring.slots)):
                return Room(ring, ring.acquire())
        self._let_small_ones_go(size)
        if len(self._rings) >= _RINGS:
            raise Refused("limit", f"{_RINGS * _SLOTS} frames of this client are at work", hint="wait for some of them")
        self._rings.append(Ring.create(_SLOTS, size, self._folder))
        return Room(self._rings[-1], self._rings[-1].acquire())

    def _let_small_ones_go(self, size: int) -> None:
        for ring in list(self._rings):
            idle = all(ring.state(slot) is State.FREE for slot in range(ring.slots))
            if idle and (ring.slot_bytes < size or len(self._rings) >= _RINGS):
                self._rings.remove(ring)
                ring.close()

    def close(self) -> None:
        """Give all memory back; the server unmaps the rings once no job works on them."""
        for ring in self._rings:
            ring.close()
        self._rings.clear()


def read_header(text: str, size: int) -> FrameHeader:
    """A frame's header as it came over the link.

    Raises:
        wire.Malformed: no header, or of another size than the pixels that come with it.
        RingError: values that contradict each other.
    """
    header = unpack_header(link.header_bytes(text, SLOT_BYTES), size)
    if header is None or header.nbytes != size:
        raise wire.Malformed("a frame's header does not fit its pixels", expected=f"{size} bytes")
    return header
