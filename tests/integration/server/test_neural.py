"""A user's swapper on a server: the command line's bytes, frame by frame and for a range."""

from __future__ import annotations

from pathlib import Path

import pytest

from faceplate_client import wire
from tests.integration.conftest import Cli, outputs
from tests.integration.server.conftest import running
from tests.integration.test_neural import ENGINE, add_nets


def test_a_server_gives_the_command_lines_bytes(
    cli: Cli, small_plate: str, identity: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACEPLATE_MODELS", str(tmp_path / "models"))
    add_nets(cli, tmp_path)
    assert cli("analyse", small_plate).code == 0
    words = (
        "apply",
        small_plate,
        "--identity",
        identity,
        "--engine",
        ENGINE,
        "--frames",
        "1002-1003",
        "--device",
        "cpu",
    )
    assert cli(*words, "-o", tmp_path / "here" / "o.####.exr").code == 0
    here = outputs(tmp_path / "here")
    (tmp_path / "one").mkdir()
    with running() as server:
        assert cli(*words, "-o", tmp_path / "there" / "o.####.exr", "--server", server.address).code == 0
        assert outputs(tmp_path / "there") == here
        with server.client() as client:
            assert ENGINE.split("+")[0] in client.welcome.engines
            job = client.submit_frame(
                frame=1003,
                plate=wire.FileRef(small_plate, 1003),
                output=wire.FileRef(str(tmp_path / "one" / "o.####.exr"), 1003),
                assignments=(wire.Assignment(str(identity)),),
                layers=tuple(wire.LayerWanted(name) for name in ("face", "matte", "matte_core", "matte_occluder")),
                engine=ENGINE,
            )
            end = client.result(job, 120)
    assert isinstance(end, wire.FrameResult), end
    assert end.facts["faces"][0]["solved_over"] == 3.0
    assert end.facts["faces"][0]["matte_over_time"] == 1.0
    assert (tmp_path / "one" / "o.1003.exr").read_bytes() == here["o.1003.exr"]
