"""The main job end to end: what is in the written files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import OpenEXR
import pytest
from numpy.typing import NDArray

from faceplate.media.read import read_image
from tests.integration.conftest import Cli, outputs, write_plain_exr
from tests.support.exr import write_flat
from tests.support.plates import SyntheticPlate, moving_plate


def bits(pixels: NDArray[np.floating]) -> NDArray[np.unsignedinteger]:
    return np.ascontiguousarray(pixels).view(np.uint16 if pixels.dtype == np.float16 else np.uint32)


def channels(path: Path) -> dict[str, NDArray[np.generic]]:
    return {
        name: channel.pixels for name, channel in OpenEXR.File(str(path), separate_channels=True).channels().items()
    }


def assert_plate_outside(plate: SyntheticPlate, number: int, path: Path) -> NDArray[np.bool_]:
    """Every pixel where the written matte is 0 has the plate's bits; returns where it is not 0."""
    found = channels(path)
    outside = found["matte.A"] == 0
    rgb = np.stack([found[name] for name in "RGB"], -1)
    assert rgb.dtype == np.float16
    np.testing.assert_array_equal(bits(rgb)[outside], bits(plate.frame(number))[outside])
    return ~outside


def test_the_plate_outside_and_somebody_else_inside(
    cli: Cli, small: SyntheticPlate, small_plate: str, identity: Path, tmp_path: Path
) -> None:
    ran = cli("apply", small_plate, "--identity", identity, "-o", tmp_path / "out.####.exr", "--json")
    assert ran.code == 0
    assert ran.event("done")["counts"] == {"done": 6}
    for number in small.numbers:
        path = tmp_path / f"out.{number}.exr"
        inside = assert_plate_outside(small, number, path)
        found = channels(path)
        assert 0.02 < inside.mean() < 0.25
        before = small.frame(number).astype(np.float32)
        after = np.stack([found[name] for name in "RGB"], -1).astype(np.float32)
        change = np.abs(after - before)[inside].mean() / before[inside].mean()
        assert change > 0.05
        for name in "RGB":  # the element over the plate is the result
            np.testing.assert_allclose(
                found[f"face.{name}"].astype(np.float32)
                + (1 - found["matte.A"].astype(np.float32)) * before[..., "RGB".index(name)],
                after[..., "RGB".index(name)],
                atol=0.01,
            )
        assert {"face.A", "matte_core.A", "matte_occluder.A"} <= found.keys()


def test_the_header_says_what_it_is(cli: Cli, small_plate: str, identity: Path, tmp_path: Path) -> None:
    assert (
        cli("apply", small_plate, "--identity", identity, "-o", tmp_path / "o.####.exr", "--frames", "1002").code == 0
    )
    header = OpenEXR.File(str(tmp_path / "o.1002.exr")).header()
    assert header["faceplate/identity1/name"] == "person"
    assert header["faceplate/identity1/consent"] == "no consent record"
    assert header["faceplate/plateFrame"] == 1002
    assert header["faceplate/digitalSourceType"].endswith("compositeWithTrainedAlgorithmicMedia")
    assert header["timeCode"] is not None
    assert not list(tmp_path.glob("o.1001.exr"))


def test_hostile_values_survive(cli: Cli, small: SyntheticPlate, identity: Path, tmp_path: Path) -> None:
    plate = moving_plate(480, 300, 1, face_width_px=120, motion="static", overscan=16).with_hostile_values()
    pattern = plate.write(tmp_path / "plate")
    assert cli("apply", pattern, "--identity", identity, "-o", tmp_path / "out.####.exr").code == 0
    inside = assert_plate_outside(plate, 1001, tmp_path / "out.1001.exr")
    image = read_image(tmp_path / "out.1001.exr")
    assert (image.data_window, image.display_window) == (plate.data_window, plate.display_window)
    rgb = image.pixels[..., :3]
    full = channels(tmp_path / "out.1001.exr")["matte.A"] == 1
    assert np.isfinite(rgb[full]).all()
    for name, (row, column) in plate.hostile_pixels(1001).items():
        before, after = plate.frame(1001)[row, column], rgb[row, column]
        if not inside[row, column]:
            np.testing.assert_array_equal(bits(after), bits(before))
        elif np.isfinite(before).all() and before.max() > 50:
            assert after.max() > 0.25 * before.max(), name


