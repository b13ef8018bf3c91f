# SPDX-License-Identifier: Apache-2.0
"""The knobs of the Faceplate group: their names, and the recipe that is made of them. Imports nothing of Nuke."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from typing import Any

from faceplate_client import wire
from faceplate_client.errors import BadClip
from faceplate_client.frame_maths import Span
from faceplate_client.job_record import Recipe

from .api import Knob, Node
from .files import pattern_of

VERSION = "faceplate_version"
"""Hidden knob that makes a group one of ours; its value is the version of the group's layout."""
LAYOUT = 1

SETTINGS: Mapping[str, float] = {
    "strength": 1.0,
    "shape": 0.0,
    "colour": 1.0,
    "detail": 1.0,
    "keep_eyes": 1.0,
    "keep_mouth": 1.0,
    "occluders": 1.0,
    "matte_grow": 0.0,
    "matte_soften": 0.05,
    "yaw_fade_from": 50.0,
    "yaw_fade_to": 75.0,
}
"""Settings of the server, with the same names and defaults. All may be keyed; a value goes with each frame."""
IDENTITY, TRACK, ENGINE, LAYERS = "identity", "track", "engine", "layers"
RANGE, FIRST, LAST, VIEWS, NAME = "range", "first", "last", "views", "result_name"
HANDLES, MISSING, HOLDOUT, HOLDOUT_LAYER = "handles", "missing", "holdout", "holdout_layer"
PROJECT, COMMERCIAL, RENDER_INPUT, OTHERS = "project", "commercial", "render_input", "other_settings"
WINDOW, DEPTH, FOLDER = "data_window", "depth", "cache_folder"
SHOW = "show"
RESULTS, STATE, COLOUR = "faceplate_results", "faceplate_state", "faceplate_colour"
CHOICES = (
    *(IDENTITY, TRACK, ENGINE, LAYERS, HANDLES, MISSING, HOLDOUT, HOLDOUT_LAYER, PROJECT, COMMERCIAL, RENDER_INPUT),
    *(WINDOW, DEPTH, OTHERS),
)
"""What makes a result another one, beside the settings."""
BUTTONS = ("process_frame", "process_range", "cancel", "reload", "reveal", "find_faces", "remove", "check")
KNOBS = (*CHOICES, *SETTINGS, RANGE, FIRST, LAST, VIEWS, NAME, FOLDER, SHOW, VERSION, RESULTS, STATE, COLOUR, *BUTTONS)
"""Every knob that the plug-in reads, writes or answers for; `Faceplate.nk` has these and no others."""

INSIDE = ("Source", "Plate", "Bound", "Render", "Result", "ResultBound", "ByFrame", "Show", "Output1")
"""Nodes of the group."""

RANGES = ("input", "script", "custom")
DEPTHS = {"half": "16 bit half", "float": "32 bit float"}
KEEP, CROP = "keep", "crop to format"
LAYER_SETS: Mapping[str, tuple[str, ...]] = {
    "default": (),
    "picture": ("rgba",),
    "all": ("rgba", "face", "matte", "matte_core", "matte_occluder", "cryptomatte", "st"),
}
"""The server's layers by the entry of the pulldown; none means its default ones."""


def is_ours(node: Node) -> bool:
    """Whether a node is a Faceplate group."""
    return node.Class() == "Group" and node.knob(VERSION) is not None


def check(node: Node) -> None:
    """Prove that this plug-in knows the group.

    Raises:
        BadClip: it was made by a later plug-in, or lacks knobs.
    """
    there = node.knobs()
    lacking = [name for name in KNOBS if name not in there]
    if number(node, VERSION) > LAYOUT or lacking:
        raise BadClip(
            f"{node.fullName()} is not a group as this plug-in makes them",
            found=f"no knob {lacking[0]!r}" if lacking else f"layout {number(node, VERSION)}",
            hint="put a new Faceplate group in, or bring the plug-in up to date: faceplate install nuke",
        )


def text(node: Node, name: str) -> str:
    """A text or file knob with its expressions resolved; "" for nothing, which Nuke gives as None."""
    knob = node[name]
    # a text that was added to a node is a String_Knob, which has no evaluate, or an EvalString_Knob
    said = knob.evaluate() if hasattr(knob, "evaluate") else knob.value()
    return str(said or "").strip()


def varies(knob: Knob) -> bool:
    """Whether a knob's value may be another one at another frame."""
    return bool(knob.isAnimated() or knob.hasExpression())


def name_of(node: Node) -> str:
    """What results of a group are called."""
    return text(node, NAME) or node.name()


