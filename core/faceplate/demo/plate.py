"""The demo plate: a film shot made from NASA's astronaut portrait, with the truth of where everything is.

Camera move, head turn, exposure ramp, lights above 20, negatives, grain, overscan, timecode. Everything is fixed by
the specification: the same one gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from ..errors import OutputError, SettingError
from ..frame import Box
from .exr import time_code, write_half_exr
from .grain import add_grain
from .lights import add_lamps, add_sun, sun_position
from .still import STILL_WINDOW, film_still

Affine = NDArray[np.float64]
HALF_MAX = 65504.0
_COARSE = 4


class PlateWindows(NamedTuple):
    """Data window and display window of a frame."""

    data: Box
    display: Box


@dataclass(frozen=True, slots=True)
class DemoPlateSpec:
    """What the demo plate is like.

    Attributes:
        frames: length of the shot.
        first: first frame number.
        width: of the display window, px; the whole picture scales with it.
        height: of the display window, px; at most 0.6 of the width.
        overscan: px of picture on each side beyond the display window, at most 0.03 of the width.
        seed: of grain and texture.
        fps: frames a second.
        yaw_deg: the head turns by this to both sides.
        grain: deviation of the grain at a signal of about 1.
        exposure_from: stops at the first frame.
        exposure_to: stops at the last frame.
        sun: whether the sun's reflection passes over ring, cheek, temple and hair.
        zoom: of the camera; at 1 the face is about 340 px wide in 1920.

    Raises:
        SettingError: a value outside its range.
    """

    frames: int = 48
    first: int = 1001
    width: int = 1920
    height: int = 1080
    overscan: int = 32
    seed: int = 20
    fps: int = 24
    yaw_deg: float = 6.0
    grain: float = 0.014
    exposure_from: float = -0.5
    exposure_to: float = 0.7
    sun: bool = True
    zoom: float = 1.0

    def __post_init__(self) -> None:
        # Beyond these the still would run out or the head would fold over itself.
        ranges = {
            "frames": (1, 100_000),
            "first": (0, 1_000_000),
            "width": (64, 8192),
            "height": (36, int(0.6 * self.width)),
            "overscan": (0, int(0.03 * self.width)),
            "fps": (1, 120),
            "yaw_deg": (-12.0, 12.0),
            "grain": (0.0, 0.2),
            "zoom": (1.0, 1.5),
        }
        for name, (low, high) in ranges.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise SettingError(
                    f"the demo plate's {name} is out of range", expected=f"{low}..{high}", found=str(value)
                )

    @property
    def numbers(self) -> range:
        """The frame numbers."""
        return range(self.first, self.first + self.frames)

    @property
    def windows(self) -> PlateWindows:
        """The windows, equal in all frames."""
        display = Box(0, 0, self.width, self.height)
        return PlateWindows(display.grow(self.overscan), display)

    @property
    def still_scale(self) -> float:
        """Px of the still to one portrait px."""
        return 3.5 * self.width / 1920

    def phase(self, number: int) -> float:
        """0 at the first frame, 1 at the last."""
        return (number - self.first) / max(1, self.frames - 1)


def _eased(phase: float) -> float:
    return phase * phase * (3.0 - 2.0 * phase)


def landmark_transform(spec: DemoPlateSpec, number: int) -> Affine:
    """(2, 3) float64: portrait px to plate px by the camera alone, exact; the head's own turn is in `warp_points`."""
    phase = spec.phase(number)
    move, seconds = _eased(phase), (number - spec.first) / spec.fps
    # A slow push and pan, and an operator's hand.
    centre = np.array([238.0 + 34.0 * move, 150.0 - 4.0 * move])
    centre += np.array([0.30 * np.sin(5.1 * seconds), 0.24 * np.sin(6.7 * seconds + 1.0)])
    scale = spec.zoom * spec.still_scale * (0.99 + 0.11 * move)
    roll = np.radians(-0.9 + 1.8 * move + 0.08 * np.sin(4.3 * seconds))
    cos, sin = scale * np.cos(roll), scale * np.sin(roll)
    linear = np.array([[cos, -sin], [sin, cos]])
    middle = np.array([spec.width / 2, spec.height / 2])
    return np.hstack([linear, (middle - linear @ centre)[:, None]])


