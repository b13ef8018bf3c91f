"""One full sample of every message in each version that changed it, and strategies that make any legal one."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from faceplate_client import wire

SLOT = wire.SlotRef("/dev/shm/faceplate-1000/1234-ab.ring", "26:77", 9007199254740991, 2, 41)
FILE = wire.FileRef("/shots/sh010/plate.####.exr", 1001)
DEVICE = wire.Device("cpu", "cpu", "CPUExecutionProvider", 24000.0, 1500.5)
FAILURE = wire.Failure("input", "MissingFrameError", "frame 1002 has no file", "a file", "a hole", "render it again")
SETTINGS = {"strength": ((1001, 0.0), (1010, 1.0)), "keep_eyes": ((0, 1.0),)}
ASSIGNMENTS = (wire.Assignment("/id/jane.fpid"), wire.Assignment("/id/joe.fpid", 2))
FACTS = {"faces": [{"track": 1, "yaw_deg": -12.5, "filled": False}], "note": None, "name": "Zoë 面"}

SAMPLES: dict[str, Any] = {
    "hello": wire.Hello(1, 1, "blender 4.5", "0.1.0", "secret"),
    "welcome": wire.Welcome(
        1, 1, 1, "0.1.0", "a1b2", ("mesh",), (DEVICE,), wire.Limits(1048576, 1 << 30, 16, 32, 100), ("/shots",)
    ),
    "submit_frame": wire.SubmitFrame(
        "7",
        1001,
        SLOT,
        FILE,
        ASSIGNMENTS,
        SETTINGS,
        (wire.LayerWanted("matte", SLOT), wire.LayerWanted("st")),
        "mesh",
        "ACEScg",
        "/shots/sh010/plate.####.exr",
        "/shots/sh010/plate.faces.json",
        wire.HoldOut(FILE, "roto.A"),
        "film",
        True,
        "interactive",
        2.5,
    ),
    "submit_range": wire.SubmitRange(
        "8",
        "/shots/sh010/plate.####.exr",
        "/out/sh010.####.exr",
        "1001-1100x2,1150",
        ASSIGNMENTS,
        SETTINGS,
        ("face", "matte"),
        "mesh",
        None,
        None,
        wire.HoldOut(wire.FileRef("/roto/sh010.####.exr")),
        "hold",
        {"smooth": True, "min_face_px": 24},
        "film",
        False,
        "batch",
        3600.0,
    ),
    "submit_analyse": wire.SubmitAnalyse(
        "9", "/s/p.####.exr", None, "/s/p.faces.json", "ACEScg", "skip", {"a": 1}, "batch", 60.0
    ),
    "accepted": wire.Accepted("7", 3),
    "progress": wire.Progress("8", "swap", 12, 100, 1012, 4.25),
    "partial": wire.Partial("8", -5, "failed", FILE, FAILURE, FACTS, {"read": 1.5}),
    "frame_result": wire.FrameResult(
        "7", 1001, "done", SLOT, (wire.LayerMade("matte", SLOT),), FACTS, {"read": 1.5, "total": 40.0}
    ),
    "done": wire.Done("8", {"done": 98, "failed": 2}, "/out/sh010.faceplate", "/s/p.faces.json"),
    "cancel": wire.Cancel("8"),
    "cancelled": wire.Cancelled("8", 31),
    "status": wire.Status("10"),
    "status_reply": wire.StatusReply(
        "10",
        "a1b2",
        4711,
        12.5,
        800.25,
        2,
        1000,
        (DEVICE,),
        ("face_mesh",),
        (wire.JobState("8", "range", "running", "batch", 3, 100, "nuke"),),
    ),
    "ping": wire.Ping("11"),
    "pong": wire.Pong("11", "a1b2", True),
    "release": wire.Release("12", SLOT.path, SLOT.file_id, SLOT.generation, 2),
    "released": wire.Released("12"),
    "stop": wire.Stop("13"),
    "stopping": wire.Stopping("13"),
    "bye": wire.Bye(),
    "error": wire.Error("7", "input", "SettingError", "no setting is called 'x'", "strength", "x", "did you mean ...?"),
}

FORM = wire.FrameForm(("R", "G", "B", "A"), "float", True, "lin_rec709_scene")
MOVIE = wire.MovieForm("prores_4444", "premultiplied", "24000/1001", "BT.709", "bt601", "full", "plate", True)
TRACK = wire.TrackFound(2, "Jane", 1001, 1048, 47, 3, 212.5, 1020, "/cache/track-2.png")

SAMPLES_2: dict[str, Any] = {
    "submit_frame": dataclasses.replace(SAMPLES["submit_frame"], form=FORM),
    "submit_range": dataclasses.replace(SAMPLES["submit_range"], movie=MOVIE),
    "submit_analyse": dataclasses.replace(SAMPLES["submit_analyse"], pictures="/cache/sh010"),
    "done": dataclasses.replace(SAMPLES["done"], tracks=(TRACK,), colour_space="ACEScg", interop_id="lin_ap1_scene"),
    "note": wire.Note("8", "warning", "jane: no consent record"),
    "list_identities": wire.ListIdentities("14", "/id", "film", "/cache/people"),
    "identities": wire.Identities(
        "14",
        (
            wire.Person("/id/jane.fpid", "Jane", "valid", "until 2027-12-31", "/cache/people/ab.png"),
            wire.Person("/id/x.fpid", "x", "unreadable", "no identity file", None),
        ),
    ),
}
"""What version 2 changed or added; the other messages have the fields of version 1."""
NEWEST = {**SAMPLES, **SAMPLES_2}

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
# Linux paths may hold bytes that are no UTF-8
_PATH = st.text(
    st.one_of(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), st.sampled_from(["\udc80", "\udcff"])),
    min_size=1,
    max_size=40,
)
_COUNT = st.integers(0, (1 << 53) - 1)
_FRAME = st.integers(-(1 << 31), (1 << 31) - 1)
_REAL = st.floats(-1e300, 1e300)
_POSITIVE = st.floats(0, 1e300)
_PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(1 - (1 << 53), (1 << 53) - 1), _REAL, _TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_TEXT, inner, max_size=3)),
    max_leaves=6,
)
_FACTS = st.dictionaries(_TEXT, _PLAIN, max_size=3)
_BY_NAME: dict[str, st.SearchStrategy[Any]] = {
    "code": st.sampled_from(wire.CODES),
    "kind": st.sampled_from(["frame", "range", "analyse"]),
    "state": st.sampled_from(wire.STATES),
    "priority": st.sampled_from(["interactive", "batch"]),
    "missing": st.sampled_from(["error", "skip", "hold"]),
    "track": st.one_of(_COUNT, st.sampled_from(["main", "all"])),
    "slot": st.integers(0, 65535),
    "frame": _FRAME,
    "deadline_s": st.floats(0.001, 1e9),
    "settings": st.dictionaries(_TEXT, st.lists(st.tuples(_FRAME, _REAL), max_size=4).map(tuple), max_size=3),
    "facts": _FACTS,
    "analyse": _FACTS,
    "timings_ms": st.dictionaries(_TEXT, _POSITIVE, max_size=3),
    "counts": st.dictionaries(_TEXT, _COUNT, max_size=3),
    **{
        name: _PATH
        for name in ("path", "pattern", "identity", "sidecar", "folder", "source", "faces", "picture", "pictures")
    },
    **dict.fromkeys(("first", "last", "best"), _FRAME),
    "level": st.sampled_from(["note", "warning"]),
}
_BY_OWNER: dict[tuple[type, str], st.SearchStrategy[Any]] = {
    (wire.JobState, "state"): st.sampled_from(["queued", "running"]),
    (wire.Device, "kind"): _TEXT,
    (wire.Person, "state"): st.sampled_from(["valid", "none", "refused", "unreadable"]),
    (wire.FrameForm, "channels"): st.lists(st.sampled_from("RGBA"), max_size=4).map(tuple),
    (wire.FrameForm, "dtype"): st.sampled_from(["half", "float"]),
    (wire.MovieForm, "alpha"): st.sampled_from(["straight", "premultiplied"]),
    (wire.MovieForm, "failed"): st.sampled_from(["none", "plate"]),
    (wire.TrackFound, "frames"): _COUNT,
    (wire.SubmitRange, "plate"): _PATH,
    (wire.SubmitRange, "output"): _PATH,
    (wire.SubmitAnalyse, "plate"): _PATH,
    (wire.Welcome, "roots"): st.lists(_PATH, max_size=3).map(tuple),
}


def _of_hint(hint: Any, owner: type, name: str) -> st.SearchStrategy[Any]:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if (owner, name) in _BY_OWNER:
        plain = _BY_OWNER[owner, name]
    elif name in _BY_NAME and hint is not wire.FrameRef:
        plain = _BY_NAME[name]
    elif dataclasses.is_dataclass(hint):
        return record(typing.cast(type, hint))
    elif origin in (typing.Union, types.UnionType):
        return st.one_of(*(_of_hint(arg, owner, "") for arg in args if arg is not type(None)), *_none(args))
    elif origin is tuple:
        return st.lists(_of_hint(args[0], owner, ""), max_size=3).map(tuple)
    else:
        plain = {str: _TEXT, int: _COUNT, float: _POSITIVE, bool: st.booleans()}[hint]
    return st.one_of(plain, *_none(args)) if origin in (typing.Union, types.UnionType) else plain


def _none(args: tuple[Any, ...]) -> list[st.SearchStrategy[Any]]:
    return [st.none()] if type(None) in args else []


def record(kind: type) -> st.SearchStrategy[Any]:
    """Any legal instance of a message or of a part of one."""
    hints = typing.get_type_hints(kind)
    return st.builds(kind, **{name: _of_hint(hint, kind, name) for name, hint in hints.items()})


def strange_json(depth: int = 0) -> list[Any]:
    """Values that belong into no field, or into few."""
    return [None, True, -1, 1 << 70, 0.5, "", "\ud800", "x" * 5000, [], {}, [[]], {"kind": "slot"}, {"a": 1}, 1e300]


def as_plain(value: Any) -> Any:
    """Mappings as dicts, for comparing messages that hold read-only views of them."""
    if isinstance(value, Mapping):
        return {key: as_plain(item) for key, item in value.items()}
    return value
