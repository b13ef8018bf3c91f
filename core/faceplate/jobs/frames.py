"""One frame of a job, from files to file: the unit that is done, recorded, resumed and retried."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..deliver import Delivery, write_frame
from ..errors import DeviceMemoryError, InputError, OutputError
from ..face import Observation
from ..faces.topology import RIGID
from ..frame import Box, Frame
from ..job import FINISHED, FrameState, KeyedSettings, SwapSettings
from ..media.atomic import atomic_write
from ..models.memory import is_out_of_memory
from ..pipeline import FacePipeline, FaceTask, SwappedFrame
from ..plate import FrameSource, Plate
from ..provenance.attributes import settings_hash
from ..report.thumbs import matte_thumbnail, thumbnail
from ..report.values import FaceRow
from .hashes import HashCache
from .holdout import HoldOutFiles
from .manifest import FrameRecord
from .plan import PlannedFace, ShotPlan
from .spec import digest
from .steady import LookMemory, Steady, reach_of


@dataclass(frozen=True, slots=True, eq=False)
class FrameWork:
    """All that the frames of one job have in common.

    Attributes:
        plate: the plate.
        plan: who is where in each frame.
        pipeline: the steps.
        delivery: how results are written; its attributes get the frame number.
        outputs: file of each frame.
        recipe: digest of what all frames have in common and that decides their bytes.
        settings: keyed by frame.
        holdout: what must stay the plate.
        thumbs: frames of the contact sheet.
        thumbs_folder: where their pictures go.
        hashes: of input files.
        write: how a finished frame is written.
        looks: what nets said of frames' mattes.
    """

    plate: Plate
    plan: ShotPlan
    pipeline: FacePipeline
    delivery: Delivery
    outputs: Mapping[int, Path]
    recipe: str
    settings: KeyedSettings
    holdout: HoldOutFiles | None
    thumbs: frozenset[int]
    thumbs_folder: Path
    hashes: HashCache = field(default_factory=HashCache)
    write: Callable[[Path, Plate, Frame, SwappedFrame, Delivery], None] = write_frame
    looks: LookMemory = field(default_factory=LookMemory)

    @property
    def steady(self) -> Steady:
        """Steadies the mattes of the plate's faces."""
        return Steady(self.plate, self.hashes, self.looks)

    def key(self, source: FrameSource) -> str:
        """Digest of all that decides one output file: another key means that the file is stale."""
        assert source.path is not None
        faces, engine = self.plan.faces(source.source), self.pipeline.engine
        facts: dict[str, Any] = {
            "recipe": self.recipe,
            "input": self.hashes.get(source.path),
            "holdout": self.holdout.key(source, self.hashes) if self.holdout else None,
            "faces": [face.key(source.source) for face in faces],
            "settings": asdict(self.settings.at(source.number)),
            "number": [source.number, source.source],
        }
        if reach_of(engine):
            facts["around"] = [self.steady.key(face, source.source, engine) for face in faces]
        return digest(facts)

    def is_current(self, source: FrameSource, record: FrameRecord | None) -> bool:
        """Whether an earlier run's output is there, whole and not stale."""
        if record is None or record.state not in FINISHED or record.key != self.key(source):
            return False
        path = self.outputs[source.number]
        return os.path.isfile(path) and self.hashes.get(path) == record.output_hash

    def run(self, source: FrameSource) -> FrameRecord:
        """Do one frame. What is wrong with its own files is in the record, and the others go on.

        Raises:
            OutputError, ResourceError: the next frame would meet the same, so the job stops; finished frames are kept.
        """
        if source.path is None:
            return FrameRecord(source.number, FrameState.SKIPPED, key="")
        start = time.perf_counter()
        try:
            record = self._run(source)
        except InputError as error:
            if is_out_of_memory(error):
                raise DeviceMemoryError("memory ran out in a file's library", found=str(error)) from error
            if isinstance(error, OutputError):
                raise
            return FrameRecord(source.number, FrameState.FAILED, key="", error=error.to_dict())
        return replace(record, seconds={**record.seconds, "frame": time.perf_counter() - start})

    def _run(self, source: FrameSource) -> FrameRecord:
        clock = [time.perf_counter()]
        key = self.key(source)
        tasks = self.tasks(source)
        frame = self.plate.read(source, self._window(source, tasks))
        clock.append(time.perf_counter())
        holdout = None if self.holdout is None else self.holdout.read(source, frame)
        swapped = self.pipeline.process(frame, self.steady.tasks(tasks, self.pipeline), holdout)
        clock.append(time.perf_counter())
        path = self.outputs[source.number]
        attributes = {
            **self.delivery.attributes,
            "faceplate/plateFrame": source.source,
            "faceplate/settingsHash": settings_hash(asdict(self.settings.at(source.number))),
        }
        delivery = Delivery(self.delivery.layers, attributes, self.delivery.identities)
        self.write(path, self.plate, frame, swapped, delivery)
        clock.append(time.perf_counter())
        if source.number in self.thumbs:
            self._write_thumbs(source.number, frame, swapped)
        state = FrameState.HELD if source.state == "held" else FrameState.DONE if tasks else FrameState.NO_FACE
        return FrameRecord(
            frame=source.number,
            state=state,
            key=key,
            output=path.name,
            output_hash=self.hashes.get(path),
            facts={"faces": [asdict(self._face_row(face, task, frame, swapped)) for face, task in tasks]},
            seconds={"read": clock[1] - clock[0], "swap": clock[2] - clock[1], "write": clock[3] - clock[2]},
        )

    def _window(self, source: FrameSource, tasks: Sequence[tuple[PlannedFace, FaceTask]]) -> Box | None:
        """What of a frame has to be read: where its faces are, where no more is written or shown."""
        if self.write is write_frame or source.number in self.thumbs:
            return None
        whole = self.plate.first.data_window
        window = Box(0, 0, 0, 0)
        for _, task in tasks:
            window = window.union(
                self.pipeline.engine.window(task.observation.landmarks, task.settings, self.plate.first.pixel_aspect)
            )
        window = window.intersect(whole)
        return Box(whole.x0, whole.y0, whole.x0 + 1, whole.y0 + 1) if window.is_empty else window

    def tasks(self, source: FrameSource) -> list[tuple[PlannedFace, FaceTask]]:
        """The faces of a frame that become somebody, and what they become."""
        return face_tasks(self.plan, source.source, self.settings.at(source.number))

    def _write_thumbs(self, number: int, frame: Frame, swapped: SwappedFrame) -> None:
        step = max(1, frame.data_window.width // 640)
        to_709 = self.plate.config.to_rec709(frame.colour_space)
        thin = (slice(None, None, step), slice(None, None, step))
        matte = np.zeros((frame.data_window.height, frame.data_window.width), np.float16)
        if not swapped.window.is_empty:
            matte[swapped.window.slices(frame.data_window)] = swapped.matte
        for name, pixels in (("before", frame.pixels), ("after", swapped.pixels)):
            thinned = np.ascontiguousarray(pixels[*thin, :3], np.float32)
            self._write_thumb(f"{number}.{name}.png", thumbnail(to_709.numpy(thinned)))
        thinned = np.ascontiguousarray(matte[thin], np.float32)
        self._write_thumb(f"{number}.matte.png", matte_thumbnail(thinned))

    def _write_thumb(self, name: str, png: bytes) -> None:
        with atomic_write(self.thumbs_folder / name) as temporary:
            temporary.write_bytes(png)

    def _face_row(self, face: PlannedFace, task: FaceTask, frame: Frame, swapped: SwappedFrame) -> FaceRow:
        facts = swapped.facts.get(face.track.id, {})
        seen = task.observation
        whole = frame.data_window if self.plate.movie is None else self.plate.first.data_window
        area = whole.width * whole.height
        return FaceRow(
            track=face.track.id,
            identity=face.identity.name if facts else "",
            origin=seen.origin.value,
            score=round(seen.score, 4),
            yaw_deg=round(seen.yaw_deg, 2),
            width_px=round(seen.width_px, 2),
            jitter_px=_jitter(face.track.observations, seen.frame),
            matte_area=facts.get("matte_px", 0.0) / area,
            exposure_stops=facts.get("exposure_stops"),
            occluded=facts.get("occluded", 0.0),
        )


def face_tasks(plan: ShotPlan, frame: int, settings: SwapSettings) -> list[tuple[PlannedFace, FaceTask]]:
    """The faces of a frame that become somebody, smaller ones first: a larger one is nearer.

    Args:
        plan: of the shot.
        frame: number in the plate.
        settings: sampled for the frame that is made.
    """
    faces = sorted(plan.faces(frame), key=lambda face: face.seen(frame).width_px)
    return [(face, face.task(face.seen(frame), settings)) for face in faces]


def _jitter(observations: Mapping[int, Observation], frame: int) -> float | None:
    """Rms of the second difference of the rigid points in time, px; None at the ends of a track."""
    around = [observations.get(number) for number in (frame - 1, frame, frame + 1)]
    if any(seen is None for seen in around):
        return None
    before, now, after = (seen.landmarks[list(RIGID), :2] for seen in around if seen is not None)
    return float(np.sqrt(np.mean(np.sum((before - 2 * now + after) ** 2, axis=1))))
