"""The manifest survives kills and refuses damage; the lock is held by one."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faceplate.errors import ManifestError, OutputBusyError
from faceplate.job import FrameState
from faceplate.jobs.lock import job_lock
from faceplate.jobs.manifest import FrameRecord, Manifest, read_records

RECORD = FrameRecord(1001, FrameState.DONE, "k", "a.exr", "h", facts={"faces": []}, seconds={"read": 0.1})


def test_records_come_back(tmp_path: Path) -> None:
    path = tmp_path / "manifest.jsonl"
    manifest = Manifest(path, "job")
    failed = FrameRecord(1002, FrameState.FAILED, "", error={"message": "m"})
    manifest.add(RECORD)
    manifest.add(failed)
    assert Manifest(path, "job").records == {1001: RECORD, 1002: failed}


def test_the_last_record_of_a_frame_counts_and_the_file_is_compacted(tmp_path: Path) -> None:
    path = tmp_path / "manifest.jsonl"
    manifest = Manifest(path, "job")
    for number in range(5):
        manifest.add(FrameRecord(7, FrameState.DONE, f"k{number}"))
    assert read_records(path)[7].key == "k4"
    Manifest(path, "job")
    assert len(path.read_text().splitlines()) == 2


@given(cut=st.integers(1, 400))
def test_a_torn_last_line_loses_that_line_only(cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("m") / "manifest.jsonl"
    manifest = Manifest(path, "job")
    for frame in (1, 2, 3):
        manifest.add(FrameRecord(frame, FrameState.DONE, "k", facts={"note": "é"}))
    whole = path.read_bytes()
    kept = whole[: max(whole.index(b"\n") + 1, len(whole) - cut)]
    path.write_bytes(kept)
    complete = kept.decode("utf-8", "ignore").count("\n") - 1
    assert sorted(Manifest(path, "job").records) == [1, 2, 3][:complete]


@pytest.mark.parametrize(
    "damage",
    [
        lambda lines: ["nonsense", *lines[1:]],
        lambda lines: [lines[0], lines[1][:20], *lines[2:]],
        lambda lines: [lines[0], json.dumps({"frame": 1}), *lines[1:]],
        lambda lines: [json.dumps({"format": "faceplate.manifest", "version": 99}), *lines[1:]],
        lambda lines: [lines[0], json.dumps([1, 2]), *lines[1:]],
        lambda lines: [lines[0], lines[1].replace('"done"', '"eaten"'), *lines[2:]],
    ],
)
def test_damage_is_refused_with_a_way_out(damage: object, tmp_path: Path) -> None:
    path = tmp_path / "manifest.jsonl"
    manifest = Manifest(path, "job")
    manifest.add(RECORD)
    manifest.add(RECORD)
    path.write_text("\n".join(damage(path.read_text().splitlines())) + "\n")  # type: ignore[operator]
    with pytest.raises(ManifestError) as caught:
        Manifest(path, "job")
    assert "delete" in str(caught.value.hint)


def test_binary_rubbish_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "manifest.jsonl"
    path.write_bytes(b"\xff\xfe\x00" * 40)
    with pytest.raises(ManifestError):
        read_records(path)


def _hold(folder: str, ready: object, done: object) -> None:
    with job_lock(Path(folder)):
        ready.set()  # type: ignore[attr-defined]
        done.wait(20)  # type: ignore[attr-defined]


def test_the_lock_is_held_by_one_process_and_dropped_when_it_is_killed(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    process = context.Process(target=_hold, args=(str(tmp_path), ready, done))
    process.start()
    assert ready.wait(20)
    with pytest.raises(OutputBusyError) as caught, job_lock(tmp_path):
        pass
    assert str(process.pid) in str(caught.value)
    process.kill()
    process.join()
    with job_lock(tmp_path):
        pass
