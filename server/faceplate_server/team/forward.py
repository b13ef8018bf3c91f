"""One job of a host, done by the team server: sent, watched, and its results put where the host expects them."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from faceplate.errors import Cancelled, OutputBusyError, ResourceError
from faceplate.jobs.lock import job_lock
from faceplate.jobs.output import make_folder
from faceplate.jobs.spec import job_folder
from faceplate.media.atomic import check_writable, output_error
from faceplate_client import wire
from faceplate_client.slot_header import SLOT_BYTES, FrameHeader, pack_header, unpack_header

from ..errors import Refused
from ..frames.bridge import Slot, SlotsOfJob
from ..jobs import Job
from ..rings import RingTable
from . import link
from .arriving import Arriving
from .parcel import Packer, Parcel
from .rewrite import FRAME, ROOM, rewritten, slot_mark
from .streams import Sink, file_source, frame_source
from .upstream_line import Channel, LinkLost
from .upstream_link import UpstreamLink

log = logging.getLogger(__name__)

_POLL_S = 0.05
_FRAME_AGAIN_S, _SHOT_AGAIN_S = 15.0, 120.0
"""How long a job waits for a lost connection to come back, before it is given up: somebody waits for a frame."""
_LAST_WORDS_S = 10.0
"""How long a cancelled range waits for the frames that were at work."""
_BUSY_S, _BUSY_PAUSE_S = 20.0, 0.5
"""How long a job that is sent again waits for its first try to let go of the output, on storage that both see."""

Tell = Callable[[Job, Any], None]


class Forward:
    """One job on its way. Lives as long as the job.

    Args:
        job: of a host.
        line: to the team server.
        packer: decides about files.
        rings: of the hosts.
        colour: fingerprint of this machine's OCIO configuration.
        tell: takes the job's messages.
        patience_s: how long the first connection may take.
    """

    def __init__(
        self,
        job: Job,
        line: UpstreamLink,
        packer: Packer,
        rings: RingTable,
        colour: str,
        tell: Tell,
        patience_s: float,
    ) -> None:
        self.job = job
        self._line = line
        self._packer = packer
        self._slots = SlotsOfJob(rings)
        self._colour = colour
        self._tell = tell
        self._patience = patience_s
        self._inputs: list[Slot] = []
        self._rooms: list[Slot] = []

    def run(self) -> Any:
        """Do the job; its last message.

        Raises:
            Cancelled: it was stopped.
            Refused, FaceplateError, ClientError: it cannot be done.
        """
        try:
            self.pack()  # what is wrong with the job's files is said before a folder is made
            with self._holding_output():
                self._take_slots()
                return self._twice()
        finally:
            self._slots.give_back()

    def _twice(self) -> Any:
        """A job whose connection was cut is sent once more: frames have no effect before their end, ranges go on."""
        try:
            return self._once(self._patience)
        except LinkLost:
            self.job.token.check()
            log.warning("job %s of %s is sent again: the connection was lost", self.job.id, self.job.client)
        frame = isinstance(self.job.message, wire.SubmitFrame)
        busy_until = time.monotonic() + _BUSY_S
        try:
            while True:
                end = self._once(_FRAME_AGAIN_S if frame else _SHOT_AGAIN_S)
                busy = isinstance(end, wire.Error) and end.type == OutputBusyError.__name__
                if not busy or time.monotonic() > busy_until:
                    return end
                self.job.token.check()
                time.sleep(_BUSY_PAUSE_S)  # the first try still ends there
        except LinkLost:
            self.job.token.check()
            raise ResourceError(
                f"the connection to the team server at {self._line.team.address} was cut twice during the job",
                hint="send the job again: finished frames of a range are kept",
            ) from None

    def _once(self, patience: float) -> Any:
        identifier = secrets.token_hex(6)
        channel = self._line.channel(identifier, patience, lambda: self.job.token.is_cancelled)
        try:
            return _Attempt(self, channel, identifier).run()
        finally:
            channel.close()

    # What the job holds here

    @contextlib.contextmanager
    def _holding_output(self) -> Iterator[None]:
        """The job folder's lock, where the results of a range are written by this machine."""
        message = self.job.message
        if not isinstance(message, wire.SubmitRange) or self._packer.paths.there(message.output) is not None:
            yield
            return
        self._packer.roots.check(message.output)
        folder = job_folder(message.output)
        make_folder(folder)
        for place in (folder.parent, folder):
            check_writable(place)
        with job_lock(folder):
            yield

    def _take_slots(self) -> None:
        message = self.job.message
        if not isinstance(message, wire.SubmitFrame):
            return
        holdout = None if message.holdout is None else message.holdout.matte
        for reference in (message.plate, holdout):
            if isinstance(reference, wire.SlotRef):
                self._inputs.append(self._slots.take(reference))
        for reference in (message.output, *(layer.output for layer in message.layers)):
            if isinstance(reference, wire.SlotRef):
                self._rooms.append(self._slots.take(reference))

    def marked(self, reference: wire.SlotRef) -> wire.SlotRef:
        """A slot of the submission as the link has it."""
        for kind, slots in ((FRAME, self._inputs), (ROOM, self._rooms)):
            for place, slot in enumerate(slots):
                if slot.reference == reference:
                    return slot_mark(kind, place)
        raise Refused("ring", "a slot of the job is of no use for it")

    def slot_head(self) -> dict[str, Any]:
        """The fields of the `job` head that are about slots."""
        frames = []
        for slot in self._inputs:
            if slot.header is None:
                raise Refused("ring", "a slot holds no frame", hint="publish the frame before the job is sent")
            header = link.header_text(*pack_header(slot.header))
            room = slot.ring.slot_bytes if self.is_in_place(slot) else slot.header.nbytes
            frames.append([room, slot.header.nbytes, header])
        rooms = [slot.ring.slot_bytes for slot in self._rooms]
        return {"frames": frames, "rooms": rooms, "colour": self._colour}

    def is_in_place(self, slot: Slot) -> bool:
        """Whether the result goes into the plate's own slot."""
        return self.job.message.output is None and slot.reference == self.job.message.plate

    def inputs(self) -> list[Slot]:
        """Slots with frames, in the order of the `job` head."""
        return self._inputs

    def target(self, place: int) -> Slot:
        """The slot of a result: 0 the picture, then the layers in the order of the submission.

        Raises:
            Refused: the job has no such result.
        """
        message = self.job.message
        layers = [layer.output for layer in message.layers]
        references = [message.plate if message.output is None else message.output, *layers]
        wanted = references[place] if place < len(references) else None
        slot = next((one for one in (*self._inputs, *self._rooms) if one.reference == wanted), None)
        if slot is None:
            raise Refused("ring", "the team server sends a picture that the job does not make")
        return slot

    def finish(self, slot: Slot, header: FrameHeader, pixels: bytearray) -> None:
        """Put a result into its slot and hand that back."""
        slot.ring.pixels(slot.reference.slot, header.nbytes)[:] = pixels
        self._slots.finish(slot, header)

    def pack(self) -> Parcel:
        """The parcel of the job as its files are now."""
        return self._packer.pack(self.job.message)

    def place(self, parcel: Parcel, name: str) -> Path:
        """Where a file that comes back belongs."""
        return parcel.place(name, self._packer.roots)

    def tell(self, message: Any) -> None:
        """Tell the host."""
        self._tell(self.job, message)

    def localised(self, body: bytes) -> Any:
        """A message of the team server, its shared paths as this machine has them."""
        return wire.decode(self._packer.paths.here(body))


