# SPDX-License-Identifier: Apache-2.0
"""Put a result into its group and take it out: files into the inner Read, frames into the switch.

    Source ─ Plate ┬──────────────────────────────┬─────────────► Show ─ Output1
                   ├─ Bound ─ Render (to files)   ├─► ByFrame ──►
                   │  Result (Read) ─ ResultBound ┘

`ByFrame` gives the result in the frames that have one and the plate in the others, by a curve of ones and noughts: no
expression, no callback, so that a farm without this plug-in renders the same. Works on nodes that it is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from faceplate_client.errors import PlaceFailed
from faceplate_client.frame_maths import Span
from faceplate_client.host import Clip, Placed, Result, Tag

from . import colours, knobs
from .api import Knob, Node
from .files import nuke_path, with_views

WIRES = (
    ("Plate", 0, "Source"),
    ("Bound", 0, "Plate"),
    ("Render", 0, "Bound"),
    ("ResultBound", 0, "Result"),
    ("ByFrame", 0, "Plate"),
    ("ByFrame", 1, "ResultBound"),
    ("Show", 0, "Plate"),
    ("Show", 1, "ByFrame"),
    ("Output1", 0, "Show"),
)
EMPTY: Mapping[str, Any] = {
    "file": "",
    "first": 1,
    "last": 1,
    "origfirst": 1,
    "origlast": 1,
    "frame_mode": "expression",
    "frame": "",
    "raw": True,
    "before": "black",
    "after": "black",
    "on_error": "error",
}
"""The inner Read of a group that has no result, as `Faceplate.nk` has it."""


def inside(group: Node, name: str) -> Node:
    """A node of the group.

    Raises:
        PlaceFailed: somebody took it out.
    """
    node = group.node(name)
    if node is None:
        raise PlaceFailed(
            f"{group.fullName()} has no {name} any more", hint="its inside was changed: put a new Faceplate group in"
        )
    return node


def wire(group: Node) -> None:
    """Wire the inside of a new group, whatever order a script's stack gave."""
    for name, index, below in WIRES:
        node = inside(group, name)
        wanted = inside(group, below)
        now = node.input(index)
        if now is None or now.name() != below:
            node.setInput(index, wanted)


def bound(group: Node, name: str) -> None:
    """Let one of the crops cut to the input's format, or let everything through, as the group's knob says."""
    crop, source = inside(group, name), group.input(0)
    cut = str(group[knobs.WINDOW].value()) == knobs.CROP and source is not None
    if cut and source is not None:
        raster = source.format()
        for index, side in enumerate((0, 0, raster.width(), raster.height())):
            crop["box"].setValue(float(side), index)
    crop["disable"].setValue(not cut)


def place(
    group: Node,
    clip: Clip,
    result: Result,
    *,
    views: Sequence[str],
    working: str,
    made: str,
    failed: int,
    constant: int,
) -> Placed:
    """Read the files of a result in their frames.

    Args:
        group: to place in.
        clip: what the result is of.
        result: files and frames.
        views: all of the script.
        working: the server's name of Nuke's working space.
        made: fingerprint of what it was made from.
        failed: frames that show a slate.
        constant: `nuke.CONSTANT`.

    Raises:
        PlaceFailed: Nuke has no name for the files' colour space, or the group does not take them.
    """
    read = inside(group, "Result")
    space = None
    if not colours.same(result.colour_space, working) and not colours.same(result.interop_id, working):
        names = (result.colour_space, result.interop_id)
        space = colours.nuke_name(names, read["colorspace"].values())
        if space is None:
            raise PlaceFailed(
                f"Nuke has no colour space for the result of {clip.name!r}",
                found=result.colour_space,
                hint="set $OCIO for Nuke and the server, or switch Render Input on in the group",
            )
    with _whole_or_not(group):
        return _place(group, clip, result, space, views=views, made=made, failed=failed, constant=constant)


