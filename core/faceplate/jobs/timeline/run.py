"""Renders a timeline: plan, faces of every source, who is who, a job a source, and the timeline that plays the results.

What is wrong with the timeline as a whole is found before a picture is read. A source that fails fails alone; the
others go on, and its clips keep the editor's media. A second run does what is missing or stale.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import Cancelled, FaceplateError, IdentityError, InputError, OutputError, SettingError
from ...identity.file import read_identity
from ...media.atomic import check_writable
from ...media.timelines.files import Document
from ...media.timelines.folders import Run
from ...media.timelines.place import Result
from ..apply import run_apply
from ..cancel import CancelToken
from ..events import Emit, note, progress, warning
from ..lock import job_lock
from ..output import make_folder, sweep
from ..spec import Workbench
from ..words import ApplyWords
from .assign import SHEET_FOLDER, Cast, Caster
from .faces import SeenShot, see_shot
from .plan import ClipPlan, ShotPlan, TimelinePlan, open_and_plan, outputs, ranges_text
from .spec import RenderJob, RenderOutcome
from .write import write_timelines

FACES_FOLDER = "faces"


def job_folder_of(job: RenderJob) -> Path:
    """The folder of a timeline's render beside its results: sidecars, pictures of the contact sheet, memory."""
    return job.output / f"{job.timeline.stem}.timeline"


def check_plan(plan: TimelinePlan, emit: Emit) -> None:
    """Say what the plan has to say, and refuse one with problems.

    Raises:
        InputError: clips cannot be rendered, or there is none.
    """
    for text in plan.notes:
        emit(note(text))
    for where, reason in plan.left:
        emit(note(f"{where} stays as it is: {reason}"))
    for where, reason in plan.problems:
        emit(warning(f"{where}: {reason}"))
    if plan.problems:
        shown = "; ".join(f"{where}: {reason}" for where, reason in plan.problems[:3])
        more = f" and {len(plan.problems) - 3} more" if len(plan.problems) > 3 else ""
        raise InputError(
            f"{len(plan.problems)} clips of {plan.document.path} cannot be rendered",
            found=shown + more,
            hint="--media-root and --relink find media that lie elsewhere, --missing-media skip leaves clips without "
            "media as they are, --skip CLIP leaves out others",
        )
    if not plan.shots:
        raise InputError(f"{plan.document.path} has no clip to render", hint="see what is in it with --dry-run")


def run_render(
    job: RenderJob, bench: Workbench, emit: Emit, cancel: CancelToken, *, faces_only: bool = False
) -> RenderOutcome:
    """Render a timeline to its end, or until `cancel`.

    Args:
        job: what to do.
        bench: configuration, nets, threads.
        emit: takes events; those of a source's job have the key "shot".
        cancel: asked between frames.
        faces_only: stop when the faces are found and the people file and contact sheet are written.

    Raises:
        InputError: the timeline cannot be rendered as a whole.
        ResourceError: device or nets are not available.
    """
    for given in job.identities:
        for path in {given.path, given.who}:
            read_identity(path)
    folder = job_folder_of(job)
    for place in (folder, folder / FACES_FOLDER, folder / SHEET_FOLDER):
        make_folder(place)
        sweep(place)
    check_writable(job.output)
    with job_lock(folder):
        document, plan = open_and_plan(job, folder)
        check_plan(plan, emit)
        return _Render(job, bench, emit, cancel, folder, document, plan).run(faces_only=faces_only)


class _Counted:
    """Events of a source's job on their way out: marked with its name, counted for all sources together."""

    def __init__(self, emit: Emit, total: int) -> None:
        self._emit, self._total = emit, total
        self.shot, self.done = "", 0

    def __call__(self, event: Mapping[str, Any]) -> None:
        kind = event["event"]
        if kind == "progress":
            if event["stage"] == "swap":
                self.add(1)
            elif event["stage"] == "encode":
                self._emit({**event, "shot": self.shot})
        elif kind in ("note", "warning"):
            self._emit({**event, "text": f"{self.shot}: {event['text']}", "shot": self.shot})
        elif kind == "done":
            self._emit({**event, "event": "shot", "shot": self.shot})
        else:
            self._emit({**event, "shot": self.shot})

    def add(self, frames: int) -> None:
        """So many frames more are done."""
        if not frames:
            return
        self.done += frames
        self._emit(progress("render", min(self.done, self._total), self._total))


