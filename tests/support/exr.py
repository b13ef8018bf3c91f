"""EXR files that try a reader's patience, and a way to compare everything two files hold."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import OpenEXR
from numpy.typing import NDArray

HEIGHT, WIDTH = 256, 272

DISPLAY = (np.array([0, 0], np.int32), np.array([239, 199], np.int32))
OVERSCAN = (np.array([-16, -28], np.int32), np.array([WIDTH - 17, HEIGHT - 29], np.int32))


def all_halves() -> NDArray[np.float16]:
    """(256, 272) float16 that holds each of the 65536 bit patterns, NaN payloads and denormals included."""
    patterns = np.arange(HEIGHT * WIDTH, dtype=np.uint32).astype(np.uint16)
    return patterns.view(np.float16).reshape(HEIGHT, WIDTH)


def random_bits(seed: int, shape: tuple[int, ...] = (HEIGHT, WIDTH)) -> NDArray[np.uint32]:
    """uint32 of any bit pattern; viewed as float32 it holds signalling NaNs, inf and denormals."""
    return np.random.default_rng(seed).integers(0, 1 << 32, shape, dtype=np.uint32)


def hostile_attributes() -> dict[str, Any]:
    """One attribute of each type that productions use."""
    preview = np.zeros((2, 3), dtype=[("r", "u1"), ("g", "u1"), ("b", "u1"), ("a", "u1")])
    preview["r"] = 200
    return {
        "timeCode": OpenEXR.TimeCode(1, 2, 3, 4, True, False, False, True, False, False, 1, 2, 3, 4, 5, 6, 7, 8),
        "keyCode": OpenEXR.KeyCode(12, 34, 567890, 1234, 5, 4, 64),
        "chromaticities": (0.7347, 0.2653, 0.0, 1.0, 0.0001, -0.077, 0.32168, 0.33767),
        "colorInteropID": "lin_ap0_scene",
        "framesPerSecond": Fraction(24000, 1001),
        "preview": OpenEXR.PreviewImage(preview),
        "multiView": ["left", "right"],
        "worldToCamera": np.arange(16, dtype=np.float32).reshape(4, 4),
        "small": np.arange(9, dtype=np.float64).reshape(3, 3),
        "v2i": np.array([-3, 4], np.int32),
        "v3f": np.array([0.1, -0.2, 0.3], np.float32),
        "floats": [0.5, 1.5, 2.5],
        "nuke/node_hash": "1a2b3c",
        "nuke/input/frame_rate": "23.976",
        "comments": "Ünïcode, 日本",
        "isoSpeed": 800.0,
        "reelCount": -7,
        "empty": "",
    }


def write_hostile(path: Path) -> None:
    """Three parts: IDs (scanline, zips), the plate (tiled, zip, overscan), another view (scanline, piz, own window)."""
    shared = {"displayWindow": DISPLAY, "pixelAspectRatio": 2.0}
    attributes = hostile_attributes()
    both = {name: attributes[name] for name in ("timeCode", "chromaticities")}
    halves = all_halves()
    ids = {"id": random_bits(1), "Z": random_bits(2).view(np.float32)}
    plate: dict[str, Any] = {"RGBA": np.stack([halves, halves.T.reshape(HEIGHT, WIDTH), halves[::-1], halves], -1)}
    plate |= {f"crypto00.{name}": random_bits(3 + index).view(np.float32) for index, name in enumerate("RGBA")}
    plate |= {"spec": np.ascontiguousarray(plate["RGBA"][..., :3]), "mask": random_bits(9)}
    small = (np.array([5, 6], np.int32), np.array([14, 12], np.int32))
    tiles = OpenEXR.TileDescription()
    tiles.xSize, tiles.ySize, tiles.mode = 64, 32, OpenEXR.ONE_LEVEL
    scanline, tiled = {"type": OpenEXR.scanlineimage}, {"type": OpenEXR.tiledimage, "tiles": tiles}
    parts = [
        OpenEXR.Part(
            {**shared, **both, **scanline, "dataWindow": OVERSCAN, "compression": OpenEXR.ZIPS_COMPRESSION}, ids, "ids"
        ),
        OpenEXR.Part(
            {**shared, **attributes, **tiled, "dataWindow": OVERSCAN, "compression": OpenEXR.ZIP_COMPRESSION},
            {name: np.ascontiguousarray(value) for name, value in plate.items()},
            "plate",
        ),
        OpenEXR.Part(
            {
                **shared,
                **both,
                **scanline,
                "dataWindow": small,
                "compression": OpenEXR.PIZ_COMPRESSION,
                "view": "right",
            },
            {"right": np.ascontiguousarray(halves[:7, :30].reshape(7, 10, 3))},
            "right",
        ),
    ]
    OpenEXR.File(parts).write(str(path))


def write_flat(path: Path, channels: Mapping[str, NDArray[Any]], **header: Any) -> None:
    """One scanline part, zip unless the header says otherwise; channels as the binding takes them."""
    defaults = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
    OpenEXR.File({**defaults, **header}, {k: np.ascontiguousarray(v) for k, v in channels.items()}).write(str(path))


def contents(path: Path) -> list[tuple[dict[str, tuple[str, bytes]], dict[str, tuple[str, bytes]]]]:
    """Per part: attributes as (type, bytes in the file), channels as (dtype and shape, bytes)."""
    channels = [
        {
            name: (f"{channel.pixels.dtype} {channel.pixels.shape}", channel.pixels.tobytes())
            for name, channel in part.channels.items()
        }
        for part in OpenEXR.File(str(path), separate_channels=True).parts
    ]
    return list(zip(_headers(path.read_bytes()), channels, strict=True))


def _headers(data: bytes) -> list[dict[str, tuple[str, bytes]]]:
    """Every attribute as it lies in the file; read without the binding, so that it cannot hide a loss of its own."""
    multi_part = data[5] & 0x10
    headers, at = [], 8
    while data[at]:
        header = {}
        while data[at]:
            name, kind, rest = data[at:].split(b"\0", 2)
            at += len(name) + len(kind) + 2
            size = int.from_bytes(rest[:4], "little")
            header[name.decode()] = (kind.decode(), data[at + 4 : at + 4 + size])
            at += 4 + size
        at += 1
        header.pop("chunkCount", None)
        del header["channels"]
        headers.append(header)
        if not multi_part:
            break
    return headers
