"""The effect that is seen at once: one frame to the server and back, from pixels to pixels over shared memory.

Made for render callbacks, where an exception would be swallowed and the last frame's picture be written again: a frame
never raises. What fails shows the slate and is listed. The next frame tries again, also with a server that was
restarted meanwhile.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from . import slate, wire
from .client import Client, Timeouts
from .connection import find
from .errors import CannotDo, ClientError, ConnectionFailed, RequestTimeout, ServerError, TimedOut
from .frame_maths import keys_to_source
from .host import Clip, Feature, Host
from .job_record import Recipe
from .slot_header import FrameHeader, FrameType
from .slots import Ring
from .task import Servers

_SLOTS = 2
_NEEDED = re.compile(r"at least (\d+) bytes")
"""What a server expects of a slot that is too small for its result."""


@dataclass(frozen=True)
class LiveFrame:
    """How one live frame ended.

    Attributes:
        frame: of the timeline.
        state: "done", "no face" or "failed".
        error: why it failed.
        notes: what the server had to say.
        facts: of the server, e.g. "faces_from".
        ms: time by step: "host in", "server", "transport" (message and wait beyond the server's own time), "host out".
    """

    frame: int
    state: str
    error: ClientError | None = None
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    ms: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))


class Live:
    """A live effect on one clip or node. May be called from the threads that a host renders in, one call at a time.

    Args:
        host: the application, with PIXELS_OUT.
        servers: which server; it is not started in mid-render, whatever they say.
        recipe: what to make; its layers, handles and bake do not matter.
        sidecar: what analysis found of the clip's source; None looks at each frame alone, or uses the sidecar beside
            the source.
        frame_s: seconds that one frame may take.

    Raises:
        CannotDo: the host shows no pixels.
    """

    def __init__(
        self, host: Host, servers: Servers, recipe: Recipe, *, sidecar: Path | None = None, frame_s: float = 120.0
    ) -> None:
        about = host.about()
        if Feature.PIXELS_OUT not in about.features:
            raise CannotDo(f"{about.name} shows no pixels from memory", hint="process the range instead")
        self.recipe = recipe
        self.sidecar = sidecar
        self.failed: dict[int, str] = {}
        self.frames = 0
        self._host = host
        self._about = about
        self._servers = servers
        self._frame_s = frame_s
        self._desks = threading.local()
        self._least = 0
        self._slate: tuple[FrameHeader, memoryview] | None = None

    def frame(self, clip: Clip, frame: int) -> LiveFrame:
        """Show the effect for a timeline frame: on success the result, else the slate. Never raises a ClientError."""
        clock = _Clock()
        self.frames += 1
        self.failed.pop(frame, None)
        try:
            return self._show_in_room(clip, frame, clock)
        except ClientError as error:
            self._close_desk(error)
            return self._fail(clip, frame, error)

    def close(self) -> None:
        """Let go of this thread's connection and shared memory; other threads' go when those end."""
        desk: _Desk | None = getattr(self._desks, "desk", None)
        if desk is not None:
            desk.close()
            self._desks.desk = None

    def _desk(self) -> _Desk:
        desk: _Desk | None = getattr(self._desks, "desk", None)
        if desk is None:
            desk = self._desks.desk = _Desk(self._servers, f"{self._about.name} live")
        return desk

    def _close_desk(self, error: ClientError) -> None:
        """A connection or slots in doubt are given up; a frame that was refused leaves them whole."""
        if isinstance(error, (ConnectionFailed, TimedOut)) or getattr(error, "code", "") in ("ring", "stale_slot"):
            self.close()

    def _fail(self, clip: Clip, frame: int, error: ClientError) -> LiveFrame:
        self.failed[frame] = str(error)
        try:
            layout = self._result_form(clip)
            if self._slate is None or self._slate[0] != layout:
                pixels = memoryview(bytearray(layout.nbytes))
                slate.fill(layout, pixels)
                self._slate = layout, pixels.toreadonly()
            self._host.show_pixels(clip, *self._slate)
        except ClientError as second:
            # the host shows nothing at all: the list has both reasons
            self.failed[frame] = f"{error}; {second}"
        return LiveFrame(frame, "failed", error)

    def _result_form(self, clip: Clip) -> FrameHeader:
        """How the host takes the result, in the size of the clip where that is known."""
        layout = self._host.result_layout(clip)
        if clip.size == (0, 0):
            return layout
        width, height = clip.size
        return replace(layout, width=width, height=height, data_window=None, display_window=None)

    def _show_in_room(self, clip: Clip, frame: int, clock: _Clock) -> LiveFrame:
        """A frame that is larger than the clip, or whose size the host does not know yet, is asked for again."""
        try:
            return self._show(clip, frame, clock)
        except ServerError as error:
            needed = _NEEDED.fullmatch(error.expected or "") if error.code == "ring" else None
            if needed is None or int(needed[1]) <= self._least:
                raise
            self._least = int(needed[1])
            return self._show(clip, frame, clock)

    def _show(self, clip: Clip, frame: int, clock: _Clock) -> LiveFrame:
        form = self._result_form(clip)
        if not clip.needs_bake:
            return self._ask(clip, frame, form, None, clock)
        if not clip.has_pixels or Feature.PIXELS_IN not in self._about.features:
            raise CannotDo(
                f"{clip.name!r} has neither a source file that the server could read nor pixels to send",
                found=clip.processed or None,
                hint="process the range instead: the host renders the clip first",
            )
        return self._ask(clip, frame, form, self._host.layout(clip), clock)

    def _ask(self, clip: Clip, frame: int, form: FrameHeader, given: FrameHeader | None, clock: _Clock) -> LiveFrame:
        """Send a frame and show its result; `given` is the layout of the host's own pixels, None reads the source."""
        desk = self._desk()
        largest = max(form.nbytes, given.nbytes if given is not None else 0, self._least)
        ring = desk.ring_of(largest)
        plate: wire.FrameRef
        held = []
        try:
            if given is None:
                plate = wire.FileRef(clip.source, clip.times.to_source(frame))
            else:
                held.append(ring.acquire())
                self._host.read_pixels(clip, ring.pixels(held[-1], given.nbytes))
                plate = ring.publish(held[-1], replace(given, frame=frame))
            held.append(ring.acquire())
            room = ring.offer(held[-1])
            clock.lap("host in")
            end, notes = desk.result(self._message(desk, clip, frame, form, plate, room), self._frame_s)
            clock.lap("transport")
            with ring.view(room) as (header, pixels):
                self._host.show_pixels(clip, header, pixels)
            clock.lap("host out")
        finally:
            for slot in held:
                desk.free(slot)
        server = end.timings_ms.get("total", 0.0)
        clock.ms["server"] = server
        clock.ms["transport"] = max(0.0, clock.ms["transport"] - server)
        return LiveFrame(frame, end.state, None, notes, end.facts, clock.ms)

    def _message(
        self, desk: _Desk, clip: Clip, frame: int, form: FrameHeader, plate: wire.FrameRef, room: wire.SlotRef
    ) -> wire.SubmitFrame:
        recipe, from_file = self.recipe, isinstance(plate, wire.FileRef)
        settings = dict(recipe.settings)
        number = frame
        if from_file:
            number = clip.times.to_source(frame)
            settings = {name: keys_to_source(keys, clip.times) for name, keys in settings.items()}
        holdout = None
        if recipe.holdout is not None:
            holdout = wire.HoldOut(wire.FileRef(recipe.holdout[0], number), recipe.holdout[1])
        return wire.SubmitFrame(
            id=desk.next_id(),
            frame=number,
            plate=plate,
            output=room,
            assignments=recipe.assignments,
            settings=settings,
            engine=recipe.engine,
            input_space=(recipe.input_space or clip.colour_space) if from_file else None,
            faces=None if self.sidecar is None else str(self.sidecar),
            holdout=holdout,
            project=recipe.project,
            commercial=recipe.commercial,
            form=wire.FrameForm(
                form.channels,
                "half" if form.dtype is FrameType.HALF else "float",
                form.bottom_up,
                form.colour_space or None,
            ),
        )


class _Clock:
    def __init__(self) -> None:
        self.ms: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, step: str) -> None:
        now = time.perf_counter()
        self.ms[step] = (now - self._last) * 1e3
        self._last = now


