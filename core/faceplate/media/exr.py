"""OpenEXR files: read a plate, write it back with new pixels and more layers, keep everything else.

Through the OpenEXR binding, which keeps every attribute, type and part. Pixels are never converted: half stays half.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import OpenEXR
from numpy.typing import NDArray

from ..errors import ImageReadError, OutputError, UnsupportedImageError
from ..frame import Box, Pixels, StoredImage
from .atomic import atomic_write, output_error
from .exr_layout import PartLayout, read_layout

Plane = NDArray[np.float16] | NDArray[np.float32] | NDArray[np.uint32]
Compression = Literal["none", "rle", "zips", "zip", "piz", "pxr24", "htj2k256", "htj2k32", "zstd", "dwaa", "dwab"]

_COMPRESSIONS = {
    "none": OpenEXR.NO_COMPRESSION,
    "rle": OpenEXR.RLE_COMPRESSION,
    "zips": OpenEXR.ZIPS_COMPRESSION,
    "zip": OpenEXR.ZIP_COMPRESSION,
    "piz": OpenEXR.PIZ_COMPRESSION,
    "pxr24": OpenEXR.PXR24_COMPRESSION,
    "htj2k256": OpenEXR.HTJ2K256_COMPRESSION,
    "htj2k32": OpenEXR.HTJ2K32_COMPRESSION,
    "zstd": OpenEXR.ZSTD_COMPRESSION,
    "dwaa": OpenEXR.DWAA_COMPRESSION,
    "dwab": OpenEXR.DWAB_COMPRESSION,
}
_LOSSLESS = frozenset(_COMPRESSIONS[name] for name in _COMPRESSIONS if name not in ("pxr24", "dwaa", "dwab"))

# Header entries that follow from the pixels or from what the writer decides.
_STRUCTURE = ("channels", "chunkCount", "version")
_RESERVED = frozenset((*_STRUCTURE, "compression", "dataWindow", "displayWindow", "lineOrder", "name", "tiles", "type"))

_HALF_MAX = 65504.0


@dataclass(frozen=True, slots=True, eq=False)
class ExrLayer:
    """Channels to add to a plate.

    Attributes:
        name: "matte" gives channels "matte.A" and so on; "" gives channels without a layer ("Z").
        channels: component ("A", "R", ...) to (H, W) float16, float32 or uint32, as large as the plate's data window;
            the type is the type in the file.
    """

    name: str
    channels: Mapping[str, Plane]

    def named(self) -> Iterator[tuple[str, Plane]]:
        """(name in the file, plane) of each channel."""
        for component, plane in self.channels.items():
            yield f"{self.name}.{component}" if self.name else component, plane

    def covers(self, channel: str) -> bool:
        """True when a channel with this name in the file belongs to this layer."""
        return channel.rpartition(".")[0] == self.name if self.name else channel in self.channels


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    header: Mapping[str, Any]
    channels: Mapping[str, Plane]  # without the plate's; (H, W), or (H, W, 3 or 4) under "layer.RGB" or "layer.RGBA"


@dataclass(frozen=True, slots=True, eq=False)
class _Carrier:
    """All of an EXR file but the plate's pixels.

    `originals` holds the plate's planes where they have different types and `pixels` is their common float32.
    """

    parts: tuple[_Part, ...]
    plate: int
    originals: Mapping[str, Plane]


def to_half(array: NDArray[Any]) -> NDArray[np.float16]:
    """float16 of any shape, with what exceeds half's range clamped to +-65504 instead of becoming inf; NaN stays.

    For *changed* values only: an inf of the plate has to be written as it was.
    """
    if array.dtype == np.float16:
        return array
    clamped: NDArray[np.float16] = np.clip(array, -_HALF_MAX, _HALF_MAX).astype(np.float16)
    return clamped


def read_exr(path: str | os.PathLike[str], number: int | None = None) -> StoredImage:
    """Read the first part that has R, G, B (and A, where present); the rest rides along in `carrier`.

    `pixels` is float16 when these channels are half, else float32 (a mix of both is widened, and narrowed again on
    writing). Windows are the file's, negative overscan included.

    Raises:
        ImageReadError: absent, empty, not an EXR, damaged or truncated.
        UnsupportedImageError: deep, without R, G, B, subsampled, zero-sized or absurdly large.
    """
    path = Path(path)
    layout = read_layout(path)
    plate, names = _find_plate(path, layout)
    together = _can_interleave(layout)
    try:
        parts = OpenEXR.File(str(path), separate_channels=not together).parts
    except (RuntimeError, ValueError, MemoryError) as error:
        raise _damaged(path, str(error)) from error
    if len(parts) != len(layout):  # the binding drops a part that it cannot decode
        raise _damaged(path, f"{len(parts)} readable parts of {len(layout)}")
    planes = [{name: channel.pixels for name, channel in part.channels.items()} for part in parts]
    pixels, originals = _take_plate(planes[plate], names)
    header = parts[plate].header
    return StoredImage(
        pixels=pixels,
        channels=names,
        data_window=layout[plate].data_window,
        display_window=_window(header["displayWindow"]),
        pixel_aspect=float(header.get("pixelAspectRatio", 1.0)),
        number=number,
        path=path,
        file_format="exr",
        bit_depth="half" if pixels.dtype == np.float16 else "float",
        metadata={key: value for key, value in header.items() if key not in _STRUCTURE},
        carrier=_Carrier(
            parts=tuple(_Part(part.header, rest) for part, rest in zip(parts, planes, strict=True)),
            plate=plate,
            originals=originals,
        ),
    )


def _damaged(path: Path, found: str) -> ImageReadError:
    return ImageReadError(f"cannot decode {path}", found=found, hint="copy or render this frame again")


def _window(corners: tuple[Any, Any]) -> Box:
    (x0, y0), (x1, y1) = corners
    return Box(int(x0), int(y0), int(x1) + 1, int(y1) + 1)


def _corners(window: Box) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    return np.array([window.x0, window.y0], np.int32), np.array([window.x1 - 1, window.y1 - 1], np.int32)


def _find_plate(path: Path, layout: Sequence[PartLayout]) -> tuple[int, tuple[str, ...]]:
    """(index of the part, names of its colour channels)."""
    if any(part.is_deep for part in layout):
        raise UnsupportedImageError(
            f"{path} holds deep data",
            expected="flat pixels",
            found="a deep part",
            hint="flatten it first (DeepToImage)",
        )
    if any(channel.sampling != (1, 1) for part in layout for channel in part.channels):
        raise UnsupportedImageError(
            f"{path} has subsampled channels",
            expected="every channel at full resolution",
            found=", ".join(c.name for part in layout for c in part.channels if c.sampling != (1, 1)),
            hint="write the plate as RGB, not as luminance and chroma",
        )
    for index, part in enumerate(layout):
        types = {channel.name: channel.dtype for channel in part.channels}
        for names in (("R", "G", "B", "A"), ("r", "g", "b", "a")):
            if all(name in types for name in names[:3]):
                present = names if names[3] in types else names[:3]
                _check_types(path, present, types)
                return index, present
    raise UnsupportedImageError(
        f"{path} has no colour",
        expected="channels R, G, B",
        found=", ".join(channel.name for part in layout for channel in part.channels),
        hint="write the plate's colour into the RGB or RGBA layer",
    )


def _check_types(path: Path, names: Sequence[str], types: Mapping[str, np.dtype[Any]]) -> None:
    if any(types[name] == np.uint32 for name in names):
        raise UnsupportedImageError(
            f"{path} holds integer colour", expected="half or float", found="uint32", hint="write the plate as half"
        )


def _can_interleave(layout: Sequence[PartLayout]) -> bool:
    """Whether each layer's R, G, B(, A) have one type: only then the binding can give them as one array."""
    for part in layout:
        types = {channel.name: channel.dtype for channel in part.channels}
        for name in types:
            prefix = name[:-1]
            group = {types.get(prefix + component) for component in "RGB"}
            if name.endswith("R") and None not in group:
                group.add(types.get(prefix + "A", types[name]))
                if len(group) > 1:
                    return False
    return True


