"""The identity file, `name.fpid`: one person, made from photos once and carried through the film.

A zip of plain parts, each in a public form, none of which can run code:

    identity.json            format, name, tool, hashes; per photo its name, sha256, size and measurements
    crops/0001.png           the face of each photo, 16-bit sRGB
    landmarks/0001.npy       (478, 3) float32 px of that crop
    texture_colour.npy       `FaceTexture.colour`
    texture_coverage.npy     `FaceTexture.coverage`
    shape.npy                `Identity.shape`
    embeddings/0001.npy      one unit vector per recogniser, where any was installed
    consent.json             the consent record, absent where there is none

The same content gives the same bytes. A file may come from anywhere, so nothing in it is believed: names, sizes,
types and numbers are checked before they are used, and the content hash is computed anew.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..errors import FaceplateError, IdentityError
from ..face import MESH_POINTS, FaceTexture, Identity, Points
from ..media.atomic import atomic_write
from ..provenance.consent import Consent
from .topology import FACE_POINTS

FORMAT = "faceplate identity"
VERSION = 1

MAX_PHOTOS = 999
MAX_TEXTURE = 4096
MAX_CROP = 2048
"""Widest texture and crop that a file may hold, texels and px."""

_MAX_ENTRY_BYTES = 256 << 20
_MAX_TOTAL_BYTES = 2 << 30
_MAX_JSON_BYTES = 8 << 20
_MAX_ENTRIES = 4 * MAX_PHOTOS
_PART_NAME = re.compile(
    r"identity\.json|consent\.json|shape\.npy|texture_(colour|coverage)\.npy"
    r"|crops/\d{4}\.png|(landmarks|embeddings)/\d{4}\.npy"
)
_PNG_HEAD = struct.Struct(">8sI4sIIBB")
_REMAKE = "copy the file again from where it came, or make the identity anew from the photos"


@dataclass(frozen=True, slots=True, eq=False)
class PhotoRecord:
    """What the file keeps of one photo.

    Attributes:
        file_name: without folder.
        sha256: of the photo's file, hex.
        size: (width, height) of the upright photo, px.
        colour: its colour space and how that was found.
        face_width_px: in the photo.
        yaw_deg: head turn, as in `Observation`.
        sharpness: as `photo_measures.sharpness` measured it.
        crop_png: the face with some surroundings, 16-bit RGB PNG, sRGB-encoded, at most `MAX_CROP` px a side.
        crop_white: linear Rec.709 light that code 65535 of the crop stands for, > 0.
        landmarks: (478, 3) float32, px of the crop.
    """

    file_name: str
    sha256: str
    size: tuple[int, int]
    colour: str
    face_width_px: float
    yaw_deg: float
    sharpness: float
    crop_png: bytes
    crop_white: float
    landmarks: Points


@dataclass(frozen=True, slots=True, eq=False)
class IdentityFile:
    """What a `.fpid` holds.

    Attributes:
        identity: what engines get.
        photos: in the order given when it was made.
        consent: the record, or None.
        tool_version: of the Faceplate that made it.
    """

    identity: Identity
    photos: tuple[PhotoRecord, ...]
    consent: Consent | None
    tool_version: str = __version__


def content_hash(
    texture: FaceTexture, shape: Points, landmarks: Sequence[Points], embeddings: Mapping[str, NDArray[np.float32]]
) -> str:
    """sha256 (hex) of all that decides the picture: texture, shape, landmarks, embeddings; not name or consent."""
    digest = hashlib.sha256(f"{FORMAT} {VERSION}\n".encode())

    def add(label: str, array: NDArray[Any]) -> None:
        digest.update(f"{label} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())

    add("colour", np.asarray(texture.colour, "<f2"))
    add("coverage", np.asarray(texture.coverage, "<f2"))
    add("detail", np.array([texture.detail_px], "<f8"))
    add("shape", np.asarray(shape, "<f4"))
    for points in landmarks:
        add("landmarks", np.asarray(points, "<f4"))
    for name in sorted(embeddings):
        add(f"embedding {name}", np.asarray(embeddings[name], "<f4"))
    return digest.hexdigest()


def build_identity(
    name: str,
    texture: FaceTexture,
    shape: Points,
    photos: Sequence[PhotoRecord],
    consent: Consent | None,
    embeddings: Mapping[str, NDArray[np.float32]] | None = None,
) -> IdentityFile:
    """Put the parts together and check them as strictly as a reader will.

    Args:
        name: as the artist calls the person; one line, not empty.
        texture: see `FaceTexture`.
        shape: (468, 3) float32, see `Identity`.
        photos: one to `MAX_PHOTOS`.
        consent: the record, or None.
        embeddings: (512,) float32 unit vectors by recogniser id.

    Raises:
        IdentityError: a part has the wrong form, or a number that is not finite or out of range.
    """
    vectors = MappingProxyType(dict(embeddings or {}))
    digest = content_hash(texture, shape, [photo.landmarks for photo in photos], vectors)
    made = IdentityFile(Identity(name, digest, texture, shape, vectors), tuple(photos), consent)
    _check(made)
    return made


def _require(fine: bool, message: str, *, expected: str | None = None, found: object = None) -> None:
    if not fine:
        text = None if found is None else str(found)[:200]
        raise IdentityError(message, expected=expected, found=text, hint=_REMAKE)


def _check_array(label: str, array: NDArray[Any], dtype: type[np.floating[Any]], limit: float, low: float) -> None:
    _require(array.dtype == dtype, f"{label} has the wrong type", expected=dtype.__name__, found=array.dtype)
    _require(bool(np.isfinite(array).all()), f"{label} holds numbers that are not finite")
    _require(
        bool(((array >= low) & (array <= limit)).all()), f"{label} holds impossible numbers", expected=f"{low}..{limit}"
    )


def _check(file: IdentityFile) -> None:
    identity, texture = file.identity, file.identity.texture
    _require(
        0 < len(identity.name) <= 200 and identity.name.isprintable() and bool(identity.name.strip()),
        "the identity's name cannot be used",
        expected="one line of 1 to 200 characters",
        found=repr(identity.name),
    )
    size = texture.colour.shape[0] if texture.colour.ndim else 0
    _require(
        16 <= size <= MAX_TEXTURE and texture.colour.shape == (size, size, 3),
        "the texture has an impossible size",
        expected=f"(S, S, 3), S 16..{MAX_TEXTURE}",
        found=texture.colour.shape,
    )
    _require(texture.coverage.shape == (size, size), "coverage and texture differ", found=texture.coverage.shape)
    _check_array("the texture", texture.colour, np.float16, 65504.0, 0.0)
    _check_array("the coverage", texture.coverage, np.float16, 1.0, 0.0)
    _require(1.0 <= texture.detail_px <= 1e5, "the texture's detail is impossible", found=texture.detail_px)
    _require(identity.shape.shape == (FACE_POINTS, 3), "the shape has the wrong form", found=identity.shape.shape)
    _check_array("the shape", identity.shape, np.float32, 10.0, -10.0)
    _require(1 <= len(file.photos) <= MAX_PHOTOS, "the number of photos is impossible", found=len(file.photos))
    for photo in file.photos:
        _check_photo(photo)
    for name, vector in identity.embeddings.items():
        _require(name.isprintable() and 0 < len(name) <= 200, "a recogniser's name cannot be used", found=repr(name))
        _require(vector.shape == (512,), f"the embedding of {name} has the wrong form", found=vector.shape)
        _check_array(f"the embedding of {name}", vector, np.float32, 1.001, -1.001)


def _check_photo(photo: PhotoRecord) -> None:
    label = f"photo {photo.file_name!r}"
    _require(
        0 < len(photo.file_name) <= 1024 and photo.file_name == photo.file_name.replace("\\", "/").rpartition("/")[2],
        "a photo's name is no file name",
        found=repr(photo.file_name),
    )
    _require(re.fullmatch(r"[0-9a-f]{64}", photo.sha256) is not None, f"{label} has no sha256", found=photo.sha256)
    _require(all(1 <= side <= 10**6 for side in photo.size), f"{label} has an impossible size", found=photo.size)
    _require(len(photo.colour) <= 1000, f"{label} has an impossible colour space", found=photo.colour)
    _require(1.0 <= photo.face_width_px <= 1e6, f"{label} has an impossible face width", found=photo.face_width_px)
    _require(-90 <= photo.yaw_deg <= 90, f"{label} has an impossible yaw", found=photo.yaw_deg)
    _require(0 <= photo.sharpness <= 1e6, f"{label} has an impossible sharpness", found=photo.sharpness)
    _require(0 < photo.crop_white <= 65504, f"{label} has an impossible white", found=photo.crop_white)
    _require(photo.landmarks.shape == (MESH_POINTS, 3), f"{label} lacks landmarks", found=photo.landmarks.shape)
    _check_array(f"the landmarks of {label}", photo.landmarks, np.float32, 10.0 * MAX_CROP, -10.0 * MAX_CROP)
    _require(len(photo.crop_png) >= _PNG_HEAD.size, f"the crop of {label} is no PNG")
    mark, _, chunk, width, height, depth, kind = _PNG_HEAD.unpack(photo.crop_png[: _PNG_HEAD.size])
    _require(mark == b"\x89PNG\r\n\x1a\n" and chunk == b"IHDR", f"the crop of {label} is no PNG")
    _require(
        1 <= width <= MAX_CROP and 1 <= height <= MAX_CROP and (depth, kind) == (16, 2),
        f"the crop of {label} has the wrong form",
        expected=f"16-bit RGB, at most {MAX_CROP} px a side",
        found=f"{width}x{height}, {depth} bits, PNG colour type {kind}",
    )


def write_identity(path: Path, file: IdentityFile) -> None:
    """Write a `.fpid` whole or not at all; the same content gives the same bytes.

    Raises:
        IdentityError: a part is not fit to be written.
        OutputError: the file cannot be written.
    """
    _check(file)
    with atomic_write(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, data in _parts(file).items():
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            entry.compress_type = zipfile.ZIP_STORED if name.endswith(".png") else zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)


def _parts(file: IdentityFile) -> dict[str, bytes]:
    identity = file.identity
    parts = {"identity.json": _dump(_document(file))}
    if file.consent is not None:
        parts["consent.json"] = _dump(file.consent.to_json())
    parts["shape.npy"] = _npy(identity.shape)
    parts["texture_colour.npy"] = _npy(identity.texture.colour)
    parts["texture_coverage.npy"] = _npy(identity.texture.coverage)
    for number, photo in enumerate(file.photos, 1):
        parts[f"crops/{number:04d}.png"] = photo.crop_png
        parts[f"landmarks/{number:04d}.npy"] = _npy(photo.landmarks)
    for number, name in enumerate(sorted(identity.embeddings), 1):
        parts[f"embeddings/{number:04d}.npy"] = _npy(identity.embeddings[name])
    return parts


def _document(file: IdentityFile) -> dict[str, Any]:
    identity = file.identity
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": identity.name,
        "made_by": file.tool_version,
        "content_hash": identity.content_hash,
        "detail_px": float(identity.texture.detail_px),
        "embeddings": sorted(identity.embeddings),
        "photos": [
            {
                "file_name": photo.file_name,
                "sha256": photo.sha256,
                "size": list(photo.size),
                "colour": photo.colour,
                "face_width_px": float(photo.face_width_px),
                "yaw_deg": float(photo.yaw_deg),
                "sharpness": float(photo.sharpness),
                "crop_white": float(photo.crop_white),
            }
            for photo in file.photos
        ],
    }


def _dump(document: object) -> bytes:
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False).encode()


def _npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def read_identity(path: Path) -> IdentityFile:
    """Read a `.fpid`. The consent record is read, not judged: see `provenance.consent.check_consent`.

    Raises:
        IdentityError: absent, not an identity file, damaged, of a newer version, or altered.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            made = _read(archive)
    except FaceplateError as error:
        raise IdentityError(
            f"{path}: {error.message}", expected=error.expected, found=error.found, hint=error.hint or _REMAKE
        ) from error
    except OSError as error:
        raise IdentityError(f"cannot read {path}", found=error.strerror or str(error), hint=_REMAKE) from error
    except (
        *(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError),
        *(ValueError, TypeError, KeyError, AttributeError, struct.error, OverflowError, MemoryError),
    ) as error:
        # Damaged bytes make the standard readers fail in all these ways; each means the same to the artist.
        raise IdentityError(
            f"{path} is no identity file or is damaged", found=f"{type(error).__name__}: {error}", hint=_REMAKE
        ) from error
    return made


