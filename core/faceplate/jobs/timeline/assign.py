"""Who is who over a whole timeline, and who becomes whom: from the people file, the command line, and recognition."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ...errors import ModelError, SettingError
from ...faces.choose import resolve_assignments
from ...identity.file import read_identity
from ...job import Assignment
from ...media.atomic import atomic_write
from ...media.timelines.folders import runs_of
from ...report.contact import ContactSheet, ContactShot, ContactTrack, render_contact
from ..events import Emit, note, warning
from ..spec import Workbench
from .faces import Looked, SeenShot, SeenTrack, frames_text, shot_pictures
from .people_file import UNKNOWN, People, Suggestion, identities, read_people, update_people
from .plan import TimelinePlan
from .recognised import Recogniser, name_people, recogniser_of, sightings_of
from .spec import RULES, RenderJob

SHEET_FOLDER, VECTORS_FOLDER = "sheet", "vectors"
_RULES: Mapping[str, Literal["main", "all", "auto"]] = {"main": "main", "all": "all", "auto": "auto"}


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


class Caster:
    """Notes who is in each source, one after the other, and then says who becomes whom.

    Args:
        job: the render.
        bench: configuration and nets.
        folder: of the timeline's render.
        emit: told what is worth a word.

    Raises:
        ModelError: an identity is to be recognised, and there is no recogniser.
    """

    def __init__(self, job: RenderJob, bench: Workbench, folder: Path, emit: Emit) -> None:
        self.job, self.bench, self.emit = job, bench, emit
        self.folder, self.sheet = folder, folder / SHEET_FOLDER
        self.rules = [given for given in job.identities if given.person in RULES]
        auto = {index: given.who for index, given in enumerate(self.rules) if given.person == "auto"}
        net = recogniser_of(bench, emit)
        if net is None and auto:
            raise ModelError(
                "no recogniser is installed, so that nobody can be told apart",
                hint="faceplate models add FILE; or say who is who in the people file",
            )
        self.recogniser = None if net is None else Recogniser(net, auto, folder / VECTORS_FOLDER, emit)
        if net is not None:
            emit(note(f"people are told apart by {net.space}"))

    def keep(self, looked: Looked) -> SeenShot:
        """What is kept of a source: who is in it, and their pictures.

        Raises:
            OutputError: it cannot be kept.
        """
        space = self.job.words.input_space
        vectors, themselves = ({}, {}) if self.recogniser is None else self.recogniser.look(looked, space, self.bench)
        chosen: dict[int, int] = {}
        if self.rules:
            wanted = [Assignment(given.path, _RULES[given.person], given.like) for given in self.rules]
            chosen = resolve_assignments(looked.tracks, wanted, themselves)
        tracks = tuple(
            SeenTrack(
                track.id,
                frames_text(looked, track),
                track.weight / len(track.observations),
                track.weight,
                runs_of(list(track.observations)),
                vectors[track.id].vector if track.id in vectors and not vectors[track.id].mixed else None,
                chosen.get(track.id),
            )
            for track in looked.tracks
        )
        pictures = shot_pictures(looked, self.sheet, space, self.bench)
        return SeenShot(
            looked.plan, looked.sidecar, tracks, frozenset(each.id for each in looked.faces.tracks), pictures
        )

    def cast(self, plan: TimelinePlan, seen: Mapping[str, SeenShot], failed: Mapping[str, Mapping[str, Any]]) -> Cast:
        """Bring the people file up to date, draw the contact sheet, and say who becomes whom.

        Raises:
            SettingError: the people file cannot be understood.
            IdentityError: an identity in it cannot be used.
        """
        job, emit = self.job, self.emit
        path, page = people_file_of(job), job.output / f"{job.timeline.stem}.contact.html"
        suggestion = self._suggest(seen, read_people(path))
        people = update_people(
            path, suggestion, self.folder / "people.json", timeline=job.timeline.name, page=page.name
        )
        tracks = identities(people, path, [shot.name for shot in plan.shots])
        for file in sorted({file for each in tracks.values() for file in each.values()}):
            read_identity(file)
        tracks = {shot: _present(shot, each, seen, emit) for shot, each in tracks.items() if shot in seen}
        with atomic_write(page) as temporary:
            temporary.write_text(render_contact(_sheet(job, plan, seen, failed, people, path)), "utf-8")
        unknown = sum(
            people.shots.get(name, {}).get(track.id) == UNKNOWN for name, each in seen.items() for track in each.tracks
        )
        if unknown:
            emit(note(f"{unknown} faces are nobody yet and stay as they are: {page}"))
        return Cast(path, page, tracks, sum(len(each.tracks) for each in seen.values()))

    def _suggest(self, seen: Mapping[str, SeenShot], before: People) -> Suggestion:
        people: dict[str, str] = {}
        folder = people_file_of(self.job).parent
        names: list[str] = []
        for given in self.job.identities:
            name = given.person
            if name in RULES:
                name = _name_of(given.who, people)
                names.append(name)
            people[name] = _written(given.path, folder)
        known = name_people(sightings_of(seen), before)
        for tracks in known.values():
            for name in tracks.values():
                people.setdefault(name, before.people.get(name, ""))
        shots: dict[str, dict[int, str]] = {}
        remarks: dict[str, dict[int, str]] = {}
        for shot, each in seen.items():
            shots[shot], remarks[shot] = {}, {}
            for track in each.tracks:
                value = known.get(shot, {}).get(track.id, UNKNOWN)
                shots[shot][track.id] = value if track.rule is None else names[track.rule]
                remarks[shot][track.id] = f"frames {track.frames}, {track.width_px:.0f} px wide"
        return Suggestion(people, shots, remarks)


def _present(shot: str, tracks: Mapping[int, Path], seen: Mapping[str, SeenShot], emit: Emit) -> dict[int, Path]:
    """Those that there are; a track of an earlier analysis may be gone."""
    there = {track.id for track in seen[shot].tracks}
    gone = sorted(set(tracks) - seen[shot].all_tracks)
    if gone:
        emit(warning(f"{shot} has no track {', '.join(map(str, gone))} any more; look at the contact sheet"))
    return {track: path for track, path in tracks.items() if track in there}


def _name_of(path: Path, taken: Mapping[str, str]) -> str:
    """A person's name for an identity that a rule gives: that of its file."""
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


def _sheet(
    job: RenderJob,
    plan: TimelinePlan,
    seen: Mapping[str, SeenShot],
    failed: Mapping[str, Mapping[str, Any]],
    people: People,
    path: Path,
) -> ContactSheet:
    shots = []
    for shot in plan.shots:
        each = seen.get(shot.name)
        problem = str(failed[shot.name].get("message")) if shot.name in failed else ""
        rows = _rows(each, people) if each is not None else []
        whole = each.pictures.whole if each is not None else b""
        clips = list(dict.fromkeys(clip.name or "?" for clip in shot.clips))
        shots.append(ContactShot(shot.name, shot.media.plate, clips, whole, rows, problem))
    named = [(person, Path(file).name if file else "") for person, file in people.people.items()]
    return ContactSheet(job.timeline.name, path.name, path.read_text("utf-8"), named, shots)


def _rows(seen: SeenShot, people: People) -> Sequence[ContactTrack]:
    rows = []
    for track in seen.tracks:
        person = people.shots.get(seen.plan.name, {}).get(track.id, "")
        file = people.people.get(person, "")
        rows.append(
            ContactTrack(
                track.id,
                person,
                Path(file).name if file else "",
                track.frames,
                track.width_px,
                seen.pictures.faces.get(track.id, b""),
            )
        )
    return rows
