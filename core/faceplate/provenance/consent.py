"""The consent record: who agreed to be put into which film, until when.

Faceplate does not judge a contract; it keeps the record beside the face, refuses what the record rules out, and says
in every output and report what the record is. No record at all is allowed and always named.
"""

from __future__ import annotations

import dataclasses
import datetime
import difflib
import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from ..errors import ConsentError, IdentityError

NO_CONSENT = "no consent record"
"""What outputs and reports say where there is none."""

KINDS = ("employment", "independent", "background", "estate")
"""Kinds of digital replica, as the SAG-AFTRA agreements of 2023 distinguish them."""

_SHA256 = re.compile(r"[0-9a-f]{64}")
_MAX_TOML_BYTES = 1 << 20
_EXAMPLE = 'for example person = "Jane Doe", date = 2026-11-30, valid_until = 2027-12-31'


@dataclass(frozen=True, slots=True)
class Consent:
    """What a person (or who may sign for them) agreed to.

    Attributes:
        person: whose face it is.
        signed_by: who signed: the person, a guardian, an estate.
        date: day of the signature; the consent holds from this day on.
        project: the title it is for; "" binds it to none.
        scope: what was agreed, in plain words.
        valid_until: last day on which it holds; None is without end.
        revoked: first day on which it no longer holds, None while it stands.
        document: sha256 (hex) of the signed paper, or "".
        kind: one of `KINDS`, or "".
        territory: where the film may be shown, or "".
        notes: anything else, or "".

    Raises:
        IdentityError: a text is missing or the dates contradict one another.
    """

    person: str
    signed_by: str
    date: datetime.date
    project: str
    scope: str
    valid_until: datetime.date | None = None
    revoked: datetime.date | None = None
    document: str = ""
    kind: str = ""
    territory: str = ""
    notes: str = ""

    def __post_init__(self) -> None:
        for name in ("person", "signed_by", "scope"):
            if not getattr(self, name).strip():
                raise IdentityError(f"the consent record names no {name}", hint=_EXAMPLE)
        if self.kind and self.kind not in KINDS:
            raise IdentityError("the consent's kind is unknown", expected=", ".join(KINDS), found=repr(self.kind))
        if self.document and not _SHA256.fullmatch(self.document):
            raise IdentityError("the consent's document is no sha256", expected="64 hex digits", found=self.document)
        if self.valid_until is not None and self.valid_until < self.date:
            raise IdentityError(
                "the consent ends before it begins",
                expected=f"valid_until on or after {self.date}",
                found=str(self.valid_until),
                hint="dates are year-month-day",
            )

    def to_json(self) -> dict[str, str | None]:
        """JSON values that `from_json` takes back; dates as ISO 8601."""
        values = dataclasses.asdict(self)
        return {
            name: value.isoformat() if isinstance(value, datetime.date) else value for name, value in values.items()
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Consent:
        """The inverse of `to_json`; also takes dates as dates, which is what TOML has.

        Raises:
            IdentityError: unknown or missing key (near names are given), wrong type, unreadable date.
        """
        known = {spec.name: spec for spec in dataclasses.fields(cls)}
        for name in document:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=2, cutoff=0.5)
                raise IdentityError(
                    f"the consent record has an unknown key {name!r}",
                    hint=f"did you mean {' or '.join(near)}?" if near else f"keys are {', '.join(known)}",
                )
        missing = [n for n, spec in known.items() if spec.default is dataclasses.MISSING and n not in document]
        if missing:
            raise IdentityError(f"the consent record lacks {', '.join(missing)}", hint=_EXAMPLE)
        return cls(**{name: _value(name, value) for name, value in document.items()})


_DATES = frozenset({"date", "valid_until", "revoked"})


