"""The .fpid file: exact round trip, same bytes, and every kind of bad file answered by one IdentityError."""

from __future__ import annotations

import dataclasses
import io
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faceplate.errors import IdentityError, OutputError
from faceplate.face import FaceTexture
from faceplate.identity.file import (
    IdentityFile,
    PhotoRecord,
    build_identity,
    content_hash,
    read_identity,
    write_identity,
)
from tests.unit.core.identity.made import CONSENT, identity_file


@pytest.fixture(name="good")
def _good(tmp_path: Path) -> Path:
    path = tmp_path / "jane.fpid"
    write_identity(path, identity_file())
    return path


def _photo_values(photo: PhotoRecord) -> dict[str, Any]:
    values = {spec.name: getattr(photo, spec.name) for spec in dataclasses.fields(photo)}
    return {**values, "landmarks": photo.landmarks.tobytes()}


def test_round_trip_is_exact(good: Path) -> None:
    wrote, read = identity_file(), read_identity(good)
    assert np.array_equal(read.identity.texture.colour, wrote.identity.texture.colour)
    assert np.array_equal(read.identity.texture.coverage, wrote.identity.texture.coverage)
    assert read.identity.texture.colour.dtype == np.float16
    assert read.identity.texture.detail_px == 210.5
    assert np.array_equal(read.identity.shape, wrote.identity.shape)
    assert read.identity.content_hash == wrote.identity.content_hash
    assert (read.identity.name, read.consent, read.tool_version) == ("jane", CONSENT, wrote.tool_version)
    assert [_photo_values(p) for p in read.photos] == [_photo_values(p) for p in wrote.photos]
    assert np.array_equal(read.identity.embeddings["recogniser"], wrote.identity.embeddings["recogniser"])


def test_same_content_gives_the_same_bytes(good: Path, tmp_path: Path) -> None:
    write_identity(tmp_path / "again.fpid", identity_file())
    assert (tmp_path / "again.fpid").read_bytes() == good.read_bytes()


def test_hash_covers_the_picture_and_not_the_consent() -> None:
    base = identity_file()
    assert identity_file(consent=None).identity.content_hash == base.identity.content_hash
    assert identity_file(name="else").identity.content_hash == base.identity.content_hash
    texture, shape = base.identity.texture, base.identity.shape
    marks, vectors = [photo.landmarks for photo in base.photos], base.identity.embeddings
    colour = texture.colour.copy()
    colour[3, 5, 1] = np.nextafter(colour[3, 5, 1], np.float16(1))
    moved = shape.copy()
    moved[100, 2] = np.nextafter(moved[100, 2], np.float32(1))
    others = {
        content_hash(texture, shape, marks, vectors),
        content_hash(FaceTexture(colour, texture.coverage, texture.detail_px), moved, marks, vectors),
        content_hash(FaceTexture(colour, texture.coverage, texture.detail_px), shape, marks, vectors),
        content_hash(FaceTexture(texture.colour, texture.coverage, 211.0), shape, marks, vectors),
        content_hash(texture, moved, marks, vectors),
        content_hash(texture, shape, marks[::-1], vectors),
        content_hash(texture, shape, [marks[0]], vectors),
        content_hash(texture, shape, marks, {}),
    }
    assert base.identity.content_hash in others
    assert len(others) == 7  # the two photos of `made` share their landmarks, so their order cannot show


def test_a_photo_name_that_is_no_utf8_comes_back(tmp_path: Path) -> None:
    base = identity_file()
    photos = [dataclasses.replace(base.photos[0], file_name="Ünal \udcff.jpg")]
    made = build_identity("Ünal", base.identity.texture, base.identity.shape, photos, CONSENT)
    write_identity(tmp_path / "x.fpid", made)
    read = read_identity(tmp_path / "x.fpid")
    assert (read.identity.name, read.photos[0].file_name) == ("Ünal", "Ünal \udcff.jpg")


def test_no_consent_reads_as_none(tmp_path: Path) -> None:
    write_identity(tmp_path / "x.fpid", identity_file(consent=None))
    assert read_identity(tmp_path / "x.fpid").consent is None
    assert "consent.json" not in zipfile.ZipFile(tmp_path / "x.fpid").namelist()


