"""Submissions between two servers: their paths and slots replaced, all else as it was."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from faceplate.media.sequence import is_pattern, output_path
from faceplate_client import wire

SENT = "/@sent"
"""Stands before a path that names a file which travels with the job; others are the team server's own."""
FRAME, ROOM = 1, 2
"""`generation` of a slot that stands for the n-th frame, or the n-th room, of a `job` head."""

_NUMBER = re.compile(r"-?[0-9]{1,18}")
Paths = Callable[[str], str]
Slots = Callable[[wire.SlotRef], wire.SlotRef]
_PATHS = ("plate", "output", "source", "faces", "sidecar", "pictures")


def slot_mark(kind: int, place: int) -> wire.SlotRef:
    """A slot of a submission on its way."""
    return wire.SlotRef("/slot", "-", kind, place, 0)


def rewritten(message: Any, paths: Paths, slots: Slots) -> Any:
    """A submission with every path and every slot replaced."""

    def reference(value: Any) -> Any:
        if isinstance(value, wire.SlotRef):
            return slots(value)
        if isinstance(value, wire.FileRef):
            return wire.FileRef(paths(value.pattern), value.frame)
        return paths(value) if isinstance(value, str) else value

    changes: dict[str, Any] = {}
    for name in _PATHS:
        if hasattr(message, name):
            changes[name] = reference(getattr(message, name))
    if hasattr(message, "assignments"):
        changes["assignments"] = tuple(
            dataclasses.replace(one, identity=paths(one.identity)) for one in message.assignments
        )
    if getattr(message, "holdout", None) is not None:
        changes["holdout"] = dataclasses.replace(message.holdout, matte=reference(message.holdout.matte))
    if isinstance(message, wire.SubmitFrame):
        changes["layers"] = tuple(
            dataclasses.replace(layer, output=reference(layer.output)) for layer in message.layers
        )
    return dataclasses.replace(message, **changes)


class PathMap:
    """Folders that both machines have, under their names here and there.

    Args:
        table: local folder to the team server's, both absolute.
    """

    def __init__(self, table: Mapping[str, str]) -> None:
        clean = {here.rstrip("/") or "/": there.rstrip("/") or "/" for here, there in table.items()}
        self._table = sorted(clean.items(), key=lambda pair: -len(pair[0]))

    def there(self, path: str) -> str | None:
        """A path as the team server has it; None for what the machines do not share."""
        for here, there in self._table:
            if path == here or path.startswith(here.rstrip("/") + "/"):
                rest = path[len(here.rstrip("/")) :]
                return (there.rstrip("/") + rest) or "/"
        return None

    def here(self, data: bytes) -> bytes:
        """A message's JSON with the team server's paths as this machine has them, also inside sentences."""
        for here, there in sorted(self._table, key=lambda pair: -len(pair[1])):
            if there != "/":
                old = re.escape(_json(there))
                new = _json(here)
                data = re.sub(rb'(?<=["\s])' + old + rb'(?=[/"\s;,:])', new.replace(b"\\", b"\\\\"), data)
        return data


def _json(text: str) -> bytes:
    """Text as it stands inside a JSON string of the wire."""
    return json.dumps(text)[1:-1].encode("ascii")


def is_frame_of(pattern: str, path: Path) -> bool:
    """Whether a path is one frame of an output pattern, or the lone output itself."""
    if not is_pattern(pattern):
        return Path(pattern) == path
    return any(output_path(pattern, int(number)) == path for number in _NUMBER.findall(path.name))
