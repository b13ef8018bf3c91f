"""What plug-ins do, written once for all hosts: apply, process a range, batch, refresh, remove, analyse.

Each function takes a `Session` (`task.py`) and may run on a worker thread. It touches the host through `session.ask`
alone, and changes the document only when all files are there, within one undo step. `live.py` has the effect that is
seen at once; `clip_job.py` a clip's way to files; `result_folder.py` where those lie; `job_record.py` what is kept.

All of them raise, before anything was touched:
    ServerNotFound          no server runs: offer to start one, then call again with `Servers(start=True)`
    ProtocolError           the server is of another release
    NoClips, BadFrames      there is nothing to do
What is wrong with one clip is in its outcome, and the others go on.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from . import job_record, wire
from .clip_job import ClipJob, Plan, first_record, next_record, slate_failures
from .errors import (
    ActionStopped,
    BadFrames,
    ClientError,
    ClipGone,
    ConnectionFailed,
    HostError,
    NoClips,
    RecordDamaged,
    TimedOut,
)
from .frame_maths import Span
from .host import Clip, Feature, Host, HostAbout, Placed, PlaceMode, Progress, Project, Result, Scope, Tag
from .job_record import JobRecord, Recipe
from .outcome import Analysis, BatchOutcome, ClipOutcome, Manner
from .result_folder import Holds, VersionFolder, clip_folder, faces_file, named, new_version, of_record, versions
from .server_jobs import ServerJobs
from .task import Session


def apply(session: Session, clips: Sequence[Clip], recipe: Recipe, manner: Manner | None = None) -> BatchOutcome:
    """Results for clips, each in a new version, placed in one undo step at the end.

    A clip that cannot be done does not stop the others; clips that were done before a cancel are placed.
    """
    if not clips:
        raise NoClips("no clip was chosen")
    work = _Work(session, manner)
    return work.run([_Order(clip.name, clip=clip, recipe=recipe) for clip in clips])


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
        orders.append(_Order(clip.name, clip=clip, recipe=recipe, part=part, old=old))
    return _Work(session, manner).run(orders)


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
            orders.append(_Order(clip.name, placed=result))
        elif recipe is not None:
            orders.append(_Order(clip.name, clip=clip, recipe=recipe))
    if not orders:
        raise NoClips(f"no clip to work on among the {scope.value} ones")
    return _Work(session, manner).run(orders)


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
    return _Work(session, manner).run([_Order(Path(one.pattern).name, placed=one, recipe=recipe) for one in results])


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
    work = _Work(session, manner)
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


@dataclass(frozen=True)
class _Order:
    """One clip of an action: a clip to be done, or a result to be done again."""

    name: str
    clip: Clip | None = None
    placed: Placed | None = None
    recipe: Recipe | None = None
    part: Span | None = None
    old: JobRecord | None = None


@dataclass
class _Ended:
    """A clip whose files are as good as they get; not placed yet."""

    order: _Order
    plan: Plan
    record: JobRecord
    before: JobRecord | None
    standing: Placed | None
    state: str
    notes: tuple[str, ...]
    failed: dict[int, str]
    error: ClientError | None = None
    placed: Placed | None = None

    def outcome(self) -> ClipOutcome:
        return ClipOutcome(
            self.plan.clip.name, self.state, self.record, self.placed, self.failed, self.notes, self.error
        )


class _Work:
    """One run of an action over its clips."""

    def __init__(self, session: Session, manner: Manner | None) -> None:
        self.session = session
        self.manner = manner if manner is not None else Manner()
        self.about: HostAbout = session.ask(lambda host: host.about())
        self.project: Project = session.ask(lambda host: host.project())
        self.root = self.manner.folder if self.manner.folder is not None else self.project.folder
        self.mode: PlaceMode = self.manner.mode if self.manner.mode is not None else self.about.places[0]
        self._shared: dict[str, Path] = {}
        self._held = Holds()

    def server(self) -> ServerJobs:
        return ServerJobs(self.session, self.about.name, self.manner.retry_s)

    def run(self, orders: Sequence[_Order]) -> BatchOutcome:
        """All clips' files, then all placed in one undo step."""
        ended: list[_Ended | ClipOutcome] = []
        gone: ClientError | None = None
        with self._held:
            with self.server() as server:
                for number, order in enumerate(orders, start=1):
                    if self.session.is_cancelled:
                        ended.append(ClipOutcome(order.name, "cancelled"))
                        continue
                    if gone is not None:
                        ended.append(ClipOutcome(order.name, "failed", error=gone))
                        continue
                    done = self._files(server, order, number, len(orders))
                    ended.append(done)
                    # every clip after would wait for a server that is not there
                    gone = done.error if isinstance(done.error, (ConnectionFailed, TimedOut)) else None
            if self.manner.place:
                self._place([one for one in ended if isinstance(one, _Ended)])
        outcomes = tuple(one.outcome() if isinstance(one, _Ended) else one for one in ended)
        return BatchOutcome(outcomes, tuple(self.session.notes))

    def _files(self, server: ServerJobs, order: _Order, number: int, of: int) -> _Ended | ClipOutcome:
        try:
            plan, before = self._plan(order, number, of)
            record = first_record(plan) if before is None else next_record(plan, before)
        except ActionStopped:
            raise
        except ClientError as error:
            return ClipOutcome(order.name, "failed", error=error)
        job = ClipJob(self.session, server, plan, record, order.part if order.old is not None else None)
        ended = _Ended(order, plan, record, before, self._standing(order), "failed", (), {})
        try:
            ended.state = "done" if job.run() else "cancelled"
            ended.plan, ended.record = job.plan, job.record
            ended.failed = slate_failures(job.record, to_do=ended.state == "cancelled" and self.manner.place_partial)
        except ActionStopped:
            raise
        except ClientError as error:
            ended.state, ended.error, ended.record = "failed", error, job.record
        finally:
            self.forget(plan)
        ended.notes = job.notes
        return ended

    # Planning

    def _plan(self, order: _Order, number: int, of: int) -> tuple[Plan, JobRecord | None]:
        """What to do, and the record of the job that it goes on with."""
        if order.placed is not None:
            return self._plan_again(order, order.placed, number, of)
        clip, recipe = order.clip, order.recipe
        assert clip is not None
        assert recipe is not None
        old = order.old if order.old is not None else self._unfinished(clip, recipe, order.part)
        timeline = order.part or clip.timeline
        if old is None:
            files = new_version(self.root, self.project.name, clip, beside=self._shared.get(clip.id))
            self._shared.setdefault(clip.id, files.folder)
        else:
            files = of_record(old.path, clip)
            timeline = _hull(timeline, old.timeline).meet(clip.timeline) or timeline
        self._hold(files)
        bakes = self.bakes(files)
        plan = Plan(clip, self.about, self.project, self.root, files, timeline, recipe, self.mode, number, of, bakes)
        return plan, old

    def _plan_again(self, order: _Order, placed: Placed, number: int, of: int) -> tuple[Plan, JobRecord]:
        old = job_record.load(placed.tag.record)
        self._hold(of_record(old.path))
        if not placed.clip_id:
            raise ClipGone(f"the clip {old.clip!r} that this result was made of is gone", hint="remove the result")
        # as the document has it now: an id may be a name, and the record has that of then
        clip = self.session.ask(lambda host: host.clip(placed.clip_id, old.view))
        timeline = clip.timeline if old.whole else old.timeline.meet(clip.timeline)
        if timeline is None:
            raise BadFrames(
                f"clip {clip.name!r} has none of the result's frames any more",
                expected=str(old.timeline),
                found=str(clip.timeline),
                hint="remove the result",
            )
        recipe = order.recipe if order.recipe is not None else old.recipe
        files = of_record(old.path, clip)
        bakes = self.bakes(files)
        plan = Plan(clip, self.about, self.project, self.root, files, timeline, recipe, old.mode, number, of, bakes)
        return plan, old

    def _hold(self, files: VersionFolder) -> None:
        if not self._held.take(files):
            raise HostError(
                f"another program is at work on {files.stem}",
                hint="wait until it is done, or apply to get a version of your own",
            )

    def bakes(self, files: VersionFolder) -> Path | None:
        """A folder that this version's renders have for themselves; the same one each time, as its sources' name."""
        if self.manner.bakes is None:
            return None
        digest = hashlib.sha256(str(files.folder).encode("utf-8", "surrogatepass")).hexdigest()[:8]
        return self.manner.bakes / f"{files.stem}-{digest}"

    def forget(self, plan: Plan) -> None:
        """Remove what the host rendered, where it is not to be kept."""
        if plan.bakes is not None:
            shutil.rmtree(plan.bakes, ignore_errors=True)

    def _standing(self, order: _Order) -> Placed | None:
        """The result in the document that this one takes the place of."""
        if order.placed is not None or order.old is None:
            return order.placed
        job = order.old.id
        return next(iter(self.session.ask(lambda host: host.results(job))), None)

    def _unfinished(self, clip: Clip, recipe: Recipe, part: Span | None) -> JobRecord | None:
        """The newest version's record, where that was never placed and would be made in the same way."""
        if not self.manner.resume:
            return None
        for _, folder in versions(clip_folder(self.root, self.project.name, clip))[-1:]:
            try:
                old = job_record.load(named(folder, clip).record)
            except RecordDamaged:
                return None  # of another view or clip, or half of something: a new version does no harm
            same = (old.clip_id, old.view, old.recipe, old.whole) == (clip.id, clip.view, recipe, part is None)
            same_frames = old.timeline == (part or clip.timeline) and (old.baked != "" or old.source == clip.source)
            ours = old.project_id == self.project.id and not old.placed
            if same and same_frames and ours and self._held.take(of_record(old.path)):
                return old
        return None

    # Placing

    def _place(self, ended: Sequence[_Ended]) -> None:
        ready = [one for one in ended if self._may_place(one)]
        if not ready:
            return
        self.session.report(Progress("place", 0, len(ready)))

        def place_all(host: Host) -> None:
            with host.undo_step("Faceplate: Apply"):
                for one in ready:
                    _place_one(host, one)

        self.session.ask(place_all)
        for one in ready:
            if one.placed is not None and self.manner.lasting:
                one.record = replace(one.record, placed=True).save()

    def _may_place(self, one: _Ended) -> bool:
        if one.state == "done":
            left = [frame for frame in one.record.to_do if frame not in one.failed]
            return not left
        return one.state == "cancelled" and self.manner.place_partial


