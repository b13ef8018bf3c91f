"""The worker processes of a server, one a device or several on a CPU: started, asked, replaced when they die."""

from __future__ import annotations

import itertools
import logging
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

from faceplate import errors
from faceplate.errors import Cancelled, DeviceError, FaceplateError, ResourceError
from faceplate_client import wire

from ..ask import rebuilt
from ..errors import Told
from ..rings import Key
from .members import CrewPlan, Member
from .pipe import Pipe, PipeClosed
from .start import Process, start_worker

log = logging.getLogger(__name__)

_AGAIN_S = (0.5, 2.0, 8.0, 30.0)
"""Seconds before a worker that could not start is tried again."""
_POLL_S = 1.0

On = Callable[[Mapping[str, Any]], None]


class WorkerDied(DeviceError):
    """A worker process ended in mid-frame: killed, or by a fault in native code or of the device."""


class Crew:
    """The workers. May be used from several threads.

    Args:
        plan: what workers there are.
        ahead: processes of its command that were started already; they are taken out of the list.
    """

    def __init__(self, plan: CrewPlan, ahead: list[Process] | None = None) -> None:
        self.plan = plan
        self._ahead = [] if ahead is None else ahead
        self._changed = threading.Condition()
        self._members: dict[int, Member] = {}
        self._numbers = itertools.count(1)
        self._failures = dict.fromkeys(range(len(plan.devices)), 0)
        self._started = False
        self._closing = False
        self.deaths = 0

    # Life

    def start(self) -> None:
        """Start all workers and wait until they are ready.

        Raises:
            FaceplateError: one of them cannot work, and says why.
        """
        for number in range(len(self.plan.devices)):
            self._spawn(number)
        with self._changed:
            self._changed.wait_for(
                lambda: self._closing or all(one.state != "starting" for one in self._members.values())
            )
            if self._closing:
                raise Cancelled("the server was stopped while it started")
            failed = next((one for one in self._members.values() if one.state == "gone"), None)
            self._started = failed is None
        if failed is not None:
            self.close(0.0)
            raise failed.failure or ResourceError(
                "a worker process ended while it started", hint="see the server's log"
            )

    def _spawn(self, number: int) -> None:
        plan = self.plan
        process = self._ahead.pop() if self._ahead else start_worker(plan.command)
        assert process.stdin is not None
        assert process.stdout is not None
        member = Member(number, plan.devices[number], process, Pipe(process.stdout, process.stdin))
        with self._changed:
            self._members[number] = member
        start = {
            "do": "start",
            "device": member.asked,
            "threads": plan.threads_each,
            "nice": plan.nice,
            "shots": plan.shots,
            "warm_bytes": plan.warm_bytes,
            "roots": [str(root) for root in plan.roots],
            "folder": plan.folder,
            "limits": plan.limits,
        }
        threading.Thread(target=self._listen, args=(member, start), name=f"worker {number}", daemon=True).start()

    def _listen(self, member: Member, start: Mapping[str, Any]) -> None:
        try:
            member.pipe.send(start)
            while True:
                self._hear(member, member.pipe.receive())
        except PipeClosed:
            pass  # the process has ended, or is about to
        except Exception:
            log.exception("a worker said what cannot be understood")
            member.process.kill()
        code = member.process.wait()
        with self._changed:
            was_ready = member.state == "ready"
            member.state = "gone"
            waiting = list(member.waiting.values())
            self._changed.notify_all()
        for queue, _ in waiting:
            queue.put(None)
        if not self._closing:
            self.deaths += was_ready
            log.error("worker %d on %s ended: %s", member.number, member.asked, _how(code))
            self._replace(member.number, was_ready=was_ready)

    def _replace(self, number: int, *, was_ready: bool) -> None:
        """Start another in place of one that is gone; at once, or after a while where that did not come up either."""
        if not self._started:
            return  # `start` tells what is wrong
        if was_ready:
            self._failures[number] = 0
        else:
            time.sleep(_AGAIN_S[min(self._failures[number], len(_AGAIN_S) - 1)])
            self._failures[number] += 1
        if not self._closing:
            self._spawn(number)

    def close(self, patience_s: float) -> None:
        """End all workers: those that are still at work after that time are killed."""
        self._closing = True
        with self._changed:
            members = list(self._members.values())
            self._changed.notify_all()
        for member in members:
            self._tell(member, {"do": "stop"})
        end = time.monotonic() + patience_s
        for member in members:
            try:
                member.process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                member.process.kill()
                member.process.wait()

    @property
    def members(self) -> tuple[Member, ...]:
        """The workers as they are."""
        with self._changed:
            return tuple(self._members[number] for number in sorted(self._members))

    @property
    def threads(self) -> int:
        """Frames at once, of all workers."""
        return sum(one.threads for one in self.members)

    # Asking

    def ask(
        self,
        message: Mapping[str, Any],
        tag: object,
        *,
        lane: str,
        given_up: Callable[[], bool],
        on: On,
        again: Callable[[], bool] = lambda: True,
    ) -> Any:
        """Have a worker do something, and wait for it. When its process dies, once more, alone on a worker: what killed
        it shall not take others along.

        Args:
            message: what to do.
            tag: what `cancel` names.
            lane: "fast", "slow" or "shots".
            given_up: whether nobody wants it any more.
            on: takes what it says meanwhile: event, note, turn.
            again: called before the second time; False where that cannot be done.

        Raises:
            Cancelled: given up.
            WorkerDied: twice, or once where it cannot be done again.
            FaceplateError, Told: what went wrong with it.
            DeviceError: no worker can be started any more.
        """
        died: list[str] = []
        while True:
            with self._held(given_up, lane, alone=bool(died) and lane != "shots") as member:
                try:
                    return self._call(member, {**message, "lane": lane}, tag, on)
                except _Gone:
                    died.append(_how(member.process.wait()))
            log.warning("a worker died with %s in hand: %s", message["do"], died[-1])
            if len(died) > 1 or not again():
                raise WorkerDied(
                    "the worker process died in this frame" + (", twice" if len(died) > 1 else ""),
                    found="; ".join(died),
                    hint="the server goes on with another worker, and its log has more; try this frame again",
                )

    def cancel(self, tag: object) -> None:
        """Stop what was asked under a tag, within its frame."""
        with self._changed:
            found = [
                (member, number)
                for member in self._members.values()
                for number, (_, other) in member.waiting.items()
                if other is tag
            ]
            self._changed.notify_all()
        for member, number in found:
            self._tell(member, {"do": "cancel", "n": number})

    def let_go(self, rings: Sequence[Key]) -> None:
        """Rings that are no more."""
        for member in self.members:
            if member.state == "ready":
                self._tell(member, {"do": "let_go", "rings": list(rings)})

    def _tell(self, member: Member, message: Mapping[str, Any]) -> None:
        try:
            member.pipe.send(message)
        except PipeClosed:
            log.info("worker %d is not there any more", member.number)

    def _call(self, member: Member, message: Mapping[str, Any], tag: object, on: On) -> Any:
        number = next(self._numbers)
        queue: SimpleQueue[Any] = SimpleQueue()
        with self._changed:
            if member.state == "gone":
                raise _Gone
            member.waiting[number] = queue, tag
        try:
            member.pipe.send({**message, "n": number})
            while True:
                heard = queue.get()
                if heard is None:
                    raise _Gone
                if heard["say"] == "end":
                    return _value(heard)
                on(heard)
                if heard["say"] == "turn":
                    member.pipe.send({"do": "go", "n": number})
        except PipeClosed as error:
            raise _Gone from error
        finally:
            with self._changed:
                del member.waiting[number]

    @contextmanager
    def _held(self, given_up: Callable[[], bool], lane: str, *, alone: bool) -> Iterator[Member]:
        count = int(
            lane != "shots"
        )  # an analysis takes minutes, and a frame that has to be alone waits for frames only
        member = self._take(given_up, count, alone=alone)
        try:
            yield member
        finally:
            with self._changed:
                member.at_work -= count
                if alone:
                    member.reserved = False
                self._changed.notify_all()

    def _take(self, given_up: Callable[[], bool], count: int, *, alone: bool) -> Member:
        """The worker with the least to do; with `alone` one that has nothing, kept from others until it is free."""
        mine: Member | None = None
        with self._changed:
            while True:
                if given_up() or self._closing:
                    if mine is not None:
                        mine.reserved = False
                        self._changed.notify_all()
                    raise Cancelled("stopped")
                ready = [one for one in self._members.values() if one.state == "ready"]
                if mine is None or mine.state != "ready":
                    free = [one for one in ready if not one.reserved]
                    mine = min(free, key=lambda one: one.at_work / one.threads, default=None)
                    if mine is not None and alone:
                        mine.reserved = True
                if mine is not None and (not alone or mine.at_work == 0):
                    mine.at_work += count
                    mine.taken += 1
                    return mine
                failures = [one.failure for one in self._members.values() if one.failure is not None]
                if not ready and len(failures) == len(self._members):
                    raise failures[0]
                self._changed.wait(_POLL_S)

    # Hearing

    def _hear(self, member: Member, message: Mapping[str, Any]) -> None:
        match message["say"]:
            case "log":
                logging.getLogger(message["name"]).log(
                    message["level"], "worker %d: %s", member.number, message["text"]
                )
            case "failed":
                member.failure = rebuilt(message["failure"])
            case "ready":
                with self._changed:
                    member.device, member.threads = message["device"], message["threads"]
                    member.facts, member.state = message["state"], "ready"
                    self._failures[member.number] = 0
                    self._changed.notify_all()
            case _:
                member.facts = message.get("state", member.facts)
                with self._changed:
                    found = member.waiting.get(message["n"])
                if found is not None:
                    found[0].put(message)


class _Gone(Exception):
    """The worker's process has ended."""


def _value(end: Mapping[str, Any]) -> Any:
    if end.get("cancelled"):
        raise Cancelled("stopped")
    failure: wire.Failure | None = end.get("failure")
    if failure is None:
        return end["value"]
    kind = getattr(errors, failure.type, None)
    raise rebuilt(failure) if isinstance(kind, type) and issubclass(kind, FaceplateError) else Told(failure)


def _how(code: int) -> str:
    """How a process ended, for people."""
    return f"exit code {code}" if code >= 0 else f"signal {-code}"
