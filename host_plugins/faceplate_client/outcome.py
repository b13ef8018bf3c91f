"""How actions do their work, and how they end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import wire
from .errors import ClientError
from .host import Placed, PlaceMode
from .job_record import JobRecord


@dataclass(frozen=True)
class Manner:
    """How actions do their work, whatever they make.

    Attributes:
        folder: result root, None for the project's own.
        bakes: folder for what the host renders, which is removed when the server has read it; None keeps it beside the
            result.
        mode: how results are placed, None for the host's preferred way.
        place: whether to place at all; False leaves the files and the record.
        place_partial: place a cancelled job too; frames that are not done show the slate.
        resume: go on with the newest version of a clip where that was never placed and has the same recipe, instead of
            a new one: so a job that was cancelled, or whose host crashed, does nothing twice.
        lasting: whether the document will be saved with what is placed in it. A batch that renders a document and
            leaves it alone says False: the next one then goes on with the same versions.
        retry_s: seconds that a server which went away in mid-job is waited for.
    """

    folder: Path | None = None
    bakes: Path | None = None
    mode: PlaceMode | None = None
    place: bool = True
    place_partial: bool = False
    resume: bool = True
    lasting: bool = True
    retry_s: float = 30.0


@dataclass(frozen=True)
class ClipOutcome:
    """How an action on one clip ended.

    Attributes:
        clip: name.
        state: "done", "cancelled" or "failed".
        record: job record, None where the clip failed before there was one.
        placed: the result in the document, None where nothing was placed.
        failed: file numbers of the frames that have no result and show a slate, with the reason.
        notes: what server and host had to say, e.g. "jane: no consent record".
        error: why the clip as a whole failed.
    """

    clip: str
    state: str
    record: JobRecord | None = None
    placed: Placed | None = None
    failed: Mapping[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    error: ClientError | None = None

    def to_json(self) -> dict[str, Any]:
        """For a report file."""
        record, error = self.record, self.error
        return {
            "clip": self.clip,
            "state": self.state,
            "job": record.id if record else None,
            "record": str(record.path) if record else None,
            "pattern": record.pattern if record else None,
            "frames": str(record.frames) if record else None,
            "placed": self.placed is not None,
            "failed": {str(frame): text for frame, text in self.failed.items()},
            "notes": list(self.notes),
            "error": None if error is None else _error(error),
        }


def _error(error: ClientError) -> dict[str, str]:
    return {"type": type(error).__name__, "message": str(error), "hint": error.hint}


@dataclass(frozen=True)
class BatchOutcome:
    """How an action on several clips ended.

    Attributes:
        clips: in the order of the timeline; clips that were not begun are among them as "cancelled" or "failed".
        notes: of the action as a whole.
    """

    clips: tuple[ClipOutcome, ...]
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 done, 1 frames or clips failed, 130 cancelled."""
        if any(one.state == "cancelled" for one in self.clips):
            return 130
        return 1 if any(one.state == "failed" or one.failed for one in self.clips) else 0

    @property
    def text(self) -> str:
        """One line for a status bar."""
        words = []
        for state in ("done", "cancelled", "failed"):
            number = sum(1 for one in self.clips if one.state == state)
            if number:
                words.append(f"{number} {state}")
        frames = sum(len(one.failed) for one in self.clips)
        return "Faceplate: " + ", ".join(words or ["nothing to do"]) + (f"; {frames} frames failed" if frames else "")

    def to_json(self) -> dict[str, Any]:
        """For a report file."""
        return {
            "format": "faceplate batch report",
            "version": 1,
            "exit_code": self.exit_code,
            "text": self.text,
            "notes": list(self.notes),
            "clips": [one.to_json() for one in self.clips],
        }


@dataclass(frozen=True)
class Analysis:
    """The faces of a clip.

    Attributes:
        sidecar: what was found, in a file that `tracks.py` reads and corrects.
        tracks: for the artist to choose, each with a picture; none where the analysis was cancelled.
        notes: what the server had to say.
        cancelled: whether it was.
    """

    sidecar: Path
    tracks: tuple[wire.TrackFound, ...]
    notes: tuple[str, ...] = ()
    cancelled: bool = False
