# SPDX-License-Identifier: Apache-2.0
"""Read the graph around a Faceplate group: which frames it covers, and whether its input is plain files.

Works on nodes that it is given and imports nothing of Nuke. What is not known to be plain is rendered by Nuke: that is
always right, and costs a write.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from faceplate_client.errors import BadClip
from faceplate_client.exr_head import read_head
from faceplate_client.frame_maths import Span
from faceplate_client.host import Clip

from . import colours, knobs
from .api import Node, Root
from .files import file_at, has_view, pattern_of

PASSING = ("Dot", "NoOp", "PostageStamp")
"""Nodes that give their input as it is."""
NESTING = ("Root", "Group", "LiveGroup", "Gizmo")
"""Nodes that have nodes in them."""
MOVIES = (".mov", ".mp4", ".m4v", ".mxf", ".avi", ".mkv", ".r3d", ".braw", ".ari", ".arx")
_NOT_PICTURE = re.compile(
    r"^\s*(?:xpos|ypos|selected|label|name|note_font\S*|tile_color|gl_color|postage_stamp|cached|dope_sheet|hide_input"
    r"|bookmark|indicators|help|icon)\b.*$"
)
SEPARATOR = "|"
"""Between a group's name and a view, in ids of results."""


@dataclass(frozen=True)
class Surroundings:
    """What a group stands in.

    Attributes:
        root: of the script.
        fps: of the script.
        colour: of the script.
        views: all of the script.
        script_flags: for `Node.writeKnobs`: what a script would have.
    """

    root: Root
    fps: float
    colour: colours.Management
    views: Sequence[str]
    script_flags: int


def find(root: Node, full_name: str) -> Node | None:
    """A node by its full name, from the root down: nuke.toNode looks from whatever group is current, inside of a button
    the button's. None where it is not there."""
    found: Node | None = root
    for part in full_name.split("."):
        found = found.node(part) if found is not None and found.Class() in NESTING else None
    return found


def locked_in(root: Node, full_name: str) -> str:
    """Why the inside of what a node lies in cannot be changed, "" where it can."""
    owner: Node | None = root
    for part in full_name.split(".")[:-1]:
        owner = owner.node(part) if owner is not None and hasattr(owner, "node") else None
        kind = "" if owner is None else owner.Class()
        if kind == "Precomp":
            return f"it lies in the precomp {part}: open that script and process there"
        if kind == "LiveGroup" and bool(cast(Any, owner).published()):
            return f"it lies in the published LiveGroup {part}: press Make Editable there first"
    return ""


def groups(owner: Node) -> Iterator[Node]:
    """The Faceplate groups of a script, those within other groups too, in the order of their names."""
    for node in sorted(owner.nodes(), key=lambda node: node.name()):
        if knobs.is_ours(node):
            yield node
        elif node.Class() in NESTING:
            yield from groups(node)


def views_of(group: Node, views: Sequence[str]) -> tuple[str, ...]:
    """The views that a group is to do; ("",) in a script that has one.

    Raises:
        BadClip: a name that the script does not have.
    """
    if len(views) < 2:
        return ("",)
    asked = [name for name in re.split(r"[,\s]+", knobs.text(group, knobs.VIEWS)) if name and name != "all"]
    unknown = [name for name in asked if name not in views]
    if unknown:
        raise BadClip(
            f"{group.name()}: the script has no view {unknown[0]!r}", expected=", ".join(views), found=unknown[0]
        )
    return tuple(name for name in views if not asked or name in asked)


def timeline_of(group: Node, source: Node, root: Root) -> Span:
    """The frames that a group covers, both ends included.

    Raises:
        BadFrames: the last lies before the first.
    """
    asked = str(group[knobs.RANGE].value())
    if asked == "custom":
        return Span(knobs.number(group, knobs.FIRST), knobs.number(group, knobs.LAST))
    if asked == "script":
        return Span(int(root.firstFrame()), int(root.lastFrame()))
    found = source.frameRange()
    return Span(int(found.first()), int(found.last()))


def clip_of(group: Node, view: str, around: Surroundings) -> Clip:
    """The clip that a group's input is, in one view.

    Raises:
        BadClip: nothing is wired into it.
        BadFrames: it covers no frames.
    """
    source = group.input(0)
    if source is None:
        raise BadClip(f"{group.fullName()} has no input", hint="wire the plate into it")
    timeline = timeline_of(group, source, around.root)
    read, why = plain_read(source)
    found: Files | str = why
    if read is not None:
        found = files_of(read, timeline, view, around)
    raster = source.format()
    facts: dict[str, Any] = {
        "id": group.fullName(),
        "name": knobs.name_of(group),
        "start": timeline.first,
        "size": (int(raster.width()), int(raster.height())),
        "pixel_aspect": float(raster.pixelAspect()),
        "fps": around.fps,
        "view": view,
    }
    if isinstance(found, str):
        return Clip(**facts, used=timeline, processed=found)
    return Clip(
        **facts,
        used=found.used,
        media=found.media,
        source=found.pattern,
        colour_space=found.space,
    )


def plain_read(node: Node) -> tuple[Node | None, str]:
    """The Read node that a picture comes from unchanged, or why there is none."""
    while node.Class() != "Read":
        below = node.input(0)
        off = node.knob("disable")
        is_off = off is not None and not knobs.varies(off) and bool(off.value())
        if below is None or not (node.Class() in PASSING or is_off):
            return None, f"{node.name()} is no Read of files"
        node = below
    off = node.knob("disable")
    if off is not None and (knobs.varies(off) or bool(off.value())):
        return None, f"{node.name()} is disabled"
    lifetime = node.knob("useLifetime")
    if lifetime is not None and bool(lifetime.value()):
        return None, f"{node.name()} has a lifetime"
    return node, ""