def head_angles(spec: DemoPlateSpec, number: int) -> tuple[float, float]:
    """(yaw, pitch) of the head in that frame relative to the portrait, degrees; yaw positive to the subject's left."""
    seconds = (number - spec.first) / spec.fps
    yaw = spec.yaw_deg * np.sin(2 * np.pi * seconds / 2.0)
    return float(yaw), float(0.4 * spec.yaw_deg * np.sin(2 * np.pi * seconds / 1.4 + 0.6))


def _depth(x: NDArray[np.floating], y: NDArray[np.floating]) -> NDArray[np.floating]:
    """How far the head stands out of the picture at portrait px: a smooth head and a nose, portrait px."""
    head = 62.0 * np.exp(-0.5 * (((x - 226.0) / 46.0) ** 2 + ((y - 112.0) / 60.0) ** 2))
    nose = 13.0 * np.exp(-0.5 * (((x - 223.5) / 11.0) ** 2 + ((y - 128.0) / 13.0) ** 2))
    return np.asarray(head + nose)


def _turn(spec: DemoPlateSpec, number: int) -> tuple[float, float]:
    yaw, pitch = head_angles(spec, number)
    return float(np.sin(np.radians(yaw))), float(np.sin(np.radians(pitch)))


def warp_points(spec: DemoPlateSpec, number: int, points: NDArray[np.floating]) -> NDArray[np.float64]:
    """Portrait px (N, 2 or more columns) to plate px (N, 2) float64, camera and head together; exact."""
    xy = np.asarray(points[:, :2], np.float64)
    depth = _depth(xy[:, 0], xy[:, 1])
    turned = xy + depth[:, None] * np.array(_turn(spec, number))
    affine = landmark_transform(spec, number)
    return np.asarray(turned @ affine[:, :2].T + affine[:, 2], np.float64)


def _head_shift(spec: DemoPlateSpec, number: int, inverse: Affine) -> NDArray[np.float32]:
    """What the head's turn subtracts from the camera's portrait px at each pixel: (H, W, 2) float32.

    The turn maps p to p + d(p); its inverse is the fixed point of p = q - d(p), which contracts by 4 or more a step.
    Solved on a coarse grid: the shift is smooth, its interpolation errs by less than 0.01 plate px.
    """
    window = spec.windows.data
    x = np.arange(window.x0, window.x1, _COARSE)[None] + _COARSE / 2
    y = np.arange(window.y0, window.y1, _COARSE)[:, None] + _COARSE / 2
    qx = inverse[0, 0] * x + inverse[0, 1] * y + inverse[0, 2]
    qy = inverse[1, 0] * x + inverse[1, 1] * y + inverse[1, 2]
    right, down = _turn(spec, number)
    depth = np.zeros_like(qx)
    for _ in range(9):
        depth = _depth(qx - depth * right, qy - depth * down)
    shift = np.stack([depth * right, depth * down], -1).astype(np.float32)
    size = shift.shape[1] * _COARSE, shift.shape[0] * _COARSE
    return np.asarray(cv2.resize(shift, size, interpolation=cv2.INTER_LINEAR)[: window.height, : window.width])


def _film(spec: DemoPlateSpec, number: int) -> NDArray[np.float32]:
    """The still through the camera, one resample: (H, W, 3) float32 ACEScg."""
    window, scale = spec.windows.data, np.float32(spec.still_scale)
    affine = landmark_transform(spec, number)
    inverse = np.linalg.inv(np.vstack([affine, [0.0, 0.0, 1.0]]))[:2]
    shift = _head_shift(spec, number, inverse)
    x = np.arange(window.x0, window.x1)[None] + 0.5
    y = np.arange(window.y0, window.y1)[:, None] + 0.5
    # Portrait px to still px, and cv2 counts from the centre of the first pixel.
    u = (inverse[0, 0] * x + (inverse[0, 2] - STILL_WINDOW.x0)) + inverse[0, 1] * y
    v = (inverse[1, 0] * x + (inverse[1, 2] - STILL_WINDOW.y0)) + inverse[1, 1] * y
    map_x = (u.astype(np.float32) - shift[..., 0]) * scale - np.float32(0.5)
    map_y = (v.astype(np.float32) - shift[..., 1]) * scale - np.float32(0.5)
    still = film_still(spec.still_scale, spec.seed)
    return np.asarray(cv2.remap(still, map_x, map_y, cv2.INTER_CUBIC, None, cv2.BORDER_REPLICATE), np.float32)