def number(node: Node, name: str) -> int:
    """A whole number: Nuke gives floats."""
    return round(float(node[name].value()))


def recipe_of(node: Node, frames: Span) -> Recipe:
    """What the artist set, with the settings sampled over `frames` of the timeline where they are animated.

    Raises:
        BadClip: no identity is chosen, or the track is no track.
    """
    identity = text(node, IDENTITY)
    if not identity:
        raise BadClip(f"{node.name()}: no identity is chosen", hint="choose an identity file (.fpid) in the group")
    if not os.path.isabs(identity):
        raise BadClip(f"{node.name()}: the identity has to be a full path", found=identity, hint="choose it anew")
    holdout = _holdout(node)
    return Recipe(
        assignments=(wire.Assignment(identity, _track(node)),),
        settings=_settings(node, frames),
        layers=LAYER_SETS[str(node[LAYERS].value())],
        engine=text(node, ENGINE) or "mesh",
        holdout=(holdout, text(node, HOLDOUT_LAYER) or "A") if holdout else None,
        handles=number(node, HANDLES),
        missing=str(node[MISSING].value()),
        project=text(node, PROJECT) or None,
        commercial=bool(node[COMMERCIAL].value()),
        bake=bool(node[RENDER_INPUT].value()),
    )


def _holdout(node: Node) -> str:
    """Files of the hold-out: the knob as it is written, since Nuke would put the current frame's number in."""
    said = str(node[HOLDOUT].value() or "").strip()
    if not said or (os.path.isabs(said) and not any(sign in said for sign in "[]$%#")):
        return said
    pattern = pattern_of(said, "")
    if pattern is None:
        raise BadClip(
            f"{node.name()}: the hold-out's files have a name that only Nuke can resolve",
            expected="a full path such as /show/roto.####.exr",
            found=said,
            hint="write the name out; for views that differ use a group for each",
        )
    return pattern


def _track(node: Node) -> int | str:
    said = text(node, TRACK).lower() or "main"
    if said in ("main", "all"):
        return said
    try:
        return int(said)
    except ValueError as error:
        raise BadClip(
            f"{node.name()}: there is no such face", expected="main, all, or a number that Find Faces shows", found=said
        ) from error


def _settings(node: Node, frames: Span) -> dict[str, tuple[tuple[int, float], ...]]:
    """Animated ones frame by frame, others once where they are not at their default; then those without a knob."""
    found: dict[str, tuple[tuple[int, float], ...]] = {}
    for name, default in SETTINGS.items():
        knob = node[name]
        if varies(knob):
            found[name] = _keys(knob, frames)
        elif float(knob.value()) != default:
            found[name] = ((0, float(knob.value())),)
    for piece in filter(None, re.split(r"[,\s]+", text(node, OTHERS))):
        name, _, said = piece.partition("=")
        try:
            found[name] = ((0, _finite(float(said))),)
        except ValueError as error:
            raise BadClip(
                f"{node.name()}: the other settings are not understood", expected="for example boost=2", found=piece
            ) from error
    return found


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{value} is no value of a setting")
    return value


def _keys(knob: Knob, frames: Span) -> tuple[tuple[int, float], ...]:
    """A key a frame, but for those inside a stretch that stays the same: the server goes straight between keys."""
    values = [(frame, float(knob.getValueAt(frame))) for frame in frames]
    inner = zip(values, values[1:], values[2:])
    return (values[0], *(now for before, now, after in inner if not before[1] == now[1] == after[1]), *values[1:][-1:])


def results_of(node: Node) -> dict[str, dict[str, Any]]:
    """What is placed in a group, by view; none where the knob holds anything else."""
    try:
        told = json.loads(str(node[RESULTS].value() or "{}"))
        found = {str(view): dict(one) for view, one in told.items()}
    except (ValueError, AttributeError, TypeError):
        return {}
    return found if all(_is_whole(one) for one in found.values()) else {}


def _is_whole(one: Mapping[str, Any]) -> bool:
    """Whether everything is there that the others rely on."""
    texts = all(isinstance(one.get(name), str) for name in ("job", "record", "clip", "file", "pattern"))
    return texts and all(isinstance(one.get(name), int) for name in ("first", "last")) and "before" in one


def set_results(node: Node, results: Mapping[str, Mapping[str, Any]]) -> None:
    """Keep what is placed in the document. Brackets are written as escapes: Nuke runs what stands in them."""
    said = json.dumps(results, sort_keys=True) if results else ""
    node[RESULTS].setValue(said.replace("[", "\\u005b").replace("]", "\\u005d"))
