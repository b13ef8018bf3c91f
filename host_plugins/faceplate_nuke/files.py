# SPDX-License-Identifier: Apache-2.0
"""File names as Nuke has them and as the server has them. Imports nothing of Nuke.

Nuke runs what stands in brackets in a file knob, takes $ for a variable, a backslash for an escape, and %d, %V and #
for frames and views. A name that has such signs of its own means something else to it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

_NUMBER = re.compile(r"%(?:0(\d+))?d|(#+)")
_RUN = "[]$\\"
"""Signs that only Nuke can resolve."""
_AWKWARD = re.compile(r"[][$%#\\]")


def pattern_of(file: str, view: str) -> str | None:
    """A file knob's text as the server takes it, "#" for digits; None where only Nuke can tell what it means."""
    if any(sign in file for sign in _RUN) or not os.path.isabs(file):
        return None
    if view:
        file = file.replace("%V", view).replace("%v", view[:1])
    folder, name = os.path.split(file)
    found = list(_NUMBER.finditer(name))
    if len(found) != 1 or "%" in folder + _NUMBER.sub("", name) or "#" in folder:
        return None
    digits = "#" * (len(found[0][2]) if found[0][2] else int(found[0][1] or 1))
    return os.path.join(folder, name[: found[0].start()] + digits + name[found[0].end() :])


def file_at(pattern: str, frame: int) -> Path:
    """The file of a frame, of a pattern with any number of digits."""
    folder, name = os.path.split(pattern)
    return Path(folder) / re.sub(r"#+", lambda digits: f"{frame:0{len(digits[0])}d}", name, count=1)


def has_view(file: str) -> bool:
    """Whether each view has files of its own."""
    return "%v" in file.lower()


def awkward_sign(folder: str) -> str | None:
    """The first sign in a folder that Nuke would take for something else, None where there is none."""
    found = _AWKWARD.search(folder.replace("\\", "/") if os.sep == "\\" else folder)
    return found[0] if found else None


def nuke_path(pattern: str) -> str:
    """A pattern of the server as Nuke writes it: slashes, and %04d for "####"."""
    folder, name = os.path.split(pattern)
    digits = re.search(r"#+", name)
    assert digits is not None
    path = os.path.join(folder, name[: digits.start()] + f"%0{len(digits[0])}d" + name[digits.end() :])
    return path.replace("\\", "/")


def with_views(path: str, view: str) -> str:
    """The same with Nuke's word for the view: results of all views lie beside each other."""
    folder, name = os.path.split(path)
    head, dot, tail = name.rpartition(f".{view}.")
    return f"{folder}/{head}.%V.{tail}" if dot else path
