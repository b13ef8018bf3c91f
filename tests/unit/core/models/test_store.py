"""A net's file is found, is the one on its card, and may be used for the job."""

import dataclasses
import hashlib
import os
import shutil
from io import BufferedReader
from pathlib import Path

import pytest

from faceplate.errors import LicenceError, ModelError
from faceplate.models.catalogue import data_folder, load_catalogue
from faceplate.models.store import ModelStore

CARD = load_catalogue()["selfie"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's folder with a good copy of one net."""
    shutil.copy(data_folder() / CARD.file, tmp_path / CARD.file)
    return tmp_path


def test_shipped_net_is_found() -> None:
    assert ModelStore().path("selfie") == data_folder() / CARD.file


def test_given_folders_come_first_in_their_order(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    empty = tmp_path_factory.mktemp("empty")
    assert ModelStore([empty, folder]).path("selfie") == folder / CARD.file


def test_truncated_file(folder: Path) -> None:
    path = folder / CARD.file
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelError, match="truncated") as refused:
        ModelStore([folder]).path("selfie")
    assert (refused.value.expected, refused.value.found) == (f"{CARD.bytes} bytes", f"{CARD.bytes - 1} bytes")
    assert CARD.file in str(refused.value.hint)


def test_file_with_more_behind_it(folder: Path) -> None:
    path = folder / CARD.file
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(ModelError, match="too long"):
        ModelStore([folder]).path("selfie")


@pytest.mark.parametrize("place", [0, CARD.bytes // 2, CARD.bytes - 1])
def test_one_wrong_bit(folder: Path, place: int) -> None:
    path = folder / CARD.file
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelError, match="corrupted") as refused:
        ModelStore([folder]).path("selfie")
    assert refused.value.expected == f"sha256 {CARD.sha256}"
    assert refused.value.hint


def test_absent_file(tmp_path: Path) -> None:
    card = dataclasses.replace(CARD, file="elsewhere.onnx")
    with pytest.raises(ModelError, match="missing") as refused:
        ModelStore([tmp_path], {"selfie": card}).path("selfie")
    assert str(tmp_path) in str(refused.value.expected)
    assert refused.value.hint


def test_unreadable_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("no")

    store = ModelStore([folder])
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ModelError, match="cannot be read"):
        store.path("selfie")


def test_unknown_model_names_the_known_ones() -> None:
    with pytest.raises(ModelError) as refused:
        ModelStore().path("inswapper")
    assert "face_mesh_attention" in str(refused.value.expected)


def test_file_is_hashed_once_and_again_when_changed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, path = ModelStore([folder]), folder / CARD.file
    hashed: list[str] = []
    really_hash = hashlib.file_digest

    def count(file: BufferedReader, algorithm: str) -> object:
        hashed.append(file.name)
        return really_hash(file, algorithm)

    monkeypatch.setattr(hashlib, "file_digest", count)
    store.path("selfie")
    store.path("selfie")
    assert hashed == [str(path)]
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(0, 0))
    with pytest.raises(ModelError, match="corrupted"):
        store.path("selfie")


def test_commercial_job_refuses_non_commercial_weights() -> None:
    card = dataclasses.replace(CARD, commercial=False, licence="CC-BY-NC-4.0")
    store = ModelStore(catalogue={"selfie": card})
    assert store.path("selfie").is_file()
    with pytest.raises(LicenceError) as refused:
        store.path("selfie", commercial=True)
    assert refused.value.found == "CC-BY-NC-4.0"
    assert refused.value.hint


def test_shipped_nets_may_be_used_commercially() -> None:
    store = ModelStore()
    for card in store.here:
        assert store.path(card.id, commercial=True).is_file()