class _Desk:
    """One thread's connection and ring, kept from frame to frame: a new mapping costs more than the copy into it."""

    def __init__(self, servers: Servers, name: str) -> None:
        self.client = Client(lambda: find(servers.place), name, Timeouts(reconnect_s=1.0))
        self.ring: Ring | None = None
        self._folder = servers.place.folder
        self._number = 0

    def next_id(self) -> str:
        """A request's name that is never used again."""
        self._number += 1
        return f"live-{id(self):x}-{time.monotonic_ns():x}-{self._number}"

    def ring_of(self, nbytes: int) -> Ring:
        """The ring, made anew when its slots are too small."""
        if self.ring is not None and self.ring.slot_bytes < nbytes:
            self.client.release(self.ring)
            self.ring.close()
            self.ring = None
        if self.ring is None:
            self.ring = Ring.create(_SLOTS, nbytes, self._folder)
        return self.ring

    def result(self, message: wire.SubmitFrame, seconds: float) -> tuple[wire.FrameResult, tuple[str, ...]]:
        """The end of a frame job, and the notes before it."""
        notes = []
        for event in self.client.events(self.client.submit(message), seconds):
            if isinstance(event, wire.Note):
                notes.append(event.text)
            elif isinstance(event, wire.FrameResult):
                return event, tuple(notes)
        raise RequestTimeout("the frame was cancelled on the server", hint="render the frame again")

    def free(self, slot: int) -> None:
        """The job has ended, or its connection is closed: the slot is ours again."""
        if self.ring is not None:
            self.ring.reclaim(slot)

    def close(self) -> None:
        """Give up connection and ring; the server lets go of both by itself."""
        self.client.close()
        if self.ring is not None:
            self.ring.close()
            self.ring = None
