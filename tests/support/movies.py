"""Clips for tests: encoded with PyAV from code values, so that what is in them is known to the code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

from faceplate.colour.spaces import ColourConfig
from faceplate.media.movies.layout import Planes, layout_of, write_planes
from faceplate.media.movies.planes import Coding, from_rgb
from tests.support.plates import moving_plate

BT709 = (1, 1, 1, 1)
"""Tags: primaries, transfer, matrix, range (1 limited, 2 full)."""
UNTAGGED = (2, 2, 2, 0)


@dataclass(frozen=True)
class Clip:
    """How a clip is encoded."""

    codec: str = "ffv1"
    pixels: str = "yuv422p10le"
    width: int = 96
    height: int = 64
    rate: Fraction = Fraction(24)
    time_base: Fraction | None = None
    tags: tuple[int, int, int, int] = BT709
    options: Mapping[str, str] = field(default_factory=dict)
    timecode: str | None = None
    rotation: int = 0
    metadata: Mapping[str, str] = field(default_factory=dict)
    audio: bool = False
    interlaced: bool = False

    def write(self, path: Path, pictures: Sequence[Planes], pts: Sequence[int] | None = None) -> Path:
        """Encode code values; `pts` in the time base, one a frame by default."""
        base = self.time_base or 1 / self.rate
        with av.open(str(path), "w") as container:
            container.metadata.update(self.metadata)
            stream = container.add_stream(self.codec, self.rate, options=dict(self.options))
            stream.width, stream.height, stream.pix_fmt = self.width, self.height, self.pixels
            stream.time_base = base
            context = stream.codec_context
            context.time_base = base
            context.color_primaries, context.color_trc, context.colorspace, context.color_range = self.tags
            if self.interlaced:
                context.field_order = 2
            if self.timecode:
                stream.metadata["timecode"] = self.timecode
            if self.rotation:
                stream.set_display_rotation(self.rotation)
            sound = container.add_stream("pcm_s24le", 48000, layout="stereo") if self.audio else None
            for number, planes in enumerate(pictures):
                frame = self.frame(planes)
                frame.pts, frame.time_base = (number if pts is None else pts[number]), base
                container.mux(stream.encode(frame))
            container.mux(stream.encode())
            if sound is not None:
                for packet in _tone(sound, len(pictures) / float(self.rate)):
                    container.mux(packet)
        return path

    def write_sound(self, path: Path, seconds: float) -> Path:
        """A file with sound and no picture."""
        with av.open(str(path), "w") as container:
            for packet in _tone(container.add_stream("pcm_s24le", 48000, layout="stereo"), seconds):
                container.mux(packet)
        return path

    def frame(self, planes: Planes) -> Any:
        """An `av.VideoFrame` with these codes and the clip's tags."""
        frame = av.VideoFrame(self.width, self.height, self.pixels)
        write_planes(frame, planes)
        frame.color_primaries, frame.color_trc, frame.colorspace, frame.color_range = self.tags
        return frame

    def noise(self, count: int, seed: int = 0) -> list[Planes]:
        """Smooth pictures that differ in every frame, in every code a codec may keep."""
        layout, rng = layout_of(self.pixels), np.random.default_rng(seed)
        unit = 1 << (layout.bits - 8)

        def plane(component: int) -> NDArray[Any]:
            rows, columns = layout.size(component, self.width, self.height)
            coarse = rng.integers(40 * unit, 200 * unit, (rows // 8 + 2, columns // 8 + 2))
            smooth = np.kron(coarse, np.ones((8, 8), np.int64))[:rows, :columns]
            return (smooth + rng.integers(0, 4 * unit, (rows, columns))).astype(layout.dtype)

        return [tuple(plane(component) for component in range(len(layout.slots))) for _ in range(count)]


def _tone(stream: Any, seconds: float) -> list[Any]:
    count = round(48000 * seconds)
    wave = np.sin(np.arange(count) * 2 * np.pi * 440 / 48000)
    samples = np.repeat((wave * 2**30).astype(np.int32)[None], 2, 0).T.reshape(1, -1)
    packets = []
    for start in range(0, count, 1024):
        frame = av.AudioFrame.from_ndarray(
            np.ascontiguousarray(samples[:, 2 * start : 2 * (start + 1024)]), "s32", "stereo"
        )
        frame.sample_rate, frame.pts, frame.time_base = 48000, start, Fraction(1, 48000)
        packets += stream.encode(frame)
    return packets + stream.encode()


def linear_decode(path: Path) -> list[tuple[int, list[bytes]]]:
    """(pts, planes without padding) of every frame, decoded from the beginning to the end."""
    found = []
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            rows = []
            for plane in frame.planes:
                width = plane.width * (2 if frame.format.components[0].bits > 8 else 1)
                data = np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)[: plane.height, :width]
                rows.append(data.tobytes())
            found.append((frame.pts, rows))
    return found


def damage(path: Path, at: float, count: int, make: Callable[[int], int] = lambda byte: byte ^ 0xA5) -> None:
    """Change bytes in the middle of a file, at a share of its length."""
    data = bytearray(path.read_bytes())
    start = int(len(data) * at)
    for index in range(start, start + count):
        data[index] = make(data[index])
    path.write_bytes(data)


def face_clip(
    path: Path, clip: Clip, count: int = 6, face_width_px: float = 120, pts: Sequence[int] | None = None
) -> Path:
    """The astronaut moving through a clip; its tags' colour must be BT.709."""
    config = ColourConfig.open()
    encode = config.transform("ACEScg", "camera_rec709")
    plate = moving_plate(clip.width, clip.height, count, face_width_px=face_width_px, motion="linear", travel_px=40)
    layout, full = layout_of(clip.pixels), clip.tags[3] == 2
    coding = Coding("rgb" if layout.model == "rgb" else "bt709", full)
    pictures = []
    for number in plate.numbers:
        rgb = encode.numpy(plate.frame(number)[..., :3])
        if layout.alpha:
            across = np.linspace(0, 1, clip.width, dtype=np.float32)
            rgb = np.concatenate([rgb, np.broadcast_to(across, rgb.shape[:2])[..., None]], axis=-1)
        pictures.append(from_rgb(rgb, layout, coding))
    return clip.write(path, pictures, pts)
