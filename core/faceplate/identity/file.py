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
from ..face import MESH_POINTS, FaceTexture, Identity, Points, Portrait
from ..faces.topology import FACE_POINTS
from ..media.regular import open_regular
from ..provenance.consent import Consent
from .parts import REMAKE, PartsReader, dump_array, dump_json, require, write_parts

FORMAT = "faceplate identity"
VERSION = 1

MAX_PHOTOS = 999
MAX_NAME = 200
MAX_TEXTURE = 4096
MAX_CROP = 2048
"""Widest texture and crop that a file may hold, texels and px."""

_PNG_HEAD = struct.Struct(">8sI4sIIBB")


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


def portraits(photos: Sequence[PhotoRecord]) -> tuple[Portrait, ...]:
    """The photos as engines see them."""
    return tuple(
        Portrait(one.crop_png, one.crop_white, one.landmarks, one.yaw_deg, one.face_width_px) for one in photos
    )


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
    identity = Identity(name, digest, texture, shape, vectors, portraits(photos))
    made = IdentityFile(identity, tuple(photos), consent)
    _check(made)
    return made


def _check_array(label: str, array: NDArray[Any], dtype: type[np.floating[Any]], limit: float, low: float) -> None:
    require(array.dtype == dtype, f"{label} has the wrong type", expected=dtype.__name__, found=array.dtype)
    require(bool(np.isfinite(array).all()), f"{label} holds numbers that are not finite")
    require(
        bool(((array >= low) & (array <= limit)).all()), f"{label} holds impossible numbers", expected=f"{low}..{limit}"
    )


def _check(file: IdentityFile) -> None:
    identity, texture = file.identity, file.identity.texture
    require(
        0 < len(identity.name) <= MAX_NAME and identity.name.isprintable() and bool(identity.name.strip()),
        "the identity's name cannot be used",
        expected=f"one line of 1 to {MAX_NAME} characters",
        found=repr(identity.name),
    )
    size = texture.colour.shape[0] if texture.colour.ndim else 0
    require(
        16 <= size <= MAX_TEXTURE and texture.colour.shape == (size, size, 3),
        "the texture has an impossible size",
        expected=f"(S, S, 3), S 16..{MAX_TEXTURE}",
        found=texture.colour.shape,
    )
    require(texture.coverage.shape == (size, size), "coverage and texture differ", found=texture.coverage.shape)
    _check_array("the texture", texture.colour, np.float16, 65504.0, 0.0)
    _check_array("the coverage", texture.coverage, np.float16, 1.0, 0.0)
    require(1.0 <= texture.detail_px <= 1e5, "the texture's detail is impossible", found=texture.detail_px)
    require(identity.shape.shape == (FACE_POINTS, 3), "the shape has the wrong form", found=identity.shape.shape)
    _check_array("the shape", identity.shape, np.float32, 10.0, -10.0)
    require(1 <= len(file.photos) <= MAX_PHOTOS, "the number of photos is impossible", found=len(file.photos))
    for photo in file.photos:
        _check_photo(photo)
    for name, vector in identity.embeddings.items():
        require(name.isprintable() and 0 < len(name) <= 200, "a recogniser's name cannot be used", found=repr(name))
        require(vector.shape == (512,), f"the embedding of {name} has the wrong form", found=vector.shape)
        _check_array(f"the embedding of {name}", vector, np.float32, 1.001, -1.001)


