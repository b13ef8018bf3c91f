"""Frames in shared memory: a ring of slots in a mapped file, written by its owner, read and filled by the server.

One file a client, `PID-random.ring`, mode 0600 in a folder of mode 0700. All numbers little-endian, windows half-open:

    0       file header, one page
            0 magic "FPLTRING" | 8 u32 version | 12 u32 slots | 16 u64 bytes a slot | 24 u64 offset of the pixels
            32 u64 bytes of the file | 40 u64 generation | 48 u64 pid of the owner
    4096    slot table, 512 bytes a slot
            0 u32 state | 4 u32 dtype (1 half, 2 float) | 8 u64 use | 16 u32 width | 20 u32 height | 24 u32 channels
            28 u32 row order (0 top row first, 1 bottom row first) | 32 i64 frame number (lowest i64: none)
            40 f64 pixel aspect | 48 4 i32 data window x0 y0 x1 y1 | 64 4 i32 display window | 80 u64 bytes of pixels
            96 channel names, 128 bytes, "R,G,B,A" | 224 colour space, 128 bytes; both UTF-8, zeros behind
    offset  pixels, one slot after the other, each at a page; rows without gaps, channels interleaved

A slot is in one hand at a time, which alone may touch its pixels, its header and its state:

    state      in the hand of   next
    FREE       owner            WRITING  acquire
    WRITING    owner            READY    publish (a frame) or offer (room for a result); FREE  release
    READY      server           BUSY     take
    BUSY       server           DONE     finish (a result) or give_back (none; an empty header)
    DONE       owner            FREE     release

`use` goes up with each publish or offer, so that a reference to an earlier frame is refused; `generation` is a random
number of the ring. State changes are told by messages, never polled; sending one orders the memory accesses before it.
When a job has ended, every slot it named is back in the owner's hand, whatever its state: `reclaim` frees it. A slot
whose job was given up needs the message `release` and its answer first.

No path to SIGBUS: the owner reserves every page before it maps the file, and nobody ever shrinks a file: replacing or
removing its name leaves the mapping whole. The attaching side compares sizes before it maps. (Another process of the
same user could still shrink the file on purpose; Linux can forbid that only for files without a name.) The owner holds
the file's lock as long as it lives; a file whose lock is free is stale, and `sweep` removes it.
"""

from __future__ import annotations

import mmap
import os
import secrets
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import wire
from .errors import (
    RingError,
    RingNoResult,
    RingNoSpace,
    RingStale,
    RingWrongFormat,
    RingWrongSize,
    RingWrongState,
)
from .private import default_folder, open_private, private_folder
from .ring_file import NO_SPACE, check_file, close_file, new_locked_file, owner_alive, reserve, sweep
from .slot_header import (
    EMPTY,
    FILE_HEADER,
    MAGIC,
    MAX_SLOTS,
    PAGE,
    SLOT_BYTES,
    STATE,
    USE,
    VERSION,
    FrameHeader,
    FrameType,
    State,
    data_offset,
    pack_header,
    round_up,
    unpack_header,
)

__all__ = ["FrameHeader", "FrameType", "Ring", "State", "as_array", "owner_alive", "sweep"]