def _place(
    group: Node,
    clip: Clip,
    result: Result,
    space: str | None,
    *,
    views: Sequence[str],
    made: str,
    failed: int,
    constant: int,
) -> Placed:
    read, show = inside(group, "Result"), inside(group, "Show")["which"]
    before = _before(group, {"show": int(float(show.value())), "space": str(read["colorspace"].value())})
    there = set(views) if len(views) > 1 else {""}
    results = {view: one for view, one in knobs.results_of(group).items() if view in there}  # views come and go
    path = nuke_path(result.pattern)
    if clip.view:
        path = with_views(path, clip.view)
        results = {view: one for view, one in results.items() if one.get("file") == path}
    values = {
        **EMPTY,
        "first": result.used.first,
        "last": result.used.last,
        "origfirst": result.files.first,
        "origlast": result.files.last,
        "frame_mode": "start at",
        "frame": str(result.start),
        "raw": space is None,
    }
    del values["file"]
    # a range that begins with a minus is part of the name to it; the format comes from the file, so this is no setValue
    frames = f" {result.files.first}-{result.files.last}" if result.files.first >= 0 else ""
    read["file"].fromUserText(path + frames)
    for name, value in values.items():
        read[name].setValue(value)
    if space is not None:
        read["colorspace"].setValue(space)
    if str(read["file"].value()) != path:
        raise PlaceFailed(f"Nuke did not take the files of {clip.name!r}", expected=path, found=read["file"].value())
    bound(group, "ResultBound")
    timeline = Span(result.start, result.start + len(result.used) - 1)
    which = inside(group, "ByFrame")["which"]
    if not results:
        clear_switch(which, views)
    switch_frames(which, timeline, clip.view, constant)
    results[clip.view] = {
        "job": result.tag.job,
        "record": result.tag.record,
        "clip": clip.id,
        "file": path,
        "pattern": result.pattern,
        "first": timeline.first,
        "last": timeline.last,
        "made": made,
        "failed": failed,
        "before": before,
    }
    knobs.set_results(group, results)
    show.setValue(1)
    read["reload"].execute()
    return placed_of(group, clip.view, results[clip.view])


@contextmanager
def _whole_or_not(group: Node) -> Iterator[None]:
    """What is changed within stays where all of it could be done; else every knob is as it was."""
    read = inside(group, "Result")
    touched = [
        *(read[name] for name in (*EMPTY, "colorspace")),
        *(inside(group, "ResultBound")[name] for name in ("box", "disable")),
        inside(group, "ByFrame")["which"],
        inside(group, "Show")["which"],
        group[knobs.RESULTS],
    ]
    before = [(knob, knob.toScript()) for knob in touched]
    try:
        yield
    except Exception:
        for knob, text in before:
            if knob.toScript() != text:
                knob.fromScript(text)
        raise


def _before(group: Node, now: Mapping[str, Any]) -> dict[str, Any]:
    """What the group was like before the first result of all that followed one another."""
    for one in knobs.results_of(group).values():
        return dict(one.get("before", now))
    return dict(now)


def switch_frames(which: Knob, frames: Span, view: str, constant: int) -> None:
    """Ones over `frames`, noughts elsewhere; for one view of several without touching the others' curves."""
    if view:
        which.splitView(view)
    where: tuple[Any, ...] = (0, view) if view else (0,)
    which.clearAnimated(*where)
    which.setAnimated(*where)
    curve = which.animation(*where)
    if curve is None:
        raise PlaceFailed("Nuke gave the switch no curve", hint="put a new Faceplate group in")
    keys = ((frames.first - 1, 0.0), (frames.first, 1.0), (frames.last, 1.0), (frames.last + 1, 0.0))
    for frame, value in keys:
        curve.setKey(frame, value)
    # a new curve has a key of its own at the current frame
    held = curve.keys()
    strangers = [key for key in held if round(key.x) not in dict(keys)]
    if strangers:
        curve.removeKey(strangers)
    # two keys a change, on neighbouring frames: true at every frame, however the keys are joined
    curve.changeInterpolation(curve.keys(), constant)
    wrong = [frame for frame, value in keys if round(curve.evaluate(frame)) != value]
    if wrong:
        raise PlaceFailed("Nuke's switch does not show the result in its frames", found=f"wrong at {wrong[0]}")


def clear_switch(which: Knob, views: Sequence[str]) -> None:
    """The plate in every frame of every view."""
    for view in views if len(views) > 1 else ():
        which.unsplitView(view)
    which.clearAnimated()
    which.setValue(0)


def remove(group: Node, view: str, views: Sequence[str]) -> None:
    """Take one view's result out; the group is as it was before the first one when none is left.

    Raises:
        PlaceFailed: it has none.
    """
    results = knobs.results_of(group)
    if view not in results:
        raise PlaceFailed(f"{group.fullName()} has no result any more", hint="nothing has to be removed")
    gone = results.pop(view)
    which = inside(group, "ByFrame")["which"]
    if results:
        which.clearAnimated(0, view)
        which.setValue(0, 0, 0, view)
    else:
        clear_switch(which, views)
        read = inside(group, "Result")
        for name, value in EMPTY.items():
            read[name].setValue(value)
        inside(group, "ResultBound")["disable"].setValue(True)
        before = gone["before"]
        if str(read["colorspace"].value()) != before["space"]:
            read["colorspace"].setValue(before["space"])
        inside(group, "Show")["which"].setValue(int(before["show"]))
    knobs.set_results(group, results)


def placed_of(group: Node, view: str, one: Mapping[str, Any]) -> Placed:
    """A result in the terms of the actions."""
    return Placed(
        id=f"{group.fullName()}|{view}",
        clip_id=group.fullName(),
        view=view,
        tag=Tag(str(one["job"]), str(one["record"])),
        pattern=str(one["pattern"]),
        timeline=Span(int(one["first"]), int(one["last"])),
    )
