"""What the server answers, with a worker that only keeps what it is given."""

from __future__ import annotations

from typing import Any

import pytest

from faceplate_client import wire
from faceplate_server.handlers import Card, Handlers
from faceplate_server.jobs import Job
from faceplate_server.workers.threads import Worker
from tests.contract.wire.samples import NEWEST

LIMITS = wire.Limits(wire.MAX_BYTES, 1 << 30, 64, 2, 2)


class Rings:
    def __init__(self) -> None:
        self.gone: list[Any] = []

    def let_go(self, keys: Any) -> None:
        self.gone += keys


class IdleWorker:
    """Has a waiting list and an optional job at work."""

    devices = ()
    nets = ()
    frames_done = 0

    def __init__(self) -> None:
        self.waiting: list[Job] = []
        self.rings = Rings()

    def add(self, job: Job) -> int:
        self.waiting.append(job)
        return len(self.waiting) - 1

    def begin(self, job: Job) -> None:
        self.waiting.remove(job)
        job.running = True

    def stop(self, job: Job, why: BaseException | None = None) -> bool:
        job.stop(why)
        if job in self.waiting:
            self.waiting.remove(job)
            return True
        return False

    stopped = Worker.stopped


class Talk:
    def __init__(self, token: str = "") -> None:
        self.worker = IdleWorker()
        self.sent: list[tuple[bytes, Any]] = []
        self.stops = 0
        worker: Any = self.worker
        card = Card("i1", token, LIMITS, ("/",))
        self.handlers = Handlers(card, worker, lambda who, message: self.sent.append((who, message)), self._stop)

    def _stop(self) -> None:
        self.stops += 1

    def say(self, message: Any, who: bytes = b"a") -> Any:
        """Send a message; the last answer to this client, None without one."""
        before = len(self.sent)
        self.handlers.receive(who, [wire.encode(message)])
        mine = [answer for other, answer in self.sent[before:] if other == who]
        return mine[-1] if mine else None


@pytest.fixture
def talk() -> Talk:
    made = Talk()
    assert isinstance(made.say(wire.Hello(1, 1, "test", "1")), wire.Welcome)
    return made


def frame(name: str) -> wire.SubmitFrame:
    reference = wire.SlotRef("/r.ring", "1:2", 3, int(name), 1)
    return wire.SubmitFrame(name, 1, reference, None, (), engine="null")


def test_hello_comes_first_and_has_to_fit() -> None:
    talk = Talk("secret")
    assert talk.say(wire.Ping("1")).code == "unauthorised"
    assert talk.say(wire.Hello(1, 1, "x", "1", "guess")).code == "unauthorised"
    newer = wire.PROTOCOL_MAX + 1
    assert talk.say(wire.Hello(newer, newer, "x", "1", "secret")).code == "unsupported_version"
    assert talk.say(wire.Hello(0, 1, "x", "1", "secret")).protocol == 1
    assert talk.say(wire.Hello(0, 9, "x", "1", "secret")).protocol == wire.PROTOCOL_MAX
    assert talk.say(wire.Ping("1")) == wire.Pong("1", "i1", False)


def test_every_message_of_the_servers_side_is_refused(talk: Talk) -> None:
    for tag, to_server in wire.TO_SERVER.items():
        if not to_server:
            assert talk.say(NEWEST[tag]).code == "malformed"


def test_a_client_of_version_1_is_not_told_what_it_does_not_know(talk: Talk) -> None:
    talk.say(frame("1"))
    job = talk.handlers.jobs["1"]
    said = len(talk.sent)
    talk.handlers.told(job, wire.Note("1", "note", "hello"))
    assert len(talk.sent) == said
    talk.say(wire.Hello(1, 2, "test", "1"))
    talk.handlers.told(job, wire.Note("1", "note", "hello"))
    assert talk.sent[-1] == (b"a", wire.Note("1", "note", "hello"))


