"""Single frames on record: one line for what many have in common, refusals too, and an end."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faceplate.colour.spaces import ColourConfig
from faceplate.errors import ConsentError, OutputError
from faceplate.identity.file import read_identity, write_identity
from faceplate.jobs.spec import Workbench
from faceplate.models.device import Device
from faceplate.provenance.consent import Consent
from faceplate.provenance.ledger import verify_ledger
from faceplate_client import wire
from faceplate_server.frames.ledger import FrameLedger
from faceplate_server.jobs import Job
from faceplate_server.roots import Roots
from faceplate_server.workers.net_cards import NetCards
from tests.unit.core.identity.made import identity_file

SLOT = wire.SlotRef("/r.ring", "1:2", 3, 0, 1)
"""A plate in memory."""


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("identity") / "person.fpid"
    write_identity(path, identity_file(None, "person"))
    return path


@pytest.fixture
def settled() -> Callable[[Path, int], None]:
    """Waits for a ledger of so many lines, which another thread writes."""

    def wait(path: Path, count: int) -> None:
        end = time.monotonic() + 10
        while len(lines(path)) < count:
            assert time.monotonic() < end
            time.sleep(0.01)

    return wait


@pytest.fixture(scope="module")
def bench() -> Workbench:
    return Workbench(ColourConfig.open(), NetCards(Device("cpu", 0, "test"), commercial=False), 1)


@pytest.fixture
def ledger(tmp_path: Path) -> FrameLedger:
    return FrameLedger(tmp_path / "state" / "frames.jsonl", Roots([Path("/")]))


def job(identity: Path, frame: int = 1, owner: bytes = b"a", **fields: Any) -> Job:
    person = (wire.Assignment(str(identity)),)
    asked = {"plate": SLOT, "output": None, "assignments": person, **fields}
    return Job(wire.SubmitFrame(f"{frame}", frame, **asked), owner, "host")


def lines(path: Path) -> list[dict[str, Any]]:
    return [dict(entry) for entry in verify_ledger(path).entries]


def test_many_frames_have_one_line_and_an_end(
    ledger: FrameLedger, bench: Workbench, person: Path, tmp_path: Path, settled: Callable[[Path, int], None]
) -> None:
    path = tmp_path / "state" / "frames.jsonl"
    for frame in (1003, 1001, 1007):
        ledger.begin(job(person, frame), bench)
    ledger.begin(job(person, 1, b"b"), bench)
    ledger.begin(job(person, 1, engine="null"), bench)
    first, other = lines(path)
    assert (first["event"], first["frames"]) == ("job started", "single frames, from 1003")
    assert first["identities"] == [{"consent": "no consent record", **_who(person)}]
    assert first["consent"]["decision"] == "allow"
    assert first["models"]
    assert (first["plate"], first["output"], first["engine"].split()[0]) == ("a frame in memory",) * 2 + ("mesh",)
    assert other["job"] != first["job"], "another session"
    ledger.settle([b"a"])
    settled(path, 3)
    ledger.close()
    ends = lines(path)[2:]
    assert [(end["event"], end["job"], end["frames"], end["range"]) for end in ends] == [
        ("frames ended", other["job"], 1, "1-1"),
        ("frames ended", first["job"], 3, "1001-1007"),
    ]


def test_another_identity_or_project_is_another_line(
    ledger: FrameLedger, bench: Workbench, person: Path, tmp_path: Path
) -> None:
    second = tmp_path / "other.fpid"
    write_identity(second, identity_file(None, "other"))
    ledger.begin(job(person), bench)
    ledger.begin(job(second), bench)
    ledger.begin(job(person, project="p"), bench)
    ledger.begin(job(person, source="/show/plate.####.exr"), bench)
    found = lines(tmp_path / "state" / "frames.jsonl")
    assert [line["identities"][0]["name"] for line in found] == ["person", "other", "person", "person"]
    assert found[-1]["plate"] == "/show/plate.####.exr"


def test_results_in_files_are_on_record_beside_them(
    ledger: FrameLedger, bench: Workbench, person: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for frame in (1, 2):
        ledger.begin(job(person, frame, output=wire.FileRef(str(out / "o.####.exr"), frame)), bench)
    ledger.begin(job(person, output=wire.FileRef(str(tmp_path / "none" / "o.exr"), 1)), bench)
    ledger.close()
    found = lines(out / "o.faceplate" / "faceplate.ledger.jsonl")
    assert [line["event"] for line in found] == ["job started", "frames ended"]
    assert found[1]["frames"] == 2
    assert not (tmp_path / "state").exists()
    assert not (tmp_path / "none").exists()


def test_a_refusal_is_on_record_and_refuses_each_frame(
    ledger: FrameLedger, bench: Workbench, person: Path, tmp_path: Path
) -> None:
    revoked = tmp_path / "revoked.fpid"
    day = datetime.date(2020, 1, 1)
    consent = Consent("Jane", "Jane", day, "", "all", revoked=day)
    write_identity(revoked, identity_file(consent, "jane"))
    for frame in (1, 2):
        with pytest.raises(ConsentError):
            ledger.begin(job(revoked, frame), bench)
    ledger.close()
    (line,) = lines(tmp_path / "state" / "frames.jsonl")
    assert (line["event"], line["consent"]["decision"]) == ("job refused", "deny")


def test_without_the_record_there_is_no_frame(bench: Workbench, person: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    ledger = FrameLedger(tmp_path / "file" / "frames.jsonl", Roots([Path("/")]))
    for _ in range(2):
        with pytest.raises(OutputError):
            ledger.begin(job(person), bench)


def _who(path: Path) -> dict[str, str]:
    identity = read_identity(path).identity
    return {"name": identity.name, "hash": identity.content_hash}