def _vignette(spec: DemoPlateSpec) -> NDArray[np.float32]:
    window = spec.windows.data
    x = (np.arange(window.x0, window.x1, dtype=np.float32) + 0.5) / spec.width - 0.5
    y = ((np.arange(window.y0, window.y1, dtype=np.float32) + 0.5) - spec.height / 2) / spec.width
    return np.asarray(1.0 - 0.55 * (x[None] ** 2 + y[:, None] ** 2), np.float32)[..., None]


def render_plate_frame(spec: DemoPlateSpec, number: int) -> tuple[NDArray[np.float16], PlateWindows]:
    """One frame.

    Returns:
        (H, W, 4) float16 RGBA over the data window, scene-linear ACEScg with alpha 1; and the windows.

    Raises:
        SettingError: the frame lies outside the shot.
    """
    if number not in spec.numbers:
        raise SettingError(
            "the demo plate has no such frame", expected=f"{spec.first}..{spec.numbers[-1]}", found=str(number)
        )
    windows, affine = spec.windows, landmark_transform(spec, number)
    picture = _film(spec, number)
    if spec.sun:
        sun_x, sun_y = warp_points(spec, number, np.array([sun_position(spec.phase(number))]))[0]
        add_sun(picture, windows.data, affine, (float(sun_x), float(sun_y)))
    add_lamps(picture, windows.data, affine)
    stops = spec.exposure_from + (spec.exposure_to - spec.exposure_from) * _eased(spec.phase(number))
    picture *= _vignette(spec) * np.float32(2.0**stops)
    if spec.grain > 0:
        picture = add_grain(picture, amount=spec.grain, seed=spec.seed, frame=number)
    pixels = np.ones((*picture.shape[:2], 4), np.float16)
    pixels[..., :3] = np.clip(picture, -HALF_MAX, HALF_MAX)
    return pixels, windows


def write_plate(
    spec: DemoPlateSpec,
    folder: Path,
    *,
    count: int | None = None,
    workers: int = 2,
    on_frame: Callable[[int], None] | None = None,
) -> str:
    """Write the plate as half EXR, zip.

    Args:
        spec: the plate.
        folder: made if absent.
        count: how many of the spec's frames, from its first; None for all.
        workers: frames at a time.
        on_frame: told each frame number once it is written.

    Returns:
        The pattern `<folder>/demo_plate.####.exr`.

    Raises:
        OutputError: the folder or a file cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot make {folder}", found=str(error), hint="choose a folder that you may write to"
        ) from error

    def write(number: int) -> int:
        pixels, windows = render_plate_frame(spec, number)
        path = folder / f"demo_plate.{number:04d}.exr"
        write_half_exr(path, pixels, *windows, attributes=_attributes(spec, number))
        return number

    with ThreadPoolExecutor(max_workers=workers) as pool:
        for number in pool.map(write, spec.numbers[:count]):
            if on_frame is not None:
                on_frame(number)
    return str(folder / "demo_plate.####.exr")


def _attributes(spec: DemoPlateSpec, number: int) -> dict[str, object]:
    return {
        "timeCode": time_code(3600 * spec.fps + number - spec.first, spec.fps),
        "framesPerSecond": Fraction(spec.fps),
        "owner": "Faceplate demo; portrait by NASA, public domain",
        "comments": "Synthetic plate made from the official portrait of Eileen Collins",
        "nuke/input/filename": f"demo_plate.{number:04d}.exr",
        "reelName": "A001C003",
        "expTime": 1.0 / (2 * spec.fps),
    }
