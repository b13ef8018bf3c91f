"""Events of a running job: plain mappings that print as JSON lines.

| event    | further keys                                                        |
|----------|---------------------------------------------------------------------|
| start    | job, plate, output, frames, folder, colour_space (of the results)   |
| note     | text                                                                |
| warning  | text                                                                |
| progress | stage ("analyse", "swap", "encode"), done, total                    |
| frame    | frame, state, output, seconds, error (failed frames)                |
| shot     | shot, state, counts, ... as done: a source of a timeline ended      |
| done     | text, state, counts, failed, folder, report                         |
| error    | type, message, expected, found, hint, exit_code (from the command)  |

In a timeline's render the events of a source's job have the key `shot`, and `progress` counts the frames of all
sources (stage "render"), or sources whose faces are found (stage "faces").
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