def test_strength_0_is_the_plate(
    cli: Cli, small: SyntheticPlate, small_plate: str, identity: Path, tmp_path: Path
) -> None:
    words = ("apply", small_plate, "--identity", identity, "-o", tmp_path / "o.####.exr")
    assert cli(*words, "--set", "strength=1001:0,1002:0,1003:1").code == 0
    for number in (1001, 1002):
        rgb = read_image(tmp_path / f"o.{number}.exr").pixels[..., :3]
        np.testing.assert_array_equal(bits(rgb), bits(small.frame(number)))
    assert assert_plate_outside(small, 1003, tmp_path / "o.1003.exr").any()
    names = {tuple(channels(path)) for path in tmp_path.glob("o.*.exr")}
    assert len(names) == 1  # every layer on every frame


def test_a_static_plate_gives_a_static_result(cli: Cli, identity: Path, tmp_path: Path) -> None:
    plate = moving_plate(480, 300, 5, face_width_px=130, motion="static", grain=0)
    assert cli("apply", plate.write(tmp_path / "p"), "--identity", identity, "-o", tmp_path / "o.####.exr").code == 0
    stack = np.stack([read_image(path).pixels.astype(np.float64) for path in sorted(tmp_path.glob("o.*.exr"))])
    assert stack.var(axis=0).max() == 0


def test_a_frame_without_a_face_is_written_with_empty_layers(cli: Cli, identity: Path, tmp_path: Path) -> None:

    flat = np.full((240, 320, 3), 0.2, np.float16)
    write_plain_exr(tmp_path / "p.1001.exr", flat)
    write_plain_exr(tmp_path / "p.1002.exr", flat)
    ran = cli("apply", tmp_path / "p.####.exr", "--identity", identity, "-o", tmp_path / "o.####.exr", "--json")
    assert ran.code == 0
    assert ran.event("done")["counts"] == {"no face": 2}
    found = channels(tmp_path / "o.1001.exr")
    assert (found["matte.A"] == 0).all()
    assert "face.R" in found


def test_a_holdout_keeps_the_plate(
    cli: Cli, small: SyntheticPlate, small_plate: str, identity: Path, tmp_path: Path
) -> None:

    hold = np.zeros((300, 480, 3), np.float16)
    hold[:, :240] = 1
    write_plain_exr(tmp_path / "roto.exr", hold)
    words = ("apply", small_plate, "--identity", identity, "-o", tmp_path / "o.####.exr", "--frames", "1003")
    assert cli(*words, "--holdout", f"{tmp_path / 'roto.exr'}:R").code == 0
    rgb = read_image(tmp_path / "o.1003.exr").pixels[..., :3]
    np.testing.assert_array_equal(bits(rgb[:, :240]), bits(small.frame(1003)[:, :240]))
    assert assert_plate_outside(small, 1003, tmp_path / "o.1003.exr")[:, 240:].any()


def test_cryptomatte_and_st(cli: Cli, small_plate: str, identity: Path, tmp_path: Path) -> None:
    import cryptomatte_api

    words = ("apply", small_plate, "--identity", identity, "-o", tmp_path / "o.####.exr", "--frames", "1003")
    assert cli(*words, "--layers", "all").code == 0
    path = tmp_path / "o.1003.exr"
    found = channels(path)
    loaded = cryptomatte_api.Cryptomatte.load(str(path))
    decoded = loaded[0] if isinstance(loaded, list) else loaded
    mask = np.asarray(decoded.mask("person")).reshape(300, 480)
    np.testing.assert_allclose(mask, found["matte.A"].astype(np.float32), atol=1e-3)
    st = np.stack([found["st.R"], found["st.G"]], -1)
    assert st.dtype == np.float32
    inside = found["matte_core.A"] > 0.5
    assert (st[inside] > 0).all()
    assert (st[inside] < 1).all()
    rows = np.nonzero(inside)[0]
    assert (
        st[..., 1][rows.min() + 5][inside[rows.min() + 5]].mean()
        > st[..., 1][rows.max() - 5][inside[rows.max() - 5]].mean()
    )


def test_the_element_has_its_own_window(cli: Cli, small_plate: str, identity: Path, tmp_path: Path) -> None:
    words = ("apply", small_plate, "--identity", identity, "--frames", "1003")
    assert cli(*words, "-o", tmp_path / "full.####.exr").code == 0
    assert cli(*words, "-o", tmp_path / "face.####.exr", "--layers", "element,matte").code == 0
    full, element = read_image(tmp_path / "full.1003.exr"), read_image(tmp_path / "face.1003.exr")
    assert element.display_window == full.display_window
    assert element.data_window != full.data_window
    rim = np.ones(element.pixels.shape[:2], bool)
    rim[4:-4, 4:-4] = False
    assert (element.pixels[rim] == 0).all()
    whole = channels(tmp_path / "full.1003.exr")
    rows, columns = element.data_window.intersect(full.data_window).slices(full.data_window)
    inner = element.data_window.intersect(full.data_window).slices(element.data_window)
    np.testing.assert_array_equal(element.pixels[inner][..., 3], whole["matte.A"][rows, columns])
    np.testing.assert_array_equal(element.pixels[inner][..., 0], whole["face.R"][rows, columns])


