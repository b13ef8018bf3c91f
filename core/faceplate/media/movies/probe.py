"""Opens a movie file, lists its frames, and reads what it says about itself; decodes nothing but the first frame."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.container import InputContainer
from av.video.stream import VideoStream

from ...errors import ImageReadError, UnsupportedImageError
from ..regular import open_regular

_DEMUXERS = "mov,matroska,mxf,avi,mpegts,webm"
"""No playlists and no scripts: they would open other files."""

_INTRA = frozenset(
    ("prores", "dnxhd", "mjpeg", "png", "v210", "v410", "r210", "rawvideo", "cfhd", "jpeg2000", "utvideo", "magicyuv")
)
"""Codecs whose frames all stand alone, so that the container's index is the list of frames."""

_MOST_PIXELS = 16384 * 16384


@dataclass(frozen=True, slots=True, eq=False)
class FrameIndex:
    """The frames of a movie in the order in which they are shown.

    Attributes:
        pts: time stamp of each, in `time_base`, rising.
        key: for each frame the position in `pts` of the key frame that decoding has to begin with.
        seek: for each frame the time stamp to seek to for that key frame.
        intra: whether every frame is a key frame.
        time_base: seconds.
    """

    pts: Sequence[int]
    key: Sequence[int]
    seek: Sequence[int]
    intra: bool
    time_base: Fraction

    def __len__(self) -> int:
        return len(self.pts)


def open_container(path: Path) -> tuple[InputContainer, VideoStream]:
    """Open a movie and pick its picture stream.

    Raises:
        ImageReadError: absent, empty, damaged, no movie.
        UnsupportedImageError: no moving picture in it.
    """
    check_file(path)
    try:
        # As a path below the root, so that no name is taken for a protocol.
        container = av.open(
            f"file:{os.path.abspath(path)}",
            container_options={"format_whitelist": _DEMUXERS, "protocol_whitelist": "file"},
            metadata_errors="replace",
        )
    except av.FFmpegError as error:
        raise damaged(path, error) from error
    streams = [stream for stream in container.streams.video if not _is_still(stream)]
    if not streams:
        kinds = ", ".join(sorted({stream.type for stream in container.streams})) or "nothing"
        container.close()
        raise UnsupportedImageError(
            f"{path} has no moving picture", expected="a video stream", found=kinds, hint="give the picture's file"
        )
    return container, streams[0]


def check_file(path: Path) -> None:
    """Refuse what is no file, or an empty one.

    Raises:
        ImageReadError: see above.
    """
    try:
        with open_regular(path) as file:
            empty = not file.read(1)
    except OSError as error:
        raise ImageReadError(f"cannot read {path}", found=error.strerror, hint="check the path") from error
    if empty:
        raise ImageReadError(f"{path} is empty", expected="a movie", hint="copy or render it again")


def _is_still(stream: VideoStream) -> bool:
    return bool(stream.disposition & av.stream.Disposition.attached_pic)


def damaged(path: Path, error: Exception | str) -> ImageReadError:
    """The error for a movie that FFmpeg cannot make sense of."""
    found = error if isinstance(error, str) else getattr(error, "strerror", None) or str(error)
    return ImageReadError(
        f"cannot read the movie {path}", found=found, hint="check that it plays to its end; copy or render it again"
    )


def index_frames(path: Path, container: InputContainer, stream: VideoStream) -> FrameIndex:
    """List the frames.

    Intra codecs in QuickTime files are listed from the file's own index; other files are read through once, without
    decoding.

    Raises:
        ImageReadError: cut off, no frame, or frames without time stamps.
    """
    packets = _from_table(path, stream)
    if packets is None:
        packets = _from_packets(path, container, stream)
    if len(packets) == 0:
        raise damaged(path, "no frame in it")
    _check_whole(path, stream, packets)
    shown = packets[packets["discard"] == 0]
    shown = shown[np.argsort(shown["pts"], kind="stable")]
    if len(shown) == 0 or np.any(np.diff(shown["pts"]) <= 0):
        raise damaged(path, "frames without a time of their own")
    keys = np.sort(packets[packets["key"] != 0], order="pts")
    if len(keys) == 0:
        raise damaged(path, "no key frame")
    last_key = np.searchsorted(keys["pts"], shown["pts"], "right") - 1
    shown, last_key = shown[last_key >= 0], last_key[last_key >= 0]
    assert stream.time_base is not None
    return FrameIndex(
        pts=shown["pts"].tolist(),
        key=np.maximum(0, np.searchsorted(shown["pts"], keys["pts"][last_key])).tolist(),
        seek=keys["dts"][last_key].tolist(),
        intra=bool(np.all(packets["key"] != 0)),
        time_base=stream.time_base,
    )


