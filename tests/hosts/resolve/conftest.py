"""One server, plate and identity for all tests here; no waiting between two tries of a call or looks at a render."""

from __future__ import annotations

from pathlib import Path

import pytest

from faceplate.cli.main import main
from faceplate_resolve import calls, rendering
from tests.contract.hosts.conftest import make_bench, original, own_server  # noqa: F401 - fixtures
from tests.integration.conftest import identity  # noqa: F401 - a fixture
from tests.integration.server.conftest import server  # noqa: F401 - a fixture


@pytest.fixture(scope="session")
def reference(original: str, identity: Path, tmp_path_factory: pytest.TempPathFactory) -> str:  # noqa: F811
    """What the command line makes of the plate in the space that the project reads it in."""
    pattern = tmp_path_factory.mktemp("reference") / "o.####.exr"
    words = ["apply", original, "--identity", str(identity), "-o", str(pattern), "--device", "cpu"]
    assert main([*words, "--input-space", "lin_ap1_scene"]) == 0
    return str(pattern)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "PAUSE_S", 0.0)
    monkeypatch.setattr(rendering, "POLL_S", 0.002)
