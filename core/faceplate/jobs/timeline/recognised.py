"""The same people over all sources of a timeline, by what a recogniser says of their tracks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from ...errors import InputError, LicenceError
from ...faces.recognise import MatchLimits, References, TrackVector, match_tracks, seen_together
from ...identity.embed import references
from ...identity.file import read_identity
from ...media.timelines.folders import Run
from ...nets.recognisers.arcface import ArcFace
from ...plate import open_plate
from ..events import Emit, note, warning
from ..recognise import shot_vectors
from ..spec import Workbench
from .faces import Looked, SeenShot
from .people_file import UNKNOWN, People

SAME_PERSON = MatchLimits().threshold
"""Least mean cosine between the tracks of one person."""
_NEVER = 2.0
_NEW = re.compile(r"person-[0-9]+")


@dataclass(frozen=True, slots=True, eq=False)
class Sighting:
    """A track with its vector.

    Attributes:
        shot: name of the source.
        track: number in it.
        vector: (D,) float32, unit length.
        weight: how much is seen of it.
        runs: stretches of frames in which it is seen, rising.
    """

    shot: str
    track: int
    vector: NDArray[np.float32]
    weight: float
    runs: tuple[Run, ...]


def recogniser_of(bench: Workbench, emit: Emit) -> ArcFace | None:
    """The first recogniser that is installed and may be used; None where there is none."""
    for card in bench.nets.store.here:
        if card.role == "recogniser":
            try:
                return ArcFace(bench.nets.get(card.id))
            except LicenceError as error:
                emit(note(f"people are not recognised by {card.id}: {error}"))
    return None


class Recogniser:
    """Looks at one source after the other.

    Args:
        net: that is installed.
        wanted: identity files of the people who are looked for ("auto"), by any number.
        folder: where vectors are kept.
        emit: told of identities that cannot be compared.
    """

    def __init__(self, net: ArcFace, wanted: Mapping[int, Path], folder: Path, emit: Emit) -> None:
        self.net, self._folder, self._emit = net, folder, emit
        self._people: dict[int, References] = {}
        for number, path in wanted.items():
            known = references(read_identity(path).identity, net.space)
            if known is None:
                emit(warning(f"{path} holds no vectors of {net.space}: make it again, now that there is a recogniser"))
            else:
                self._people[number] = known

    def look(
        self, looked: Looked, input_space: str | None, bench: Workbench
    ) -> tuple[dict[int, TrackVector], dict[int, int]]:
        """(vector by track, number of the person by track where it shows one of those who are looked for)."""
        name = looked.plan.name
        try:
            plate = open_plate(looked.plan.media.plate, bench.config, input_space)
            vectors = shot_vectors(looked.tracks, looked.faces, plate, bench, self.net, self._folder / name)
        except InputError as error:
            self._emit(warning(f"{name}: nobody is recognised: {error}"))
            return {}, {}
        found = match_tracks(vectors, self._people, None, seen_together(looked.tracks)) if self._people else {}
        return vectors, {track: match.person for track, match in found.items() if match.person is not None}


def sightings_of(seen: Mapping[str, SeenShot]) -> list[Sighting]:
    """The tracks that show one person clearly."""
    return [
        Sighting(name, track.id, track.vector, track.weight, track.runs)
        for name, each in seen.items()
        for track in each.tracks
        if track.vector is not None
    ]


def _meet(one: Sequence[Run], other: Sequence[Run]) -> bool:
    return any(a <= d and c <= b for a, b in one for c, d in other)


def name_people(sightings: Sequence[Sighting], before: People, same: float = SAME_PERSON) -> dict[str, dict[int, str]]:
    """A person's name by shot and track.

    Tracks are joined by average linkage; two that are in one frame are two people. A group has the name that the people
    file has for most of its tracks, on a tie the one that somebody wrote; a new group is "person-N", the most seen
    first.
    """
    groups = _groups(sightings, same)
    taken = set(before.people) | {name for each in before.shots.values() for name in each.values()}
    used: set[str] = set()
    found: dict[str, dict[int, str]] = {}
    for members in sorted(groups, key=lambda each: (-sum(one.weight for one in each), each[0].shot, each[0].track)):
        name = _name(members, before, used) or _new_name(taken | used)
        used.add(name)
        for one in members:
            found.setdefault(one.shot, {})[one.track] = name
    return found


def _groups(sightings: Sequence[Sighting], same: float) -> list[list[Sighting]]:
    if len(sightings) < 2:
        return [[each] for each in sightings]
    vectors = np.stack([each.vector for each in sightings]).astype(np.float64)
    distance = np.clip(1 - vectors @ vectors.T, 0, 2)
    by_shot: dict[str, list[int]] = {}
    for index, each in enumerate(sightings):
        by_shot.setdefault(each.shot, []).append(index)
    for members in by_shot.values():
        for a in members:
            for b in members:
                if a != b and _meet(sightings[a].runs, sightings[b].runs):
                    distance[a, b] = _NEVER * len(sightings)
    np.fill_diagonal(distance, 0)
    labels = fcluster(linkage(squareform(distance, checks=False), "average"), 1 - same, "distance")
    found: dict[int, list[Sighting]] = {}
    for label, each in zip(labels.tolist(), sightings, strict=True):
        found.setdefault(label, []).append(each)
    return list(found.values())


def _name(members: Sequence[Sighting], before: People, used: set[str]) -> str:
    votes: Counter[str] = Counter()
    for one in members:
        name = before.shots.get(one.shot, {}).get(one.track, UNKNOWN)
        if name not in ("", UNKNOWN) and name not in used:
            votes[name] += 1
    return max(votes, key=lambda name: (votes[name], not _NEW.fullmatch(name), name)) if votes else ""


def _new_name(taken: set[str]) -> str:
    number = 1
    while f"person-{number}" in taken:
        number += 1
    return f"person-{number}"
