"""The operators in real Blenders, with a real server: scripts, the interface's events, colour."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import OpenEXR
import PyOpenColorIO as ocio
import pytest
from numpy.typing import NDArray

from faceplate.colour.spaces import DEFAULT_CONFIG
from faceplate_client import Place, __version__, find
from faceplate_client.errors import ClientError
from tests.contract.hosts.conftest import original  # noqa: F401 - a fixture
from tests.hosts.blender.conftest import Blender, at_the_ends
from tests.hosts.blender.test_host import read
from tests.integration.conftest import identity  # noqa: F401 - a fixture
from tests.integration.server.conftest import Running

Facts = dict[str, Any]


@pytest.fixture
def facts(original: str, identity: Path, server: Running, tmp_path: Path) -> Facts:  # noqa: F811
    """Arguments of the functions in `inside/acting.py`; a plate of their own, with a name that is no trouble."""
    plate = tmp_path / "plätes of 面"
    shutil.copytree(Path(original).parent, plate, ignore=shutil.ignore_patterns("*.json"))
    return {
        "plate": plate / Path(original).name,
        "server": server.place.folder,
        "identity": identity,
        "out": tmp_path / "résultats",
    }


def test_a_session_by_script(blender: Blender, facts: Facts) -> None:
    told = blender.run("acting", "scripted", **facts)
    assert "choose an identity file" in told["no identity"].lower()
    assert "never saved" in told["relative"]
    assert "select a result" in told["nothing to refresh"].lower()
    assert "faceplate serve" in told["no server"]
    assert told["check"].startswith(f"ready, {__version__} on ")
    assert "cpu" in told["check"].lower()
    assert told["faces"] == [[1001, 1008], True]  # one face, with a picture
    assert told["chosen"][0] == "NUMBER"
    keys, names, track = told["recipe"]
    assert names == ["strength"]  # what was not touched is the server's
    assert track == told["chosen"][1]
    assert keys[0] == [1, 1.0]
    assert keys[1] == [11, 1.0]
    assert 0.5 < keys[2][1] < 1.0  # eased in between, a key a frame
    assert Path(told["pattern"]).is_relative_to(facts["out"])
    assert told["muted"]
    assert told["differences"] == []
    assert "select a result" in told["nothing to remove"].lower()
    assert "no movie or image strip is selected" in told["nothing selected"]
    assert "no file for 1005" in told["missing"]  # never a strip that shows the plate in its place


def test_two_scenes_and_one_undo(blender: Blender, facts: Facts) -> None:
    told = blender.run("acting", "two_scenes", **facts)
    assert told == {"results": [1, 0], "other": [], "undone": []}


def test_the_interface_is_never_blocked(blender: Blender, facts: Facts) -> None:
    told = blender.run("acting", "modal", **facts)
    assert told["at once"][0][0] == "ERROR"
    assert "Esc" in told["at once"][0][1]
    result, reports, timers, status, free = told["stopped"]
    assert (result, timers, status, free) == (["CANCELLED"], 0, None, True)
    assert reports[-1][0] == "WARNING"
    assert "apply again to go on" in reports[-1][1]
    assert told["stopping"]
    assert told["stopping to the end"]
    assert told["after Esc"] == []
    assert 1 <= told["kept"] < 8
    assert told["kept files were not made again"]
    result, report, timers, status = told["done"]
    assert (result, report[0], timers, status) == (["FINISHED"], "INFO", 0, None)
    assert {"Faceplate: swap", "Faceplate: analyse"} & set(told["status"])
    assert 0 <= told["progress"][0] <= told["progress"][1] <= 1
    assert told["redraws"]
    assert told["results"] == [1, True]
    assert told["longest"] < 0.5  # a busy machine's worst; the clip is not baked, so nothing is rendered here
    assert told["closed"] == [True, 0, None]
    assert told["offer"] == ["No Faceplate server is running", "INVOKE_DEFAULT", "faceplate.find_faces", True]


@pytest.fixture
def nobody() -> Iterator[Path]:
    """A folder without a server; its path is short, as a socket's has to be."""
    with tempfile.TemporaryDirectory(prefix="fp-") as folder:
        Path(folder, "s").mkdir(mode=0o700)
        Path(folder, "s", "other").mkdir(mode=0o700)
        yield Path(folder, "s")
        with contextlib.suppress(ClientError):
            os.kill(find(Place(Path(folder, "s"))).pid, signal.SIGKILL)


