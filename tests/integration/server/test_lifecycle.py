"""Start, single instance, on demand, idle, parent, cancel, deadlines, releases, reconnection."""

from __future__ import annotations

import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import zmq

from faceplate.cli.main import main
from faceplate_client import Client, FrameHeader, Place, find, find_or_start, wire
from faceplate_client.errors import LaunchFailed, ServerError
from faceplate_client.slots import State
from tests.integration.conftest import Cli, outputs
from tests.integration.server.conftest import Running, running, start_server, wait_ready
from tests.support.plates import moving_plate

HEADER = FrameHeader(64, 48, colour_space="ACEScg")


def serve(folder: Path, *words: str) -> list[str]:
    file = folder / "server.toml"
    folder.mkdir(mode=0o700, exist_ok=True)
    file.write_text(f'log_file = "{folder / "log"}"\ndevice = "cpu"\n', "utf-8")
    return [sys.executable, "-m", "faceplate", "serve", "--folder", str(folder), "--config", str(file), *words]


def test_one_server_however_many_clients_start_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path("/tmp") / f"fp-{secrets.token_hex(4)}"
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(find_or_start(Place(folder), serve(folder), start_s=60)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert len({one.info.instance for one in found}) == 1
    children = [one.child for one in found if one.child is not None]
    assert len(children) == 1
    second = subprocess.run(serve(folder), capture_output=True, text=True, timeout=60)
    assert second.returncode == 2
    assert "runs already" in second.stderr
    assert main(["status", "--folder", str(folder)]) == 0
    assert main(["stop", "--folder", str(folder)]) == 0
    assert children[0].wait(10) == 0
    assert main(["stop", "--folder", str(folder)]) == 3
    assert sorted(path.suffix for path in folder.iterdir() if path.suffix in (".sock", ".json", ".ring")) == []


def test_a_server_that_cannot_start_shows_why() -> None:
    folder = Path("/tmp") / f"fp-{secrets.token_hex(4)}"
    with pytest.raises(LaunchFailed) as caught:
        find_or_start(Place(folder), serve(folder, "--device", "cuda:7"), start_s=60)
    assert "cuda:7 cannot be used" in caught.value.log


def test_it_answers_before_it_is_ready() -> None:
    folder = Path("/tmp") / f"fp-{secrets.token_hex(4)}"
    server = start_server(folder)
    try:
        states = []
        end = time.monotonic() + 60
        while not (states and states[-1]) and time.monotonic() < end:
            if server.place.file.exists():
                with server.client() as client:
                    states.append(client.ping().ready)
        assert states[-1] is True
        assert wait_ready(server)
    finally:
        server.kill()


def test_it_stops_when_idle_and_when_its_parent_ends() -> None:
    parent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with running("--parent", str(parent.pid)) as watched, running("--idle", "1") as idle:
        assert idle.process.wait(20) == 0
        assert "nothing to do" in idle.log()
        assert watched.process.poll() is None
        parent.kill()
        parent.wait()
        assert watched.process.wait(20) == 0
        assert f"process {parent.pid} is gone" in watched.log()


def slow_job(client: Client, plate: str, identity: Path, folder: Path) -> str:
    return client.submit_range(
        plate=plate, output=str(folder / "o.####.exr"), frames=None, assignments=(wire.Assignment(str(identity)),)
    )


@pytest.fixture(scope="session")
def long_plate(tmp_path_factory: pytest.TempPathFactory) -> str:
    plate = moving_plate(480, 300, 30, face_width_px=120).write(tmp_path_factory.mktemp("long"))
    assert main(["analyse", plate, "--device", "cpu"]) == 0
    return plate


def test_cancel_takes_effect_within_a_frame_and_the_job_can_go_on(
    cli: Cli, server: Running, long_plate: str, identity: Path, tmp_path: Path
) -> None:
    with server.client() as client:
        job = slow_job(client, long_plate, identity, tmp_path)
        events = client.events(job, 60)
        assert any(isinstance(event, wire.Partial) for event in events)
        client.cancel(job)
        rest = list(events)
        assert isinstance(rest[-1], wire.Cancelled)
        threads = 3  # on two cores
        assert sum(isinstance(event, wire.Partial) for event in rest) <= threads + 2
        assert rest[-1].finished == len(outputs(tmp_path))
        end = client.result(slow_job(client, long_plate, identity, tmp_path), 60)
    assert isinstance(end, wire.Done)
    assert end.counts["kept"] == rest[-1].finished
    assert len(outputs(tmp_path)) == 30


def test_a_waiting_job_is_cancelled_at_once(server: Running, long_plate: str, identity: Path, tmp_path: Path) -> None:
    with server.client() as client:
        first = slow_job(client, long_plate, identity, tmp_path / "1")
        second = slow_job(client, long_plate, identity, tmp_path / "2")
        client.cancel(second)
        assert client.result(second, 5) == wire.Cancelled(second, 0)
        client.cancel(first)
        assert isinstance(client.result(first, 30), wire.Cancelled)


def test_a_job_past_its_deadline_ends(server: Running, long_plate: str, identity: Path, tmp_path: Path) -> None:
    with server.client() as client:
        job = client.submit_range(
            plate=long_plate,
            output=str(tmp_path / "o.####.exr"),
            frames=None,
            assignments=(wire.Assignment(str(identity)),),
            deadline_s=0.3,
        )
        with pytest.raises(ServerError) as caught:
            client.result(job, 30)
        assert caught.value.code == "deadline"


def test_an_interactive_frame_overtakes_batches(
    server: Running, long_plate: str, identity: Path, tmp_path: Path
) -> None:
    with server.client("batch") as batch, server.client("artist") as artist:
        job = slow_job(batch, long_plate, identity, tmp_path)
        events = batch.events(job, 60)
        next(event for event in events if isinstance(event, wire.Partial))
        with server.ring(1, HEADER.nbytes) as ring:
            plate = ring.put(HEADER, bytes(HEADER.nbytes))
            frame = artist.submit_frame(frame=1, plate=plate, assignments=(), engine="null")
            assert isinstance(artist.result(frame, 10), wire.FrameResult)
        before = len(outputs(tmp_path))
        assert before < 30
        batch.cancel(job)
        list(events)


def how_it_ended(client: Client, job: str) -> str:
    try:
        end = client.result(job, 10)
    except ServerError as error:
        return error.code
    return end.state if isinstance(end, wire.FrameResult) else type(end).__name__


def test_released_slots_are_free_and_their_jobs_end(server: Running) -> None:
    with server.client() as client, server.ring(2, HEADER.nbytes) as ring:
        kept, other = ring.put(HEADER, bytes(HEADER.nbytes)), ring.put(HEADER, bytes(HEADER.nbytes))
        job = client.submit_frame(frame=1, plate=kept, assignments=(), engine="null", priority="batch")
        client.release(ring, kept.slot)
        assert ring.state(kept.slot) is State.FREE
        assert how_it_ended(client, job) in ("done", "stale_slot")  # through before the release came, or not
        assert isinstance(
            client.result(client.submit_frame(frame=1, plate=other, assignments=(), engine="null"), 10),
            wire.FrameResult,
        )
        client.release(ring)
        assert {ring.state(slot) for slot in range(2)} == {State.FREE}


def test_a_reference_of_an_earlier_use_is_stale(server: Running) -> None:
    with server.client() as client, server.ring(1, HEADER.nbytes) as ring:
        first = ring.put(HEADER, bytes(HEADER.nbytes))
        client.result(client.submit_frame(frame=1, plate=first, assignments=(), engine="null"), 10)
        ring.release(first.slot)
        ring.put(HEADER, bytes(HEADER.nbytes))
        with pytest.raises(ServerError) as caught:
            client.result(client.submit_frame(frame=1, plate=first, assignments=(), engine="null"), 10)
        assert caught.value.code == "stale_slot"


def test_the_same_submission_over_a_new_connection_is_the_same_job(server: Running, until: Callable[..., None]) -> None:
    with server.client() as watcher, server.ring(1, HEADER.nbytes) as ring:
        plate = ring.put(HEADER, bytes(HEADER.nbytes))
        message = wire.SubmitFrame("once", 1, plate, None, (), engine="null")
        context = zmq.Context()
        answers = []
        before = watcher.status().frames_done
        for _ in range(2):
            dealer = context.socket(zmq.DEALER)
            dealer.linger = 0
            dealer.connect(find(server.place).address)
            for request in (wire.Hello(1, 1, "twice", "1"), message):
                dealer.send(wire.encode(request))
            got = [wire.decode(dealer.recv()) for _ in range(3)]
            answers.append(got[2])
            dealer.close()
        context.term()
        assert answers[0] == answers[1]
        assert isinstance(answers[0], wire.FrameResult)
        assert watcher.status().frames_done == before + 1
