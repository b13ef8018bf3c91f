"""What plug-ins do, written once for all hosts: apply, process a range, batch, refresh, remove, analyse.

Each function takes a `Session` (`task.py`) and may run on a worker thread. It touches the host through `session.ask`
alone, and changes the document only when all files are there, within one undo step. `live.py` has the effect that is
seen at once; `clip_work.py` one run over all clips; `clip_job.py` one clip's way to files; `result_folder.py` where
those lie; `job_record.py` what is kept.

All of them raise, before anything was touched:
    ServerNotFound          no server runs: offer to start one, then call again with `Servers(start=True)`
    ProtocolError           the server is of another release
    NoClips, BadFrames      there is nothing to do
What is wrong with one clip is in its outcome, and the others go on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from . import job_record, wire
from .clip_job import ClipJob
from .clip_work import Order, Work
from .errors import BadFrames, NoClips
from .frame_maths import Span
from .host import Clip, Host, Placed, Progress, Scope
from .job_record import Recipe
from .outcome import Analysis, BatchOutcome, ClipOutcome, Manner
from .plan import Plan, first_record
from .result_folder import VersionFolder, faces_file
from .server_jobs import ServerJobs
from .task import Session


def apply(session: Session, clips: Sequence[Clip], recipe: Recipe, manner: Manner | None = None) -> BatchOutcome:
    """Results for clips, each in a new version, placed in one undo step at the end.

    A clip that cannot be done does not stop the others; clips that were done before a cancel are placed.
    """
    if not clips:
        raise NoClips("no clip was chosen")
    work = Work(session, manner)
    return work.run([Order(clip.name, clip=clip, recipe=recipe) for clip in clips])


def process_range(
    session: Session,
    clip: Clip,
    timeline: Span,
    recipe: Recipe,
    manner: Manner | None = None,
    *,
    into: Path | None = None,
) -> ClipOutcome:
    """A stretch of a clip, one frame or more.

    Args:
        session: of the action.
        clip: whose frames.
        timeline: frames; those outside the clip are left out.
        recipe: what to make.
        manner: how.
        into: record of an earlier range of this clip, which grows by this one; it is placed when no frame between is
            left to do. None makes a new version.

    Raises:
        BadFrames: the clip has none of the frames.
        RecordDamaged: `into` cannot be read.
    """
    old = {} if into is None else {clip.view: into}
    (outcome,) = process_ranges(session, [clip], timeline, recipe, manner, into=old).clips
    return outcome


def process_ranges(
    session: Session,
    clips: Sequence[Clip],
    timeline: Span,
    recipe: Recipe,
    manner: Manner | None = None,
    *,
    into: Mapping[str, Path] = MappingProxyType({}),
) -> BatchOutcome:
    """The same stretch of several views of a clip, in one version; see `process_range`.

    Args:
        session: of the action.
        clips: the views.
        timeline: frames.
        recipe: what to make.
        manner: how.
        into: records of an earlier range, by view.

    Raises:
        BadFrames, RecordDamaged: as `process_range`.
    """
    orders = []
    for clip in clips:
        part = clip.timeline.meet(timeline)
        if part is None:
            raise BadFrames(
                f"clip {clip.name!r} has none of these frames", expected=str(clip.timeline), found=str(timeline)
            )
        old = job_record.load(into[clip.view]) if clip.view in into else None
        orders.append(Order(clip.name, clip=clip, recipe=recipe, part=part, old=old))
    return Work(session, manner).run(orders)


def batch(session: Session, scope: Scope, recipe: Recipe | None, manner: Manner | None = None) -> BatchOutcome:
    """All clips of a scope: those that have a result are refreshed as their record says, the others get one.

    Args:
        session: of the action.
        scope: which clips.
        recipe: for clips without a result; None leaves them out.
        manner: how.
    """
    clips = session.ask(lambda host: host.clips(scope))
    placed = {(one.clip_id, one.view): one for one in session.ask(lambda host: host.results())}
    orders = []
    for clip in clips:
        result = placed.get((clip.id, clip.view))
        if result is not None:
            orders.append(Order(clip.name, placed=result))
        elif recipe is not None:
            orders.append(Order(clip.name, clip=clip, recipe=recipe))
    if not orders:
        raise NoClips(f"no clip to work on among the {scope.value} ones")
    return Work(session, manner).run(orders)


def refresh(
    session: Session, results: Sequence[Placed], recipe: Recipe | None = None, manner: Manner | None = None
) -> BatchOutcome:
    """Do again what has changed of results: plate, trim, identity, settings, corrected tracks, failed frames.

    The server's manifest decides frame by frame, so that nothing is done twice. Where the clip was trimmed or moved,
    the result is placed anew.

    Args:
        session: of the action.
        results: in the document.
        recipe: another one from now on; None for that of each record.
        manner: how; its folder and resume do not matter.
    """
    if not results:
        raise NoClips("there is no result to refresh", hint="select a result, or a clip that has one")
    return Work(session, manner).run([Order(Path(one.pattern).name, placed=one, recipe=recipe) for one in results])


def remove(session: Session, results: Sequence[Placed]) -> int:
    """Take results out of the document and restore it exactly, in one undo step; files and records stay.

    Returns:
        How many were removed.

    Raises:
        PlaceFailed: one cannot be removed; those before it are.
    """

    def take_out(host: Host) -> int:
        with host.undo_step("Faceplate: Remove"):
            for one in results:
                host.remove(one)
        return len(results)

    session.report(Progress("remove", 0, len(results)))
    return session.ask(take_out)


def analyse(
    session: Session, clip: Clip, *, input_space: str | None = None, handles: int = 0, manner: Manner | None = None
) -> Analysis:
    """The faces of a clip, with a picture of each track for the artist to choose; the document is not touched.

    Args:
        session: of the action.
        clip: to look at.
        input_space: colour space of the source, over the clip's own.
        handles: frames more at either end, as the recipe will have them.
        manner: how; only folder and retry_s matter.
    """
    work = Work(session, manner)
    recipe = Recipe((), input_space=input_space, handles=handles)
    with work.server() as server:
        faces = faces_file(work.root, work.project.name, clip, baked=clip.needs_bake)
        files = VersionFolder(faces.parent, faces.name[: -len(".faces.json")])
        bakes = work.bakes(files)
        plan = Plan(clip, work.about, work.project, work.root, files, clip.timeline, recipe, work.mode, bakes=bakes)
        job = ClipJob(session, server, plan, first_record(plan))
        try:
            went = job.analyse(files.folder / files.stem)
        finally:
            work.forget(plan)
    return Analysis(faces, job.tracks, job.notes, cancelled=not went)


def identities(
    session: Session, folder: Path, *, project: str | None = None, pictures: Path | None = None
) -> tuple[wire.Person, ...]:
    """Who is in a folder's .fpid files, with consent state and thumbnail.

    Args:
        session: of the action.
        folder: absolute.
        project: title to check consent against.
        pictures: folder for the thumbnails, None makes none.

    Raises:
        ServerError: the folder cannot be read.
    """
    about = session.ask(lambda host: host.about())
    with ServerJobs(session, about.name, 0.0) as server:
        return server.client.identities(folder, project=project, pictures=pictures)
