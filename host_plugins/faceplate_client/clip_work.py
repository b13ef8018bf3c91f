"""One run of an action: each clip's files, one after the other, then all results placed in one undo step.

`actions.py` says which clips (`Order`) and starts the run (`Work`); `clip_job.py` is one clip's way to files.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from . import job_record
from .clip_job import ClipJob, slate_failures
from .errors import (
    ActionStopped,
    BadFrames,
    ClientError,
    ClipGone,
    ConnectionFailed,
    HostError,
    RecordDamaged,
    TimedOut,
)
from .frame_maths import Span
from .host import Clip, Feature, Host, HostAbout, Placed, PlaceMode, Progress, Project, Result, Tag
from .job_record import JobRecord, Recipe
from .outcome import BatchOutcome, ClipOutcome, Manner
from .plan import Plan, first_record, next_record
from .result_folder import Holds, VersionFolder, clip_folder, named, new_version, of_record, versions
from .server_jobs import ServerJobs
from .task import Session


@dataclass(frozen=True)
class Order:
    """One clip of an action: a clip to be done, or a result to be done again."""

    name: str
    clip: Clip | None = None
    placed: Placed | None = None
    recipe: Recipe | None = None
    part: Span | None = None
    old: JobRecord | None = None


@dataclass
class Ended:
    """A clip whose files are as good as they get; not placed yet."""

    order: Order
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


class Work:
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

    def run(self, orders: Sequence[Order]) -> BatchOutcome:
        """All clips' files, then all placed in one undo step."""
        ended: list[Ended | ClipOutcome] = []
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
                self._place([one for one in ended if isinstance(one, Ended)])
        outcomes = tuple(one.outcome() if isinstance(one, Ended) else one for one in ended)
        return BatchOutcome(outcomes, tuple(self.session.notes))

    def _files(self, server: ServerJobs, order: Order, number: int, of: int) -> Ended | ClipOutcome:
        try:
            plan, before = self._plan(order, number, of)
            record = first_record(plan) if before is None else next_record(plan, before)
        except ActionStopped:
            raise
        except ClientError as error:
            return ClipOutcome(order.name, "failed", error=error)
        job = ClipJob(self.session, server, plan, record, order.part if order.old is not None else None)
        ended = Ended(order, plan, record, before, self._standing(order), "failed", (), {})
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

    def _plan(self, order: Order, number: int, of: int) -> tuple[Plan, JobRecord | None]:
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

    def _plan_again(self, order: Order, placed: Placed, number: int, of: int) -> tuple[Plan, JobRecord]:
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

    def _standing(self, order: Order) -> Placed | None:
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

    def _place(self, ended: Sequence[Ended]) -> None:
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

    def _may_place(self, one: Ended) -> bool:
        if one.state == "done":
            left = [frame for frame in one.record.to_do if frame not in one.failed]
            return not left
        return one.state == "cancelled" and self.manner.place_partial


def _place_one(host: Host, one: Ended) -> None:
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