def test_unwritable_folder_is_an_output_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError):
        write_identity(tmp_path / "absent" / "x.fpid", identity_file())


def _refused(path: Path) -> IdentityError:
    with pytest.raises(IdentityError) as caught:
        read_identity(path)
    assert str(path) in caught.value.message
    assert caught.value.hint
    assert caught.value.exit_code == 2
    return caught.value


Parts = dict[str, bytes]


def _rewrite(path: Path, change: Callable[[Parts], None]) -> None:
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    change(parts)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)


def _set(**values: object) -> Callable[[Parts], None]:
    def change(parts: Parts) -> None:
        document = json.loads(parts["identity.json"])
        for name, value in values.items():
            if name in document["photos"][0]:
                document["photos"][0][name] = value
            else:
                document[name] = value
        parts["identity.json"] = json.dumps(document).encode()

    return change


def _put(name: str, data: bytes) -> Callable[[Parts], None]:
    return lambda parts: parts.update({name: data})


def _drop(name: str) -> Callable[[Parts], None]:
    return lambda parts: (parts.pop(name), None)[1]


def _npy(array: np.ndarray[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version=(1, 0), allow_pickle=True)
    return buffer.getvalue()


def _huge_header() -> bytes:
    text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 1000000), }"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text) + 1) + text + b"\n"


