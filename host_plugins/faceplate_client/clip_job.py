"""One clip's way from source to files: bake where need be, analyse, swap, slates for what failed, record.

Nothing here changes the document but a bake, which restores it; placing is the actions' business.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from . import slate, wire
from .client import Client
from .errors import BadClip, BakeFailed, CannotDo, FramesMissing, ServerError
from .exr_head import read_head
from .frame_maths import Span, as_text, keys_to_source
from .host import Feature, Progress
from .job_record import FINISHED, JobRecord
from .plan import Plan, next_record
from .result_folder import check_files, file_of, is_whole, make_folder
from .server_jobs import ServerJobs
from .task import Session

_SAVE_S = 2.0
_WAITS = "waiting for its turn on the server"
_UNREADABLE = ("UnsupportedImageError",)
"""Errors of the server that mean: this kind of file cannot be read here, though the host may."""


class ClipJob:
    """One run of a plan. `record` tells at any time how far it is; it is on disk every few seconds.

    Args:
        session: of the action.
        server: to do the work.
        plan: what to do.
        record: first or next one of the plan.
        only: timeline frames that are done now, None for all of the plan's.
    """

    def __init__(
        self, session: Session, server: ServerJobs, plan: Plan, record: JobRecord, only: Span | None = None
    ) -> None:
        self.session = session
        self.server = server
        self.plan = plan
        self.record = record
        self.tracks: tuple[wire.TrackFound, ...] = ()
        self._only = only
        self._before = dict(record.states)
        self._states: dict[int, str] = {}
        self._errors = dict(record.errors)
        self._notes: list[str] = []
        self._saved = 0.0

    @property
    def notes(self) -> tuple[str, ...]:
        """What the server said."""
        return tuple(self._notes)

    def run(self) -> bool:
        """Do it all. True when it was not cancelled.

        Raises:
            CannotDo: the clip has to be baked, and the host cannot.
            BakeFailed, ServerError, ConnectionFailed, ResultError: the job as a whole failed; what is done is kept.
        """
        self.record.save()
        try:
            went = self._run()
        except ServerError as error:
            if error.type not in _UNREADABLE or self.plan.must_bake or Feature.BAKE not in self.plan.about.features:
                self._save()
                raise
            self._note(f"the server cannot read {self.plan.clip.source}: the clip is rendered by the host instead")
            self.plan = replace(self.plan, recipe=replace(self.plan.recipe, bake=True))
            self.record = replace(next_record(self.plan, self.record), states={})
            went = self._run()
        finally:
            self._save()
        return went

    def analyse(self, pictures: Path | None = None) -> bool:
        """Bake where need be, and find the faces; `tracks` has them then. True when it was not cancelled."""
        if self.plan.must_bake and not self._bake():
            return False
        return self._analyse(pictures)

    def _run(self) -> bool:
        if self.plan.must_bake and not self._bake():
            return False
        return self._analyse(None) and self._swap()

    def _report(self, step: str, done: int = 0, total: int = 0, remaining_s: float | None = None) -> None:
        plan = self.plan
        failed = sum(1 for state in self._states.values() if state not in FINISHED)
        self.session.report(Progress(step, done, total, plan.clip.name, plan.number, plan.of, remaining_s, failed))

    def _note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.append(text)

    @property
    def _asked(self) -> Span:
        """File numbers that are done now; handles where they adjoin."""
        plan, only = self.plan, self._only
        if only is None:
            return plan.frames
        shift = plan.visible.first - plan.timeline.first
        first = plan.frames.first if only.first == plan.timeline.first else only.first + shift
        last = plan.frames.last if only.last == plan.timeline.last else only.last + shift
        return Span(first, last)

    # Baking

    def _bake(self) -> bool:
        plan = self.plan
        if Feature.BAKE not in plan.about.features:
            raise CannotDo(
                f"clip {plan.clip.name!r} has to be rendered first, which {plan.about.name} cannot do",
                found=plan.why_bake,
                hint="render it to EXR and apply to that",
            )
        pattern = plan.bake_pattern
        make_folder(Path(pattern).parent)
        frames = self._asked
        self._report("bake", 0, len(frames))
        bake = self.session.ask(lambda host: host.bake(plan.clip, frames, pattern))
        try:
            done = 0
            while self.session.ask(lambda host: next(bake, None)) is not None:
                done += 1
                self._report("bake", done, len(frames))
                if self.session.is_cancelled:
                    return False
        finally:
            self.session.ask(lambda host: bake.close())
        lacking = [frame for frame in frames if not is_whole(file_of(pattern, frame))]
        if lacking:
            raise BakeFailed(f"the bake of {plan.clip.name!r} lacks frames", found=as_text(lacking)[:200])
        return True

    # On the server

    def _analyse(self, pictures: Path | None) -> bool:
        plan, record = self.plan, self.record

        def submit(client: Client) -> str:
            return client.analyse(
                plate=record.source,
                frames=str(self._asked if plan.must_bake else plan.whole),
                sidecar=record.sidecar,
                input_space=record.colour_in,
                missing="skip",
                pictures=None if pictures is None else str(pictures),
            )

        self._report(_WAITS)
        end = self.server.run(submit, self._heard)
        if isinstance(end, wire.Done):
            self.tracks = end.tracks
        return isinstance(end, wire.Done)

    def _swap(self) -> bool:
        plan, record, recipe = self.plan, self.record, self.plan.recipe
        settings = dict(recipe.settings)
        if not plan.must_bake:
            settings = {name: keys_to_source(keys, plan.clip.times) for name, keys in settings.items()}
        holdout = None
        if recipe.holdout is not None:
            pattern, layer = recipe.holdout
            holdout = wire.HoldOut(wire.FileRef(pattern), layer)

        def submit(client: Client) -> str:
            return client.submit_range(
                plate=record.source,
                output=record.pattern,
                frames=str(self._asked),
                assignments=recipe.assignments,
                settings=settings,
                layers=recipe.layers,
                engine=recipe.engine,
                input_space=record.colour_in,
                faces=record.sidecar,
                holdout=holdout,
                missing=recipe.missing,
                project=recipe.project,
                commercial=recipe.commercial,
            )

        self._report(_WAITS)
        end = self.server.run(submit, self._heard)
        self._settle(end)
        return isinstance(end, wire.Done)

    def _heard(self, event: Any) -> None:
        if isinstance(event, wire.Progress):
            self._report(event.step, event.done, event.total, event.remaining_s)
        elif isinstance(event, wire.Note):
            self._note(event.text)
        elif isinstance(event, wire.Partial):
            self._states[event.frame] = event.state
            self._errors.pop(event.frame, None)
            if event.error is not None:
                self._errors[event.frame] = _sentence(event.error)
            if time.monotonic() - self._saved > _SAVE_S:
                self._save()

    def _settle(self, end: wire.End) -> None:
        """How every frame that was asked for stands: what the server kept from an earlier run it does not tell."""
        record, went = self.record, isinstance(end, wire.Done)
        for frame in self._asked:
            if frame in self._states:
                continue
            path, before = file_of(record.pattern, frame), self._before.get(frame)
            if is_whole(path) and not slate.is_slate(path) and (went or before in FINISHED):
                self._states[frame] = before if before in FINISHED else "done"
                self._errors.pop(frame, None)
            elif went:
                self._states[frame] = "failed"
                self._errors[frame] = "the server wrote no file"
        if isinstance(end, wire.Done):
            self.record = replace(record, colour_space=end.colour_space or "", interop_id=end.interop_id or "")
        self.record = _with_facts_of_files(self.record, self._states)

    def _save(self) -> None:
        self._saved = time.monotonic()
        states: Mapping[int, str] = {**self._before, **self._states}
        self.record = replace(self.record, states=states, errors=dict(self._errors), notes=tuple(self._notes)).save()


def _with_facts_of_files(record: JobRecord, states: Mapping[int, str]) -> JobRecord:
    """What the host or a cancelled job did not say, from the first result on disk."""
    if record.size != (0, 0) and record.colour_space:
        return record
    for frame, state in states.items():
        head = read_head(file_of(record.pattern, frame)) if state in FINISHED else None
        if head is not None:
            return replace(
                record,
                size=record.size if record.size != (0, 0) else head.size,
                colour_space=record.colour_space or head.interop_id,
                interop_id=record.interop_id or head.interop_id,
            )
    return record


def _sentence(failure: wire.Failure) -> str:
    parts = [failure.message]
    if failure.expected:
        parts.append(f"expected {failure.expected}")
    if failure.found:
        parts.append(f"found {failure.found}")
    return "; ".join(parts)


def slate_failures(record: JobRecord, *, to_do: bool = False) -> dict[int, str]:
    """Write a slate for each frame that has no result, and prove that every other file is there.

    Args:
        record: of a job that has ended.
        to_do: also for frames that were not tried, of a job that was cancelled.

    Returns:
        The frames that show a slate, with the reason.

    Raises:
        FramesMissing: a frame that counts as done has no file, or files of this kind can show no slate.
        BadClip: the size of the picture is not known.
    """
    bad = record.failed
    if to_do:
        bad = {frame: record.errors.get(frame, record.states.get(frame, "not done yet")) for frame in record.to_do}
    if bad and not record.pattern.endswith(".exr"):
        raise FramesMissing(
            f"{len(bad)} frames of {record.clip!r} failed, and a slate for them would have to be EXR",
            found="; ".join(f"{frame}: {reason}" for frame, reason in list(bad.items())[:3]),
        )
    if bad and record.size == (0, 0):
        raise BadClip(f"the size of {record.clip!r} is not known, so that failed frames cannot be marked")
    width, height = record.size
    for frame, reason in bad.items():
        slate.write_exr(
            file_of(record.pattern, frame),
            width,
            height,
            f"frame {frame}: {reason}",
            pixel_aspect=record.pixel_aspect,
            interop=record.interop_id,
        )
    check_files(record.pattern, [frame for frame in record.frames if frame in record.states or frame in bad])
    return bad
