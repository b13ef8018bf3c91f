"""Runs an apply job: checks first, then faces, then frame after frame, several at once, then the report.

Everything that can be wrong with the job as a whole is found before the first frame. What is wrong with one frame fails
that frame alone. A killed run loses at most the frames in flight; the next run does exactly what is missing or stale.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from .. import __version__
from ..deliver import Delivery, replaced_layers, write_frame
from ..errors import Cancelled, ConsentError
from ..faces.choose import resolve_assignments
from ..faces.shot import ShotFaces
from ..faces.sidecar import frame_ranges
from ..job import FINISHED, FrameState
from ..media.formats import is_movie
from ..media.movies.tags import AS_TAGGED
from ..models.sessions import describe_nets
from ..pipeline import FacePipeline
from ..plate import FrameSource, Plate, open_plate
from ..provenance.attributes import output_attributes
from ..provenance.ledger import LEDGER_NAME, record_end, record_start
from ..report.values import ColourLine, JobReport, contact_frames
from .alongside import MovieAlongside, Ready
from .analyse import faces_for, summary, used_models
from .cancel import CancelToken
from .engines import check_engine, engine_models, make_engine, torch_device
from .events import Emit, note, warning
from .frame_loop import FrameLoop
from .frames import FrameWork
from .hashes import HashCache
from .holdout import HoldOutFiles, open_holdout
from .lock import GATE, MOVIE_LOCK, RUNS_FOLDER, file_lock, job_lock
from .manifest import Manifest
from .movie import assemble, patch_paths, stand_in
from .movie_plan import MoviePlan, plan_movie
from .output import check_range, make_folder, output_paths, prepare_output, sweep
from .patches import PATCHES_FOLDER, write_patch
from .people import Person, check_people, identity_lines, read_people, read_references, unchecked
from .plan import make_plan, settled_words
from .recognise import recognise_tracks
from .reporting import MANIFEST_FILE, THUMBS_FOLDER, write_job, write_report
from .spec import ApplyJob, JobOutcome, Workbench, digest, job_folder, job_id


def run_apply(job: ApplyJob, bench: Workbench, emit: Emit, cancel: CancelToken) -> JobOutcome:
    """Run a job to its end, or until `cancel`.

    Args:
        job: what to do.
        bench: configuration, nets, threads.
        emit: takes events (`jobs.events`).
        cancel: asked between frames.

    Returns:
        How it ended; failed frames are in it, not raised.

    Raises:
        InputError: the job as a whole cannot be done; nothing was written but a refusal in the ledger.
        ResourceError: device or nets are not available.
    """
    check_engine(job.engine, bench.nets.store, commercial=job.commercial)
    plate = open_plate(job.plate, bench.config, job.input_space, job.codes)
    sources = plate.sources(job.frames, job.missing)
    check_range(sources)
    for source in sources:
        job.settings.at(source.number)  # keys that cross, found before the first frame
    holdout = open_holdout(job.holdout, plate.sequence.frames[0]) if job.holdout else None
    mattes = None if holdout is None else holdout.sequence
    movie = plan_movie(job, plate, sources) if is_movie(job.output) else None
    if movie is None:
        outputs = output_paths(plate, job.output, sources, mattes)
    else:
        outputs = patch_paths(plate, job.output, job_folder(job.output), sources, mattes)
    files = read_people(job)
    identifier = job_id(job, {**read_references(job), **{path: file.identity for path, file in files.items()}})
    folder = prepare_output(plate, job.output, job.layers)
    run = _Run(job, bench, emit, cancel, plate, sources, holdout, outputs, movie, identifier, folder)
    with job_lock(folder, run.purpose()):
        people = run.check_consent(files)
        return run.execute(people)


class _Run:
    """One run of one job. Holds what its steps share; lives as long as `run_apply`."""

    def __init__(
        self,
        job: ApplyJob,
        bench: Workbench,
        emit: Emit,
        cancel: CancelToken,
        plate: Plate,
        sources: Sequence[FrameSource],
        holdout: HoldOutFiles | None,
        outputs: Mapping[int, Path],
        movie: MoviePlan | None,
        identifier: str,
        folder: Path,
    ) -> None:
        self.job = job
        self.bench = bench
        self.emit = emit
        self.cancel = cancel
        self.plate = plate
        self.sources = sources
        self.holdout = holdout
        self.outputs = outputs
        self.movie = movie
        self.id = identifier
        self.folder = folder
        self.started = datetime.datetime.now().astimezone()
        self.engine = make_engine(job.engine, bench)
        self.models = (*used_models(bench.nets), *engine_models(job.engine, bench))
        self.hashes = HashCache()
        self.settled: tuple[str, ...] = ()

    def purpose(self) -> str:
        """Digest of what runs that share the job folder have in common: all but the range, where frames are files."""
        job = self.job
        made = [job.frames, str(job.movie)] if self.movie is not None else None
        return digest(
            [
                self.id,
                __version__,
                job.settings.to_json(),
                job.missing,
                job.commercial,
                str(job.faces),
                str(job.codes),
                made,
            ]
        )

    def check_consent(self, files: Mapping[Path, Any]) -> Mapping[Path, Person]:
        """The people with their consent, and the ledger line of the decision."""
        try:
            people = check_people(files, self.job.project, self.started.date())
        except ConsentError as error:
            self._ledger([unchecked(file) for file in files.values()], "deny", str(error))
            raise
        self._ledger(
            [person.used for person in people.values()], "allow", "; ".join(p.consent.text for p in people.values())
        )
        for person in people.values():
            if person.consent.status == "none":
                self.emit(warning(f"{person.identity.name}: no consent record"))
        return people

    def _ledger(self, used: Sequence[Any], decision: Any, reason: str) -> None:
        record_start(
            self.folder / LEDGER_NAME,
            job_id=self.id,
            plate=self.bench.shown(self.job.plate),
            frames=self.job.frames or "all",
            output=self.bench.shown(self.job.output),
            engine=f"{self.engine.name} {self.engine.version}",
            models=self.models,
            identities=used,
            settings=self.job.settings.to_json(),
            decision=decision,
            reason=reason,
            time=self.started,
            user=self.bench.user,
        )

    def execute(self, people: Mapping[Path, Person]) -> JobOutcome:
        """Faces, frames, report; under the job's lock."""
        sweep(self.folder)
        sweep(self.folder.parent)
        make_folder(self.folder / THUMBS_FOLDER)
        sweep(self.folder / THUMBS_FOLDER)
        if self.movie is not None:
            make_folder(self.folder / PATCHES_FOLDER)
            sweep(self.folder / PATCHES_FOLDER)
        self.emit(self._start_event())
        if self.plate.decision.source == "default":
            self.emit(note(f"colour by default: {self.plate.decision.space} ({self.plate.decision.note})"))
        for text in self.movie.notes if self.movie else ():
            self.emit(note(text))
        for text in replaced_layers(self.plate, Path(self.job.output).suffix, self.job.layers):
            self.emit(warning(text))
        with file_lock(self.folder / RUNS_FOLDER / "faces.lock", self.cancel.check):
            faces = faces_for(self.job, self.plate, self.bench, self.folder, self.hashes, self.emit, self.cancel)
        work = self._work(people, faces)
        base = self._base_report(people, faces)
        write_job(self.folder, base)
        manifest = Manifest(self.folder / MANIFEST_FILE, self.id)
        counts = self._frames(work, manifest)
        state = "cancelled" if self.cancel.is_cancelled else "done"
        return self._finish(base, manifest, counts, state)

    def _frames(self, work: FrameWork, manifest: Manifest) -> Counter[str]:
        """The frames, and where they become a movie, that: encoded while they are made, or when all are there."""
        movie = self.movie
        if movie is None:
            return FrameLoop(self.bench, self.emit, self.cancel, work, manifest).run(self.sources)

        def encode(ready: Ready, heard: Emit) -> None:
            with file_lock(self.folder / RUNS_FOLDER / MOVIE_LOCK, None):
                self._assemble(movie, work, self.outputs, heard, ready)

        shown = [source.number for source in movie.times.shown]
        with MovieAlongside(encode, shown, self.cancel) as alongside:
            watch = None if self.job.movie.deferred else alongside
            loop = FrameLoop(self.bench, self.emit, self.cancel, work, manifest, self.job.output, watch)
            counts = loop.run(self.sources)
            if not self.cancel.is_cancelled and not alongside.finish(self.emit):
                self._make_movie(movie, work, manifest)
        return counts

    def _assemble(
        self,
        movie: MoviePlan,
        work: FrameWork,
        patches: Mapping[int, Path],
        emit: Emit,
        ready: Ready | None = None,
    ) -> None:
        attributes = work.delivery.attributes
        assemble(movie, self.plate, self.folder, patches, attributes, self.bench, self.hashes, emit, self.cancel, ready)

    def _make_movie(self, movie: MoviePlan, work: FrameWork, manifest: Manifest) -> None:
        """Plate and frames into one file. A movie has no holes: while a frame is lacking there is none, or the plate
        stands in for it, as the job says."""
        states = {source.number: manifest.records[source.number].state for source in self.sources}
        lacking = [number for number, state in states.items() if state not in FINISHED]
        if lacking and self.job.movie.failed == "none":
            self.emit(warning(f"{self.job.output} is not made: {len(lacking)} of {len(states)} frames failed"))
            return
        if self.job.movie.deferred:
            self.emit(note(f"{self.job.output} is left to a run without --no-movie"))
            return
        patches = {number: path for number, path in self.outputs.items() if number not in lacking}
        movie = self._filled(movie, lacking)
        with suppress(Cancelled), file_lock(self.folder / RUNS_FOLDER / MOVIE_LOCK, self.cancel.check):
            self._assemble(movie, work, patches, self.emit)

    def _filled(self, movie: MoviePlan, lacking: Sequence[int]) -> MoviePlan:
        """The plan with other frames in place of those that failed; says which."""
        if not lacking:
            return movie
        filled, unreadable = stand_in(movie, self.plate, frozenset(lacking))
        self.emit(warning(f"{self.job.output} shows the plate unchanged in {frame_ranges(lacking)}, which failed"))
        if unreadable:
            self.emit(warning(f"{frame_ranges(unreadable)} cannot be read: the nearest readable frame is repeated"))
        return filled

    def _start_event(self) -> dict[str, Any]:
        return {
            "event": "start",
            "job": self.id,
            "plate": self.job.plate,
            "output": self.job.output,
            "frames": len(self.sources),
            "folder": str(self.folder),
            "colour_space": self.plate.colour_space,
        }

    def _work(self, people: Mapping[Path, Person], faces: ShotFaces) -> FrameWork:
        recognised = recognise_tracks(
            self.job.assignments,
            read_references(self.job),
            faces,
            self.plate,
            self.bench,
            self.folder,
            self.emit,
        )
        chosen = resolve_assignments(faces.tracks, self.job.assignments, recognised)
        if not faces.tracks:
            self.emit(warning("no face was found in this plate; the frames are written unchanged"))
        elif not chosen:
            self.emit(warning("no face of this plate is one of the job's people; the frames are written unchanged"))
        for track, index in sorted(chosen.items()):
            person = people[self.job.assignments[index].identity]
            self.emit(note(f"track {track} -> {person.identity.name}"))
        identities = {track: people[self.job.assignments[index].identity].identity for track, index in chosen.items()}
        if self.holdout is not None:
            self._look_at_holdout(self.holdout)
        pipeline = FacePipeline(self.bench.config, self.engine, torch_device(self.bench))
        plan = make_plan(self.plate, identities, faces.tracks, pipeline, self.bench.hands)
        self.settled = settled_words(plan)
        for text in self.settled:
            self.emit(note(text))
        return FrameWork(
            plate=self.plate,
            plan=plan,
            pipeline=pipeline,
            delivery=Delivery(
                self.job.layers, self._attributes(people), tuple(p.identity.name for p in people.values())
            ),
            outputs=self.outputs,
            recipe=self._recipe(people),
            settings=self.job.settings,
            holdout=self.holdout,
            thumbs=frozenset(contact_frames([source.number for source in self.sources if source.path])),
            thumbs_folder=self.folder / THUMBS_FOLDER,
            hashes=self.hashes,
            write=write_frame if self.movie is None else write_patch,
        )

    def _look_at_holdout(self, holdout: HoldOutFiles) -> None:
        """Refuse a layer that is not there before the first frame, and say when a matte holds nothing."""
        source = next(source for source in self.sources if source.path is not None)
        if holdout.movie is None:
            source = dataclasses.replace(source, source=holdout.sequence.frames[0])
        if holdout.check(source).max() == 0:
            path = holdout.path(source)
            self.emit(warning(f"the hold-out is black in {path}; a layer is named as --holdout PATTERN:LAYER"))

    def _attributes(self, people: Mapping[Path, Person]) -> dict[str, Any]:
        """What all frames say; `FrameWork` adds the number and the settings of each."""
        return output_attributes(
            job_id=self.id,
            engine=self.engine.name,
            engine_version=self.engine.version,
            models=self.models,
            identities=[person.used for person in people.values()],
            settings="",
            plate_frame=None,
        )

    def _codes(self) -> list[str]:
        """What the code values of a movie mean, where the job says it."""
        movie = self.plate.movie
        return [] if movie is None or self.plate.codes == AS_TAGGED else [str(movie.facts.colour.coding)]

    def _recipe(self, people: Mapping[Path, Person]) -> str:
        decision = self.plate.decision
        return digest(
            {
                "tool": __version__,
                "attributes": self._attributes(people),
                "layers": self.job.layers,
                "holdout": self.job.holdout.layer if self.job.holdout else None,
                "colour": [decision.space, self.plate.colour_space, self.bench.config.name, *self._codes()],
                "suffix": Path(self.job.output).suffix if self.movie is None else "patch",
                "device": [self.bench.nets.device.runtime, self.bench.nets.precision],
            }
        )

    def _base_report(self, people: Mapping[Path, Person], faces: ShotFaces) -> JobReport:
        display = self.plate.first.display_window
        aspect = f", pixel aspect {self.plate.first.pixel_aspect:g}" if self.plate.first.pixel_aspect != 1 else ""
        decision = self.plate.decision
        return JobReport(
            job_id=self.id,
            plate=self.bench.shown(self.job.plate),
            output=self.bench.shown(self.job.output),
            frame_range=self.job.frames or f"{self.sources[0].number}-{self.sources[-1].number}",
            raster=f"{display.width}x{display.height}{aspect}",
            engine=f"{self.engine.name} {self.engine.version}",
            commercial=self.job.commercial,
            settings=self.job.settings.to_json(),
            colours=(
                ColourLine("plate", decision.space, decision.source, decision.note, decision.source == "default"),
                ColourLine("work and result", self.plate.colour_space, "plate", f"OCIO {self.bench.config.name}"),
            ),
            identities=identity_lines(self.job, people),
            models=self.models,
            versions={"faceplate": __version__, "torch": torch.__version__},
            device=str(self.bench.nets.device),
            provider=self.bench.nets.device.provider,
            started=self.started.isoformat(timespec="seconds"),
            ended="",
            wall_seconds=0.0,
            timings={},
            rows=(),
            notes=(
                *replaced_layers(self.plate, Path(self.job.output).suffix, self.job.layers),
                *summary(faces),
                *self.settled,
                *(self.movie.notes if self.movie else ()),
            ),
        )

    def _finish(self, base: JobReport, manifest: Manifest, counts: Counter[str], state: Any) -> JobOutcome:
        ended = datetime.datetime.now().astimezone()
        numbers = {source.number for source in self.sources}
        mine = {frame: record for frame, record in manifest.records.items() if frame in numbers}
        hashes = {frame: record.output_hash for frame, record in mine.items() if record.state in FINISHED}
        failed = {
            frame: record.error or {} for frame, record in sorted(mine.items()) if record.state is FrameState.FAILED
        }
        line = record_end(
            self.folder / LEDGER_NAME,
            job_id=self.id,
            state=state,
            output_hashes=hashes,
            time=ended,
            user=self.bench.user,
        )
        base = dataclasses.replace(
            base,
            ended=ended.isoformat(timespec="seconds"),
            provider=describe_nets(self.bench.nets.loaded) or base.provider,
            wall_seconds=(ended - self.started).total_seconds(),
            ledger_hash=line,
        )
        with file_lock(self.folder / GATE):  # of several runs the last has all frames in its page
            write_job(self.folder, base)
            page = write_report(self.folder, base)
        outcome = JobOutcome(state, dict(counts), failed, self.folder)
        said = ", ".join(f"{number} {name}" for name, number in counts.items()) or "nothing to do"
        word = "finished" if state == "done" else state
        self.emit(
            {
                "event": "done",
                "text": f"{word}: {said}\n  frames  {self.job.output}\n  report  {page}",
                "state": state,
                "counts": outcome.counts,
                "failed": {str(frame): dict(error) for frame, error in failed.items()},
                "folder": str(self.folder),
                "report": str(page),
            }
        )
        return outcome
