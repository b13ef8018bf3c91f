"""Between the server and its worker processes: values as JSON with arrays beside it, over a worker's stdin and stdout.

A message is a mapping with text keys. On the pipe: u32 bytes of JSON, u64 bytes of arrays, then both, little-endian.
What JSON has no word for is an object with the key "$": tuples, mappings with other keys, arrays (dtype, shape, place),
bytes, paths, and the values of a closed table of types. Both ends are the same release; nobody else's bytes are read
here.
"""

from __future__ import annotations

import dataclasses
import json
import struct
import threading
from collections.abc import Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from faceplate.deliver import Delivery
from faceplate.face import Appearance, FaceTexture, Identity, Observation, Origin, Portrait, Track
from faceplate.faces.detect import DetectSettings
from faceplate.faces.landmarks import LandmarkSettings
from faceplate.faces.shot import AnalyseSettings, ShotFaces, ShotSource
from faceplate.frame import Box
from faceplate.job import FrameState, HoldOut
from faceplate.jobs.manifest import FrameRecord
from faceplate.media.movies.tags import CodesAre
from faceplate.models.device import Device
from faceplate.plate import FrameSource
from faceplate.swap.base import ShotSolve
from faceplate.swap.neural.shot import ShotLook
from faceplate_client import wire
from faceplate_client.slots import FrameHeader, FrameType

from ..rings import RingLimits

_ALIGNED = 64
"""Bytes that every array begins at a multiple of."""
_SIZES = struct.Struct("<IQ")
_TYPES: tuple[type, ...] = (
    *(Observation, Origin, Appearance, Track, FaceTexture, Portrait, Identity, ShotFaces, ShotSource, AnalyseSettings),
    *(DetectSettings, LandmarkSettings, Box, FrameSource, FrameRecord, FrameState, Delivery, HoldOut, Device, CodesAre),
    *(FrameHeader, FrameType, RingLimits, ShotSolve, ShotLook),
)


@cache
def _by_name() -> Mapping[str, type]:
    spoken = (kind for kind in vars(wire).values() if isinstance(kind, type) and dataclasses.is_dataclass(kind))
    return {_name(kind): kind for kind in (*_TYPES, *spoken)}


@cache
def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


@cache
def _described(kind: type) -> tuple[str, tuple[str, ...]]:
    """Name and fields of a type of the table."""
    name = _name(kind)
    if _by_name().get(name) is not kind:
        raise TypeError(f"{name} cannot go to a worker process")
    return name, tuple(spec.name for spec in dataclasses.fields(cast("Any", kind)))


class PipeClosed(Exception):
    """The other end is gone."""


class Pipe:
    """One end. `send` may be called from several threads, `receive` from one.

    Args:
        reading: binary stream of what comes.
        writing: binary stream of what goes.
    """

    def __init__(self, reading: IO[bytes], writing: IO[bytes]) -> None:
        self._reading = reading
        self._writing = writing
        self._lock = threading.Lock()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message.

        Raises:
            PipeClosed: nobody reads it.
            TypeError: a value that is not in the table.
        """
        parts = encode(message)
        try:
            with self._lock:
                for part in parts:
                    self._writing.write(part)
                self._writing.flush()
        except (OSError, ValueError) as error:
            raise PipeClosed(str(error)) from error

    def receive(self) -> dict[str, Any]:
        """Wait for the next message.

        Raises:
            PipeClosed: there will be none.
        """
        head, rest = _SIZES.unpack(self._exactly(_SIZES.size))
        document = self._exactly(head)
        return decode(document, self._exactly(rest))

    def _exactly(self, count: int) -> bytearray:
        data = bytearray(count)
        view, got = memoryview(data), 0
        try:
            while got < count:
                more = self._reading.readinto(view[got:])  # type: ignore[attr-defined]
                if not more:
                    raise PipeClosed("end of the stream")
                got += more
        except (OSError, ValueError) as error:
            raise PipeClosed(str(error)) from error
        return data


def encode(message: Mapping[str, Any]) -> list[Any]:
    """A message as buffers to write one after the other."""
    arrays: list[Any] = []
    place = [0]

    def put(value: Any) -> Any:
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, Enum):
            return {"$": _name(type(value)), "is": value.value}
        if isinstance(value, np.ndarray):
            flat = np.ascontiguousarray(value)
            gap = -flat.nbytes % _ALIGNED
            arrays.extend([flat.reshape(-1).view(np.uint8) if flat.size else b"", bytes(gap)])
            at, place[0] = place[0], place[0] + flat.nbytes + gap
            return {"$": "array", "is": [flat.dtype.str, list(value.shape), at]}
        if isinstance(value, bytes):
            return {"$": "bytes", "is": put(np.frombuffer(value, np.uint8))}
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, Path):
            return {"$": "path", "is": str(value)}
        if isinstance(value, list):
            return [put(item) for item in value]
        if isinstance(value, (tuple, frozenset, set)):
            return {"$": "tuple", "is": [put(item) for item in value]}
        if isinstance(value, Mapping):
            if all(type(key) is str for key in value) and "$" not in value:
                return {key: put(item) for key, item in value.items()}
            return {"$": "mapping", "is": [[put(key), put(item)] for key, item in value.items()]}
        name, fields = _described(cast("type", type(value)))
        return {"$": name, "is": {field: put(getattr(value, field)) for field in fields}}

    document = json.dumps(put(dict(message)), separators=(",", ":")).encode("utf-8", "surrogatepass")
    return [_SIZES.pack(len(document), place[0]), document, *arrays]


def decode(document: bytes | bytearray, arrays: bytes | bytearray) -> dict[str, Any]:
    """The message back; arrays are views of `arrays`."""

    def take(value: Any) -> Any:
        if isinstance(value, list):
            return [take(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "$" not in value:
            return {key: take(item) for key, item in value.items()}
        name, held = value["$"], value["is"]
        if name == "array":
            kind, shape, at = held
            count = int(np.prod(shape, dtype=np.int64))
            return np.frombuffer(arrays, kind, count, at if count else 0).reshape(shape)
        if name == "bytes":
            return take(held).tobytes()
        if name == "path":
            return Path(held)
        if name == "tuple":
            return tuple(take(item) for item in held)
        if name == "mapping":
            return {take(key): take(item) for key, item in held}
        made = _by_name()[name]
        return made(held) if issubclass(made, Enum) else made(**{key: take(item) for key, item in held.items()})

    message = take(json.loads(bytes(document).decode("utf-8", "surrogatepass")))
    assert isinstance(message, dict)
    return message
