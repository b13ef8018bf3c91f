"""`faceplate bench --server`, few runs of each: figures are of what they say, and a spoilt frame gives none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faceplate.cli.options import find_server_bench, open_workbench
from faceplate.demo.plate import DemoPlateSpec
from faceplate_client.slot_header import FrameType
from faceplate_server.bench import messages, ranges, transfer, work
from faceplate_server.bench.run import bench_shot, run_bench
from faceplate_server.bench.statistics import percentile
from tests.integration.conftest import Cli
from tests.integration.server.conftest import Running


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in (
        (messages, "_BLOCKS", 3),
        (messages, "_BLOCK", 20),
        (messages, "_WARM", 5),
        (transfer, "_RUNS", 4),
        (transfer, "_WARM", 1),
        (work, "_RUNS", 3),
        (work, "_WARM", 1),
        (work, "_LOADED", 4),
        (ranges, "_RUNS", 1),
    ):
        monkeypatch.setattr(module, name, value)


def test_percentiles() -> None:
    assert [percentile(range(100), percent) for percent in (0, 50, 95, 99, 100)] == [0, 50, 95, 99, 99]
    assert percentile([3.0], 95) == 3.0


@pytest.mark.usefixtures("few")
def test_control_and_transfer(server: Running) -> None:
    with server.client() as client:
        told = dict(messages.round_trip(client, server.place.folder))
        assert told["ratio of the medians"] == pytest.approx(
            told["leaf client to server, median us"] / told["pyzmq to pyzmq, median us"], abs=0.01
        )
        assert told["leaf client to server, p99 us"] >= told["leaf client to server, median us"]
        for kind in (FrameType.FLOAT, FrameType.HALF):
            moved = dict(transfer.transfer(client, server.place.folder, 320, 180, kind))
            assert all(value > 0 for value in moved.values())
    assert not list(server.place.folder.glob("*.ring"))
    assert [path.name for path in server.place.folder.glob("*.sock")] == [server.place.socket.name]


@pytest.mark.usefixtures("few")
def test_a_spoilt_frame_gives_no_figure(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoilt(*words: Any) -> Any:
        array = np.array(as_array(*words))
        array[-1, -1, 0] += 1
        return array

    as_array = transfer.as_array
    monkeypatch.setattr(transfer, "as_array", spoilt)
    with server.client() as client, pytest.raises(AssertionError, match="changed a frame"):
        transfer.transfer(client, server.place.folder, 32, 18, FrameType.FLOAT)


@pytest.mark.usefixtures("few")
def test_share_and_load(server: Running, tmp_path: Path) -> None:
    bench = open_workbench(device="cpu", threads=2)
    with bench.nets, server.client("viewer") as client, server.client("batch") as batch:
        shot = bench_shot(DemoPlateSpec(frames=24, width=480, height=270, overscan=0), tmp_path, bench)
        told = dict(work.share(client, server.place.folder, shot))
        assert told["frame, ms"] > told["pipeline, ms"] > 0
        assert told["the server's share, median ms"] > 0
        loaded = dict(work.under_load(client, batch, server.place.folder, shot, str(tmp_path / "out" / "o.####.exr")))
        further = dict(ranges.apply_share(client, bench, shot, tmp_path))
        cost, alone = further["on the server, ms of processor a frame"], further["without it, ms of processor a frame"]
        assert cost > 0 < alone
        assert further["the server's share, median ms"] == pytest.approx(cost - alone, abs=0.11)
        assert not list(tmp_path.glob("range*"))
        assert loaded["frames under load"] == 4
        assert loaded["p95 / alone"] > 0
        assert loaded["a batch frame meanwhile, median ms"] is None or loaded["a batch frame meanwhile, median ms"] > 0


def test_the_command_finds_it(cli: Cli) -> None:
    assert find_server_bench() is run_bench
    ran = cli("bench", "--server", "--soak", "5")
    assert (ran.code, "--soak" in ran.err) == (2, True)
