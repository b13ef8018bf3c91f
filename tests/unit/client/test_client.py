"""The client against a ROUTER that speaks the real messages."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from faceplate_client import wire
from faceplate_client.client import Client, Timeouts
from faceplate_client.errors import (
    ConnectionFailed,
    ConnectionLost,
    ConnectTimeout,
    MalformedMessage,
    RequestTimeout,
    ServerError,
    ServerRestarted,
    TotalTimeout,
    UnsupportedVersion,
    WrongThread,
)
from faceplate_client.slots import FrameHeader, Ring, State
from tests.unit.client.double import INVERT, Double

QUICK = Timeouts(connect_s=1.0, request_s=0.5, total_s=5.0, keep_alive_s=0.2, reconnect_s=0.5)
JANE = (wire.Assignment("/id/jane.fpid"),)
RANGE: dict[str, Any] = {"plate": "/s/p.####.exr", "output": "/o/p.####.exr", "frames": "1-3", "assignments": JANE}


@pytest.fixture
def double(tmp_path: Path) -> Iterator[Double]:
    with Double(f"ipc://{tmp_path}/s", tmp_path) as made:
        yield made


@pytest.fixture
def client(double: Double) -> Iterator[Client]:
    with Client(double.info, "test 1.0", QUICK) as made:
        yield made


def test_hello(double: Double, client: Client) -> None:
    assert client.welcome == double.welcome()
    hello = double.heard[0]
    assert (hello.client_name, hello.protocol_min, hello.protocol_max) == ("test 1.0", 1, wire.PROTOCOL_MAX)
    assert client.ping() == wire.Pong(client.ping().id[:-1] + "1", double.info.instance, True)
    assert client.status().instance == double.info.instance


def test_frames_through_the_ring(double: Double, client: Client, tmp_path: Path) -> None:
    header = FrameHeader(31, 7, frame=1001, colour_space="ACEScg")
    with Ring.create(2, header.nbytes, tmp_path) as ring:
        for number in range(20):
            plate = bytes((number + place) % 256 for place in range(header.nbytes))
            sent = ring.put(header, plate)
            room = ring.offer(ring.acquire()) if number % 2 else None
            job = client.submit_frame(frame=1001, plate=sent, assignments=JANE, output=room)
            progress, end = client.events(job)
            assert isinstance(progress, wire.Progress)
            assert isinstance(end, wire.FrameResult)
            assert isinstance(end.output, wire.SlotRef)
            assert end.output == (room or sent)
            got, pixels = ring.result(end.output)
            assert got is not None
            assert got.colour_space == "out"
            assert bytes(pixels) == plate.translate(INVERT)
            for slot in range(2):
                ring.release(slot)
        stuck = ring.put(header, plate)
        client.release(ring, stuck.slot)
        assert ring.state(stuck.slot) is State.FREE
        client.release(ring)
    assert isinstance(double.heard[-1], wire.Release)


def test_a_range_and_an_analysis(client: Client) -> None:
    job = client.submit_range(**RANGE, settings={"strength": ((1, 0.5),)})
    kinds = [type(event).__name__ for event in client.events(job)]
    assert kinds == ["Progress", "Partial", "Partial", "Partial", "Done"]
    job = client.analyse(plate="/s/p.####.exr")
    assert client.result(job) == wire.Done(job, {"done": 3})


def test_events_of_several_jobs_do_not_mix(client: Client) -> None:
    jobs = [client.submit_range(**RANGE) for _ in range(3)]
    client.status()
    for job in reversed(jobs):
        events = list(client.events(job))
        assert {event.id for event in events} == {job}
        assert len(events) == 5
    with pytest.raises(MalformedMessage, match="no job"):
        next(client.events(jobs[0]))


def test_cancel(double: Double, client: Client) -> None:
    double.hold = True
    job = client.submit_range(**RANGE)
    events = client.events(job)
    next(events)
    client.cancel(job)
    assert list(events) == [wire.Cancelled(job, 1)]


def test_a_refused_job(client: Client) -> None:
    with pytest.raises(ServerError, match="no engine is called none") as caught:
        client.submit_range(**RANGE, engine="none")
    error = caught.value
    assert (error.code, error.type, error.hint) == ("input", "SettingError", "use mesh")
    assert error.job_id
    assert client.ping().ready


def test_a_job_that_cannot_be_written_is_not_sent(double: Double, client: Client) -> None:
    with pytest.raises(MalformedMessage) as caught:
        client.submit_range(**{**RANGE, "frames": 7})
    assert caught.value.expected == "text of 0..4000 characters"
    assert client.ping().ready


def test_deadlines(double: Double, client: Client) -> None:
    double.hold = True
    job = client.submit_range(**RANGE)
    started = time.monotonic()
    with pytest.raises(TotalTimeout, match=job):
        list(client.events(job, total_s=0.7))
    assert 0.7 <= time.monotonic() - started < 2
    assert sum(isinstance(message, wire.Ping) for message in double.heard) >= 2, "silence is pinged"
    double.silent = True
    started = time.monotonic()
    with pytest.raises(RequestTimeout, match="answer to ping"):
        list(client.events(job))
    with pytest.raises(RequestTimeout, match="answer to Status"):
        client.status()
    assert time.monotonic() - started < 3
    double.silent = False
    client.cancel(job)
    assert client.result(job) == wire.Cancelled(job, 1)


def test_a_server_that_does_not_welcome(double: Double) -> None:
    double.silent = True
    started = time.monotonic()
    with pytest.raises(ConnectTimeout):
        Client(double.info, "test", Timeouts(connect_s=0.3))
    assert time.monotonic() - started < 1
    double.silent = False
    double.refuse = wire.Error(None, "unsupported_version", "V", "too old", "2..3", "1", "update the plug-in")
    with pytest.raises(UnsupportedVersion, match=r"too old; expected 2\.\.3; found 1"):
        Client(double.info, "test")
    double.refuse = wire.Error(None, "limit", "L", "too many clients")
    with pytest.raises(ServerError, match="too many"):
        Client(double.info, "test")
    double.refuse = wire.Pong("1", "x", True)  # type: ignore[assignment]
    with pytest.raises(MalformedMessage, match="found Pong"):
        Client(double.info, "test")


def test_a_server_of_another_protocol_is_not_called(double: Double) -> None:
    for info in (
        dataclasses.replace(double.info, protocol_min=wire.PROTOCOL_MAX + 1, protocol_max=9),
        dataclasses.replace(double.info, protocol_min=0, protocol_max=0),
    ):
        with pytest.raises(UnsupportedVersion, match="another protocol") as caught:
            Client(info, "test")
        assert "update both" in (caught.value.hint or "")
    assert double.heard == []


def test_token_over_tcp(tmp_path: Path) -> None:
    with Double("tcp://127.0.0.1:*", tmp_path, token="s3cret") as double:
        with Client(double.info, "test", QUICK) as client:
            assert client.ping().ready
        with pytest.raises(ServerError) as caught:
            Client(type(double.info)(double.info.address, "guess"), "test", QUICK)
        assert caught.value.code == "unauthorised"


def test_a_restarted_server_is_noticed(tmp_path: Path) -> None:
    address = f"ipc://{tmp_path}/s"
    first = Double(address, tmp_path, "one")
    first.hold = True
    first.start()
    with Client(first.info, "test", QUICK) as client:
        lost = [client.submit_range(**RANGE) for _ in range(2)]
        first.stop()
        with Double(address, tmp_path, "two"):
            with pytest.raises(ServerRestarted):
                list(client.events(lost[0]))
            with pytest.raises(MalformedMessage):
                list(client.events(lost[1]))
            assert client.welcome.instance == "two"
            job = client.submit_range(**RANGE)
            assert client.result(job) == wire.Done(job, {"done": 3})


def test_between_jobs_a_restart_goes_unnoticed(tmp_path: Path) -> None:
    address = f"ipc://{tmp_path}/s"
    first = Double(address, tmp_path)
    first.start()
    with Client(first.info, "test", QUICK) as client:
        client.ping()
        first.stop()
        with Double(address, tmp_path):
            job = client.submit_range(**RANGE)
            assert client.result(job) == wire.Done(job, {"done": 3})


def test_the_server_is_found_anew(tmp_path: Path) -> None:
    doubles = [Double(f"ipc://{tmp_path}/{name}", tmp_path, name) for name in ("a", "b")]
    for double in doubles:
        double.start()
    found = iter(doubles)
    with Client(lambda: next(found).info, "test", QUICK) as client:
        assert client.welcome.instance == "a"
        doubles[0].stop()
        assert client.ping().instance == "b"
    doubles[1].stop()


def test_a_server_that_stays_away(tmp_path: Path) -> None:
    double = Double(f"ipc://{tmp_path}/s", tmp_path)
    double.hold = True
    double.start()
    with Client(double.info, "test", QUICK) as client:
        job = client.submit_range(**RANGE)
        double.stop()
        started = time.monotonic()
        with pytest.raises(ConnectionFailed, match="no server answers"):
            list(client.events(job))
        assert time.monotonic() - started < 3
        for call in (client.status, lambda: client.submit_range(**RANGE)):
            with pytest.raises(ConnectionFailed):
                call()
        client.close()


def test_closed_and_goodbye(double: Double, client: Client) -> None:
    client.close()
    client.close()
    end = time.monotonic() + 2
    while double.heard[-1] != wire.Bye() and time.monotonic() < end:
        time.sleep(0.01)
    assert double.heard[-1] == wire.Bye()
    with pytest.raises(ConnectionLost):
        client.cancel("1")


def test_one_thread_only(client: Client) -> None:
    caught: list[BaseException] = []

    def other() -> None:
        try:
            client.ping()
        except WrongThread as error:
            caught.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert len(caught) == 1
    assert client.ping().ready


@pytest.mark.parametrize("parts", [[b"noise"], [b'{"v":1,"t":"pong","id":"1"}'], [b"a", b"b"], [b'{"v":9,"t":"pong"}']])
def test_answers_that_are_no_messages(double: Double, client: Client, parts: list[bytes]) -> None:
    def say(who: bytes, message: Any) -> None:
        double.router.send_multipart([who, *parts])

    double.say = say  # type: ignore[method-assign]
    with pytest.raises((MalformedMessage, UnsupportedVersion)) as caught:
        client.ping()
    assert caught.value.hint
