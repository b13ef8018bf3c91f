"""Ranges shared out over worker processes, and what becomes of frames when a process dies or memory runs out."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import pytest

from faceplate.errors import DeviceError
from faceplate.swap.mesh.engine import MeshEngine
from faceplate_client import FrameHeader, Ring, wire
from faceplate_client.slots import State, as_array
from faceplate_server.frames.ledger import FrameLedger
from faceplate_server.jobs import Job
from faceplate_server.rings import RingLimits, RingTable
from faceplate_server.roots import Roots
from faceplate_server.workers.crew import Crew
from faceplate_server.workers.members import CrewPlan
from faceplate_server.workers.start import COMMAND
from faceplate_server.workers.threads import Worker
from tests.integration.conftest import Cli, leftovers, outputs
from tests.integration.test_memory_runs_out import Short
from tests.support import faulty_worker
from tests.support.plates import SyntheticPlate, moving_plate

LINEAR = "ACEScg"


class Shop:
    """A worker with its processes, without socket and clients."""

    def __init__(self, folder: Path, workers: int, command: tuple[str, ...], warm_bytes: int, threads: int) -> None:
        limits = RingLimits(8, 1 << 26, 8)
        self.folder = folder
        self.rings = RingTable(folder, limits)
        roots = Roots([Path("/")])
        plan = CrewPlan(("cpu",) * workers, threads, 2, warm_bytes, roots.folders, folder, limits, 0, command)
        self.crew = Crew(plan)
        self.said: Queue[tuple[Job, Any]] = Queue()
        self.ledger = folder / "ledger.jsonl"
        self.worker = Worker(
            self.crew, self.rings, roots, FrameLedger(self.ledger, roots), lambda *said: self.said.put(said), shots=2
        )
        self.count = 0

    def begin(self, kind: type, **fields: Any) -> Job:
        self.count += 1
        job = Job(kind(id=f"j{self.count}", **fields), b"c", "test")
        self.worker.add(job)
        return job

    def messages(self, seconds: float = 60.0) -> Iterator[Any]:
        """What the one job at work says, to its end."""
        while True:
            _, message = self.said.get(timeout=seconds)
            yield message
            if isinstance(message, wire.ENDS):
                return

    def run(self, kind: type, **fields: Any) -> list[Any]:
        self.begin(kind, **fields)
        return list(self.messages())


@contextmanager
def opened(
    folder: Path, workers: int, command: tuple[str, ...] = COMMAND, *, warm_bytes: int = 1 << 30
) -> Iterator[Shop]:
    folder.chmod(0o700)
    one = Shop(folder, workers, command, warm_bytes, threads=2)
    one.worker.warm_up()
    try:
        yield one
    finally:
        one.worker.close(20.0)


@pytest.fixture(scope="module")
def control(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What goes wrong in the workers, as JSON."""
    return tmp_path_factory.mktemp("control") / "faults.json"


@pytest.fixture(scope="module")
def started(control: Path) -> Iterator[Shop]:
    control.write_text("{}", "utf-8")
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder), 2, faulty_worker.command(control)) as one:
        yield one


@pytest.fixture
def shop(started: Shop, control: Path) -> Iterator[Shop]:
    """Two workers that are well, and no death so far."""
    until(lambda: all(member.state == "ready" for member in started.crew.members))
    started.crew.deaths = 0
    yield started
    control.write_text("{}", "utf-8")


@pytest.fixture
def fault(control: Path) -> Callable[..., None]:
    return lambda **faults: control.write_text(json.dumps(faults), "utf-8") and None


@pytest.fixture(scope="module")
def plate() -> SyntheticPlate:
    return moving_plate(480, 300, 12, face_width_px=120, motion="linear", travel_px=40)


@pytest.fixture(scope="module")
def pattern(plate: SyntheticPlate, tmp_path_factory: pytest.TempPathFactory) -> str:
    from faceplate.cli.main import main

    written = plate.write(tmp_path_factory.mktemp("plate"))
    assert main(["analyse", written, "--device", "cpu"]) == 0
    return written


