"""Events of a running job: plain mappings that print as JSON lines.

| event    | further keys                                                        |
|----------|---------------------------------------------------------------------|
| start    | job, plate, output, frames, folder, colour_space (of the results)   |
| note     | text                                                                |
| warning  | text                                                                |
| progress | stage ("analyse", "swap", "encode"), done, total                    |
| frame    | frame, state, output, seconds, error (failed frames)                |
| done     | text, state, counts, failed, folder, report                         |
| error    | type, message, expected, found, hint, exit_code (from the command)  |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Emit = Callable[[Mapping[str, Any]], None]


def note(text: str) -> dict[str, Any]:
    """Something worth knowing."""
    return {"event": "note", "text": text}


def warning(text: str) -> dict[str, Any]:
    """Something to look at."""
    return {"event": "warning", "text": text}


def progress(stage: str, done: int, total: int) -> dict[str, Any]:
    """How far a stage is."""
    return {"event": "progress", "stage": stage, "done": done, "total": total}