class _Render:
    """One run; lives as long as `run_render`."""

    def __init__(
        self,
        job: RenderJob,
        bench: Workbench,
        emit: Emit,
        cancel: CancelToken,
        folder: Path,
        document: Document,
        plan: TimelinePlan,
    ) -> None:
        self.job, self.bench, self.emit, self.cancel = job, bench, emit, cancel
        self.folder, self.document, self.plan = folder, document, plan
        self.failed: dict[str, Mapping[str, Any]] = {}
        self.counts: Counter[str] = Counter()
        self.frames: Counter[str] = Counter()

    def run(self, *, faces_only: bool) -> RenderOutcome:
        """All of it."""
        try:
            caster = Caster(self.job, self.bench, self.folder, self.emit)
            seen = self._see(caster)
            cast = caster.cast(self.plan, seen, self.failed)
            if faces_only:
                return self._finish("faces", (), cast)
            cast.check()
            results = self._apply(seen, cast)
        except Cancelled:
            return self._finish("cancelled", (), None)
        if self.cancel.is_cancelled:
            return self._finish("cancelled", (), cast)
        written = write_timelines(self.job, self.document, results, self.emit)
        return self._finish("done", written, cast)

    def _see(self, caster: Caster) -> dict[str, SeenShot]:
        found: dict[str, SeenShot] = {}
        for number, shot in enumerate(self.plan.shots, start=1):
            self.cancel.check()
            inner = _quiet(self.emit, shot.name)
            try:
                looked = see_shot(
                    shot, self.folder / FACES_FOLDER, self.job.words.input_space, self.bench, inner, self.cancel
                )
                found[shot.name] = caster.keep(looked)
            except InputError as error:
                _stop_for_all(error)
                self._fail(shot, error.to_dict())
            self.emit(progress("faces", number, len(self.plan.shots)))
        return found

    def _fail(self, shot: ShotPlan, error: Mapping[str, Any]) -> None:
        self.failed[shot.name] = error
        self.counts["failed"] += 1
        self.emit({"event": "shot", "shot": shot.name, "state": "failed", "error": dict(error)})
        self.emit(warning(f"{shot.name} failed: {error.get('message')}; its clips keep the editor's media"))

    def _apply(self, seen: Mapping[str, SeenShot], cast: Cast) -> list[tuple[Any, Result]]:
        """The job of each source; (clip, result) of the clips that have one."""
        todo = [shot for shot in self.plan.shots if shot.name in seen and cast.tracks.get(shot.name)]
        if len(seen) > len(todo):
            self.counts["unassigned"] = len(seen) - len(todo)
        counted = _Counted(self.emit, sum(shot.count for shot in todo))
        results: list[tuple[Any, Result]] = []
        for shot in todo:
            if self.cancel.is_cancelled:
                break
            counted.shot, before = shot.name, counted.done
            try:
                results += self._shot(shot, seen[shot.name], cast, counted)
            except InputError as error:
                _stop_for_all(error)
                self._fail(shot, error.to_dict())
            counted.add(before + shot.count - counted.done)  # frames that were done already, or failed as one
        return results

    def _shot(self, shot: ShotPlan, seen: SeenShot, cast: Cast, emit: _Counted) -> list[tuple[Any, Result]]:
        made = outputs(shot, self.job.output, self.job.suffix)
        jobs = dict.fromkeys(made.values())
        states: Counter[str] = Counter()
        lacking: dict[int, Mapping[str, Any]] = {}
        for output in jobs:
            parts = [part for part, target in made.items() if target == output]
            outcome = run_apply(self._words(shot, parts, output, seen, cast).job(), self.bench, emit, self.cancel)
            states.update(outcome.counts)
            lacking.update(outcome.failed)
            if outcome.state == "cancelled":
                return []
        self.frames.update(states)
        if lacking:
            first, error = next(iter(lacking.items()))
            text = f"{len(lacking)} frames failed, first {first}: {error.get('message')}"
            self._fail(shot, {"type": "FrameError", "message": text, "frames": ranges_text((n, n) for n in lacking)})
            return []
        self.counts["kept" if set(states) == {"kept"} else "done"] += 1
        return [(clip.item, result_of(shot, made, clip)) for clip in shot.clips]

    def _words(self, shot: ShotPlan, parts: Sequence[Run], output: str, seen: SeenShot, cast: Cast) -> ApplyWords:
        people = tuple(f"{path}@{track}" for track, path in sorted(cast.tracks[shot.name].items()))
        fps = self.job.words.fps
        if self.job.suffix != ".exr" and not shot.media.is_movie:
            fps = fps or str(shot.clips[0].count)  # pictures do not always say their rate; the timeline does
        return dataclasses.replace(
            self.job.words,
            plate=shot.media.plate,
            output=output,
            identity=people,
            frames=ranges_text(parts),
            faces=str(seen.sidecar),
            fps=fps,
        )

    def _finish(self, state: Any, written: Sequence[Path], cast: Cast | None) -> RenderOutcome:
        outcome = RenderOutcome(state, dict(self.counts), self.failed, tuple(written))
        lines = [f"timeline  {path}" for path in written]
        if cast is not None:
            lines += [f"people    {cast.file}", f"sheet     {cast.page}"]
        said = {"done": "finished", "faces": "faces are known", "cancelled": "cancelled"}[state]
        shots = ", ".join(f"{number} {name}" for name, number in self.counts.items()) or "no source is rendered yet"
        frames = ", ".join(f"{number} {name}" for name, number in self.frames.items())
        self.emit(
            {
                "event": "done",
                "text": "\n  ".join([f"{said}: {shots}" + (f" (frames: {frames})" if frames else ""), *lines]),
                "state": state,
                "shots": outcome.shots,
                "frames": dict(self.frames),
                "failed": {name: dict(error) for name, error in self.failed.items()},
                "timelines": [str(path) for path in written],
                "people": str(cast.file) if cast else None,
                "sheet": str(cast.page) if cast else None,
            }
        )
        return outcome


def result_of(shot: ShotPlan, made: Mapping[Run, str], clip: ClipPlan) -> Result:
    """What a clip plays of its source's results.

    Args:
        shot: the source.
        made: file or pattern by part, as `plan.outputs` gives them.
        clip: of the source.
    """
    part = shot.part_of(clip)
    facts = {"plate": shot.media.plate, "shot": shot.name, "frames": ranges_text([part])}
    return Result(Path(made[part]).absolute(), part, shot.media.numbers.first, clip.begins, clip.count, facts)


def _quiet(emit: Emit, shot: str) -> Emit:
    """Of an analysis, what is worth a word for a timeline: warnings, marked with the source's name."""

    def inner(event: Mapping[str, Any]) -> None:
        if event["event"] == "warning":
            emit({**event, "text": f"{shot}: {event['text']}", "shot": shot})

    return inner


def _stop_for_all(error: FaceplateError) -> None:
    """What is wrong with the output, the settings or a person is wrong with every further source."""
    if isinstance(error, OutputError | SettingError | IdentityError):
        raise error
