"""The sound of a movie, copied packet by packet into another: never decoded, so never changed."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av

from ...errors import OutputError
from .probe import damaged, open_container


class SoundCopy:
    """Copies the audio streams of a file, and of a part of it those packets that begin in it.

    Args:
        path: file to take sound from.
        start: seconds of the first picture of the part, None for all.
        end: seconds at which the last picture ends, None for all.

    Attributes:
        written: bytes by stream, so far.

    Raises:
        ImageReadError: the file cannot be read.
    """

    def __init__(self, path: Path, start: Fraction | None = None, end: Fraction | None = None) -> None:
        self._path = path
        self._container, _ = open_container(path)
        self._streams = list(self._container.streams.audio)
        self._start, self._end = start, end
        self._targets: dict[int, Any] = {}
        self._packets = self._read()
        self._waiting: Any = None
        self.written: dict[int, int] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """What each stream is, e.g. "pcm_s24le 2 channels"."""
        return tuple(f"{one.codec_context.name} {one.codec_context.channels} channels" for one in self._streams)

    def add_to(self, output: Any, target: Path) -> None:
        """Make the streams in an output container.

        Raises:
            OutputError: the kind of file cannot hold this sound.
        """
        for stream in self._streams:
            try:
                made = output.add_stream_from_template(stream)
            except (av.FFmpegError, ValueError) as error:
                raise OutputError(
                    f"a {target.suffix} file cannot hold the plate's sound",
                    found=stream.codec_context.name,
                    hint="write .mov or .mkv",
                ) from error
            made.metadata.update(stream.metadata)
            self._targets[stream.index] = made
            self.written[stream.index] = 0

    def mux(self, output: Any, until: float | None) -> None:
        """Write the packets that begin before a time in seconds of the output; None writes the rest."""
        while True:
            if self._waiting is None:
                self._waiting = next(self._packets, None)
            packet = self._waiting
            if packet is None or (until is not None and _seconds(packet) >= until):
                return
            self._waiting = None
            index = packet.stream.index
            packet.stream = self._targets[index]
            self.written[index] += packet.size
            output.mux(packet)

    def _read(self) -> Iterator[Any]:
        """Packets of the part, in the time of the output."""
        if not self._streams:
            return
        try:
            for packet in self._container.demux(*self._streams):
                if packet.dts is None:
                    continue
                begin = _seconds(packet)
                if self._start is not None and begin < self._start - Fraction(1, 1000):
                    continue
                if self._end is not None and begin >= self._end:
                    continue
                if self._start is not None:
                    shift = round(self._start / packet.time_base)
                    packet.dts -= shift
                    packet.pts = None if packet.pts is None else packet.pts - shift
                yield packet
        except av.FFmpegError as error:
            raise damaged(self._path, error) from error

    def close(self) -> None:
        """Close the file."""
        self._container.close()


def _seconds(packet: Any) -> Fraction:
    return Fraction((packet.dts if packet.pts is None else packet.pts) * packet.time_base)
