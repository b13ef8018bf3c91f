"""The faces of a single frame: from the shot's sidecar where there is one, else from the frame alone."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from faceplate.colour.model_view import exposure_from_medians
from faceplate.errors import FaceplateError, SidecarError
from faceplate.face import Identity, Track
from faceplate.faces.choose import resolve_assignments
from faceplate.faces.shot import AnalyseSettings, ShotFaces
from faceplate.faces.sidecar import read_sidecar, sidecar_path
from faceplate.frame import Frame
from faceplate.job import Assignment
from faceplate.jobs.analyse import analyse_frame
from faceplate.jobs.hashes import HashCache
from faceplate.jobs.plan import PlannedFace, ShotPlan, exposure_frames, skin_median, track_exposure
from faceplate.jobs.spec import Workbench
from faceplate.pipeline import SwappedFrame
from faceplate.plate import Plate

from ..workers.warm import WarmCache

_CHOICES = 64


@dataclass(frozen=True, eq=False)
class FrameFaces:
    """Who is in a frame and becomes whom.

    Attributes:
        plan: for `jobs.frames.face_tasks`.
        source: "sidecar" or "frame alone", with the reason where a sidecar was passed over.
    """

    plan: ShotPlan
    source: str


@dataclass(frozen=True, eq=False)
class FaceQuestion:
    """What has to be known to find the faces of a frame.

    Attributes:
        frame: scene-linear, numbered as in the shot.
        plate: the shot's files, None where only the frame is there.
        sidecar: the one that the job names.
        assignments: of the job.
        identities: by the path in the assignments.
    """

    frame: Frame
    plate: Plate | None
    sidecar: Path | None
    assignments: tuple[Assignment, ...]
    identities: Mapping[Path, Identity]


@dataclass(frozen=True)
class _Shot:
    """The faces of a shot, and what was found out of them once, since it is the same for each frame: what was chosen,
    which looks at every frame, and `exposure_key`'s hashes of landmarks.
    """

    faces: ShotFaces
    choices: dict[tuple[Assignment, ...], Mapping[int, int]] = field(default_factory=dict)
    hashes: dict[tuple[int, ...], str] = field(default_factory=dict)

    def chosen(self, assignments: tuple[Assignment, ...]) -> Mapping[int, int]:
        found = self.choices.get(assignments)
        if found is None:
            if len(self.choices) >= _CHOICES:
                self.choices.clear()
            found = self.choices[assignments] = resolve_assignments(self.faces.tracks, assignments)
        return found


def stamp(path: Path) -> tuple[str, int, int, int]:
    """What changes when a file is written anew: its key in a cache.

    Raises:
        OSError: it is not there.
    """
    found = path.stat()
    return os.fspath(path), found.st_ino, found.st_size, found.st_mtime_ns


class FaceFinder:
    """Answers `FaceQuestion`s. May be used from several threads.

    Args:
        cache: keeps sidecars and exposures.

    Attributes:
        hashes: of the shots' files.
    """

    def __init__(self, cache: WarmCache) -> None:
        self._cache = cache
        self.hashes = HashCache()

    def find(self, question: FaceQuestion, bench: Workbench) -> FrameFaces:
        """The faces of the frame.

        Raises:
            SidecarError: the named sidecar cannot be used.
            SettingError: an assignment names a track that is not there.
        """
        shot, reason = self._from_sidecar(question)
        alone = shot is None
        if shot is None:
            shot = _Shot(analyse_frame(bench.config, question.frame, bench.nets, AnalyseSettings()))
        chosen = shot.chosen(question.assignments)
        planned = []
        for track in shot.faces.tracks:
            if track.id in chosen and question.frame.number in track.observations:
                identity = question.identities[question.assignments[chosen[track.id]].identity]
                planned.append(
                    PlannedFace(track, identity, self._exposure(question, bench, track, shot.hashes, alone=alone))
                )
        return FrameFaces(ShotPlan(planned), reason)

    def _from_sidecar(self, question: FaceQuestion) -> tuple[_Shot | None, str]:
        """(faces of the shot, "sidecar"), or (None, why the frame is looked at alone)."""
        if question.sidecar is not None:
            shot = self._read(question.sidecar)
            self._check_raster(shot.faces, question)
            return self._covering(shot, question)
        if question.plate is None:
            return None, "frame alone"
        path = sidecar_path(question.plate.pattern)
        if not path.is_file():
            return None, f"frame alone: no {path.name}"
        try:
            shot = self._read(path)
            self._check_raster(shot.faces, question)
        except SidecarError as error:
            return None, f"frame alone: {error}"
        if self._was_changed(shot.faces, question):
            return None, f"frame alone: {path.name} is of an earlier version of this frame"
        return self._covering(shot, question)

    def _read(self, path: Path) -> _Shot:
        try:
            key = "sidecar", *stamp(path)
        except OSError as error:
            raise SidecarError(f"{path} cannot be read", found=error.strerror) from error
        found: _Shot = self._cache.make(key, lambda: _Shot(read_sidecar(path)))
        return found

    def _check_raster(self, shot: ShotFaces, question: FaceQuestion) -> None:
        if shot.source is not None and shot.source.display_window != question.frame.display_window:
            raise SidecarError(
                "the sidecar belongs to another plate",
                expected=f"raster {question.frame.display_window}",
                found=f"{shot.source.display_window}",
                hint="analyse this plate: faceplate analyse",
            )

    def _covering(self, shot: _Shot, question: FaceQuestion) -> tuple[_Shot | None, str]:
        if question.frame.number in shot.faces.frames:
            return shot, "sidecar"
        return None, "frame alone: the sidecar does not cover it"

    def _was_changed(self, shot: ShotFaces, question: FaceQuestion) -> bool:
        stored = question.frame.stored
        if shot.source is None or stored is None or question.frame.number is None:
            return False  # pixels that came through memory have no file to compare
        return self.hashes.get(stored.path) != shot.source.hashes.get(question.frame.number)

    def _exposure(
        self, question: FaceQuestion, bench: Workbench, track: Track, hashes: dict[tuple[int, ...], str], *, alone: bool
    ) -> float:
        """One for the whole track where its shot is there, as in a batch job; else the frame's own."""
        plate = question.plate
        if plate is None or alone:
            seen = track.observations[cast("int", question.frame.number)]
            try:
                return exposure_from_medians([skin_median(bench.config, question.frame, seen)])
            except FaceplateError as error:
                raise SidecarError("the face's light cannot be measured", found=str(error)) from error
        found: float = self._cache.make(exposure_key(plate, track, hashes), lambda: track_exposure(plate, track))
        return found


