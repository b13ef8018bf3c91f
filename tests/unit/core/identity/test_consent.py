"""The consent record: what it allows, what it refuses, and how it is read."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faceplate.errors import ConsentError, IdentityError
from faceplate.provenance.consent import NO_CONSENT, Consent, check_consent, consent_id, read_consent

SIGNED = datetime.date(2026, 3, 1)
CONSENT = Consent("Jane Doe", "Jane Doe", SIGNED, "Moonrise", "face in shots 10 to 40", datetime.date(2027, 3, 1))

TOML = """
person = "Jane Doe"
signed_by = "Jane Doe"
date = 2026-03-01
project = "Moonrise"
scope = "face in shots 10 to 40"
valid_until = 2027-03-01
"""


def test_no_record_is_allowed_and_named() -> None:
    state = check_consent(None, on=SIGNED, project="Moonrise")
    assert (state.status, state.text, state.id) == ("none", "no consent record", NO_CONSENT)


@pytest.mark.parametrize("on", [SIGNED, datetime.date(2026, 11, 30), datetime.date(2027, 3, 1)])
def test_valid_on_its_first_and_last_day(on: datetime.date) -> None:
    state = check_consent(CONSENT, on=on, project=" moonrise ")
    assert state.status == "valid"
    assert state.id == consent_id(CONSENT)
    assert "Jane Doe" in state.text
    assert "2027-03-01" in state.text


@pytest.mark.parametrize(
    ("change", "on", "reason"),
    [
        ({}, datetime.date(2027, 3, 2), "expired on 2027-03-01"),
        ({}, datetime.date(2026, 2, 28), "holds only from 2026-03-01"),
        ({"revoked": datetime.date(2026, 5, 1)}, datetime.date(2026, 5, 1), "revoked on 2026-05-01"),
    ],
)
def test_refused_with_the_reason(change: dict[str, datetime.date], on: datetime.date, reason: str) -> None:
    with pytest.raises(ConsentError, match=reason) as caught:
        check_consent(dataclasses.replace(CONSENT, **change), on=on, project="Moonrise")
    assert caught.value.exit_code == 2


def test_revocation_outranks_everything_and_a_later_one_does_not_bite_yet() -> None:
    revoked = dataclasses.replace(CONSENT, revoked=datetime.date(2026, 5, 1))
    assert check_consent(revoked, on=datetime.date(2026, 4, 30), project=None).status == "valid"
    with pytest.raises(ConsentError, match="revoked"):
        check_consent(revoked, on=datetime.date(2030, 1, 1), project="Other")


def test_other_project_is_refused_and_an_unnamed_one_is_said() -> None:
    with pytest.raises(ConsentError, match="expected Moonrise; found Sunset"):
        check_consent(CONSENT, on=SIGNED, project="Sunset")
    assert "not compared" in check_consent(CONSENT, on=SIGNED, project=None).text
    unbound = dataclasses.replace(CONSENT, project="")
    assert check_consent(unbound, on=SIGNED, project="Sunset").status == "valid"


def test_toml_is_read_and_survives_json(tmp_path: Path) -> None:
    path = tmp_path / "jane.toml"
    path.write_text(TOML, "utf-8")
    assert read_consent(path) == CONSENT
    assert Consent.from_json(CONSENT.to_json()) == CONSENT


def test_document_file_is_hashed(tmp_path: Path) -> None:
    (tmp_path / "signed.pdf").write_bytes(b"the paper")
    (tmp_path / "jane.toml").write_text(TOML + 'document = "signed.pdf"\n', "utf-8")
    assert read_consent(tmp_path / "jane.toml").document == hashlib.sha256(b"the paper").hexdigest()


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('valid_untill = "2027-01-01"', "did you mean valid_until"),
        ("revoked = true", "no date"),
        ('revoked = "soon"', "no date"),
        ("notes = 3", "no text"),
        ('kind = "friend"', "employment, independent"),
        ('document = "absent.pdf"', "absent.pdf"),
        ("valid = [", "not TOML"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, text: str) -> None:
    path = tmp_path / "jane.toml"
    path.write_text(TOML.replace("valid_until = 2027-03-01\n", "") + line + "\n", "utf-8")
    with pytest.raises(IdentityError) as caught:
        read_consent(path)
    assert text in f"{caught.value} {caught.value.hint}"


def test_missing_keys_contradicting_dates_and_strange_files(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text('person = "Jane"\n', "utf-8")
    with pytest.raises(IdentityError, match="signed_by, date, project, scope"):
        read_consent(path)
    path.write_text(TOML.replace("2027-03-01", "2025-03-01"), "utf-8")
    with pytest.raises(IdentityError, match="ends before it begins"):
        read_consent(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(IdentityError, match="not TOML"):
        read_consent(path)
    with pytest.raises(IdentityError, match="cannot read"):
        read_consent(tmp_path / "absent.toml")


@given(st.sampled_from(["person", "signed_by", "project", "scope", "territory", "notes"]), st.text(min_size=1))
def test_any_change_changes_the_id(name: str, extra: str) -> None:
    changed = dataclasses.replace(CONSENT, **{name: getattr(CONSENT, name) + extra})
    assert consent_id(changed) != consent_id(CONSENT)
    assert len(consent_id(changed)) == 16