def _read(archive: zipfile.ZipFile) -> IdentityFile:
    entries = _entries(archive)
    document = _load(archive, entries, "identity.json")
    _require(document.get("format") == FORMAT, "no identity file", expected=FORMAT, found=document.get("format"))
    if document.get("version") != VERSION:
        raise IdentityError(
            "another version of the identity format",
            expected=str(VERSION),
            found=str(document.get("version"))[:40],
            hint="use the Faceplate that made it, or make the identity anew from the photos",
        )
    rows, names = document["photos"], document["embeddings"]
    photos = tuple(_read_photo(archive, entries, number, row) for number, row in enumerate(rows, 1))
    embeddings = {
        str(name): _read_array(archive, entries, f"embeddings/{number:04d}.npy") for number, name in enumerate(names, 1)
    }
    texture = FaceTexture(
        _read_array(archive, entries, "texture_colour.npy"),
        _read_array(archive, entries, "texture_coverage.npy"),
        float(document["detail_px"]),
    )
    shape = _read_array(archive, entries, "shape.npy")
    consent = None
    if "consent.json" in entries:
        consent = Consent.from_json(_load(archive, entries, "consent.json"))
    identity = Identity(
        str(document["name"]), str(document["content_hash"]), texture, shape, MappingProxyType(embeddings)
    )
    made = IdentityFile(identity, photos, consent, str(document["made_by"]))
    _check(made)
    digest = content_hash(texture, shape, [photo.landmarks for photo in photos], embeddings)
    _require(digest == identity.content_hash, "changed since it was made", expected=identity.content_hash, found=digest)
    return made


