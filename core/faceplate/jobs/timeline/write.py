"""Writes the timelines that play the results: OTIO always, and the kind that came in where it can say it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...media.atomic import atomic_write
from ...media.timelines.files import Document
from ...media.timelines.place import Result, add_elements, replace_media
from ..events import Emit, warning
from .spec import RenderJob


def write_timelines(
    job: RenderJob, document: Document, results: Sequence[tuple[Any, Result]], emit: Emit
) -> list[Path]:
    """Write them into the output folder; `results` are clips of `document.timeline`, which is changed.

    Returns:
        The files.

    Raises:
        OutputError: one cannot be written.
    """
    import opentimelineio as otio

    if job.element:
        for name in add_elements(document.timeline, results):
            emit(warning(f"{name} lies in a nest; its element is rendered and placed on no track"))
    else:
        replace_media(results)
    target = job.output / f"{job.timeline.stem}.faceplate.otio"
    with atomic_write(target) as temporary:
        temporary.write_text(otio.adapters.write_to_string(document.timeline, "otio_json"), "utf-8")
    return [target]
