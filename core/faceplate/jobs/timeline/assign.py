"""Who is who over a whole timeline, and who becomes whom: from the people file, the command line, and recognition."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import SettingError
from ...faces.choose import resolve_assignments
from ...faces.sidecar import frame_ranges
from ...identity.file import read_identity
from ...job import Assignment
from ...media.atomic import atomic_write
from ...report.contact import ContactSheet, ContactShot, ContactTrack, render_contact
from ..events import Emit, note, warning
from ..spec import Workbench
from .faces import SeenShot, ShotPictures, shot_pictures
from .people_file import UNKNOWN, People, Suggestion, identities, read_people, update_people
from .plan import TimelinePlan
from .spec import RenderJob

Recognise = Callable[[SeenShot], Mapping[int, NDArray[np.float32]]]
"""Gives a unit vector for each track that shows somebody clearly: near ones are one person."""


@dataclass(frozen=True, slots=True, eq=False)
class Cast:
    """Who becomes whom.

    Attributes:
        file: the people file.
        page: the contact sheet.
        tracks: identity file by shot and track.
        known: number of tracks in all.
    """

    file: Path
    page: Path
    tracks: Mapping[str, Mapping[int, Path]]
    known: int

    def check(self) -> None:
        """Refuse to go on where nobody becomes anybody.

        Raises:
            SettingError: no track has an identity.
        """
        if not any(self.tracks.values()):
            raise SettingError(
                f"nobody is assigned in {self.file}",
                found=f"{self.known} faces, none of them with an identity",
                hint=f"look at {self.page}, say who is who in {self.file.name}, and run the same command again",
            )


def people_file_of(job: RenderJob) -> Path:
    """The people file of a timeline."""
    return job.output / f"{job.timeline.stem}.people.toml"


def make_cast(
    job: RenderJob,
    plan: TimelinePlan,
    seen: Mapping[str, SeenShot],
    failed: Mapping[str, Mapping[str, Any]],
    sheet_folder: Path,
    bench: Workbench,
    emit: Emit,
    recognise: Recognise | None = None,
) -> Cast:
    """Bring the people file up to date, draw the contact sheet, and say who becomes whom.

    Raises:
        SettingError: the people file cannot be understood.
        IdentityError: an identity in it cannot be used.
    """
    path, page = people_file_of(job), job.output / f"{job.timeline.stem}.contact.html"
    suggestion = _suggest(job, seen, read_people(path), recognise)
    people = update_people(
        path, suggestion, sheet_folder.parent / "people.json", timeline=job.timeline.name, page=page.name
    )
    tracks = identities(people, path, [shot.name for shot in plan.shots])
    for file in sorted({file for each in tracks.values() for file in each.values()}):
        read_identity(file)
    tracks = {shot: _present(shot, each, seen, emit) for shot, each in tracks.items() if shot in seen}
    pictures = {name: shot_pictures(each, sheet_folder, job.words.input_space, bench) for name, each in seen.items()}
    with atomic_write(page) as temporary:
        temporary.write_text(render_contact(_sheet(job, plan, seen, failed, people, path, pictures)), "utf-8")
    unknown = sum(
        people.shots.get(each.plan.name, {}).get(track.id) == UNKNOWN for each in seen.values() for track in each.tracks
    )
    if unknown:
        emit(note(f"{unknown} faces are nobody yet and stay as they are: {page}"))
    return Cast(path, page, tracks, sum(len(each.tracks) for each in seen.values()))


def _present(shot: str, tracks: Mapping[int, Path], seen: Mapping[str, SeenShot], emit: Emit) -> dict[int, Path]:
    """Those that there are; a track of an earlier analysis may be gone."""
    there = {track.id for track in seen[shot].tracks}
    gone = sorted(set(tracks) - {track.id for track in seen[shot].faces.tracks})
    if gone:
        emit(warning(f"{shot} has no track {', '.join(map(str, gone))} any more; look at the contact sheet"))
    return {track: path for track, path in tracks.items() if track in there}


def _suggest(job: RenderJob, seen: Mapping[str, SeenShot], before: People, recognise: Recognise | None) -> Suggestion:
    people: dict[str, str] = {}
    for given in job.identities:
        name = given.person if given.person not in ("main", "all") else _name_of(given.path, people, before)
        people[name] = _written(given.path, people_file_of(job).parent)
    rules = [
        (given, _rule_name(people, given.path, people_file_of(job).parent))
        for given in job.identities
        if given.person in ("main", "all")
    ]
    known = _recognised(seen, before, recognise) if recognise is not None else {}
    for tracks in known.values():
        for name in tracks.values():
            people.setdefault(name, before.people.get(name, ""))
    shots: dict[str, dict[int, str]] = {}
    remarks: dict[str, dict[int, str]] = {}
    for shot, each in seen.items():
        chosen: dict[int, int] = {}
        if rules:
            wanted = [Assignment(given.path, "all" if given.person == "all" else "main") for given, _ in rules]
            chosen = resolve_assignments(each.tracks, wanted)
        shots[shot], remarks[shot] = {}, {}
        for track in each.tracks:
            value = known.get(shot, {}).get(track.id, UNKNOWN)
            if track.id in chosen:
                value = rules[chosen[track.id]][1]
            shots[shot][track.id] = value
            width = track.weight / len(track.observations)
            remarks[shot][track.id] = f"frames {_frames_text(each, track.id)}, {width:.0f} px wide"
    return Suggestion(people, shots, remarks)


def _rule_name(people: Mapping[str, str], path: Path, folder: Path) -> str:
    return next(name for name, file in people.items() if file == _written(path, folder))


def _name_of(path: Path, taken: Mapping[str, str], before: People) -> str:
    """A person's name for an identity that a rule gives: the identity's file, or what the people file calls it."""
    stem, number = path.stem, 2
    while stem in taken:
        stem, number = f"{path.stem}_{number}", number + 1
    return stem


def _written(path: Path, folder: Path) -> str:
    """An identity's path as the people file has it: relative where it lies beside or below, else absolute."""
    whole, base = os.path.abspath(path), os.path.abspath(folder)
    inside = (
        os.path.commonpath([whole, base]) == base
        if os.path.splitdrive(whole)[0] == os.path.splitdrive(base)[0]
        else False
    )
    return Path(os.path.relpath(whole, base) if inside else whole).as_posix()