def test_limits(talk: Talk) -> None:
    assert isinstance(talk.say(wire.Hello(1, 1, "b", "1"), b"b"), wire.Welcome)
    assert talk.say(wire.Hello(1, 1, "c", "1"), b"c").code == "limit"
    assert [talk.say(frame(name)).ahead for name in "12"] == [0, 1]
    assert talk.say(frame("3")).code == "limit"
    assert talk.say(wire.Bye(), b"b") is None
    assert isinstance(talk.say(wire.Hello(1, 1, "c", "1"), b"c"), wire.Welcome)


def test_a_goodbye_that_comes_after_the_end_of_its_connection_is_no_error(talk: Talk) -> None:
    talk.handlers.gone(b"a")
    assert talk.say(wire.Bye()) is None
    assert not talk.handlers.counts.read().troubles


def test_refusals_and_ends_are_counted(talk: Talk) -> None:
    talk.say(wire.Cancel("1"), b"nobody")
    talk.say(frame("1"))
    talk.say(wire.Cancel("1"))
    tally = talk.handlers.counts.read()
    assert dict(tally.jobs) == {("frame", "cancelled"): 1}
    assert dict(tally.errors) == {"unauthorised": 1}
    assert [(one.client, one.failure.code) for one in tally.troubles] == [("a stranger", "unauthorised")]


def test_only_its_owner_cancels_a_job(talk: Talk) -> None:
    talk.say(wire.Hello(1, 1, "b", "1"), b"b")
    talk.say(frame("1"))
    assert talk.say(wire.Cancel("1"), b"b") is None
    assert len(talk.worker.waiting) == 1
    assert talk.say(wire.Cancel("1")) == wire.Cancelled("1", 0)
    assert talk.say(wire.Cancel("1")) is None


def test_a_release_waits_for_the_job_at_work(talk: Talk) -> None:
    talk.say(frame("1"))
    talk.say(frame("2"))
    job = talk.handlers.jobs["1"]
    talk.worker.begin(job)
    talk.say(wire.Release("r", "/r.ring", "1:2", 3))
    ended = talk.sent[-1][1]
    assert (ended.id, ended.code) == ("2", "stale_slot")
    assert job.token.is_cancelled
    talk.handlers.told(job, talk.worker.stopped(job))  # type: ignore[arg-type]
    assert [message.id for _, message in talk.sent[-2:]] == ["1", "r"]
    assert talk.worker.rings.gone == [("/r.ring", "1:2", 3)]


def test_the_jobs_of_a_dead_client_are_dropped_in_silence(talk: Talk) -> None:
    talk.handlers.receive(b"d", [wire.encode(wire.Hello(1, 1, "d", "1"))], 17)
    talk.say(frame("1"), b"d")
    talk.say(frame("2"), b"d")
    job = talk.handlers.jobs["1"]
    talk.worker.begin(job)
    sent = len(talk.sent)
    talk.handlers.disconnected(17)
    assert list(talk.handlers.jobs) == ["1"]
    talk.handlers.told(job, wire.Progress("1", "swap", 0, 1))
    talk.handlers.told(job, talk.worker.stopped(job))  # type: ignore[arg-type]
    assert talk.handlers.jobs == {}
    assert len(talk.sent) == sent
    assert talk.say(frame("1")).ahead == 0  # another client may use the name


def test_after_stop_nothing_is_taken(talk: Talk) -> None:
    talk.say(frame("1"))
    assert talk.say(wire.Stop("s")) == wire.Stopping("s")
    assert talk.stops == 1
    talk.handlers.stop_all()
    assert talk.sent[-1][1].code == "stopping"
    assert talk.say(frame("2")).code == "stopping"


def test_a_fault_in_a_handler_is_told_and_the_talk_goes_on(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talk.worker, "add", lambda job: 1 / 0)
    answer = talk.say(frame("1"))
    assert (answer.code, answer.type) == ("internal", "ZeroDivisionError")
    assert talk.handlers.jobs == {}
    assert isinstance(talk.say(wire.Ping("p")), wire.Pong)