class Ring:
    """A frame ring, made by `create` (owner) or `attach` (server).

    Views and arrays of the pixels may outlive `close`: their memory goes when the last of them does.
    """

    def __init__(self, path: Path, descriptor: int, mapping: mmap.mmap, *, owner: bool) -> None:
        found = os.fstat(descriptor)
        _, _, self.slots, self.slot_bytes, self._offset, _, self.generation, self.owner_pid = FILE_HEADER.unpack_from(
            mapping
        )
        self.path = path
        self.file_id = f"{found.st_dev}:{found.st_ino}"
        self.owner = owner
        self._map: mmap.mmap | None = mapping
        # at the end of the interpreter too, so that a host that forgets to close leaves no file behind
        self._closer = weakref.finalize(self, close_file, path, descriptor, os.getpid() if owner else None)

    @classmethod
    def create(cls, slots: int, slot_bytes: int, folder: Path | None = None) -> Ring:
        """Make a ring whose pages are all there and touched.

        Args:
            slots: frames in flight, inputs and results together.
            slot_bytes: of the largest frame, e.g. 1920 * 1080 * 4 * 4; rounded up to pages.
            folder: None for the user's own, `private.default_folder()`.

        Raises:
            RingNoSpace: shared memory is full or limited.
            RingWrongSize: numbers that make no ring.
            UnsafeFile: others can enter the folder.
            ConnectionFailed: the folder cannot be made.
        """
        if not 1 <= slots <= MAX_SLOTS or slot_bytes < 1:
            raise RingWrongSize(
                "no such ring", expected=f"1..{MAX_SLOTS} slots", found=f"{slots} of {slot_bytes} bytes"
            )
        folder = private_folder(folder if folder is not None else default_folder())
        offset, room = data_offset(slots), round_up(slot_bytes)
        total = offset + slots * room
        path, descriptor = new_locked_file(folder)
        try:
            reserve(descriptor, total)
            mapping = mmap.mmap(descriptor, total)
            # the first touch of a page costs ten times the copy into it: pay here, not in the first frames
            memoryview(mapping)[::PAGE] = bytes(total // PAGE)
            FILE_HEADER.pack_into(
                mapping, 0, MAGIC, VERSION, slots, room, offset, total, secrets.randbits(52) + 1, os.getpid()
            )
        except (OSError, OverflowError) as error:
            close_file(path, descriptor, os.getpid())
            if isinstance(error, OSError) and error.errno not in NO_SPACE:
                raise RingError(f"cannot make the frame ring {path}", found=error.strerror) from error
            raise RingNoSpace(f"no room for a frame ring of {total >> 20} MB in {folder}") from error
        return cls(path, descriptor, mapping, owner=True)

    @classmethod
    def attach(
        cls,
        path: Path | str,
        file_id: str,
        generation: int,
        *,
        folder: Path | None = None,
        largest: int | None = None,
        writable: bool = True,
    ) -> Ring:
        """Map another process's ring, as a `wire.SlotRef` names it.

        Args:
            path: of the file.
            file_id: device and inode that the reference states.
            generation: of the ring that the reference states.
            folder: where the file must lie, directly; None for the user's own.
            largest: bytes of the largest file taken; None for any.
            writable: False to look on only.

        Raises:
            RingStale: the file is gone or another one, or the generation differs.
            RingWrongFormat: no ring, another version, or outside the folder.
            RingWrongSize: sizes that contradict each other, or more than `largest`.
            UnsafeFile: a link, or another user's file, or open to others.
        """
        path = Path(path)
        folder = folder if folder is not None else default_folder()
        if path.parent != folder or path.suffix != ".ring":
            raise RingWrongFormat(f"not a frame ring of this server: {path}", expected=f"a .ring file in {folder}")
        try:
            descriptor = open_private(path, os.O_RDWR if writable else os.O_RDONLY)
        except FileNotFoundError as error:
            raise RingStale(f"the frame ring {path} is gone") from error
        except (OSError, ValueError) as error:
            raise RingError(f"cannot open the frame ring {path}", found=str(error)) from error
        try:
            total = check_file(path, descriptor, file_id, generation, largest)
            mapping = mmap.mmap(descriptor, total, access=mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ)
            bytes(memoryview(mapping)[::PAGE])  # all page faults now, none in the frames
        except (OSError, ValueError) as error:
            os.close(descriptor)
            raise RingError(f"cannot map the frame ring {path}", found=str(error)) from error
        except BaseException:
            os.close(descriptor)
            raise
        return cls(path, descriptor, mapping, owner=False)

    def close(self) -> None:
        """Let go of the mapping; the owner removes the file. Harmless when closed."""
        self._map = None
        self._closer()

    def __enter__(self) -> Ring:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # For both sides

    def state(self, slot: int) -> State:
        """In whose hand the slot is."""
        (number,) = STATE.unpack_from(self._mapping, self._entry(slot))
        if number > State.DONE:
            raise RingWrongFormat(f"slot {slot} has no known state", found=str(number))
        return State(number)

    def use(self, slot: int) -> int:
        """How often the slot was published or offered."""
        return int(USE.unpack_from(self._mapping, self._entry(slot) + 8)[0])

    def header(self, slot: int) -> FrameHeader | None:
        """The frame's header, None when the slot is empty."""
        entry = self._entry(slot)
        return unpack_header(self._mapping[entry : entry + SLOT_BYTES], self.slot_bytes)

    def pixels(self, slot: int, nbytes: int | None = None) -> memoryview:
        """The slot's memory as bytes; touch it only while the slot is in your hand."""
        self._entry(slot)
        start = self._offset + slot * self.slot_bytes
        return memoryview(self._mapping)[start : start + (self.slot_bytes if nbytes is None else nbytes)]

    # For the owner

    def acquire(self) -> int:
        """A free slot, now WRITING.

        Raises:
            RingNoSpace: every slot is in use.
        """
        for slot in range(self.slots):
            if self.state(slot) is State.FREE:
                self._move(slot, State.WRITING, State.FREE)
                return slot
        raise RingNoSpace(f"all {self.slots} slots of the frame ring are in use", hint=RingWrongState.default_hint)

    def publish(self, slot: int, header: FrameHeader) -> wire.SlotRef:
        """WRITING to READY: the frame in `pixels(slot)` is whole. The reference is for a message."""
        return self._hand_over(slot, header)

    def offer(self, slot: int) -> wire.SlotRef:
        """WRITING to READY without a frame: room for a result. The reference is for a message."""
        return self._hand_over(slot, None)

    def put(self, header: FrameHeader, pixels: Any) -> wire.SlotRef:
        """Copy a frame into a free slot and publish it.

        Args:
            header: what the frame is.
            pixels: anything with a contiguous buffer of `header.nbytes` bytes: bytes, array, numpy array.

        Raises:
            RingNoSpace: every slot is in use.
            RingWrongSize: the buffer has another size, gaps, or does not fit a slot.
        """
        try:
            source = memoryview(pixels).cast("B")
        except TypeError as error:
            raise RingWrongSize("the pixels are not one contiguous buffer", found=str(error)) from error
        if source.nbytes != header.nbytes or header.nbytes > self.slot_bytes:
            raise RingWrongSize(
                "the frame does not fit its slot",
                expected=f"{header.nbytes} bytes, at most {self.slot_bytes}",
                found=f"{source.nbytes} bytes",
            )
        slot = self.acquire()
        self.pixels(slot, header.nbytes)[:] = source
        return self.publish(slot, header)

    def result(self, reference: wire.SlotRef) -> tuple[FrameHeader | None, memoryview]:
        """Header and pixels of a DONE slot, read-only; valid until `release`. Header None: no result was written.

        Raises:
            RingWrongState: the server still has the slot.
            RingStale: the reference is to another ring or an earlier use.
        """
        self._check_reference(reference)
        self._check_state(reference.slot, State.DONE)
        header = self.header(reference.slot)
        return header, self.pixels(reference.slot, header.nbytes if header else 0).toreadonly()

    @contextmanager
    def view(self, reference: wire.SlotRef) -> Iterator[tuple[FrameHeader, memoryview]]:
        """The result in a DONE slot, read where it lies: nothing is copied, and the slot is FREE when the block ends.

        Copy what is to outlive the block; an array that was made of the view shows other frames later.

        Raises:
            RingNoResult: no result was written; the slot is FREE then too.
            RingWrongState, RingStale: as `result`; the slot is left as it was.
        """
        header, pixels = self.result(reference)
        try:
            if header is None:
                raise RingNoResult("the server wrote no result into the slot")
            yield header, pixels
        finally:
            self.release(reference.slot)

    def release(self, slot: int) -> None:
        """WRITING or DONE to FREE; a FREE slot stays so.

        Raises:
            RingWrongState: the slot is in the server's hand.
        """
        self._move(slot, State.FREE, State.WRITING, State.DONE, State.FREE)

    def reclaim(self, slot: int) -> None:
        """Any state to FREE: when its job has ended, the server answered `released`, or is gone."""
        self._move(slot, State.FREE, *State)

    # For the server

    def take(self, reference: wire.SlotRef) -> tuple[FrameHeader | None, memoryview]:
        """READY to BUSY: header and the frame's bytes, or None and the whole slot where room is offered.

        Raises:
            RingStale: the reference is to another ring or an earlier use.
            RingWrongState: the slot is not READY.
            RingWrongFormat, RingWrongSize: the header is wrong; the slot is left as it was.
        """
        self._check_reference(reference)
        self._check_state(reference.slot, State.READY)
        header = self.header(reference.slot)
        self._move(reference.slot, State.BUSY, State.READY)
        return header, self.pixels(reference.slot, header.nbytes if header else None)

    def finish(self, reference: wire.SlotRef, header: FrameHeader) -> None:
        """BUSY to DONE with the result that is in `pixels(reference.slot)`.

        Raises:
            RingWrongSize: the result is larger than the slot.
            RingStale, RingWrongState: its owner took the slot back meanwhile, and may use it for another frame.
        """
        self._hand_back(reference, header)

    def give_back(self, reference: wire.SlotRef) -> None:
        """BUSY to DONE without a result; raises as `finish`."""
        self._hand_back(reference, None)

    # Within

    @property
    def _mapping(self) -> mmap.mmap:
        if self._map is None:
            raise RingError("the frame ring is closed", hint="make a new one")
        return self._map

    def _entry(self, slot: int) -> int:
        if not 0 <= slot < self.slots:
            raise RingStale("no such slot", expected=f"0..{self.slots - 1}", found=str(slot))
        return PAGE + slot * SLOT_BYTES

    def _check_state(self, slot: int, *allowed: State) -> None:
        found = self.state(slot)
        if found not in allowed:
            names = " or ".join(state.name for state in allowed)
            raise RingWrongState(f"slot {slot} is in another hand", expected=names, found=found.name)

    def _check_reference(self, reference: wire.SlotRef) -> None:
        found = (self.file_id, self.generation, self.use(reference.slot))
        promised = (reference.file_id, reference.generation, reference.use)
        if found != promised:
            raise RingStale("the frame is not there any more", expected=str(promised), found=str(found))

    def _move(self, slot: int, to: State, *allowed: State) -> None:
        self._check_state(slot, *allowed)
        # one byte is one store; struct clears all four first, and the other side could take the slot for a free one
        self._mapping[self._entry(slot)] = to

    def _write_header(self, slot: int, header: FrameHeader | None) -> None:
        if header is not None and header.nbytes > self.slot_bytes:
            raise RingWrongSize(
                "the frame is larger than its slot", expected=f"at most {self.slot_bytes}", found=str(header.nbytes)
            )
        dtype, packed = pack_header(header) if header is not None else (0, EMPTY)
        entry = self._entry(slot)
        STATE.pack_into(self._mapping, entry + 4, dtype)
        self._mapping[entry + 16 : entry + SLOT_BYTES] = packed

    def _hand_back(self, reference: wire.SlotRef, header: FrameHeader | None) -> None:
        self._check_reference(reference)
        self._check_state(reference.slot, State.BUSY)
        self._write_header(reference.slot, header)
        self._move(reference.slot, State.DONE, State.BUSY)

    def _hand_over(self, slot: int, header: FrameHeader | None) -> wire.SlotRef:
        self._check_state(slot, State.WRITING)
        self._write_header(slot, header)
        use = self.use(slot) + 1
        USE.pack_into(self._mapping, self._entry(slot) + 8, use)
        self._move(slot, State.READY, State.WRITING)
        return wire.SlotRef(str(self.path), self.file_id, self.generation, slot, use)


def as_array(header: FrameHeader, pixels: memoryview) -> Any:
    """The pixels as a numpy array (height, width, channels) of float16 or float32, row 0 on top, without a copy.

    Imports numpy. The array is writable if the view is; a ring with the bottom row first gives a flipped view.
    """
    import numpy as np

    kind = "<f2" if header.dtype is FrameType.HALF else "<f4"
    array = np.frombuffer(pixels, kind, header.nbytes // header.dtype.size)
    array = array.reshape(header.height, header.width, len(header.channels))
    return array[::-1] if header.bottom_up else array