@dataclass(frozen=True)
class Files:
    """The files behind a Read node.

    Attributes:
        pattern: absolute, with "#" for the digits of the frame number.
        media: frames that they have.
        used: those that the group covers.
        space: that they are read in, as the server calls it.
    """

    pattern: str
    media: Span
    used: Span
    space: str


def files_of(read: Node, timeline: Span, view: str, around: Surroundings) -> Files | str:
    """What the server would read in place of Nuke; why it cannot, where the Read node does more than reading."""
    name = read.name()
    file = str(read["file"].value() or "")
    pattern = pattern_of(file, view)
    if pattern is None:
        return f"{name} has a file name that only Nuke can resolve, or a single file"
    if pattern.lower().endswith(MOVIES):
        return f"{name} is a movie, which every program decodes in its own way"
    media = Span(knobs.number(read, "first"), knobs.number(read, "last"))
    shift = _shift(read, media)
    if shift is None:
        return f"{name} is retimed"
    used = timeline.moved(shift)
    if used.meet(media) != used:
        return f"{name} has no files for all of frames {timeline}"
    other = _other_picture(read, file_at(pattern, used.first), view if not has_view(file) else "")
    if other:
        return f"{name} {other}"
    space = _space(read, around.colour)
    return space[1:] if space.startswith("!") else Files(pattern, media, used, space)


def _other_picture(read: Node, file: Path, view: str) -> str:
    """What makes Nuke's picture another one than the file's, "" for nothing; `view` where all have the same files."""
    raster, head = read.format(), read_head(file)
    if head is None:  # no EXR, which the server may read with square pixels; or not there, which it will say
        return "has pixels that are not square" if abs(raster.pixelAspect() - 1) > 1e-3 else ""
    if view and head.has_views:
        return "has several views in one file"
    same = head.size == (int(raster.width()), int(raster.height()))
    if not same or abs(raster.pixelAspect() - head.pixel_aspect) > 1e-3:
        return "is read in another format than its files have"
    return ""


def _shift(read: Node, media: Span) -> int | None:
    """File number less timeline frame, None where the Read node does anything but count."""
    mode, said = str(read["frame_mode"].value()), str(read["frame"].value() or "").strip()
    if knobs.varies(read["frame"]):
        return None
    if mode == "start at" and re.fullmatch(r"-?\d+", said):
        return media.first - int(said)
    # an offset's sign is not written down anywhere
    return 0 if not said or said == "frame" or (mode == "offset" and said == "0") else None


def _space(read: Node, colour: colours.Management) -> str:
    """The server's name of the files' space; a reason, begun with "!", why Nuke has to read them."""
    working = colours.working_space(colour)
    if bool(read["raw"].value()):
        return working or f"!the working space {colour.working} is not known to the server"
    said = str(read["colorspace"].value())
    space = colours.file_space(said, colour)
    if space is None:
        return f"!{read.name()} is in {colours.plain(said)}, which only Nuke knows"
    back = space.result or space.space
    if working is not None and colours.same(back, working):
        return space.space
    values = read["colorspace"].values()
    if colours.nuke_name((back,), values) is None:
        return f"!Nuke has no name for {back}, in which the server would give the result back"
    return space.space


def fingerprint(group: Node, view: str, around: Surroundings) -> str:
    """A hash of what the artist sees coming in and has set: another one means that the result is stale.

    Files on disk do not count: the server looks at those when the result is processed again.
    """
    said = hashlib.sha256(f"{view} {around.colour.text}".encode("utf-8", "surrogatepass"))
    for name in (*knobs.CHOICES, *knobs.SETTINGS):
        said.update(f"{name} {group[name].toScript()}\n".encode("utf-8", "surrogatepass"))
    seen: dict[str, int] = {}
    source = group.input(0)
    waiting = [source] if source is not None else []
    while waiting:
        node = waiting.pop()
        name = node.fullName()
        if name in seen:
            said.update(f"again {seen[name]}\n".encode())
            continue
        seen[name] = len(seen)
        lines = node.writeKnobs(around.script_flags).splitlines()
        kept = "\n".join(line for line in lines if not _NOT_PICTURE.match(line))
        said.update(f"{node.Class()} {node.inputs()}\n{kept}\n".encode("utf-8", "surrogatepass"))
        below = [node.input(index) for index in range(node.inputs())]
        waiting += [one for one in (*below, _above(node, around.root)) if one is not None]
        if node.Class() in NESTING:
            waiting += list(node.nodes())
    return said.hexdigest()[:16]


def _above(node: Node, root: Node) -> Node | None:
    """Of an Input inside of a group: what is wired into the group."""
    number = node.knob("number") if node.Class() == "Input" else None
    owner, dot, _ = node.fullName().rpartition(".")
    group = find(root, owner) if dot and number is not None else None
    return None if group is None or number is None else group.input(round(float(number.value())))


def state_of(group: Node, around: Surroundings, now: Callable[[Node, str, Surroundings], str] = fingerprint) -> str:
    """In words, for the label: "not processed", "fresh 1001-1010", "stale 1001-1010", "fresh 1001-1010, failed 2"."""
    results = knobs.results_of(group)
    if not results:
        return "not processed"
    words = []
    for view, one in sorted(results.items()):
        fresh = "fresh" if now(group, view, around) == one.get("made") else "stale"
        failed = f", failed {one['failed']}" if one.get("failed") else ""
        words.append(f"{view} {fresh} {Span(int(one['first']), int(one['last']))}{failed}".strip())
    return "; ".join(words)