def _entries(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    infos = archive.infolist()
    _require(len(infos) <= _MAX_ENTRIES, "too many parts", expected=f"at most {_MAX_ENTRIES}", found=len(infos))
    entries = {info.filename: info for info in infos}
    _require(len(entries) == len(infos), "parts appear twice")
    for name, info in entries.items():
        _require(_PART_NAME.fullmatch(name) is not None, "an unknown part", found=repr(name))
        packed = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        _require(packed, f"part {name} is packed in an unknown way", found=info.compress_type)
        _require(info.file_size <= _MAX_ENTRY_BYTES, f"part {name} is too large", found=f"{info.file_size} bytes")
    total = sum(info.file_size for info in infos)
    _require(total <= _MAX_TOTAL_BYTES, "too large", expected=f"at most {_MAX_TOTAL_BYTES} bytes", found=total)
    return entries


def _part(archive: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo], name: str) -> bytes:
    _require(name in entries, f"part {name} is absent")
    with archive.open(entries[name]) as file:
        data = file.read(entries[name].file_size + 1)
    # A reader that stops at the stated size would hide a bomb whose header lies.
    _require(len(data) == entries[name].file_size, f"part {name} differs from its stated size")
    return data


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is no number")


def _load(archive: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo], name: str) -> dict[str, Any]:
    data = _part(archive, entries, name)
    _require(len(data) <= _MAX_JSON_BYTES, f"part {name} is too large", found=f"{len(data)} bytes")
    document = json.loads(data.decode("utf-8"), parse_constant=_no_constant)
    _require(isinstance(document, dict), f"part {name} has the wrong form", found=type(document).__name__)
    return dict(document)


