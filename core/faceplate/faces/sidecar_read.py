"""Reads the text of a sidecar and believes nothing that it has not checked."""

from __future__ import annotations

import base64
import binascii
import io
import json
import math
import zipfile
import zlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from ..errors import SettingError, SidecarError
from ..face import MESH_POINTS, Appearance, Cover, Observation, Origin, Points, Track
from ..frame import Box
from .appearance import SIZE
from .corrections import KEY, correct, parse_corrections
from .detect import DetectSettings
from .landmarks import LandmarkSettings
from .pose import yaw_degrees
from .shot import AnalyseSettings, ShotFaces, ShotSource, quantise

FORMAT = "faceplate faces"
VERSION = 1

_DERIVED = ("no_face", "weak", "tool")
_FAR_PX = 1_000_000.0
_MOST_PACKED = 4_000_000
T = TypeVar("T")


_MOST_DIGITS = 18
_MOST_FRAMES = 10_000_000


def parse_shot(text: str, name: str) -> ShotFaces:
    """The shot in the text of a sidecar.

    Args:
        text: JSON.
        name: of the file, for messages.

    Raises:
        SidecarError: see `sidecar.read_sidecar`.
    """
    document = _Field(_load(text, name), name, "")
    if document.get("format", str) != FORMAT:
        raise SidecarError(f"{name} is not a faces sidecar", expected=f"format {FORMAT!r}")
    if (version := document.get("version", int)) != VERSION:
        raise SidecarError(
            f"{name} has another version",
            expected=str(VERSION),
            found=str(version),
            hint="analyse the plate again, or use the version of Faceplate that wrote the file",
        )
    appearances = _appearances(document.child("appearances"))
    source = _source(document)
    tracks = _tracks(document, appearances, source.pixel_aspect)
    if KEY in document.value:
        corrections = parse_corrections(document.value[KEY], name)
        tracks = correct(tracks, corrections, source.pixel_aspect, name)
    known = {*_DERIVED, "format", "version", "plate", "settings", "nets", "frames", "cuts", "tracks", "hashes"}
    return ShotFaces(
        frames=_frames(document),
        tracks=tracks,
        cuts=tuple(document.numbers("cuts")),
        settings=_settings(document.child("settings")),
        nets=document.child("nets").table(str),
        source=source,
        extras=MappingProxyType({k: v for k, v in document.value.items() if k not in known | {"appearances"}}),
    )


def _load(text: str, name: str) -> dict[str, Any]:
    def refuse(word: str) -> float:
        raise SidecarError(f"{name} holds {word}", expected="finite numbers")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(pairs)
        if len(table) != len(pairs):
            twice = next(key for key, _ in pairs if sum(key == other for other, _ in pairs) > 1)
            raise SidecarError(f"{name} has the key {twice!r} twice in one place", hint="keep one of them")
        return table

    def whole(digits: str) -> int:
        if len(digits) > _MOST_DIGITS:
            raise SidecarError(f"{name} holds a number of {len(digits)} digits", expected="numbers that mean something")
        return int(digits)

    try:
        document = json.loads(text, parse_constant=refuse, parse_int=whole, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise SidecarError(
            f"{name} is broken in line {error.lineno}, column {error.colno}",
            found=error.msg,
            hint="undo the last edit, or run `faceplate analyse` to make it anew",
        ) from error
    except RecursionError as error:
        raise SidecarError(f"{name} is nested too deep") from error
    if not isinstance(document, dict):
        raise SidecarError(f"{name} is not a faces sidecar", expected="an object", found=type(document).__name__)
    return document


class _Field:
    """An object of the document that knows where it stands."""

    def __init__(self, value: Any, name: str, where: str) -> None:
        if not isinstance(value, dict):
            raise SidecarError(f"{name}: {where} is wrong", expected="an object", found=_kind(value))
        self.value: dict[str, Any] = value
        self.name = name
        self.where = where

    def path(self, key: str) -> str:
        return f"{self.where}.{key}" if self.where else key

    def wrong(self, key: str, expected: str, found: str) -> SidecarError:
        return SidecarError(f"{self.name}: {self.path(key)} is wrong", expected=expected, found=found)

    def get(self, key: str, kind: type[T]) -> T:
        if key not in self.value:
            raise SidecarError(f"{self.name}: {self.path(key)} is missing")
        value = self.value[key]
        # JSON's true is not a number here, and a whole number will do for a float.
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.wrong(key, kind.__name__, _kind(value))
        if isinstance(value, float) and not math.isfinite(value):
            raise self.wrong(key, "a finite number", str(value))
        return value

    def child(self, key: str) -> _Field:
        return _Field(self.get(key, dict), self.name, self.path(key))

    def children(self, key: str) -> list[_Field]:
        return [_Field(item, self.name, f"{self.path(key)}[{index}]") for index, item in enumerate(self.get(key, list))]

    def numbers(self, key: str, count: int | None = None) -> list[int]:
        values = self.get(key, list)
        if count is not None and len(values) != count:
            raise self.wrong(key, f"{count} numbers", str(len(values)))
        for value in values:
            if not isinstance(value, int) or isinstance(value, bool):
                raise self.wrong(key, "whole numbers", _kind(value))
        return [int(value) for value in values]

    def table(self, kind: type[T]) -> dict[str, T]:
        return {key: self.get(key, kind) for key in self.value}


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), f"the number {value}")