def _check_photo(photo: PhotoRecord) -> None:
    label = f"photo {photo.file_name!r}"
    require(
        0 < len(photo.file_name) <= 1024 and photo.file_name == photo.file_name.replace("\\", "/").rpartition("/")[2],
        "a photo's name is no file name",
        found=repr(photo.file_name),
    )
    require(re.fullmatch(r"[0-9a-f]{64}", photo.sha256) is not None, f"{label} has no sha256", found=photo.sha256)
    require(all(1 <= side <= 10**6 for side in photo.size), f"{label} has an impossible size", found=photo.size)
    require(len(photo.colour) <= 1000, f"{label} has an impossible colour space", found=photo.colour)
    require(1.0 <= photo.face_width_px <= 1e6, f"{label} has an impossible face width", found=photo.face_width_px)
    require(-90 <= photo.yaw_deg <= 90, f"{label} has an impossible yaw", found=photo.yaw_deg)
    require(0 <= photo.sharpness <= 1e6, f"{label} has an impossible sharpness", found=photo.sharpness)
    require(0 < photo.crop_white <= 65504, f"{label} has an impossible white", found=photo.crop_white)
    require(photo.landmarks.shape == (MESH_POINTS, 3), f"{label} lacks landmarks", found=photo.landmarks.shape)
    _check_array(f"the landmarks of {label}", photo.landmarks, np.float32, 10.0 * MAX_CROP, -10.0 * MAX_CROP)
    require(len(photo.crop_png) >= _PNG_HEAD.size, f"the crop of {label} is no PNG")
    mark, _, chunk, width, height, depth, kind = _PNG_HEAD.unpack(photo.crop_png[: _PNG_HEAD.size])
    require(mark == b"\x89PNG\r\n\x1a\n" and chunk == b"IHDR", f"the crop of {label} is no PNG")
    require(
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
    write_parts(path, _parts(file))


def _parts(file: IdentityFile) -> dict[str, bytes]:
    identity = file.identity
    parts = {"identity.json": dump_json(_document(file))}
    if file.consent is not None:
        parts["consent.json"] = dump_json(file.consent.to_json())
    parts["shape.npy"] = dump_array(identity.shape)
    parts["texture_colour.npy"] = dump_array(identity.texture.colour)
    parts["texture_coverage.npy"] = dump_array(identity.texture.coverage)
    for number, photo in enumerate(file.photos, 1):
        parts[f"crops/{number:04d}.png"] = photo.crop_png
        parts[f"landmarks/{number:04d}.npy"] = dump_array(photo.landmarks)
    for number, name in enumerate(sorted(identity.embeddings), 1):
        parts[f"embeddings/{number:04d}.npy"] = dump_array(identity.embeddings[name])
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


def read_identity(path: Path) -> IdentityFile:
    """Read a `.fpid`. The consent record is read, not judged: see `provenance.consent.check_consent`.

    Raises:
        IdentityError: absent, not an identity file, damaged, of a newer version, or altered.
    """
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            made = _read(PartsReader(archive))
    except FaceplateError as error:
        raise IdentityError(
            f"{path}: {error.message}", expected=error.expected, found=error.found, hint=error.hint or REMAKE
        ) from error
    except OSError as error:
        raise IdentityError(f"cannot read {path}", found=error.strerror or str(error), hint=REMAKE) from error
    except (
        *(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError),
        *(ValueError, TypeError, KeyError, AttributeError, struct.error, OverflowError, MemoryError),
    ) as error:
        # Damaged bytes make the standard readers fail in all these ways; each means the same to the artist.
        raise IdentityError(
            f"{path} is no identity file or is damaged", found=f"{type(error).__name__}: {error}", hint=REMAKE
        ) from error
    return made


def _read(parts: PartsReader) -> IdentityFile:
    document = parts.document("identity.json")
    require(document.get("format") == FORMAT, "no identity file", expected=FORMAT, found=document.get("format"))
    if document.get("version") != VERSION:
        raise IdentityError(
            "another version of the identity format",
            expected=str(VERSION),
            found=str(document.get("version"))[:40],
            hint="use the Faceplate that made it, or make the identity anew from the photos",
        )
    rows, names = document["photos"], document["embeddings"]
    photos = tuple(_read_photo(parts, number, row) for number, row in enumerate(rows, 1))
    embeddings = {str(name): parts.array(f"embeddings/{number:04d}.npy") for number, name in enumerate(names, 1)}
    texture = FaceTexture(
        parts.array("texture_colour.npy"),
        parts.array("texture_coverage.npy"),
        float(document["detail_px"]),
    )
    shape = parts.array("shape.npy")
    consent = None
    if "consent.json" in parts:
        consent = Consent.from_json(parts.document("consent.json"))
    identity = Identity(
        str(document["name"]),
        str(document["content_hash"]),
        texture,
        shape,
        MappingProxyType(embeddings),
        portraits(photos),
    )
    made = IdentityFile(identity, photos, consent, str(document["made_by"]))
    _check(made)
    digest = content_hash(texture, shape, [photo.landmarks for photo in photos], embeddings)
    require(digest == identity.content_hash, "changed since it was made", expected=identity.content_hash, found=digest)
    return made


def _read_photo(parts: PartsReader, number: int, row: Mapping[str, Any]) -> PhotoRecord:
    width, height = row["size"]
    return PhotoRecord(
        file_name=str(row["file_name"]),
        sha256=str(row["sha256"]),
        size=(int(width), int(height)),
        colour=str(row["colour"]),
        face_width_px=float(row["face_width_px"]),
        yaw_deg=float(row["yaw_deg"]),
        sharpness=float(row["sharpness"]),
        crop_png=parts.raw(f"crops/{number:04d}.png"),
        crop_white=float(row["crop_white"]),
        landmarks=parts.array(f"landmarks/{number:04d}.npy"),
    )
