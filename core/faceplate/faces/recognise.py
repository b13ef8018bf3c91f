"""Who a track shows: one vector a track from its best frames, matched with the people of a job over the whole track.

Nothing is decided frame by frame: a track is one person from its first frame to its last, as a cut ends every track.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from ..face import Observation, Origin, Track
from ..nets.recognisers.arcface import ArcFace
from ..nets.templates import five_points, inverted
from .crop import unsqueeze
from .track import ViewOf
from .view import PlateView

Vector = NDArray[np.float32]
"""(512,) float32."""

MOST_FRAMES = 12
"""Of one track that are looked at."""

_FEWEST_ALIKE = 0.6
"""Share of a track's frames that must be of one person."""
_ALIKE = 0.15
"""How much less like the others than the middle one a frame may be."""

Key = TypeVar("Key", bound=Hashable)
Person = TypeVar("Person", bound=Hashable)


@dataclass(frozen=True, slots=True)
class MatchLimits:
    """What it takes to call a track a person. The cosine of two unit vectors is 1 for the same picture.

    Attributes:
        threshold: lowest cosine to a reference of the person.
        margin: by which the next person's must be lower.
    """

    threshold: float = 0.35
    margin: float = 0.10


@dataclass(frozen=True, slots=True, eq=False)
class TrackVector:
    """What a recogniser says of a track.

    Attributes:
        space: of the recogniser.
        vector: (512,) unit, robust mean over `frames`.
        frames: that were looked at and agree.
        agreement: lowest cosine between the vector and one of these frames.
        mixed: whether too many frames show somebody else: the track is not to be trusted.
    """

    space: str
    vector: Vector
    frames: tuple[int, ...]
    agreement: float
    mixed: bool = False


@dataclass(frozen=True, slots=True)
class Match(Generic[Person]):
    """Who a track is.

    Attributes:
        person: None where it is nobody of the job, or nobody may say who.
        similarity: cosine to the most similar person, -1..1.
        nearest: that person.
        second: cosine to the next person, None where there is only one.
        reason: in words, with threshold and margin.
    """

    person: Person | None
    similarity: float
    nearest: Person
    second: float | None
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class References:
    """The vectors of one person.

    Attributes:
        vectors: (R, 512) unit, one a photo, or one for all.
        name: for people.
    """

    vectors: NDArray[np.float32]
    name: str = field(default="")


def unit_vector(vector: NDArray[np.floating]) -> Vector:
    """Of length 1; zeros stay."""
    length = float(np.linalg.norm(vector))
    return (np.asarray(vector, np.float32) / np.float32(max(length, 1e-12))).astype(np.float32)


def face_vectors(recogniser: ArcFace, looks: Sequence[tuple[PlateView, NDArray[np.float32]]]) -> NDArray[np.float32]:
    """(N, 512) float32 as the recogniser gives them, one batch.

    Args:
        recogniser: on any device.
        looks: a frame, and (478, 3) landmarks in its px, for each face.
    """
    crops = [_aligned(recogniser, view, landmarks) for view, landmarks in looks]
    batch = torch.from_numpy(np.stack(crops)).permute(0, 3, 1, 2).contiguous()
    return np.asarray(recogniser.embed(batch.to(recogniser.device)).cpu().numpy(), np.float32)


def _aligned(recogniser: ArcFace, view: PlateView, landmarks: NDArray[np.float32]) -> NDArray[np.float32]:
    square = unsqueeze(np.asarray(landmarks, np.float32), view.pixel_aspect)
    matrix = inverted(recogniser.place(five_points(np.asarray(square, np.float32)))).numpy().copy()
    matrix[0] /= view.pixel_aspect
    return view.sample(matrix, (recogniser.size, recogniser.size))


def best_frames(track: Track, most: int = MOST_FRAMES) -> list[int]:
    """The frame with the best look at the face in each of `most` equal parts of a track; filled ones only where there
    is nothing else.
    """
    seen = [one for one in track.observations.values() if one.origin is not Origin.FILLED]
    seen = seen or list(track.observations.values())
    parts = np.array_split(np.arange(len(seen)), min(most, len(seen)))
    return [max((seen[i] for i in part), key=_quality).frame for part in parts]


def _quality(seen: Observation) -> float:
    """Large, frontal, uncovered, sure."""
    free = 1.0 if seen.cover is None else 1.0 - float(seen.cover.mean()) / 255.0
    return min(seen.width_px, 224.0) * math.cos(math.radians(seen.yaw_deg)) * free * seen.score


