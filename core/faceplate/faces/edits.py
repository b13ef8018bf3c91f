"""Keeps what a person changed in a sidecar when the plate is analysed again."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..face import Observation, Origin, Track
from .shot import ShotFaces

_SAME_FACE = 0.5


def carry_edits(new: ShotFaces, old: ShotFaces) -> ShotFaces:
    """The new analysis with the old one's hand edits: edited frames stay, ids and labels stay with the face.

    A new track is the old one with which it shares most frames; it takes that one's id and label. Tracks without a
    counterpart get ids above all old ones, so that no id ever means another face. An edited face that the new analysis
    does not see at all stays as a track of its own.

    Args:
        new: fresh from `analyse_shot`, its source set.
        old: as read from the sidecar.
    """
    matches = _match(new.tracks, old.tracks)
    next_id = max([0, *(track.id for track in old.tracks)]) + 1
    result: dict[int, Track] = {}
    for track in new.tracks:
        before = matches.get(track.id)
        if before is None:
            result[next_id] = replace(track, id=next_id)
            next_id += 1
            continue
        observations = {**track.observations, **_edited(before)}
        result[before.id] = replace(
            track, id=before.id, label=before.label, observations=dict(sorted(observations.items()))
        )
    for track in old.tracks:
        if track.id not in result and (edited := _edited(track)):
            result[track.id] = replace(track, observations=edited)
    tracks = tuple(result[track_id] for track_id in sorted(result))
    return dataclasses.replace(new, tracks=tracks, extras=old.extras)


def _edited(track: Track) -> dict[int, Observation]:
    return {frame: seen for frame, seen in track.observations.items() if seen.origin is Origin.EDITED}


def _match(new: tuple[Track, ...], old: tuple[Track, ...]) -> Mapping[int, Track]:
    """The old track of each new one, by the new one's id; each old track at most once, most shared frames first."""
    shared = [
        (count, track.id, before)
        for track in new
        for before in old
        if (count := sum(_is_same(seen, before.observations.get(frame)) for frame, seen in track.observations.items()))
    ]
    matches: dict[int, Track] = {}
    for _, track_id, before in sorted(shared, key=lambda item: (-item[0], item[1], item[2].id)):
        if track_id not in matches and before.id not in {track.id for track in matches.values()}:
            matches[track_id] = before
    return matches


def _is_same(a: Observation, b: Observation | None) -> bool:
    if b is None:
        return False
    apart = a.landmarks[:, :2].mean(0) - b.landmarks[:, :2].mean(0)
    return float(np.hypot(*apart)) < _SAME_FACE * min(a.width_px, b.width_px)
