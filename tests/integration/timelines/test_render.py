"""Timelines through the real command line: plan, results in place, resume, failures."""

from __future__ import annotations

from pathlib import Path

from tests.integration.conftest import Cli
from tests.integration.timelines.conftest import Cut


def test_all_of_it(cli: Cli, identity: Path, cut: Cut, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = cli("render", cut.path, "-o", out, "--identity", identity, "--json")
    print(ran.out, ran.err)
    assert ran.code == 0
