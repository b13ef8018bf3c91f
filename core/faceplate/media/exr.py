"""OpenEXR files: read a plate, write it back with new pixels and more layers, keep everything else.

Through the OpenEXR binding, which keeps every attribute, type and part. Pixels are never converted: half stays half.
LJ2K is refused: a damaged chunk aborts the whole process (seen with 3.5.3, heap corruption in its JPEG 2000 decoder).
14,000 random mutations of the other codecs gave a picture or a typed error each.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
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
from .exr_values import ExrCarrier, ExrLayer, ExrPart, Plane, to_half

__all__ = ["RESERVED_ATTRIBUTES", "Compression", "ExrLayer", "read_exr", "to_half", "write_exr"]

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
_COLOUR = frozenset(("R", "G", "B", "A", "r", "g", "b", "a", "RGB", "RGBA"))
# Attributes that the parts of one file must have in common, and the name of the part for added layers.
_SHARED = ("displayWindow", "pixelAspectRatio", "timeCode", "chromaticities")
_LAYER_PART = "faceplate"
RESERVED_ATTRIBUTES = frozenset(
    (
        *_STRUCTURE,
        "compression",
        "dataWindow",
        "displayWindow",
        "lineOrder",
        "name",
        "pixelAspectRatio",
        "tiles",
        "type",
    )
)
"""Names that `write_exr` does not take as attributes: they follow from the pixels and its other arguments."""


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
    _refuse_lj2k(path, layout)
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
        carrier=ExrCarrier(
            parts=tuple(ExrPart(part.header, rest) for part, rest in zip(parts, planes, strict=True)),
            plate=plate,
            originals=originals,
        ),
    )


def _refuse_lj2k(path: Path, layout: Sequence[PartLayout]) -> None:
    if any(part.compression == OpenEXR.LJ2K_COMPRESSION.value for part in layout):
        raise UnsupportedImageError(
            f"{path} is compressed with LJ2K",
            expected="any other EXR compression",
            hint="write the plate as zip or piz: LJ2K is lossy, and its decoder dies on a damaged file",
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
    """Whether the binding can give each layer's R, G, B(, A) as one array: one type, and a name that is free."""
    for part in layout:
        types = {channel.name: channel.dtype for channel in part.channels}
        for name in types:
            prefix = name[:-1]
            group = {types.get(prefix + component) for component in "RGB"}
            if name.endswith("R") and None not in group:
                group.add(types.get(prefix + "A", types[name]))
                if len(group) > 1 or prefix[:-1] in types or prefix in ("RGB.", "RGBA."):
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
    layer_window: Box | None = None,
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
        keep: "attributes" keeps the header of the plate's part alone (an element or a crop of the plate, of any
            dtype), "all" keeps all.
        layers: what to add; a layer of the same name is replaced whole.
        attributes: str, int, float, Fraction (rational), list of str, or values as `StoredImage.metadata` has them.
        data_window: what `pixels` cover; default the image's, else (0, 0, W, H).
        display_window: default the image's, else the data window.
        pixel_aspect: default the image's, else 1.
        compression: default the image's when that is lossless, else "zip".
        layer_window: what `layers` cover, plate px. They then go into a second part of their own, so that their cost
            follows the face and not the raster (a full 1080p float32 plane of zeros takes some 40 ms in zip).

    Raises:
        OutputError: the file cannot be written.
        ValueError: shapes, dtypes, windows or attribute names that do not fit (a mistake of the caller).
    """
    base = image.carrier if image is not None and isinstance(image.carrier, ExrCarrier) else None
    kept = image if base is not None and keep == "all" else None
    window = data_window or (image.data_window if image else Box(0, 0, pixels.shape[1], pixels.shape[0]))
    _check_pixels(pixels, window, kept)
    _check_layers(layers, layer_window or window)
    header: dict[str, Any] = dict(base.parts[base.plate].header) if base else {"type": OpenEXR.scanlineimage}
    header["dataWindow"] = _corners(window)
    header["displayWindow"] = _corners(display_window or (image.display_window if image else window))
    header["pixelAspectRatio"] = float(pixel_aspect or (image.pixel_aspect if image else 1.0))
    _set_attributes(header, attributes or {})
    planes = _plate_planes(pixels, kept)
    added = {name: plane for layer in layers for name, plane in layer.named()}
    before, after = [], []
    if base is not None and kept is not None:
        planes |= _split(base.parts[base.plate].channels, layers)
        plate = base.parts[base.plate]
        stale = _LAYER_PART if added else None  # the mattes of an earlier run
        others = [part for part in base.parts if part is plate or part.header.get("name") != stale]
        at = others.index(plate)
        before, after = (
            [_part(dict(p.header), p.channels, None) for p in ps] for ps in (others[:at], others[at + 1 :])
        )
    if layer_window is None:
        planes |= added
    elif added:
        header.setdefault("name", "plate")
        after.append(_layer_part(header, layer_window, added, attributes or {}))
    _save(path, [*before, _part(header, planes, compression), *after])


def _layer_part(
    plate: Mapping[str, Any], window: Box, planes: Mapping[str, Plane], attributes: Mapping[str, Any]
) -> OpenEXR.Part:
    """A part for the added layers alone, with the attributes that all parts of a file have to share."""
    shared = {name: plate[name] for name in _SHARED if name in plate}
    header = {**attributes, **shared, "name": _LAYER_PART, "type": OpenEXR.scanlineimage}
    return _part({**header, "dataWindow": _corners(window)}, planes, "zip")


def _check_pixels(pixels: Pixels, window: Box, kept: StoredImage | None) -> None:
    if pixels.ndim != 3 or pixels.shape[2] not in (3, 4) or pixels.dtype not in (np.float16, np.float32):
        raise ValueError(f"pixels must be (H, W, 3 or 4) float16 or float32, not {pixels.shape} {pixels.dtype}")
    if pixels.shape[:2] != (window.height, window.width):
        raise ValueError(f"pixels {pixels.shape} do not fill the data window {window}")
    if kept is not None and pixels.dtype != kept.pixels.dtype:
        raise ValueError(f"pixels must be {kept.pixels.dtype} like the image, not {pixels.dtype}")
    if kept is not None and window != kept.data_window:
        raise ValueError("another data window needs keep='attributes': the kept channels cover the old one")


def _check_layers(layers: Sequence[ExrLayer], window: Box) -> None:
    size = (window.height, window.width)
    for layer in layers:
        for name, plane in layer.named():
            if name in _COLOUR:
                raise ValueError(f"layer channel {name} is the plate's own: give it with the pixels")
            if plane.shape != size or plane.dtype not in (np.float16, np.float32, np.uint32):
                raise ValueError(f"layer channel {name} is {plane.shape} {plane.dtype}, its window {size}")


def _set_attributes(header: dict[str, Any], attributes: Mapping[str, Any]) -> None:
    for name, value in attributes.items():
        if name in RESERVED_ATTRIBUTES or not 0 < len(name.encode()) < 256:
            raise ValueError(f"{name!r} cannot be set as an attribute")
        if isinstance(value, int) and not -(2**31) <= value < 2**31:
            raise ValueError(f"attribute {name} does not fit 32 bits: {value}")
        if not isinstance(value, str | int | float | Fraction | list | tuple | np.ndarray) and not type(
            value
        ).__module__.startswith("OpenEXR"):
            raise ValueError(f"attribute {name} has a type that EXR cannot hold: {type(value).__name__}")
        header[name] = value


def _plate_planes(pixels: Pixels, kept: StoredImage | None) -> dict[str, Plane]:
    """The colour channels by their names in the file, in the types of the file."""
    names: tuple[str, ...] = ("R", "G", "B", "A")[: pixels.shape[2]]
    if kept is None or (kept.channels[0] == "R" and len(kept.channels) <= len(names) and not kept.carrier.originals):
        return {"".join(names): pixels}  # the binding takes these interleaved, which saves a copy
    if kept.channels[0] == "r":
        names = tuple(name.lower() for name in names)
    planes: dict[str, Plane] = {name: pixels[..., index] for index, name in enumerate(names)}
    if len(kept.channels) > len(names):
        planes[kept.channels[3]] = kept.pixels[..., 3]
    for name, original in kept.carrier.originals.items():
        if original.dtype == np.float16:
            # Unchanged values go back as they were: narrowing again would quieten signalling NaNs.
            wide = original.astype(np.float32)
            same = wide.view(np.uint32) == np.ascontiguousarray(planes[name]).view(np.uint32)
            planes[name] = np.where(same, original, to_half(planes[name]))
    return planes


def _split(channels: Mapping[str, Plane], layers: Sequence[ExrLayer]) -> dict[str, Plane]:
    """The kept channels, without those that a layer replaces."""
    kept: dict[str, Plane] = {}
    for key, plane in channels.items():
        single = {key: plane}
        if plane.ndim == 3:
            single = {f"{key}.{name}": plane[..., index] for index, name in enumerate("RGBA"[: plane.shape[2]])}
        replaced = [name for name in single if any(added.covers(name) for added in layers)]
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
    if not planes.keys() <= _COLOUR or header["compression"] != OpenEXR.NO_COMPRESSION:
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
