"""A real server, a small plate and its reference for the checks of host adapters."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from faceplate.cli.main import main
from faceplate_client.frame_maths import Span
from faceplate_client.host import Host
from faceplate_client.task import Servers
from tests.contract.hosts.checks import Bench, Stage
from tests.integration.conftest import identity  # noqa: F401 - a fixture
from tests.integration.server.conftest import Running, running, server  # noqa: F401 - a fixture
from tests.support.plates import moving_plate

PLATE = moving_plate(320, 200, 8, face_width_px=96, motion="linear", travel_px=24)
MakeBench = Callable[[Host, Stage, Running, bool], Bench]


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The plate that each check gets a copy of."""
    return PLATE.write(tmp_path_factory.mktemp("original"))


@pytest.fixture(scope="session")
def reference(original: str, identity: Path, tmp_path_factory: pytest.TempPathFactory) -> str:  # noqa: F811
    """What the command line makes of it."""
    pattern = tmp_path_factory.mktemp("reference") / "o.####.exr"
    assert main(["apply", original, "--identity", str(identity), "-o", str(pattern), "--device", "cpu"]) == 0
    return str(pattern)


def servers_of(one: Running) -> Servers:
    """How the checks find a server of the tests, and start it again."""
    config = one.place.folder / "server.toml"
    words = ("-m", "faceplate", "serve", "--folder", str(one.place.folder), "--config", str(config))
    return Servers(one.place, command=(sys.executable, *words))


@pytest.fixture
def make_bench(tmp_path: Path, original: str, reference: str, identity: Path) -> MakeBench:  # noqa: F811
    """A bench for a host, with a plate of its own."""
    plate = tmp_path / "plate"
    shutil.copytree(Path(original).parent, plate, ignore=shutil.ignore_patterns("*.json"))

    def make(host: Host, stage: Stage, running_server: Running, restartable: bool) -> Bench:
        folder = tmp_path / "work"
        folder.mkdir()
        return Bench(
            host=host,
            stage=stage,
            servers=servers_of(running_server),
            restartable=restartable,
            plate=str(plate / Path(original).name),
            media=Span(1001, 1008),
            size=(PLATE.width, PLATE.height),
            identity=str(identity),
            reference=reference,
            folder=folder,
        )

    return make


@pytest.fixture
def own_server() -> Iterator[Callable[[], Running]]:
    """A server that a check may kill; what it starts in its place is ended too."""
    opened: list[Any] = []

    def start() -> Running:
        opened.append(running())
        one: Running = opened[-1].__enter__()
        return one

    yield start
    for context in opened:
        context.__exit__(None, None, None)
