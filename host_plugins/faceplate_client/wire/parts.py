"""Parts of messages: frame references, people, devices, failures."""

# ruff: noqa: RUF009 - `f` is dataclasses.field with a codec

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from .fields import (
    BOOL,
    COUNT,
    FRAME,
    ID,
    NAME,
    PATH,
    POSITIVE,
    TRACK,
    WORDS,
    choice,
    either,
    f,
    integer,
    many,
    maybe,
    text,
)

CODES = (
    "malformed",
    "unknown_message",
    "unsupported_version",
    "unauthorised",
    "limit",
    "input",
    "not_found",
    "forbidden_path",
    "stale_slot",
    "ring",
    "deadline",
    "busy",
    "device",
    "resource",
    "stopping",
    "internal",
)
STATES = ("done", "no face", "held", "skipped", "failed")
"""How a frame ended."""


@dataclass(frozen=True)
class SlotRef:
    """A slot of a ring: `path` and `file_id` ("device:inode") are its file, `generation` its ring, `use` its frame.

    As an input the slot is READY and holds a frame; as an output it is READY and empty, and the server fills it.
    """

    path: str = f(PATH)
    file_id: str = f(text(64, 1))
    generation: int = f(COUNT)
    slot: int = f(integer(0, 65535))
    use: int = f(COUNT)


@dataclass(frozen=True)
class FileRef:
    """A frame of a sequence, or a lone file (`frame` None); the server opens it itself, inside its allowed roots."""

    pattern: str = f(PATH)
    frame: int | None = f(maybe(FRAME), default=None)


FrameRef = Union[SlotRef, FileRef]
FRAME_REF = either("kind", {"slot": SlotRef, "file": FileRef})


@dataclass(frozen=True)
class Assignment:
    """Who becomes whom: `identity` is the path of a .fpid file, `track` a track id, "main" or "all"."""

    identity: str = f(PATH)
    track: int | str = f(TRACK, default="main")


@dataclass(frozen=True)
class LayerWanted:
    """A layer beside the beauty; `output` None puts it into the result's own file."""

    name: str = f(NAME)
    output: FrameRef | None = f(maybe(FRAME_REF), default=None)


@dataclass(frozen=True)
class LayerMade:
    """A layer that was delivered, and where."""

    name: str = f(NAME)
    output: FrameRef = f(FRAME_REF)


@dataclass(frozen=True)
class HoldOut:
    """A matte of what must stay the plate; `layer` "" takes alpha, else the first channel."""

    matte: FrameRef = f(FRAME_REF)
    layer: str = f(text(200), default="")


@dataclass(frozen=True)
class Device:
    """A device that the server works on; `provider` is what runs the nets, `memory_mb` None where unknown."""

    name: str = f(NAME)
    kind: str = f(NAME)
    provider: str = f(NAME)
    memory_mb: float | None = f(maybe(POSITIVE), default=None)
    used_mb: float | None = f(maybe(POSITIVE), default=None)


@dataclass(frozen=True)
class Limits:
    """What the server takes: bytes of a message and of a frame, slots of a ring, clients, jobs of one client."""

    message_bytes: int = f(COUNT)
    frame_bytes: int = f(COUNT)
    slots: int = f(COUNT)
    clients: int = f(COUNT)
    jobs: int = f(COUNT)


@dataclass(frozen=True)
class Failure:
    """Why one frame failed: as `Error`, without a job."""

    code: str = f(choice(*CODES))
    type: str = f(NAME)
    message: str = f(WORDS)
    expected: str | None = f(maybe(WORDS), default=None)
    found: str | None = f(maybe(WORDS), default=None)
    hint: str | None = f(maybe(WORDS), default=None)


@dataclass(frozen=True)
class JobState:
    """One job in the queue or at work."""

    id: str = f(ID)
    kind: str = f(choice("frame", "range", "analyse"))
    state: str = f(choice("queued", "running"))
    priority: str = f(choice("interactive", "batch"))
    done: int = f(COUNT)
    total: int = f(COUNT)
    client: str = f(NAME)


@dataclass(frozen=True)
class FrameForm:
    """How a host takes results in slots; what the plate has more of is left out, alpha that it lacks is 1.

    `colour_space` None leaves the plate's own.
    """

    channels: tuple[str, ...] = f(many(choice("R", "G", "B", "A"), 4))
    dtype: str = f(choice("half", "float"))
    bottom_up: bool = f(BOOL)
    colour_space: str | None = f(maybe(NAME), default=None)


@dataclass(frozen=True)
class MovieForm:
    """How a movie is read and written, in the words of the command line; None is what the plate's file says.

    `deferred` makes the frames and leaves the movie to a later job.
    """

    codec: str | None = f(maybe(NAME), default=None)
    alpha: str = f(choice("straight", "premultiplied"), default="straight")
    rate: str | None = f(maybe(NAME), default=None)
    colour_space: str | None = f(maybe(NAME), default=None)
    matrix: str | None = f(maybe(NAME), default=None)
    range: str | None = f(maybe(NAME), default=None)
    failed: str = f(choice("none", "plate"), default="none")
    deferred: bool = f(BOOL, default=False)


@dataclass(frozen=True)
class TrackFound:
    """A face of a shot: `frames` of `first`..`last` show it, `weak` of them are filled, unsure or turned far.

    `picture` is a PNG of the face in frame `best`, None where none was asked for.
    """

    id: int = f(COUNT)
    label: str = f(text(200))
    first: int = f(FRAME)
    last: int = f(FRAME)
    frames: int = f(COUNT)
    weak: int = f(COUNT)
    width_px: float = f(POSITIVE)
    best: int = f(FRAME)
    picture: str | None = f(maybe(PATH))


@dataclass(frozen=True)
class Person:
    """An identity file: `state` says what its consent record means today, `text` says it in words.

    "valid" and "none" (no record) can be used, "refused" cannot; an "unreadable" file has the reason as text.
    """

    path: str = f(PATH)
    name: str = f(text(200))
    state: str = f(choice("valid", "none", "refused", "unreadable"))
    text: str = f(WORDS)
    picture: str | None = f(maybe(PATH))