def test_a_missing_server_is_started_when_asked(blender: Blender, facts: Facts, nobody: Path) -> None:
    at_the_ends(blender)
    program = Path(sys.executable).with_name("faceplate")
    told = blender.run("acting", "starts_a_server", **{**facts, "server": nobody}, program=program)
    assert "faceplate serve" in told["refused"]
    assert told["pid"] > 0
    assert "full path of the faceplate program" in told["no program"]


def rgb_matrix(source: str, target: str) -> NDArray[np.float64]:
    """3x3 from one linear space to another, by the server's own configuration."""
    processor = ocio.Config.CreateFromFile(DEFAULT_CONFIG).getProcessor(source, target).getDefaultCPUProcessor()
    return np.array([processor.applyRGB(list(unit)) for unit in np.eye(3)]).T


def channels(path: Path, *names: str) -> NDArray[np.float32]:
    with OpenEXR.File(str(path), separate_channels=True) as file:
        return np.stack([np.asarray(file.channels()[name].pixels, np.float32) for name in names], -1)


def test_blender_shows_the_values_of_the_files(blender: Blender, facts: Facts) -> None:
    told = blender.run("acting", "colours", **facts)
    assert len(told) == (6 if blender.number >= (5, 0) else 2)
    interop = {"Linear Rec.709": "lin_rec709_scene", "ACEScg": "lin_ap1_scene", "Linear Rec.2020": "lin_rec2020_scene"}
    for name, one in told.items():
        space, kind = name.rsplit(" ", 1)
        stored = space if kind == "baked" else "ACEScg"  # a bake is in the working space, a plate in its own
        assert one["spaces"] == [interop[stored], interop[stored], stored]
        shown, plain = read(Path(one["face"])), read(Path(one["plain"]))
        expected = channels(Path(one["file"]), "R", "G", "B") @ rgb_matrix(interop[stored], interop[space]).T
        # the matrices of Blender 4's own configuration are another chromatic adaptation's
        tolerance = 3e-4 if stored != space and blender.number < (5, 0) else 2e-5
        np.testing.assert_allclose(shown[..., :3], expected, rtol=tolerance, atol=tolerance / 10, err_msg=name)
        source, file = (channels(Path(one[what]), "R", "G", "B") for what in ("source", "file"))
        face = (source != file).any(axis=-1)
        assert 0.01 < face.mean() < 0.5
        np.testing.assert_array_equal(
            shown[~face], plain[~face]
        )  # outside the face the bits that Blender has of the plate
        assert np.abs(shown - plain)[face].max() > 0.01


def test_movie_strips(blender: Blender, facts: Facts, tmp_path: Path) -> None:
    """The server decodes the movie itself, with the frames that the strip shows."""
    path = tmp_path / "clip of 面 1.mov"
    codes = []
    for number in range(1, 9):
        linear = channels(Path(str(facts["plate"]).replace("####", f"{1000 + number}")), "R", "G", "B")
        encoded = np.clip(linear, 0, 1) ** (1 / 2.2) * 255
        encoded[:8, :8] = 20 * number  # the frame's number, where no face is
        codes.append(encoded.round().astype(np.uint8))
    with av.open(str(path), "w") as container:
        stream = container.add_stream("png", 24)
        stream.height, stream.width, _ = codes[0].shape
        stream.pix_fmt = "rgb24"
        for picture in codes:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
        container.mux(stream.encode())
    told = blender.run("acting", "movie", movie=path, **{name: facts[name] for name in ("server", "identity", "out")})
    assert told["clip"] == [23, "3-7", "1-8", "", "srgb_rec709_scene"]
    assert [name[-8:-4] for name in told["shown"]] == ["0003", "0004", "0005", "0006", "0007"]
    assert told["files"] == 7  # a handle at either end
    assert told["other rate"] == "24 frames a second in a scene of 48"
    assert told["differences"] == []
    for number, plain, face in zip(range(3, 8), told["plain"], told["face"], strict=True):
        before, after = read(Path(plain))[..., :3], read(Path(face))[..., :3]
        code = np.float32(20 * number / 255)
        linear = ((code + 0.055) / 1.055) ** 2.4
        np.testing.assert_allclose(after[:8, :8], linear, rtol=2e-3)  # the right frame, the same transfer curve
        np.testing.assert_allclose(before[:8, :8], linear, rtol=2e-2)  # Blender's own decoder: up to three codes
        assert np.abs(after - before).max() > 0.02  # a face in it