def _frames_text(seen: SeenShot, track: int) -> str:
    found = next(each for each in seen.tracks if each.id == track)
    inside = [frame for frame in found.observations if any(a <= frame <= b for a, b in seen.plan.parts)]
    text = frame_ranges(inside)
    return text if len(text) < 40 else f"{inside[0]}-{inside[-1]} with gaps"


def _recognised(seen: Mapping[str, SeenShot], before: People, recognise: Recognise) -> dict[str, dict[int, str]]:
    from .recognised import Sighting, name_people

    sightings = []
    for shot, each in seen.items():
        vectors = recognise(each)
        for track in each.tracks:
            if track.id in vectors:
                sightings.append(
                    Sighting(shot, track.id, vectors[track.id], track.weight, frozenset(track.observations))
                )
    return name_people(sightings, before)


def _sheet(
    job: RenderJob,
    plan: TimelinePlan,
    seen: Mapping[str, SeenShot],
    failed: Mapping[str, Mapping[str, Any]],
    people: People,
    path: Path,
    pictures: Mapping[str, ShotPictures],
) -> ContactSheet:
    shots = []
    for shot in plan.shots:
        each = seen.get(shot.name)
        problem = str(failed[shot.name].get("message")) if shot.name in failed else ""
        rows = _rows(each, people, pictures[shot.name]) if each is not None else []
        whole = pictures[shot.name].whole if each is not None else b""
        clips = list(dict.fromkeys(clip.name or "?" for clip in shot.clips))
        shots.append(ContactShot(shot.name, shot.media.plate, clips, whole, rows, problem))
    named = [(person, Path(file).name if file else "") for person, file in people.people.items()]
    return ContactSheet(job.timeline.name, path.name, path.read_text("utf-8"), named, shots)


def _rows(seen: SeenShot, people: People, pictures: ShotPictures) -> Sequence[ContactTrack]:
    rows = []
    for track in seen.tracks:
        person = people.shots.get(seen.plan.name, {}).get(track.id, "")
        file = people.people.get(person, "")
        rows.append(
            ContactTrack(
                track.id,
                person,
                Path(file).name if file else "",
                _frames_text(seen, track.id),
                track.weight / len(track.observations),
                pictures.faces.get(track.id, b""),
            )
        )
    return rows
