"""Messages from server to client."""

# ruff: noqa: RUF009 - `f` is dataclasses.field with a codec

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Union

from .fields import (
    BOOL,
    COUNT,
    FACTS,
    FRAME,
    ID,
    NAME,
    PATH,
    POSITIVE,
    SECONDS,
    WORDS,
    choice,
    f,
    many,
    maybe,
    nothing,
    record,
    table,
)
from .parts import CODES, FRAME_REF, STATES, Device, Failure, FrameRef, JobState, LayerMade, Limits, Person, TrackFound
from .registry import message

_MAYBE_PATH = maybe(PATH)


@message("welcome", False)
@dataclass(frozen=True)
class Welcome:
    """Answer to hello: the protocol chosen for this connection, who the server is and what it can do."""

    protocol: int = f(COUNT)
    protocol_min: int = f(COUNT)
    protocol_max: int = f(COUNT)
    server_version: str = f(NAME)
    instance: str = f(ID)
    engines: tuple[str, ...] = f(many(NAME, 1000))
    devices: tuple[Device, ...] = f(many(record(Device), 1000))
    limits: Limits = f(record(Limits))
    roots: tuple[str, ...] = f(many(PATH, 1000), default=())


@message("accepted", False)
@dataclass(frozen=True)
class Accepted:
    """The job is in the queue; `ahead` jobs go first."""

    id: str = f(ID)
    ahead: int = f(COUNT)


@message("progress", False)
@dataclass(frozen=True)
class Progress:
    """How far a job is, in frames of `step`; `remaining_s` None while unknown."""

    id: str = f(ID)
    step: str = f(NAME)
    done: int = f(COUNT)
    total: int = f(COUNT)
    frame: int | None = f(maybe(FRAME), default=None)
    remaining_s: float | None = f(maybe(POSITIVE), default=None)


@message("partial", False)
@dataclass(frozen=True)
class Partial:
    """One frame of a range has ended; the job goes on. `error` is there when `state` is "failed"."""

    id: str = f(ID)
    frame: int = f(FRAME)
    state: str = f(choice(*STATES))
    output: FrameRef | None = f(maybe(FRAME_REF), default=None)
    error: Failure | None = f(maybe(record(Failure)), default=None)
    facts: Mapping[str, Any] = f(FACTS, default_factory=nothing)
    timings_ms: Mapping[str, float] = f(SECONDS, default_factory=nothing)


@message("frame_result", False)
@dataclass(frozen=True)
class FrameResult:
    """Ends a frame job: where the result is, what was found in the frame, what it cost."""

    id: str = f(ID)
    frame: int = f(FRAME)
    state: str = f(choice(*STATES))
    output: FrameRef = f(FRAME_REF)
    layers: tuple[LayerMade, ...] = f(many(record(LayerMade), 100), default=())
    facts: Mapping[str, Any] = f(FACTS, default_factory=nothing)
    timings_ms: Mapping[str, float] = f(SECONDS, default_factory=nothing)


@message("done", False)
@dataclass(frozen=True)
class Done:
    """Ends a range or analyse job: frames by how they ended, the job folder, the sidecar.

    `tracks` of an analysis; `colour_space` of a range's results, and its colorInteropID where it has one.
    """

    id: str = f(ID)
    counts: Mapping[str, int] = f(table(COUNT))
    folder: str | None = f(_MAYBE_PATH, default=None)
    sidecar: str | None = f(_MAYBE_PATH, default=None)
    tracks: tuple[TrackFound, ...] = f(many(record(TrackFound), 1000), since=2, default=())
    colour_space: str | None = f(maybe(NAME), since=2, default=None)
    interop_id: str | None = f(maybe(NAME), since=2, default=None)


@message("cancelled", False)
@dataclass(frozen=True)
class Cancelled:
    """Ends a job that was cancelled; `finished` frames are kept."""

    id: str = f(ID)
    finished: int = f(COUNT)


@message("status_reply", False)
@dataclass(frozen=True)
class StatusReply:
    """How the server is: `nets` are warm; `memory_mb` is the process's."""

    id: str = f(ID)
    instance: str = f(ID)
    pid: int = f(COUNT)
    uptime_s: float = f(POSITIVE)
    memory_mb: float = f(POSITIVE)
    clients: int = f(COUNT)
    frames_done: int = f(COUNT)
    devices: tuple[Device, ...] = f(many(record(Device), 1000))
    nets: tuple[str, ...] = f(many(NAME, 1000))
    jobs: tuple[JobState, ...] = f(many(record(JobState), 1000))


@message("pong", False)
@dataclass(frozen=True)
class Pong:
    """Answer to ping, at any load; `ready` is false while the server still starts."""

    id: str = f(ID)
    instance: str = f(ID)
    ready: bool = f(BOOL)


@message("released", False)
@dataclass(frozen=True)
class Released:
    """The server touches the slot, or the ring, no more."""

    id: str = f(ID)


@message("stopping", False)
@dataclass(frozen=True)
class Stopping:
    """The server takes no more jobs and exits."""

    id: str = f(ID)


@message("error", False)
@dataclass(frozen=True)
class Error:
    """Answers a request or ends a job; `id` None where the request could not be read.

    `code` is one of CODES; `type` the server's error class, for logs; `hint` the artist's next step.
    """

    id: str | None = f(maybe(ID))
    code: str = f(choice(*CODES))
    type: str = f(NAME)
    message: str = f(WORDS)
    expected: str | None = f(maybe(WORDS), default=None)
    found: str | None = f(maybe(WORDS), default=None)
    hint: str | None = f(maybe(WORDS), default=None)


@message("note", False, since=2)
@dataclass(frozen=True)
class Note:
    """What a person should know of a job that goes on: `level` "warning" is worth a look, "note" is not."""

    id: str = f(ID)
    level: str = f(choice("note", "warning"))
    text: str = f(WORDS)


@message("identities", False, since=2)
@dataclass(frozen=True)
class Identities:
    """Answer to `list_identities`, by name."""

    id: str = f(ID)
    people: tuple[Person, ...] = f(many(record(Person), 1000))


End = Union[FrameResult, Done, Cancelled]
Event = Union[Progress, Partial, Note, FrameResult, Done, Cancelled]
"""What a client is told of its job; an Error is raised instead."""
ENDS = (FrameResult, Done, Cancelled, Error)
"""Exactly one of these ends a job."""
