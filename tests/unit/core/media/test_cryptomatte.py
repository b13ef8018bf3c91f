"""Cryptomatte: an independent decoder gives back the mattes that were put in."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import cryptomatte_api
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faceplate.frame import Box
from faceplate.media.cryptomatte import cryptomatte_id, cryptomatte_layers
from faceplate.media.exr import ExrLayer, read_exr, write_exr

WINDOW = Box(-4, -2, 60, 38)


def discs(*centres: tuple[float, float]) -> list[np.ndarray]:
    """Soft discs as full mattes, radius 9 px, edge 4 px."""
    y, x = np.mgrid[0 : WINDOW.height, 0 : WINDOW.width]
    return [np.clip((11 - np.hypot(x - cx, y - cy)) / 4, 0, 1).astype(np.float32) for cx, cy in centres]


def decoded(layers: list[ExrLayer], name: str) -> np.ndarray:
    """Coverage of a name by the rule of the specification: sum over the ranks with its id."""
    wanted = np.uint32(cryptomatte_id(name))
    total = np.zeros(layers[0].channels["R"].shape, np.float32)
    for layer in layers:
        for ids, coverage in (("R", "G"), ("B", "A")):
            total += np.where(layer.channels[ids].view(np.uint32) == wanted, layer.channels[coverage], 0)
    return total


def test_a_decoder_of_others_finds_names_and_mattes(tmp_path: Path) -> None:
    left, right = discs((15, 20), (45, 20))
    layers, attributes = cryptomatte_layers("FaceCrypto", {"jane": left, "jürgen": right}, WINDOW)
    path = tmp_path / "x.exr"
    write_exr(path, np.zeros((*left.shape, 3), np.float16), layers=layers, attributes=attributes, data_window=WINDOW)
    (matte,) = cryptomatte_api.Cryptomatte.load(str(path))
    assert set(matte.masks()) == {"jane", "jürgen"}
    assert np.array_equal(np.asarray(matte.mask("jane")).reshape(left.shape), left)
    assert np.array_equal(np.asarray(matte.mask("jürgen")).reshape(left.shape), right)


def test_header_and_layers_follow_the_specification() -> None:
    layers, attributes = cryptomatte_layers("FaceCrypto", {"jane": discs((15, 20))[0]}, WINDOW)
    assert [layer.name for layer in layers] == ["FaceCrypto00", "FaceCrypto01", "FaceCrypto02"]
    assert {plane.dtype for layer in layers for plane in layer.channels.values()} == {np.dtype(np.float32)}
    keys = {name.rpartition("/")[0] for name in attributes}
    (key,) = keys
    assert len(key.removeprefix("cryptomatte/")) == 7
    assert attributes[f"{key}/hash"] == "MurmurHash3_32"
    assert attributes[f"{key}/conversion"] == "uint32_to_float32"
    assert json.loads(attributes[f"{key}/manifest"]) == {"jane": f"{cryptomatte_id('jane'):08x}"}


@given(st.text(max_size=30))
def test_ids_are_ordinary_floats(name: str) -> None:
    (value,) = struct.unpack("<f", struct.pack("<I", cryptomatte_id(name)))
    assert np.isfinite(value)
    assert abs(value) >= np.finfo(np.float32).tiny


def test_ids_match_the_published_ones() -> None:
    # Sample manifest of the specification's repository (Psyop), and MurmurHash3_32("") = 0, which is guarded.
    assert f"{cryptomatte_id('default'):08x}" == "42c9679f"
    assert cryptomatte_id("") == 1 << 23


def test_overlaps_are_shared_out_and_ranked() -> None:
    mattes = dict(zip("abc", discs((20, 20), (26, 20), (23, 24)), strict=True))
    layers, _ = cryptomatte_layers("C", mattes, WINDOW)
    total = np.sum(list(mattes.values()), axis=0)
    for name, matte in mattes.items():
        np.testing.assert_allclose(decoded(layers, name), matte / np.maximum(total, 1), rtol=1e-6, atol=1e-7)
    ranks = np.stack([layer.channels[c] for layer in layers for c in "GA"])
    ids = np.stack([layer.channels[c] for layer in layers for c in "RB"])
    assert (np.diff(ranks, axis=0) <= 0).all()
    assert ranks.sum(axis=0).max() <= 1 + 1e-6
    assert ((ids != 0) == (ranks > 0)).all()


def test_windows_give_what_full_mattes_give() -> None:
    full = dict(zip("ab", discs((20, 20), (30, 22)), strict=True))
    y0, y1, x0, x1 = 5, 36, 5, 45
    window = Box(WINDOW.x0 + x0, WINDOW.y0 + y0, WINDOW.x0 + x1, WINDOW.y0 + y1)
    cut = {name: (window, np.ascontiguousarray(matte[y0:y1, x0:x1])) for name, matte in full.items()}
    for ours, expected in zip(
        cryptomatte_layers("C", cut, WINDOW)[0], cryptomatte_layers("C", full, WINDOW)[0], strict=True
    ):
        assert {c: p.tobytes() for c, p in ours.channels.items()} == {
            c: p.tobytes() for c, p in expected.channels.items()
        }


def test_mattes_outside_the_data_window_nan_and_absent_ones() -> None:
    beyond = Box(WINDOW.x1 - 3, WINDOW.y0 - 5, WINDOW.x1 + 7, WINDOW.y0 + 5)
    bad = np.full((40, 64), np.nan, np.float32)
    mattes = {
        "out": (Box(500, 500, 510, 510), np.ones((10, 10), np.float32)),
        "edge": (beyond, np.full((10, 10), 7, np.float32)),
        "nan": bad,
        "none": np.zeros((40, 64), np.float32),
        "empty": (Box(0, 0, 0, 0), np.zeros((0, 0), np.float32)),
    }
    layers, attributes = cryptomatte_layers("C", mattes, WINDOW)
    expected = np.zeros((40, 64), np.float32)
    expected[:5, -3:] = 1
    assert (decoded(layers, "edge") == expected).all()
    assert not any(decoded(layers, name).any() for name in ("out", "nan", "none", "empty"))
    assert layers[2].channels["R"] is layers[1].channels["A"]
    manifest = next(value for name, value in attributes.items() if name.endswith("manifest"))
    assert set(json.loads(manifest)) == set(mattes)


def test_more_mattes_than_ranks_keep_the_largest() -> None:
    mattes = {str(i): np.full((2, 2), (i + 1) / 10, np.float32) for i in range(3)}
    layers, _ = cryptomatte_layers("C", mattes, ranks=2)
    assert len(layers) == 1
    assert decoded(layers, "2")[0, 0] == np.float32(0.3)
    assert decoded(layers, "1")[0, 0] == np.float32(0.2)
    assert not decoded(layers, "0").any()


def test_bit_patterns_survive_the_file(tmp_path: Path) -> None:
    layers, attributes = cryptomatte_layers("C", {"a": discs((20, 20))[0]})
    write_exr(tmp_path / "a.exr", np.zeros((40, 64, 3), np.float16), layers=layers, attributes=attributes)
    image = read_exr(tmp_path / "a.exr")
    write_exr(tmp_path / "b.exr", image.pixels, image=image)
    for path in ("a.exr", "b.exr"):
        (matte,) = cryptomatte_api.Cryptomatte.load(str(tmp_path / path))
        assert np.array_equal(np.asarray(matte.mask("a")).reshape(40, 64), discs((20, 20))[0])


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(ValueError, match="even"):
        cryptomatte_layers("C", {}, WINDOW, ranks=3)
    with pytest.raises(ValueError, match="fill"):
        cryptomatte_layers("C", {"a": (Box(0, 0, 4, 4), np.zeros((4, 5), np.float32))}, WINDOW)
    with pytest.raises(ValueError, match="data window"):
        cryptomatte_layers("C", {})
