"""Whose frame is next."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

from faceplate_server.workers.turns import FrameTurns, StepGate


def never() -> bool:
    return False


class Frames:
    """Threads that take a turn, note it, and hold it until they are let go."""

    def __init__(self, turns: FrameTurns) -> None:
        self.turns = turns
        self.began: list[str] = []
        self._go = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []

    def add(self, client: str, *, interactive: bool = False, given_up: Callable[[], bool] = never) -> None:
        turn = self.turns.of(client, interactive=interactive, given_up=given_up)
        before = len(self.turns._waiting) + len(self.began)

        def work() -> None:
            with turn():
                self.began.append(client)
                self._go.acquire()

        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()
        wait(lambda: len(self.turns._waiting) + len(self.began) > before)

    def finish(self, count: int, *, begun: int) -> None:
        """Let `count` frames end, and wait until `begun` have begun in all."""
        self._go.release(count)
        wait(lambda: len(self.began) >= begun)

    def join(self) -> None:
        self._go.release(len(self._threads))
        for thread in self._threads:
            thread.join(5)
            assert not thread.is_alive()


def wait(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_no_more_than_slots_at_once() -> None:
    turns = FrameTurns(2)
    with ExitStack() as held:
        for _ in range(2):
            held.enter_context(turns.of("a", interactive=False, given_up=never)())
        frames = Frames(turns)
        frames.add("a")
        assert frames.began == []
    wait(lambda: frames.began == ["a"])
    frames.join()


def test_interactive_overtakes_batch_and_needs_no_free_slot() -> None:
    turns = FrameTurns(1)
    frames = Frames(turns)
    for client in ("batch 1", "batch 2", "batch 3"):
        frames.add(client)
    frames.add("artist", interactive=True)
    assert frames.began == ["batch 1", "artist"]
    frames.add("artist 2", interactive=True)  # as many interactive ones as slots are at work
    frames.finish(2, begun=3)
    assert frames.began[2] == "artist 2"
    frames.join()


def test_fewer_batch_frames_beside_an_interactive_one() -> None:
    turns = FrameTurns(5)
    frames = Frames(turns)
    frames.add("artist", interactive=True)
    for _ in range(6):
        frames.add("batch")
    wait(lambda: len(frames.began) == 4)
    assert turns._at_work == {True: 1, False: 3}
    frames.finish(1, begun=6)  # the artist's
    assert turns._at_work == {True: 0, False: 5}
    frames.join()


def test_clients_are_served_in_turn_whatever_the_length_of_their_jobs() -> None:
    turns = FrameTurns(1)
    frames = Frames(turns)
    for client in ("long",) * 8 + ("short",) * 3:
        frames.add(client)
    frames.finish(10, begun=11)
    assert frames.began[:7] == ["long", "long", "short", "long", "short", "long", "short"]
    frames.join()
    assert sorted(frames.began) == ["long"] * 8 + ["short"] * 3


def test_a_late_client_is_not_owed_what_others_had() -> None:
    turns = FrameTurns(1)
    frames = Frames(turns)
    for _ in range(10):
        frames.add("early")
    frames.finish(5, begun=6)
    for _ in range(4):
        frames.add("late")
    frames.finish(8, begun=14)
    assert frames.began[6:12].count("late") == 3
    frames.join()


def test_a_cancelled_job_waits_no_more_and_takes_no_turn() -> None:
    turns = FrameTurns(1)
    frames = Frames(turns)
    given_up = threading.Event()
    frames.add("at work")
    frames.add("cancelled", given_up=given_up.is_set)
    frames.add("next")
    given_up.set()
    turns.wake()
    wait(lambda: "cancelled" in frames.began)
    assert turns._at_work == {True: 0, False: 1}
    frames.join()
    assert turns._at_work == {True: 0, False: 0}


def test_a_batch_frame_stands_still_between_steps_while_an_interactive_one_works() -> None:
    gate = StepGate(longest_s=30)
    gate.step()  # nobody is there
    done = threading.Event()
    with gate.interactive(), gate.interactive():
        threading.Thread(target=lambda: (gate.step(), done.set()), daemon=True).start()
        assert not done.wait(0.1)
    assert done.wait(10)


def test_a_viewer_that_plays_on_does_not_stop_a_batch_for_good() -> None:
    gate = StepGate(longest_s=0.05)
    with gate.interactive():
        began = time.monotonic()
        gate.step()
        assert 0.04 < time.monotonic() - began < 10
