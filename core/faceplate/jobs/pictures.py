"""Small pictures to tell people apart: of the tracks of a shot, and of identity files."""

from __future__ import annotations

import datetime
import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from ..errors import ConsentError, IdentityError, InputError
from ..face import Observation, Track
from ..faces.shot import ShotFaces, is_weak
from ..frame import Box, Frame
from ..identity.file import IdentityFile, read_identity
from ..identity.photo_picture import decode_crop
from ..media.atomic import atomic_write
from ..plate import FrameSource, Plate
from ..provenance.consent import check_consent
from ..report.thumbs import thumbnail
from .output import make_folder

SIDE = 160
"""Longest side of a picture, px."""
_MARGIN = 0.35
_GREY = 0.18
_FAIR = (0.06, 0.6)
"""A face whose median light lies outside is shown at another exposure."""


@dataclass(frozen=True, slots=True)
class TrackPicture:
    """A track for people to choose.

    Attributes:
        track: of the shot.
        weak: frames that are filled, unsure or turned far.
        width_px: median width of the face.
        best: frame in which it is seen best.
        picture: PNG of that, None where none was asked for or the frame cannot be read.
    """

    track: Track
    weak: int
    width_px: float
    best: int
    picture: Path | None


def track_pictures(shot: ShotFaces, plate: Plate | None, folder: Path | None) -> tuple[TrackPicture, ...]:
    """The tracks of a shot, each with a picture.

    Args:
        shot: as analysed.
        plate: whose frames are shown; None makes no pictures.
        folder: made if need be; holds `track-ID.png` afterwards. None makes no pictures.

    Raises:
        OutputError: the folder cannot be written.
    """
    weak = shot.weak
    found = []
    for track in shot.tracks:
        best = max(track.observations.values(), key=_clarity)
        widths = sorted(seen.width_px for seen in track.observations.values())
        made = None
        if plate is not None and folder is not None:
            make_folder(folder)
            made = _write_face(folder / f"track-{track.id}.png", plate, best)
        found.append(TrackPicture(track, len(weak.get(track.id, ())), widths[len(widths) // 2], best.frame, made))
    return tuple(found)


def _clarity(seen: Observation) -> tuple[bool, float]:
    return not is_weak(seen), seen.score * seen.width_px * math.cos(math.radians(seen.yaw_deg))


def _write_face(path: Path, plate: Plate, seen: Observation) -> Path | None:
    try:
        frame = plate.read(FrameSource(seen.frame, plate.sequence.path(seen.frame), "present", seen.frame))
    except InputError:
        return None  # a frame that cannot be shown; the job says so where the frame is processed
    picture = face_picture(frame, seen, plate.config.to_rec709(frame.colour_space).numpy)
    if picture is None:
        return None
    with atomic_write(path) as temporary:
        temporary.write_bytes(picture)
    return path


def face_picture(
    frame: Frame, seen: Observation, to_709: Callable[[NDArray[np.float32]], NDArray[np.float32]]
) -> bytes | None:
    """A face with a little around it as PNG; None where it lies outside the frame.

    Args:
        frame: scene-linear.
        seen: the face.
        to_709: takes (n, m, 3) float32 of the frame's space to linear Rec.709.
    """
    points = seen.landmarks[:468, :2]
    (left, top), (right, bottom) = points.min(axis=0), points.max(axis=0)
    margin = _MARGIN * max(right - left, bottom - top)
    box = Box(
        math.floor(left - margin), math.floor(top - margin), math.ceil(right + margin), math.ceil(bottom + margin)
    ).intersect(frame.data_window)
    if box.is_empty:
        return None
    rows, columns = box.slices(frame.data_window)
    linear = to_709(np.ascontiguousarray(frame.pixels[rows, columns, :3], np.float32))
    if frame.pixel_aspect != 1.0:
        size = (max(1, round(linear.shape[1] * frame.pixel_aspect)), linear.shape[0])
        linear = np.asarray(cv2.resize(linear, size, interpolation=cv2.INTER_AREA), np.float32)
    return _png(_fairly_exposed(linear))


def _fairly_exposed(linear: NDArray[np.float32]) -> NDArray[np.float32]:
    """A plate may be exposed anywhere; the picture is to show who it is."""
    finite = linear[..., 1][np.isfinite(linear[..., 1])]
    middle = float(np.median(finite)) if finite.size else 0.0
    if middle <= 0 or _FAIR[0] <= middle <= _FAIR[1]:
        return linear
    return linear * np.float32(_GREY / middle)


@dataclass(frozen=True, slots=True)
class ListedIdentity:
    """An identity file in a list.

    Attributes:
        path: of the file.
        name: of the person; the file's name where it cannot be read.
        state: "valid" or "none" (no consent record) can be used; "refused" and "unreadable" cannot.
        text: the consent in one line, or why not.
        picture: PNG of the first photo, None where none was asked for.
    """

    path: Path
    name: str
    state: Literal["valid", "none", "refused", "unreadable"]
    text: str
    picture: Path | None = None


def list_identities(
    folder: Path, project: str | None, day: datetime.date, pictures: Path | None
) -> tuple[ListedIdentity, ...]:
    """The identity files directly in a folder, by name.

    Args:
        folder: to look into.
        project: what consent is checked against, None to leave that out.
        day: for which consent is judged.
        pictures: folder for thumbnails, named after the identity's content; None makes none.

    Raises:
        IdentityError: the folder cannot be read.
        OutputError: a picture cannot be written.
    """
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix.lower() == ".fpid" and path.is_file())
    except OSError as error:
        raise IdentityError(
            f"the folder of identities {folder} cannot be read",
            found=error.strerror,
            hint="choose another folder in the preferences",
        ) from error
    listed = [_listed(path, project, day, pictures) for path in paths]
    return tuple(sorted(listed, key=lambda one: (one.name.casefold(), one.path)))


def _listed(path: Path, project: str | None, day: datetime.date, pictures: Path | None) -> ListedIdentity:
    try:
        file = read_identity(path)
    except IdentityError as error:
        return ListedIdentity(path, path.stem, "unreadable", str(error))
    picture = None if pictures is None else _write_photo(pictures, file)
    try:
        consent = check_consent(file.consent, on=day, project=project)
    except ConsentError as error:
        return ListedIdentity(path, file.identity.name, "refused", str(error), picture)
    return ListedIdentity(path, file.identity.name, consent.status, consent.text, picture)


def _write_photo(folder: Path, file: IdentityFile) -> Path | None:
    photo = file.photos[0] if file.photos else None
    if photo is None:
        return None
    digest = hashlib.sha256(photo.crop_png).hexdigest()[:16]
    path = folder / f"person-{digest}.png"
    if path.is_file():
        return path
    make_folder(folder)
    small = _png(decode_crop(photo.crop_png, photo.crop_white))
    with atomic_write(path) as temporary:
        temporary.write_bytes(small)
    return path


def _png(linear: NDArray[np.float32]) -> bytes:
    height, width = linear.shape[:2]
    return thumbnail(linear, max(1, SIDE * width // max(width, height)))
