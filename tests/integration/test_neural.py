"""Jobs with nets that a user has added, random ones of the true signature: through the command line to files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import OpenEXR
import pytest

from faceplate.models.random import mattes, swappers
from tests.integration.conftest import Cli, outputs
from tests.integration.test_apply import assert_plate_outside, channels
from tests.support.plates import SyntheticPlate

WIDTH = 0.06
ENGINE = "blendswap_256+xseg_1"


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> Path:
    """A user's model folder with BlendSwap, which takes a picture of the person, and a matte."""
    monkeypatch.setenv("FACEPLATE_MODELS", str(tmp_path / "models"))
    add_nets(cli, tmp_path)
    return tmp_path / "models"


def add_nets(cli: Cli, folder: Path) -> None:
    """The random nets of `ENGINE`."""
    for name, content in (("blendswap_256", swappers.blendswap_256(WIDTH)), ("xseg_1", mattes.xseg(0.2))):
        file = folder / f"{name}.onnx"
        file.write_bytes(content)
        assert cli("models", "add", file, "--accept").code == 0


def test_a_users_swapper_through_a_whole_job(
    cli: Cli, models: Path, small: SyntheticPlate, small_plate: str, identity: Path, tmp_path: Path
) -> None:
    words = ("apply", small_plate, "--identity", identity, "--engine", ENGINE, "--json")
    ran = cli(*words, "-o", tmp_path / "a" / "out.####.exr")
    assert ran.code == 0, ran.err
    assert ran.event("done")["counts"] == {"done": 6}
    for number in small.numbers:
        path = tmp_path / "a" / f"out.{number}.exr"
        inside = assert_plate_outside(small, number, path)
        assert 0.02 < inside.mean() < 0.25
        found = channels(path)
        before, after = small.frame(number), np.stack([found[name] for name in "RGB"], -1)
        assert np.abs(after.astype(float) - before)[inside].mean() > 0.02
    header = OpenEXR.File(str(path)).header()
    assert header["faceplate/engine"].startswith("blendswap_256")
    report = json.loads((tmp_path / "a" / "out.faceplate" / "job.json").read_text())
    used = {model["id"]: model for model in report["models"]}
    assert used["blendswap_256"]["commercial"] is False
    assert len(used["blendswap_256"]["sha256"]) == 64
    assert any("crops for the net" in text for text in report["notes"])
    # a part of the shot alone has the same bytes: what is settled is settled for the shot, and what is steadied looks
    # at the frames around it, in the range or not
    whole = outputs(tmp_path / "a")
    for part in ("1003", "1006"):
        assert cli(*words, "-o", tmp_path / part / "out.####.exr", "--frames", part).code == 0
        assert outputs(tmp_path / part) == {f"out.{part}.exr": whole[f"out.{part}.exr"]}
    again = cli(*words, "-o", tmp_path / "a" / "out.####.exr")
    assert again.event("done")["counts"] == {"kept": 6}


def test_paid_work_is_refused_with_the_licence(
    cli: Cli, models: Path, small_plate: str, identity: Path, tmp_path: Path
) -> None:
    ran = cli(
        "apply",
        small_plate,
        "--identity",
        identity,
        "-o",
        tmp_path / "o.####.exr",
        "--engine",
        "blendswap_256",
        "--commercial",
    )
    assert ran.code == 3
    assert "mapooon" in ran.err
    assert not list(tmp_path.glob("o.*"))


def test_what_is_wrong_with_an_engine_is_said_before_the_first_frame(
    cli: Cli, models: Path, small_plate: str, identity: Path, tmp_path: Path
) -> None:
    for engine, code, words in (
        ("blendswop_256", 2, "no engine is called"),
        ("inswapper_128", 3, "not on this machine"),
        ("face_mesh", 2, "does not begin with a swapper"),
        ("blendswap_256+face_mesh", 2, "no place after the swapper"),
        ("a b", 2, "no engine is called"),
    ):
        ran = cli("apply", small_plate, "--identity", identity, "-o", tmp_path / "o.####.exr", "--engine", engine)
        assert (ran.code, words in ran.err) == (code, True), (engine, ran.err)
    assert not list(tmp_path.glob("o.*"))


def test_an_identity_without_an_embedding_is_told_what_is_lacking(
    cli: Cli, models: Path, small_plate: str, identity: Path, tmp_path: Path
) -> None:
    file = tmp_path / "inswapper_128.onnx"
    file.write_bytes(swappers.inswapper(WIDTH))
    assert cli("models", "add", file, "--accept").code == 0
    ran = cli("apply", small_plate, "--identity", identity, "-o", tmp_path / "o.####.exr", "--engine", "inswapper_128")
    assert ran.code == 2
    assert "w600k_r50" in ran.err
