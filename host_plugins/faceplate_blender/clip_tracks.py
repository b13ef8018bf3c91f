# SPDX-License-Identifier: GPL-3.0-or-later
"""Faces as tracks of a movie clip, and what an artist moved back to the faces.

Works on clips that it is given and imports nothing of Blender. Tracks are called "Faceplate 1 chin": face track 1, its
chin. Marker frames count from the clip's first file, 1, whatever the scene shows. A script cannot delete tracks; an
artist does so as with any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from faceplate_client.errors import BadClip
from faceplate_client.tracks import FaceTrack, FaceTracks, Points, moved

from .nodes import first_number, pattern_of

PREFIX = "Faceplate"
_NAME = re.compile(rf"{PREFIX} (\d+) (.+?)(?:\.\d{{3,}})?")


@dataclass(frozen=True)
class Source:
    """What a movie clip reads.

    Attributes:
        path: of a movie, or the pattern of a sequence.
        first: number of the file at marker frame 1; 1 for a movie.
    """

    path: str
    first: int

    def number(self, marker_frame: int) -> int:
        """The source frame of a marker."""
        return self.first + marker_frame - 1

    def marker_frame(self, number: int) -> int:
        """The inverse of `number`."""
        return number - self.first + 1


def source_of(clip: Any, path: str) -> Source:
    """What a movie clip reads.

    Args:
        clip: the movie clip.
        path: its file, absolute.

    Raises:
        BadClip: a sequence whose files have no number.
    """
    if clip.source != "SEQUENCE":
        return Source(path, 1 + int(clip.frame_offset))
    return Source(pattern_of(path), first_number(path) + int(clip.frame_offset))


def put_in(clip: Any, source: Source, faces: FaceTracks, wanted: int | None) -> list[str]:
    """Make or renew the tracks of faces; their names.

    Args:
        clip: the movie clip.
        source: what it reads.
        faces: what analysis found.
        wanted: id of the one face track, None for all.

    Raises:
        BadClip: no such face.
    """
    chosen = [track for track in faces.tracks if wanted in (None, track.id)]
    if not chosen:
        there = ", ".join(str(track.id) for track in faces.tracks) or "none"
        raise BadClip(f"there is no face track {wanted}", expected=there, hint="choose one of these")
    tracks = clip.tracking.objects.active.tracks
    names = []
    for face in chosen:
        for name in next(iter(face.frames.values()), {}):
            names.append(f"{PREFIX} {face.id} {name}")
            _fill(tracks, names[-1], {source.marker_frame(n): faces.to_unit(*p[name]) for n, p in face.frames.items()})
    return names


def _fill(tracks: Any, name: str, places: Mapping[int, tuple[float, float]]) -> None:
    track = tracks.get(name)
    if track is None:
        track = tracks.new(name=name, frame=min(places))
    for frame in {marker.frame for marker in track.markers} - places.keys():
        track.markers.delete_frame(frame)
    for frame, place in places.items():
        marker = track.markers.find_frame(frame) or track.markers.insert_frame(frame, co=place)
        marker.co = place
        marker.mute = False


def corrections(clip: Any, source: Source, faces: FaceTracks) -> dict[int, dict[int, Points]]:
    """What an artist moved: by face track and source frame, named points in plate px.

    Muted and deleted markers say nothing. Frames in which the face was not found are left out.
    """
    found: dict[int, dict[int, dict[str, tuple[float, float]]]] = {}
    by_id: dict[int, FaceTrack] = {track.id: track for track in faces.tracks}
    for track, face_id, point in _ours(clip):
        face = by_id.get(face_id)
        for marker in track.markers:
            number = source.number(marker.frame)
            if face is None or marker.mute or number not in face.frames:
                continue
            place = {point: faces.to_plate(*marker.co)}
            if change := moved(face.frames[number], place):
                found.setdefault(face_id, {}).setdefault(number, {}).update(change)
    return {face: dict(frames) for face, frames in found.items()}


def _ours(clip: Any) -> Iterator[tuple[Any, int, str]]:
    for track in clip.tracking.objects.active.tracks:
        if found := _NAME.fullmatch(track.name):
            yield track, int(found[1]), found[2]