def _place_one(host: Host, one: _Ended) -> None:
    """Place a result, or show the new files of one that stands where it should."""
    record, plan, old = one.record, one.plan, one.standing
    try:
        if old is not None and one.before is not None and _stands_right(record, one.before):
            host.reload(old)
            one.placed = old
            return
        if old is not None and Feature.PLACE_AGAIN not in plan.about.features:
            host.remove(old)
        one.placed = host.place(plan.clip, _result(record, plan))
    except ClientError as error:
        one.state, one.error = "failed", error


def _stands_right(record: JobRecord, before: JobRecord) -> bool:
    numbers = (record.frames, record.used, record.start) == (before.frames, before.used, before.start)
    return numbers and bool(record.baked) == bool(before.baked)  # a bake has the look of the clip in it


def _result(record: JobRecord, plan: Plan) -> Result:
    return Result(
        pattern=record.pattern,
        files=record.frames,
        used=record.used,
        start=record.start,
        mode=record.mode,
        colour_space=record.colour_space,
        interop_id=record.interop_id,
        pixel_aspect=record.pixel_aspect,
        fps=record.fps,
        covers_clip=record.timeline == plan.clip.timeline,
        name=plan.files.stem,
        tag=Tag(record.id, str(record.path)),
    )


def _hull(one: Span, other: Span) -> Span:
    return Span(min(one.first, other.first), max(one.last, other.last))
