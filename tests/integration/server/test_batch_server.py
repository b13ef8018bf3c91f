"""A queue that a server does: the same bytes as here."""

from __future__ import annotations

import json
from pathlib import Path

from tests.integration.conftest import Cli, outputs
from tests.integration.server.conftest import Running


def test_a_queue_on_a_server(server: Running, cli: Cli, small_plate: str, identity: Path, tmp_path: Path) -> None:
    jobs = [
        {"plate": plate, "identity": str(identity), "output": f"{name}/o.####.exr", "name": name, "frames": "1001-1002"}
        for name, plate in (("a", small_plate), ("b", "none/p.####.exr"))
    ]
    (tmp_path / "q.json").write_text(json.dumps(jobs))
    ran = cli("batch", tmp_path / "q.json", "--server", server.address, "--json")
    assert (ran.code, ran.event("done")["counts"]) == (1, {"done": 1, "failed": 1})
    assert any("the server at" in event.get("text", "") for event in ran.events)
    plain = ("apply", small_plate, "--identity", identity, "-o", tmp_path / "x" / "o.####.exr", "--device", "cpu")
    assert cli(*plain, "--frames", "1001-1002").code == 0
    assert outputs(tmp_path / "a") == outputs(tmp_path / "x")
