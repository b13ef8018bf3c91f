"""What client and server say to each other: one closed table of tagged messages, and their JSON bytes.

A message travels as one ZeroMQ frame: a JSON object in UTF-8 with `v` (protocol version), `t` (type) and every field of
the type, none missing, none more. Numbers are finite. `hello`, `welcome` and `error` keep the form of version 1 for
ever, so that two sides of different age can tell each other that they do not fit. Pixels never travel here: a frame
reference names a slot of a frame ring (`slots.py`) or a file that the server opens itself.

This file imports the standard library alone and is the same on both sides. Field names with a unit end in it
(`deadline_s`, `total_ms`, `memory_mb`). Paths are absolute; bytes of a path that are no UTF-8 travel as the lone
surrogates U+DC80 to U+DCFF (Python's surrogateescape).
"""

# ruff: noqa: RUF009 - `_f` is dataclasses.field with a codec

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Callable, ClassVar, NoReturn, TypeVar, Union

PROTOCOL_MIN = 1
PROTOCOL_MAX = 1
MAX_BYTES = 1 << 20
"""Largest header, in bytes."""
MAX_DEPTH = 12
"""Deepest nesting of objects and lists."""
MAX_ITEMS = 100_000
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


class WireError(ValueError):
    """A message that cannot be understood; `expected` and `found` say why, `where` names the field."""

    code: ClassVar[str] = "malformed"

    def __init__(self, message: str, *, where: str = "", expected: str | None = None, found: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.expected = expected
        self.found = found


class Malformed(WireError):
    """Not the bytes of a message: no JSON, too large, too deep, a field missing, unknown or of the wrong type."""


class UnknownMessage(WireError):
    """A type that is not in the table."""

    code = "unknown_message"


class UnsupportedVersion(WireError):
    """A version outside PROTOCOL_MIN..PROTOCOL_MAX."""

    code = "unsupported_version"


# Codecs: each takes a JSON value and the field's name, and returns the Python value or raises Malformed; `dump` is the
# way back and checks the same things, so that neither side can send what the other must refuse.

Load = Callable[[Any, str], Any]


@dataclass(frozen=True)
class _Codec:
    load: Load
    dump: Load


def _refuse(where: str, expected: str, value: object) -> NoReturn:
    # Python 3.11 and later refuse to print very long integers
    shown = "a huge integer" if type(value) is int and value.bit_length() > 256 else repr(value)
    found = shown if len(shown) <= 60 else shown[:57] + "..."
    raise Malformed(f"field {where} is wrong", where=where, expected=expected, found=found)


def _same(check: Load) -> _Codec:
    return _Codec(check, check)


def _integer(low: int, high: int) -> _Codec:
    def check(value: Any, where: str) -> int:
        if type(value) is not int or not low <= value <= high:
            _refuse(where, f"an integer in {low}..{high}", value)
        return value

    return _same(check)


def _number(low: float, high: float) -> _Codec:
    def check(value: Any, where: str) -> float:
        # NaN fails both comparisons; a huge integer compares without becoming a float first
        if type(value) not in (int, float) or not low <= value <= high:
            _refuse(where, f"a finite number in {low:g}..{high:g}", value)
        return float(value)

    return _same(check)


_SURROGATE = re.compile("[\ud800-\udfff]")
_NO_PATH = re.compile("[\ud800-\udc7f\udd00-\udfff\0]")


def _text(longest: int, shortest: int = 0, refuse: re.Pattern[str] = _SURROGATE) -> _Codec:
    def check(value: Any, where: str) -> str:
        if type(value) is not str or not shortest <= len(value) <= longest or refuse.search(value):
            _refuse(where, f"text of {shortest}..{longest} characters", value)
        return value

    return _same(check)


def _switch(value: Any, where: str) -> bool:
    if type(value) is not bool:
        _refuse(where, "true or false", value)
    return value


def _choice(*words: str) -> _Codec:
    def check(value: Any, where: str) -> str:
        if type(value) is not str or value not in words:
            _refuse(where, "one of " + ", ".join(words), value)
        return value

    return _same(check)


def _maybe(inner: _Codec) -> _Codec:
    def load(value: Any, where: str) -> Any:
        return None if value is None else inner.load(value, where)

    def dump(value: Any, where: str) -> Any:
        return None if value is None else inner.dump(value, where)

    return _Codec(load, dump)


def _list(inner: _Codec, longest: int = MAX_ITEMS) -> _Codec:
    def check(value: Any, where: str, kinds: tuple[type, ...]) -> None:
        if type(value) not in kinds or len(value) > longest:
            _refuse(where, f"a list of at most {longest}", value)

    def load(value: Any, where: str) -> tuple[Any, ...]:
        check(value, where, (list,))
        return tuple(inner.load(item, f"{where}[{place}]") for place, item in enumerate(value))

    def dump(value: Any, where: str) -> list[Any]:
        check(value, where, (list, tuple))
        return [inner.dump(item, f"{where}[{place}]") for place, item in enumerate(value)]

    return _Codec(load, dump)


def _map(inner: _Codec, longest: int = 1000) -> _Codec:
    name = _text(200)

    def convert(value: Any, where: str, way: Load) -> dict[str, Any]:
        if not isinstance(value, Mapping) or len(value) > longest:
            _refuse(where, f"an object of at most {longest} names", value)
        return {name.load(key, where): way(item, f"{where}.{key}") for key, item in value.items()}

    def load(value: Any, where: str) -> Mapping[str, Any]:
        return MappingProxyType(convert(value, where, inner.load))

    return _Codec(load, lambda value, where: convert(value, where, inner.dump))


def _json(value: Any, where: str, depth: int = 0) -> Any:
    """Plain JSON values, as they are: for facts that the wire does not interpret."""
    if value is None or type(value) is bool:
        return value
    if type(value) is str and not _SURROGATE.search(value):
        return value
    if type(value) is int and abs(value) < 1 << 53:
        return value
    if type(value) is float and math.isfinite(value):
        return value
    if depth < MAX_DEPTH - 4 and type(value) in (list, tuple):
        return [_json(item, f"{where}[{place}]", depth + 1) for place, item in enumerate(value)]
    if depth < MAX_DEPTH - 4 and isinstance(value, Mapping):
        return {_NAME.load(key, where): _json(item, f"{where}.{key}", depth + 1) for key, item in value.items()}
    _refuse(where, "plain JSON of finite numbers", value)


def _track(value: Any, where: str) -> int | str:
    if type(value) is int:
        return int(_COUNT.load(value, where))
    return str(_choice("main", "all").load(value, where))


def _key(value: Any, where: str) -> tuple[int, float]:
    if type(value) not in (list, tuple) or len(value) != 2:
        _refuse(where, "[frame, value]", value)
    return _FRAME.load(value[0], where), _REAL.load(value[1], where)


_NAME = _text(200, 1)
_WORDS = _text(4000)
_ID = _text(64, 1)
_PATH = _text(4096, 1, _NO_PATH)
_FRAME = _integer(-(1 << 31), (1 << 31) - 1)
_COUNT = _integer(0, (1 << 53) - 1)
_REAL = _number(-1e300, 1e300)
_POSITIVE = _number(0.0, 1e300)
_BOOL = _same(_switch)
_KEYS = _list(_Codec(_key, lambda value, where: list(_key(value, where))))
_SETTINGS = _map(_KEYS)
_FACTS = _map(_same(_json))
_SECONDS = _map(_POSITIVE)


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


def _f(codec: _Codec, **default: Any) -> Any:
    return field(metadata={"codec": codec}, **default)


def _record_codec(kind: type, tag: tuple[str, str] | None = None) -> _Codec:
    """The codec of a dataclass; `tag` is a constant extra field of its JSON object."""
    # looked up at the first use, since a decorator runs before the dataclass has its fields
    table: dict[str, _Codec] = {}

    def codecs() -> dict[str, _Codec]:
        if not table:
            table.update({spec.name: spec.metadata["codec"] for spec in fields(kind)})
        return table

    def load(value: Any, where: str) -> Any:
        if type(value) is not dict:
            _refuse(where or "message", "an object", value)
        prefix = where + "." if where else ""
        known = codecs()
        for name in value:
            if name not in known and not (tag and name == tag[0]):
                raise Malformed(f"field {prefix}{name[:60]} is not known", where=prefix + name[:60])
        for name in known:
            if name not in value:
                raise Malformed(f"field {prefix}{name} is missing", where=prefix + name)
        return kind(**{name: codec.load(value[name], prefix + name) for name, codec in known.items()})

    def dump(value: Any, where: str) -> dict[str, Any]:
        if type(value) is not kind:
            _refuse(where or "message", kind.__name__, value)
        prefix = where + "." if where else ""
        out: dict[str, Any] = {tag[0]: tag[1]} if tag else {}
        for name, codec in codecs().items():
            out[name] = codec.dump(getattr(value, name), prefix + name)
        return out

    return _Codec(load, dump)


def _either(tag: str, kinds: Mapping[str, type]) -> _Codec:
    by_word = {word: _record_codec(kind, (tag, word)) for word, kind in kinds.items()}
    by_kind = {kind: by_word[word] for word, kind in kinds.items()}

    def load(value: Any, where: str) -> Any:
        word = value.get(tag) if type(value) is dict else None
        if type(word) is not str or word not in by_word:
            _refuse(where, f"an object whose {tag} is one of " + ", ".join(by_word), value)
        return by_word[word].load(value, where)

    def dump(value: Any, where: str) -> Any:
        if type(value) not in by_kind:
            _refuse(where, "one of " + ", ".join(kind.__name__ for kind in by_kind), value)
        return by_kind[type(value)].dump(value, where)

    return _Codec(load, dump)


# Parts of messages


@dataclass(frozen=True)
class SlotRef:
    """A slot of a ring: `path` and `file_id` ("device:inode") are its file, `generation` its ring, `use` its frame.

    As an input the slot is READY and holds a frame; as an output it is READY and empty, and the server fills it.
    """

    path: str = _f(_PATH)
    file_id: str = _f(_text(64, 1))
    generation: int = _f(_COUNT)
    slot: int = _f(_integer(0, 65535))
    use: int = _f(_COUNT)


@dataclass(frozen=True)
class FileRef:
    """A frame of a sequence, or a lone file (`frame` None); the server opens it itself, inside its allowed roots."""

    pattern: str = _f(_PATH)
    frame: int | None = _f(_maybe(_FRAME), default=None)


FrameRef = Union[SlotRef, FileRef]
_FRAME_REF = _either("kind", {"slot": SlotRef, "file": FileRef})


@dataclass(frozen=True)
class Assignment:
    """Who becomes whom: `identity` is the path of a .fpid file, `track` a track id, "main" or "all"."""

    identity: str = _f(_PATH)
    track: int | str = _f(_same(_track), default="main")


@dataclass(frozen=True)
class LayerWanted:
    """A layer beside the beauty; `output` None puts it into the result's own file."""

    name: str = _f(_NAME)
    output: FrameRef | None = _f(_maybe(_FRAME_REF), default=None)


@dataclass(frozen=True)
class LayerMade:
    """A layer that was delivered, and where."""

    name: str = _f(_NAME)
    output: FrameRef = _f(_FRAME_REF)


@dataclass(frozen=True)
class HoldOut:
    """A matte of what must stay the plate; `layer` "" takes alpha, else the first channel."""

    matte: FrameRef = _f(_FRAME_REF)
    layer: str = _f(_text(200), default="")


@dataclass(frozen=True)
class Device:
    """A device that the server works on; `provider` is what runs the nets, `memory_mb` None where unknown."""

    name: str = _f(_NAME)
    kind: str = _f(_NAME)
    provider: str = _f(_NAME)
    memory_mb: float | None = _f(_maybe(_POSITIVE), default=None)
    used_mb: float | None = _f(_maybe(_POSITIVE), default=None)


@dataclass(frozen=True)
class Limits:
    """What the server takes: bytes of a message and of a frame, slots of a ring, clients, jobs of one client."""

    message_bytes: int = _f(_COUNT)
    frame_bytes: int = _f(_COUNT)
    slots: int = _f(_COUNT)
    clients: int = _f(_COUNT)
    jobs: int = _f(_COUNT)


@dataclass(frozen=True)
class Failure:
    """Why one frame failed: as `Error`, without a job."""

    code: str = _f(_choice(*CODES))
    type: str = _f(_NAME)
    message: str = _f(_WORDS)
    expected: str | None = _f(_maybe(_WORDS), default=None)
    found: str | None = _f(_maybe(_WORDS), default=None)
    hint: str | None = _f(_maybe(_WORDS), default=None)


@dataclass(frozen=True)
class JobState:
    """One job in the queue or at work."""

    id: str = _f(_ID)
    kind: str = _f(_choice("frame", "range", "analyse"))
    state: str = _f(_choice("queued", "running"))
    priority: str = _f(_choice("interactive", "batch"))
    done: int = _f(_COUNT)
    total: int = _f(_COUNT)
    client: str = _f(_NAME)


# Messages. `MESSAGES` maps each tag to its class; nothing else can be sent.

_ASSIGNMENTS = _list(_record_codec(Assignment), 1000)
_PRIORITY = _choice("interactive", "batch")
_DEADLINE = _maybe(_number(0.001, 1e9))
_MISSING = _choice("error", "skip", "hold")
_HOLDOUT = _maybe(_record_codec(HoldOut))
_MAYBE_PATH = _maybe(_PATH)
_MAYBE_NAME = _maybe(_NAME)
_MAYBE_RANGE = _maybe(_WORDS)
MESSAGES: dict[str, type] = {}
TO_SERVER: dict[str, bool] = {}
"""By tag: True for client to server, False for server to client."""
_TAGS: dict[type, str] = {}
_CODECS: dict[str, _Codec] = {}
C = TypeVar("C", bound=type[Any])


def _message(tag: str, to_server: bool) -> Callable[[C], C]:
    def add(kind: C) -> C:
        MESSAGES[tag], TO_SERVER[tag], _TAGS[kind] = kind, to_server, tag
        _CODECS[tag] = _record_codec(kind)
        return kind

    return add


@_message("hello", True)
@dataclass(frozen=True)
class Hello:
    """First message of a connection. `token` is the connection file's (checked on tcp, "" over ipc)."""

    protocol_min: int = _f(_COUNT)
    protocol_max: int = _f(_COUNT)
    client_name: str = _f(_NAME)
    client_version: str = _f(_NAME)
    token: str = _f(_text(200), default="")


@_message("welcome", False)
@dataclass(frozen=True)
class Welcome:
    """Answer to hello: the protocol chosen for this connection, who the server is and what it can do."""

    protocol: int = _f(_COUNT)
    protocol_min: int = _f(_COUNT)
    protocol_max: int = _f(_COUNT)
    server_version: str = _f(_NAME)
    instance: str = _f(_ID)
    engines: tuple[str, ...] = _f(_list(_NAME, 1000))
    devices: tuple[Device, ...] = _f(_list(_record_codec(Device), 1000))
    limits: Limits = _f(_record_codec(Limits))
    roots: tuple[str, ...] = _f(_list(_PATH, 1000), default=())


@_message("submit_frame", True)
@dataclass(frozen=True)
class SubmitFrame:
    """One frame. `output` None gives the result back in the plate's own slot; `frame` samples the keyed settings.

    `source` is the shot's pattern where the plate is a slot: its sidecar is used, or the one named by `faces`.
    `input_space` None lets the slot's header or the file say. `deadline_s` counts from the message's arrival.
    """

    id: str = _f(_ID)
    frame: int = _f(_FRAME)
    plate: FrameRef = _f(_FRAME_REF)
    output: FrameRef | None = _f(_maybe(_FRAME_REF))
    assignments: tuple[Assignment, ...] = _f(_ASSIGNMENTS)
    settings: Mapping[str, tuple[tuple[int, float], ...]] = _f(_SETTINGS, default_factory=_nothing)
    layers: tuple[LayerWanted, ...] = _f(_list(_record_codec(LayerWanted), 100), default=())
    engine: str = _f(_NAME, default="mesh")
    input_space: str | None = _f(_MAYBE_NAME, default=None)
    source: str | None = _f(_MAYBE_PATH, default=None)
    faces: str | None = _f(_MAYBE_PATH, default=None)
    holdout: HoldOut | None = _f(_HOLDOUT, default=None)
    project: str | None = _f(_MAYBE_NAME, default=None)
    commercial: bool = _f(_BOOL, default=False)
    priority: str = _f(_PRIORITY, default="interactive")
    deadline_s: float | None = _f(_DEADLINE, default=None)


@_message("submit_range", True)
@dataclass(frozen=True)
class SubmitRange:
    """A range of files: `frames` as "1001-1100x2,1150", None for all; the rest as the command line has it."""

    id: str = _f(_ID)
    plate: str = _f(_PATH)
    output: str = _f(_PATH)
    frames: str | None = _f(_MAYBE_RANGE)
    assignments: tuple[Assignment, ...] = _f(_ASSIGNMENTS)
    settings: Mapping[str, tuple[tuple[int, float], ...]] = _f(_SETTINGS, default_factory=_nothing)
    layers: tuple[str, ...] = _f(_list(_NAME, 100), default=())
    engine: str = _f(_NAME, default="mesh")
    input_space: str | None = _f(_MAYBE_NAME, default=None)
    faces: str | None = _f(_MAYBE_PATH, default=None)
    holdout: HoldOut | None = _f(_HOLDOUT, default=None)
    missing: str = _f(_MISSING, default="error")
    analyse: Mapping[str, Any] = _f(_FACTS, default_factory=_nothing)
    project: str | None = _f(_MAYBE_NAME, default=None)
    commercial: bool = _f(_BOOL, default=False)
    priority: str = _f(_PRIORITY, default="batch")
    deadline_s: float | None = _f(_DEADLINE, default=None)


@_message("submit_analyse", True)
@dataclass(frozen=True)
class SubmitAnalyse:
    """Find and track the faces of a shot; `sidecar` None writes it beside the plate."""

    id: str = _f(_ID)
    plate: str = _f(_PATH)
    frames: str | None = _f(_MAYBE_RANGE)
    sidecar: str | None = _f(_MAYBE_PATH, default=None)
    input_space: str | None = _f(_MAYBE_NAME, default=None)
    missing: str = _f(_MISSING, default="error")
    analyse: Mapping[str, Any] = _f(_FACTS, default_factory=_nothing)
    priority: str = _f(_PRIORITY, default="batch")
    deadline_s: float | None = _f(_DEADLINE, default=None)


@_message("accepted", False)
@dataclass(frozen=True)
class Accepted:
    """The job is in the queue; `ahead` jobs go first."""

    id: str = _f(_ID)
    ahead: int = _f(_COUNT)


@_message("progress", False)
@dataclass(frozen=True)
class Progress:
    """How far a job is, in frames of `step`; `remaining_s` None while unknown."""

    id: str = _f(_ID)
    step: str = _f(_NAME)
    done: int = _f(_COUNT)
    total: int = _f(_COUNT)
    frame: int | None = _f(_maybe(_FRAME), default=None)
    remaining_s: float | None = _f(_maybe(_POSITIVE), default=None)


@_message("partial", False)
@dataclass(frozen=True)
class Partial:
    """One frame of a range has ended; the job goes on. `error` is there when `state` is "failed"."""

    id: str = _f(_ID)
    frame: int = _f(_FRAME)
    state: str = _f(_choice(*STATES))
    output: FrameRef | None = _f(_maybe(_FRAME_REF), default=None)
    error: Failure | None = _f(_maybe(_record_codec(Failure)), default=None)
    facts: Mapping[str, Any] = _f(_FACTS, default_factory=_nothing)
    timings_ms: Mapping[str, float] = _f(_SECONDS, default_factory=_nothing)


@_message("frame_result", False)
@dataclass(frozen=True)
class FrameResult:
    """Ends a frame job: where the result is, what was found in the frame, what it cost."""

    id: str = _f(_ID)
    frame: int = _f(_FRAME)
    state: str = _f(_choice(*STATES))
    output: FrameRef = _f(_FRAME_REF)
    layers: tuple[LayerMade, ...] = _f(_list(_record_codec(LayerMade), 100), default=())
    facts: Mapping[str, Any] = _f(_FACTS, default_factory=_nothing)
    timings_ms: Mapping[str, float] = _f(_SECONDS, default_factory=_nothing)


@_message("done", False)
@dataclass(frozen=True)
class Done:
    """Ends a range or analyse job: frames by how they ended, the job folder, the sidecar."""

    id: str = _f(_ID)
    counts: Mapping[str, int] = _f(_map(_COUNT))
    folder: str | None = _f(_MAYBE_PATH, default=None)
    sidecar: str | None = _f(_MAYBE_PATH, default=None)


@_message("cancel", True)
@dataclass(frozen=True)
class Cancel:
    """Stop the job after its current frame. A job that has ended meanwhile gets no second end."""

    id: str = _f(_ID)


@_message("cancelled", False)
@dataclass(frozen=True)
class Cancelled:
    """Ends a job that was cancelled; `finished` frames are kept."""

    id: str = _f(_ID)
    finished: int = _f(_COUNT)


@_message("status", True)
@dataclass(frozen=True)
class Status:
    """Ask how the server is."""

    id: str = _f(_ID)


@_message("status_reply", False)
@dataclass(frozen=True)
class StatusReply:
    """How the server is: `nets` are warm; `memory_mb` is the process's."""

    id: str = _f(_ID)
    instance: str = _f(_ID)
    pid: int = _f(_COUNT)
    uptime_s: float = _f(_POSITIVE)
    memory_mb: float = _f(_POSITIVE)
    clients: int = _f(_COUNT)
    frames_done: int = _f(_COUNT)
    devices: tuple[Device, ...] = _f(_list(_record_codec(Device), 1000))
    nets: tuple[str, ...] = _f(_list(_NAME, 1000))
    jobs: tuple[JobState, ...] = _f(_list(_record_codec(JobState), 1000))


@_message("ping", True)
@dataclass(frozen=True)
class Ping:
    """Is anybody there?"""

    id: str = _f(_ID)


@_message("pong", False)
@dataclass(frozen=True)
class Pong:
    """Answer to ping, at any load; `ready` is false while the server still starts."""

    id: str = _f(_ID)
    instance: str = _f(_ID)
    ready: bool = _f(_BOOL)


@_message("release", True)
@dataclass(frozen=True)
class Release:
    """Let go of one slot, or with `slot` None of the whole ring; jobs that still need it end with "stale_slot"."""

    id: str = _f(_ID)
    path: str = _f(_PATH)
    file_id: str = _f(_text(64, 1))
    generation: int = _f(_COUNT)
    slot: int | None = _f(_maybe(_integer(0, 65535)), default=None)


@_message("released", False)
@dataclass(frozen=True)
class Released:
    """The server touches the slot, or the ring, no more."""

    id: str = _f(_ID)


@_message("stop", True)
@dataclass(frozen=True)
class Stop:
    """Ask the server to finish its current frames and exit."""

    id: str = _f(_ID)


@_message("stopping", False)
@dataclass(frozen=True)
class Stopping:
    """The server takes no more jobs and exits."""

    id: str = _f(_ID)


@_message("bye", True)
@dataclass(frozen=True)
class Bye:
    """The client closes; its jobs are cancelled and its rings let go. No answer."""


@_message("error", False)
@dataclass(frozen=True)
class Error:
    """Answers a request or ends a job; `id` None where the request could not be read.

    `code` is one of CODES; `type` the server's error class, for logs; `hint` the artist's next step.
    """

    id: str | None = _f(_maybe(_ID))
    code: str = _f(_choice(*CODES))
    type: str = _f(_NAME)
    message: str = _f(_WORDS)
    expected: str | None = _f(_maybe(_WORDS), default=None)
    found: str | None = _f(_maybe(_WORDS), default=None)
    hint: str | None = _f(_maybe(_WORDS), default=None)


Submit = Union[SubmitFrame, SubmitRange, SubmitAnalyse]
End = Union[FrameResult, Done, Cancelled]
Event = Union[Progress, Partial, FrameResult, Done, Cancelled]
"""What a client is told of its job; an Error is raised instead."""
ENDS = (FrameResult, Done, Cancelled, Error)
"""Exactly one of these ends a job."""


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise Malformed("a field is there twice", found=", ".join(sorted(name[:60] for name, _ in pairs))[:200])
    return out


def _no_constant(word: str) -> NoReturn:
    raise Malformed("a number is not finite", expected="finite numbers", found=word)


def _short_integer(digits: str) -> int:
    # Python converts long digit strings in quadratic time, or refuses them, by version
    if len(digits) > 20:
        raise Malformed("an integer is too long", expected="at most 20 digits", found=f"{len(digits)} digits")
    return int(digits)


_MARKS = re.compile(rb'\\.|["\[\]{}]', re.DOTALL)


def _check_depth(data: bytes) -> None:
    if data.count(b"{") + data.count(b"[") <= MAX_DEPTH:
        return
    depth, quoted = 0, False
    for mark in _MARKS.findall(data):
        if mark == b'"':
            quoted = not quoted
        elif not quoted and mark in b"[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise Malformed("the message is nested too deeply", expected=f"at most {MAX_DEPTH} levels")
        elif not quoted and mark in b"]}":
            depth -= 1


def encode(message: Any, version: int = PROTOCOL_MAX) -> bytes:
    """The bytes of a message.

    Args:
        message: an instance of a class in `MESSAGES`.
        version: the protocol that hello and welcome agreed on.

    Raises:
        Malformed: a field has the wrong type or range, or the message is too large.
        UnknownMessage: not an instance of a class in the table.
        UnsupportedVersion: `version` is outside the range.
    """
    tag = _TAGS.get(type(message))
    if tag is None:
        raise UnknownMessage("not a message of the protocol", found=type(message).__name__)
    _check_version(version)
    document = {"v": version, "t": tag, **_CODECS[tag].dump(message, "")}
    data = json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii")
    if len(data) > MAX_BYTES:
        raise Malformed("the message is too large", expected=f"at most {MAX_BYTES} bytes", found=str(len(data)))
    return data


def decode(data: bytes, largest: int = MAX_BYTES) -> Any:
    """The message that `data` holds: an instance of a class in `MESSAGES`.

    Raises:
        Malformed: too large, too deep, no JSON object, a field missing, unknown, or of the wrong type or range.
        UnknownMessage: the type is not in the table.
        UnsupportedVersion: the version is outside the range.
    """
    if len(data) > largest:
        raise Malformed("the message is too large", expected=f"at most {largest} bytes", found=str(len(data)))
    _check_depth(data)
    try:
        document = json.loads(
            bytes(data).decode("utf-8"),
            object_pairs_hook=_distinct,
            parse_constant=_no_constant,
            parse_int=_short_integer,
        )
    except WireError:
        raise
    except ValueError as error:  # JSONDecodeError and UnicodeDecodeError are both of this kind
        raise Malformed("the message is not JSON in UTF-8", found=str(error)[:200]) from error
    if type(document) is not dict:
        raise Malformed("the message is not a JSON object", found=type(document).__name__)
    _check_version(document.pop("v", None))
    tag = document.pop("t", None)
    if type(tag) is not str or tag not in _CODECS:
        raise UnknownMessage("no such message type", expected=", ".join(MESSAGES), found=repr(tag)[:60])
    return _CODECS[tag].load(document, "")


def _check_version(version: object) -> None:
    if type(version) is not int or not PROTOCOL_MIN <= version <= PROTOCOL_MAX:
        raise UnsupportedVersion(
            "the protocol version is not supported",
            expected=f"{PROTOCOL_MIN}..{PROTOCOL_MAX}",
            found=repr(version)[:60],
        )
