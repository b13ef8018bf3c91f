"""The identities of a job: read, checked against their consent, resolved to tracks."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..face import Identity
from ..identity.file import IdentityFile, read_identity
from ..job import Assignment
from ..provenance.attributes import UsedIdentity
from ..provenance.consent import ConsentState, check_consent, consent_id
from ..report.values import IdentityLine
from .spec import ApplyJob


@dataclass(frozen=True, slots=True, eq=False)
class Person:
    """One identity of a job.

    Attributes:
        file: what the .fpid held.
        consent: how the check went, or the refusal's text.
    """

    file: IdentityFile
    consent: ConsentState

    @property
    def identity(self) -> Identity:
        """As an engine sees it."""
        return self.file.identity

    @property
    def used(self) -> UsedIdentity:
        """For headers and ledger."""
        return UsedIdentity(self.identity.name, self.identity.content_hash, self.consent.id)


def read_people(job: ApplyJob) -> Mapping[Path, IdentityFile]:
    """The identity files of a job, each read once.

    Raises:
        IdentityError: a file cannot be used.
    """
    return {path: read_identity(path) for path in dict.fromkeys(one.identity for one in job.assignments)}


def read_references(job: ApplyJob) -> Mapping[Path, Identity]:
    """The people whom the recogniser looks for in the plate; they are compared with, not put in.

    Raises:
        IdentityError: a file cannot be used.
    """
    paths = [one.like or one.identity for one in job.assignments if one.track == "auto"]
    return {path: read_identity(path).identity for path in dict.fromkeys(paths)}


def _faces_of(one: Assignment) -> str:
    if one.track == "auto":
        return f"who is like {(one.like or one.identity).name}"
    return str(one.track) if isinstance(one.track, str) else f"track {one.track}"


def unchecked(file: IdentityFile) -> UsedIdentity:
    """For the ledger line of a refusal."""
    return UsedIdentity(file.identity.name, file.identity.content_hash, consent_id(file.consent))


def check_people(files: Mapping[Path, IdentityFile], project: str | None, day: datetime.date) -> Mapping[Path, Person]:
    """Every identity with its consent checked.

    Raises:
        ConsentError: one is revoked, expired, not yet valid or for another project.
    """
    return {path: Person(file, check_consent(file.consent, on=day, project=project)) for path, file in files.items()}


def identity_lines(job: ApplyJob, people: Mapping[Path, Person]) -> tuple[IdentityLine, ...]:
    """What the report says about the people."""
    lines = []
    for path, person in people.items():
        tracks = [_faces_of(one) for one in job.assignments if one.identity == path]
        lines.append(
            IdentityLine(
                name=person.identity.name,
                content_hash=person.identity.content_hash,
                tracks=", ".join(tracks),
                photos=len(person.file.photos),
                detail_px=person.identity.texture.detail_px,
                consent_id=person.consent.id,
                consent=person.consent.text,
                consent_valid=person.consent.status == "valid",
            )
        )
    return tuple(lines)
