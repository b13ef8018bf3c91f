"""Header attributes and the ledger."""

from __future__ import annotations

import datetime
import json
import multiprocessing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faceplate.errors import ManifestError, OutputError
from faceplate.media.exr import read_exr, write_exr
from faceplate.provenance.attributes import UsedIdentity, UsedModel, output_attributes, settings_hash
from faceplate.provenance.ledger import (
    FIRST,
    append_entry,
    output_digest,
    record_end,
    record_start,
    verify_ledger,
)

NOON = datetime.datetime(2026, 11, 30, 12, 0, tzinfo=datetime.UTC)
MODELS = (UsedModel("face_mesh", "cd" * 32, "Apache-2.0"), UsedModel("face_detector", "ab" * 32, "Apache-2.0"))
PEOPLE = (
    UsedIdentity("jane", "12" * 32, "0123456789abcdef"),
    UsedIdentity("Ünal\n\0x", "34" * 32, "no consent record"),
)


def _attributes(**changes: Any) -> dict[str, str | int | float]:
    values: dict[str, Any] = {
        "job_id": "j1",
        "engine": "mesh",
        "engine_version": "1",
        "models": MODELS,
        "identities": PEOPLE,
        "settings": settings_hash({"strength": [[1001, 0.5]]}),
        "plate_frame": 1001,
    }
    return output_attributes(**{**values, **changes})


def test_attributes_survive_an_exr_exactly(tmp_path: Path) -> None:
    attributes = _attributes()
    write_exr(tmp_path / "x.exr", np.zeros((2, 2, 3), np.float16), attributes=attributes)
    read = read_exr(tmp_path / "x.exr").metadata
    assert {name: read[name] for name in attributes} == attributes
    assert all(len(name) <= 31 for name in _attributes(models=[UsedModel(str(i), "00") for i in range(99)]))


def test_attributes_say_who_by_what_and_by_whose_consent() -> None:
    attributes = _attributes()
    assert attributes["faceplate/model1"] == f"face_detector sha256:{'ab' * 32}"
    assert attributes["faceplate/identity1/consent"] == "0123456789abcdef"
    assert attributes["faceplate/identity2/name"] == "Ünal??x"
    assert attributes["faceplate/identity2/consent"] == "no consent record"
    assert attributes["faceplate/digitalSourceType"] == (
        "http://cv.iptc.org/newscodes/digitalsourcetype/compositeWithTrainedAlgorithmicMedia"
    )
    assert attributes["faceplate/plateFrame"] == 1001
    assert "faceplate/plateFrame" not in _attributes(plate_frame=None)


def test_order_of_models_and_settings_does_not_show() -> None:
    assert _attributes(models=MODELS[::-1]) == _attributes()
    assert settings_hash({"a": 1, "b": 2}) == settings_hash({"b": 2, "a": 1}) != settings_hash({"a": 1, "b": 3})


def _fill(path: Path, jobs: int = 3) -> None:
    for number in range(jobs):
        record_start(
            path,
            job_id=f"j{number}",
            plate="plate.####.exr",
            frames="1001-1002",
            output="out.####.exr",
            engine="mesh 1",
            models=MODELS,
            identities=PEOPLE,
            settings={"strength": [[0, 1.0]]},
            decision="allow",
            reason="valid until 2027",
            time=NOON,
            user="artist",
        )
        record_end(path, job_id=f"j{number}", state="done", output_hashes={1001: "aa"}, time=NOON, user="artist")


def test_a_ledger_tells_the_job(tmp_path: Path) -> None:
    path = tmp_path / "faceplate.ledger.jsonl"
    _fill(path, 1)
    start, end = verify_ledger(path).entries
    assert (start["event"], start["user"], start["time"]) == ("job started", "artist", "2026-11-30T12:00:00+00:00")
    assert start["consent"] == {"decision": "allow", "reason": "valid until 2027"}
    assert start["identities"][1]["consent"] == "no consent record"
    assert (end["event"], end["state"], end["frames"]) == ("job ended", "done", 1)
    assert end["outputs"] == output_digest({1001: "aa"})
    assert (start["previous"], end["previous"]) == (FIRST, start["hash"])