def _take_plate(planes: dict[str, Any], names: tuple[str, ...]) -> tuple[Pixels, dict[str, Plane]]:
    """Take the plate out of `planes`: (pixels, the original planes where their types differ)."""
    joined = planes.pop("".join(names), None)
    if joined is not None:
        return joined, {}
    separate = {name: planes.pop(name) for name in names}
    mixed = len({plane.dtype for plane in separate.values()}) > 1
    pixels: Pixels = np.stack(list(separate.values()), axis=-1)
    return pixels, separate if mixed else {}


def write_exr(
    path: str | os.PathLike[str],
    pixels: Pixels,
    *,
    image: StoredImage | None = None,
    keep: Literal["all", "attributes"] = "all",
    layers: Sequence[ExrLayer] = (),
    attributes: Mapping[str, Any] | None = None,
    data_window: Box | None = None,
    display_window: Box | None = None,
    pixel_aspect: float | None = None,
    compression: Compression | None = None,
) -> None:
    """Write an EXR atomically, losslessly unless told otherwise.

    With an `image` that `read_exr` gave, the file is that one again with new colour: every attribute, channel, type,
    part and window is kept (mip levels are not: they would show the old picture), `layers` go into the plate's part.
    With another image, or none, a fresh scanline file is written.

    Args:
        path: target; its folder must exist.
        pixels: (H, W, 3) or (H, W, 4), RGB or RGBA, written bit for bit. Same dtype as `image.pixels`, float16 or
            float32 where fresh. Four channels over an RGB image add A; three over RGBA keep the image's A.
        image: what was read; gives the defaults of everything below.
        keep: "attributes" keeps the header of the plate's part alone (an element or a crop of the plate), "all"
            keeps all.
        layers: what to add; a layer of the same name is replaced whole.
        attributes: str, int, float, Fraction (rational), list of str, or values as `StoredImage.metadata` has them.
        data_window: what `pixels` cover; default the image's, else (0, 0, W, H).
        display_window: default the image's, else the data window.
        pixel_aspect: default the image's, else 1.
        compression: default the image's when that is lossless, else "zip".

    Raises:
        OutputError: the file cannot be written.
        ValueError: shapes, dtypes, windows or attribute names that do not fit (a mistake of the caller).
    """
    base = image.carrier if image is not None and isinstance(image.carrier, _Carrier) else None
    window = data_window or (image.data_window if image else Box(0, 0, pixels.shape[1], pixels.shape[0]))
    _check_call(pixels, window, image if base else None, keep, layers)
    header: dict[str, Any] = dict(base.parts[base.plate].header) if base else {"type": OpenEXR.scanlineimage}
    header["dataWindow"] = _corners(window)
    header["displayWindow"] = _corners(display_window or (image.display_window if image else window))
    header["pixelAspectRatio"] = float(pixel_aspect or (image.pixel_aspect if image else 1.0))
    _set_attributes(header, attributes or {})
    planes = _plate_planes(pixels, image, base)
    whole = base is not None and keep == "all"
    if base is not None and whole:
        old = _split(base.parts[base.plate].channels, layers, planes)
        planes = old | planes
    planes |= {name: plane for layer in layers for name, plane in layer.named()}
    parts = [_part(header, planes, compression)]
    if base is not None and whole:
        others = [_part(dict(part.header), dict(part.channels), None) for part in base.parts]
        parts = [*others[: base.plate], *parts, *others[base.plate + 1 :]]
    _save(path, parts)


