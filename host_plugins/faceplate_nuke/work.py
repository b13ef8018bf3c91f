# SPDX-License-Identifier: Apache-2.0
"""What to do for a group, as functions of a `Session`; the same for a button, the menu and a script in a terminal.

A group is read when the work is made, on Nuke's main thread; the work itself may run on another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from faceplate_client import actions, job_record
from faceplate_client.errors import ActionStopped, BadFrames, ClientError, RecordDamaged
from faceplate_client.frame_maths import Span
from faceplate_client.host import Clip
from faceplate_client.job_record import JobRecord, Recipe
from faceplate_client.outcome import Analysis, BatchOutcome, ClipOutcome, Manner
from faceplate_client.result_folder import clip_folder
from faceplate_client.task import Session

from .application import surroundings
from .host import NukeHost

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
    host.begin(group)
    clips = host.views(group)
    whole = clips[0].timeline
    frames = whole if part is None else part
    if frames.meet(whole) is None:
        raise BadFrames(f"{group} does not have frame {frames}", expected=str(whole), hint="set its range")
    recipe = host.recipe(group, whole)
    root = host.folder(group)
    manner = Manner(folder=root, bakes=host.bakes(clips[0], root or host.project().folder), lasting=lasting)
    into = _going_on(
        host, clips, frames, recipe, clip_folder(root or host.project().folder, host.project().name, clips[0])
    )
    note = surroundings().colour.text

    def work(session: Session) -> BatchOutcome:
        session.note(note)
        if into or part is not None:
            records = {view: record.path for view, record in into.items()}
            return actions.process_ranges(session, clips, frames, recipe, manner, into=records)
        return actions.apply(session, clips, recipe, manner)

    return work


def _going_on(host: NukeHost, clips: tuple[Clip, ...], frames: Span, recipe: Recipe, own: Path) -> dict[str, JobRecord]:
    """Records of the placed results that this one goes on with, by view; none for a new version.

    Args:
        own: the folder of this group's versions; a group that was copied shows the result of another one at first.
    """
    found = {}
    results = host.results()
    for clip in clips:
        placed = next((one for one in results if (one.clip_id, one.view) == (clip.id, clip.view)), None)
        if placed is None:
            return {}
        try:
            record = job_record.load(placed.tag.record)
        except RecordDamaged:
            return {}  # its folder was moved or deleted: a new version does no harm
        same = record.recipe == recipe and (record.baked != "" or record.source == clip.source)
        near = Span(record.timeline.first - 1, record.timeline.last + 1).meet(frames) is not None
        shown = sum(one.tag.record == placed.tag.record for one in results)
        mine = shown == 1 and record.path.parent.parent == own  # else another group shows these files
        again = mine and len(frames) == 1 and record.timeline == frames
        if not (again or (same and near)):
            return {}
        found[clip.view] = record
    return found


def process_each(host: NukeHost, groups: Sequence[str]) -> Work:
    """Make the ranges of several groups, one after the other; one that cannot be done does not stop the others."""
    works: list[tuple[str, Work | ClientError]] = []
    for group in groups:
        try:
            works.append((group, process(host, group)))
        except ClientError as error:
            works.append((group, error))

    def work(session: Session) -> BatchOutcome:
        outcomes = [_one_of(session, group, one) for group, one in works]
        notes = dict.fromkeys(note for outcome in outcomes for note in outcome.notes)
        return BatchOutcome(tuple(clip for outcome in outcomes for clip in outcome.clips), tuple(notes))

    return work


def _one_of(session: Session, group: str, one: Work | ClientError) -> BatchOutcome:
    if isinstance(one, ClientError):
        return BatchOutcome((ClipOutcome(group, "failed", error=one),))
    if session.is_cancelled:
        return BatchOutcome((ClipOutcome(group, "cancelled"),))
    try:
        return one(session)
    except ActionStopped:
        raise
    except ClientError as error:
        return BatchOutcome((ClipOutcome(group, "failed", error=error),))


def find_faces(host: NukeHost, group: str) -> Callable[[Session], Analysis]:
    """The faces of a group's input, in its first view.

    Raises:
        ClipGone, BadClip, BadFrames: the group cannot be worked on.
    """
    host.begin(group)
    clip, root = host.views(group)[0], host.folder(group)
    handles, rendered = host.handles(group)
    if rendered and not clip.needs_bake:
        clip = replace(clip, source="", media=None, used=clip.timeline, processed="asked for", colour_space=None)
    manner = Manner(folder=root, bakes=host.bakes(clip, root or host.project().folder))
    return lambda session: actions.analyse(session, clip, handles=handles, manner=manner)
