"""The host in memory passes every check, and one that can do little passes those that apply."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from faceplate_client import Client, find
from faceplate_client.errors import ClientError
from tests.contract.hosts.checks import CHECKS, KILLS, skips
from tests.contract.hosts.conftest import MakeBench
from tests.contract.hosts.memory_host import ALL, MemoryHost, MemoryStage
from tests.integration.server.conftest import Running


@pytest.mark.parametrize("name", [name for name in CHECKS if name not in KILLS])
def test_check(name: str, make_bench: MakeBench, server: Running, tmp_path: Path) -> None:
    host = MemoryHost(tmp_path / "results")
    bench = make_bench(host, MemoryStage(host), server, False)
    assert skips(name, bench) == ""
    CHECKS[name](bench)


@pytest.mark.parametrize("name", KILLS)
def test_check_with_a_server_of_its_own(
    name: str, make_bench: MakeBench, own_server: Callable[[], Running], tmp_path: Path
) -> None:
    host, server = MemoryHost(tmp_path / "results"), own_server()
    try:
        CHECKS[name](make_bench(host, MemoryStage(host), server, True))
    finally:
        try:
            with Client(find(server.place), "end") as client:
                client.stop()
        except ClientError:
            pass


def test_a_host_that_can_do_little(make_bench: MakeBench, server: Running, tmp_path: Path) -> None:
    host = MemoryHost(tmp_path / "results", frozenset())
    bench = make_bench(host, MemoryStage(host), server, False)
    assert {name for name in CHECKS if skips(name, bench)} >= {"one_undo_takes_it_all_back", *KILLS}
    CHECKS["remove_restores_exactly"](bench)
    assert frozenset() < ALL
