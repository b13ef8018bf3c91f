"""What `faceplate.jobs` has done by the worker processes: frames of a range, and analyses."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from faceplate.errors import DeviceMemoryError
from faceplate.face import Identity
from faceplate.faces.shot import AnalyseSettings, ShotFaces
from faceplate.job import FrameState
from faceplate.jobs.cancel import CancelToken
from faceplate.jobs.events import Emit, warning
from faceplate.jobs.frames import FrameWork
from faceplate.jobs.manifest import FrameRecord
from faceplate.jobs.output import sweep
from faceplate.jobs.plan import PlannedFace
from faceplate.plate import FrameSource, Plate

from ..errors import type_name
from ..frames.ranges import describe
from .crew import Crew, WorkerDied


class JobHands:
    """The hands of one job. Its frames go to whichever worker has the least to do; the manifest stays here.

    Args:
        crew: of worker processes.
        job: what `Crew.cancel` names.
        engine: of the job.
        commercial: whether it is paid work.
        emit: takes the job's events.
        turn: held for each frame.
    """

    def __init__(
        self,
        crew: Crew,
        job: object,
        *,
        engine: str,
        commercial: bool,
        emit: Emit,
        turn: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._crew = crew
        self._job = job
        self._id = secrets.token_hex(8)
        self._engine = engine
        self._commercial = commercial
        self._emit = emit
        self._turn = turn

    def frame(self, work: FrameWork, source: FrameSource) -> FrameRecord:
        """As `FrameWork.run`; a frame that its worker cannot do, whatever happens to it, fails alone.

        Raises:
            OutputError, ResourceError: the next frame would meet the same.
        """
        if source.path is None:
            return work.run(source)
        try:
            return self._frame(work, source)
        except (WorkerDied, DeviceMemoryError) as error:
            return FrameRecord(source.number, FrameState.FAILED, key="", error=_plain(error))

    def _frame(self, work: FrameWork, source: FrameSource) -> FrameRecord:
        request = {
            "do": "range",
            "job": self._id,
            "engine": self._engine,
            "commercial": self._commercial,
            **describe(work, source),
        }
        known = {face.identity.content_hash: face.identity for face in work.plan.faces(source.source)}
        sent: Sequence[Identity] = ()
        while True:
            done = self._crew.ask(
                {**request, "identities": list(sent)},
                self._job,
                lane="slow",
                given_up=lambda: False,  # a frame that has its turn is finished
                on=self._hear,
                again=lambda: self._swept(work, source),
            )
            if "wanted" not in done:
                break
            sent = [known[name] for name in done["wanted"]]
        if done["note"] is not None:
            self._emit(warning(f"frame {source.number}: {done['note']}"))
        record: FrameRecord = done["record"]
        return record

    def look(self, plate: Plate, planned: PlannedFace, frames: Sequence[int]) -> list[Any]:
        """As `plan.looks`."""
        seen = {number: planned.seen(number) for number in frames}
        request = {
            "do": "look",
            "job": self._id,
            "engine": self._engine,
            "commercial": self._commercial,
            "pattern": plate.pattern,
            "space": (plate.decision.space, plate.codes),
            "track": dataclasses.replace(planned.track, observations=seen),
            "identity": planned.identity,
            "exposure": planned.exposure,
            "frames": list(frames),
        }
        done = self._crew.ask(
            request, self._job, lane="slow", given_up=lambda: False, on=self._hear, again=lambda: True
        )
        return list(done["looks"])

    def _swept(self, work: FrameWork, source: FrameSource) -> bool:
        """Remove what the dead worker left half-written, before the frame is done again."""
        self._emit(warning(f"frame {source.number}: the worker process died; the frame is done once more"))
        for folder in (work.outputs[source.number].parent, work.thumbs_folder):
            sweep(folder)
        return True

    def analyse(
        self, plate: Plate, frames: Sequence[int], settings: AnalyseSettings, emit: Emit, cancel: CancelToken
    ) -> ShotFaces:
        """As `analyse.analyse_plate`; after the death of its worker it begins anew, once."""

        def hear(said: Mapping[str, Any]) -> None:
            if said["say"] == "turn":
                with self._turn():
                    return
            emit(said["event"])

        request = {
            "do": "analyse",
            "job": self._id,
            "commercial": self._commercial,
            "pattern": plate.pattern,
            "space": (plate.decision.space, plate.codes),
            "frames": list(frames),
            "settings": settings,
        }
        found: ShotFaces = self._crew.ask(
            request, self._job, lane="shots", given_up=lambda: cancel.is_cancelled, on=hear
        )
        return found

    def _hear(self, said: Mapping[str, Any]) -> None:
        """A frame of a range says nothing before its end."""


def _plain(error: WorkerDied | DeviceMemoryError) -> dict[str, str | None]:
    """As the manifest has errors: of a type that everybody knows."""
    return {**error.to_dict(), "type": type_name(error)}
