"""Jobs over the wire: the same bytes as the command line makes, from files and from shared memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faceplate.colour.decide import decide_space
from faceplate.colour.spaces import ColourConfig
from faceplate.media.read import read_image
from faceplate_client import FrameHeader, Place, wire
from faceplate_client.errors import ServerError
from faceplate_client.slot_header import FrameType
from faceplate_client.slots import as_array
from faceplate_server.remote import find_runner
from tests.integration.conftest import Cli, outputs
from tests.integration.server.conftest import Running
from tests.support.exr import write_flat
from tests.support.plates import SyntheticPlate

LINEAR = "ACEScg"


@pytest.fixture(scope="session")
def local(small_plate: str, identity: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command line makes of the small plate by itself, with a sidecar beside the plate."""
    from faceplate.cli.main import main

    folder = tmp_path_factory.mktemp("local")
    assert main(["analyse", small_plate, "--device", "cpu"]) == 0
    words = ["apply", small_plate, "--identity", str(identity), "-o", str(folder / "o.####.exr"), "--device", "cpu"]
    assert main(words) == 0
    return folder


def test_a_range_gives_the_command_lines_bytes(
    server: Running, local: Path, small_plate: str, identity: Path, tmp_path: Path
) -> None:
    with server.client() as client:
        job = client.submit_range(
            plate=small_plate,
            output=str(tmp_path / "o.####.exr"),
            frames=None,
            assignments=(wire.Assignment(str(identity)),),
        )
        events = list(client.events(job, 60))
    assert outputs(tmp_path) == outputs(local)
    assert isinstance(events[-1], wire.Done)
    assert dict(events[-1].counts) == {"done": 6}
    partial = [event for event in events if isinstance(event, wire.Partial)]
    assert sorted(event.frame for event in partial) == list(range(1001, 1007))
    assert all(isinstance(event.output, wire.FileRef) and Path(event.output.pattern).exists() for event in partial)
    progress = [event for event in events if isinstance(event, wire.Progress) and event.step == "swap"]
    assert [event.done for event in progress] == [1, 2, 3, 4, 5, 6]


def test_apply_on_the_server_equals_apply_here(
    cli: Cli, server: Running, local: Path, small_plate: str, identity: Path, tmp_path: Path
) -> None:
    words = ["apply", small_plate, "--identity", identity, "-o", tmp_path / "o.####.exr", "--json"]
    ran = cli(*words, "--server", server.address)
    assert ran.code == 0, ran.out
    assert outputs(tmp_path) == outputs(local)
    assert ran.event("done")["counts"] == {"done": 6}
    assert cli(*words, "--server", server.address).event("done")["counts"] == {"kept": 6}
    assert cli(*words, "--server", "off").event("done")["counts"] == {"kept": 6}


