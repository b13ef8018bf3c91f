"""The contract suite on the stand-in for Nuke, with a real server and real EXR files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from faceplate_client import Client, find
from faceplate_client.errors import ClientError
from faceplate_nuke.host import NukeHost
from tests.contract.hosts.checks import CHECKS, KILLS, skips
from tests.contract.hosts.conftest import MakeBench
from tests.hosts.nuke.conftest import NukeStage
from tests.integration.server.conftest import Running

LIVE = {name for name in CHECKS if "live" in name}
"""No script reaches the pixels of a node of Nuke."""


@pytest.mark.parametrize("name", [name for name in CHECKS if name not in KILLS and name not in LIVE])
def test_check(name: str, make_bench: MakeBench, server: Running, stage: NukeStage) -> None:
    bench = make_bench(NukeHost(), stage, server, False)
    assert skips(name, bench) == ""
    CHECKS[name](bench)


def test_what_does_not_apply_is_left_out_for_a_reason(make_bench: MakeBench, server: Running, stage: NukeStage) -> None:
    bench = make_bench(NukeHost(), stage, server, True)
    assert {name for name in CHECKS if skips(name, bench)} == LIVE


def test_a_server_that_dies(make_bench: MakeBench, own_server: Callable[[], Running], stage: NukeStage) -> None:
    server = own_server()
    try:
        CHECKS["a_server_that_dies_in_mid_job_is_no_loss"](make_bench(NukeHost(), stage, server, True))
    finally:
        try:
            with Client(find(server.place), "end") as client:
                client.stop()
        except ClientError:
            pass
