"""The order of jobs."""

from __future__ import annotations

import threading

from faceplate_client import wire
from faceplate_server.jobs import Job, JobQueue


def job(name: str, client: bytes, priority: str = "batch") -> Job:
    message = wire.SubmitAnalyse(name, "/plate.####.exr", None, priority=priority)
    return Job(message, client, client.decode())


def taken(queue: JobQueue) -> str:
    found = queue.take()
    assert found is not None
    assert found.running
    return found.id


def test_interactive_first_then_clients_in_turn() -> None:
    queue = JobQueue()
    names = [("a1", b"a"), ("a2", b"a"), ("a3", b"a"), ("b1", b"b")]
    ahead = [queue.add(job(name, client)) for name, client in names]
    assert ahead == [0, 1, 2, 3]
    assert queue.add(job("i1", b"a", "interactive")) == 0
    assert [taken(queue) for _ in range(5)] == ["i1", "b1", "a1", "a2", "a3"]


def test_one_each() -> None:
    queue = JobQueue(one_each=True)
    first, second, other = job("a1", b"a"), job("a2", b"a"), job("b1", b"b")
    for one in (first, second, other):
        queue.add(one)
    assert [taken(queue), taken(queue)] == ["a1", "b1"]
    got: list[str] = []
    thread = threading.Thread(target=lambda: got.append(taken(queue)), daemon=True)
    thread.start()
    thread.join(0.05)
    assert got == []
    queue.finished(first)
    thread.join(5)
    assert got == ["a2"]


def test_a_waiting_job_can_be_taken_out_and_a_closed_queue_lets_go() -> None:
    queue = JobQueue()
    one, two = job("1", b"a"), job("2", b"a")
    queue.add(one)
    queue.add(two)
    assert queue.remove(one)
    assert not queue.remove(one)
    assert taken(queue) == "2"
    assert not queue.remove(two)
    queue.close()
    assert queue.take() is None
