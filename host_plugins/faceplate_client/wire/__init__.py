"""What client and server say to each other: one closed table of tagged messages, and their JSON bytes.

A message travels as one ZeroMQ frame: a JSON object in UTF-8 with `v` (protocol version), `t` (type) and every field of
the type in that version, none missing, none more. Numbers are finite. `hello`, `welcome` and `error` keep the form of
version 1 for ever, so that two sides of different age can tell each other that they do not fit. Fields and messages
that came later say since when (`since`); towards a peer of an earlier version they are left out. Pixels never travel
here: a frame reference names a slot of a frame ring (`slots.py`) or a file that the server opens itself.

This package imports the standard library alone and is the same on both sides. Field names with a unit end in it
(`deadline_s`, `total_ms`, `memory_mb`). Paths are absolute; bytes of a path that are no UTF-8 travel as the lone
surrogates U+DC80 to U+DCFF (Python's surrogateescape).

    fields      values of fields, checked both ways
    parts       frame references, people, devices
    to_server, to_client, registry    the messages and their table
    codec       bytes
"""

from .codec import MAX_BYTES, can_say, decode, encode
from .errors import Malformed, UnknownMessage, UnsupportedVersion, WireError
from .fields import MAX_DEPTH, MAX_ITEMS
from .parts import (
    CODES,
    STATES,
    Assignment,
    Device,
    Failure,
    FileRef,
    FrameForm,
    FrameRef,
    HoldOut,
    JobState,
    LayerMade,
    LayerWanted,
    Limits,
    MovieForm,
    Person,
    SlotRef,
    TrackFound,
)
from .registry import FOR_EVER, MESSAGES, PROTOCOL_MAX, PROTOCOL_MIN, SINCE, TO_SERVER
from .to_client import (
    ENDS,
    Accepted,
    Cancelled,
    Done,
    End,
    Error,
    Event,
    FrameResult,
    Identities,
    Note,
    Partial,
    Pong,
    Progress,
    Released,
    StatusReply,
    Stopping,
    Welcome,
)
from .to_server import (
    Bye,
    Cancel,
    Hello,
    ListIdentities,
    Ping,
    Release,
    Status,
    Stop,
    Submit,
    SubmitAnalyse,
    SubmitFrame,
    SubmitRange,
)

__all__ = [
    "CODES",
    "ENDS",
    "FOR_EVER",
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_ITEMS",
    "MESSAGES",
    "PROTOCOL_MAX",
    "PROTOCOL_MIN",
    "SINCE",
    "STATES",
    "TO_SERVER",
    "Accepted",
    "Assignment",
    "Bye",
    "Cancel",
    "Cancelled",
    "Device",
    "Done",
    "End",
    "Error",
    "Event",
    "Failure",
    "FileRef",
    "FrameForm",
    "FrameRef",
    "FrameResult",
    "Hello",
    "HoldOut",
    "Identities",
    "JobState",
    "LayerMade",
    "LayerWanted",
    "Limits",
    "ListIdentities",
    "Malformed",
    "MovieForm",
    "Note",
    "Partial",
    "Person",
    "Ping",
    "Pong",
    "Progress",
    "Release",
    "Released",
    "SlotRef",
    "Status",
    "StatusReply",
    "Stop",
    "Stopping",
    "Submit",
    "SubmitAnalyse",
    "SubmitFrame",
    "SubmitRange",
    "TrackFound",
    "UnknownMessage",
    "UnsupportedVersion",
    "Welcome",
    "WireError",
    "can_say",
    "decode",
    "encode",
]
