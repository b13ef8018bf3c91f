"""Who is who, by a recogniser: nobody's face goes onto another person across a cut.

The recogniser is made by hand: it tells people apart by the colour of their crop. The two people of the plate are
NASA's astronaut, and the astronaut in other colours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest
import skimage.data
from numpy.typing import NDArray

from faceplate.identity.embed import references, spaces
from faceplate.identity.file import read_identity
from faceplate.media.read import read_image
from faceplate.models.random import restorers
from faceplate.models.random.graph import RandomGraph
from faceplate.models.runtimes.samples import difference, sample
from faceplate.models.sessions import SessionPool
from faceplate.models.store import ModelStore
from faceplate.models.user import add, look_at
from tests.integration.conftest import Cli, write_plain_exr
from tests.support.plates import moving_plate

TINT = np.array([0.55, 1.0, 1.5], np.float32)
PLATE = moving_plate(480, 300, 8, face_width_px=120, motion="cut")
CUT = 1005


def colour_recogniser() -> bytes:
    """512 numbers that turn with the balance of red and blue, and hardly with anything else."""
    graph = RandomGraph(0)
    mean = graph.reshape(graph.node("GlobalAveragePool", ["input.1"]), (3,))
    balance = graph.node("MatMul", [mean, graph.floats(np.array([[1.0, 0.3], [0.0, 0.3], [-1.0, 0.3]]))])
    steep = graph.node("Mul", [graph.add(balance, graph.floats([-0.05, 0.0])), graph.floats([8.0, 0.2])])
    spread = np.linalg.qr(np.random.default_rng(1).standard_normal((512, 2)))[0].T
    graph.node("MatMul", [graph.add(steep, graph.floats([0.0, 0.1])), graph.floats(spread)], "683")
    return graph.finish("colour", {"input.1": ("N", 3, 112, 112)}, {"683": ("N", 512)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The plate, photos of its two people, and the recogniser among the user's models."""
    folder = tmp_path_factory.mktemp("recognise")
    (folder / "w600k_r50.onnx").write_bytes(colour_recogniser())
    add(look_at(folder / "w600k_r50.onnx"), folder / "models", "a test")
    photo = np.asarray(skimage.data.astronaut(), np.float32) / 255  # type: ignore[no-untyped-call]
    for name, picture in (("jane", photo), ("joan", tinted(photo))):
        for number, part in enumerate((picture, picture[:400, 40:430]), 1):
            codes = np.rint(np.clip(part, 0, 1) * 255).astype(np.uint8)
            cv2.imwrite(str(folder / f"{name}_{number}.png"), codes[..., ::-1])
    (folder / "plate").mkdir()
    for number in PLATE.numbers:
        pixels = PLATE.frame(number)
        if number >= CUT:
            pixels = (pixels.astype(np.float32) * TINT).astype(np.float16)
        write_plain_exr(folder / "plate" / f"plate.{number}.exr", pixels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FACEPLATE_MODELS", str(folder / "models"))
        yield folder


def tinted(display: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray((np.clip(display, 0, 1) ** 2.2 * TINT).clip(0, 1) ** (1 / 2.2), np.float32)


@pytest.fixture
def people(folder: Path, cli: Cli, identity: Path) -> dict[str, Path]:
    """Identity files of the two in the plate, and of the person who is put in."""
    photos = {"jane": [folder / "jane_1.png", folder / "jane_2.png"], "joan": [folder / "joan_1.png"]}
    for name, files in photos.items():
        if not (folder / f"{name}.fpid").exists():
            assert cli("identity", "make", name, *files, "-o", folder / f"{name}.fpid").code == 0
    return {"new": identity, **{name: folder / f"{name}.fpid" for name in photos}}


def test_an_identity_holds_a_vector_a_photo_and_their_mean(people: dict[str, Path]) -> None:
    identity = read_identity(people["jane"]).identity
    assert spaces(identity) == ["w600k_r50"]
    found = references(identity, "w600k_r50")
    assert found is not None
    assert found.vectors.shape == (3, 512)
    np.testing.assert_allclose(np.linalg.norm(found.vectors, axis=1), 1.0, atol=1e-5)
    assert references(identity, "glintr100") is None


@pytest.mark.parametrize("who", ["jane", "joan"])
def test_only_the_person_that_was_meant_is_replaced_across_a_cut(
    folder: Path, people: dict[str, Path], cli: Cli, tmp_path: Path, who: str
) -> None:
    plate = folder / "plate" / "plate.####.exr"
    words = ["apply", plate, "-o", tmp_path / "out.####.exr", "--frames", "1003-1006", "--json"]
    # Both are looked for, so that each is nearer to itself than to the other; one gets a new face.
    other = {"jane": "joan", "joan": "jane"}[who]
    given = [f"{people['new']}@{people[who]}", f"{people[other]}@{people[other]}"]
    ran = cli(*words, "--identity", given[0], "--identity", given[1])
    assert ran.code == 0
    told = [event["text"] for event in ran.events if event["event"] in ("note", "warning")]
    assert any(f"is {who}: {who} " in text and "threshold 0.35" in text and "margin 0.10" in text for text in told)
    rows = [json.loads(line) for line in (tmp_path / "out.faceplate" / "manifest.jsonl").read_text().splitlines()]
    became = {row["frame"]: {face["identity"] for face in row["facts"]["faces"]} for row in rows if "facts" in row}
    before_cut, after_cut = ("person", other) if who == "jane" else (other, "person")
    assert became == {1003: {before_cut}, 1004: {before_cut}, 1005: {after_cut}, 1006: {after_cut}}


def test_a_stranger_in_the_plate_stays_as_she_is(
    folder: Path, people: dict[str, Path], cli: Cli, tmp_path: Path
) -> None:
    plate = folder / "plate" / "plate.####.exr"
    words = ["apply", plate, "-o", tmp_path / "out.####.exr", "--frames", "1004-1005", "--json"]
    ran = cli(*words, "--identity", f"{people['new']}@{people['joan']}")
    assert ran.code == 0
    told = [event["text"] for event in ran.events if event["event"] == "warning"]
    assert any("is nobody of this job" in text and "below the threshold" in text for text in told)
    for number, changed in ((1004, False), (1005, True)):
        before = read_image(folder / "plate" / f"plate.{number}.exr").pixels[..., :3]
        after = read_image(tmp_path / f"out.{number}.exr").pixels[..., :3]
        assert (before.view(np.uint16) != after.view(np.uint16)).any() == changed


def test_auto_without_a_recogniser_says_what_to_do(
    folder: Path, people: dict[str, Path], cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACEPLATE_MODELS", str(tmp_path / "none"))
    plate = folder / "plate" / "plate.####.exr"
    ran = cli("apply", plate, "--identity", f"{people['jane']}@auto", "-o", tmp_path / "o.####.exr")
    assert ran.code == 3
    assert "no recogniser is installed" in ran.err
    assert "faceplate models add" in ran.err


def test_a_commercial_job_refuses_a_recogniser_that_may_not_be_used(
    folder: Path, people: dict[str, Path], cli: Cli, tmp_path: Path
) -> None:
    plate = folder / "plate" / "plate.####.exr"
    ran = cli("apply", plate, "--identity", f"{people['jane']}@auto", "-o", tmp_path / "o.####.exr", "--commercial")
    assert ran.code == 3
    assert "forbids commercial work" in ran.err
    assert not list(tmp_path.glob("o.*.exr"))


def test_a_net_in_eight_bits_says_its_error(folder: Path, people: dict[str, Path], cli: Cli, tmp_path: Path) -> None:
    """Measured on the two people's photos; it carries the licence of what it was made of."""
    path = folder / "gpen_bfr_256.onnx"
    path.write_bytes(restorers.RESTORERS["gpen_bfr_256"](0.03))
    add(look_at(path), folder / "models", "a test")
    ran = cli("models", "quantise", "gpen_bfr_256", people["jane"], people["new"], "--json")
    assert ran.code == 0
    said = json.loads(ran.out.splitlines()[-1])
    assert said["id"] == "gpen_bfr_256_int8"
    store = ModelStore.of_user(folder / "models")
    card = store.card("gpen_bfr_256_int8")
    assert (card.licence, card.commercial) == (store.card("gpen_bfr_256").licence, False)
    with SessionPool(store, "cpu", threads=1) as pool:
        eight, whole = pool.get("gpen_bfr_256_int8"), pool.get("gpen_bfr_256")
        assert eight.precision == f"int8 ({said['error']})"
        inputs = sample(card)
        error = difference(eight.run(inputs), whole.run(inputs))
        assert 0 < error.rms < 0.3
    assert cli("models", "quantise", "gpen_bfr_256", people["joan"]).code == 3
