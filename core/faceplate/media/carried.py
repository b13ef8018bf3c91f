"""Metadata of a plate that is no EXR, as EXR attributes, so that a conversion keeps timecode and slate."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import OpenEXR

from ..frame import StoredImage
from .exr import RESERVED_ATTRIBUTES

# OpenImageIO's names of standard OpenEXR attributes.
_STANDARD = {"ImageDescription": "comments", "DateTime": "capDate", "Copyright": "owner"}
# Facts about the old file that would be wrong in the new one; PixelAspectRatio is an argument of the writer.
_OLD_FILE = ("oiio:", "tiff:", "png:", "jpeg:", "Compression", "PixelAspectRatio", "smpte:", "Software", "movie:")


def exr_attributes(image: StoredImage) -> dict[str, Any]:
    """Attributes for `exr.write_exr` of a fresh file, from an image of another format.

    Text and numbers keep their names, but standard ones get OpenEXR's; `smpte:TimeCode` becomes `timeCode`,
    `smpte:KeyCode` `keyCode`, and the frame rate `framesPerSecond`. What describes only the old file is left out,
    colour tags too: the caller knows what the pixels are now.
    """
    attributes: dict[str, Any] = {}
    for name, value in image.metadata.items():
        if name.startswith(_OLD_FILE) or name in RESERVED_ATTRIBUTES or not _fits(value):
            continue
        attributes[_STANDARD.get(name, name)] = value
    timecode = image.metadata.get("smpte:TimeCode")
    if timecode is not None:
        attributes["timeCode"] = _timecode(*timecode)
    keycode = image.metadata.get("smpte:KeyCode")
    if keycode is not None:
        attributes["keyCode"] = OpenEXR.KeyCode(*keycode)
    rate = image.metadata.get("dpx:FrameRate") or image.metadata.get("FramesPerSecond")
    if isinstance(rate, int | float) and rate > 0:
        attributes["framesPerSecond"] = _rate(rate)
    return attributes


def _fits(value: object) -> bool:
    if isinstance(value, int):
        return -(2**31) <= value < 2**31
    return isinstance(value, str | float)


def _rate(rate: float) -> Fraction:
    """24, 25, ... or the NTSC rate (n * 1000 / 1001) nearby, else the number as it is."""
    for whole in (Fraction(round(rate)), Fraction(round(rate) * 1000, 1001)):
        if abs(float(whole) - rate) < 2e-3:
            return whole
    return Fraction(rate).limit_denominator(1001)


def _timecode(flags: int, user: int) -> Any:
    """SMPTE 12M time and flags, packed as for 60-field television, to the binding's value."""

    def digits(shift: int, tens_bits: int) -> int:
        return (flags >> shift & 15) + 10 * (flags >> (shift + 4) & (1 << tens_bits) - 1)

    bits = [bool(flags >> bit & 1) for bit in (6, 7, 15, 23, 30, 31)]  # drop frame, colour frame, field, bgf0..2
    groups = [user >> shift & 15 for shift in range(0, 32, 4)]
    return OpenEXR.TimeCode(digits(24, 2), digits(16, 3), digits(8, 3), digits(0, 2), *bits, *groups)