def test_auto_takes_a_server_that_gives_the_same_and_none_else(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OCIO", raising=False)
    monkeypatch.setattr("faceplate_server.remote.Place", lambda: server.place)
    assert find_runner("auto", "cpu") is not None
    assert find_runner("auto", "cuda") is None
    monkeypatch.setenv("OCIO", "ocio://default")
    assert find_runner("auto", "cpu") is None
    monkeypatch.delenv("OCIO")
    monkeypatch.setattr("faceplate_server.remote.__version__", "0.0.0")
    assert find_runner("auto", "cpu") is None


def test_auto_without_a_server_works_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("faceplate_server.remote.Place", lambda: Place(tmp_path / "none"))
    assert find_runner("auto", "cpu") is None


def test_apply_on_the_server_has_the_same_errors(cli: Cli, server: Running, identity: Path, tmp_path: Path) -> None:
    words = ["apply", tmp_path / "none.####.exr", "--identity", identity, "-o", tmp_path / "o.####.exr", "--json"]
    here, there = cli(*words), cli(*words, "--server", server.address)
    assert here.code == there.code == 2
    assert here.event("error") == there.event("error")


def test_apply_without_a_server_says_so(cli: Cli, small_plate: str, identity: Path, tmp_path: Path) -> None:
    words = ["apply", small_plate, "--identity", identity, "-o", tmp_path / "o.####.exr", "--json"]
    ran = cli(*words, "--server", f"ipc://{tmp_path}/nobody")
    assert ran.code == 3
    assert "does not answer" in ran.event("error")["message"]
    assert cli(*words, "--server", "somewhere").code == 2


def test_one_frame_from_files_into_a_file_is_the_batchs(
    server: Running, local: Path, small_plate: str, identity: Path, tmp_path: Path
) -> None:
    with server.client() as client:
        job = client.submit_frame(
            frame=1003,
            plate=wire.FileRef(small_plate, 1003),
            output=wire.FileRef(str(tmp_path / "o.####.exr"), 1003),
            assignments=(wire.Assignment(str(identity)),),
            layers=tuple(wire.LayerWanted(name) for name in ("face", "matte", "matte_core", "matte_occluder")),
        )
        end = client.result(job, 60)
    assert isinstance(end, wire.FrameResult)
    assert end.state == "done"
    assert end.facts["faces_from"] == "sidecar"
    assert (tmp_path / "o.1003.exr").read_bytes() == (local / "o.1003.exr").read_bytes()


@pytest.mark.parametrize("bottom_up", [False, True])
def test_one_frame_through_slots_is_the_batchs(
    server: Running, local: Path, small_plate: str, identity: Path, bottom_up: bool
) -> None:
    image = read_image(Path(small_plate.replace("####", "1004")), 1004)
    batch = read_image(local / "o.1004.exr")
    space = ColourConfig.open().scene_linear
    height, width, count = image.pixels.shape
    kind = FrameType.HALF if image.pixels.dtype == np.float16 else FrameType.FLOAT
    header = FrameHeader(width, height, ("R", "G", "B", "A")[:count], kind, space, bottom_up=bottom_up, frame=1004)
    with server.client() as client, server.ring(4, header.nbytes) as ring:
        plate = ring.put(header, np.ascontiguousarray(image.pixels[::-1] if bottom_up else image.pixels))
        room, matte = ring.offer(ring.acquire()), ring.offer(ring.acquire())
        job = client.submit_frame(
            frame=1004,
            plate=plate,
            output=room,
            assignments=(wire.Assignment(str(identity)),),
            source=small_plate,
            layers=(wire.LayerWanted("matte", matte),),
        )
        end = client.result(job, 60)
        assert isinstance(end, wire.FrameResult)
        assert end.facts["faces_from"] == "sidecar"
        assert end.layers == (wire.LayerMade("matte", matte),)
        made, pixels = ring.result(room)
        assert made == header
        got = np.array(as_array(made, pixels))
        layer, plane = ring.result(matte)
        assert layer is not None
        assert layer.channels == ("A",)
        got_matte = np.array(as_array(layer, plane))[..., 0]
        assert ring.result(plate)[0] is None
    assert got.tobytes() == batch.pixels[..., :count].tobytes()
    changed = (got != image.pixels).any(-1)
    assert changed.any()
    assert not changed[got_matte == 0].any()


def test_a_frame_alone_says_so_and_goes_back_into_its_own_slot(
    server: Running, small: SyntheticPlate, identity: Path
) -> None:
    pixels = np.ascontiguousarray(small.frame(1003), np.float32)
    height, width, count = pixels.shape
    header = FrameHeader(width, height, ("R", "G", "B", "A")[:count], colour_space=LINEAR, frame=7)
    with server.client() as client, server.ring(1, header.nbytes) as ring:
        plate = ring.put(header, pixels)
        job = client.submit_frame(frame=7, plate=plate, assignments=(wire.Assignment(str(identity)),))
        end = client.result(job, 60)
        assert isinstance(end, wire.FrameResult)
        assert end.output == plate
        assert end.facts["faces_from"] == "frame alone"
        assert end.facts["faces"][0]["identity"] == "person"
        made, memory = ring.result(plate)
        assert made is not None
        got = np.array(as_array(made, memory))
    changed = (got != pixels).any(-1)
    assert 0 < changed.sum() < changed.size / 2
    assert set(end.timings_ms) == {"read", "faces", "swap", "write", "total"}


def test_a_slot_into_a_file_has_the_slots_pixels(
    server: Running, small: SyntheticPlate, identity: Path, tmp_path: Path
) -> None:
    pixels = np.ascontiguousarray(small.frame(1003), np.float32)
    header = FrameHeader(pixels.shape[1], pixels.shape[0], ("R", "G", "B"), colour_space=LINEAR)
    person = (wire.Assignment(str(identity)),)
    file = wire.FileRef(str(tmp_path / "o.exr"))
    with server.client() as client, server.ring(1, header.nbytes) as ring:
        plate = ring.put(header, pixels)
        layers = (wire.LayerWanted("matte"),)
        client.result(client.submit_frame(frame=1, plate=plate, output=file, assignments=person, layers=layers), 60)
        assert ring.result(plate)[0] is None
        ring.release(plate.slot)
        plate = ring.put(header, pixels)
        client.result(client.submit_frame(frame=1, plate=plate, assignments=person), 60)
        got = np.array(as_array(header, ring.result(plate)[1]))
    image = read_image(tmp_path / "o.exr")
    assert image.pixels[..., :3].tobytes() == got.tobytes()
    assert (got != pixels).any()


@pytest.mark.parametrize(("space", "written"), [("lin_rec709_scene", "Linear Rec.709 (sRGB)"), ("V-Log V-Gamut", None)])
def test_a_slot_of_any_space_becomes_a_file_that_says_its_own(
    server: Running, small: SyntheticPlate, identity: Path, tmp_path: Path, space: str, written: str | None
) -> None:
    config = ColourConfig.open()
    written = written or config.linear_twin(space)
    pixels = config.transform(LINEAR, space).numpy(small.frame(1003)[..., :3])
    header = FrameHeader(pixels.shape[1], pixels.shape[0], ("R", "G", "B"), colour_space=space)
    person = (wire.Assignment(str(identity)),)
    with server.client() as client, server.ring(1, header.nbytes) as ring:
        job = client.submit_frame(
            frame=1, plate=ring.put(header, pixels), output=wire.FileRef(str(tmp_path / "o.exr")), assignments=person
        )
        end = client.result(job, 60)
    assert isinstance(end, wire.FrameResult)
    assert end.facts["file_space"] == written
    image = read_image(tmp_path / "o.exr")
    decision = decide_space(config, image, None)
    assert (decision.space, decision.source) == (written, "file tag")
    back = config.transform(decision.space, LINEAR).numpy(image.pixels[..., :3])
    same = np.isclose(back, small.frame(1003)[..., :3], atol=2e-3).all(-1)
    assert 0.5 < same.mean() < 1  # the plate itself, but for the face


def test_a_holdout_in_a_slot_holds_like_the_file(
    server: Running, small: SyntheticPlate, identity: Path, tmp_path: Path
) -> None:
    pixels = np.ascontiguousarray(small.frame(1003)[..., :3], np.float32)
    height, width, _ = pixels.shape
    matte = np.zeros((height, width), np.float32)
    matte[:, width // 2 :] = 1.0
    write_flat(tmp_path / "hold.exr", {"A": matte})
    header = FrameHeader(width, height, ("R", "G", "B"), colour_space=LINEAR)
    person = (wire.Assignment(str(identity)),)
    with server.client() as client, server.ring(2, header.nbytes) as ring:

        def result(holdout: wire.HoldOut | None) -> Any:
            plate = ring.put(header, pixels)
            client.result(client.submit_frame(frame=1, plate=plate, assignments=person, holdout=holdout), 60)
            made = np.array(as_array(header, ring.result(plate)[1]))
            ring.release(plate.slot)
            return made

        free = result(None)
        held = FrameHeader(width, height, ("A",), colour_space="", bottom_up=True)
        slot = ring.put(held, np.ascontiguousarray(matte[::-1]))
        by_slot = result(wire.HoldOut(slot))
        assert ring.result(slot)[0] is None
        ring.release(slot.slot)
        by_file = result(wire.HoldOut(wire.FileRef(str(tmp_path / "hold.exr"))))
        smaller = FrameHeader(width // 2, height, ("A",), colour_space="")
        slot = ring.put(smaller, matte[:, : width // 2].copy())
        with pytest.raises(ServerError) as caught:
            result(wire.HoldOut(slot))
        assert caught.value.type == "FrameMismatchError"
    assert by_slot.tobytes() == by_file.tobytes()
    assert (by_slot[:, width // 2 :] == pixels[:, width // 2 :]).all()
    assert (free[:, width // 2 :] != pixels[:, width // 2 :]).any()
    assert (by_slot[:, : width // 2] == free[:, : width // 2]).all()


def test_an_encoded_slot_keeps_every_bit_outside_the_matte(
    server: Running, small: SyntheticPlate, identity: Path
) -> None:
    config = ColourConfig.open()
    linear = np.ascontiguousarray(small.frame(1003)[..., :3], np.float32)
    pixels = config.transform(LINEAR, "srgb_rec709_scene").numpy(linear)
    height, width, _ = pixels.shape
    header = FrameHeader(width, height, ("R", "G", "B"), colour_space="srgb_rec709_scene")
    with server.client() as client, server.ring(2, header.nbytes) as ring:
        plate = ring.put(header, pixels)
        matte = ring.offer(ring.acquire())
        job = client.submit_frame(
            frame=1,
            plate=plate,
            assignments=(wire.Assignment(str(identity)),),
            layers=(wire.LayerWanted("matte", matte),),
        )
        client.result(job, 60)
        got = np.array(as_array(header, ring.result(plate)[1]))
        layer, plane = ring.result(matte)
        assert layer is not None
        inside = np.array(as_array(layer, plane))[..., 0] > 0
    assert (got[~inside] == pixels[~inside]).all()
    assert np.abs(got[inside] - pixels[inside]).max() > 0.02
    twin = config.linear_twin("srgb_rec709_scene")
    expected = config.transform(twin, "srgb_rec709_scene").numpy(_swapped(server, config, pixels, identity, twin))
    np.testing.assert_allclose(got, expected, atol=2e-3)


def _swapped(server: Running, config: ColourConfig, encoded: Any, identity: Path, twin: str) -> Any:
    """The same picture sent in the linear space of the same primaries."""
    pixels = config.transform("srgb_rec709_scene", twin).numpy(encoded)
    header = FrameHeader(pixels.shape[1], pixels.shape[0], ("R", "G", "B"), colour_space=twin)
    with server.client() as client, server.ring(1, header.nbytes) as ring:
        plate = ring.put(header, pixels)
        client.result(client.submit_frame(frame=1, plate=plate, assignments=(wire.Assignment(str(identity)),)), 60)
        return np.array(as_array(header, ring.result(plate)[1]))


def test_analyse_writes_the_command_lines_sidecar(cli: Cli, server: Running, small_plate: str, tmp_path: Path) -> None:
    here, there = tmp_path / "here.faces.json", tmp_path / "there.faces.json"
    assert cli("analyse", small_plate, "-o", here, "--device", "cpu").code == 0
    with server.client() as client:
        end = client.result(client.analyse(plate=small_plate, sidecar=str(there)), 60)
    assert isinstance(end, wire.Done)
    assert end.sidecar == str(there)
    assert there.read_bytes() == here.read_bytes()


@pytest.mark.parametrize(
    ("changes", "code", "kind"),
    [
        ({"engine": "none"}, "input", "SettingError"),
        ({"assignments": ()}, "input", "SettingError"),
        ({"settings": {"strenght": ((1, 1.0),)}}, "input", "SettingError"),
        ({"layers": (wire.LayerWanted("matte"),)}, "input", "Refused"),
        ({"assignments": (wire.Assignment("/nowhere/x.fpid"),)}, "input", "IdentityError"),
        ({"input_space": "no space"}, "input", "ColourSpaceError"),
        ({"faces": "/nowhere/x.faces.json"}, "input", "SidecarError"),
    ],
)
def test_bad_requests_are_answered_typed_and_the_slot_comes_back(
    server: Running, identity: Path, changes: dict[str, object], code: str, kind: str
) -> None:
    header = FrameHeader(64, 48, colour_space=LINEAR)
    with server.client() as client, server.ring(1, header.nbytes) as ring:
        plate = ring.put(header, bytes(header.nbytes))
        options: dict[str, object] = {"assignments": (wire.Assignment(str(identity)),), **changes}
        job = client.submit_frame(frame=1, plate=plate, **options)  # type: ignore[arg-type]
        with pytest.raises(ServerError) as caught:
            client.result(job, 30)
        assert (caught.value.code, caught.value.type) == (code, kind)
        ring.reclaim(plate.slot)
        assert ring.acquire() == plate.slot
        assert client.ping().ready
