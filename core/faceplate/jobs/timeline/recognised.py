"""The same people over all shots, by what a recogniser says of their tracks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from .people_file import UNKNOWN, People

SAME_PERSON = 0.4
"""Least cosine between the mean vectors of two tracks of one person, of recognisers of the ArcFace family."""
_NEVER = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Sighting:
    """A track with its vector.

    Attributes:
        shot: name of the source.
        track: number in it.
        vector: (D,) float32, unit length.
        weight: how much is seen of it.
        frames: in which it is seen.
    """

    shot: str
    track: int
    vector: NDArray[np.float32]
    weight: float
    frames: frozenset[int]


def name_people(sightings: Sequence[Sighting], before: People, same: float = SAME_PERSON) -> dict[str, dict[int, str]]:
    """A person's name by shot and track.

    Tracks are joined by average linkage; two that are in one frame are two people. A group has the name that the people
    file has for most of its tracks, so that a name which somebody wrote once holds for all of them; a new group is
    "person-N", the most seen first.
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
                if a != b and sightings[a].frames & sightings[b].frames:
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
    return max(votes, key=lambda name: (votes[name], name)) if votes else ""


def _new_name(taken: set[str]) -> str:
    number = 1
    while f"person-{number}" in taken:
        number += 1
    return f"person-{number}"