_PACKET = np.dtype([("pts", "i8"), ("dts", "i8"), ("key", "i1"), ("discard", "i1"), ("end", "i8")])


def _from_table(path: Path, stream: VideoStream) -> Any:
    """The packets by the container's index; None where it does not say all."""
    mov = stream.container.format.name.startswith("mov")
    entries = stream.index_entries
    if not (mov and stream.codec_context.name in _INTRA and len(entries) == stream.frames > 0):
        return None
    size = path.stat().st_size
    found = np.empty(len(entries), _PACKET)
    for at, entry in enumerate(entries):
        if not entry.is_keyframe:
            return None
        if entry.pos + entry.size > size:
            raise _cut_off(path, at, stream.frames)
        found[at] = entry.timestamp, entry.timestamp, 1, entry.is_discard, entry.timestamp
    return found


def _cut_off(path: Path, there: int, wanted: object) -> ImageReadError:
    return ImageReadError(
        f"the movie {path} is cut off",
        expected=f"{wanted} frames",
        found=f"{there}",
        hint="copy the file again, or render it again",
    )


def _from_packets(path: Path, container: InputContainer, stream: VideoStream) -> Any:
    """The packets by reading them all."""
    found: list[tuple[int, int, bool, bool, int]] = []
    try:
        for packet in container.demux(stream):
            if packet.size == 0:
                continue  # the one that tells a decoder to finish
            if packet.is_corrupt:
                raise _cut_off(path, len(found), stream.frames or "whole")
            pts, dts = packet.pts, packet.dts
            if pts is None:
                raise damaged(path, "frames without time stamps: rewrap the movie as .mov or .mkv")
            found.append(
                (pts, pts if dts is None else dts, packet.is_keyframe, packet.is_discard, pts + (packet.duration or 0))
            )
    except av.FFmpegError as error:
        raise damaged(path, error) from error
    return np.array(found, _PACKET)


def _check_whole(path: Path, stream: VideoStream, packets: Any) -> None:
    """Refuse a file with fewer frames than it says: the rest was cut off."""
    if stream.container.format.name.startswith("mov") and len(packets) < stream.frames:
        raise _cut_off(path, len(packets), stream.frames)
    told = stream.metadata.get("DURATION", "")
    rate, base = stream.average_rate, stream.time_base
    if told and rate and base and float(packets["end"].max() * base) < _seconds(told) - 0.5 / float(rate):
        raise _cut_off(path, len(packets), f"about {round(_seconds(told) * float(rate))}")


def _seconds(text: str) -> float:
    """Of "00:00:01.250000000"; 0 where it is something else."""
    try:
        hours, minutes, seconds = text.split(":")
        return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
    except ValueError:
        return 0.0


def chroma_siting(stream: VideoStream) -> tuple[float, float] | None:
    """Where the stream says that chroma lies, as `planes.Coding.siting`; None where it says nothing.

    PyAV does not show that tag. A Matroska header does, so one is written in memory from the stream and read.
    """
    memory = BytesIO()
    try:
        with av.open(memory, "w", format="matroska") as header:
            header.add_stream_from_template(stream)
            header.start_encoding()
            written = memory.getvalue()
    except (av.FFmpegError, ValueError):
        return None  # a codec that Matroska does not hold
    across, down = (_ebml_number(written, key) for key in (b"\x55\xb7", b"\x55\xb8"))
    if across not in (1, 2) or down not in (1, 2):
        return None
    return (across - 1) / 2, (down - 1) / 2


def _ebml_number(data: bytes, key: bytes) -> int:
    """The one-byte number of an element inside Segment, Tracks, TrackEntry, Video, Colour; 0 where it is absent."""
    for parent in (b"\x18\x53\x80\x67", b"\x16\x54\xae\x6b", b"\xae", b"\xe0", b"\x55\xb0"):
        data = _ebml_children(data).get(parent, b"")
    value = _ebml_children(data).get(key, b"")
    return value[0] if len(value) == 1 else 0


def _ebml_children(data: bytes) -> Mapping[bytes, bytes]:
    """The first element of each kind in a run of EBML elements (RFC 8794)."""
    found: dict[bytes, bytes] = {}
    at = 0
    while at < len(data) and data[at]:
        key_size = 9 - data[at].bit_length()
        key = data[at : at + key_size]
        at += key_size
        if at >= len(data) or not data[at]:
            break
        size_size = 9 - data[at].bit_length()
        size = int.from_bytes(data[at : at + size_size], "big") - (1 << (7 * size_size))
        at += size_size
        if size == (1 << (7 * size_size)) - 1:  # "unknown": to the end
            size = len(data) - at
        found.setdefault(key, data[at : at + size])
        at += size
    return found