def _check_call(pixels: Pixels, window: Box, image: StoredImage | None, keep: str, layers: Sequence[ExrLayer]) -> None:
    if pixels.ndim != 3 or pixels.shape[2] not in (3, 4) or pixels.dtype not in (np.float16, np.float32):
        raise ValueError(f"pixels must be (H, W, 3 or 4) float16 or float32, not {pixels.shape} {pixels.dtype}")
    size = (window.height, window.width)
    if pixels.shape[:2] != size:
        raise ValueError(f"pixels {pixels.shape} do not fill the data window {window}")
    if image is not None and pixels.dtype != image.pixels.dtype:
        raise ValueError(f"pixels must be {image.pixels.dtype} like the image, not {pixels.dtype}")
    if image is not None and keep == "all" and window != image.data_window:
        raise ValueError("another data window needs keep='attributes': the kept channels cover the old one")
    for layer in layers:
        for name, plane in layer.named():
            if plane.shape != size or plane.dtype not in (np.float16, np.float32, np.uint32):
                raise ValueError(f"layer channel {name} is {plane.shape} {plane.dtype}, the data window {size}")


def _set_attributes(header: dict[str, Any], attributes: Mapping[str, Any]) -> None:
    for name, value in attributes.items():
        if name in _RESERVED or not 0 < len(name.encode()) < 256:
            raise ValueError(f"{name!r} cannot be set as an attribute")
        if isinstance(value, int) and not -(2**31) <= value < 2**31:
            raise ValueError(f"attribute {name} does not fit 32 bits: {value}")
        if not isinstance(value, str | int | float | Fraction | list | tuple | np.ndarray) and not type(
            value
        ).__module__.startswith("OpenEXR"):
            raise ValueError(f"attribute {name} has a type that EXR cannot hold: {type(value).__name__}")
        header[name] = value


