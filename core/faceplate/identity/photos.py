"""Photos of a person become an identity; each photo that cannot be used is refused with its reason."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..colour.spaces import ColourConfig
from ..errors import IdentityError, InputError
from ..face import FaceTexture, Points
from ..faces import topology
from ..faces.crop import roi_from_detection
from ..faces.detect import DetectSettings, detect_faces
from ..faces.landmarks import LandmarkSettings, MeshFace, locate, same_face
from ..faces.nets import FaceNets
from ..faces.pose import yaw_degrees
from ..faces.recognise import Vector
from ..faces.view import LinearPlateView
from ..frame import Box
from ..media.regular import open_regular
from ..nets.recognisers.arcface import ArcFace
from ..provenance.consent import Consent
from ..swap.mesh.texture import PhotoView, build_texture
from .embed import embed_views, no_vectors
from .file import MAX_PHOTOS, IdentityFile, PhotoRecord, build_identity
from .photo_measures import (
    SKIN_LEVEL,
    Image,
    Pose,
    face_width,
    fit_pose,
    mean_shape,
    posed_shape,
    sharpness,
    skin_level,
)
from .photo_picture import PhotoPicture, cut_face, decode_crop, encode_crop, read_photo

_BYSTANDER = 0.25
"""A face this much narrower than the largest is somebody in the background and does not count."""
_INSIDE = 0.97
_SMALLEST_SHARE = 50


@dataclass(frozen=True, slots=True)
class PhotoLimits:
    """What a photo must have.

    The sharpness limit was set with a portrait whose sharpness is 0.39 at any size: a Gaussian blur of 1.7 % of the
    face width, a motion blur of 7 % or an enlargement by 3.5 brings it to 0.20.

    Attributes:
        min_face_px: width of the face.
        min_sharpness: as `photo_measures.sharpness` measures it.
        max_yaw_deg: head turn to either side.
    """

    min_face_px: float = 80.0
    min_sharpness: float = 0.2
    max_yaw_deg: float = 60.0


@dataclass(frozen=True, slots=True)
class PhotoRefusal:
    """A photo that was not used.

    Attributes:
        path: the file.
        reason: one sentence, what is wrong and what to do.
    """

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class PhotoTools:
    """What making an identity needs; `photo_tools` gives the real ones.

    Attributes:
        read: a file as light.
        find: all faces of a picture (h, w, 3) of linear Rec.709, landmarks in its px; in any rotation.
        build_texture: merges views.
        embed: vectors of the person by name (`identity.embed`), of the views.
    """

    read: Callable[[Path], PhotoPicture]
    find: Callable[[Image], Sequence[MeshFace]]
    build_texture: Callable[[Sequence[PhotoView]], FaceTexture]
    embed: Callable[[Sequence[PhotoView]], Mapping[str, Vector]] = no_vectors


def photo_tools(
    nets: FaceNets, config: ColourConfig, colour_space: str | None = None, recognisers: Sequence[ArcFace] = ()
) -> PhotoTools:
    """The real tools.

    Args:
        nets: detector and landmarks.
        config: the active colour configuration.
        colour_space: of all photos, where the user says so.
        recognisers: whose vectors the identity shall hold.
    """
    return PhotoTools(
        read=lambda path: read_photo(path, config, colour_space),
        find=lambda linear: find_faces(linear, nets),
        build_texture=build_texture,
        embed=lambda views: embed_views(recognisers, views),
    )


def find_faces(linear: Image, nets: FaceNets) -> list[MeshFace]:
    """All faces of a photo, in any rotation, the largest first.

    Args:
        linear: (h, w, 3) float32, linear Rec.709.
        nets: detector and landmarks.
    """
    height, width = linear.shape[:2]
    view = LinearPlateView(linear, Box(0, 0, width, height))
    settings = DetectSettings(min_face_px=max(40.0, max(height, width) / _SMALLEST_SHARE))
    seen = detect_faces(view, nets.detector, settings)
    rois = [roi_from_detection(detection, 1.0) for detection in seen]
    faces: list[MeshFace] = []
    for face in locate(view, nets.mesh, rois, LandmarkSettings()):
        if face is not None and not any(same_face(face, other) for other in faces):
            faces.append(face)
    return sorted(faces, key=lambda face: -_width(face))


def _width(face: MeshFace) -> float:
    return face_width(np.asarray(face.landmarks, np.float32))


class _Refused(Exception):
    """Why a photo cannot be used."""


@dataclass(frozen=True, slots=True, eq=False)
class _Accepted:
    record: PhotoRecord
    view: PhotoView
    pose: Pose


def make_identity(
    name: str,
    paths: Sequence[Path],
    consent: Consent | None,
    tools: PhotoTools,
    limits: PhotoLimits | None = None,
) -> tuple[IdentityFile, tuple[PhotoRefusal, ...]]:
    """Make an identity from those photos that can be used.

    The texture is built from the crops as the file keeps them, so that it can be built anew from the file alone.

    Args:
        name: as the artist calls the person.
        paths: photos, each with one face.
        consent: the record, or None.
        tools: see `photo_tools`.
        limits: what a photo must have.

    Returns:
        The identity, and the photos that were refused, in the order given.

    Raises:
        IdentityError: no photo can be used (all reasons are listed), or the parts do not make an identity.
        DeviceError, ModelError: the nets cannot run.
    """
    accepted: list[_Accepted] = []
    refused: list[PhotoRefusal] = []
    seen: dict[str, Path] = {}
    for path in paths:
        try:
            digest = _hash(path)
            if digest in seen:
                raise _Refused(f"the same file as {seen[digest].name}")
            accepted.append(_accept(path, digest, tools, limits or PhotoLimits()))
            seen[digest] = path
        except _Refused as reason:
            refused.append(PhotoRefusal(path, str(reason)))
        except InputError as error:
            refused.append(PhotoRefusal(path, _reason(error, path)))
    if not accepted or len(accepted) > MAX_PHOTOS:
        raise _unusable(name, accepted, refused)
    shapes = [posed_shape(item.view.landmarks, item.pose) for item in accepted]
    shape = mean_shape(shapes, [item.record.yaw_deg for item in accepted])
    texture = tools.build_texture([item.view for item in accepted])
    vectors = tools.embed([item.view for item in accepted])
    return build_identity(name, texture, shape, [item.record for item in accepted], consent, vectors), tuple(refused)


def _reason(error: InputError, path: Path) -> str:
    text = f"{error}: {error.hint}" if error.hint else str(error)
    return " ".join(text.replace(str(path), path.name).split())


def _unusable(name: str, accepted: Sequence[_Accepted], refused: Sequence[PhotoRefusal]) -> IdentityError:
    if accepted:
        return IdentityError(f"too many photos of {name}", expected=f"at most {MAX_PHOTOS}", found=str(len(accepted)))
    reasons = "\n".join(f"{refusal.path.name}: {refusal.reason}" for refusal in refused)
    return IdentityError(
        f"no photo of {name} can be used",
        found=reasons or "no photo",
        hint="give sharp, evenly lit photos, each with this one face, from the front and half turned",
    )


def _hash(path: Path) -> str:
    try:
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _Refused(f"cannot be read: {error.strerror or error}") from error


def _accept(path: Path, digest: str, tools: PhotoTools, limits: PhotoLimits) -> _Accepted:
    picture = tools.read(path)
    landmarks = _only_face(tools.find(picture.linear), picture.linear.shape)
    width = face_width(landmarks)
    if width < limits.min_face_px:
        raise _Refused(
            f"face is {width:.0f} px wide, at least {limits.min_face_px:.0f} needed: use the full-size photo"
        )
    yaw = yaw_degrees(landmarks, 1.0)
    if abs(yaw) > limits.max_yaw_deg:
        raise _Refused(f"turned too far: yaw {yaw:+.0f} degrees, at most {limits.max_yaw_deg:.0f}")
    level = skin_level(picture.linear, landmarks)
    if level <= 0:
        raise _Refused("the face is black")
    sharp = sharpness(picture.linear, landmarks)
    if sharp < limits.min_sharpness:
        raise _Refused(f"blurred or enlarged: sharpness {sharp:.2f} below {limits.min_sharpness:.2f}")
    crop, points = cut_face(picture.linear * np.float32(SKIN_LEVEL / level), landmarks)
    png, white = encode_crop(crop)
    colour = picture.colour
    record = PhotoRecord(
        file_name=path.name,
        sha256=digest,
        size=(picture.linear.shape[1], picture.linear.shape[0]),
        colour=f"{colour.space} ({colour.source}: {colour.note})",
        face_width_px=width,
        yaw_deg=yaw,
        sharpness=sharp,
        crop_png=png,
        crop_white=white,
        landmarks=points,
    )
    return _Accepted(record, PhotoView(decode_crop(png, white), points), fit_pose(points))


def _only_face(faces: Sequence[MeshFace], size: tuple[int, ...]) -> Points:
    largest = max((_width(face) for face in faces), default=0.0)
    counted = [face for face in faces if _width(face) >= _BYSTANDER * largest]
    if not counted:
        raise _Refused("no face found")
    if len(counted) > 1:
        raise _Refused(f"{len(counted)} faces found: crop the photo to one")
    landmarks = np.asarray(counted[0].landmarks, np.float32)
    face = landmarks[: topology.FACE_POINTS, :2]
    inside = ((face >= 0) & (face <= [size[1], size[0]])).all(1).mean()
    if inside < _INSIDE:
        raise _Refused("the face is cut off by the edge of the photo")
    return landmarks
