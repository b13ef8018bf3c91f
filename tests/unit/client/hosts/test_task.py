"""Actions on a worker thread: host calls come to the host's own thread, errors to the caller, and all of it ends."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from faceplate_client.connection import Place
from faceplate_client.errors import ActionStopped, ClipGone, ServerNotFound
from faceplate_client.host import Progress
from faceplate_client.outcome import BatchOutcome, ClipOutcome
from faceplate_client.task import Servers, Session, Task, run

NOWHERE = Servers(Place(Path("/nonexistent/faceplate")))


class Host:
    """As much of a host as a task needs."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.shown: list[Progress | None] = []
        self.going = True

    def name(self) -> str:
        assert threading.get_ident() == self.thread
        return "host"

    def gone(self) -> str:
        raise ClipGone("there is no clip")

    def show(self, progress: Progress | None) -> bool:
        assert threading.get_ident() == self.thread
        self.shown.append(progress)
        return self.going


def finish(task: Task[Any]) -> None:
    end = time.monotonic() + 10
    while task.tick():
        assert time.monotonic() < end
        time.sleep(0.001)


def ask(session: Session, name: str) -> Any:
    return session.ask(lambda host: getattr(host, name)())


def test_a_worker_gets_answers_from_the_hosts_thread() -> None:
    def action(session: Session) -> tuple[str, bool]:
        session.report(Progress("swap", 1, 2))
        return ask(session, "name"), threading.get_ident() == host.thread

    host: Any = Host()
    assert run(host, NOWHERE, action) == ("host", True)
    assert host.shown == [Progress("swap", 1, 2), None]
    task = Task(host, NOWHERE, action)
    task.start()
    finish(task)
    assert task.result() == ("host", False)
    assert task.progress == Progress("swap", 1, 2)


def test_errors_of_host_and_action_reach_the_caller() -> None:
    seen = []

    def action(session: Session) -> None:
        try:
            ask(session, "gone")
        except ClipGone as error:
            seen.append(error)
        session.servers.find()

    host: Any = Host()
    task = Task(host, NOWHERE, action)
    task.start()
    finish(task)
    assert len(seen) == 1
    with pytest.raises(ServerNotFound, match="no server was started"):
        task.result()


def test_esc_is_seen_whoever_tells_it() -> None:
    def action(session: Session) -> int:
        count = 0
        while not session.is_cancelled:
            session.report(Progress("swap", count))
            count += 1
        return count

    host: Any = Host()
    task = Task(host, NOWHERE, action)
    task.start()
    task.tick()
    task.cancel()
    finish(task)
    host.going = False
    assert run(host, NOWHERE, action) == 1


def test_the_application_closes_while_an_action_waits() -> None:
    host: Any = Host()
    task = Task(host, NOWHERE, lambda session: ask(session, "name"))
    assert task.close()
    task.start()
    assert task.close(5.0)
    with pytest.raises(ActionStopped, match="closing"):
        task.result()


def test_what_waited_is_not_asked_of_the_document_that_comes_next() -> None:
    host: Any = Host()
    asked: list[str] = []
    waits = threading.Event()
    task = Task(host, NOWHERE, lambda session: session.ask(lambda _: asked.append("placed")), wake=waits.set)
    task.start()
    assert waits.wait(5)
    assert task.close(5.0)
    assert task.ended, "nothing waits for a turn that does not come"
    task.tick()  # as an application's timer still may
    assert asked == []


def test_wake_is_called_for_each_host_call() -> None:
    host: Any = Host()
    woken = threading.Semaphore(0)
    task = Task(host, NOWHERE, lambda session: [ask(session, "name") for _ in range(3)], wake=woken.release)
    task.start()
    for _ in range(3):
        assert woken.acquire(timeout=5)
        task.tick(0.0)
    finish(task)
    assert task.result() == ["host"] * 3


def test_the_outcome_in_numbers_and_words() -> None:
    done, cancelled = ClipOutcome("a", "done"), ClipOutcome("b", "cancelled")
    slates = ClipOutcome("c", "done", failed={3: "kaputt", 4: "kaputt"})
    failed = ClipOutcome("d", "failed", error=ClipGone("gone"))
    assert [
        BatchOutcome(clips).exit_code for clips in ((), (done,), (done, slates), (failed,), (failed, cancelled))
    ] == [
        0,
        0,
        1,
        1,
        130,
    ]
    outcome = BatchOutcome((done, cancelled, slates, failed), ("note",))
    assert outcome.text == "Faceplate: 2 done, 1 cancelled, 1 failed; 2 frames failed"
    report = outcome.to_json()
    assert report["clips"][2]["failed"] == {"3": "kaputt", "4": "kaputt"}
    assert report["clips"][3]["error"] == {"type": "ClipGone", "message": "gone", "hint": ClipGone.default_hint}
    assert Progress("swap", 3, 9, "sh010", 2, 5, 75.0, 1).text == (
        "Faceplate: swap, 3 of 9, sh010 (2 of 5), 1:15 left, 1 failed"
    )
