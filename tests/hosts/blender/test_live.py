"""The live effect in the compositor of real Blenders, from pixels to pixels, compared value by value."""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import OpenEXR
from numpy.typing import NDArray

from tests.hosts.blender.conftest import Blender, at_the_ends
from tests.hosts.blender.test_host import plate, plates, read  # noqa: F401 - fixture
from tests.integration.server.conftest import Running, running, start_server, wait_ready
from tests.support.exr import write_flat


def rendered(folder: Path, frame: int) -> NDArray[np.float32]:
    return read(folder / f"out.{frame:04d}.exr")


def shown(folder: Path, frames: int) -> list[int]:
    """Which plate each rendered frame shows, by the number in its red."""
    return [round(float(rendered(folder, frame)[5, 5, 0]) * 1000) for frame in range(1, frames + 1)]


def is_slate(pixels: NDArray[np.float32]) -> bool:
    """Magenta and black stripes, nothing else."""
    colours = {tuple(colour) for colour in np.unique(pixels[..., :3].reshape(-1, 3), axis=0).tolist()}
    return len(colours) == 2 and (0.0, 0.0, 0.0) in colours and all(g == 0.0 for _, g, _ in colours)


def test_frames_are_exact(blender: Blender, plates: Path, server: Running, tmp_path: Path) -> None:  # noqa: F811
    told = blender.run("live", "exact", plates=plates, server=server.place.folder, out=tmp_path)
    assert told["failed"] == []
    for frame in range(3, 9):  # held at the end, as the plate is
        np.testing.assert_array_equal(rendered(tmp_path, frame), plate(min(1004 + frame - 2, 1008)))
    np.testing.assert_array_equal(rendered(tmp_path, 2), plate(1004))  # and before the start, Blender's own way
    assert set(told["ms"]) == {"host in", "server", "transport", "host out"}


def test_plates_without_a_file(blender: Blender, server: Running, tmp_path: Path) -> None:
    told = blender.run("live", "painted", server=server.place.folder, out=tmp_path)
    assert told["failed"] == []
    expected = np.array(told["pixels"], np.float32).reshape(16, 32, 4)[::-1]
    assert expected[..., :3].min() == -0.5
    assert expected.max() > 1000
    np.testing.assert_array_equal(rendered(tmp_path, 2), expected)


def test_off_is_the_plate(blender: Blender, plates: Path, server: Running, tmp_path: Path) -> None:  # noqa: F811
    blender.run("live", "off", plates=plates, server=server.place.folder, out=tmp_path)
    np.testing.assert_array_equal(rendered(tmp_path, 2), plate(1002))


def test_a_server_that_dies_costs_its_frames(blender: Blender, plates: Path, tmp_path: Path) -> None:  # noqa: F811
    at_the_ends(blender)
    ready = tmp_path / "ready"
    with running() as server:
        replaced: list[Running] = []

        def replace() -> None:
            while not ready.with_suffix(".asked").exists():
                time.sleep(0.05)
            server.process.wait()
            replaced.append(wait_ready(start_server(server.place.folder)))
            ready.touch()

        worker = threading.Thread(target=replace, daemon=True)
        worker.start()
        try:
            told = blender.run(
                "live",
                "restart",
                plates=plates,
                server=server.place.folder,
                out=tmp_path,
                pid=server.process.pid,
                ready=ready,
            )
        finally:
            for one in replaced:
                one.kill()
    assert list(told["failed"]) == ["3", "4"]
    assert all(told["failed"].values())
    assert [is_slate(rendered(tmp_path, frame)) for frame in range(1, 7)] == [False, False, True, True, False, False]
    for frame in (1, 2, 5, 6):
        np.testing.assert_array_equal(rendered(tmp_path, frame), plate(1000 + frame))


def test_what_cannot_be_is_said_and_shown(blender: Blender, plates: Path, server: Running, tmp_path: Path) -> None:  # noqa: F811
    told = blender.run("live", "refused", plates=plates, server=server.place.folder, out=tmp_path)
    assert "has no plate" in told[0]
    assert "Blur" in told[1]
    assert "frame 5001" in told[2]
    assert told[3] == "{}"
    assert "found its output 'Alpha'" in told[4]
    assert "has no plate" in told[5]
    assert "is stereo" in told[6]
    assert "has lost its node" in told[7]


def test_copies_of_a_group(blender: Blender, plates: Path, server: Running, tmp_path: Path) -> None:  # noqa: F811
    told = blender.run("live", "copies", plates=plates, server=server.place.folder, out=tmp_path)
    assert "are one group with two plates" in told["shared"][0]
    assert is_slate(rendered(tmp_path / "shared", 1))
    assert told["first"] == told["copy"] == told["renamed"] == []
    for name, first in (("first", 1000), ("copy", 1004), ("renamed", 1004)):
        for frame in (1, 2):
            np.testing.assert_array_equal(rendered(tmp_path / name, frame), plate(first + frame))
    assert told["groups"] == ["Anders ö", "Faceplate"]
    first, last = 1002, 1000 + len(list(plates.iterdir()))  # the scene begins at 0, the clip is offset by 2
    assert told["clip"] == [f"{first}-{last}", str(last), True]


