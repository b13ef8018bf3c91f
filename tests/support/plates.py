"""Small plates with known truth, rendered from the astronaut portrait: for tests of everything that looks at plates.

    plate = moving_plate(640, 360, 12, face_width_px=120, motion="linear")
    plate.frame(1001)              (360, 640, 3) float16, scene-linear ACEScg
    plate.transform(1001)          2x3, portrait px to plate px, exact
    plate.truth_landmarks(1001)    (478, 3) plate px

Everything is fixed by the arguments; small frames are cached in the process. Arrays are read-only.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from faceplate.demo.exr import time_code, write_half_exr
from faceplate.demo.grain import add_grain
from faceplate.demo.portrait import (
    REC709_TO_AP1,
    load_portrait,
    mirrored_order,
    portrait_face_width,
    portrait_landmarks,
)
from faceplate.frame import Box, Frame

Motion = Literal["static", "linear", "sine", "rotate", "cut"]
Occluder = Literal["microphone", "hand"]
Affine = NDArray[np.float64]

FACE_CENTRE = (224.5, 128.0)
"""Middle of the face in the portrait, px; the point about which plates turn and scale."""

_HEAD = Box(134, 4, 322, 212)
_WHOLE = Box(0, 0, 512, 512)
_CACHED_PIXELS = 2_100_000
_BAND_ROWS = 512


@dataclass(frozen=True, slots=True)
class SyntheticPlate:
    """One plate; see `moving_plate` for the meaning of the fields."""

    width: int
    height: int
    frames: int
    face_width_px: float
    motion: Motion = "linear"
    grain: float = 0.01
    travel_px: float | None = None
    angle_deg: float = 0.0
    sweep_deg: float = 360.0
    faces: int = 1
    pixel_aspect: float = 1.0
    overscan: int = 0
    exposure: float = 1.0
    occluder: Occluder | None = None
    hostile: bool = False
    first: int = 1001
    seed: int = 0

    @property
    def numbers(self) -> range:
        """The frame numbers."""
        return range(self.first, self.first + self.frames)

    @property
    def display_window(self) -> Box:
        """The raster."""
        return Box(0, 0, self.width, self.height)

    @property
    def data_window(self) -> Box:
        """What `frame` covers: the raster grown by the overscan."""
        return self.display_window.grow(self.overscan)

    @property
    def cut_at(self) -> int | None:
        """First frame after the cut, None where there is none."""
        return self.first + self.frames // 2 if self.motion == "cut" else None

    def is_mirrored(self, number: int) -> bool:
        """True after a cut: there the portrait is mirrored."""
        return self.cut_at is not None and number >= self.cut_at

    def transform(self, number: int, face: int = 0) -> Affine:
        """(2, 3) float64 of a portrait point (px) to its plate point (px) in that frame; exact."""
        phase = (number - self.first) / max(1, self.frames - 1)
        x, y = self._cell_centre(face)
        travel = self.face_width_px if self.travel_px is None else self.travel_px
        scale, angle = self.face_width_px / portrait_face_width(), self.angle_deg
        if self.motion == "linear":
            x, y = x + travel * (phase - 0.5), y + 0.3 * travel * (phase - 0.5)
        elif self.motion == "sine":
            x, y = x + 0.5 * travel * np.sin(2 * np.pi * phase), y + 0.2 * travel * np.sin(4 * np.pi * phase)
        elif self.motion == "rotate":
            angle += self.sweep_deg * phase
        elif self.is_mirrored(number):
            x, scale = x + 0.14 * self.width, scale * 1.2
        elif self.motion == "cut":
            x = x - 0.14 * self.width
        cos, sin = scale * np.cos(np.radians(angle)), scale * np.sin(np.radians(angle))
        mirror = -1.0 if self.is_mirrored(number) else 1.0
        linear = np.array([[cos * mirror, -sin], [sin * mirror, cos]])
        affine = np.hstack([linear, (np.array([x, y]) - linear @ FACE_CENTRE)[:, None]])
        affine[0] /= self.pixel_aspect
        return affine

    def truth_points(self, number: int, portrait_points: NDArray[np.floating], face: int = 0) -> NDArray[np.float64]:
        """(N, 2) plate px of (N, 2 or more) portrait px."""
        affine = self.transform(number, face)
        return np.asarray(portrait_points[:, :2] @ affine[:, :2].T + affine[:, 2], np.float64)

    def truth_landmarks(self, number: int, face: int = 0) -> NDArray[np.float32]:
        """(478, 3) float32 plate px in mesh order, as a perfect tracker would give them, after a mirrored cut too."""
        portrait = portrait_landmarks()
        points = self.truth_points(number, portrait, face)
        scale = np.sqrt(abs(np.linalg.det(self.transform(number, face)[:, :2])) * self.pixel_aspect)
        found = np.column_stack([points, portrait[:, 2] * scale]).astype(np.float32)
        return found[mirrored_order()] if self.is_mirrored(number) else found

    def frame(self, number: int) -> NDArray[np.float16]:
        """(H, W, 3) float16 over `data_window`, scene-linear ACEScg."""
        if number not in self.numbers:
            raise IndexError(f"frame {number} is outside {self.numbers}")
        return (_render_cached if self.width * self.height <= _CACHED_PIXELS else _render)(self, number)

    def as_frame(self, number: int) -> Frame:
        """The frame as the pipeline's value."""
        return Frame(
            self.frame(number), "ACEScg", self.data_window, self.display_window, self.pixel_aspect, number=number
        )

    def occluder_matte(self, number: int) -> NDArray[np.float32]:
        """(H, W) float32 coverage 0..1 of the occluder over `data_window`; zeros where the plate has none."""
        matte = np.zeros((self.data_window.height, self.data_window.width), np.float32)
        if self.occluder is not None:
            window, coverage, _ = _occluder(self, number)
            matte[window.slices(self.data_window)] = coverage
        return matte

    def hostile_pixels(self, number: int) -> Mapping[str, tuple[int, int]]:
        """(row, column) in `frame` by name, e.g. "face_nan": one pixel of each hostile place; empty without them."""
        return _hostile_places(self, number) if self.hostile else {}

    def with_hostile_values(self) -> SyntheticPlate:
        """The same plate with highlights of 150 and more, negatives, NaN and infinities in and outside the face."""
        return dataclasses.replace(self, hostile=True)

    def with_occluder(self, kind: Occluder) -> SyntheticPlate:
        """The same plate with something that crosses the first face from left to right."""
        return dataclasses.replace(self, occluder=kind)

    def write(self, folder: Path) -> str:
        """Write all frames as half EXR with timecode; returns the pattern `<folder>/plate.####.exr`."""
        folder.mkdir(parents=True, exist_ok=True)
        for number in self.numbers:
            write_half_exr(
                folder / f"plate.{number:04d}.exr",
                self.frame(number),
                self.data_window,
                self.display_window,
                pixel_aspect=self.pixel_aspect,
                attributes={"timeCode": time_code(86400 + number, 24)},
            )
        return str(folder / "plate.####.exr")

    def _cell_centre(self, face: int) -> tuple[float, float]:
        if not 0 <= face < self.faces:
            raise IndexError(f"face {face} of {self.faces}")
        # Cells as near to square as the raster allows, in square pixels.
        aspect = self.width * self.pixel_aspect / self.height
        columns = min(self.faces, max(1, round(np.sqrt(self.faces * aspect))))
        rows = -(-self.faces // columns)
        row, column = divmod(face, columns)
        return (column + 0.5) * self.width * self.pixel_aspect / columns, (row + 0.5) * self.height / rows


def moving_plate(
    width: int,
    height: int,
    frames: int,
    *,
    face_width_px: float,
    motion: Motion = "linear",
    grain: float = 0.01,
    travel_px: float | None = None,
    angle_deg: float = 0.0,
    sweep_deg: float = 360.0,
    faces: int = 1,
    pixel_aspect: float = 1.0,
    overscan: int = 0,
    exposure: float = 1.0,
    first: int = 1001,
    seed: int = 0,
) -> SyntheticPlate:
    """A plate of one or more faces.

    Args:
        width: of the raster, px.
        height: of the raster, px.
        frames: how many.
        face_width_px: width of a face, px of unsqueezed picture (divide by `pixel_aspect` for plate px).
        motion: "static"; "linear" moves by `travel_px` over the shot; "sine" swings by it; "rotate" turns in the
            plane by `sweep_deg`; "cut" jumps halfway to another framing with the portrait mirrored.
        grain: deviation of the grain at a signal of about 1; 0 for none.
        travel_px: way of the face, px; None for one face width.
        angle_deg: in-plane turn, clockwise on screen.
        sweep_deg: turn over the shot for "rotate".
        faces: 1 shows the whole portrait, more show heads in a grid.
        pixel_aspect: width / height of a pixel; 2 squeezes the picture to half its width.
        overscan: px of picture around the raster.
        exposure: linear gain.
        first: first frame number.
        seed: of the grain.
    """
    return SyntheticPlate(
        width,
        height,
        frames,
        face_width_px,
        motion=motion,
        grain=grain,
        travel_px=travel_px,
        angle_deg=angle_deg,
        sweep_deg=sweep_deg,
        faces=faces,
        pixel_aspect=pixel_aspect,
        overscan=overscan,
        exposure=exposure,
        first=first,
        seed=seed,
    )


@functools.lru_cache(maxsize=8)
def _prefiltered(factor: float) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The portrait in ACEScg scaled by `factor`, and the factors (x, y) that came out after rounding."""
    picture = load_portrait() @ REC709_TO_AP1.T
    size = max(8, round(picture.shape[1] * factor)), max(8, round(picture.shape[0] * factor))
    kernel = cv2.INTER_AREA if factor < 1 else cv2.INTER_CUBIC
    scaled = cv2.resize(picture, size, interpolation=kernel) if factor != 1 else picture
    exact = np.array([size[0] / picture.shape[1], size[1] / picture.shape[0]], np.float32)
    return np.asarray(scaled, np.float32), exact


def _footprint(affine: Affine, patch: Box, window: Box) -> Box:
    corners = np.array([[patch.x0, patch.y0], [patch.x1, patch.y0], [patch.x1, patch.y1], [patch.x0, patch.y1]])
    placed = corners @ affine[:, :2].T + affine[:, 2]
    (x0, y0), (x1, y1) = np.floor(placed.min(0)).astype(int), np.ceil(placed.max(0)).astype(int)
    return Box(int(x0), int(y0), int(x1), int(y1)).intersect(window)


def _grid(window: Box) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Plate px of the pixel centres of a window: a row of x and a column of y."""
    x = np.arange(window.x0, window.x1, dtype=np.float32)[None] + np.float32(0.5)
    y = np.arange(window.y0, window.y1, dtype=np.float32)[:, None] + np.float32(0.5)
    return x, y


def _place_face(canvas: NDArray[np.float16], plate: SyntheticPlate, number: int, face: int) -> None:
    """Resample the portrait into the canvas once, with an edge that fades into the wall."""
    affine = plate.transform(number, face)
    patch = _WHOLE if plate.faces == 1 else _HEAD
    window = _footprint(affine, patch, plate.data_window)
    if window.is_empty:
        return
    smallest = float(np.linalg.svd(affine[:, :2])[1].min())
    # A smaller face needs a smaller source, else it would sparkle.
    picture, exact = _prefiltered(min(1.0, smallest))
    inverse = np.linalg.inv(np.vstack([affine, [0, 0, 1]]))
    x, y = _grid(window)
    u = (inverse[0, 0] * x + inverse[0, 1] * y + inverse[0, 2]).astype(np.float32)
    v = (inverse[1, 0] * x + inverse[1, 1] * y + inverse[1, 2]).astype(np.float32)
    # cv2 counts from the centre of the first pixel.
    sampled = cv2.remap(
        picture,
        u * exact[0] - np.float32(0.5),
        v * exact[1] - np.float32(0.5),
        cv2.INTER_CUBIC,
        None,
        cv2.BORDER_REPLICATE,
    )
    inside = np.minimum(np.minimum(u - patch.x0, patch.x1 - u), np.minimum(v - patch.y0, patch.y1 - v))
    fade = np.clip(inside / np.float32(24.0), 0.0, 1.0)[..., None]
    fade = fade * fade * (3 - 2 * fade)
    area = window.slices(plate.data_window)
    canvas[area] = canvas[area] * (1 - fade) + sampled * fade * np.float32(plate.exposure)


def _segment(
    x: NDArray[np.float32], y: NDArray[np.float32], a: NDArray[np.float64], b: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Distance of every pixel to the line from a to b."""
    ab = b - a
    along = np.clip(((x - a[0]) * ab[0] + (y - a[1]) * ab[1]) / max(float(ab @ ab), 1e-9), 0.0, 1.0)
    distance = np.hypot(x - (a[0] + along * ab[0]), y - (a[1] + along * ab[1]))
    return np.asarray(distance, np.float32)


def _occluder(plate: SyntheticPlate, number: int) -> tuple[Box, NDArray[np.float32], NDArray[np.float32]]:
    """Window, coverage (h, w) and colour (h, w, 3) of the occluder; it crosses the face at mouth height."""
    phase = (number - plate.first) / max(1, plate.frames - 1)
    width = plate.face_width_px
    way = np.array([(phase - 0.5) * 2.0 * width, 0.28 * width])
    affine = plate.transform(number)
    centre = affine[:, :2] @ FACE_CENTRE + affine[:, 2]
    centre = centre * [plate.pixel_aspect, 1.0] + way
    reach = 2.2 * width
    window = Box(
        int((centre[0] - reach) / plate.pixel_aspect),
        int(centre[1] - reach),
        int((centre[0] + reach) / plate.pixel_aspect),
        int(centre[1] + reach),
    ).intersect(plate.data_window)
    x, y = _grid(window)
    x = x * np.float32(plate.pixel_aspect)
    if plate.occluder == "microphone":
        ball = _segment(x, y, centre, centre) - 0.2 * width
        handle = _segment(x, y, centre, centre + np.array([0.25, 1.7]) * width) - 0.07 * width
        distance, tint = np.minimum(ball, handle), np.array([0.05, 0.05, 0.055], np.float32)
    else:
        parts = [_segment(x, y, centre, centre + np.array([0.1, 1.7]) * width) - 0.2 * width]
        for spread, length in ((-0.3, 0.42), (-0.1, 0.55), (0.1, 0.55), (0.28, 0.45)):
            root = centre + np.array([spread * 0.5, -0.12]) * width
            parts.append(_segment(x, y, root, root + np.array([spread, -length]) * width) - 0.065 * width)
        parts.append(_segment(x, y, centre, centre + np.array([0.4, -0.05]) * width) - 0.08 * width)
        distance, tint = functools.reduce(np.minimum, parts), np.array([0.28, 0.17, 0.11], np.float32)
    coverage = np.clip(0.5 - distance, 0.0, 1.0).astype(np.float32)
    depth = np.sqrt(np.clip(-distance / np.float32(0.2 * width), 0.0, 1.0))
    return window, coverage, ((0.4 + 0.9 * depth)[..., None] * tint).astype(np.float32)


_HOSTILE = {
    "face_highlight": ((238.0, 118.0), 3.0, 150.0),
    "face_negative": ((205.0, 130.0), 3.0, -0.3),
    "face_nan": ((223.0, 131.0), 0.0, np.nan),
    "face_inf": ((222.0, 168.0), 0.0, np.inf),
    "face_minus_inf": ((215.0, 150.0), 0.0, -np.inf),
}
_HOSTILE_OUTSIDE = {"wall_highlight": 400.0, "wall_negative": -1.0, "wall_nan": np.nan, "wall_inf": np.inf}


def _hostile_places(plate: SyntheticPlate, number: int) -> dict[str, tuple[int, int]]:
    places = {}
    for name, (point, _, _) in _HOSTILE.items():
        x, y = plate.truth_points(number, np.array([point]))[0]
        row, column = int(np.floor(y)) - plate.data_window.y0, int(np.floor(x)) - plate.data_window.x0
        if 0 <= row < plate.data_window.height and 0 <= column < plate.data_window.width:
            places[name] = row, column
    for index, name in enumerate(_HOSTILE_OUTSIDE):
        places[name] = 2, 2 + 6 * index
    return places


def _add_hostile(canvas: NDArray[np.float16], plate: SyntheticPlate, number: int) -> None:
    scale = plate.face_width_px / portrait_face_width()
    for name, (row, column) in _hostile_places(plate, number).items():
        if name in _HOSTILE:
            _, radius, value = _HOSTILE[name]
            size = int(radius * scale)
            canvas[max(0, row - size) : row + size + 1, max(0, column - size) : column + size + 1] = value
        else:
            canvas[row : row + 3, column : column + 3] = _HOSTILE_OUTSIDE[name]


def _render(plate: SyntheticPlate, number: int) -> NDArray[np.float16]:
    window = plate.data_window
    canvas = np.empty((window.height, window.width, 3), np.float16)
    shade = np.linspace(0.42, 0.3, window.height, dtype=np.float32)[:, None, None] * np.float32(plate.exposure)
    canvas[:] = shade * np.array([1.0, 0.97, 0.95], np.float32)
    for face in range(plate.faces):
        _place_face(canvas, plate, number, face)
    if plate.occluder is not None:
        area, coverage, colour = _occluder(plate, number)
        part = area.slices(window)
        canvas[part] = canvas[part] * (1 - coverage[..., None]) + colour * coverage[..., None]
    if plate.grain > 0:
        # In bands, so that an 8K frame needs no float32 twin.
        for band, top in enumerate(range(0, window.height, _BAND_ROWS)):
            rows = slice(top, top + _BAND_ROWS)
            canvas[rows] = add_grain(
                canvas[rows].astype(np.float32), amount=plate.grain, seed=plate.seed, frame=number * 1000 + band
            )
    if plate.hostile:
        _add_hostile(canvas, plate, number)
    canvas.flags.writeable = False
    return canvas


_render_cached = functools.lru_cache(maxsize=24)(_render)