def test_output_digest_depends_on_frames_and_hashes_not_on_order() -> None:
    assert output_digest({1: "a", 2: "b"}) == output_digest({2: "b", 1: "a"})
    assert len({output_digest(d) for d in ({}, {1: "a"}, {1: "b"}, {2: "a"}, {1: "a", 2: "a"})}) == 5


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_changed_byte_is_noticed(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "x.jsonl"
    if not path.exists():
        _fill(path)
    good = path.read_bytes()
    at = data.draw(st.integers(0, good.rindex(b"\n", 0, -1)))  # anywhere before the last line's text
    value = data.draw(st.integers(0, 255).filter(lambda byte: byte != good[at]))
    other = tmp_path / "y.jsonl"
    other.write_bytes(good[:at] + bytes([value]) + good[at + 1 :])
    with pytest.raises(ManifestError, match="not as it was written"):
        verify_ledger(other)


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines[1:],
        lambda lines: lines[:2] + lines[3:],
        lambda lines: [lines[1], lines[0], *lines[2:]],
        lambda lines: [*lines, lines[-1]],
        lambda lines: [*lines[:3], b"", *lines[3:]],
    ],
)
def test_lines_taken_out_put_in_or_swapped_are_noticed_and_nothing_is_appended(tmp_path: Path, change: Any) -> None:
    path = tmp_path / "x.jsonl"
    _fill(path)
    path.write_bytes(b"\n".join([*change(path.read_bytes().splitlines()), b""]))
    before = path.read_bytes()
    with pytest.raises(ManifestError) as caught:
        append_entry(path, "more", {}, time=NOON)
    assert caught.value.hint
    assert path.read_bytes() == before


def test_a_torn_line_is_tolerated_repaired_and_told_wherever_it_tore(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    _fill(path, 1)
    good = path.read_bytes()
    start = good.index(b"\n") + 1
    for cut in range(start + 1, len(good)):
        path.write_bytes(good[:cut])
        state = verify_ledger(path)
        only_newline_lost = cut == len(good) - 1
        assert state.torn is not only_newline_lost
        assert len(state.entries) == 1 + only_newline_lost
        append_entry(path, "next", {}, time=NOON, user="artist")
        after = verify_ledger(path)
        assert not after.torn
        assert len(after.entries) == 2 + only_newline_lost
        assert after.entries[-1].get("after_torn_line", False) is not only_newline_lost


def test_empty_and_absent_ledgers(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"")
    assert (verify_ledger(path).entries, verify_ledger(path).last_hash) == ((), FIRST)
    with pytest.raises(ManifestError, match="cannot read"):
        verify_ledger(tmp_path / "absent.jsonl")
    with pytest.raises(OutputError):
        append_entry(tmp_path / "absent" / "x.jsonl", "e", {}, time=NOON)
    with pytest.raises(ValueError, match="time zone"):
        append_entry(path, "e", {}, time=datetime.datetime(2026, 1, 1))


def _many(path: Path, count: int) -> None:
    for _ in range(count):
        append_entry(path, "e", {}, time=NOON)


def test_processes_append_at_once_without_breaking_the_chain(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    workers = [multiprocessing.get_context("fork").Process(target=_many, args=(path, 10)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(verify_ledger(path).entries) == 40


def test_a_key_twice_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    _fill(path, 1)
    line = path.read_bytes().splitlines()[0]
    user = json.loads(line)["user"]
    path.write_bytes(line.replace(b'"user":', b'"user":"else","user":') + b"\n")
    assert user == "artist"
    with pytest.raises(ManifestError):
        verify_ledger(path)