class _Attempt:
    """One try of a job over one connection."""

    def __init__(self, forward: Forward, channel: Channel, identifier: str) -> None:
        self._forward = forward
        self._job = forward.job
        self._channel = channel
        self._id = identifier
        self._parcel = forward.pack()
        self._frames: dict[int, tuple[Sink, bytearray]] = {}
        self._files: dict[int, Arriving] = {}
        self._results: list[tuple[Slot, FrameHeader, bytearray]] = []
        self._end_by: float | None = None
        self._begun = False

    @property
    def _urgent(self) -> bool:
        return self._job.interactive

    def run(self) -> Any:
        self._submit()
        try:
            while True:
                self._look_at_token()
                found = self._channel.get(_POLL_S)
                if found is None:
                    continue
                end = self._take(*found)
                if end is not None:
                    return end
        finally:
            for one in self._files.values():
                one.drop()

    def _submit(self) -> None:
        message = dataclasses.replace(
            self._parcel.message, id=self._id, deadline_s=None if self._job.due is None else self._left()
        )
        message = rewritten(message, str, self._forward.marked)
        head = {"id": self._id, **self._parcel.head(), **self._forward.slot_head()}
        try:
            parts = link.encode("job", head, wire.encode(message))
        except wire.Malformed as error:
            hint = "shorten the range, or use shared storage ([paths])"
            raise Refused("limit", error.message, expected=error.expected, found=error.found, hint=hint) from error
        self._channel.put(parts, urgent=self._urgent)
        for place, slot in enumerate(self._forward.inputs()):
            assert slot.header is not None
            stride = len(slot.header.channels) * slot.header.dtype.size
            memory = slot.memory[: slot.header.nbytes]
            self._channel.put(frame_source(self._id, place, memory, stride, ""), urgent=self._urgent)

    def _left(self) -> float:
        assert self._job.due is not None
        return max(0.001, self._job.due - time.monotonic())

    def _look_at_token(self) -> None:
        """A job that was stopped: a frame ends here at once, a range when its frames at work are through."""
        if not self._job.token.is_cancelled:
            return
        if self._end_by is None:
            self._end_by = time.monotonic() + _LAST_WORDS_S
            self._channel.say(link.encode("say", None, wire.encode(wire.Cancel(self._id))))
        begun = isinstance(self._job.message, wire.SubmitRange) and self._begun
        if not begun or time.monotonic() > self._end_by:
            raise Cancelled("stopped")

    def _take(self, kind: str, head: dict[str, Any], body: bytes) -> Any:
        if kind == "want":
            blobs = self._parcel.blobs()
            for content in head["hashes"]:
                if content not in blobs:
                    raise Refused("input", "the team server asks for a file that is not the job's")
                path = blobs[content]
                source = file_source(self._id, "blob", path, path.stat().st_size, content=content)
                self._channel.put(source, urgent=self._urgent)
        elif kind == "open":
            self._open(head)
        elif kind == "data":
            self._data(head, body)
        else:
            return self._said(self._forward.localised(body))
        return None

    # Streams

    def _open(self, head: dict[str, Any]) -> None:
        if head["what"] == "frame":
            slot = self._forward.target(head["place"])
            if not 0 < head["size"] <= slot.ring.slot_bytes:
                found = f"{head['size']} bytes"
                hint = "make the frame ring with larger slots"
                raise Refused("ring", "the result does not fit its slot", found=found, hint=hint)
            memory = bytearray(head["size"])
            self._frames[head["stream"]] = Sink(head, room=memoryview(memory)), memory
            return
        target = self._forward.place(self._parcel, head["path"])
        make_folder(target.parent)
        arriving = Arriving(target, head)
        if head["size"]:
            self._files[head["stream"]] = arriving
        else:
            arriving.finish()

    def _data(self, head: dict[str, Any], body: bytes) -> None:
        stream = head["stream"]
        try:
            if stream in self._frames:
                sink, memory = self._frames[stream]
                if sink.take(head["code"], body, head["size"]):
                    del self._frames[stream]
                    self._frame_arrived(sink, memory)
            elif stream in self._files and self._files[stream].sink.take(head["code"], body, head["size"]):
                self._files.pop(stream).finish()
        except OSError as error:
            raise output_error(self._files[stream].target, error) from error
        finally:
            self._channel.answer(body)

    def _frame_arrived(self, sink: Sink, memory: bytearray) -> None:
        header = unpack_header(link.header_bytes(sink.head["header"], SLOT_BYTES), len(memory))
        if header is None or header.nbytes != len(memory):
            raise Refused("ring", "the team server's picture does not fit its header")
        self._results.append((self._forward.target(sink.head["place"]), header, memory))

    # What the team server says

    def _said(self, message: Any) -> Any:
        job = self._job
        self._begun = True
        if isinstance(message, wire.Error):
            return dataclasses.replace(message, id=job.id)
        if isinstance(message, wire.FrameResult):
            return self._frame_result(message)
        if isinstance(message, wire.Partial):
            if message.state in ("done", "no face", "held"):
                job.done += 1
        elif isinstance(message, wire.Progress) and message.total:
            job.total = max(job.total, message.total)
        message = dataclasses.replace(message, id=job.id)
        if isinstance(message, wire.ENDS):
            return message
        self._forward.tell(message)
        return None

    def _frame_result(self, message: wire.FrameResult) -> wire.FrameResult:
        asked = self._job.message
        for slot, header, memory in self._results:
            self._forward.finish(slot, header, memory)
        output = asked.output if asked.output is not None else asked.plate
        layers = tuple(
            wire.LayerMade(one.name, one.output if one.output is not None else output) for one in asked.layers
        )
        return dataclasses.replace(message, id=self._job.id, output=output, layers=layers)