@pytest.fixture(scope="module")
def local(pattern: str, identity: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What this process alone makes of it."""
    from faceplate.cli.main import main

    folder = tmp_path_factory.mktemp("local")
    words = ["apply", pattern, "--identity", str(identity), "-o", str(folder / "o.####.exr"), "--device", "cpu"]
    assert main(words) == 0
    return folder


def range_of(pattern: str, identity: Path, folder: Path) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    person = (wire.Assignment(str(identity)),)
    return {"plate": pattern, "output": str(folder / "o.####.exr"), "frames": None, "assignments": person}


def records(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "o.faceplate" / "manifest.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines[1:]]


def states(messages: list[Any]) -> dict[int, str]:
    partial = [message for message in messages if isinstance(message, wire.Partial)]
    assert len({one.frame for one in partial}) == len(partial)
    return {one.frame: one.state for one in partial}


def test_a_range_over_two_workers_has_the_bytes_of_one(
    shop: Shop, pattern: str, identity: Path, local: Path, tmp_path: Path
) -> None:
    job = range_of(pattern, identity, tmp_path / "out")
    before = [member.taken for member in shop.crew.members]
    said = shop.run(wire.SubmitRange, **job)
    assert outputs(tmp_path / "out") == outputs(local)
    assert dict(said[-1].counts) == {"done": 12}
    assert states(said) == dict.fromkeys(range(1001, 1013), "done")
    taken = [member.taken - old for member, old in zip(shop.crew.members, before, strict=True)]
    assert min(taken) >= 2, "each had a part"
    assert len({member.process.pid for member in shop.crew.members}) == 2
    assert sorted(record["frame"] for record in records(tmp_path / "out")) == list(range(1001, 1013))
    (tmp_path / "out" / "o.1005.exr").unlink()
    assert dict(shop.run(wire.SubmitRange, **job)[-1].counts) == {"kept": 11, "done": 1}
    assert outputs(tmp_path / "out") == outputs(local)
    assert leftovers(tmp_path / "out") == []


def test_an_analysis_by_a_worker_is_the_command_lines(shop: Shop, pattern: str, tmp_path: Path) -> None:
    end = shop.run(wire.SubmitAnalyse, plate=pattern, frames=None, sidecar=str(tmp_path / "there.faces.json"))[-1]
    assert isinstance(end, wire.Done)
    there = (tmp_path / "there.faces.json").read_text("utf-8")
    assert there == Path(pattern.replace(".####.exr", ".faces.json")).read_text("utf-8")


def test_cancel_reaches_all_workers_within_a_frame(
    shop: Shop, pattern: str, identity: Path, local: Path, tmp_path: Path
) -> None:
    wanted = range_of(pattern, identity, tmp_path / "out")
    job = shop.begin(wire.SubmitRange, **wanted)
    seen, end = 0, None
    for end in shop.messages():
        seen += isinstance(end, wire.Partial)
        if seen == 1:
            shop.worker.stop(job)
    assert isinstance(end, wire.Cancelled)
    assert end.finished == seen <= 1 + 4  # those at work in two threads of each worker, and no more
    assert dict(shop.run(wire.SubmitRange, **wanted)[-1].counts) == {"kept": seen, "done": 12 - seen}
    assert outputs(tmp_path / "out") == outputs(local)


def test_a_killed_worker_costs_no_frame(shop: Shop, pattern: str, identity: Path, local: Path, tmp_path: Path) -> None:
    before = {member.process.pid for member in shop.crew.members}
    shop.begin(wire.SubmitRange, **range_of(pattern, identity, tmp_path / "out"))
    said = []
    for message in shop.messages():
        said.append(message)
        if isinstance(message, wire.Partial) and sum(isinstance(other, wire.Partial) for other in said) == 2:
            os.kill(next(iter(before)), signal.SIGKILL)
    assert dict(said[-1].counts) == {"done": 12}
    assert outputs(tmp_path / "out") == outputs(local)
    assert leftovers(tmp_path / "out") == []
    assert shop.crew.deaths == 1
    until(lambda: all(member.state == "ready" for member in shop.crew.members))
    assert len(before & {member.process.pid for member in shop.crew.members}) == 1


def test_a_frame_that_kills_is_tried_twice_and_fails_alone(
    shop: Shop, fault: Callable[..., None], pattern: str, identity: Path, local: Path, tmp_path: Path
) -> None:
    fault(dies_at=1004)
    said = shop.run(wire.SubmitRange, **range_of(pattern, identity, tmp_path / "out"))
    assert shop.crew.deaths == 2
    assert dict(said[-1].counts) == {"done": 11, "failed": 1}
    failed = next(message for message in said if isinstance(message, wire.Partial) and message.state == "failed")
    assert failed.frame == 1004
    assert failed.error is not None
    assert (failed.error.code, failed.error.type) == ("device", "DeviceError")
    assert failed.error.found == "signal 9; signal 9"
    assert failed.error.hint
    others = {name: data for name, data in outputs(local).items() if name != "o.1004.exr"}
    assert outputs(tmp_path / "out") == others
    fault()
    assert dict(shop.run(wire.SubmitRange, **range_of(pattern, identity, tmp_path / "out"))[-1].counts) == {
        "kept": 11,
        "done": 1,
    }
    assert outputs(tmp_path / "out") == outputs(local)
    assert leftovers(tmp_path / "out") == []


class Slots:
    """Frames of the plate through a ring."""

    def __init__(self, shop: Shop, ring: Ring, header: FrameHeader, pixels: Any, identity: Path) -> None:
        self.shop, self.ring, self.header, self.pixels = shop, ring, header, pixels
        self.person = (wire.Assignment(str(identity)),)

    def frame(self, number: int = 7, *, own_slot: bool = True, **fields: Any) -> tuple[Any, Any]:
        """The end of a job, and the picture in its slot, None without one."""
        given = self.ring.put(self.header, self.pixels)
        room = None if own_slot else self.ring.offer(self.ring.acquire())
        asked = {"assignments": self.person, "plate": given, "output": room, **fields}
        end = self.shop.run(wire.SubmitFrame, frame=number, **asked)[-1]
        header, memory = self.ring.result(room or given)
        picture = None if header is None else np.array(as_array(header, memory))
        for slot in (given, room):
            if slot is not None:
                assert self.ring.state(slot.slot) is State.DONE
                self.ring.release(slot.slot)
        return end, picture


@pytest.fixture
def slots(shop: Shop, plate: SyntheticPlate, identity: Path) -> Iterator[Slots]:
    pixels = np.ascontiguousarray(plate.frame(1003)[..., :3], np.float32)
    header = FrameHeader(pixels.shape[1], pixels.shape[0], ("R", "G", "B"), colour_space=LINEAR)
    with Ring.create(2, header.nbytes, shop.folder) as ring:
        yield Slots(shop, ring, header, pixels, identity)


def test_a_hosts_frame_whose_worker_dies(slots: Slots, fault: Callable[..., None], tmp_path: Path) -> None:
    _, well = slots.frame()
    fault(dies_at=7, dies_once=str(tmp_path / "one"))
    end, picture = slots.frame(own_slot=False)
    assert isinstance(end, wire.FrameResult)
    assert (picture == well).all()
    fault(dies_at=7, dies_once=str(tmp_path / "two"))
    end, picture = slots.frame()
    assert (end.code, end.type, picture) == ("device", "DeviceError", None), "the plate may be half the result"
    end, picture = slots.frame()
    assert (picture == well).all()
    assert (picture != slots.pixels).any()
    assert slots.shop.crew.deaths == 2


def test_memory_that_runs_out_once_changes_nothing(
    shop: Shop, fault: Callable[..., None], pattern: str, identity: Path, local: Path, tmp_path: Path
) -> None:
    fault(short_once=str(tmp_path / "marker"))
    wanted = range_of(pattern, identity, tmp_path / "out")
    said = shop.run(wire.SubmitRange, **wanted)
    assert dict(said[-1].counts) == {"done": 12}
    assert dict(shop.run(wire.SubmitRange, **wanted)[-1].counts) == {"kept": 12}
    assert outputs(tmp_path / "out") == outputs(local)
    assert any(isinstance(message, wire.Note) and "the pixels are the same" in message.text for message in said)
    smaller = [record["facts"].get("smaller") for record in records(tmp_path / "out")]
    assert sorted(filter(None, smaller)) == ["alone"]
    assert shop.crew.deaths == 0


def test_a_face_too_large_for_the_memory_is_done_in_tiles_and_says_so(
    slots: Slots,
    fault: Callable[..., None],
    pattern: str,
    identity: Path,
    local: Path,
    tmp_path: Path,
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, whole = slots.frame()
    fault(short_above=16_000)
    wanted = {**range_of(pattern, identity, tmp_path / "out"), "frames": "1001-1002"}
    said = slots.shop.run(wire.SubmitRange, **wanted)
    assert dict(said[-1].counts) == {"done": 2}
    assert any(isinstance(message, wire.Note) and "2 x 2 tiles" in message.text for message in said)
    assert [record["facts"]["smaller"] for record in records(tmp_path / "out")] == ["2 x 2 tiles"] * 2
    short = Short(16_000)
    with monkeypatch.context() as patched:
        patched.setattr(MeshEngine, "swap", lambda *words: short.swap(*words))
        words = ["apply", pattern, "--frames", "1001-1002", "--identity", identity, "--device", "cpu"]
        assert cli(*words, "-o", tmp_path / "local" / "o.####.exr").code == 0
    assert outputs(tmp_path / "local") == outputs(tmp_path / "out"), "the command line does the same alone"
    end, tiled = slots.frame()
    assert end.facts["smaller"] == "2 x 2 tiles"
    assert "pixels differ" in end.facts["smaller_note"]
    changed, tiled_changed = (whole != slots.pixels).any(-1), (tiled != slots.pixels).any(-1)
    assert (changed & tiled_changed).sum() > 0.98 * changed.sum()
    assert tiled_changed.sum() < 1.02 * changed.sum()
    off = np.abs(tiled - whole)[changed].mean() / np.abs(whole - slots.pixels)[changed].mean()
    assert 0 < off < 0.25, "the same change, but for the light of each tile"
    fault()
    assert dict(slots.shop.run(wire.SubmitRange, **wanted)[-1].counts) == {"done": 2}, "not taken for the real thing"
    assert all(outputs(local)[name] == data for name, data in outputs(tmp_path / "out").items())


def test_without_memory_at_all_the_frame_fails_typed_and_the_next_works(
    slots: Slots, fault: Callable[..., None], pattern: str, identity: Path, tmp_path: Path
) -> None:
    fault(short_above=100)
    given = slots.ring.put(slots.header, slots.pixels)
    asked = {"plate": given, "output": None, "assignments": slots.person}
    end = slots.shop.run(wire.SubmitFrame, frame=1, **asked)[-1]
    assert (end.code, end.type) == ("device", "DeviceMemoryError")
    assert end.hint
    assert slots.ring.result(given)[0] is None
    assert slots.ring.pixels(given.slot, slots.header.nbytes) == slots.pixels.tobytes(), "the plate is whole"
    slots.ring.release(given.slot)
    wanted = {**range_of(pattern, identity, tmp_path / "out"), "frames": "1001-1003"}
    assert dict(slots.shop.run(wire.SubmitRange, **wanted)[-1].counts) == {"failed": 3}
    assert {record["error"]["type"] for record in records(tmp_path / "out")} == {"DeviceMemoryError"}
    fault()
    assert isinstance(slots.frame()[0], wire.FrameResult)
    assert slots.shop.crew.deaths == 0


def test_nets_that_were_let_go_come_back_with_the_same_bytes(slots: Slots) -> None:
    first = slots.frame()[1].tobytes()
    assert {net.split(" on ")[0] for net in slots.shop.worker.nets} >= {"face_detector", "face_mesh_attention"}
    assert all(net.endswith(" MB") and " in float32, " in net for net in slots.shop.worker.nets)
    assert slots.shop.worker.cache.total > 1 << 20
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder), 1, warm_bytes=1) as small:
        with Ring.create(2, slots.header.nbytes, small.folder) as ring:
            again = Slots(small, ring, slots.header, slots.pixels, Path(slots.person[0].identity))
            assert [again.frame()[1].tobytes() for _ in range(2)] == [first, first]
        assert len(small.worker.nets) <= 1, "the newest value alone is kept beyond the budget"


def test_a_crew_that_cannot_start_says_why(tmp_path: Path) -> None:
    limits = RingLimits(8, 1 << 20, 8)
    plan = CrewPlan(("cuda:7",), 1, 1, 1 << 20, (Path("/"),), tmp_path, limits)
    with pytest.raises(DeviceError, match="cuda:7"):
        Crew(plan).start()


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
