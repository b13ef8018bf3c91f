"""Whose frame is worked on next: interactive before batch, and clients served in turn."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass


@dataclass(eq=False)
class _Waiting:
    client: str
    interactive: bool
    number: int


class FrameTurns:
    """Hands out turns, one a frame, to the threads of all jobs.

    An interactive frame begins at once, unless as many interactive ones are at work already. Batch frames have the
    `slots`, and fewer of them beside interactive frames; among batch frames the client that was served least goes
    first. A client that comes later is not owed what others had before.

    Args:
        slots: frames at work at once.
    """

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._changed = threading.Condition()
        self._waiting: list[_Waiting] = []
        self._at_work = {True: 0, False: 0}
        self._served: Counter[str] = Counter()
        self._number = 0

    def of(
        self, client: str, *, interactive: bool, given_up: Callable[[], bool]
    ) -> Callable[[], AbstractContextManager[None]]:
        """What a job holds for each frame.

        Args:
            client: who the job belongs to.
            interactive: whether a person waits for it.
            given_up: True once the job was cancelled: its threads then wait no more.
        """
        return lambda: self._turn(client, interactive, given_up)

    def wake(self) -> None:
        """Look again: a job was cancelled."""
        with self._changed:
            self._changed.notify_all()

    @contextmanager
    def _turn(self, client: str, interactive: bool, given_up: Callable[[], bool]) -> Iterator[None]:
        held = self._wait(client, interactive, given_up)
        try:
            yield
        finally:
            if held:
                with self._changed:
                    self._at_work[interactive] -= 1
                    self._changed.notify_all()

    def _wait(self, client: str, interactive: bool, given_up: Callable[[], bool]) -> bool:
        with self._changed:
            self._number += 1
            me = _Waiting(client, interactive, self._number)
            self._enter(me)
            self._changed.wait_for(lambda: given_up() or self._may_go(me))
            self._waiting.remove(me)
            held = not given_up()
            if held:
                self._at_work[interactive] += 1
                self._served[client] += 1
            self._changed.notify_all()
            return held

    def _enter(self, me: _Waiting) -> None:
        others = [self._served[one.client] for one in self._waiting if one.client != me.client]
        if others and not any(one.client == me.client for one in self._waiting):
            self._served[me.client] = max(self._served[me.client], min(others))
        if not self._waiting and not any(self._at_work.values()):
            self._served.clear()
        self._waiting.append(me)

    def _may_go(self, me: _Waiting) -> bool:
        rivals = [one for one in self._waiting if one.interactive == me.interactive]
        first = min(rivals, key=lambda one: (self._served[one.client], one.number))
        if first is not me:
            return False
        if me.interactive:
            return self._at_work[True] < self.slots
        return self._at_work[False] < self._batch_slots() and not any(one.interactive for one in self._waiting)

    def _batch_slots(self) -> int:
        """Batch frames at once: all slots, less two for each interactive frame, so that it has a core to itself."""
        if not self._at_work[True]:
            return self.slots
        return max(min(1, self.slots - 1), self.slots - 2 * self._at_work[True])


class StepGate:
    """In a worker: batch frames stand still between their steps while an interactive frame is at work beside them.

    Args:
        longest_s: that a step may be kept waiting: a viewer that plays on and on does not stop a batch for good.
    """

    def __init__(self, longest_s: float = 0.5) -> None:
        self._longest_s = longest_s
        self._changed = threading.Condition()
        self._interactive = 0

    @contextmanager
    def interactive(self) -> Iterator[None]:
        """Held for an interactive frame."""
        with self._changed:
            self._interactive += 1
        try:
            yield
        finally:
            with self._changed:
                self._interactive -= 1
                self._changed.notify_all()

    def step(self) -> None:
        """Called by a batch frame before each long step."""
        with self._changed:
            self._changed.wait_for(lambda: not self._interactive, self._longest_s)
