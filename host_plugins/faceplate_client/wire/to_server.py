"""Messages from client to server."""

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
    SETTINGS,
    WORDS,
    choice,
    f,
    integer,
    many,
    maybe,
    nothing,
    number,
    record,
    text,
)
from .parts import FRAME_REF, Assignment, FrameForm, FrameRef, HoldOut, LayerWanted, MovieForm
from .registry import message

_ASSIGNMENTS = many(record(Assignment), 1000)
_PRIORITY = choice("interactive", "batch")
_DEADLINE = maybe(number(0.001, 1e9))
_MISSING = choice("error", "skip", "hold")
_HOLDOUT = maybe(record(HoldOut))
_MAYBE_PATH = maybe(PATH)
_MAYBE_NAME = maybe(NAME)
_MAYBE_RANGE = maybe(WORDS)


@message("hello", True)
@dataclass(frozen=True)
class Hello:
    """First message of a connection. `token` is the connection file's (checked on tcp, "" over ipc)."""

    protocol_min: int = f(COUNT)
    protocol_max: int = f(COUNT)
    client_name: str = f(NAME)
    client_version: str = f(NAME)
    token: str = f(text(200), default="")


@message("submit_frame", True)
@dataclass(frozen=True)
class SubmitFrame:
    """One frame. `output` None gives the result back in the plate's own slot; `frame` samples the keyed settings.

    `source` is the shot's pattern where the plate is a slot: its sidecar is used, or the one named by `faces`.
    `input_space` None lets the slot's header or the file say. `deadline_s` counts from the message's arrival.
    `form` is that of results in slots; None gives them as the plate came.
    """

    id: str = f(ID)
    frame: int = f(FRAME)
    plate: FrameRef = f(FRAME_REF)
    output: FrameRef | None = f(maybe(FRAME_REF))
    assignments: tuple[Assignment, ...] = f(_ASSIGNMENTS)
    settings: Mapping[str, tuple[tuple[int, float], ...]] = f(SETTINGS, default_factory=nothing)
    layers: tuple[LayerWanted, ...] = f(many(record(LayerWanted), 100), default=())
    engine: str = f(NAME, default="mesh")
    input_space: str | None = f(_MAYBE_NAME, default=None)
    source: str | None = f(_MAYBE_PATH, default=None)
    faces: str | None = f(_MAYBE_PATH, default=None)
    holdout: HoldOut | None = f(_HOLDOUT, default=None)
    project: str | None = f(_MAYBE_NAME, default=None)
    commercial: bool = f(BOOL, default=False)
    priority: str = f(_PRIORITY, default="interactive")
    deadline_s: float | None = f(_DEADLINE, default=None)
    form: FrameForm | None = f(maybe(record(FrameForm)), since=2, default=None)


@message("submit_range", True)
@dataclass(frozen=True)
class SubmitRange:
    """A range of files: `frames` as "1001-1100x2,1150", None for all; the rest as the command line has it."""

    id: str = f(ID)
    plate: str = f(PATH)
    output: str = f(PATH)
    frames: str | None = f(_MAYBE_RANGE)
    assignments: tuple[Assignment, ...] = f(_ASSIGNMENTS)
    settings: Mapping[str, tuple[tuple[int, float], ...]] = f(SETTINGS, default_factory=nothing)
    layers: tuple[str, ...] = f(many(NAME, 100), default=())
    engine: str = f(NAME, default="mesh")
    input_space: str | None = f(_MAYBE_NAME, default=None)
    faces: str | None = f(_MAYBE_PATH, default=None)
    holdout: HoldOut | None = f(_HOLDOUT, default=None)
    missing: str = f(_MISSING, default="error")
    analyse: Mapping[str, Any] = f(FACTS, default_factory=nothing)
    project: str | None = f(_MAYBE_NAME, default=None)
    commercial: bool = f(BOOL, default=False)
    priority: str = f(_PRIORITY, default="batch")
    deadline_s: float | None = f(_DEADLINE, default=None)
    movie: MovieForm | None = f(maybe(record(MovieForm)), since=2, default=None)


@message("submit_analyse", True)
@dataclass(frozen=True)
class SubmitAnalyse:
    """Find and track the faces of a shot; `sidecar` None writes it beside the plate.

    `pictures` is a folder for a picture of each track; None makes none.
    """

    id: str = f(ID)
    plate: str = f(PATH)
    frames: str | None = f(_MAYBE_RANGE)
    sidecar: str | None = f(_MAYBE_PATH, default=None)
    input_space: str | None = f(_MAYBE_NAME, default=None)
    missing: str = f(_MISSING, default="error")
    analyse: Mapping[str, Any] = f(FACTS, default_factory=nothing)
    priority: str = f(_PRIORITY, default="batch")
    deadline_s: float | None = f(_DEADLINE, default=None)
    pictures: str | None = f(_MAYBE_PATH, since=2, default=None)


@message("cancel", True)
@dataclass(frozen=True)
class Cancel:
    """Stop the job after its current frame. A job that has ended meanwhile gets no second end."""

    id: str = f(ID)


@message("status", True)
@dataclass(frozen=True)
class Status:
    """Ask how the server is."""

    id: str = f(ID)


@message("ping", True)
@dataclass(frozen=True)
class Ping:
    """Is anybody there?"""

    id: str = f(ID)


@message("release", True)
@dataclass(frozen=True)
class Release:
    """Let go of one slot, or with `slot` None of the whole ring; jobs that still need it end with "stale_slot"."""

    id: str = f(ID)
    path: str = f(PATH)
    file_id: str = f(text(64, 1))
    generation: int = f(COUNT)
    slot: int | None = f(maybe(integer(0, 65535)), default=None)


@message("stop", True)
@dataclass(frozen=True)
class Stop:
    """Ask the server to finish its current frames and exit."""

    id: str = f(ID)


@message("bye", True)
@dataclass(frozen=True)
class Bye:
    """The client closes; its jobs are cancelled and its rings let go. No answer."""


@message("list_identities", True, since=2)
@dataclass(frozen=True)
class ListIdentities:
    """Who is in a folder's .fpid files, and may they be used; answered by `identities`.

    `project` is what consent is checked against; `pictures` a folder for their thumbnails, None makes none.
    """

    id: str = f(ID)
    folder: str = f(PATH)
    project: str | None = f(_MAYBE_NAME, default=None)
    pictures: str | None = f(_MAYBE_PATH, default=None)


Submit = Union[SubmitFrame, SubmitRange, SubmitAnalyse]
