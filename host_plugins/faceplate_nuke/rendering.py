# SPDX-License-Identifier: Apache-2.0
"""Render a group's input through its inner Write, one frame a step, and leave the script as it was.

Works on nodes that it is given; `execute` is `nuke.execute`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from faceplate_client.errors import BakeFailed
from faceplate_client.exr_head import is_cut_off
from faceplate_client.frame_maths import Span
from faceplate_client.result_folder import file_of, is_whole

from . import knobs
from .api import Knob, Node
from .files import nuke_path, with_views
from .placing import bound, inside

WRITE = {
    "file_type": "exr",
    "raw": True,
    "compression": "Zip (1 scanline)",
    "metadata": "all metadata",
    "channels": "all",
    "autocrop": False,
    "create_directories": True,
}
"""The inner Write: everything that the graph has, as it is. The file type comes first, since the others hang on it."""
BUSY, CANCELLED = "already executing", "cancel"
_LITTLE = 64 << 20
"""Bytes that a frame may need, so that less of them is a full disk."""


def render(
    group: Node,
    root: Node,
    view: str,
    frames: Span,
    pattern: str,
    execute: Callable[[Node, int, int, int, list[str]], Any],
    unrecorded: Callable[[], AbstractContextManager[None]],
    cancelled: Callable[[], None],
) -> Generator[int, None, None]:
    """Render timeline `frames` to `pattern`, file number = frame.

    Yields each frame when its file is whole. Between two frames the script is untouched, so that it may be saved.

    Args:
        group: whose input.
        root: of the script: proxy mode is off during a write, since a Write renders at the scale that is on.
        view: one of several, "" for the only one.
        frames: both ends included, as Nuke has them.
        pattern: absolute, with "####".
        execute: `nuke.execute`.
        unrecorded: what is done within is no step of undo.
        cancelled: called when the artist stopped Nuke's own meter; the action hears of it before its next step.

    Raises:
        BakeFailed: Nuke is at work, or could not render the frame.
    """
    for frame in frames:
        file = file_of(pattern, frame)
        if group.input(0) is None:  # Nuke would render black
            raise BakeFailed(f"{group.fullName()} has no input any more", hint="wire the plate into it, process again")
        try:
            with unrecorded(), _ready(group, root, view, pattern) as write:
                execute(write, frame, frame, 1, [view] if view else [])
        except (RuntimeError, ValueError, NameError) as error:
            if CANCELLED in f"{type(error).__name__} {error}".lower():
                file.unlink(missing_ok=True)
                cancelled()
                yield frame
                continue
            raise _failed(group, frame, file, error) from error
        if not is_whole(file) or is_cut_off(file):
            raise BakeFailed(
                f"frame {frame} of {group.fullName()} was not written", found=f"no file {file}", hint=_room(file)
            )
        yield frame


def _failed(group: Node, frame: int, file: Path, error: Exception) -> BakeFailed:
    hint = _room(file)
    if BUSY in str(error).lower():
        hint = "Nuke is rendering or playing: stop that, then process again; what is done is kept"
    return BakeFailed(
        f"Nuke could not render frame {frame} of {group.fullName()}",
        found=str(error).strip() or type(error).__name__,
        hint=hint or "see the error on the nodes above the group",
    )


def _room(file: Path) -> str | None:
    """What to do where the disk is full, whatever Nuke says then."""
    try:
        free = shutil.disk_usage(file.parent).free
    except OSError:
        return None
    return f"make room: the disk of {file.parent} is full" if free < _LITTLE else None


@contextmanager
def _ready(group: Node, root: Node, view: str, pattern: str) -> Iterator[Node]:
    """The Write switched on and proxy mode off; everything as it was afterwards, whatever happened."""
    write, crop = inside(group, "Render"), inside(group, "Bound")
    os.makedirs(Path(pattern).parent, exist_ok=True)
    changed: list[tuple[Knob, Any]] = []

    def put(node: Node, name: str, value: Any) -> None:
        """Where this Nuke has the knob, and only where it says something else."""
        knob = node.knob(name)
        if knob is not None and knob.value() != value:
            changed.append((knob, knob.value()))
            knob.setValue(value)

    box, was_off = list(crop["box"].value()), bool(crop["disable"].value())
    try:
        put(root, "proxy", False)
        bound(group, "Bound")
        for name, value in WRITE.items():
            put(write, name, value)
        put(write, "datatype", knobs.DEPTHS[str(group[knobs.DEPTH].value())])
        put(write, "noprefix", True)
        # with Nuke's word for the view in the name, else the channels of a second view get its name in front
        path = nuke_path(pattern)
        put(write, "file", with_views(path, view) if view else path)
        put(write, "disable", False)
        yield write
    finally:
        for knob, before in reversed(changed):
            knob.setValue(before)
        crop["disable"].setValue(was_off)
        if list(crop["box"].value()) != box:
            for index, side in enumerate(box):
                crop["box"].setValue(float(side), index)
