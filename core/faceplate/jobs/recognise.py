"""Which tracks of a plate are the people of a job, by a recogniser that the user has added."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import IdentityError, ModelError, SettingError
from ..face import Identity, Track
from ..faces.nets import FaceNets
from ..faces.recognise import (
    Match,
    MatchLimits,
    References,
    TrackVector,
    best_frames,
    match_tracks,
    seen_together,
    track_vector,
)
from ..faces.shot import ShotFaces
from ..identity.embed import references, spaces
from ..job import Assignment
from ..media.atomic import atomic_write
from ..models.sessions import SessionPool
from ..nets.recognisers.arcface import ArcFace
from ..plate import Plate
from .analyse import analysis_exposure, plate_view, present
from .events import Emit, note, warning
from .spec import Workbench, digest

VECTORS_FILE = "recognised.json"


def recognisers(pool: SessionPool) -> tuple[ArcFace, ...]:
    """Those that are installed.

    Raises:
        ModelError: a file is absent or damaged.
        LicenceError: the pool is for commercial work, and a recogniser may not be used for it.
    """
    return tuple(ArcFace(pool.get(card.id)) for card in pool.store.here if card.role == "recogniser")


def recognise_tracks(
    assignments: Sequence[Assignment],
    people: Mapping[Path, Identity],
    faces: ShotFaces,
    plate: Plate,
    bench: Workbench,
    folder: Path,
    emit: Emit,
    limits: MatchLimits | None = None,
) -> dict[int, int]:
    """Index of the "auto" assignment of each track that is its person; says what was compared, and with what result.

    Args:
        assignments: of the job.
        people: whom "auto" assignments look for, by path.
        faces: of the whole plate.
        plate: whose frames are looked at.
        bench: recogniser and colour.
        folder: of the job, where the vectors are kept.
        emit: told of every track.
        limits: None for the defaults.

    Raises:
        ModelError: no recogniser is installed.
        IdentityError: the people have no vectors of one that is.
        SettingError: two assignments look for one person.
    """
    looked_for = [(one.like or one.identity, index) for index, one in enumerate(assignments) if one.track == "auto"]
    if not looked_for:
        return {}
    wanted = dict(looked_for)
    if len(wanted) < len(looked_for):
        raise SettingError("two identities are to be put on one person", hint="give each person of the plate once")
    recogniser = _common(bench.nets, list(people.values()))
    named = {path: references(identity, recogniser.space) for path, identity in people.items()}
    known = {path: found for path, found in named.items() if found is not None}
    taken = {one.track for one in assignments if isinstance(one.track, int)}
    tracks = [track for track in faces.tracks if track.id not in taken]
    vectors = shot_vectors(tracks, faces, plate, bench, recogniser, folder)
    found = match_tracks(vectors, known, limits, seen_together(tracks))
    emit(note(f"people are told apart by {recogniser.space}"))
    for track, match in sorted(found.items()):
        emit(_said(track, match, known))
    return {
        track: wanted[match.person]
        for track, match in found.items()
        if match.person is not None and match.person in wanted
    }


def _said(track: int, match: Match[Path], known: Mapping[Path, References]) -> dict[str, Any]:
    if match.person is not None:
        return note(f"track {track} is {known[match.person].name}: {match.reason}")
    return warning(f"track {track} is nobody of this job and stays as it is: {match.reason}")


def _common(pool: SessionPool, identities: Sequence[Identity]) -> ArcFace:
    """The first recogniser that is installed and whose vectors all identities hold."""
    cards = [card for card in pool.store.here if card.role == "recogniser"]
    if not cards:
        raise ModelError(
            "no recogniser is installed, so that nobody can be told apart",
            expected="a recogniser, e.g. w600k_r50 or auraface",
            hint="faceplate models add FILE; or name the tracks: FILE.fpid@TRACK",
        )
    for card in cards:
        if all(card.embedding in spaces(identity) for identity in identities):
            return ArcFace(pool.get(card.id))
    raise IdentityError(
        "the identities hold no vectors of one recogniser that is installed",
        expected=f"vectors of {' or '.join(card.embedding for card in cards)}",
        found="; ".join(f"{one.name}: {', '.join(spaces(one)) or 'none'}" for one in identities),
        hint="make the identities again, now that the recogniser is there: faceplate identity make",
    )


def shot_vectors(
    tracks: Sequence[Track], faces: ShotFaces, plate: Plate, bench: Workbench, recogniser: ArcFace, folder: Path | None
) -> dict[int, TrackVector]:
    """The vector of each track, by id: read from the job's folder, or made and kept there.

    Args:
        tracks: to look at.
        faces: that they belong to.
        plate: whose frames are looked at.
        bench: nets and colour.
        recogniser: whose vectors.
        folder: to keep them in, None to keep nothing.
    """
    keys = {track.id: _key(track, faces, recogniser) for track in tracks}
    kept = _read(folder / VECTORS_FILE) if folder is not None else {}
    found = {track.id: _from_json(kept[keys[track.id]]) for track in tracks if keys[track.id] in kept}
    lacking = [track for track in tracks if track.id not in found]
    if lacking:
        exposure = analysis_exposure(plate, list(faces.frames), FaceNets.load(bench.nets))

        def view_of(frame: int) -> Any:
            return plate_view(plate.config, plate.read(present(plate, frame)), exposure)

        found |= {track.id: track_vector(track, view_of, recogniser) for track in lacking}
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            with atomic_write(folder / VECTORS_FILE) as temporary:
                kept |= {keys[track]: _to_json(vector) for track, vector in found.items()}
                temporary.write_text(json.dumps(kept), "utf-8")
    return dict(sorted(found.items()))


def _key(track: Track, faces: ShotFaces, recogniser: ArcFace) -> str:
    """What decides a vector: the pixels and landmarks of the frames that are looked at, and the net."""
    frames = best_frames(track)
    hashes = faces.source.hashes if faces.source is not None else {}
    seen = [
        [frame, hashes.get(frame, ""), digest(np.asarray(track.observations[frame].landmarks).tolist())]
        for frame in frames
    ]
    return digest([recogniser.sha256, seen])


def _to_json(vector: TrackVector) -> dict[str, Any]:
    return {
        "space": vector.space,
        "vector": [float(value) for value in vector.vector],
        "frames": list(vector.frames),
        "agreement": vector.agreement,
        "mixed": vector.mixed,
    }


def _from_json(document: Mapping[str, Any]) -> TrackVector:
    return TrackVector(
        str(document["space"]),
        np.asarray(document["vector"], np.float32),
        tuple(int(frame) for frame in document["frames"]),
        float(document["agreement"]),
        bool(document["mixed"]),
    )


def _read(path: Path) -> dict[str, Any]:
    """What is kept; a damaged file is made anew, it holds nothing that cannot be measured again."""
    try:
        document = json.loads(path.read_text("utf-8")) if path.is_file() else {}
        for one in document.values():
            _from_json(one)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}
    return dict(document)