def track_vector(track: Track, view_of: ViewOf, recogniser: ArcFace, most: int = MOST_FRAMES) -> TrackVector:
    """What a recogniser says of a track.

    Args:
        track: any.
        view_of: opens a frame.
        recogniser: whose space the vector will lie in.
        most: frames to look at.
    """
    frames = best_frames(track, most)
    looks = [(view_of(frame), track.observations[frame].landmarks) for frame in frames]
    return combine(frames, face_vectors(recogniser, looks), recogniser.space)


def combine(frames: Sequence[int], vectors: NDArray[np.float32], space: str) -> TrackVector:
    """The vector of a track from those of its frames: the most central frame's neighbours are averaged, so that a frame
    behind a hand, or one of another person, does not pull it away.

    Args:
        frames: numbers.
        vectors: (N, 512), any length.
        space: of the recogniser.
    """
    units = np.stack([unit_vector(vector) for vector in vectors])
    alike = units @ units.T
    centre = int(np.median(alike, axis=1).argmax())
    near = alike[centre] >= float(np.median(alike[centre])) - _ALIKE
    mean = unit_vector(units[near].mean(0))
    kept = tuple(frame for frame, inside in zip(frames, near, strict=True) if inside)
    others = units[~near] @ mean
    # A bad look is like nobody; a look at somebody else is like the other such looks.
    strangers = units[~near] @ units[~near].T
    mixed = near.mean() < _FEWEST_ALIKE or (
        len(others) > 1 and float(np.median(strangers[np.triu_indices(len(others), 1)])) > float(others.max()) + _ALIKE
    )
    return TrackVector(space, mean, kept, float((units[near] @ mean).min()), bool(mixed))


def match_tracks(
    tracks: Mapping[Key, TrackVector],
    people: Mapping[Person, References],
    limits: MatchLimits | None = None,
    together: Sequence[tuple[Key, Key]] = (),
) -> dict[Key, Match[Person]]:
    """Who each track is, over one shot or many.

    Args:
        tracks: by any key, e.g. (shot, track id); all of one space.
        people: references by any key, of the same space.
        limits: None for the defaults.
        together: pairs of tracks seen in the same frame of the same shot: nobody is in two places, the less similar
            one of two that match one person is refused.
    """
    limits = limits or MatchLimits()
    found = {key: _match(vector, people, limits) for key, vector in tracks.items()} if people else {}
    for one, other in together:
        first, second = found.get(one), found.get(other)
        if first is None or second is None or first.person is None or first.person != second.person:
            continue
        weaker, stronger = (one, other) if first.similarity < second.similarity else (other, one)
        found[weaker] = _refused(
            found[weaker],
            f"another face in the same frames is more like {people[first.person].name or first.person} "
            f"({found[stronger].similarity:.2f} against {found[weaker].similarity:.2f})",
        )
    return found


def _match(vector: TrackVector, people: Mapping[Person, References], limits: MatchLimits) -> Match[Person]:
    ranked = sorted(((float((one.vectors @ vector.vector).max()), key) for key, one in people.items()), key=_first)
    similarity, nearest = ranked[-1]
    second, next_one = ranked[-2] if len(ranked) > 1 else (None, None)
    name = people[nearest].name or str(nearest)
    said = f"{name} {similarity:.2f}, threshold {limits.threshold:.2f}"
    if second is not None and next_one is not None:
        said += f", next {people[next_one].name or next_one} {second:.2f}, margin {limits.margin:.2f}"
    match = Match(nearest, similarity, nearest, second, said)
    if vector.mixed:
        return _refused(match, "its frames show more than one person")
    if similarity < limits.threshold:
        return _refused(match, "below the threshold")
    if second is not None and similarity - second < limits.margin:
        return _refused(match, "too close to the next person")
    return match


def _first(pair: tuple[float, object]) -> float:
    return pair[0]


def _refused(match: Match[Person], why: str) -> Match[Person]:
    return Match(None, match.similarity, match.nearest, match.second, f"{match.reason}: {why}")


def seen_together(tracks: Sequence[Track]) -> list[tuple[int, int]]:
    """Pairs of ids of tracks that share a frame."""
    return [
        (one.id, other.id)
        for index, one in enumerate(tracks)
        for other in tracks[index + 1 :]
        if one.observations.keys() & other.observations.keys()
    ]
