"""One frame of a range between server and worker: what the work has in common, and the faces of that frame alone.

A worker keeps nothing that a frame could not bring again, so that it can die and be replaced between any two frames.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from faceplate.colour.spaces import ColourConfig
from faceplate.deliver import write_frame
from faceplate.face import Identity
from faceplate.job import KeyedSettings
from faceplate.jobs.frames import FrameWork
from faceplate.jobs.hashes import HashCache
from faceplate.jobs.holdout import open_holdout
from faceplate.jobs.patches import write_patch
from faceplate.jobs.plan import PlannedFace, ShotPlan
from faceplate.jobs.steady import LookMemory, reach_of
from faceplate.media.movies.tags import CodesAre
from faceplate.pipeline import FacePipeline
from faceplate.plate import FrameSource, Plate, open_plate

from ..workers.warm import WarmCache

_APART = ("plate", "plan", "pipeline", "settings", "holdout", "hashes", "outputs", "thumbs", "write", "looks")
"""Fields of `FrameWork` that do not travel as they are."""
_WRITERS = {write.__name__: write for write in (write_frame, write_patch)}


def describe(work: FrameWork, source: FrameSource) -> dict[str, Any]:
    """The message for one frame, but for the identities, which a worker asks for where it has them not."""
    faces = work.plan.faces(source.source)
    common = {spec.name: getattr(work, spec.name) for spec in dataclasses.fields(work) if spec.name not in _APART}
    return {
        "common": common,
        "pattern": work.plate.pattern,
        "space": (work.plate.decision.space, work.plate.codes),
        "settings": dict(work.settings.to_json()),
        "holdout": None if work.holdout is None else (work.holdout.asked, work.holdout.first),
        "output": work.outputs[source.number],
        "thumb": source.number in work.thumbs,
        "source": source,
        "write": next(name for name, write in _WRITERS.items() if write is work.write),
        "faces": [
            {
                "track": _around(face, source.source, max(1, reach_of(work.pipeline.engine))),
                "identity": face.identity.content_hash,
                "exposure": face.exposure,
                "solve": face.solve,
            }
            for face in faces
        ],
    }


def _around(face: PlannedFace, frame: int, reach: int) -> Any:
    """The track with the frame and its neighbours alone."""
    near = {number: seen for number, seen in face.track.observations.items() if abs(number - frame) <= reach}
    return dataclasses.replace(face.track, observations=near)


class RangeFrames:
    """Puts frames together again, in a worker. May be used from several threads.

    Args:
        cache: keeps plates and identities.
        config: OCIO configuration.
        looks: keeps what nets said of mattes.
    """

    def __init__(self, cache: WarmCache, config: ColourConfig, looks: LookMemory) -> None:
        self._cache = cache
        self._config = config
        self._looks = looks

    def plate(self, job: str, pattern: str, colour: tuple[str, CodesAre]) -> Plate:
        """The plate of a job, opened once; `colour` as the job found it."""
        found: Plate = self._cache.make(
            ("plate of job", job, pattern), lambda: open_plate(pattern, self._config, *colour)
        )
        return found

    def work(self, message: Mapping[str, Any]) -> tuple[str, ...] | Callable[[FacePipeline], FrameWork]:
        """The work for one frame, given its pipeline; or the identities that are lacking, by content hash."""
        identities: dict[str, Identity] = {one.content_hash: one for one in message["identities"]}
        for name, identity in identities.items():
            self._cache.put(("identity by hash", name), identity)
        for face in message["faces"]:
            known = self._cache.get(("identity by hash", face["identity"]))
            if known is not None:
                identities[face["identity"]] = known
        lacking = {face["identity"] for face in message["faces"]} - identities.keys()
        if lacking:
            return tuple(sorted(lacking))
        job, source = message["job"], message["source"]
        holdout = message["holdout"]
        asked = None
        if holdout is not None:
            asked = self._cache.make(("hold-out of job", job, holdout), lambda: open_holdout(*holdout))
        planned = [
            PlannedFace(face["track"], identities[face["identity"]], face["exposure"], face["solve"])
            for face in message["faces"]
        ]
        plate = self.plate(job, message["pattern"], message["space"])
        return lambda pipeline: FrameWork(
            **message["common"],
            plate=plate,
            plan=ShotPlan(planned),
            pipeline=pipeline,
            outputs={source.number: message["output"]},
            settings=KeyedSettings.from_json(message["settings"]),
            holdout=asked,
            thumbs=frozenset([source.number] if message["thumb"] else []),
            hashes=self._cache.make(("hashes of job", job), HashCache) if reach_of(pipeline.engine) else HashCache(),
            looks=self._looks,
            write=_WRITERS[message["write"]],
        )
