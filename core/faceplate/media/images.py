"""TIFF, DPX, PNG and JPEG through OpenImageIO, and one way to write any format.

Integer files keep their codes: a code is read as code / max and written back as the same code, so that pixels nobody
changed are unchanged in the file (but in JPEG, which is lossy whatever one does).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import OpenImageIO as oiio
from numpy.typing import NDArray

from ..errors import ImageReadError, OutputError, UnsupportedImageError
from ..frame import Box, Pixels, StoredImage
from .atomic import atomic_write, output_error
from .exr import Compression, ExrLayer, write_exr
from .formats import format_of

_BITS = {"uint8": 8, "uint10": 10, "uint12": 12, "uint16": 16}
_OIIO_TYPES = {"uint8": "uint8", "uint16": "uint16", "float16": "half", "float32": "float"}
_DEPTHS = {
    "dpx": ("uint10", "uint12", "uint16", "uint8"),
    "tiff": ("uint16", "uint8", "half", "float"),
    "png": ("uint16", "uint8"),
    "jpeg": ("uint8",),
}
"""Bit depths that a format can be written in, the default first."""


@dataclass(frozen=True, slots=True, eq=False)
class _Carrier:
    spec: Any  # oiio.ImageSpec as read
    extra: NDArray[Any] | None  # (H, W, n) channels beyond RGBA, as read


def read_oiio(path: Path, file_format: str, number: int | None) -> StoredImage:
    """Read a file whose format is known; see `read.read_image`.

    Integer codes become float32 code / max; half and float stay. Alpha stays as it is stored (unassociated in PNG).
    """
    config = oiio.ImageSpec()
    config.attribute("oiio:UnassociatedAlpha", 1)  # without it OpenImageIO premultiplies and loses colour under alpha 0
    file = oiio.ImageInput.open(str(path), config)
    if file is None:
        raise _damaged(path, oiio.geterror())
    spec = file.spec()
    _check_spec(path, spec)
    bit_depth = _bit_depth(spec, file_format)
    if bit_depth == "uint10" and spec.nchannels == 4 and spec.width % 3 == 1:
        # Seen with OpenImageIO 3.2.2: it looks for the last sample of each row in the wrong bits of its word.
        raise UnsupportedImageError(
            f"OpenImageIO misreads the last alpha of each row of {path}",
            expected="10 bit RGBA of a width that is no 3n + 1",
            found=f"width {spec.width}",
            hint="write the plate as RGB, 16 bit or EXR",
        )
    stored = file.read_image("uint16" if bit_depth in ("uint10", "uint12") else spec.format)
    message = file.geterror()
    file.close()
    if stored is None or message:
        raise _damaged(path, message or "no pixels")
    count = 4 if spec.nchannels >= 4 and spec.channelnames[3] == "A" else 3
    return StoredImage(
        pixels=_from_codes(stored[..., :count], bit_depth),
        channels=("R", "G", "B", "A")[:count],
        data_window=Box(spec.x, spec.y, spec.x + spec.width, spec.y + spec.height),
        display_window=Box(spec.full_x, spec.full_y, spec.full_x + spec.full_width, spec.full_y + spec.full_height),
        pixel_aspect=float(spec.get_float_attribute("PixelAspectRatio", 1.0)) or 1.0,
        number=number,
        path=path,
        file_format=file_format,
        bit_depth=bit_depth,
        metadata={entry.name: entry.value for entry in spec.extra_attribs},
        carrier=_Carrier(spec, stored[..., count:].copy() if spec.nchannels > count else None),
    )


def _damaged(path: Path, found: str) -> ImageReadError:
    return ImageReadError(f"cannot decode {path}", found=found.strip(), hint="copy or render this frame again")


def _check_spec(path: Path, spec: Any) -> None:
    names = tuple(spec.channelnames)
    if spec.deep or spec.width < 1 or spec.height < 1:
        raise UnsupportedImageError(f"{path} holds no flat pixels", hint="render this frame again")
    if names[:3] != ("R", "G", "B"):
        raise UnsupportedImageError(
            f"{path} has no colour", expected="channels R, G, B", found=", ".join(names), hint="convert it to RGB"
        )


def _bit_depth(spec: Any, file_format: str) -> str:
    name = str(spec.format)
    bits = spec.get_int_attribute("oiio:BitsPerSample", 0)
    if file_format == "dpx" and name == "uint16" and bits in (10, 12):
        return f"uint{bits}"
    if name in ("uint8", "uint16", "half", "float"):
        return name
    raise UnsupportedImageError(
        "the pixels have a type that Faceplate does not read",
        expected="8, 10, 12 or 16 bit integers, half or float",
        found=name,
        hint="convert the pictures to EXR first",
    )


def _from_codes(stored: NDArray[Any], bit_depth: str) -> Pixels:
    if bit_depth not in _BITS:
        return np.ascontiguousarray(stored)
    bits = _BITS[bit_depth]
    if bits in (10, 12):
        stored = stored >> (16 - bits)  # OpenImageIO widens by repeating the upper bits below
    pixels: Pixels = stored.astype(np.float32)
    pixels /= np.float32((1 << bits) - 1)
    return pixels


def _to_codes(pixels: Pixels, bit_depth: str) -> NDArray[Any]:
    """The nearest codes; below 0 and NaN give 0, above 1 the largest code."""
    if bit_depth == "half":
        return pixels.astype(np.float16, copy=False)
    if bit_depth == "float":
        return pixels.astype(np.float32, copy=False)
    bits = _BITS[bit_depth]
    largest = (1 << bits) - 1
    codes = np.rint(np.nan_to_num(np.clip(pixels.astype(np.float32, copy=False), 0, 1), nan=0.0) * largest)
    if bits == 8:
        return codes.astype(np.uint8)
    wide = codes.astype(np.uint16)
    return wide if bits == 16 else (wide << (16 - bits)) | (wide >> (2 * bits - 16))


def write_image(
    path: str | os.PathLike[str],
    pixels: Pixels,
    *,
    image: StoredImage | None = None,
    layers: Sequence[ExrLayer] = (),
    attributes: Mapping[str, Any] | None = None,
    bit_depth: str | None = None,
    compression: Compression | None = None,
) -> None:
    """Write pixels atomically in the format of the path's extension.

    Args:
        path: target; its folder must exist.
        pixels: (H, W, 3) or (H, W, 4) float16 or float32. Integer formats hold 0..1 and cut what lies outside.
        image: the image these pixels came from: windows, pixel aspect, metadata, and (same format) bit depth and
            further channels.
        layers: EXR only.
        attributes: str, int or float values to add to the file's metadata.
        bit_depth: not for EXR, where the dtype of `pixels` decides; default the image's, else 16 bits where the format
            has them, 10 for DPX.
        compression: EXR only, see `write_exr`.

    Raises:
        OutputError: the file cannot be written, or the format cannot hold this.
        UnsupportedImageError: unknown extension.
    """
    file_format = format_of(path)
    if file_format == "exr":
        write_exr(path, pixels, image=image, layers=layers, attributes=attributes, compression=compression)
        return
    if layers:
        raise OutputError(
            f"cannot write {os.fspath(path)}",
            expected="EXR for layers",
            found=f"{file_format.upper()} and {len(layers)} layers",
            hint="write EXR, or switch the layers off",
        )
    if file_format == "jpeg" and pixels.shape[2] == 4:
        raise OutputError(
            f"cannot write {os.fspath(path)}", expected="RGB", found="RGBA", hint="JPEG has no alpha: write PNG or EXR"
        )
    same = image is not None and image.file_format == file_format
    depth = bit_depth or (image.bit_depth if image is not None and same else _DEPTHS[file_format][0])
    if depth not in _DEPTHS[file_format]:
        raise OutputError(
            f"{file_format.upper()} has no bit depth {depth}", expected=", ".join(_DEPTHS[file_format]), found=depth
        )
    codes = _to_codes(pixels, depth)
    extra = image.carrier.extra if image is not None and same else None
    if extra is not None:
        codes = np.concatenate([codes, extra], axis=2)
    spec = _spec(codes, image, file_format, depth, attributes or {})
    with atomic_write(path) as temporary:
        _write(path, temporary, spec, codes)


def _spec(
    codes: NDArray[Any], image: StoredImage | None, file_format: str, depth: str, attributes: Mapping[str, Any]
) -> Any:
    height, width, channels = codes.shape
    same = image is not None and image.file_format == file_format and channels == image.carrier.spec.nchannels
    spec = oiio.ImageSpec(image.carrier.spec) if image is not None and same else None
    if spec is None:
        spec = oiio.ImageSpec(width, height, channels, _OIIO_TYPES[codes.dtype.name])
        if image is not None:
            _place(spec, image)
    spec.set_format(_OIIO_TYPES[codes.dtype.name])
    if depth == "half":
        spec.attribute("tiff:half", 1)  # or OpenImageIO widens it to float
    if file_format == "png":
        spec.attribute("oiio:UnassociatedAlpha", 1)
    if depth in ("uint10", "uint12"):
        spec.attribute("oiio:BitsPerSample", _BITS[depth])
    if file_format == "jpeg":
        spec.attribute("Compression", "jpeg:100")
        spec.attribute("jpeg:subsampling", "4:4:4")
    for name, value in attributes.items():
        spec.attribute(name, float(value) if isinstance(value, Fraction) else value)
    return spec


def _place(spec: Any, image: StoredImage) -> None:
    data, display = image.data_window, image.display_window
    spec.x, spec.y = data.x0, data.y0
    spec.full_x, spec.full_y, spec.full_width, spec.full_height = display.x0, display.y0, display.width, display.height
    spec.attribute("PixelAspectRatio", float(image.pixel_aspect))


def _write(path: str | os.PathLike[str], temporary: Path, spec: Any, codes: NDArray[Any]) -> None:
    file = oiio.ImageOutput.create(str(temporary))
    if file is None:
        raise output_error(path, oiio.geterror())
    written = file.open(str(temporary), spec) and file.write_image(np.ascontiguousarray(codes))
    message = file.geterror()
    closed = file.close()  # says True after a failed write, so both are looked at
    if not (written and closed) or message:
        raise output_error(path, message or file.geterror())
