"""Faces of several frames in one batch: what threads ask for while a batch runs is the next batch.

No one waits for a batch to fill up. A thread that finds the engine free takes all that is waiting, its own with it, and
runs them; the others sleep until theirs is done. On a GPU each thread has a stream of its own: events order what one
stream made and another reads, and neither the host nor the device waits for more than that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .base import FaceCrop, FaceResult

Run = Callable[[Sequence[FaceCrop], Sequence[Any]], list[FaceResult]]


class _Request:
    """One thread's faces."""

    def __init__(self, crops: Sequence[FaceCrop], prepared: Sequence[Any], device: torch.device) -> None:
        self.crops = crops
        self.prepared = prepared
        self.device = device
        self.ready = _recorded(device)
        self.done: Any = None
        self.results: list[FaceResult] | None = None
        self.error: BaseException | None = None


class Together:
    """Runs an engine for several threads.

    Args:
        run: the engine's `swap_together`.
        device: where it works.
        most: faces in one batch.
    """

    def __init__(self, run: Run, device: torch.device, most: int = 32) -> None:
        self._run = run
        self._device = device
        self._most = most
        self._waiting: list[_Request] = []
        self._busy = False
        self._changed = threading.Condition()

    def __call__(self, crops: Sequence[FaceCrop], prepared: Sequence[Any]) -> list[FaceResult]:
        """The results of these crops, in their order; the numbers are those of a batch of their own.

        Raises:
            FaceplateError: as the engine does; where a batch of several fails, each is tried alone, so that one
                frame's fault is that frame's.
        """
        mine = _Request(crops, prepared, self._device)
        with self._changed:
            self._waiting.append(mine)
            while self._busy and mine.results is None and mine.error is None:
                self._changed.wait()
            batch = [] if mine.results is not None or mine.error is not None else self._taken(mine)
        if batch:
            try:
                self._do(batch)
            finally:
                with self._changed:
                    self._busy = False
                    self._changed.notify_all()
        if mine.error is not None:
            raise mine.error
        assert mine.results is not None
        _awaited(mine.done, self._device)
        return mine.results

    def _taken(self, mine: _Request) -> list[_Request]:
        """This thread's request and others that wait, up to the most; the engine is this thread's now."""
        self._busy = True
        batch, count = [mine], len(mine.crops)
        for other in self._waiting:
            if other is not mine and count + len(other.crops) <= self._most:
                batch.append(other)
                count += len(other.crops)
        self._waiting = [one for one in self._waiting if one not in batch]
        return batch

    def _do(self, batch: list[_Request]) -> None:
        try:
            self._do_all(batch)
        except Exception as error:
            if len(batch) == 1:
                batch[0].error = error
                return
            for one in batch:
                self._do([one])

    def _do_all(self, batch: list[_Request]) -> None:
        for one in batch:
            _awaited(one.ready, self._device)
        crops = [crop for one in batch for crop in one.crops]
        results = self._run(crops, [who for one in batch for who in one.prepared])
        done, first = _recorded(self._device), 0
        for one in batch:
            one.done, one.results = done, results[first : first + len(one.crops)]
            first += len(one.crops)
        _kept_until_used(batch, self._device)


def _recorded(device: torch.device) -> Any:
    """An event after all that the current stream has been told so far; None where there are no streams."""
    if device.type != "cuda":
        return None
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    event.record(torch.cuda.current_stream(device))
    return event


def _awaited(event: Any, device: torch.device) -> None:
    if event is not None:
        torch.cuda.current_stream(device).wait_event(event)


def _kept_until_used(batch: Sequence[_Request], device: torch.device) -> None:
    """Tell the allocator that crops of other streams are read on this one, so that their memory is not given away."""
    if device.type == "cuda":
        stream = torch.cuda.current_stream(device)
        for one in batch:
            for crop in one.crops:
                crop.view.record_stream(stream)
