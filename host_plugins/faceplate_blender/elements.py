# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of an image strip. Imports nothing of Blender.

Blender (4.2 to 5.2) leaves the size of files that a script appends to a strip as whatever its memory held, and its
scripts cannot set it. Where such a file is missing or unreadable when it is rendered, Blender makes a picture of that
size to say so, and mostly dies. Only a file that was loaded once has its size from then on.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from faceplate_client.exr_head import is_cut_off

from .shim import Api

_NAME_BYTES = 256


class _Element(ctypes.Structure):
    """Blender's `StripElem` (DNA_sequence_types.h), the same in 4.2 to 5.2."""

    _fields_ = [
        ("name", ctypes.c_char * _NAME_BYTES),
        ("width", ctypes.c_int),
        ("height", ctypes.c_int),
        ("fps", ctypes.c_float),
    ]


def append(strip: Any, names: Iterable[str]) -> None:
    """Append files, of the size of the strip's first.

    Args:
        strip: an image strip.
        names: in the strip's folder.
    """
    for name in names:
        strip.elements.append(name)
    first, *others = strip.elements
    model = _element(first)
    if model is None:
        return  # another layout, in a Blender that is not known yet: it is not touched
    for other in others:
        element = _element(other)
        if element is not None:
            element.width, element.height, element.fps = model.width, model.height, model.fps


def replace(strip: Any, files: list[str]) -> None:
    """Let a strip show other files.

    Args:
        strip: an image strip.
        files: paths in one folder, of the size of the strip's first.
    """
    while len(strip.elements) > len(files):
        strip.elements.pop(len(strip.elements) - 1)
    for element, path in zip(strip.elements, files):
        element.filename = os.path.basename(path)
    strip.directory = os.path.join(os.path.dirname(files[0]), "")
    append(strip, [os.path.basename(path) for path in files[len(strip.elements) :]])


def _element(element: Any) -> _Element | None:
    """What lies in memory, None where that is not what Blender says of it."""
    found = _Element.from_address(element.as_pointer())
    said = (os.fsencode(element.filename), element.orig_width, element.orig_height)
    return found if (found.name, found.width, found.height) == said else None


def unfit(api: Api, strip: Any, frame: int, absolute: Callable[[str], str]) -> Iterator[str]:
    """What is wrong with files that a strip should show at a timeline frame, inside meta strips too: Blender would show
    something plain in their place.

    Args:
        api: words of this version.
        strip: of any kind.
        frame: of the timeline.
        absolute: `bpy.path.abspath`.
    """
    if strip.type == "META":
        for inner in api.children(strip):
            first, last = api.visible(inner)
            if not inner.mute and first <= frame <= last:
                yield from unfit(api, inner, frame, absolute)
        return
    path = ""
    if strip.type == "IMAGE":
        path = os.path.join(strip.directory, strip.strip_elem_from_frame(frame).filename)
    elif strip.type == "MOVIE":
        path = strip.filepath
    elif strip.type == "MOVIECLIP" and strip.clip is not None and strip.clip.source == "MOVIE":
        path = strip.clip.filepath
    if not path:
        return
    file = Path(absolute(path).replace("\\", "/"))  # as Blender takes it, on every system
    try:
        if file.stat().st_size == 0 or is_cut_off(file):
            yield f"{file} is not whole"
    except OSError as error:
        yield f"{file}: {error.strerror}"