def test_a_processed_range(blender: Blender, plates: Path, server: Running, tmp_path: Path) -> None:  # noqa: F811
    results, out = tmp_path / "results é", tmp_path / "out"
    results.mkdir()
    for number in range(1003, 1007):
        pixels = plate(number)
        pixels[..., 0] = number / 1000 + 1
        pixels[..., 1] = pixels[..., 2] = pixels[..., 0]  # grey is the same in every space
        write_flat(results / f"r.{number}.exr", {"RGBA": pixels})
    told: dict[str, Any] = blender.run(
        "live", "files", plates=plates, results=results, server=server.place.folder, out=out
    )
    assert told["clip"] == [2, "1003-1006", str(plates / "pl ä.####.exr"), "lin_rec709_scene"]
    assert told["placed"] == [True, "2-5", str(results / "r.####.exr")]
    assert shown(out, 6)[1:5] == [2003, 2004, 2005, 2006]
    assert told["results"] == 1
    assert told["after"] == [0, False]


def test_as_an_artist(blender: Blender, plates: Path, identity: Path, server: Running, tmp_path: Path) -> None:  # noqa: F811
    """Plates without a face: each way gives the plate back, and says that it looked."""
    told = blender.run(
        "live", "artist", plates=plates, server=server.place.folder, identity=identity, out=tmp_path, timeout=240
    )
    assert told["wired"] == [True, True]
    assert told["live"] == [False, []]
    assert told["images made while rendering"] == 0
    assert told["files"] == [True, []]
    assert told["again"] == [False, []]
    assert told["outputs live"] == told["outputs again"] == ["Image"]
    assert told["outputs files"] == ["Image", "face", "matte", "matte_core", "matte_occluder"]
    assert told["settings"] == {"strength": [[1, 0.0], [3, 0.0]]}
    for name in ("live", "files", "again"):
        for frame in (1, 2, 3):
            np.testing.assert_array_equal(rendered(tmp_path / name, frame), plate(1000 + frame))


def test_a_face_live_is_the_face_of_a_batch(
    blender: Blender,
    shot: dict[str, Path],
    server: Running,
    tmp_path: Path,
) -> None:
    told = blender.run(
        "live",
        "swapped",
        plates=shot["plates"],
        server=server.place.folder,
        identity=shot["identity"],
        out=tmp_path,
        timeout=240,
    )
    assert told["failed"] == []
    assert told["faces"] == [1]
    assert "sidecar" in told["from"]
    for frame, result in enumerate(sorted(shot["results"].glob("r.*.exr")), start=1):
        with OpenEXR.File(str(result)) as opened:
            expected = np.asarray(opened.channels()["RGB"].pixels)
        # a batch's file is half, as the plate is; live pixels are float
        np.testing.assert_array_equal(rendered(tmp_path, frame)[..., :3].astype(np.float16), expected)


def ended(blender: Blender, function: str, plates: Path, out: Path) -> subprocess.CompletedProcess[str]:  # noqa: F811
    """A process that a function of `inside/live.py` ends."""
    folders = [str(Path(__file__).parent / "inside"), str(Path(__file__).parents[3] / "host_plugins")]
    code = f"import sys; sys.path[:0] = {folders!r}; import live; live.{function}({str(plates)!r}, {str(out)!r})"
    return subprocess.run([blender.python, "-c", code], capture_output=True, text=True, timeout=120, cwd=out)


def test_the_exit_code_says_that_frames_failed(blender: Blender, plates: Path, tmp_path: Path) -> None:  # noqa: F811
    """As in `blender -b FILE -a`, by Python's own end, which ends Blender with handlers in place."""
    done = ended(blender, "exit_code", plates, tmp_path)
    assert done.returncode == 1, done.stderr
    assert "shows a slate in frames 1, 2" in done.stderr
    assert "hint:" in done.stderr
    assert is_slate(rendered(tmp_path, 2))


def test_an_add_on_without_preferences_says_it_too(blender: Blender, plates: Path, tmp_path: Path) -> None:  # noqa: F811
    at_the_ends(blender)
    done = ended(blender, "without_preferences", plates, tmp_path)
    assert "frame 1: no identity is chosen" in done.stderr
    assert "frame 2: Faceplate failed; found RuntimeError: broken" in done.stderr
    assert "shows a slate in frames 2" in done.stderr  # the first one went with its connection
    assert done.returncode == 1
    assert is_slate(rendered(tmp_path, 1))