def exposure_key(plate: Plate, track: Track, hashes: dict[tuple[int, ...], str]) -> tuple[Any, ...]:
    """Of what a track's exposure depends on: the files that are looked at, where in them, and how they are read.

    Args:
        plate: of the shot.
        track: one of its tracks.
        hashes: of landmarks, of this shot's tracks; kept by its caller as long as these, and filled here.
    """
    frames = exposure_frames(plate, track)
    files = []
    for number in frames:
        path = plate.sequence.path(number)
        try:
            files.append(stamp(path))
        except OSError:
            files.append((os.fspath(path), 0, 0, 0))
    which = track.id, *frames
    if which not in hashes:
        where = hashlib.sha256()
        for number in frames:
            where.update(np.ascontiguousarray(track.observations[number].landmarks).tobytes())
        hashes[which] = where.hexdigest()
    return "exposure", plate.decision.space, tuple(frames), tuple(files), hashes[which]


def face_facts(track: int, identity: str, seen: Any, swapped: SwappedFrame) -> dict[str, Any]:
    """What an answer tells of a face."""
    numbers = {
        "score": float(seen.score),
        "yaw_deg": float(seen.yaw_deg),
        "width_px": float(seen.width_px),
        **{name: float(value) for name, value in swapped.facts.get(track, {}).items() if value is not None},
    }
    finite = {name: round(value, 4) if math.isfinite(value) else None for name, value in numbers.items()}
    return {"track": track, "identity": identity, "origin": seen.origin.value, **finite}
