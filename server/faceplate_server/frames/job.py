"""One frame for a host: from a slot or a file, into a slot or a file, with the layers that were asked for."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, cast

from faceplate.colour.spaces import ColourConfig
from faceplate.deliver import Delivery, check_output_format, frame_layers, parse_layers, write_frame
from faceplate.errors import OutputError, SettingError
from faceplate.frame import Frame
from faceplate.identity.file import IdentityFile, read_identity
from faceplate.job import HoldOut
from faceplate.jobs.analyse import used_models
from faceplate.jobs.engines import check_engine, engine_models
from faceplate.jobs.frames import face_tasks
from faceplate.jobs.holdout import fit_holdout
from faceplate.jobs.people import Person, check_people
from faceplate.jobs.plan import PlannedFace, ShotPlan, solve_frames, track_solve
from faceplate.jobs.spec import ApplyJob, Workbench, job_id
from faceplate.jobs.steady import LookMemory, Steady
from faceplate.media.matte import read_matte
from faceplate.pipeline import FacePipeline, FaceTask, SwappedFrame, untouched
from faceplate.plate import FrameSource, Plate, open_plate
from faceplate.provenance.attributes import output_attributes, settings_hash
from faceplate.swap.base import ShotEngine, ShotSolve
from faceplate_client import wire

from .. import requests
from ..errors import Refused
from ..jobs import Job
from ..roots import Roots
from ..workers.warm import WarmCache
from .bridge import (
    Slot,
    SlotPlate,
    Slots,
    header_like,
    header_of,
    matte_of,
    plate_of,
    write_layer,
)
from .copies import Copier
from .faces import FaceFinder, FaceQuestion, FrameFaces, face_facts, stamp
from .file import write_from_slot
from .form import check_form, write_result

Note = Callable[[str, str], None]

NULL_ENGINE = "null"
"""Gives the plate back, for measuring and for trying a connection."""


class FrameJobs:
    """Runs `submit_frame`. May be used from several threads.

    Args:
        roots: files that may be touched.
        cache: keeps identities, sidecars and plates.
        looks: keeps what nets said of mattes.
    """

    def __init__(self, roots: Roots, cache: WarmCache, looks: LookMemory) -> None:
        self.roots = roots
        self.cache = cache
        self.looks = looks
        self.faces = FaceFinder(cache)
        self.copier = Copier()

    def run(self, job: Job, bench: Workbench, pipeline: FacePipeline, slots: Slots, note: Note) -> wire.FrameResult:
        """Do the frame; `note` takes a level and what a person should know.

        Raises:
            Cancelled: the job was stopped.
            Refused, RingError, InputError, ResourceError: it cannot be done.
        """
        return _FrameRun(self, job, bench, pipeline, slots, note).run()

    def plate(self, pattern: str, config: ColourConfig, space: str | None) -> Plate:
        """An open plate; opened anew when its folder or first file changed."""
        self.roots.check(pattern)
        kept: tuple[Any, Plate] | None = self.cache.get(("plate", pattern, space))
        if kept is not None and kept[0] == self._plate_stamp(kept[1]):
            return kept[1]
        plate = open_plate(pattern, config, space)
        self.cache.put(("plate", pattern, space), (self._plate_stamp(plate), plate))
        return plate

    def _plate_stamp(self, plate: Plate) -> Any:
        first = plate.first.path
        try:
            return stamp(first), stamp(first.parent)
        except OSError:
            return None

    def solve(self, plate: Plate, planned: PlannedFace, pipeline: FacePipeline) -> ShotSolve | None:
        """`track_solve`, kept while the frames that it is taken from are the same."""
        frames = solve_frames(plate, planned.track)
        seen = hashlib.sha256(b"".join(planned.key(number).encode() for number in frames)).hexdigest()
        files = tuple(stamp(plate.sequence.path(number)) for number in frames)
        key = ("solve", pipeline.engine.name, plate.decision.space, files, seen)
        found: ShotSolve | None = self.cache.make(key, partial(track_solve, plate, planned, pipeline))
        return found

    def people(self, paths: tuple[Path, ...], project: str | None) -> Mapping[Path, Person]:
        """The identities, their consent checked today.

        Raises:
            IdentityError: unreadable, or its consent forbids the job.
        """
        files: dict[Path, IdentityFile] = {}
        for path in dict.fromkeys(paths):
            key = ("identity", *stamp(path)) if path.is_file() else None
            if key is None:
                files[path] = read_identity(path)  # says what is wrong
            else:
                files[path] = self.cache.make(key, partial(read_identity, path))
        return check_people(files, project, datetime.datetime.now().astimezone().date())


class _FrameRun:
    """One run of one frame job; holds what its steps share."""

    def __init__(
        self, home: FrameJobs, job: Job, bench: Workbench, pipeline: FacePipeline, slots: Slots, note: Note
    ) -> None:
        assert isinstance(job.message, wire.SubmitFrame)
        self.home = home
        self.job = job
        self.message = job.message
        self.bench = bench
        self.pipeline = pipeline
        self.slots = slots
        self.note = note
        self.in_slot: SlotPlate | None = None
        self.plate_slot: Slot | None = None
        self.files: Plate | None = None
        self.file_space = ""
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()
        self.started = self._last

    def run(self) -> wire.FrameResult:
        message = self.message
        self._check()
        frame = self._read()
        self._lap("read")
        people, found = self._faces(frame)
        self.job.token.check()
        self._lap("faces")
        swapped, slot = self._swap(frame, found)
        self._lap("swap")
        made = self._layers(frame, swapped)
        self._deliver(frame, swapped, slot, people)
        self._lap("write")
        self.seconds["total"] = time.perf_counter() - self.started
        return wire.FrameResult(
            message.id,
            message.frame,
            "done" if swapped.facts or message.engine == NULL_ENGINE else "no face",
            message.output if message.output is not None else message.plate,
            tuple(made),
            self._facts(swapped, found),
            {name: seconds * 1e3 for name, seconds in self.seconds.items()},
        )

    def _lap(self, step: str) -> None:
        now = time.perf_counter()
        self.seconds[step] = now - self._last
        self._last = now

    def _check(self) -> None:
        """What is wrong with the request as such, before anything is read."""
        message = self.message
        self.settings = requests.settings(message.settings)
        self.settings.at(message.frame)
        if message.engine != NULL_ENGINE:
            check_engine(message.engine, self.bench.nets.store, commercial=message.commercial)
        if message.engine != NULL_ENGINE and not message.assignments:
            raise SettingError("no identity was given", hint="choose an identity file")
        if message.output is None and not isinstance(message.plate, wire.SlotRef):
            raise Refused("input", "a plate from a file needs an output", hint="name a slot or a file for the result")
        self.assignments = requests.assignments(message.assignments, self.home.roots)
        check_form(message)
        wanted = [layer.name for layer in message.layers]
        for layer in message.layers:
            if isinstance(layer.output, wire.FileRef):
                raise Refused(
                    "input", "a layer goes into a slot or into the result's file", hint="leave its output out"
                )
            if layer.output is None and not isinstance(message.output, wire.FileRef):
                raise Refused("input", f"layer {layer.name} has no slot", hint="offer a slot for each layer")
        if wanted:
            parse_layers(",".join(wanted))

    # Reading

    def _read(self) -> Frame:
        message, config = self.message, self.bench.config
        if isinstance(message.plate, wire.SlotRef):
            self.plate_slot = self.slots.take(message.plate)
            self.in_slot = plate_of(self.plate_slot, config, message.input_space, message.frame)
            if self.in_slot.source == "default":
                self.note("note", f"the frame names no colour space: it is taken for {self.in_slot.space}")
            if message.source is not None:
                self.files = self.home.plate(message.source, config, None)
            return self.in_slot.frame
        self.files = self.home.plate(message.plate.pattern, config, message.input_space)
        if self.files.decision.source == "default":
            self.note("note", f"colour by default: {self.files.decision.space} ({self.files.decision.note})")
        number = self.files.sequence.frames[0] if message.plate.frame is None else message.plate.frame
        path = self.home.roots.check(self.files.sequence.path(number))
        return self.files.read(FrameSource(number, path, "present", number))

    def _faces(self, frame: Frame) -> tuple[Mapping[Path, Person], FrameFaces | None]:
        if self.message.engine == NULL_ENGINE:
            return {}, None
        people = self.home.people(tuple(one.identity for one in self.assignments), self.message.project)
        for person in people.values():
            if person.consent.status == "none":
                self.note("warning", f"{person.identity.name}: no consent record")
        faces = self.message.faces
        question = FaceQuestion(
            frame,
            self.files,
            None if faces is None else self.home.roots.check(faces),
            self.assignments,
            {path: person.identity for path, person in people.items()},
        )
        return people, self._settled(self.home.faces.find(question, self.bench))

    def _settled(self, found: FrameFaces) -> FrameFaces:
        """With what the engine settles for the shot, where its files are there, as in a batch job."""
        plate = self.files
        if plate is None or found.source != "sidecar" or not isinstance(self.pipeline.engine, ShotEngine):
            return found
        planned = [
            dataclasses.replace(one, solve=self.home.solve(plate, one, self.pipeline)) for one in found.plan.planned
        ]
        return dataclasses.replace(found, plan=ShotPlan(planned))

    def _steadied(self, found: FrameFaces, given: Sequence[tuple[PlannedFace, FaceTask]]) -> list[FaceTask]:
        """With mattes steadied over the shot, where its files are there, as in a batch job."""
        if self.files is None or found.source != "sidecar":
            return [task for _, task in given]
        return Steady(self.files, self.home.faces.hashes, self.home.looks).tasks(given, self.pipeline)

    def _holdout(self, frame: Frame) -> Any:
        wanted = self.message.holdout
        if wanted is None:
            return None
        if isinstance(wanted.matte, wire.SlotRef):
            plane, window, told = matte_of(self.slots.take(wanted.matte), wanted.layer)
            return fit_holdout("in its slot", plane, window, frame, told or frame.display_window)
        path = requests.file_path(wanted.matte, self.home.roots)
        plane, window, raster = read_matte(path, wanted.layer)
        return fit_holdout(str(path), plane, window, frame, raster)

    # Working and delivering

    def _swap(self, frame: Frame, found: FrameFaces | None) -> tuple[SwappedFrame, Slot | None]:
        """The result, and the slot that it goes to; in the slot already where that is linear."""
        slot, out = self._target(frame)
        if out is not None:
            frame = self.home.copier.moved(frame, out)
        if found is None:
            return untouched(frame, out), slot
        holdout = self._holdout(frame)
        sampled = self.settings.at(self.message.frame)
        number = cast("int", frame.number)
        tasks = self._steadied(found, face_tasks(found.plan, number, sampled))
        self.job.token.check()
        return self.pipeline.process(frame, tasks, holdout, out), slot

    def _target(self, frame: Frame) -> tuple[Slot | None, Any]:
        output = self.message.output
        if isinstance(output, wire.FileRef):
            return None, None
        slot = self.plate_slot if output is None else self.slots.take(output)
        assert slot is not None
        as_it_came = self.message.form is None and (self.in_slot is None or not self.in_slot.is_encoded)
        return slot, slot.array(self._header(frame)) if as_it_came else None

    def _header(self, frame: Frame) -> Any:
        if self.in_slot is None or self.plate_slot is None or self.plate_slot.header is None:
            return header_of(frame)
        return header_like(self.in_slot, self.plate_slot.header, self.message.frame)

    def _layers(self, frame: Frame, swapped: SwappedFrame) -> list[wire.LayerMade]:
        """Layers into their slots; those for the result's file are written with it."""
        made = []
        header = None if self.plate_slot is None else self.plate_slot.header
        for wanted in self.message.layers:
            if wanted.output is None:
                assert self.message.output is not None
                made.append(wire.LayerMade(wanted.name, self.message.output))
                continue
            if wanted.name in ("rgba", "element"):
                raise SettingError(f"{wanted.name} is the result itself, not a layer beside it")
            assert isinstance(wanted.output, wire.SlotRef)
            slot = self.slots.take(wanted.output)
            layers, _ = frame_layers(swapped, frame.data_window, Delivery((wanted.name,), {}, ()))
            form = self.message.form
            bottom_up = form.bottom_up if form is not None else header is not None and header.bottom_up
            self.slots.finish(slot, write_layer(slot, layers, frame, bottom_up=bottom_up))
            made.append(wire.LayerMade(wanted.name, wanted.output))
        return made

    def _deliver(self, frame: Frame, swapped: SwappedFrame, slot: Slot | None, people: Mapping[Path, Person]) -> None:
        header = self._header(frame)
        if slot is not None:
            form, config = self.message.form, self.bench.config
            self.slots.finish(slot, write_result(slot, header, frame, swapped, self.in_slot, form, config))
            return
        output = cast("wire.FileRef", self.message.output)
        path = requests.file_path(output, self.home.roots)
        delivery = Delivery(
            parse_layers(",".join(layer.name for layer in self.message.layers if layer.output is None) or "rgba"),
            self._attributes(frame, people),
            tuple(person.identity.name for person in people.values()),
        )
        if self.in_slot is None:
            assert self.files is not None
            self._check_file(path, self.files, delivery)
            write_frame(path, self.files, frame, swapped, delivery)
            return
        self.file_space = write_from_slot(path, frame, swapped, delivery, self.bench.config)

    def _check_file(self, path: Path, plate: Plate, delivery: Delivery) -> None:
        check_output_format(plate, path.suffix, delivery.layers)
        if path.exists() and any(path.samefile(plate.sequence.path(one)) for one in plate.sequence.frames):
            raise OutputError(f"{path} is a file of the plate itself", hint="write somewhere else")

    def _attributes(self, frame: Frame, people: Mapping[Path, Person]) -> dict[str, Any]:
        """As a batch job of the same plate, identities and layers writes them."""
        if not people:
            return {}
        engine = self.pipeline.engine
        return {
            **output_attributes(
                job_id=self._job_id(people),
                engine=engine.name,
                engine_version=engine.version,
                models=(*used_models(self.bench.nets), *engine_models(self.message.engine, self.bench)),
                identities=[person.used for person in people.values()],
                settings="",
                plate_frame=None,
            ),
            "faceplate/plateFrame": cast("int", frame.number),
            "faceplate/settingsHash": settings_hash(asdict(self.settings.at(self.message.frame))),
        }

    def _job_id(self, people: Mapping[Path, Person]) -> str:
        message = self.message
        if self.in_slot is not None:
            return message.id
        assert isinstance(message.plate, wire.FileRef)
        assert isinstance(message.output, wire.FileRef)
        holdout = None
        if message.holdout is not None and isinstance(message.holdout.matte, wire.FileRef):
            holdout = HoldOut(message.holdout.matte.pattern, message.holdout.layer)
        job = ApplyJob(
            message.plate.pattern,
            message.output.pattern,
            self.assignments,
            engine=message.engine,
            input_space=message.input_space,
            holdout=holdout,
            layers=parse_layers(",".join(layer.name for layer in message.layers if layer.output is None) or "rgba"),
            project=message.project,
        )
        return job_id(job, {path: person.identity for path, person in people.items()})

    def _facts(self, swapped: SwappedFrame, found: FrameFaces | None) -> dict[str, Any]:
        facts: dict[str, Any] = {"engine": self.message.engine}
        if self.in_slot is not None:
            facts |= {"colour_space": self.in_slot.space, "colour_from": self.in_slot.source}
            if self.file_space:
                facts["file_space"] = self.file_space
        elif self.files is not None:
            facts |= {"colour_space": self.files.decision.space, "colour_from": self.files.decision.source}
        if found is not None:
            facts["faces_from"] = found.source[:200]
            facts["faces"] = [
                face_facts(face.track.id, face.identity.name, face.seen(self._number), swapped)
                for face in found.plan.planned
            ]
        return facts

    @property
    def _number(self) -> int:
        if isinstance(self.message.plate, wire.FileRef) and self.message.plate.frame is not None:
            return self.message.plate.frame
        if self.in_slot is not None or self.files is None:
            return self.message.frame
        return self.files.sequence.frames[0]
