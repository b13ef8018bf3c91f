"""The contract suite in real Blenders, with a real server."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faceplate.cli.main import main
from faceplate_client import Client, find
from faceplate_client.errors import ClientError
from tests.contract.hosts.checks import CHECKS, KILLS
from tests.contract.hosts.conftest import PLATE, original, own_server, servers_of  # noqa: F401 - fixtures
from tests.hosts.blender.conftest import ROOT, Blender
from tests.integration.conftest import identity  # noqa: F401 - a fixture
from tests.integration.server.conftest import Running

PATHS = (ROOT / "host_plugins", ROOT)
LEFT_OUT = {name for name in CHECKS if "live" in name}
"""Strips have no pixels that a script could reach; the compositor has, see `test_live.py`."""


ALL_IN = "5.2"
EVERYWHERE = (
    "about",
    "clips_are_told_as_they_are",
    "apply_gives_the_command_lines_bytes_in_place",
    "one_undo_takes_it_all_back",
    "refresh_follows_a_trim",
    "a_retimed_clip_is_baked_first",
    "a_range_covers_its_frames_alone",
)
"""What Blender's versions could do differently and no other test here shows; the rest is the same code.
FACEPLATE_BPY_WHOLE_CONTRACT=1 runs all of it in each version."""


def runs_all(blender: Blender) -> bool:
    return blender.version == ALL_IN or os.environ.get("FACEPLATE_BPY_WHOLE_CONTRACT") == "1"


@pytest.fixture(scope="session")
def reference(original: str, identity: Path, tmp_path_factory: pytest.TempPathFactory) -> str:  # noqa: F811
    """What the command line makes of the plate in the space that Blender reads it in."""
    pattern = tmp_path_factory.mktemp("reference") / "o.####.exr"
    words = ["apply", original, "--identity", str(identity), "-o", str(pattern), "--device", "cpu"]
    assert main([*words, "--input-space", "lin_ap1_scene"]) == 0
    return str(pattern)


def bench_of(server: Running, restartable: bool, **facts: str) -> dict[str, Any]:
    """What `inside/contract.py` makes a bench of; `facts` are original, reference and identity."""
    return {
        **facts,
        "server": str(server.place.folder),
        "command": list(servers_of(server).command),
        "restartable": restartable,
        "media": [1001, 1008],
        "size": [PLATE.width, PLATE.height],
    }


def passed(blender: Blender, names: list[str], server: Running, folder: Path, restartable: bool, **facts: str) -> None:
    bench = bench_of(server, restartable, **facts)
    told = blender.run(
        "contract", "checks", enable=False, paths=PATHS, timeout=600, names=names, folder=folder, bench=bench
    )
    print({name: seconds for name, (_, seconds) in told.items()})
    wrong = {name: said for name, (said, _) in told.items() if said}
    assert all(said.startswith("left out") for said in wrong.values()), "\n".join(wrong.values())
    assert set(wrong) == LEFT_OUT & set(names)


def test_contract(
    blender: Blender,
    server: Running,
    tmp_path: Path,
    original: str,  # noqa: F811
    reference: str,
    identity: Path,  # noqa: F811
) -> None:
    names = [name for name in CHECKS if name not in KILLS and (runs_all(blender) or name in EVERYWHERE)]
    facts = {"original": original, "reference": reference, "identity": str(identity)}
    passed(blender, names, server, tmp_path, False, **facts)


def test_a_server_that_dies(
    blender: Blender,
    own_server: Callable[[], Running],  # noqa: F811
    tmp_path: Path,
    original: str,  # noqa: F811
    reference: str,
    identity: Path,  # noqa: F811
) -> None:
    if not runs_all(blender):
        pytest.skip(f"this part of the contract suite runs in {ALL_IN}")
    server = own_server()
    facts = {"original": original, "reference": reference, "identity": str(identity)}
    try:
        passed(blender, ["a_server_that_dies_in_mid_job_is_no_loss"], server, tmp_path, True, **facts)
    finally:
        try:
            with Client(find(server.place), "end") as client:
                client.stop()
        except ClientError:
            pass
