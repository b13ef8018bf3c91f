"""NASA's astronaut portrait, its landmarks, and the small colour arithmetic that the demo needs.

Portrait pixels: x right, y down, centre of the first pixel at (0.5, 0.5), 512 x 512.
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ..errors import ImageReadError

Image = NDArray[np.float32]
Points = NDArray[np.float32]

PORTRAIT_SIZE = 512
"""Width and height of the portrait, px."""

AP1_CHROMATICITIES = (0.713, 0.293, 0.165, 0.830, 0.128, 0.044, 0.32168, 0.33767)
"""CIE x, y of red, green, blue and white of ACEScg (AMPAS S-2014-004)."""

REC709_TO_AP1: NDArray[np.float32] = np.array(
    [
        [0.6130974024, 0.3395231462, 0.0473794514],
        [0.0701937225, 0.9163538791, 0.0134523985],
        [0.0206155929, 0.1095697729, 0.8698146342],
    ],
    np.float32,
)
"""Linear Rec.709 to ACEScg, Bradford adaptation D65 to ACES white, as the ACES 1 transforms have it."""


def srgb_to_linear(encoded: NDArray[Any]) -> Image:
    """Decode sRGB (IEC 61966-2-1) values 0..1 of any shape to linear light, float32."""
    value = np.asarray(encoded, np.float32)
    low = value / np.float32(12.92)
    high = np.power((np.maximum(value, 0.0) + np.float32(0.055)) / np.float32(1.055), np.float32(2.4))
    return np.where(value <= 0.04045, low, high).astype(np.float32)


def linear_to_srgb(linear: NDArray[Any]) -> Image:
    """Encode linear light as sRGB, any shape, float32; clipped to 0..1."""
    value = np.clip(np.asarray(linear, np.float32), 0.0, 1.0)
    high = np.float32(1.055) * np.power(value, np.float32(1 / 2.4)) - np.float32(0.055)
    return np.where(value <= 0.0031308, value * np.float32(12.92), high).astype(np.float32)


def luminance(rgb: Image) -> Image:
    """Relative luminance of linear Rec.709: (..., 3) to (...)."""
    weighted: Image = rgb @ np.array([0.2126, 0.7152, 0.0722], np.float32)
    return weighted


def read_data(name: str) -> bytes:
    """The bytes of one file of `demo/data`."""
    return resources.files("faceplate.demo").joinpath("data", name).read_bytes()


def decode_picture(data: bytes) -> Image:
    """An 8- or 16-bit sRGB PNG as (H, W, 3) linear Rec.709 float32, 0..1.

    Raises:
        ImageReadError: the bytes are no picture.
    """
    coded = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR | cv2.IMREAD_ANYDEPTH)
    if coded is None:
        raise ImageReadError("not a picture", expected="PNG", found=f"{len(data)} bytes")
    scale = np.float32(65535 if coded.dtype == np.uint16 else 255)
    return srgb_to_linear(coded[..., ::-1].astype(np.float32) / scale)


@functools.cache
def load_portrait() -> Image:
    """The portrait: (512, 512, 3) float32, linear Rec.709, 0..1, read-only."""
    picture = decode_picture(read_data("astronaut.png"))
    picture.flags.writeable = False
    return picture


@functools.cache
def _landmark_file() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(read_data("astronaut_landmarks.json"))
    return document


@functools.cache
def portrait_landmarks() -> Points:
    """(478, 3) float32, MediaPipe mesh order: x, y in portrait px, z in the same px away from the camera; read-only."""
    points = np.array(_landmark_file()["points"], np.float32)
    points.flags.writeable = False
    return points


@functools.cache
def mirrored_order() -> NDArray[np.intp]:
    """(478,) indices: point i of a mirrored picture lies where point `mirrored_order()[i]` lay before mirroring."""
    order = np.array(_landmark_file()["mirror"], np.intp)
    order.flags.writeable = False
    return order


def portrait_face_width() -> float:
    """Width of the face in the portrait, px: extent of the 468 face points along the axis through the eye corners."""
    points = portrait_landmarks()[:468, :2]
    axis = points[263] - points[33]
    along = points @ (axis / np.hypot(*axis))
    return float(along.max() - along.min())
