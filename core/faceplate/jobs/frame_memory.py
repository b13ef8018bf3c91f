"""What is done when memory runs out in a frame: make room, do it again alone, then in tiles. The command line and the
server's workers do it alike.
"""

from __future__ import annotations

import dataclasses
import gc
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from ..errors import DeviceMemoryError
from ..models.memory import is_out_of_memory
from ..pipeline import FacePipeline
from ..swap.tiles import in_parts
from .manifest import FrameRecord

log = logging.getLogger(__name__)

T = TypeVar("T")
_TILES = (2, 4)


@dataclass(frozen=True)
class Smaller:
    """How a frame was done in the end.

    Attributes:
        tiles: to a side of each face; 0 for none, with the pixels of any other frame.
    """

    tiles: int

    @property
    def text(self) -> str:
        """For people."""
        if not self.tiles:
            return "memory ran out and the frame was done again alone: the pixels are the same"
        return (
            f"memory ran out and the faces were done in {self.tiles} x {self.tiles} tiles: light and sharpness were "
            "measured by tile, so that the pixels differ from those of a frame with enough memory"
        )

    @property
    def facts(self) -> dict[str, Any]:
        """For the result: how it was done, and what differs."""
        return {"smaller": f"{self.tiles} x {self.tiles} tiles" if self.tiles else "alone", "smaller_note": self.text}

    def marked(self, record: FrameRecord) -> FrameRecord:
        """The record of such a frame. That of tiles has another key: with enough memory the next run makes it anew."""
        key = f"tiles {self.tiles}: {record.key}" if self.tiles else record.key
        return dataclasses.replace(record, key=key, facts={**record.facts, **self.facts})


class FrameMemory:
    """Runs the frames of one process. May be used from several threads.

    Args:
        let_go: of all that is kept warm and can be had again; called where memory runs out.
    """

    def __init__(self, let_go: Callable[[], object]) -> None:
        self._let_go = let_go
        self._changed = threading.Condition()
        self._at_work = 0
        self._alone = 0

    def run(self, attempt: Callable[[FacePipeline], T], pipeline: FacePipeline) -> tuple[T, Smaller | None]:
        """Do a frame; smaller where memory runs out.

        Args:
            attempt: does it, and leaves nothing half done when it raises.
            pipeline: the whole steps.

        Returns:
            (what `attempt` gave, how it was done smaller, None where it was not).

        Raises:
            DeviceMemoryError: there is too little memory even so.
        """
        with self._beside():
            done = _tried(attempt, pipeline)
        if not isinstance(done, _Short):
            return done, None
        log.warning("memory ran out in a frame (%s): it is done again, alone", done.said)
        with self._by_itself():
            for count in (0, *_TILES):
                self._make_room()
                engine = pipeline.engine if count == 0 else in_parts(pipeline.engine, count)
                again = FacePipeline(pipeline.config, engine, pipeline.device)
                done = _tried(attempt, again)
                if not isinstance(done, _Short):
                    return done, Smaller(count)
                log.warning("memory ran out again (%s), %s", done.said, f"{count} tiles" if count else "alone")
            self._make_room()
        raise DeviceMemoryError(
            "there is too little memory for this frame",
            expected=f"room for a face in {_TILES[-1]} x {_TILES[-1]} tiles, one frame at a time",
            found=done.said,
            hint="close other programs that use the device, or work at a smaller size",
        )

    def _make_room(self) -> None:
        self._let_go()
        gc.collect()
        torch.cuda.empty_cache()  # nothing where CUDA is not in use

    @contextmanager
    def _beside(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._alone)
            self._at_work += 1
        try:
            yield
        finally:
            with self._changed:
                self._at_work -= 1
                self._changed.notify_all()

    @contextmanager
    def _by_itself(self) -> Iterator[None]:
        with self._changed:
            self._alone += 1
            self._changed.wait_for(lambda: not self._at_work)
            self._at_work += 1
        try:
            yield
        finally:
            with self._changed:
                self._at_work -= 1
                self._alone -= 1
                self._changed.notify_all()


@dataclass(frozen=True)
class _Short:
    said: str


def _tried(attempt: Callable[[FacePipeline], T], pipeline: FacePipeline) -> T | _Short:
    """The attempt's result, or what was said when memory ran out. The error is let go: it holds the frame's memory."""
    try:
        return attempt(pipeline)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        return _Short(str(error)[:500] or type(error).__name__)
