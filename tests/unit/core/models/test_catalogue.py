"""The shipped catalogue is complete and true; a wrong one is refused."""

import hashlib
from importlib import resources
from pathlib import Path

import onnx
import pytest

from faceplate.errors import ModelError
from faceplate.models.catalogue import data_folder, load_catalogue

SHIPPED = ["face_detector", "face_mesh", "face_mesh_attention", "iris", "selfie"]
DETECTOR, IRIS = load_catalogue()["face_detector"], load_catalogue()["iris"]


def test_the_five_nets_that_ship_come_first() -> None:
    cards = load_catalogue()
    assert list(cards)[:5] == SHIPPED
    assert [card.id for card in cards.values() if card.is_here] == SHIPPED


def test_every_shipped_file_has_a_card_and_every_card_a_file() -> None:
    files = {path.name for path in data_folder().glob("*.onnx")}
    assert files == {load_catalogue()[model_id].file for model_id in SHIPPED}


@pytest.mark.parametrize("model_id", SHIPPED)
def test_card_is_true(model_id: str) -> None:
    card = load_catalogue()[model_id]
    content = (data_folder() / card.file).read_bytes()
    assert (len(content), hashlib.sha256(content).hexdigest()) == (card.bytes, card.sha256)
    model = onnx.load_from_string(content)
    facts = {entry.key: entry.value for entry in model.metadata_props}
    assert facts["source_sha256"] == card.source.sha256
    assert facts["source"] == f"{card.source.project} {card.source.version}, {card.source.file}"
    assert facts["licence"] == card.licence == "Apache-2.0"
    assert facts["authors"] == card.authors
    assert card.commercial
    assert card.training_data
    for specs, values in ((card.inputs, model.graph.input), (card.outputs, model.graph.output)):
        assert [spec.name for spec in specs] == [value.name for value in values]
        for spec, value in zip(specs, values, strict=True):
            batch, *sizes = value.type.tensor_type.shape.dim
            assert batch.dim_param == "N"
            assert spec.shape == tuple(size.dim_value for size in sizes)
    half = any(constant.data_type == onnx.TensorProto.FLOAT16 for constant in model.graph.initializer)
    assert ("float16 weights" in card.precision) == half


def test_notice_names_every_net_and_its_source() -> None:
    notice = (data_folder() / "NOTICE").read_text()
    for card in map(load_catalogue().__getitem__, SHIPPED):
        line = next(line for line in notice.splitlines() if line.split()[:1] == [card.file])
        assert line.split()[1] == card.source.file
        assert card.source.version in notice
        assert card.authors in notice
    assert "Apache License, Version 2.0" in notice


def test_data_is_found_as_package_data() -> None:
    assert (resources.files("faceplate.models") / "data" / "catalogue.toml").is_file()


@pytest.fixture
def text() -> str:
    return (data_folder() / "catalogue.toml").read_text()


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ('title = "MediaPipe iris"', "", "iris: expected"),
        ('title = "MediaPipe iris"', 'titel = "MediaPipe iris"', "iris: expected"),
        ('title = "MediaPipe iris"', 'title = ""', "iris.title"),
        ("commercial = true", 'commercial = "yes"', "face_detector.commercial"),
        (f"bytes = {DETECTOR.bytes}", "bytes = 0", "face_detector"),
        (f"bytes = {DETECTOR.bytes}", "bytes = true", "face_detector.bytes"),
        ('file = "iris.onnx"', 'file = "../iris.onnx"', "iris"),
        (IRIS.sha256, IRIS.sha256.upper(), "iris.sha256"),
        (IRIS.source.sha256, IRIS.source.sha256[1:], "iris.source.sha256"),
        ("std = [0.5, 0.5, 0.5]", "std = [0.5, 0.5]", "face_detector.std"),
        ("shape = [71, 3]", "shape = [71, -3]", "iris.outputs.shape"),
        ('layout = "NPC", shape = [71, 3]', 'layout = "NP", shape = [71, 3]', "iris.outputs.layout"),
        ("[iris.source]", "[iris.origin]", "iris.source"),
        ('version = "0.10.21"', "version = 0.1021", "face_detector.source.version"),
    ],
)
def test_wrong_card_is_refused(text: str, tmp_path: Path, old: str, new: str, where: str) -> None:
    assert old in text
    path = tmp_path / "catalogue.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ModelError) as refused:
        load_catalogue(path)
    assert where in str(refused.value).replace("; ", ": ")
    assert refused.value.hint


@pytest.mark.parametrize("content", [None, b"[iris", b"\xff\xfe"])
def test_unreadable_catalogue_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "catalogue.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelError, match="cannot be read"):
        load_catalogue(path)
