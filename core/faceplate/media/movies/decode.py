"""Exact frames out of a movie, in any order, from several threads, in bounded memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import numpy as np

from ...errors import ImageReadError
from .layout import Layout, Planes, layout_of, read_planes
from .probe import FrameIndex, damaged, open_container

_CURSORS = 4
"""Files open at once for a movie whose frames stand alone."""
_KEPT_BYTES = 384 << 20
_KEPT_LEAST = 4


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A decoded frame.

    Attributes:
        planes: as `layout.read_planes` gives them.
        layout: of the planes.
        rotation: degrees counter-clockwise by which it has to be turned to stand upright.
        mirrored: whether it also has to be mirrored.
        interlaced: two fields in one picture.
        tags: (primaries, transfer, matrix, range) of the frame.
    """

    planes: Planes
    layout: Layout
    rotation: int
    mirrored: bool
    interlaced: bool
    tags: tuple[int, int, int, int]

    @property
    def nbytes(self) -> int:
        """Of all planes."""
        return sum(plane.nbytes for plane in self.planes)


def _picture(frame: Any) -> Picture:
    return Picture(
        read_planes(frame),
        layout_of(frame.format.name),
        frame.rotation,
        _is_mirrored(frame),
        frame.interlaced_frame,
        (frame.color_primaries, frame.color_trc, frame.colorspace, frame.color_range),
    )


def _is_mirrored(frame: Any) -> bool:
    """Whether the display matrix (3 x 3, fixed point, rows first) turns left into right."""
    data = next((bytes(one) for one in frame.side_data if one.type.name == "DISPLAYMATRIX"), None)
    if data is None:
        return False
    a, b, _, c, d = (int(value) for value in np.frombuffer(data, "<i4")[:5])
    return a * d < b * c


class _Cursor:
    """One open file and where its decoder stands. Not for two threads at once."""

    def __init__(self, path: Path, index: FrameIndex, threads: int) -> None:
        self._path = path
        self._index = index
        self._places = {pts: at for at, pts in enumerate(index.pts)}
        self._container, self._stream = open_container(path)
        context = self._stream.codec_context
        context.thread_count = threads
        if threads > 1:
            context.thread_type = "AUTO"
        # Damage is an error, not something to be painted over.
        context.options = {"err_detect": "crccheck+bitstream+buffer+explode"}
        self._frames: Iterator[Any] = iter(())
        self._next = len(index)  # place of the frame that comes next, the length where none does
        self._error: str | None = None

    def read(self, wanted: int) -> Iterator[tuple[int, Picture]]:
        """Frames from where the decoder stands, or from the key frame, up to the wanted one, which is the last.

        Raises:
            ImageReadError: it cannot be decoded; the others still can.
        """
        if not self._index.key[wanted] <= self._next <= wanted:
            self._seek(self._index.seek[wanted])
        found = yield from self._until(wanted)
        if not found and self._error is None:
            self._seek(min(self._index.seek))  # the container's index lied: once more from the very beginning
            found = yield from self._until(wanted)
        if not found:
            raise ImageReadError(
                f"frame {wanted + 1} of the movie {self._path} cannot be decoded",
                found=self._error or "the decoder gives no picture for it",
                hint="copy the file again, or leave the frame out with --frames",
            )

    def _until(self, wanted: int) -> Generator[tuple[int, Picture], None, bool]:
        first = self._index.key[wanted]
        for frame in self._frames:
            place = self._places.get(frame.pts, -1)
            if place < 0:
                continue
            self._next = place + 1
            if place > wanted:
                return False
            if place >= first:
                yield place, _picture(frame)
            if place == wanted:
                return True
        return False

    def _seek(self, stamp: int) -> None:
        self._next = len(self._index)
        self._error = None
        try:
            self._container.seek(stamp, stream=self._stream, backward=True)
        except av.FFmpegError as error:
            raise damaged(self._path, error) from error
        self._next = -1
        self._frames = self._decode()

    def _decode(self) -> Iterator[Any]:
        """Sound frames as they come; what was decoded after damage is left out up to the next key frame."""
        sound: set[int | None] = set()
        clean = False
        packets = self._container.demux(self._stream)
        while True:
            try:
                packet = next(packets, None)
            except av.FFmpegError as error:
                self._error = error.strerror or str(error)
                return
            if packet is None:
                return
            clean = clean or packet.is_keyframe
            if clean:
                sound.add(packet.pts)
            try:
                frames = packet.decode()
            except av.FFmpegError as error:
                self._error = error.strerror or str(error)
                sound.discard(packet.pts)
                clean, frames = False, []
            for frame in frames:
                if frame.is_corrupt:
                    self._error = "damaged data"
                elif frame.pts in sound:
                    sound.discard(frame.pts)
                    yield frame


class Decoder:
    """Gives any frame of a movie. May be used from several threads.

    Frames that stand alone are decoded by up to four open files side by side; where frames refer to others one file is
    decoded forwards. The last frames are kept: workers ask for neighbours in a loose order, and a frame that was worked
    on is asked for again when it is encoded.

    Args:
        path: the movie.
        index: its frames.
        threads: of FFmpeg, where frames refer to others.
    """

    def __init__(self, path: Path, index: FrameIndex, threads: int = 2) -> None:
        self._path = path
        self._index = index
        self._threads = 1 if index.intra else threads
        self._room = threading.Semaphore(_CURSORS if index.intra else 1)
        self._lock = threading.Lock()
        self._idle: list[_Cursor] = []
        self._kept: OrderedDict[int, Picture] = OrderedDict()

    def picture(self, place: int) -> Picture:
        """The frame at a place in the index.

        Raises:
            ImageReadError: damaged.
            UnsupportedImageError: a pixel format that is not read.
        """
        kept = self._look(place)
        if kept is not None:
            return kept
        with self._cursor() as cursor:
            kept = self._look(place)  # another thread may have come by
            if kept is not None:
                return kept
            for at, picture in cursor.read(place):
                self._keep(at, picture)
            return picture

    def _look(self, place: int) -> Picture | None:
        with self._lock:
            return self._kept.get(place)

    def _keep(self, place: int, picture: Picture) -> None:
        with self._lock:
            self._kept[place] = picture
            self._kept.move_to_end(place)
            most = max(_KEPT_LEAST, _KEPT_BYTES // max(1, picture.nbytes))
            while len(self._kept) > most:
                self._kept.popitem(last=False)

    @contextmanager
    def _cursor(self) -> Iterator[_Cursor]:
        with self._room:
            with self._lock:
                cursor = self._idle.pop() if self._idle else None
            cursor = cursor or _Cursor(self._path, self._index, self._threads)
            try:
                yield cursor
            finally:
                with self._lock:
                    self._idle.append(cursor)
