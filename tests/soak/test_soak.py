"""The soak's own machinery at small counts: `python -m tests.soak` runs the real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak import __main__ as soak
from tests.soak.look import strange_files


def test_small_counts_pass(capfd: pytest.CaptureFixture[str]) -> None:
    words = ["--frames", "400", "--messages", "200", "--client-kills", "3", "--server-kills", "1", "--seed", "4"]
    code = soak.main(words)
    out, err = capfd.readouterr()
    # 400 frames are the warm-up itself, so that memory says nothing yet
    assert [line for line in err.splitlines() if line.startswith(soak.PARTS) and "memory grew" not in line] == []
    assert [part for part in soak.PARTS if f'"part": "{part}"' in out] == list(soak.PARTS)
    assert code in (0, 1)


def test_faults_are_told() -> None:
    good = {"lost": 0, "doubled": 0, "memory_growth_percent": 0.2, "stale_files": [], "alive": True, "open_jobs": 0}
    assert soak.faults("frames", good) == []
    bad = {
        "lost": 1,
        "memory_growth_percent": 1.0,
        "stale_files": ["1-a.ring"],
        "alive": False,
        "slowest_answer_s": 99.0,
    }
    assert len(soak.faults("frames", bad)) == 5


def test_a_strange_file_is_seen(tmp_path: Path) -> None:
    for name in ("server-default.json", "server-default.lock", "server.toml", "log", "12-ab.ring", ".server-x.tmp"):
        (tmp_path / name).touch()
    assert strange_files(tmp_path) == [".server-x.tmp", "12-ab.ring"]