def _read_array(archive: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo], name: str) -> NDArray[Any]:
    stream = io.BytesIO(_part(archive, entries, name))
    _require(np.lib.format.read_magic(stream) == (1, 0), f"part {name} has an unknown layout")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    _require(dtype in (np.dtype("<f2"), np.dtype("<f4")) and not fortran, f"part {name} is no plain array", found=dtype)
    values = np.frombuffer(stream.read(), dtype)
    _require(all(side >= 0 for side in shape), f"part {name} has an impossible shape", found=shape)
    array: NDArray[Any] = values.reshape(shape)  # a ValueError where the shape does not fit the bytes
    return array


def _read_photo(
    archive: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo], number: int, row: Mapping[str, Any]
) -> PhotoRecord:
    width, height = row["size"]
    return PhotoRecord(
        file_name=str(row["file_name"]),
        sha256=str(row["sha256"]),
        size=(int(width), int(height)),
        colour=str(row["colour"]),
        face_width_px=float(row["face_width_px"]),
        yaw_deg=float(row["yaw_deg"]),
        sharpness=float(row["sharpness"]),
        crop_png=_part(archive, entries, f"crops/{number:04d}.png"),
        crop_white=float(row["crop_white"]),
        landmarks=_read_array(archive, entries, f"landmarks/{number:04d}.npy"),
    )