def _plate_planes(pixels: Pixels, image: StoredImage | None, base: _Carrier | None) -> dict[str, Plane]:
    """The colour channels by their names in the file, in the types of the file."""
    names = ("R", "G", "B", "A")[: pixels.shape[2]]
    if image is None or base is None:
        return {name: pixels[..., index] for index, name in enumerate(names)}
    if image.channels[0] == "r":
        names = tuple(name.lower() for name in names)
    planes: dict[str, Plane] = {name: pixels[..., index] for index, name in enumerate(names)}
    if len(image.channels) > len(names):
        planes[image.channels[3]] = image.pixels[..., 3]
    for name, original in base.originals.items():
        if original.dtype == np.float16:
            # Unchanged values go back as they were: narrowing again would quieten signalling NaNs.
            wide = original.astype(np.float32)
            same = wide.view(np.uint32) == np.ascontiguousarray(planes[name]).view(np.uint32)
            planes[name] = np.where(same, original, to_half(planes[name]))
    return planes


def _split(channels: Mapping[str, Plane], layers: Sequence[ExrLayer], plate: Mapping[str, Plane]) -> dict[str, Plane]:
    """The kept channels, without those that a layer or the plate replaces."""
    kept: dict[str, Plane] = {}
    for key, plane in channels.items():
        layer, _, component = key.rpartition(".")
        prefix = f"{layer}." if layer else ""
        single = {key: plane} if plane.ndim == 2 else {prefix + c: plane[..., i] for i, c in enumerate(component)}
        replaced = [name for name in single if name in plate or any(added.covers(name) for added in layers)]
        if replaced:
            kept |= {name: value for name, value in single.items() if name not in replaced}
        else:
            kept[key] = plane
    return kept


def _part(header: dict[str, Any], planes: Mapping[str, Plane], compression: Compression | None) -> OpenEXR.Part:
    for name in _STRUCTURE:
        header.pop(name, None)
    header["compression"] = _COMPRESSIONS[compression] if compression else _lossless(header, planes)
    tiles = header.get("tiles")
    if tiles is not None and tiles.mode != OpenEXR.ONE_LEVEL:
        header["tiles"] = _one_level(tiles)
    if len(planes) > 4 or header["compression"] != OpenEXR.NO_COMPRESSION:
        # No longer an ACES container (SMPTE ST 2065-4), and readers refuse a file that claims to be one.
        header.pop("acesImageContainerFlag", None)
    # The binding reads strided arrays wrongly, without an error.
    whole = {name: np.ascontiguousarray(plane) for name, plane in planes.items()}
    return OpenEXR.Part(header, whole, str(header.get("name", "")))


def _one_level(tiles: Any) -> Any:
    single = OpenEXR.TileDescription()
    single.xSize, single.ySize = tiles.xSize, tiles.ySize
    single.mode, single.roundingMode = OpenEXR.ONE_LEVEL, tiles.roundingMode
    return single


def _lossless(header: Mapping[str, Any], planes: Mapping[str, Plane]) -> Any:
    stored = header.get("compression")
    if stored in _LOSSLESS:
        return stored
    if stored == OpenEXR.PXR24_COMPRESSION and all(plane.dtype != np.float32 for plane in planes.values()):
        return stored  # PXR24 cuts float32 to 24 bits but leaves half and uint alone
    return OpenEXR.ZIP_COMPRESSION


def _save(path: str | os.PathLike[str], parts: list[OpenEXR.Part]) -> None:
    with atomic_write(path) as temporary:
        try:
            OpenEXR.File(parts).write(str(temporary))
        except OutputError:
            raise
        except (RuntimeError, ValueError, TypeError, MemoryError) as error:
            raise output_error(path, error) from error