def _value(name: str, value: object) -> Any:
    if name not in _DATES:
        if not isinstance(value, str):
            raise IdentityError(f"the consent's {name} is no text", expected="text in quotes", found=repr(value))
        return value
    if name != "date" and (value is None or value is False or value == ""):
        return None
    if isinstance(value, datetime.datetime):
        return value.date()
    if isinstance(value, datetime.date):
        return value
    try:
        return datetime.date.fromisoformat(str(value))
    except ValueError as error:
        raise IdentityError(
            f"the consent's {name} is no date", expected="year-month-day, as 2027-12-31", found=repr(value)
        ) from error


def read_consent(path: Path) -> Consent:
    """Read the TOML file that an artist or a production office writes.

    Its keys are the attributes of `Consent`. `document` may be a sha256, or the name of a file beside the TOML file
    (the signed paper), whose sha256 is then taken. Nothing of the paper itself is stored.

    Raises:
        IdentityError: unreadable file, not TOML, unknown or missing key, bad date, absent document.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_TOML_BYTES + 1)
        if len(data) > _MAX_TOML_BYTES:
            raise IdentityError(f"{path} is no consent record", found="a file of more than 1 MiB", hint=_EXAMPLE)
        document = tomllib.loads(data.decode("utf-8"))
    except OSError as error:
        raise IdentityError(f"cannot read the consent record {path}", found=error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:  # TOMLDecodeError and UnicodeDecodeError are ValueErrors
        raise IdentityError(f"{path} is not TOML", found=str(error), hint=_EXAMPLE) from error
    paper = document.get("document")
    if isinstance(paper, str) and paper and not _SHA256.fullmatch(paper):
        document["document"] = _hash_file(path.parent / paper)
    return Consent.from_json(document)


def _hash_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise IdentityError(
            f"cannot read the consent document {path}",
            found=error.strerror or str(error),
            hint="document is a sha256, or a file name relative to the consent record",
        ) from error


@lru_cache(maxsize=256)
def consent_id(consent: Consent | None) -> str:
    """16 hex digits that name this very record (any change gives another), or `NO_CONSENT`."""
    if consent is None:
        return NO_CONSENT
    canonical = json.dumps(consent.to_json(), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class ConsentState:
    """The outcome of a check that did not refuse.

    Attributes:
        status: "valid", or "none" where there is no record.
        text: one line for reports.
        id: `consent_id` of the record.
    """

    status: Literal["valid", "none"]
    text: str
    id: str


def check_consent(consent: Consent | None, *, on: datetime.date, project: str | None) -> ConsentState:
    """Whether the record allows a job.

    Args:
        consent: the record, or None.
        on: the day of the job.
        project: title of the job's project; None when the job names none, then the project is not compared.

    Raises:
        ConsentError: revoked, expired, not yet valid, or given for another project.
    """
    if consent is None:
        return ConsentState("none", NO_CONSENT, NO_CONSENT)
    who = f"the consent of {consent.person}"
    if consent.revoked is not None and consent.revoked <= on:
        raise ConsentError(
            f"{who} was revoked on {consent.revoked}", hint="this face must not be used; ask the production office"
        )
    if on < consent.date:
        raise ConsentError(
            f"{who} holds only from {consent.date}", found=f"today is {on}", hint="check the date signed"
        )
    if consent.valid_until is not None and consent.valid_until < on:
        raise ConsentError(
            f"{who} expired on {consent.valid_until}",
            found=f"today is {on}",
            hint="get it renewed, then make the identity anew with the new record",
        )
    if project is not None and consent.project and _title(project) != _title(consent.project):
        raise ConsentError(
            f"{who} is for another project",
            expected=consent.project,
            found=project,
            hint="name the project as the consent does, or get a consent for this one",
        )
    return ConsentState("valid", _describe(consent, project), consent_id(consent))


def _title(project: str) -> str:
    return " ".join(project.split()).casefold()


def _describe(consent: Consent, project: str | None) -> str:
    until = f"until {consent.valid_until}" if consent.valid_until is not None else "without end date"
    bound = f"for {consent.project}" if consent.project else "not bound to a project"
    unchecked = "; the job names no project, so it was not compared" if consent.project and project is None else ""
    return f"{consent.person}, signed by {consent.signed_by} on {consent.date}, {bound}, valid {until}{unchecked}"