BAD_PARTS: dict[str, tuple[Callable[[Parts], None], str]] = {
    "path traversal": (_put("../../etc/passwd", b"x"), "unknown part"),
    "absolute path": (_put("/tmp/x", b"x"), "unknown part"),
    "code": (_put("run.py", b"x"), "unknown part"),
    "newer version": (_set(version=2), "another version"),
    "other format": (_set(format="tar"), "no identity file"),
    "missing texture": (_drop("texture_colour.npy"), "absent"),
    "missing crop": (_drop("crops/0002.png"), "absent"),
    "no identity.json": (_drop("identity.json"), "absent"),
    "JSON NaN": (_put("identity.json", b'{"format": NaN}'), "NaN"),
    "JSON list": (_put("identity.json", b"[]"), "wrong form"),
    "JSON too deep": (_put("identity.json", b"[" * 100_000), "damaged"),
    "JSON not text": (_put("identity.json", b"\xff\xfe"), "damaged"),
    "photos no list": (_set(photos=3), "damaged"),
    "photos without keys": (_set(photos=[{}]), "damaged"),
    "no photos": (_set(photos=[]), "number of photos"),
    "infinite detail": (_set(detail_px=1e999), "damaged"),
    "absurd face width": (_set(face_width_px=1e30), "face width"),
    "absurd size": (_set(size=[10**9, 1]), "impossible size"),
    "photo name with a folder": (_set(file_name="../../x.jpg"), "no file name"),
    "empty name": (_set(name=""), "name"),
    "name with a control character": (_set(name="a\nb"), "name"),
    "hash of other content": (_set(content_hash="0" * 64), "changed since"),
    "NaN texture": (_put("texture_colour.npy", _npy(np.full((64, 64, 3), np.nan, np.float16))), "not finite"),
    "negative texture": (_put("texture_colour.npy", _npy(np.full((64, 64, 3), -1, np.float16))), "impossible numbers"),
    "coverage of 2": (_put("texture_coverage.npy", _npy(np.full((64, 64), 2, np.float16))), "impossible numbers"),
    "tiny texture": (_put("texture_colour.npy", _npy(np.ones((4, 4, 3), np.float16))), "impossible size"),
    "changed texture": (_put("texture_colour.npy", _npy(np.ones((64, 64, 3), np.float16))), "changed since"),
    "pickle": (_put("shape.npy", _npy(np.array([{"a": 1}], object))), "no plain array"),
    "integers": (_put("shape.npy", _npy(np.zeros((468, 3), np.int32))), "no plain array"),
    "huge array": (_put("shape.npy", _huge_header()), "no plain array"),
    "header is code": (
        _put("shape.npy", b"\x93NUMPY\x01\x00\x20\x00__import__('os').abort()\n       "),
        "no plain array",
    ),
    "empty array": (_put("shape.npy", b""), "no plain array"),
    "shape of 5 points": (_put("shape.npy", _npy(np.zeros((5, 3), np.float32))), "wrong form"),
    "array longer than it says": (_put("shape.npy", _npy(np.zeros((468, 3), np.float32)) + b"more"), "damaged"),
    "broken header": (
        _put("shape.npy", b"\x93NUMPY\x01\x00v\x00{'descr': 'rf4', 'shape': \xc0478, 3), }"),
        "no plain array",
    ),
    "crop is text": (_put("crops/0001.png", b"hello"), "no PNG"),
    "crop is huge": (
        _put("crops/0001.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">IIBB", 10**6, 10**6, 16, 2)),
        "wrong form",
    ),
    "consent with an unknown key": (_put("consent.json", b'{"persn": "Jane"}'), "did you mean person"),
    "consent that is a list": (_put("consent.json", b"[1]"), "wrong form"),
}


@pytest.mark.parametrize("case", BAD_PARTS)
def test_bad_parts(good: Path, case: str) -> None:
    change, text = BAD_PARTS[case]
    _rewrite(good, change)
    error = _refused(good)
    assert text in f"{error} {error.hint}"


def test_unreadable_files(tmp_path: Path) -> None:
    assert "No such file" in str(_refused(tmp_path / "absent.fpid"))
    assert "directory" in str(_refused(tmp_path)).lower()
    for data in (b"", b"hello", b"PK\x03\x04", b"\x00" * 1000):
        (tmp_path / "x.fpid").write_bytes(data)
        _refused(tmp_path / "x.fpid")


def test_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.fpid"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("shape.npy", "w") as file:
        for _ in range(257):
            file.write(bytes(1 << 20))
    assert "too large" in str(_refused(path))


def test_a_size_that_lies_is_refused(good: Path) -> None:
    data = good.read_bytes()
    size = zipfile.ZipFile(good).getinfo("shape.npy").file_size
    assert data.count(struct.pack("<I", size)) == 2  # local header and central directory
    good.write_bytes(data.replace(struct.pack("<I", size), struct.pack("<I", size - 100)))
    _refused(good)


def test_other_packing_and_doubles_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.fpid", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("identity.json", b"{}")
    assert "packed" in str(_refused(tmp_path / "x.fpid"))
    with zipfile.ZipFile(tmp_path / "y.fpid", "w") as archive:
        archive.writestr("identity.json", b"{}")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("identity.json", b"{}")
    assert "twice" in str(_refused(tmp_path / "y.fpid"))


GOOD_BYTES: list[bytes] = []


def _good_bytes(folder: Path) -> bytes:
    if not GOOD_BYTES:
        write_identity(folder / "good.fpid", identity_file(size=16))
        GOOD_BYTES.append((folder / "good.fpid").read_bytes())
    return GOOD_BYTES[0]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_never_gives_another_identity_or_a_traceback(tmp_path: Path, data: st.DataObject) -> None:
    good = bytearray(_good_bytes(tmp_path))
    if data.draw(st.booleans()):
        good = good[: data.draw(st.integers(0, len(good) - 1))]
    else:
        for _ in range(data.draw(st.integers(1, 4))):
            good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "damaged.fpid"
    path.write_bytes(good)
    try:
        read = read_identity(path)
    except IdentityError as error:
        assert error.hint  # noqa: PT017 - either outcome is right, as long as it is this error or the true identity
        return
    _same_picture(read, identity_file(size=16))


def _same_picture(read: IdentityFile, wrote: IdentityFile) -> None:
    assert read.identity.content_hash == wrote.identity.content_hash
    assert np.array_equal(read.identity.texture.colour, wrote.identity.texture.colour)


def test_build_refuses_what_a_reader_would_refuse() -> None:
    base = identity_file()
    texture, shape = base.identity.texture, base.identity.shape
    with pytest.raises(IdentityError, match="number of photos"):
        build_identity("jane", texture, shape, [], None)
    bad = shape.copy()
    bad[0, 0] = np.inf
    with pytest.raises(IdentityError, match="not finite"):
        build_identity("jane", texture, bad, base.photos, None)
    with pytest.raises(IdentityError, match="wrong type"):
        build_identity("jane", texture, shape.astype(np.float64), base.photos, None)  # type: ignore[arg-type]
