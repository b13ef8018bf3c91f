"""A person who does not exist: derived from NASA's portrait by other proportions, skin, brows, stubble and age.

The photos ship as pictures; `python -m faceplate.demo.person` makes them anew.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from ..errors import OutputError
from .person_paint import (
    INNER_LIPS,
    LEFT_EYE,
    LIP_LINE,
    LIPS,
    RIGHT_EYE,
    Layer,
    Sheet,
    age_lines,
    beard_density,
    blur,
    brow_hairs,
    groove,
    inside_distance,
    landmark_polygon,
    polygon,
    spots,
    stubble,
)
from .person_shape import HEAD_OUTLINE, PHOTO_WINDOW, SKIN_OUTLINE, Pts, Shape, person_shape, turn, warp
from .portrait import Image, decode_picture, linear_to_srgb, load_portrait, luminance, read_data, srgb_to_linear
from .still import surface_texture

SCALE = 3.75
"""Photo px to a portrait px."""

PHOTOS = ("person_1.png", "person_2.png")


def load_person() -> list[Image]:
    """The shipped photos of the person: (H, W, 3) float32, linear Rec.709, 0..1; frontal, then a half turn."""
    return [decode_picture(read_data(name)) for name in PHOTOS]


def _multiply(picture: Image, layer: Layer, colour: Sequence[float]) -> None:
    """Tint by a layer of coverage, in place: full coverage multiplies by `colour`."""
    tint = np.log(np.array(colour, np.float32))
    picture *= np.exp(layer[..., None] * tint)


class Regions(NamedTuple):
    """Coverage of skin, of hair, and of the whole head with both."""

    skin: Layer
    hair: Layer
    head: Layer


def _photo_px(points: Pts) -> NDArray[np.float32]:
    """Portrait px to photo px."""
    return np.asarray((points - [PHOTO_WINDOW.x0, PHOTO_WINDOW.y0]) * SCALE, np.float32)


def _over(picture: Image, layer: Layer, colour: Sequence[float]) -> None:
    """Lay an opaque colour over, in place."""
    picture += layer[..., None] * (np.array(colour, np.float32) - picture)


def _regions(picture: Image, sheet: Sheet, shape: Shape) -> Regions:
    """Tell skin, hair and wall apart: by outline, and near the outlines by colour."""
    unit, light = sheet.unit, luminance(picture)
    in_skin, in_head = (
        inside_distance(sheet, _photo_px(shape.move(outline))) / unit for outline in (SKIN_OUTLINE, HEAD_OUTLINE)
    )
    bright = np.clip((light - 0.27) / 0.15, 0, 1)
    upper = np.clip((sheet.points[5][1] - sheet.grid()[1]) / (6 * unit), 0, 1)
    edge = np.clip(in_skin, -12.0, 12.0)
    skin = 1 / (1 + np.exp(-1.6 * (edge + upper * (9.0 * bright - 5.5))))
    # The wall is brighter and bluer than anything of the head at its edge.
    ratio = picture[..., 2] / np.maximum(picture[..., 0], 1e-4)
    wall = np.clip((ratio - 0.62) / 0.12, 0, 1) * np.clip((light - 0.22) / 0.12, 0, 1)
    head = np.clip(np.maximum((in_head - 1.0) / 2.5, np.clip((in_head + 2.0) / 1.5, 0, 1) * (1 - wall)), 0, 1)
    head = np.clip((head - 0.5) / 0.5, 0, 1)
    soft = (
        blur(np.asarray(part, np.float32), 0.4 * unit) for part in (skin, np.clip(4 * head, 0, 1) * (1 - skin), head)
    )
    return Regions(*soft)


def _dress(picture: Image, sheet: Sheet, seed: int) -> None:
    """A dark roll-neck in place of the space suit, in place."""
    unit = sheet.unit
    texture = surface_texture(sheet.height, sheet.width, seed + 5)
    base = float(sheet.points[152][1]) + 7 * unit
    left, right = float(sheet.points[172][0]) + 3 * unit, float(sheet.points[397][0]) - 3 * unit
    middle, bottom = (left + right) / 2, float(sheet.height)
    half = [
        [-0.35, base + 3.5 * unit],
        [-0.9, base + 0.5 * unit],
        [-1.08, base - 2 * unit],
        [-1.16, base + 1 * unit],
        [-1.2, base + 9 * unit],
        [-1.7, base + 15 * unit],
        [-4.0, base + 26 * unit],
        [-4.0, bottom + 40 * unit],
    ]
    side = np.array([[middle + u * (right - left) / 2, v] for u, v in half])
    shoulders = np.vstack([side, [2 * middle, 0] + side[::-1] * [-1, 1]])
    cloth = polygon(sheet, shoulders, 0.7 * unit)
    wool = np.float32(0.02) * (1 + 0.1 * texture)[..., None] * np.array([0.9, 1.0, 1.25], np.float32)
    picture += cloth[..., None] * (wool - picture)


def _wall(picture: Image, sheet: Sheet, head: Layer) -> None:
    """A plain wall behind the head, in place."""
    x, y = sheet.grid()
    spot = np.exp(-0.5 * (((x / sheet.width - 0.6) / 0.5) ** 2 + ((y / sheet.height - 0.4) / 0.55) ** 2))
    wall = (0.09 + 0.16 * spot)[..., None] * np.array([0.86, 0.98, 1.06], np.float32)
    picture += (1 - head)[..., None] * (wall.astype(np.float32) - picture)


def _age_skin(result: Image, sheet: Sheet, flesh: Layer, random: np.random.Generator, seed: int) -> None:
    """Blotches, pores, creases and spots, in place."""
    blotches = blur(surface_texture(sheet.height, sheet.width, seed), 2.2 * sheet.unit)
    blotches /= blotches.std()
    _multiply(result, flesh * blotches * np.float32(0.05), (1.0, 0.55, 0.45))
    pores = surface_texture(sheet.height, sheet.width, seed + 1)
    result *= np.exp(0.055 * flesh * pores)[..., None]
    _multiply(result, flesh * age_lines(sheet, random), (0.2, 0.13, 0.1))
    _multiply(result, flesh * spots(sheet, 130, random), (0.4, 0.24, 0.16))


def _mouth(result: Image, sheet: Sheet) -> None:
    """Closed lips without make-up, in place."""
    unit = sheet.unit
    lips = landmark_polygon(sheet, LIPS, 0.8 * unit)
    soft = np.asarray(cv2.GaussianBlur(result, (0, 0), 1.5 * unit), np.float32)
    result += 0.5 * lips[..., None] * (soft - result)
    _multiply(result, lips, (0.44, 0.36, 0.32))
    gap = landmark_polygon(sheet, INNER_LIPS, 0.35 * unit)
    line = np.clip(groove(sheet, sheet.points[list(LIP_LINE)], 0.4 * unit, 0.65), 0, 1)
    _over(result, np.clip(np.maximum(1.8 * gap, line), 0, 0.94), (0.040, 0.017, 0.014))


def _paint(picture: Image, sheet: Sheet, shape: Shape, seed: int) -> Image:
    random = np.random.default_rng([seed, 1])
    unit, result = sheet.unit, picture.copy()
    skin, hair, head = _regions(picture, sheet, shape)
    eyes = np.maximum(landmark_polygon(sheet, RIGHT_EYE, 0.5 * unit), landmark_polygon(sheet, LEFT_EYE, 0.5 * unit))
    lips = landmark_polygon(sheet, LIPS, 0.8 * unit)
    flesh = skin * (1 - eyes)
    # Blond strands over the forehead become shade on skin.
    forehead = np.clip((sheet.points[9][1] - sheet.grid()[1]) / (5 * unit), 0, 1)
    tone = np.array([1.42, 0.93, 0.62], np.float32)
    result += (0.85 * forehead * skin)[..., None] * (luminance(result)[..., None] * tone - result)
    _multiply(result, eyes, (0.62, 0.60, 0.58))
    # Olive skin: less light back, least blue.
    _multiply(result, flesh * (1 - lips), (0.56, 0.47, 0.37))
    _mouth(result, sheet)
    _age_skin(result, sheet, flesh * (1 - lips), random, seed)
    density = beard_density(sheet)
    _multiply(result, density * skin, (0.52, 0.54, 0.62))
    hairs = stubble(sheet, density, 15000, random)
    _over(result, hairs * skin * np.float32(0.8), (0.022, 0.019, 0.018))
    _colour_hair(result, sheet, hair, head, seed)
    shadow, brows = brow_hairs(sheet, random)
    _multiply(result, shadow * np.float32(0.7), (0.25, 0.21, 0.19))
    _over(result, brows, (0.014, 0.012, 0.011))
    _wall(result, sheet, head)
    _dress(result, sheet, seed)
    return result


def _colour_hair(picture: Image, sheet: Sheet, hair: Layer, head: Layer, seed: int) -> None:
    """Dark hair, grey at the temples, in place."""
    # At the outline the portrait's wall shines through the hair: hold the light down there.
    rim = np.clip((blur(head, 1.3 * sheet.unit) - 0.5) / 0.4, 0, 1)
    light = np.minimum(luminance(picture), 0.32) * (0.25 + 0.75 * rim)
    x, y = sheet.grid()
    middle = sheet.points[9]
    temple = np.clip((np.abs(x - middle[0]) / sheet.unit - 34) / 12, 0, 1) * np.clip(
        (y - middle[1]) / (22 * sheet.unit) + 1, 0, 1
    )
    strands = surface_texture(sheet.height, sheet.width, seed + 2)
    grey = np.clip(0.10 + 0.8 * temple + 0.08 * strands, 0, 1)[..., None]
    shine = (0.004 + 0.42 * light**1.4)[..., None]
    dark, pale = np.array([1.05, 0.92, 0.8], np.float32) * 0.62, np.array([1.06, 1.0, 0.94], np.float32) * 1.5
    picture += hair[..., None] * (shine * (dark * (1 - grey) + pale * grey) - picture)


def make_person(seed: int = 7) -> list[Image]:
    """Make the photos: (H, W, 3) float32, linear Rec.709, 0..1; frontal, then turned and lit from the side.

    The same seed gives the same photos.
    """
    window = PHOTO_WINDOW
    encoded = linear_to_srgb(load_portrait())[window.y0 : window.y1, window.x0 : window.x1]
    size = round(window.width * SCALE), round(window.height * SCALE)
    large = cv2.resize(encoded, size, interpolation=cv2.INTER_LANCZOS4)
    shape = person_shape()
    shaped = srgb_to_linear(np.clip(warp(np.asarray(large, np.float32), SCALE, shape.target, shape.source), 0, 1))
    front = _paint(shaped, Sheet(size[1], size[0], SCALE, _photo_px(shape.landmarks[:, :2])), shape, seed)
    side = turn(front, SCALE, shape.landmarks[1, :2], 27.0)
    x = (np.arange(size[0], dtype=np.float32) + 0.5) / size[0] - 0.5
    side *= np.exp(1.15 * np.tanh(3.0 * x))[None, :, None] * np.array([1.02, 0.96, 0.84], np.float32)
    return [np.clip(photo, 0.0, 1.0) for photo in (front, side)]


def encode_photo(photo: Image) -> NDArray[np.uint8]:
    """Linear Rec.709 to 8-bit sRGB codes (H, W, 3)."""
    return np.rint(linear_to_srgb(photo) * 255).astype(np.uint8)


def write_person(folder: Path, seed: int = 7) -> list[Path]:
    """Make the photos and write them as 8-bit sRGB PNG.

    Raises:
        OutputError: a file cannot be written.
    """
    paths = []
    for name, photo in zip(PHOTOS, make_person(seed), strict=True):
        _, data = cv2.imencode(".png", encode_photo(photo)[..., ::-1], [cv2.IMWRITE_PNG_COMPRESSION, 9])
        try:
            (folder / name).write_bytes(data.tobytes())
        except OSError as error:
            raise OutputError(
                f"cannot write {folder / name}", found=str(error), hint="choose a folder that you may write to"
            ) from error
        paths.append(folder / name)
    return paths


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m faceplate.demo.person", description=__doc__)
    parser.add_argument("folder", type=Path, help="where to write " + " and ".join(PHOTOS))
    write_person(parser.parse_args().folder)
