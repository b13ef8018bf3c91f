"""The job record: a JSON file beside a result that says how it came to be, enough to do it again or take it back.

    faceplate job record, version 1
    id                   names the job in the document's tags
    host, project        who made it: "blender 4.5.15", {"id", "name"}
    clip                 {"id", "name", "view"}
    source               what the server read: a pattern or movie; for a baked clip the bake's own pattern
    baked                why the clip was baked first, "" where it was not
    frames, used, start  file numbers that the job covers, those that the clip shows, timeline frame of the first shown
    whole                whether `used` was all that the clip showed
    size, pixel_aspect, fps
    pattern              of the result
    sidecar              what analysis found
    colour_in            as the job named it, null where the file says
    colour_out           {"space", "interop_id"} of the result, null before the first frame was done
    mode                 how the result is placed
    placed               whether it was
    recipe               identities, settings and so on
    states               {"done": "1001-1010,1012", "failed": "1011"}: how frames ended; those not named are to do
    errors               {"1011": "..."} of the failed ones
    notes                what the server said

The file is replaced in one step, so that a reader or a crash never meets half of it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from . import wire
from .errors import BadFrames, FolderFailed, RecordDamaged
from .frame_maths import Span, as_text, from_text
from .host import PlaceMode

FORMAT = "faceplate job record"
VERSION = 1
FINISHED = ("done", "no face", "held")
"""States of frames whose file is a result."""
_LARGEST = 64 << 20

Keys = Mapping[str, tuple[tuple[int, float], ...]]


def _none() -> Mapping[Any, Any]:
    return MappingProxyType({})


@dataclass(frozen=True)
class Recipe:
    """What is to be made of a clip; the same for all hosts.

    Attributes:
        assignments: who becomes whom.
        settings: setting name to (timeline frame, value) keys; one key holds for all frames.
        layers: beside the beauty, names of the server's layers.
        engine: of the server.
        input_space: colour space of the source, over the clip's own; None for that. Of no meaning where the host
            renders the clip.
        holdout: files of what must stay the plate, numbered as the source; None for nothing.
        handles: frames more at either end, as far as the source has them.
        missing: what a hole in the source means: "error", "skip" or "hold".
        project: title to check consent against.
        commercial: refuse weights whose licence forbids paid work.
        bake: render the clip through the host even where its source could be read.
    """

    assignments: tuple[wire.Assignment, ...]
    settings: Keys = field(default_factory=_none)
    layers: tuple[str, ...] = ()
    engine: str = "mesh"
    input_space: str | None = None
    holdout: tuple[str, str] | None = None
    handles: int = 0
    missing: str = "error"
    project: str | None = None
    commercial: bool = False
    bake: bool = False

    def to_json(self) -> dict[str, Any]:
        """JSON values that `from_json` takes back."""
        return {
            **{spec.name: getattr(self, spec.name) for spec in dataclasses.fields(self)},
            "assignments": [[one.identity, one.track] for one in self.assignments],
            "settings": {name: [list(key) for key in keys] for name, keys in self.settings.items()},
            "layers": list(self.layers),
            "holdout": None if self.holdout is None else list(self.holdout),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Recipe:
        """The inverse of `to_json`; raises KeyError, TypeError or ValueError for anything else."""
        values = dict(document)
        values["assignments"] = tuple(wire.Assignment(str(path), track) for path, track in values["assignments"])
        values["settings"] = {
            str(name): tuple((int(frame), float(value)) for frame, value in keys)
            for name, keys in values["settings"].items()
        }
        values["layers"] = tuple(str(name) for name in values["layers"])
        if values["holdout"] is not None:
            pattern, layer = values["holdout"]
            values["holdout"] = (str(pattern), str(layer))
        return cls(**values)


@dataclass(frozen=True)
class JobRecord:
    """One result; the keys of the file are its attributes, see the head of this module.

    Attributes:
        path: of the file itself, not in it.
        states: by frame.
        errors: by frame.
    """

    path: Path
    id: str
    host: str
    project_id: str
    project: str
    clip_id: str
    clip: str
    view: str
    source: str
    baked: str
    frames: Span
    used: Span
    start: int
    size: tuple[int, int]
    pixel_aspect: float
    fps: float
    pattern: str
    sidecar: str
    colour_in: str | None
    mode: PlaceMode
    recipe: Recipe
    colour_space: str = ""
    interop_id: str = ""
    whole: bool = True
    placed: bool = False
    states: Mapping[int, str] = field(default_factory=_none)
    errors: Mapping[int, str] = field(default_factory=_none)
    notes: tuple[str, ...] = ()

    @property
    def failed(self) -> dict[int, str]:
        """Frames that have no result, with the reason."""
        return {
            frame: self.errors.get(frame, state)
            for frame, state in sorted(self.states.items())
            if state not in FINISHED
        }

    @property
    def timeline(self) -> Span:
        """Timeline frames that the result covers."""
        return Span(self.start, self.start + len(self.used) - 1)

    @property
    def to_do(self) -> tuple[int, ...]:
        """Frames of the job that have no result."""
        return tuple(frame for frame in self.frames if self.states.get(frame) not in FINISHED)

    def save(self) -> JobRecord:
        """Write the file in one step; the record itself is given back.

        Raises:
            FolderFailed: it cannot be written.
        """
        text = json.dumps(self._document(), indent=1, ensure_ascii=False)
        write_whole(self.path, text.encode("utf-8", "surrogateescape"))
        return self

    def _document(self) -> dict[str, Any]:
        by_state: dict[str, list[int]] = {}
        for frame, state in self.states.items():
            by_state.setdefault(state, []).append(frame)
        return {
            "format": FORMAT,
            "version": VERSION,
            "id": self.id,
            "host": self.host,
            "project": {"id": self.project_id, "name": self.project},
            "clip": {"id": self.clip_id, "name": self.clip, "view": self.view},
            "source": self.source,
            "baked": self.baked,
            "frames": str(self.frames),
            "used": str(self.used),
            "start": self.start,
            "whole": self.whole,
            "size": list(self.size),
            "pixel_aspect": self.pixel_aspect,
            "fps": self.fps,
            "pattern": self.pattern,
            "sidecar": self.sidecar,
            "colour_in": self.colour_in,
            "colour_out": {"space": self.colour_space, "interop_id": self.interop_id},
            "mode": self.mode.value,
            "placed": self.placed,
            "recipe": self.recipe.to_json(),
            "states": {state: as_text(frames) for state, frames in sorted(by_state.items())},
            "errors": {str(frame): text for frame, text in sorted(self.errors.items())},
            "notes": list(self.notes),
        }


def load(path: Path | str) -> JobRecord:
    """Read a record.

    Raises:
        RecordDamaged: it is not there, of another version, or not as this module writes it.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise RecordDamaged(
            f"the job record {path} cannot be read",
            found=error.strerror or str(error),
            hint="the result folder was moved or deleted: remove the result from the document and apply again",
        ) from error
    try:
        document = json.loads(data.decode("utf-8", "surrogateescape"))
        found = (document["format"], document["version"])
        if found != (FORMAT, VERSION):
            raise RecordDamaged(
                f"{path} is no job record of this version", expected=f"version {VERSION}", found=f"{found}"
            )
        return _record(path, document)
    except (ValueError, KeyError, TypeError, AttributeError, BadFrames, RecursionError) as error:
        raise RecordDamaged(f"the job record {path} is damaged", found=f"{type(error).__name__}: {error}") from error


