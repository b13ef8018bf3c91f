"""Pixels and files on their way between two servers: read in pieces, sent in turn, put together again."""

from __future__ import annotations

import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from faceplate.errors import InputError
from faceplate_client import wire

from . import link
from .packed import chunk_bytes, pack, unpack
from .window import Window

log = logging.getLogger(__name__)

Post = Callable[[list[bytes]], None]
"""Sends a message over the connection; from any thread."""


def _nothing() -> None:
    pass


@dataclass(eq=False)
class Source:
    """What is sent as one stream.

    Attributes:
        head: of its `open`, without the stream's number.
        pieces: of its bytes.
        done: called when the last piece was handed on, or the stream was dropped.
        number: of the stream, once it has begun.
    """

    head: Mapping[str, Any]
    pieces: Iterator[memoryview]
    done: Callable[[], None] = field(default=_nothing)
    number: int = 0


def file_source(job: str, what: str, path: Path, size: int, *, content: str, name: str = "") -> Source:
    """A file, under its hash ("blob") or its path on the client's machine ("file")."""
    head = _head(job, what, size, content=content, path=name)
    return Source(head, _file_pieces(path, size))


def frame_source(
    job: str, place: int, memory: memoryview, stride: int, header: str, done: Callable[[], None] = _nothing
) -> Source:
    """The pixels of a slot."""
    head = _head(job, "frame", memory.nbytes, stride=stride, place=place, header=header)
    step = chunk_bytes(stride)
    return Source(head, (memory[at : at + step] for at in range(0, memory.nbytes, step)), done)


def _head(job: str, what: str, size: int, **given: Any) -> dict[str, Any]:
    named = {"stride": 1, "content": "", "path": "", "place": 0, "header": "", **given}
    return {"job": job, "what": what, "size": size, "hash": named.pop("content"), **named}


def _file_pieces(path: Path, size: int) -> Iterator[memoryview]:
    step, left = chunk_bytes(1), size
    with path.open("rb") as file:
        while left > 0:
            piece = file.read(min(step, left))
            if not piece:
                raise InputError(f"{path} became shorter while it was sent", hint="send the job again")
            left -= len(piece)
            yield memoryview(piece)


class Outbox:
    """Sends messages and streams of many jobs over one connection: urgent jobs first, others piece by piece in turn.

    What one job sends keeps its order. A thread of its own packs and sends, and waits for the window.

    Args:
        post: sends a message.
        failed: told when a job's file cannot be read; its other streams are dropped.
        name: of the thread.
    """

    def __init__(self, post: Post, failed: Callable[[str, BaseException], None], name: str) -> None:
        self.window = Window()
        self._post = post
        self._failed = failed
        self._lanes: dict[str, deque[Source | list[bytes]]] = {}
        self._urgent: set[str] = set()
        self._streams = itertools.count(1)
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, job: str, item: Source | list[bytes], *, urgent: bool) -> None:
        """Queue a stream or a message behind what the job has queued already."""
        with self._changed:
            if self._closed:
                return
            self._lanes.setdefault(job, deque()).append(item)
            if urgent:
                self._urgent.add(job)
            self._changed.notify()

    def drop(self, job: str) -> None:
        """Send no more of a job; a stream that has begun stays unfinished."""
        with self._changed:
            lane = self._lanes.pop(job, deque())
            self._urgent.discard(job)
        for item in lane:
            if isinstance(item, Source):
                item.done()

    def close(self) -> None:
        """The connection is gone."""
        with self._changed:
            self._closed = True
            self._changed.notify()
            jobs = list(self._lanes)
        self.window.close()
        for job in jobs:
            self.drop(job)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._lanes)
                if self._closed:
                    return
                job, lane = self._next()
                item = lane[0]
            if isinstance(item, Source):
                try:
                    over = self._send_piece(job, item)
                except (OSError, InputError) as error:
                    self.drop(job)
                    self._failed(job, error)
                    continue
            else:
                self._post(item)
                over = True
            if over:
                self._finished(job, lane, item)

    def _next(self) -> tuple[str, deque[Source | list[bytes]]]:
        """The job whose turn it is, put behind the others."""
        job = next((job for job in self._lanes if job in self._urgent), next(iter(self._lanes)))
        lane = self._lanes.pop(job)
        self._lanes[job] = lane
        return job, lane

    def _finished(self, job: str, lane: deque[Source | list[bytes]], item: Source | list[bytes]) -> None:
        with self._changed:
            mine = self._lanes.get(job) is lane and bool(lane) and lane[0] is item
            if mine:
                lane.popleft()
                if not lane:
                    del self._lanes[job]
                    self._urgent.discard(job)
        if mine and isinstance(item, Source):
            item.done()

    def _send_piece(self, job: str, source: Source) -> bool:
        """Send the next piece of a stream; True when there is no more, or nobody wants it."""
        if not source.number:
            source.number = next(self._streams)
            self._post(link.encode("open", {"stream": source.number, **source.head}))
        piece = next(source.pieces, None)
        if piece is None:
            return True
        code, data = pack(piece, source.head["stride"])
        urgent = job in self._urgent
        if not self.window.take(len(data) + link.PIECE_COST, urgent=urgent, given_up=lambda: job not in self._lanes):
            return True
        self._post(link.encode("data", {"stream": source.number, "code": code, "size": piece.nbytes}, data))
        return False


class Sink:
    """Where a stream is put together: memory, or a file that is whole at the end.

    Args:
        head: of its `open`.
        room: memory for a frame; at least as large as the stream.
        path: of a new file.
    """

    def __init__(self, head: Mapping[str, Any], *, room: memoryview | None = None, path: Path | None = None) -> None:
        self.head = head
        self.path = path
        self.got = 0
        self._room = room
        self._file: BinaryIO | None = None if path is None else path.open("wb")

    @property
    def is_whole(self) -> bool:
        """True when all of the stream is there."""
        return self.got == int(self.head["size"])

    def take(self, code: int, data: bytes, size: int) -> bool:
        """Put the next piece in; True when it was the last.

        Raises:
            wire.Malformed: damaged, or more than the stream has.
            OSError: the disk is full.
        """
        if self.got + size > self.head["size"]:
            raise wire.Malformed("a stream is longer than it says", expected=str(self.head["size"]))
        piece = unpack(code, data, size, self.head["stride"])
        if self._file is not None:
            self._file.write(piece)
        elif self._room is not None:
            self._room[self.got : self.got + size] = piece
        self.got += size
        return self.is_whole

    def finish(self) -> None:
        """The file is whole: close it."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def drop(self) -> None:
        """Nobody wants it any more."""
        self.finish()
        if self.path is not None and not self.is_whole:
            self.path.unlink(missing_ok=True)
