"""A user's swapper on a server: the command line's bytes, frame by frame and for a range."""

from __future__ import annotations

from pathlib import Path

import pytest

from faceplate.cli.options import fitting
from faceplate.errors import SettingError
from faceplate.job import Assignment
from faceplate.jobs.cancel import CancelToken
from faceplate.jobs.events import Emit
from faceplate.jobs.spec import ApplyJob, JobOutcome
from faceplate_client import wire
from faceplate_client.errors import MalformedMessage, ServerError
from faceplate_server.remote import request_of
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
        for more, told in (
            (("--precision", "bfloat16"), "bfloat16 runs in this process only"),
            (("--identity", f"{identity}@auto"), "recognised in this process only"),
        ):
            ran = cli(*words, *more, "-o", tmp_path / "no" / "o.####.exr", "--server", server.address)
            assert (ran.code, told in ran.err) == (2, True), ran.err
        assert not (tmp_path / "no").exists()
        with server.client() as client:
            job = client.submit_frame(
                frame=1003,
                plate=wire.FileRef(small_plate, 1003),
                output=wire.FileRef(str(tmp_path / "one" / "paid.####.exr"), 1003),
                assignments=(wire.Assignment(str(identity)),),
                engine=ENGINE,
                commercial=True,
            )
            with pytest.raises(ServerError, match="cannot be used in this job"):
                client.result(job, 120)
            assert not list((tmp_path / "one").iterdir())
            with pytest.raises(MalformedMessage, match="main, all"):
                client.submit_frame(
                    frame=1003,
                    plate=wire.FileRef(small_plate, 1003),
                    output=wire.FileRef(str(tmp_path / "one" / "o.####.exr"), 1003),
                    assignments=(wire.Assignment(str(identity), "auto"),),
                )
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


def test_auto_passes_over_a_server_that_would_not_do_the_same(
    identity: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def runner(job: ApplyJob, emit: Emit, cancel: CancelToken) -> JobOutcome:
        raise AssertionError

    monkeypatch.delenv("FACEPLATE_MODELS", raising=False)
    plain = ApplyJob("p.exr", "o.exr", (Assignment(identity),))
    people = ApplyJob("p.exr", "o.exr", (Assignment(identity, "auto", identity),))
    neural = ApplyJob("p.exr", "o.exr", (Assignment(identity),), engine=ENGINE)
    assert fitting(None, people, "off", "bfloat16") is None
    assert fitting(runner, plain, "auto") is fitting(runner, neural, "auto") is runner
    assert fitting(runner, people, "auto") is fitting(runner, neural, "auto", "float16") is None
    with pytest.raises(SettingError, match="does not recognise"):
        request_of(people, "a")
    monkeypatch.setenv("FACEPLATE_MODELS", str(tmp_path))
    assert fitting(runner, plain, "auto") is runner
    assert fitting(runner, neural, "auto") is None  # the same id may be another file there