def _frames(document: _Field) -> tuple[int, ...]:
    frames: list[int] = []
    text = document.get("frames", str)
    for part in filter(None, text.split(",")):
        # A minus may also be the sign of a frame before the slate.
        first, dash, last = part[1:].partition("-")
        try:
            start = int(part[:1] + first)
            end = int(last) if dash else start
            if end - start > _MOST_FRAMES:
                raise document.wrong("frames", f"at most {_MOST_FRAMES} frames", repr(text))
            frames.extend(range(start, end + 1))
        except ValueError as error:
            raise document.wrong("frames", 'ranges such as "1001-1010,1015"', repr(text)) from error
    if frames != sorted(set(frames)):
        raise document.wrong("frames", "rising frame numbers, each once", repr(text))
    return tuple(frames)


def _settings(field: _Field) -> AnalyseSettings:
    detect, landmarks = field.child("detect"), field.child("landmarks")
    try:
        return AnalyseSettings(
            DetectSettings(
                detect.get("min_face_px", float),
                detect.get("threshold", float),
                detect.get("max_faces", int),
                _rotations(detect),
            ),
            LandmarkSettings(
                landmarks.get("min_score", float), landmarks.get("iterations", int), landmarks.get("squares", int)
            ),
            field.get("search_every", int),
            field.get("max_gap", int),
            field.get("min_length", int),
            field.get("smoothing", float),
        )
    except SettingError as error:
        raise SidecarError(f"{field.name}: {error}", hint=error.hint) from error


def _rotations(detect: _Field) -> Any:
    value = detect.get("rotations", str)
    if value not in ("auto", "always", "never"):
        raise detect.wrong("rotations", "auto, always or never", repr(value))
    return value


def _source(document: _Field) -> ShotSource:
    plate = document.child("plate")
    hashes: dict[int, str] = {}
    table = document.child("hashes")
    for key, digest in table.table(str).items():
        hashes[_whole(table, key)] = digest
    pixel_aspect = plate.get("pixel_aspect", float)
    if not 0.1 <= pixel_aspect <= 10:
        raise plate.wrong("pixel_aspect", "0.1..10", str(pixel_aspect))
    return ShotSource(
        plate.get("pattern", str),
        MappingProxyType(hashes),
        _box(plate, "display_window"),
        _box(plate, "data_window"),
        pixel_aspect,
        plate.get("colour_space", str),
    )


def _whole(table: _Field, key: str) -> int:
    try:
        return int(key)
    except ValueError as error:
        raise table.wrong(key, "a whole number as key", repr(key)) from error


def _box(plate: _Field, key: str) -> Box:
    box = Box(*plate.numbers(key, 4))
    if box.is_empty:
        raise plate.wrong(key, "x0, y0, x1, y1 of a window that holds pixels", str(plate.value[key]))
    return box