@pytest.mark.parametrize("layers", ["alpha", "rgba,element"])
def test_wrong_layers_are_refused(layers: str, cli: Cli, small_plate: str, identity: Path, tmp_path: Path) -> None:
    ran = cli("apply", small_plate, "--identity", identity, "-o", tmp_path / "o.####.exr", "--layers", layers)
    assert ran.code == 2
    assert "hint:" in ran.err
    assert outputs(tmp_path) == {}


@pytest.mark.parametrize("suffix", ["png", "dpx", "tif"])
def test_other_formats_keep_their_codes_outside(
    suffix: str, cli: Cli, small: SyntheticPlate, identity: Path, tmp_path: Path
) -> None:
    import OpenImageIO as oiio

    light = np.clip(small.frame(1001).astype(np.float32), 0, 1) ** (1 / 2.2)
    codes = (light * 65535 + 0.5).astype(np.uint16)
    spec = oiio.ImageSpec(480, 300, 3, "uint16")
    out = oiio.ImageOutput.create(str(tmp_path / f"p.{suffix}"))
    out.open(str(tmp_path / f"p.{suffix}"), spec)
    out.write_image(codes)
    out.close()
    words = ("apply", tmp_path / f"p.{suffix}", "--identity", identity, "--input-space", "srgb_texture")
    assert cli(*words, "-o", tmp_path / f"o.{suffix}").code == 0
    assert cli(*words, "-o", tmp_path / "o.exr").code == 0
    matte = channels(tmp_path / "o.exr")["matte.A"]

    def read(path: Path) -> NDArray[np.uint16]:
        opened = oiio.ImageInput.open(str(path))
        pixels: NDArray[np.uint16] = opened.read_image("uint16")
        opened.close()
        return pixels

    before, after = read(tmp_path / f"p.{suffix}"), read(tmp_path / f"o.{suffix}")
    np.testing.assert_array_equal(after[matte == 0], before[matte == 0])
    assert (after[matte > 0.5] != before[matte > 0.5]).any(-1).mean() > 0.9


def test_the_report_is_there_and_can_be_made_again(cli: Cli, small_plate: str, identity: Path, tmp_path: Path) -> None:
    ran = cli("apply", small_plate, "--identity", identity, "-o", tmp_path / "o.####.exr", "--json")
    page = Path(ran.event("done")["report"])
    first = page.read_text("utf-8")
    assert "no consent record" in first
    assert "data:image/png;base64" in first
    page.unlink()
    ran = cli("report", tmp_path / "o.####.exr", "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["done"] == 6
    assert page.read_text("utf-8") == first


def test_a_plates_own_layers_are_kept_or_their_loss_is_told(
    cli: Cli, small: SyntheticPlate, identity: Path, tmp_path: Path
) -> None:
    (tmp_path / "plate").mkdir()
    for number in small.numbers[:2]:
        pixels = small.frame(number)
        own = {name: np.full(pixels.shape[:2], 0.25, np.float16) for name in ("matte.A", "st.R", "st.G", "depth.Z")}
        colour = {name: np.ascontiguousarray(pixels[..., index]) for index, name in enumerate("RGB")}
        write_flat(tmp_path / "plate" / f"p.{number}.exr", {**colour, **own})
    plate, out = tmp_path / "plate" / "p.####.exr", tmp_path / "out.####.exr"
    ran = cli("apply", plate, "--identity", identity, "-o", out, "--json")
    assert ran.code == 0
    told = [event["text"] for event in ran.events if event["event"] == "warning" and "own layer" in event["text"]]
    assert len(told) == 1
    assert "own layer matte is replaced" in told[0]
    assert "--layers" in told[0]
    assert told[0] in json.loads((tmp_path / "out.faceplate" / "job.json").read_text())["notes"]
    written = channels(tmp_path / f"out.{small.numbers[0]}.exr")
    assert (written["st.R"] == np.float16(0.25)).all()
    assert (written["depth.Z"] == np.float16(0.25)).all()
    assert written["matte.A"].max() == 1.0
    ran = cli("apply", plate, "--identity", identity, "-o", tmp_path / "kept.####.exr", "--layers", "rgba", "--json")
    assert ran.code == 0
    assert not [event for event in ran.events if "own layer" in event.get("text", "")]
    written = channels(tmp_path / f"kept.{small.numbers[0]}.exr")
    assert (written["matte.A"] == np.float16(0.25)).all()