def _span(text: str) -> Span:
    numbers = from_text(text)
    return Span(numbers[0], numbers[-1])


def _record(path: Path, document: Mapping[str, Any]) -> JobRecord:
    width, height = document["size"]
    space = document["colour_in"]
    return JobRecord(
        path=path,
        id=str(document["id"]),
        host=str(document["host"]),
        project_id=str(document["project"]["id"]),
        project=str(document["project"]["name"]),
        clip_id=str(document["clip"]["id"]),
        clip=str(document["clip"]["name"]),
        view=str(document["clip"]["view"]),
        source=str(document["source"]),
        baked=str(document["baked"]),
        frames=_span(document["frames"]),
        used=_span(document["used"]),
        start=int(document["start"]),
        size=(int(width), int(height)),
        pixel_aspect=float(document["pixel_aspect"]),
        fps=float(document["fps"]),
        pattern=str(document["pattern"]),
        sidecar=str(document["sidecar"]),
        colour_in=None if space is None else str(space),
        mode=PlaceMode(document["mode"]),
        recipe=Recipe.from_json(document["recipe"]),
        colour_space=str(document["colour_out"]["space"]),
        interop_id=str(document["colour_out"]["interop_id"]),
        whole=document["whole"] is True,
        placed=document["placed"] is True,
        states={frame: str(state) for state, text in document["states"].items() for frame in from_text(text)},
        errors={int(frame): str(text) for frame, text in document["errors"].items()},
        notes=tuple(str(text) for text in document["notes"]),
    )


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that others see the old one or the whole new one.

    Raises:
        FolderFailed: it cannot be written; what was there stays.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise FolderFailed(f"cannot write {path}", found=error.strerror or str(error)) from error