def _tracks(document: _Field, appearances: Mapping[int, Appearance], pixel_aspect: float) -> tuple[Track, ...]:
    tracks: dict[int, Track] = {}
    frames = frozenset(_frames(document))
    for field in document.children("tracks"):
        track_id = field.get("id", int)
        if track_id < 1:
            raise field.wrong("id", "a number from 1", str(track_id))
        if track_id in tracks:
            raise field.wrong("id", "each id once", f"{track_id} twice")
        seen: dict[int, Observation] = {}
        for item in field.children("frames"):
            frame = item.get("frame", int)
            if frame in seen:
                raise item.wrong("frame", "each frame once in a track", f"{frame} twice")
            if frame not in frames:
                raise item.wrong("frame", "a frame of the shot", str(frame))
            seen[frame] = _observation(item, frame, pixel_aspect)
        if not seen:
            raise field.wrong("frames", "at least one frame", "none")
        tracks[track_id] = Track(
            track_id, dict(sorted(seen.items())), appearances.get(track_id), field.get("label", str)
        )
    return tuple(tracks[track_id] for track_id in sorted(tracks))


def _observation(item: _Field, frame: int, pixel_aspect: float) -> Observation:
    origin = item.get("origin", str)
    if origin not in tuple(Origin):
        raise item.wrong("origin", ", ".join(Origin), repr(origin))
    score, yaw = item.get("score", float), item.get("yaw", float)
    if not 0 <= score <= 1:
        raise item.wrong("score", "0..1", str(score))
    if not -90 <= yaw <= 90:
        raise item.wrong("yaw", "-90..90", str(yaw))
    landmarks = _landmarks(item)
    if origin == Origin.EDITED:
        # Who moves points by hand need not work out the head turn; what lay in front of the old ones says nothing.
        return Observation(frame, landmarks, score, Origin.EDITED, round(yaw_degrees(landmarks, pixel_aspect), 2))
    return Observation(frame, landmarks, score, Origin(origin), yaw, _cover(item) if "cover" in item.value else None)


def _cover(item: _Field) -> Cover:
    expected = f"base64 of {SIZE} x {SIZE} deflated bytes"
    try:
        unpacker = zlib.decompressobj()
        content = unpacker.decompress(base64.b64decode(item.get("cover", str), validate=True), SIZE * SIZE + 1)
    except (ValueError, zlib.error) as error:
        raise item.wrong("cover", expected, str(error)) from error
    if len(content) != SIZE * SIZE or not unpacker.eof:
        raise item.wrong("cover", expected, f"{len(content)} bytes")
    return np.frombuffer(content, np.uint8).reshape(SIZE, SIZE)


def _landmarks(item: _Field) -> Points:
    values = item.get("landmarks", list)
    if len(values) != 3 * MESH_POINTS:
        raise item.wrong("landmarks", f"{3 * MESH_POINTS} numbers (x, y, z of each point)", str(len(values)))
    for index, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _FAR_PX:
            raise item.wrong(f"landmarks[{index}]", "a number of pixels", _kind(value))
    return quantise(np.array(values, np.float64).reshape(MESH_POINTS, 3))


def _appearances(field: _Field) -> dict[int, Appearance]:
    return {_whole(field, key): _unpack(field, key, packed) for key, packed in field.table(str).items()}


def _unpack(field: _Field, key: str, packed: str) -> Appearance:
    try:
        content = base64.b64decode(packed, validate=True)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > _MOST_PACKED:
                raise field.wrong(key, "a small archive", "one that unpacks to megabytes")
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            median, spread = np.asarray(arrays["median"]), np.asarray(arrays["spread"])
    except (binascii.Error, zipfile.BadZipFile, KeyError, ValueError, OSError, EOFError, NotImplementedError) as error:
        raise field.wrong(key, "base64 of a numpy archive with median and spread", str(error)) from error
    if (
        median.shape != (SIZE, SIZE, 3)
        or spread.shape != (SIZE, SIZE)
        or {median.dtype, spread.dtype} != {np.dtype("f2")}
    ):
        raise field.wrong(
            key, f"({SIZE}, {SIZE}, 3) and ({SIZE}, {SIZE}) half floats", f"{median.shape}, {spread.shape}"
        )
    return Appearance(median.astype(np.float32), spread.astype(np.float32))
