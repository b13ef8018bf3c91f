"""Writes the timelines that play the results: OTIO always, and the kind that came in where it can say it.

The kind that came in is not written by its adapter, which would drop retimes and more, but changed in the document
itself; then it is read again, and what does not read as it was meant is not handed over.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from ...errors import FaceplateError, InputError
from ...media.atomic import atomic_write
from ...media.timelines import aaf_write, edl_write, fcp7_write, fcpx_write, otioz_write
from ...media.timelines.files import Document, open_timeline
from ...media.timelines.linking import url_path
from ...media.timelines.place import Result, add_elements, replace_media
from ...media.timelines.times import seconds
from ...media.timelines.uses import Use, find_uses
from ..events import Emit, warning
from .spec import RenderJob

Placed = Sequence[tuple[Any, Result]]

_TEXTS: dict[str, Callable[[Document, Placed], tuple[str, list[tuple[Any, str]]]]] = {
    "fcp7": fcp7_write.rewrite,
    "fcpx": fcpx_write.rewrite,
    "edl": edl_write.rewrite,
}


def write_timelines(job: RenderJob, document: Document, results: Placed, emit: Emit) -> list[Path]:
    """Write them into the output folder; `results` are clips of `document.timeline`, which is changed.

    Returns:
        The files.

    Raises:
        OutputError: one cannot be written.
    """
    import opentimelineio as otio

    written = []
    if document.kind not in ("otio", "otioz"):
        same = job.output / f"{job.timeline.stem}.faceplate{job.timeline.suffix}"
        if job.element:
            emit(warning(f"{document.title} is not written: a face above its plate is said by the .otio alone"))
        elif _write_same(document, results, same, job, emit):
            written.append(same)
    if job.element:
        for name in add_elements(document.timeline, results):
            emit(warning(f"{name} lies in a nest; its element is rendered and placed on no track"))
    else:
        replace_media(results)
    target = job.output / f"{job.timeline.stem}.faceplate.otio"
    with atomic_write(target) as temporary:
        temporary.write_text(otio.adapters.write_to_string(document.timeline, "otio_json"), "utf-8")
    written.insert(0, target)
    if document.kind == "otioz":
        bundle = job.output / f"{job.timeline.stem}.faceplate.otioz"
        with atomic_write(bundle) as temporary:
            otioz_write.write(document, temporary)
        written.append(bundle)
    return written


def _write_same(document: Document, results: Placed, target: Path, job: RenderJob, emit: Emit) -> bool:
    """The kind that came in; False where it was not written, and why has been said."""
    uses = find_uses(document.timeline)
    try:
        with atomic_write(target) as temporary:
            if document.kind == "aaf":
                shutil.copyfile(document.path, temporary)
                refused = aaf_write.rewrite(str(temporary), results, _clips(uses))
            else:
                text, refused = _TEXTS[document.kind](document, results)
                temporary.write_text(text, "utf-8")
            left = {id(clip) for clip, _ in refused}
            kept = [(clip, result) for clip, result in results if id(clip) not in left]
            again = open_timeline(temporary, job.rate, document.timeline.name or None)
            differs = differences(uses, kept, again, by_name=document.kind == "edl")
            if differs:
                raise _Differs(differs)
    except _Differs as error:
        emit(warning(f"{document.title} is not written, since it does not read back as meant: {error}; see the .otio"))
        return False
    except InputError as error:
        emit(warning(f"{document.title} is not written: {error}; see the .otio"))
        return False
    for clip, reason in refused:
        emit(warning(f"{target.name} keeps the editor's media for {clip.name}: {reason}; see the .otio"))
    return True


class _Differs(FaceplateError):
    """What reads back otherwise."""

    def __init__(self, found: Sequence[str]) -> None:
        super().__init__("; ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else ""))


def _clips(uses: Sequence[Use]) -> list[Any]:
    return list({id(use.clip): use.clip for use in uses}.values())


def differences(uses: Sequence[Use], results: Placed, again: Document, *, by_name: bool) -> list[str]:
    """What a written timeline shows otherwise than it should, in words.

    Args:
        uses: of the timeline that came in.
        results: which of its clips play what.
        again: the written one, read.
        by_name: the kind knows media by name and timecode alone.
    """
    found = find_uses(again.timeline)
    if len(found) != len(uses):
        return [f"{len(found)} clips in place of {len(uses)}"]
    by_clip = {id(clip): result for clip, result in results}
    wrong = []
    for old, new in zip(uses, found, strict=True):
        result = by_clip.get(id(old.clip))
        if (old.line.start, old.line.end, old.line.slope) != (new.line.start, new.line.end, new.line.slope):
            wrong.append(f"{old.clip.name} lies elsewhere or plays at another speed")
        elif by_name:
            if old.line != new.line or (result is not None and edl_write.result_name(result) not in _names(new)):
                wrong.append(f"{old.clip.name} shows other frames or has another name")
        elif result is None:
            if old.line != new.line or _path(old) != _path(new):
                wrong.append(f"{old.clip.name} shows other media")
        elif not _plays(old, new, result):
            wrong.append(f"{old.clip.name} shows other frames than {result.path.name} has for it")
    return wrong


def _plays(old: Use, new: Use, result: Result) -> bool:
    """Whether the frame that the plate showed is the one that the result shows."""
    first = result.path if result.is_movie else result.picture(result.frames[0])
    if Path(_path(new)) != first:
        return False
    available = new.clip.media_reference.available_range
    if available is None or round(available.duration.value) != result.length:
        return False
    begins = seconds(available.start_time)
    was = (old.line.at(old.line.start) - result.begins) * result.count + result.first
    now = (new.line.at(new.line.start) - begins) * result.count + result.frames[0]
    return abs(was - now) < Fraction(1, 1000)


def _path(use: Use) -> str:
    return url_path(getattr(use.clip.media_reference, "target_url", None) or "")


def _names(use: Use) -> tuple[str, ...]:
    return (use.clip.name,)
