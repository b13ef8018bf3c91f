"""The contract suite of host adapters on the made-up Resolve, with a real server and real EXR files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from faceplate.cli.main import main
from faceplate_client import Client, find
from faceplate_client.errors import ClientError
from faceplate_resolve.host import Choices, ResolveHost
from tests.contract.hosts.checks import CHECKS, KILLS, skips
from tests.contract.hosts.conftest import MakeBench, make_bench, original, own_server  # noqa: F401 - fixtures
from tests.hosts.resolve.fake.application import Resolve
from tests.hosts.resolve.stage import ResolveStage, leftovers
from tests.integration.conftest import identity  # noqa: F401 - a fixture
from tests.integration.server.conftest import Running, server  # noqa: F401 - a fixture

NONE_HERE = {name for name in CHECKS if "live" in name} | {"one_undo_takes_it_all_back"}
"""Resolve shows no pixels of ours, and has no undo for scripts."""
ABOVE = ("refresh_follows_a_trim",)
"""What the track above does otherwise than a take."""


@pytest.fixture(scope="session")
def reference(original: str, identity: Path, tmp_path_factory: pytest.TempPathFactory) -> str:  # noqa: F811
    """What the command line makes of the plate in the space that the project reads it in."""
    pattern = tmp_path_factory.mktemp("reference") / "o.####.exr"
    words = ["apply", original, "--identity", str(identity), "-o", str(pattern), "--device", "cpu"]
    assert main([*words, "--input-space", "lin_ap1_scene"]) == 0
    return str(pattern)


@pytest.mark.parametrize("name", [name for name in CHECKS if name not in KILLS])
def test_check(name: str, make_bench: MakeBench, server: Running, tmp_path: Path) -> None:  # noqa: F811
    resolve = Resolve()
    bench = make_bench(ResolveHost(resolve), ResolveStage(resolve), server, False)
    why = skips(name, bench)
    assert bool(why) == (name in NONE_HERE), why
    if not why:
        CHECKS[name](bench)
        assert leftovers(tmp_path / "work") == []


@pytest.mark.parametrize("name", ABOVE)
def test_check_on_the_track_above(name: str, make_bench: MakeBench, server: Running) -> None:  # noqa: F811
    resolve = Resolve()
    CHECKS[name](make_bench(ResolveHost(resolve, Choices(above=True)), ResolveStage(resolve), server, False))


def test_a_server_that_dies(make_bench: MakeBench, own_server: Callable[[], Running]) -> None:  # noqa: F811
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
