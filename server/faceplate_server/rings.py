"""The clients' frame rings that this server has mapped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from faceplate_client import wire
from faceplate_client.slots import Ring, owner_alive, sweep

from .errors import Refused

Key = tuple[str, str, int]
"""Path, file id and generation."""


def key_of(reference: wire.SlotRef | wire.Release) -> Key:
    """What tells one ring from all others."""
    return reference.path, reference.file_id, reference.generation


@dataclass(frozen=True)
class RingLimits:
    """What a ring may be.

    Attributes:
        slots: of one ring.
        frame_bytes: of one slot.
        rings: mapped at once, of all clients.
    """

    slots: int
    frame_bytes: int
    rings: int


class RingTable:
    """Maps rings when a job first names them and keeps them until they are let go. May be used from several threads.

    Args:
        folder: the only one that rings may lie in.
        limits: see there.

    Attributes:
        on_let_go: told of rings that are let go, for others who have mapped them.
    """

    def __init__(self, folder: Path, limits: RingLimits) -> None:
        self.on_let_go: Callable[[Sequence[Key]], None] | None = None
        self.folder = folder
        self.limits = limits
        self._rings: dict[Key, Ring] = {}
        self._lock = threading.Lock()

    def ring(self, reference: wire.SlotRef) -> Ring:
        """The ring that a reference names.

        Raises:
            RingError: stale, no ring, contradicts itself.
            UnsafeFile: another user's, or open to others.
            Refused: larger than the limits, or one ring too many.
        """
        key = key_of(reference)
        with self._lock:
            found = self._rings.get(key)
            full = len(self._rings) >= self.limits.rings
        if found is not None:
            return found
        if full:
            raise Refused("limit", f"the server holds {self.limits.rings} frame rings", hint="close other hosts")
        largest = (self.limits.slots + 1) * (self.limits.frame_bytes + (1 << 16))
        ring = Ring.attach(*key, folder=self.folder, largest=largest)
        self._check(ring)
        with self._lock:
            kept = self._rings.setdefault(key, ring)
        if kept is not ring:
            ring.close()
        return kept

    def _check(self, ring: Ring) -> None:
        limits = self.limits
        if ring.slots > limits.slots or ring.slot_bytes > limits.frame_bytes:
            found = f"{ring.slots} slots of {ring.slot_bytes} bytes"
            ring.close()
            raise Refused(
                "limit",
                "the frame ring is larger than this server takes",
                expected=f"at most {limits.slots} slots of {limits.frame_bytes} bytes",
                found=found,
            )

    def let_go(self, keys: Iterable[Key]) -> None:
        """Unmap rings; harmless for those that are not mapped."""
        named = list(keys)
        with self._lock:
            gone = [self._rings.pop(key, None) for key in named]
        for ring in gone:
            if ring is not None:
                ring.close()
        if named and self.on_let_go is not None:
            self.on_let_go(named)

    def sweep(self, in_use: Iterable[Key]) -> list[Path]:
        """Remove the files of dead owners and unmap their rings, but those that a job still works on."""
        busy = set(in_use)
        with self._lock:
            mapped = [key for key in self._rings if key not in busy]
        self.let_go(key for key in mapped if not owner_alive(Path(key[0])))
        return sweep(self.folder)

    def __len__(self) -> int:
        return len(self._rings)
