"""A photo as light: upright, square pixels, linear Rec.709; and the crop of its face as an identity file keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from ..colour.decide import ColourDecision, decide_space
from ..colour.spaces import ColourConfig
from ..errors import IdentityError
from ..face import Points
from ..faces import topology
from ..frame import Box
from ..media.read import read_image

Image = NDArray[np.float32]

CROP_SIDE = 2048
"""Longest side of a stored crop, px."""

_SURROUND = 0.5
_BRIGHTEST = 16.0
_CODES = 65535
# EXIF orientation: (transpose first, then flip rows, flip columns) brings the stored picture upright.
_ORIENTATIONS: Mapping[int, tuple[bool, bool, bool]] = {
    1: (False, False, False),
    2: (False, False, True),
    3: (False, True, True),
    4: (False, True, False),
    5: (True, False, False),
    6: (True, False, True),
    7: (True, True, True),
    8: (True, True, False),
}


@dataclass(frozen=True, slots=True, eq=False)
class PhotoPicture:
    """A photo that was read.

    Attributes:
        linear: (h, w, 3) float32, linear light, Rec.709 primaries, upright, square pixels, finite, >= 0.
        colour: how its colour space was found.
    """

    linear: Image
    colour: ColourDecision


def read_photo(path: Path, config: ColourConfig, colour_space: str | None = None) -> PhotoPicture:
    """Read a JPEG, PNG, TIFF, DPX or EXR.

    Args:
        path: the file.
        config: the active colour configuration.
        colour_space: what the user says it is; None for the file's tag, the studio's rules, the default.

    Raises:
        ImageReadError, UnsupportedImageError: not a readable picture.
        ColourSpaceError: its colour cannot be found out.
    """
    image = read_image(path)
    decision = decide_space(config, image, colour_space)
    linear = config.to_rec709(decision.space).numpy(image.pixels[..., :3])
    linear = upright(linear, image.metadata.get("Orientation", 1))
    if abs(image.pixel_aspect - 1.0) > 1e-3:
        size = max(1, round(linear.shape[1] * image.pixel_aspect)), linear.shape[0]
        linear = np.asarray(cv2.resize(linear, size, interpolation=cv2.INTER_LINEAR), np.float32)
    finite = np.nan_to_num(linear, nan=0.0, posinf=65504.0, neginf=0.0)
    return PhotoPicture(np.maximum(finite, np.float32(0)), decision)


def upright(picture: Image, orientation: object) -> Image:
    """Turn and mirror a picture as EXIF's orientation 1..8 asks (Exif 2.32, tag 0x0112); anything else counts as 1."""
    known = _ORIENTATIONS.get(orientation, _ORIENTATIONS[1]) if isinstance(orientation, int) else _ORIENTATIONS[1]
    transpose, flip_rows, flip_columns = known
    turned = picture.transpose(1, 0, 2) if transpose else picture
    turned = turned[::-1] if flip_rows else turned
    return np.ascontiguousarray(turned[:, ::-1] if flip_columns else turned)


def cut_face(linear: Image, landmarks: Points) -> tuple[Image, Points]:
    """The face with half its size of surroundings, at most `CROP_SIDE` px, and its landmarks in px of that crop."""
    face = landmarks[: topology.FACE_POINTS, :2]
    low, high = face.min(0), face.max(0)
    margin = _SURROUND * float((high - low).max())
    whole = Box(0, 0, linear.shape[1], linear.shape[0])
    window = Box(*np.floor(low - margin).astype(int), *np.ceil(high + margin).astype(int)).intersect(whole)
    rows, columns = window.slices(whole)
    crop = np.ascontiguousarray(linear[rows, columns])
    points = landmarks - np.array([window.x0, window.y0, 0], np.float32)
    factor = CROP_SIDE / max(crop.shape[:2])
    if factor < 1:
        size = max(1, round(crop.shape[1] * factor)), max(1, round(crop.shape[0] * factor))
        scale = np.array([size[0] / crop.shape[1], size[1] / crop.shape[0], factor], np.float32)
        crop, points = np.asarray(cv2.resize(crop, size, interpolation=cv2.INTER_AREA), np.float32), points * scale
    return crop, np.asarray(points, np.float32)


def encode_crop(crop: Image) -> tuple[bytes, float]:
    """A crop as 16-bit sRGB PNG, and the light that its largest code stands for (1, or what highlights need up to 16).

    Args:
        crop: (h, w, 3) float32, linear Rec.709, finite, >= 0.
    """
    white = float(np.clip(crop.max(), 1.0, _BRIGHTEST))
    light = np.clip(crop.astype(np.float64) / white, 0.0, 1.0)
    encoded = np.where(light <= 0.0031308, light * 12.92, 1.055 * light ** (1 / 2.4) - 0.055)
    codes = np.rint(encoded * _CODES).astype(np.uint16)
    return bytes(cv2.imencode(".png", codes[..., ::-1], [cv2.IMWRITE_PNG_COMPRESSION, 6])[1].tobytes()), white


def decode_crop(png: bytes, white: float) -> Image:
    """The inverse of `encode_crop`, to about 1/65535 of the encoding.

    Raises:
        IdentityError: the bytes are no such PNG.
    """
    codes = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_UNCHANGED)
    if codes is None or codes.dtype != np.uint16 or codes.ndim != 3 or codes.shape[2] != 3:
        raise IdentityError(
            "a crop of the identity file cannot be decoded",
            expected="a 16-bit RGB PNG",
            hint="make the identity anew from the photos",
        )
    value = codes[..., ::-1].astype(np.float64) / _CODES
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    return np.ascontiguousarray(linear * white, np.float32)
