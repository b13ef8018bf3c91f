"""Mattes of nets, steadied over the frames around each: what a `MatteEngine` needs of a frame's neighbours.

A frame's mattes follow from the files and landmarks of the frames around it and from nothing else, so that it comes out
the same whatever part of the shot a run covers and whichever process does it. What a net says of a frame is kept by
what it was said of: the frames of a range ask for it one after the other, and each goes through the nets once.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from ..errors import DeviceMemoryError, InputError, NumbersError
from ..frame import Box, Frame
from ..job import SwapSettings
from ..models.memory import is_out_of_memory
from ..pipeline import FacePipeline, FaceTask
from ..plate import Plate
from ..swap.base import Engine, MatteEngine
from ..swap.mesh.flow import yaw_fade
from .analyse import present
from .hashes import HashCache
from .plan import PlannedFace
from .spec import digest

_LOOKS = 512


class LookMemory:
    """What nets said of frames, by what decides it; the least recently used goes first. May be used from several
    threads: what one is about to make, others wait for.

    Args:
        most: looks that are kept, some 200 KB each.
    """

    def __init__(self, most: int = _LOOKS) -> None:
        self._most = most
        self._looks: OrderedDict[str, Future[Any]] = OrderedDict()
        self._lock = threading.Lock()

    def make(self, key: str, make: Callable[[], Any]) -> Any:
        """The look, made if it is not there. What `make` raises is raised to all that wait, and nothing is kept."""
        with self._lock:
            found = self._looks.get(key)
            mine: Future[Any] = Future()
            if found is None:
                self._looks[key] = mine
                while len(self._looks) > self._most:
                    self._looks.popitem(last=False)
            else:
                self._looks.move_to_end(key)
        if found is not None:
            return found.result()
        try:
            mine.set_result(make())
        except BaseException as error:
            with self._lock:
                if self._looks.get(key) is mine:
                    del self._looks[key]
            mine.set_exception(error)
        return mine.result()


def reach_of(engine: Engine) -> int:
    """Frames before and after that count for a frame's mattes."""
    return engine.matte_reach if isinstance(engine, MatteEngine) else 0


@dataclass(frozen=True, slots=True, eq=False)
class Steady:
    """Steadies the mattes of a plate's faces.

    Attributes:
        plate: the shot's files.
        hashes: of them.
        memory: of looks; may be shared with other plates.
    """

    plate: Plate
    hashes: HashCache
    memory: LookMemory = field(default_factory=LookMemory)

    def key(self, face: PlannedFace, frame: int, engine: Engine) -> list[str]:
        """Of all that decides the mattes of a face in a frame; empty where nothing is steadied."""
        reach = reach_of(engine)
        return [self._key(face, near, engine) for near in self._near(face, frame, reach)] if reach else []

    def tasks(self, given: Sequence[tuple[PlannedFace, FaceTask]], pipeline: FacePipeline) -> list[FaceTask]:
        """The tasks of a frame, each with its mattes where it has any use for them and the engine steadies any.

        A frame nearby that cannot be read, or of which a net says NaN, does not count; it fails where it is processed.

        Raises:
            NumbersError: a net's matte of the frame itself is NaN.
        """
        engine = pipeline.engine
        wanted = [one for one in given if _is_used(one[1])]
        if not wanted or not isinstance(engine, MatteEngine) or not engine.matte_reach:
            return [task for _, task in given]
        frame, reach = wanted[0][1].observation.frame, engine.matte_reach
        around = range(frame - reach, frame + reach + 1)
        looks: dict[int, list[Any]] = {face.track.id: [] for face, _ in wanted}
        near = {face.track.id: self._near(face, frame, reach) for face, _ in wanted}
        for one in around:  # each is read once for all faces, and no two are in memory
            faces = [face for face, _ in wanted if one in near[face.track.id]]
            read = self._reader(faces, one, pipeline)
            for face, _ in wanted:
                seen = face in faces
                looks[face.track.id].append(self._look(face, one, pipeline, read, own=one == frame) if seen else None)
        steady = {track: engine.steady(found, reach) for track, found in looks.items() if found[reach] is not None}
        return [replace(task, mattes=steady.get(face.track.id)) for face, task in given]

    def _near(self, face: PlannedFace, frame: int, reach: int) -> list[int]:
        """Frames around that show the face; those that stand alone on their side do not count."""
        here = {
            near
            for near in range(frame - reach, frame + reach + 1)
            if near in face.track.observations and near in self.plate.sequence.files
        }
        return sorted(near for near in here if 2 * frame - near in here)

    def _key(self, face: PlannedFace, frame: int, engine: Engine) -> str:
        try:
            file = self.hashes.get(self.plate.sequence.path(frame))
        except InputError as error:
            file = str(error)
        facts = [engine.name, self.plate.decision.space, str(self.plate.codes), file, frame]
        landmarks = np.ascontiguousarray(face.seen(frame).landmarks).tobytes()
        return digest([*facts, face.identity.content_hash, face.exposure, landmarks.hex()])

    def _look(
        self, face: PlannedFace, frame: int, pipeline: FacePipeline, read: Callable[[], Frame | None], *, own: bool
    ) -> Any:
        def made() -> Any:
            picture = read()
            return (
                None if picture is None else pipeline.matte_look(picture, face.task(face.seen(frame), SwapSettings()))
            )

        try:
            return self.memory.make(self._key(face, frame, pipeline.engine), made)
        except NumbersError:
            if own:
                raise
            return None

    def _reader(self, faces: Sequence[PlannedFace], frame: int, pipeline: FacePipeline) -> Callable[[], Frame | None]:
        """Reads a frame when it is first asked for; None where it cannot be read, or shows none of the faces."""

        @cache
        def read() -> Frame | None:
            window = Box(0, 0, 0, 0)
            for face in faces:
                landmarks, aspect = face.seen(frame).landmarks, self.plate.first.pixel_aspect
                window = window.union(pipeline.engine.window(landmarks, SwapSettings(), aspect))
            window = window.intersect(self.plate.first.data_window)
            if window.is_empty:
                return None
            try:
                return self.plate.read(present(self.plate, frame), window)
            except InputError as error:
                if is_out_of_memory(error):
                    raise DeviceMemoryError("memory ran out in a file's library", found=str(error)) from error
                return None

        return read


def _is_used(task: FaceTask) -> bool:
    """Whether a face's mattes decide anything."""
    chosen = task.settings
    hidden = yaw_fade(task.observation.yaw_deg, chosen) == 0
    return not (chosen.strength == 0 or chosen.reference_paste or hidden)
