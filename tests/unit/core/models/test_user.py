"""Files that a user adds: recognised, refused, recorded; their licence; InsightFace's packs."""

from __future__ import annotations

import dataclasses
import datetime
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

from faceplate.cli.main import app
from faceplate.errors import FaceplateError, LicenceError, ModelError
from faceplate.models import signature as signature_of
from faceplate.models.catalogue import load_catalogue
from faceplate.models.packs import find_packs, pack_folders, read_pack, said_by
from faceplate.models.random import detectors, landmarks, recognisers, swappers
from faceplate.models.sessions import SessionPool
from faceplate.models.store import ModelStore
from faceplate.models.user import add, load_user_cards, look_at, read_taken, user_folder

RECOGNISER = recognisers.arcface(0, 0.05)
POINTS = landmarks.points_106(0, 0.2)


def put(folder: Path, name: str, content: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder, empty; no pack of the machine's user in sight."""
    monkeypatch.setenv("FACEPLATE_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    monkeypatch.delenv("INSIGHTFACE_HOME", raising=False)
    return tmp_path / "models"


def run(*words: str) -> tuple[int, list[dict[str, Any]], BaseException | None]:
    result = CliRunner().invoke(app, ["models", *words, "--json"], standalone_mode=False)
    code = result.return_value if result.exception is None else getattr(result.exception, "exit_code", 1)
    return code, [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")], result.exception


def test_where_the_users_models_lie(tmp_path: Path) -> None:
    assert user_folder({"FACEPLATE_MODELS": str(tmp_path)}) == tmp_path


def test_a_file_is_known_by_its_signature_and_name(tmp_path: Path) -> None:
    offer = look_at(put(tmp_path, "det_10g.onnx", detectors.scrfd(0, 0.1)))
    assert (offer.model_id, offer.found.by) == ("det_10g", "signature and name")
    assert offer.found.nodes["box_16"] == "474"


def test_a_file_is_known_by_its_hash_whatever_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, "glintr100.onnx", RECOGNISER)
    digest = look_at(path).sha256
    cards = dict(load_catalogue())
    cards["auraface"] = dataclasses.replace(cards["auraface"], hashes=(digest,))
    found = signature_of.recognise(path, digest, signature_of.read_signature(path), cards)
    assert (found.base.id, found.by) == ("auraface", "hash")


def test_names_of_tensors_may_differ_from_the_cards(tmp_path: Path) -> None:
    model = onnx.load_from_string(RECOGNISER)
    for node in model.graph.node:
        node.input[:] = ["data" if name == "input.1" else name for name in node.input]
        node.output[:] = ["fc1" if name == "683" else name for name in node.output]
    model.graph.input[0].name, model.graph.output[0].name = "data", "fc1"
    path = put(tmp_path, "w600k_r50.onnx", model.SerializeToString())
    add(look_at(path), tmp_path / "models", "a test")
    store = ModelStore.of_user(tmp_path / "models")
    assert [spec.file_name for spec in store.card("w600k_r50").inputs] == ["data"]
    with SessionPool(store, "cpu", threads=1) as pool:
        image = np.zeros((2, 3, 112, 112), np.float32)
        assert pool.get("w600k_r50").run({"image": image})["embedding"].shape == (2, 512)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("w600k_r50.onnx", b"", "is no net"),
        ("w600k_r50.onnx", b"\x00not a net at all\xff" * 9, "no ONNX file"),
        ("w600k_r50.onnx", RECOGNISER[: len(RECOGNISER) // 2], "damaged"),
        ("w600k_r50.onnx", POINTS, "is not the net w600k_r50"),
        ("mystery.onnx", RECOGNISER, "cannot be told"),
    ],
)
def test_what_is_damaged_or_not_what_it_says_is_refused(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    with pytest.raises(ModelError) as refused:
        look_at(put(tmp_path, name, content))
    assert said in str(refused.value)
    assert refused.value.hint


def test_the_user_may_say_what_it_is(tmp_path: Path) -> None:
    path = put(tmp_path, "mystery.onnx", RECOGNISER)
    assert look_at(path, "auraface").model_id == "auraface"
    with pytest.raises(ModelError, match="is not the net det_10g"):
        look_at(path, "det_10g")
    with pytest.raises(ModelError, match="there is no model arcface"):
        look_at(path, "arcface")


def test_a_net_that_was_not_added_says_how(models: Path) -> None:
    with pytest.raises(ModelError, match="not installed") as refused:
        ModelStore.of_user(models).path("w600k_r50")
    assert "faceplate models add" in str(refused.value.hint)
    assert "non-commercial" in str(refused.value.hint)


def test_adding_records_file_and_licence(models: Path, tmp_path: Path) -> None:
    path = put(tmp_path, "w600k_r50.onnx", RECOGNISER)
    code, lines, _ = run("add", str(path), "--accept")
    assert code == 0
    assert lines[0]["licence"] == "InsightFace model licence: non-commercial research only"
    assert lines[-1]["state"] == "added as w600k_r50"
    assert read_taken(models)["w600k_r50"].on == datetime.date.today().isoformat()
    code, lines, _ = run("licences")
    assert any(line["id"] == "w600k_r50" and "taken" in line for line in lines)
    code, lines, _ = run("list")
    states = {line["id"]: line["state"] for line in lines}
    assert (states["w600k_r50"], states["selfie"]) == ("here", "here")
    assert states["det_10g"].startswith("not here")
    assert run("verify")[0] == 0
    (models / "w600k_r50.onnx").unlink()
    put(models, "w600k_r50.onnx", RECOGNISER[:-1])
    assert run("verify")[0] == 3


def test_nothing_is_added_without_taking_the_licence(models: Path, tmp_path: Path) -> None:
    code, lines, error = run("add", str(put(tmp_path, "w600k_r50.onnx", RECOGNISER)))
    assert code == 2
    assert isinstance(error, FaceplateError)
    assert "--accept" in str(error.hint)
    assert lines[0]["commercial use"] == "forbidden"
    assert not models.exists()


def test_a_file_that_cannot_run_is_not_added(models: Path, tmp_path: Path) -> None:
    """Whole as a file, but a layer's weights are of another size."""
    model = onnx.load_from_string(RECOGNISER)
    last = max(model.graph.initializer, key=lambda one: len(one.raw_data))
    last.dims[1] -= 1
    last.raw_data = last.raw_data[: 4 * last.dims[0] * last.dims[1]]
    code, _, error = run("add", str(put(tmp_path, "w600k_r50.onnx", model.SerializeToString())), "--accept")
    assert code == 3
    assert "failed to" in str(error)
    assert not models.exists()


def test_a_net_that_gives_nan_is_not_added(models: Path, tmp_path: Path) -> None:
    model = onnx.load_from_string(RECOGNISER)
    for one in model.graph.initializer:
        if len(one.dims) == 4:
            one.CopyFrom(onnx.numpy_helper.from_array(np.full(tuple(one.dims), np.nan, np.float32), one.name))
    code, _, error = run("add", str(put(tmp_path, "w600k_r50.onnx", model.SerializeToString())), "--accept")
    assert (code, "not finite" in str(error)) == (3, True), error
    assert not models.exists()


def test_weights_in_other_files_are_refused(tmp_path: Path) -> None:
    """A copy of the one file would not run, and its hash says nothing of the others."""
    path = tmp_path / "w600k_r50.onnx"
    onnx.save_model(onnx.load_from_string(RECOGNISER), str(path), save_as_external_data=True, location="w.data")
    with pytest.raises(ModelError, match=r"keeps its weights in other files.*found w\.data"):
        look_at(path)


def test_verify_tells_of_all_files(models: Path, tmp_path: Path) -> None:
    for name, content in (("w600k_r50.onnx", RECOGNISER), ("auraface.onnx", RECOGNISER)):
        assert run("add", str(put(tmp_path, name, content)), "--accept", "--as", name.removesuffix(".onnx"))[0] == 0
    (models / "auraface.onnx").write_bytes(b"other")
    code, lines, error = run("verify")
    states = {line["id"]: line["state"] for line in lines}
    assert (code, states["w600k_r50"]) == (3, "whole")
    assert "truncated" in states["auraface"]
    assert "1 of" in str(error)


def test_a_models_own_size_is_recorded(tmp_path: Path) -> None:
    """A DFM has the name of its file, and the size that it was trained at."""
    path = put(tmp_path, "Jane Doe 224.dfm", swappers.SWAPPERS["dfm"](0.05))
    card = add(look_at(path), tmp_path / "models", "a test")
    assert (card.id, card.file, card.inputs[0].shape[2]) == ("jane_doe_224", "jane_doe_224.dfm", 3)
    assert card.inputs[0].shape[0] == card.inputs[0].shape[1] > 0
    with SessionPool(ModelStore.of_user(tmp_path / "models"), "cpu", threads=1) as pool:
        pool.get("jane_doe_224").warm_up()


def test_a_store_sees_what_is_added_while_it_lives(models: Path, tmp_path: Path) -> None:
    store = ModelStore.of_user(models)
    with pytest.raises(ModelError, match="not installed"):
        store.path("2d106det")
    add(look_at(put(tmp_path, "2d106det.onnx", POINTS)), models, "a test")
    assert store.path("2d106det").is_file()


def test_in_place_leaves_the_file(models: Path, tmp_path: Path) -> None:
    path = put(tmp_path, "2d106det.onnx", POINTS)
    add(look_at(path), models, "a test", in_place=True)
    assert [one.name for one in models.iterdir()] == ["2d106det.toml"]
    assert ModelStore.of_user(models).path("2d106det") == path
    path.unlink()
    with pytest.raises(ModelError, match="is missing"):
        ModelStore.of_user(models).path("2d106det")


@pytest.mark.parametrize(
    ("model_id", "content", "said"),
    [
        ("w600k_r50", RECOGNISER, "forbids"),
        ("crossface_ghost", recognisers.crossface(0, 0.05), "is not known to allow"),
    ],
)
def test_a_commercial_job_refuses_it_with_the_reason(tmp_path: Path, model_id: str, content: bytes, said: str) -> None:
    add(look_at(put(tmp_path, f"{model_id}.onnx", content)), tmp_path / "models", "a test")
    store = ModelStore.of_user(tmp_path / "models")
    assert store.path(model_id).is_file()
    with pytest.raises(LicenceError, match=said) as refused:
        store.path(model_id, commercial=True)
    assert refused.value.found == store.card(model_id).licence
    assert refused.value.exit_code == 3


def test_a_licence_of_ones_own_is_recorded_and_ends(tmp_path: Path) -> None:
    folder, path = tmp_path / "models", put(tmp_path, "w600k_r50.onnx", RECOGNISER)
    add(look_at(path), folder, "a test", licensed="contract 12", valid_until="2999-12-31")
    store = ModelStore.of_user(folder)
    assert store.path("w600k_r50", commercial=True).is_file()
    assert store.card("w600k_r50").licence == "contract 12"
    add(look_at(path), folder, "a test", licensed="contract 12", valid_until="2020-01-01")
    with pytest.raises(LicenceError, match="has ended"):
        ModelStore.of_user(folder).path("w600k_r50", commercial=True)


@pytest.mark.parametrize(
    "text", ["[w600k_r50", '[w600k_r50]\nbase = "gone"', "w600k_r50 = 3", '[a]\nbase = "iris"\nx = 1']
)
def test_a_damaged_record_is_an_error(tmp_path: Path, text: str) -> None:
    put(tmp_path, "w600k_r50.toml", text.encode())
    with pytest.raises(ModelError):
        load_user_cards(tmp_path)


def test_packs_are_found_where_insightface_keeps_them(tmp_path: Path) -> None:
    pack = tmp_path / "home" / ".insightface" / "models" / "buffalo_l"
    put(pack, "det_10g.onnx", detectors.scrfd(0, 0.05))
    put(tmp_path / "elsewhere" / "models" / "antelopev2", "glintr100.onnx", RECOGNISER)
    folders = pack_folders({"INSIGHTFACE_HOME": str(tmp_path / "elsewhere")}, tmp_path / "home")
    found = find_packs(folders)
    assert [one.name for one in found] == ["antelopev2", "buffalo_l"]
    assert found[1].files == (pack / "det_10g.onnx",)
    assert not any(one.commercial for one in found)


def test_a_pack_without_a_licence_file_is_non_commercial(tmp_path: Path) -> None:
    pytest.importorskip("insightface", reason="pip install --no-deps insightface==2.1")
    put(tmp_path / "buffalo_l", "2d106det.onnx", POINTS)
    assert read_pack(tmp_path / "buffalo_l").licence == (
        "InsightFace: MODEL.LICENSE is absent; defaulting to non-commercial use"
    )
    put(tmp_path / "buffalo_l", "MODEL.LICENSE", b"{}")
    pack = read_pack(tmp_path / "buffalo_l")
    assert not pack.commercial
    assert pack.licence.startswith("InsightFace: ")


def test_what_insightfaces_inspection_says_counts() -> None:
    day = datetime.datetime(2027, 5, 1, tzinfo=datetime.UTC)
    signed = SimpleNamespace(grant="commercial", license_id="L1", model_id="buffalo_l", valid_until=day)
    inspected = SimpleNamespace(license=signed, commercial_use_permitted=True, message="")
    assert said_by(inspected) == (True, "InsightFace commercial licence L1 for buffalo_l", "2027-05-01")


def test_a_pack_is_added_by_its_name(models: Path, tmp_path: Path) -> None:
    pack = tmp_path / "home" / ".insightface" / "models" / "buffalo_l"
    put(pack, "2d106det.onnx", POINTS)
    put(pack, "w600k_r50.onnx", RECOGNISER)
    put(pack, "genderage.onnx", b"something else")
    code, lines, _ = run("add", "buffalo_l", "--accept")
    assert code == 0
    assert [line["state"] for line in lines if "state" in line] == ["added as 2d106det", "added as w600k_r50"]
    assert any("genderage.onnx was not added" in str(line) for line in lines)
    assert ModelStore.of_user(models).path("w600k_r50") == pack / "w600k_r50.onnx"
    shutil.rmtree(pack)
    assert run("verify")[0] == 3
