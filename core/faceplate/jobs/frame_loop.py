"""Runs the frames of a job that are missing or stale, several at once, and keeps the manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any, Protocol

from ..errors import DeviceMemoryError, FaceplateError
from ..job import FINISHED, FrameState
from ..plate import FrameSource
from .cancel import CancelToken
from .events import Emit, note, progress, warning
from .frame_memory import FrameMemory
from .frames import FrameWork
from .manifest import FrameRecord, Manifest
from .spec import Workbench

_MOSTLY_COVERED = 0.5


class Watch(Protocol):
    """Who uses frames while others are still made."""

    def begin(self, todo: Sequence[FrameSource]) -> None:
        """Told once, of the frames that will be made; those of the run that are not among them are there."""
        ...

    def room(self) -> None:
        """Returns when one more frame may be begun."""
        ...

    def seen(self, record: FrameRecord) -> None:
        """Told of each frame as soon as it has ended, from the thread that made it."""
        ...


class FrameLoop:
    """The frames of one run.

    Args:
        bench: threads, turns, hands.
        emit: takes events.
        cancel: asked between frames.
        work: what the frames have in common.
        manifest: of the job; other runs may add to it meanwhile.
        output: what a frame's event names where frames are no files of their own.
        watch: told of frames as they end, None for nobody.
    """

    def __init__(
        self,
        bench: Workbench,
        emit: Emit,
        cancel: CancelToken,
        work: FrameWork,
        manifest: Manifest,
        output: str | None = None,
        watch: Watch | None = None,
    ) -> None:
        self._bench = bench
        self._emit = emit
        self._cancel = cancel
        self._work = work
        self._manifest = manifest
        self._output = output
        self._watch = watch
        self._memory = FrameMemory(self._let_go)

    def run(self, sources: Sequence[FrameSource]) -> Counter[str]:
        """Do what is missing or stale; counts by state, kept ones apart.

        Raises:
            OutputError, ResourceError: as `FrameWork.run`.
        """
        counts: Counter[str] = Counter()
        todo = []
        for source in sources:
            if self._cancel.is_cancelled:
                break
            if source.path is not None and self._is_current(source):
                counts["kept"] += 1
            else:
                todo.append(source)
        if counts["kept"]:
            self._emit(note(f"{counts['kept']} frames are done already"))
        if self._watch is not None:
            self._watch.begin(todo)
        for done, record in enumerate(self._results(todo), start=1):
            if record is self._manifest.records.get(record.frame):
                counts["kept"] += 1
            else:
                self._manifest.add(record)
                counts[record.state.value] += 1
            self._tell(record)
            self._emit(progress("swap", done, len(todo)))
        return counts

    def _is_current(self, source: FrameSource) -> bool:
        try:
            return self._work.is_current(source, self._manifest.records.get(source.number))
        except FaceplateError:
            return False  # it is tried again, and fails with its reason

    def _results(self, todo: Sequence[FrameSource]) -> Iterator[FrameRecord]:
        """Records as frames finish, those that another run finished meanwhile as they are in the manifest.

        At most `threads` frames are in memory; a cancelled run finishes those it began.
        """
        threads, shared = self._bench.threads, False
        waiting = iter(todo)
        with ThreadPoolExecutor(threads, thread_name_prefix="frame") as pool:
            running: set[Future[FrameRecord | None]] = set()
            while True:
                while len(running) < threads and not self._cancel.is_cancelled:
                    source = next(waiting, None)
                    if source is None:
                        break
                    shared = self._manifest.catch_up() or shared
                    if shared and source.path is not None and self._is_current(source):
                        yield self._seen(self._manifest.records[source.number])
                        continue
                    if self._watch is not None:
                        self._watch.room()
                    running.add(pool.submit(self._in_turn, source))
                if not running:
                    return
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    record = future.result()
                    if record is not None:
                        yield record

    def _in_turn(self, source: FrameSource) -> FrameRecord | None:
        """One frame, None where the job was cancelled before its turn came."""
        with self._bench.turn():
            if self._cancel.is_cancelled:
                return None
            hands = self._bench.hands
            record = self._frame(source) if hands is None else hands.frame(self._work, source)
        return self._seen(record)

    def _seen(self, record: FrameRecord) -> FrameRecord:
        if self._watch is not None:
            self._watch.seen(record)
        return record

    def _frame(self, source: FrameSource) -> FrameRecord:
        """A frame in this process, smaller where memory runs out; where that is not enough it fails alone."""
        work = self._work
        try:
            record, smaller = self._memory.run(
                lambda pipeline: replace(work, pipeline=pipeline).run(source), work.pipeline
            )
        except DeviceMemoryError as error:
            return FrameRecord(source.number, FrameState.FAILED, key="", error=error.to_dict())
        if smaller is None:
            return record
        self._emit(warning(f"frame {source.number}: {smaller.text}"))
        return smaller.marked(record)

    def _let_go(self) -> None:
        for net in self._bench.nets.loaded:
            net.unload()  # its next use loads it again

    def _tell(self, record: FrameRecord) -> None:
        event: dict[str, Any] = {
            "event": "frame",
            "frame": record.frame,
            "state": record.state.value,
            "seconds": round(record.seconds.get("frame", 0.0), 4),
        }
        if record.state in FINISHED:
            event["output"] = self._output or str(self._work.outputs[record.frame])
        if record.error:
            event["error"] = dict(record.error)
        self._emit(event)
        for face in record.facts.get("faces", ()):
            if face["occluded"] > _MOSTLY_COVERED:
                self._emit(warning(_covered(record.frame, face)))


def _covered(frame: int, face: Mapping[str, Any]) -> str:
    return (
        f"frame {frame}, track {face['track']}: {face['occluded']:.0%} of the face counts as covered and stays the "
        "plate; if nothing is in front of it, check the landmarks or run with --set occluders=off"
    )
