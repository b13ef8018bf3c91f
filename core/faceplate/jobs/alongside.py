"""A movie encoded while its frames are still made: what was decoded for a frame is at hand when it is encoded.

The encoder takes frames in their order, and frames are not made much further than it has come, so that the decoder's
last pictures are the ones that it asks for. Where a frame fails the movie is given up; what then becomes of it is
decided when all frames have ended, as for a run that found its frames made.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import Cancelled
from ..job import FINISHED
from ..plate import FrameSource
from .cancel import CancelToken
from .events import Emit, progress
from .manifest import FrameRecord

_AHEAD = 6
"""Frames that may be begun beyond the one at the encoder."""
_POLL_S = 0.2

Ready = Callable[[int], None]


class _GivenUp(Exception):
    """A frame is lacking, or the job ended."""


_LEFT_TO_THE_END = (_GivenUp, Cancelled, BlockingIOError)
"""The last where another run makes this movie."""


class MovieAlongside:
    """The movie of one run. A context manager: what was not finished inside is given up.

    Args:
        assemble: makes the movie, given who tells of patches and who takes events.
        shown: frame numbers of the movie in their order.
        cancel: of the job.
    """

    def __init__(self, assemble: Callable[[Ready, Emit], None], shown: Sequence[int], cancel: CancelToken) -> None:
        self._assemble = assemble
        self._shown = tuple(shown)
        self._cancel = cancel
        self._changed = threading.Condition()
        self._waited_for: set[int] = set()
        self._needs: list[int] = []
        self._begun = self._done = 0
        self._ended = self._given_up = False
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None

    def begin(self, todo: Sequence[FrameSource]) -> None:
        """See `frame_loop.Watch`. Where nothing is to be made, the movie may be made already, and is left to others."""
        if not todo:
            return
        self._waited_for = {source.number for source in todo}
        order = {source.number: index for index, source in enumerate(todo)}
        self._needs = [order.get(number, -1) for number in self._shown]
        self._thread = threading.Thread(target=self._run, name="movie")
        self._thread.start()

    def room(self) -> None:
        """See `frame_loop.Watch`."""
        with self._changed:
            while not self._is_over and self._begun >= self._next_needed() + _AHEAD:
                self._changed.wait(_POLL_S)  # nobody tells of a cancel
            self._begun += 1

    def seen(self, record: FrameRecord) -> None:
        """See `frame_loop.Watch`."""
        if record.state not in FINISHED:
            self._give_up()
            return
        with self._changed:
            self._waited_for.discard(record.frame)
            self._changed.notify_all()

    def finish(self, emit: Emit) -> bool:
        """Wait for the encoder; whether the movie is made.

        Raises:
            OutputError: it cannot be written.
            ImageReadError: a frame of the plate cannot be read.
        """
        if self._thread is None:
            return False
        told = -1
        while self._thread.is_alive():
            self._thread.join(_POLL_S)
            if told < self._done < len(self._shown) and not self._is_over:
                told = self._done
                emit(progress("encode", told, len(self._shown)))
        if self._error is not None and not isinstance(self._error, _LEFT_TO_THE_END):
            raise self._error
        if self._error is None:
            emit(progress("encode", len(self._shown), len(self._shown)))
        return self._error is None

    def __enter__(self) -> MovieAlongside:
        return self

    def __exit__(self, *_: object) -> None:
        self._give_up()
        if self._thread is not None:
            self._thread.join()

    @property
    def _is_over(self) -> bool:
        return self._ended or self._given_up or self._cancel.is_cancelled

    def _next_needed(self) -> float:
        """Place among the frames to be made of the one that the encoder needs next."""
        return next((place for place in self._needs[self._done :] if place >= 0), math.inf)

    def _give_up(self) -> None:
        with self._changed:
            self._given_up = not self._ended
            self._changed.notify_all()

    def _run(self) -> None:
        try:
            self._assemble(self._ready, self._heard)
        except Exception as error:  # raised again in `finish`
            self._error = error
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _ready(self, number: int) -> None:
        with self._changed:
            while number in self._waited_for:
                if self._given_up or self._cancel.is_cancelled:
                    raise _GivenUp
                self._changed.wait(_POLL_S)

    def _heard(self, event: Mapping[str, Any]) -> None:
        """Of the encoder: how far it has come."""
        if event["event"] != "progress":
            return
        with self._changed:
            self._done = int(event["done"])
            self._changed.notify_all()
