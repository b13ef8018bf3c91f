"""Which files belong to a job: those that a reference names, and those that it leaves behind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from faceplate.jobs.lock import GATE, RUNS_FOLDER
from faceplate.jobs.spec import job_folder
from faceplate.media.atomic import is_temporary
from faceplate.media.sequence import is_pattern, output_path
from faceplate_client import wire


def file_of(reference: wire.FileRef) -> Path:
    """The file that a reference names."""
    if reference.frame is None or not is_pattern(reference.pattern):
        return Path(reference.pattern)
    return output_path(reference.pattern, reference.frame)


def made(message: Any, here: Callable[[str], str], end: Any) -> Iterator[Path]:
    """Files that a job may have made, besides its frames."""
    if isinstance(message, wire.SubmitRange):
        if not is_pattern(message.output):
            yield Path(here(message.output))
        yield from below(job_folder(here(message.output)))
    if isinstance(message, wire.SubmitAnalyse):
        if message.pictures is not None:
            yield from below(Path(here(message.pictures)))
        if isinstance(end, wire.Done) and end.sidecar is not None:
            yield Path(end.sidecar)


def below(folder: Path) -> Iterator[Path]:
    """All files of a job folder but its locks and what is half written."""
    for top, folders, names in os.walk(folder):
        if RUNS_FOLDER in folders:
            folders.remove(RUNS_FOLDER)
        for name in sorted(names):
            if name != GATE and not is_temporary(name):
                yield Path(top) / name
