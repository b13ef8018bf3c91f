"""The contract suite of host adapters on the made-up Resolve, with a real server and real EXR files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from faceplate_client import Client, find
from faceplate_client.errors import ClientError
from faceplate_resolve.host import Choices, ResolveHost
from tests.contract.hosts.checks import CHECKS, KILLS, skips
from tests.contract.hosts.conftest import MakeBench
from tests.hosts.resolve.fake.application import Resolve
from tests.hosts.resolve.stage import ResolveStage, leftovers
from tests.integration.server.conftest import Running

NONE_HERE = {name for name in CHECKS if "live" in name} | {"one_undo_takes_it_all_back"}
"""Resolve shows no pixels of ours, and has no undo for scripts."""
ABOVE = ("refresh_follows_a_trim",)
"""What the track above does otherwise than a take."""


@pytest.mark.parametrize("name", [name for name in CHECKS if name not in KILLS])
def test_check(name: str, make_bench: MakeBench, server: Running, tmp_path: Path) -> None:
    resolve = Resolve()
    bench = make_bench(ResolveHost(resolve), ResolveStage(resolve), server, False)
    why = skips(name, bench)
    assert bool(why) == (name in NONE_HERE), why
    if not why:
        CHECKS[name](bench)
        assert leftovers(tmp_path / "work") == []


@pytest.mark.parametrize("name", ABOVE)
def test_check_on_the_track_above(name: str, make_bench: MakeBench, server: Running) -> None:
    resolve = Resolve()
    CHECKS[name](make_bench(ResolveHost(resolve, Choices(above=True)), ResolveStage(resolve), server, False))


def test_a_server_that_dies(make_bench: MakeBench, own_server: Callable[[], Running]) -> None:
    resolve, one = Resolve(), own_server()
    try:
        bench = make_bench(ResolveHost(resolve), ResolveStage(resolve), one, True)
        CHECKS["a_server_that_dies_in_mid_job_is_no_loss"](bench)
    finally:
        try:
            with Client(find(one.place), "end") as client:
                client.stop()
        except ClientError:
            pass
