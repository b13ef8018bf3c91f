"""Photos to identity: every refusal with its reason, and the whole way with the real nets."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import pytest

from faceplate.colour.decide import ColourDecision
from faceplate.colour.spaces import ColourConfig
from faceplate.demo.portrait import linear_to_srgb, load_portrait, portrait_landmarks
from faceplate.errors import IdentityError, UnsupportedImageError
from faceplate.face import FaceTexture
from faceplate.faces.crop import roi_from_landmarks
from faceplate.faces.landmarks import MeshFace
from faceplate.faces.nets import FaceNets
from faceplate.identity.file import read_identity, write_identity
from faceplate.identity.photo_measures import Image
from faceplate.identity.photo_picture import PhotoPicture, decode_crop
from faceplate.identity.photos import PhotoLimits, PhotoTools, find_faces, make_identity, photo_tools
from faceplate.identity.text import describe_identity
from faceplate.models.sessions import SessionPool
from faceplate.swap.mesh.texture import PhotoView
from tests.unit.core.identity.made import CONSENT, identity_file


def _face(points: np.ndarray) -> MeshFace:
    return MeshFace(points.astype(np.float64), 0.9, roi_from_landmarks(points, 1.0))


def _moved(scale: float = 1.0, x: float = 0.0) -> np.ndarray:
    return portrait_landmarks() * scale + np.array([x, 0, 0], np.float32)


class _Fakes:
    """Tools that read the astronaut whatever the file, and find what they are told."""

    def __init__(self, *faces: np.ndarray, picture: Image | None = None) -> None:
        self.faces = faces or (portrait_landmarks(),)
        self.picture = np.array(load_portrait()) if picture is None else picture
        self.views: list[PhotoView] = []
        self.tools = PhotoTools(self.read, lambda _: [_face(points) for points in self.faces], self.texture)

    def read(self, path: Path) -> PhotoPicture:
        if path.suffix == ".heic":
            raise UnsupportedImageError(f"{path} has another\nformat", hint="convert it")
        return PhotoPicture(self.picture, ColourDecision("sRGB", "default", "untagged"))

    def texture(self, views: Sequence[PhotoView]) -> FaceTexture:
        self.views = list(views)
        return FaceTexture(np.full((16, 16, 3), 0.18, np.float16), np.ones((16, 16), np.float16), 93.0)


def _files(folder: Path, *names: str) -> list[Path]:
    for name in names:
        (folder / name).write_bytes(name.encode())
    return [folder / name for name in names]


def _reason(folder: Path, fakes: _Fakes, name: str = "a.jpg", limits: PhotoLimits | None = None) -> str:
    with pytest.raises(IdentityError) as caught:
        make_identity("jane", _files(folder, name), None, fakes.tools, limits)
    assert caught.value.hint
    return str(caught.value.found)


BLURRED = cv2.GaussianBlur(np.array(load_portrait()), (0, 0), 2)


@pytest.mark.parametrize(
    ("fakes", "reason"),
    [
        (lambda: _Fakes(_moved(), _moved(x=200)), "a.jpg: 2 faces found: crop the photo to one"),
        (lambda: _Fakes(_moved(), _moved(x=90), _moved(x=180)), "a.jpg: 3 faces found: crop the photo to one"),
        (lambda: _Fakes(_moved(0.6)), "a.jpg: face is 56 px wide, at least 80 needed: use the full-size photo"),
        (lambda: _Fakes(picture=BLURRED), "a.jpg: blurred or enlarged: sharpness 0.17 below 0.20"),
        (lambda: _Fakes(_moved(x=-200)), "a.jpg: the face is cut off by the edge of the photo"),
        (lambda: _Fakes(picture=np.zeros((512, 512, 3), np.float32)), "a.jpg: the face is black"),
    ],
)
def test_a_photo_is_refused_with_its_reason(tmp_path: Path, fakes: object, reason: str) -> None:
    assert _reason(tmp_path, fakes()) == reason  # type: ignore[operator]


def test_no_face_profile_and_unreadable_files(tmp_path: Path) -> None:
    fakes = _Fakes()
    fakes.faces = ()
    assert _reason(tmp_path, fakes) == "a.jpg: no face found"
    turned = portrait_landmarks().copy()
    cos, sin = np.cos(np.radians(70)), np.sin(np.radians(70))
    turned[:, [0, 2]] = turned[:, [0, 2]] @ np.array([[cos, -sin], [sin, cos]], np.float32)
    turned[:, 0] += 256 - turned[:, 0].mean()
    small = PhotoLimits(min_face_px=10)
    assert "turned too far: yaw " in _reason(tmp_path, _Fakes(turned), limits=small)
    assert _reason(tmp_path, _Fakes(), "a.heic") == "a.heic: a.heic has another format: convert it"
    with pytest.raises(IdentityError, match="No such file"):
        make_identity("jane", [tmp_path / "absent.jpg"], None, fakes.tools)
    with pytest.raises(IdentityError, match="no photo"):
        make_identity("jane", [], None, fakes.tools)


def test_all_reasons_are_listed(tmp_path: Path) -> None:
    fakes = _Fakes(picture=BLURRED)
    with pytest.raises(IdentityError) as caught:
        make_identity("jane", _files(tmp_path, "a.jpg", "b.heic", "c.jpg"), None, fakes.tools)
    assert [line.split(":")[0] for line in str(caught.value.found).splitlines()] == ["a.jpg", "b.heic", "c.jpg"]


def test_a_small_face_in_the_background_does_not_count(tmp_path: Path) -> None:
    file, refused = make_identity("jane", _files(tmp_path, "a.jpg"), None, _Fakes(_moved(), _moved(0.2)).tools)
    assert (len(file.photos), refused) == (1, ())


def test_usable_photos_make_the_identity_and_the_others_are_named(tmp_path: Path) -> None:
    fakes = _Fakes()
    paths = _files(tmp_path, "a.jpg", "b.heic", "c.jpg")
    (tmp_path / "d.jpg").write_bytes(b"a.jpg")
    file, refused = make_identity("jane", [*paths, tmp_path / "d.jpg"], CONSENT, fakes.tools)
    assert [photo.file_name for photo in file.photos] == ["a.jpg", "c.jpg"]
    assert [refusal.path.name for refusal in refused] == ["b.heic", "d.jpg"]
    assert refused[1].reason == "the same file as a.jpg"
    assert file.consent == CONSENT
    assert file.photos[0].colour == "sRGB (default: untagged)"
    assert float(np.ptp(file.identity.shape[:, 0])) == pytest.approx(1.0, abs=1e-6)


def test_texture_is_built_from_what_the_file_keeps_at_skin_level(tmp_path: Path) -> None:
    fakes, dark = _Fakes(), _Fakes(picture=np.array(load_portrait()) * np.float32(0.25))
    file, _ = make_identity("jane", _files(tmp_path, "a.jpg"), None, fakes.tools)
    make_identity("jane", _files(tmp_path, "a.jpg"), None, dark.tools)
    (photo,), (view,) = file.photos, fakes.views
    assert np.array_equal(decode_crop(photo.crop_png, photo.crop_white), view.picture)
    assert np.array_equal(photo.landmarks, view.landmarks)
    assert np.allclose(view.picture, dark.views[0].picture, atol=2e-4)


@pytest.fixture(name="nets", scope="module")
def _nets() -> FaceNets:
    return FaceNets.load(SessionPool(device="cpu"))


@pytest.mark.parametrize("turns", [0, 1, 2])
def test_real_nets_find_the_face_in_any_rotation(nets: FaceNets, turns: int) -> None:
    (face,) = find_faces(np.ascontiguousarray(np.rot90(load_portrait(), turns)), nets)
    points = face.landmarks[:468, :2]
    for _ in range(turns):  # back by a quarter turn each
        points = np.stack([512 - points[:, 1], points[:, 0]], -1)
    assert np.hypot(*(points - portrait_landmarks()[:468, :2]).T).mean() < 1.5


def test_the_whole_way_with_real_nets(tmp_path: Path, nets: FaceNets) -> None:
    codes = np.rint(linear_to_srgb(load_portrait())[..., ::-1] * 255).astype(np.uint8)
    blurred = cv2.GaussianBlur(codes, (0, 0), 2)
    two = np.hstack([codes, codes[:, ::-1]])
    for name, picture in (("a.png", codes), ("b.png", blurred), ("c.png", two), ("d.png", codes[300:])):
        cv2.imwrite(str(tmp_path / name), picture)
    tools = photo_tools(nets, ColourConfig.open())
    paths = [tmp_path / f"{letter}.png" for letter in "abcd"]
    file, refused = make_identity("astronaut", paths, CONSENT, tools)
    assert [refusal.reason.split(":")[0] for refusal in refused] == [
        "blurred or enlarged",
        "2 faces found",
        "no face found",
    ]
    write_identity(tmp_path / "x.fpid", file)
    read = read_identity(tmp_path / "x.fpid")
    texture = read.identity.texture
    known = texture.coverage > 0.9
    assert known.mean() > 0.3
    skin = texture.colour[known].astype(np.float32) @ np.array([0.2126, 0.7152, 0.0722], np.float32)
    assert float(np.median(skin)) == pytest.approx(0.18, rel=0.15)
    again, _ = make_identity("astronaut", paths[:1], None, tools)
    assert again.identity.content_hash == read.identity.content_hash


def test_description_tells_consent_photos_and_refusals() -> None:
    file = identity_file()
    text = describe_identity(file, on=datetime.date(2026, 11, 30))
    assert "Jane Doe, signed by Jane Doe" in text
    assert "jane_02.jpg  640 x 480, face 210 px, yaw -3, sharpness 0.40, sRGB (default)" in text
    assert f"hash      {file.identity.content_hash}" in text
    assert "REFUSED: the consent of Jane Doe expired" in describe_identity(file, on=datetime.date(2030, 1, 1))
    assert "consent   no consent record" in describe_identity(identity_file(None), on=datetime.date(2026, 11, 30))
    forged = dataclasses.replace(CONSENT, scope="all\n\x1b[2Jconsent   valid")
    lines = describe_identity(identity_file(forged), on=datetime.date(2026, 11, 30)).splitlines()
    assert "          scope: all??[2Jconsent   valid" in lines
