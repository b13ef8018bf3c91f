# SPDX-License-Identifier: Apache-2.0
"""What to do for a group, as functions of a `Session`; the same for a button, the menu and a script in a terminal.

A group is read when the work is made, on Nuke's main thread; the work itself may run on another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from faceplate_client import actions, job_record
from faceplate_client.errors import BadFrames, RecordDamaged
from faceplate_client.frame_maths import Span
from faceplate_client.host import Clip
from faceplate_client.job_record import JobRecord, Recipe
from faceplate_client.outcome import Analysis, BatchOutcome, Manner
from faceplate_client.task import Session

from .host import NukeHost, surroundings

Work = Callable[[Session], BatchOutcome]


def process(host: NukeHost, group: str, part: Span | None = None, *, lasting: bool = True) -> Work:
    """Make a group's range, or a part of it, in all views that it does.

    A result that was made with the same settings is gone on with: what is done and still true is kept. Other settings
    make a new version, except for a single frame that is tried again and again.

    Args:
        host: the script.
        group: full name.
        part: frames, None for all of the group's range.
        lasting: see `Manner`.

    Raises:
        ClipGone, BadClip, BadFrames: the group cannot be worked on.
    """
    clips = host.views(group)
    whole = clips[0].timeline
    frames = whole if part is None else part
    if frames.meet(whole) is None:
        raise BadFrames(f"{group} does not have frame {frames}", expected=str(whole), hint="set its range")
    recipe = host.recipe(group, whole)
    root = host.folder(group)
    manner = Manner(folder=root, bakes=host.bakes(clips[0], root or host.project().folder), lasting=lasting)
    into = _going_on(host, clips, frames, recipe)
    note = surroundings().colour.text

    def work(session: Session) -> BatchOutcome:
        session.note(note)
        if into or part is not None:
            records = {view: record.path for view, record in into.items()}
            return actions.process_ranges(session, clips, frames, recipe, manner, into=records)
        return actions.apply(session, clips, recipe, manner)

    return work


def _going_on(host: NukeHost, clips: tuple[Clip, ...], frames: Span, recipe: Recipe) -> dict[str, JobRecord]:
    """Records of the placed results that this one goes on with, by view; none for a new version."""
    found = {}
    for clip in clips:
        placed = next((one for one in host.results() if (one.clip_id, one.view) == (clip.id, clip.view)), None)
        if placed is None:
            return {}
        try:
            record = job_record.load(placed.tag.record)
        except RecordDamaged:
            return {}  # its folder was moved or deleted: a new version does no harm
        same = record.recipe == recipe and (record.baked != "" or record.source == clip.source)
        near = Span(record.timeline.first - 1, record.timeline.last + 1).meet(frames) is not None
        again = len(frames) == 1 and record.timeline == frames
        if not (again or (same and near)):
            return {}
        found[clip.view] = record
    return found


def find_faces(host: NukeHost, group: str) -> Callable[[Session], Analysis]:
    """The faces of a group's input, in its first view.

    Raises:
        ClipGone, BadClip, BadFrames: the group cannot be worked on.
    """
    clip, root = host.views(group)[0], host.folder(group)
    handles, rendered = host.handles(group)
    if rendered and not clip.needs_bake:
        clip = replace(clip, source="", media=None, used=clip.timeline, processed="asked for", colour_space=None)
    manner = Manner(folder=root, bakes=host.bakes(clip, root or host.project().folder))
    return lambda session: actions.analyse(session, clip, handles=handles, manner=manner)
