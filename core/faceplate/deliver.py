"""What is written for one frame: the plate with its change, the element, mattes, Cryptomatte and ST map.

Every frame of a job has the same layers, black where nothing was replaced, so that a comp script never breaks on a
frame without a face.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import OutputError, SettingError
from .frame import Box, Frame, Pixels
from .media.carried import exr_attributes
from .media.cryptomatte import cryptomatte_layers
from .media.exr import ExrLayer, to_half, write_exr
from .media.exr_values import ExrCarrier
from .media.formats import MOVIES
from .media.images import write_image
from .pipeline import SwappedFrame
from .plate import Plate

LAYERS: Mapping[str, str] = {
    "rgba": "the whole plate with the change; the file keeps the plate's windows, channels and attributes",
    "element": "instead of rgba: the new face alone, premultiplied, with its own data window",
    "face": "face.RGBA, half: the new face, premultiplied by the matte",
    "matte": "matte.A, half: where and how far the plate was changed",
    "matte_core": "matte_core.A, half: the engine's matte before occluders, hold-out and strength",
    "matte_occluder": "matte_occluder.A, half: what lies in front of the face",
    "cryptomatte": "Cryptomatte of the identities, float",
    "st": "st.R and st.G, float: canonical face UV of each pixel, v from the bottom",
}
DEFAULT_LAYERS = ("rgba", "face", "matte", "matte_core", "matte_occluder")
CRYPTOMATTE_NAME = "Faceplate"
_ELEMENT_MARGIN = 8


def parse_layers(text: str | None) -> tuple[str, ...]:
    """Layers from "default", "all" or a comma-separated list, in the order of `LAYERS`.

    Raises:
        SettingError: an unknown name, or both rgba and element.
    """
    if text is None or text.strip() == "default":
        return DEFAULT_LAYERS
    if text.strip() == "all":
        return tuple(name for name in LAYERS if name != "element")
    names = {name.strip().lower() for name in text.split(",") if name.strip()}
    for name in sorted(names - LAYERS.keys()):
        near = difflib.get_close_matches(name, LAYERS, n=1)
        raise SettingError(
            f"no layer is called {name!r}",
            hint=f"did you mean {near[0]}?" if near else f"layers are {', '.join(LAYERS)}",
        )
    if {"rgba", "element"} <= names:
        raise SettingError(
            "rgba and element exclude each other in one file",
            hint="run twice with two outputs; the analysis is used again",
        )
    if "element" not in names:
        names.add("rgba")
    return tuple(name for name in LAYERS if name in names)


def check_output_format(plate: Plate, suffix: str, layers: Sequence[str]) -> None:
    """Refuse an output that cannot hold the result.

    Raises:
        OutputError: neither EXR, a movie nor the plate's own format, or layers asked of a format that has none.
    """
    suffix = suffix.lower()
    if suffix == ".exr":
        return
    if suffix in MOVIES:
        if tuple(layers) not in (DEFAULT_LAYERS, ("rgba",), ("element",)):
            hint = "write .exr, leave --layers out, or write --layers element for the face alone"
            raise OutputError("movies cannot hold layers", found=", ".join(layers), hint=hint)
        return
    if suffix != plate.first.path.suffix.lower():
        raise OutputError(
            f"cannot write {suffix or 'files without a suffix'} from this plate",
            expected=f".exr, a movie, or {plate.first.path.suffix} as the plate",
            hint="EXR holds the linear result with all layers; convert it in the comp",
        )
    if tuple(layers) not in (DEFAULT_LAYERS, ("rgba",)):
        raise OutputError(
            f"{suffix} files cannot hold layers", found=", ".join(layers), hint="write .exr, or leave --layers out"
        )


def replaced_layers(plate: Plate, suffix: str, layers: Sequence[str]) -> tuple[str, ...]:
    """What to tell of the plate's own layers that the job's take the place of, a sentence each; those that the job does
    not ask for are kept.

    Args:
        plate: its first frame speaks for all.
        suffix: of the output.
        layers: as `parse_layers` gives them.
    """
    carrier = plate.first.carrier
    if suffix.lower() != ".exr" or not isinstance(carrier, ExrCarrier) or "element" in layers:
        return ()
    channels = carrier.parts[carrier.plate].channels
    own = {key if plane.ndim == 3 else key.rpartition(".")[0] for key, plane in channels.items()}
    ranks = f"{CRYPTOMATTE_NAME}[0-9][0-9]" if "cryptomatte" in layers else ""
    return tuple(
        f"the plate's own layer {name} is replaced by this job's; leave it out of --layers to keep the plate's"
        for name in sorted(own)
        if name in layers or (ranks and fnmatchcase(name, ranks))
    )


@dataclass(frozen=True, slots=True)
class Delivery:
    """How results are written.

    Attributes:
        layers: as `parse_layers` gives them.
        attributes: header entries of every frame.
        identities: names of all identities of the job, so that every frame's Cryptomatte lists the same ones.
    """

    layers: tuple[str, ...]
    attributes: Mapping[str, Any]
    identities: tuple[str, ...]


def write_frame(path: Path, plate: Plate, frame: Frame, swapped: SwappedFrame, delivery: Delivery) -> None:
    """Write one frame, atomically.

    Raises:
        OutputError: it cannot be written; nothing is left under the name.
    """
    if path.suffix.lower() != ".exr":
        _write_encoded(path, plate, frame, swapped)
        return
    if "element" in delivery.layers:
        _write_element(path, frame, swapped, delivery)
        return
    layers, attributes = frame_layers(swapped, frame.data_window, delivery)
    assert frame.stored is not None
    if frame.stored.file_format == "exr" and not plate.is_encoded:
        write_exr(path, swapped.pixels, image=frame.stored, layers=layers, attributes=attributes)
        return
    half = frame.stored.bit_depth in ("half", "uint8", "uint10", "uint12")
    write_exr(
        path,
        _to_depth(swapped.pixels, half=half),
        layers=layers,
        attributes={**exr_attributes(frame.stored), **attributes},
        data_window=frame.data_window,
        display_window=frame.display_window,
        pixel_aspect=frame.pixel_aspect,
    )


def _to_depth(pixels: NDArray[Any], *, half: bool) -> NDArray[Any]:
    return to_half(pixels) if half else np.asarray(pixels, np.float32)


def _write_encoded(path: Path, plate: Plate, frame: Frame, swapped: SwappedFrame) -> None:
    """In the plate's own format and encoding; code values outside the matte are the file's own."""
    assert frame.stored is not None
    pixels: Pixels = frame.stored.pixels.copy()
    if not swapped.window.is_empty:
        rows, columns = swapped.window.slices(frame.data_window)
        changed = np.ascontiguousarray(swapped.pixels[rows, columns, :3], np.float32)
        if plate.is_encoded:
            changed = plate.config.transform(plate.colour_space, plate.decision.space).numpy(changed)
        np.copyto(pixels[rows, columns, :3], changed, where=(swapped.matte > 0)[..., None])
    write_image(path, pixels, image=frame.stored)


def _spread(plane: NDArray[Any], window: Box, over: Box, dtype: type) -> NDArray[Any]:
    """A plane of `window` as a full one over `over`, 0 elsewhere."""
    full: NDArray[Any] = np.zeros((over.height, over.width), dtype)
    rows, columns = window.intersect(over).slices(over)
    own = window.intersect(over).slices(window)
    full[rows, columns] = plane[own]
    return full


def frame_layers(swapped: SwappedFrame, over: Box, delivery: Delivery) -> tuple[list[ExrLayer], dict[str, Any]]:
    """The layers that `delivery` names over the window `over`, and its attributes with what the layers add to them."""
    wanted = set(delivery.layers)
    attributes = dict(delivery.attributes)
    layers: list[ExrLayer] = []

    def spread(plane: NDArray[Any], dtype: type = np.float16) -> NDArray[Any]:
        clamped = to_half(plane) if dtype is np.float16 else plane
        return _spread(clamped, swapped.window, over, dtype)

    if "face" in wanted:
        channels = {name: spread(swapped.face[..., index]) for index, name in enumerate("RGB")}
        layers.append(ExrLayer("face", {**channels, "A": spread(swapped.matte)}))
    for name in ("matte", "matte_core", "matte_occluder"):
        if name in wanted:
            layers.append(ExrLayer(name, {"A": spread(getattr(swapped, name))}))
    if "st" in wanted:
        layers.append(
            ExrLayer("st", {name: spread(swapped.st[..., index], np.float32) for index, name in enumerate("RG")})
        )
    if "cryptomatte" in wanted:
        empty = np.zeros((swapped.window.height, swapped.window.width), np.float32)
        shares = {name: (swapped.window, swapped.identities.get(name, empty)) for name in delivery.identities}
        ranks = max(2, 2 * math.ceil(len(shares) / 2))
        crypto, header = cryptomatte_layers(CRYPTOMATTE_NAME, shares, over, ranks=ranks)
        layers.extend(crypto)
        attributes |= header
    return layers, attributes


def _write_element(path: Path, frame: Frame, swapped: SwappedFrame, delivery: Delivery) -> None:
    """The premultiplied face in a data window of its own, with a black rim so that a cropped bbox repeats nothing."""
    window = swapped.window.grow(_ELEMENT_MARGIN) if not swapped.window.is_empty else _corner(frame)
    layers, attributes = frame_layers(swapped, window, delivery)
    half = frame.pixels.dtype == np.float16 or frame.stored is None or frame.stored.bit_depth.startswith("uint")
    dtype = np.float16 if half else np.float32
    planes = [*(swapped.face[..., index] for index in range(3)), swapped.matte]
    rgba = np.stack([_spread(_to_depth(plane, half=half), swapped.window, window, dtype) for plane in planes], -1)
    attributes["faceplate/element"] = "premultiplied"
    write_exr(
        path,
        rgba,
        image=frame.stored if frame.stored is not None and frame.stored.file_format == "exr" else None,
        keep="attributes",
        layers=layers,
        attributes=attributes,
        data_window=window,
        display_window=frame.display_window,
        pixel_aspect=frame.pixel_aspect,
    )


def _corner(frame: Frame) -> Box:
    """One black pixel: an EXR cannot be empty."""
    x, y = frame.display_window.x0, frame.display_window.y0
    return Box(x, y, x + 1, y + 1)
