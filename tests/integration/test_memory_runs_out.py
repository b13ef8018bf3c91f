"""`faceplate apply` without a server when memory runs out: as the server's workers do it, with their bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from faceplate.swap.base import FaceCrop, FaceResult
from faceplate.swap.mesh.engine import MeshEngine
from tests.integration.conftest import Cli, Ran, leftovers, outputs

_swap = MeshEngine.swap


class Short:
    """Memory for crops of so many pixels, and none at all for the first `misses` of them."""

    def __init__(self, largest: int = 1 << 40, misses: int = 0) -> None:
        self.largest, self.misses = largest, misses

    def swap(self, engine: MeshEngine, crops: Sequence[FaceCrop], prepared: Any) -> list[FaceResult]:
        self.misses -= 1
        if self.misses >= 0 or any(crop.view[0].numel() > self.largest for crop in crops):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return _swap(engine, crops, prepared)


def test_smaller_and_smaller(
    monkeypatch: pytest.MonkeyPatch, cli: Cli, small_plate: str, identity: Path, tmp_path: Path
) -> None:
    def apply(folder: str, short: Short) -> Ran:
        monkeypatch.setattr(MeshEngine, "swap", lambda *words: short.swap(*words))
        words = ["apply", small_plate, "--frames", "1001-1002", "--identity", identity, "--device", "cpu", "--json"]
        return cli(*words, "-o", tmp_path / folder / "o.####.exr")

    def records(folder: str) -> list[Any]:
        lines = (tmp_path / folder / "o.faceplate" / "manifest.jsonl").read_text("utf-8").splitlines()
        return [record for record in map(json.loads, lines) if "frame" in record]

    assert apply("whole", Short()).event("done")["counts"] == {"done": 2}
    ran = apply("once", Short(misses=1))
    assert ran.event("done")["counts"] == {"done": 2}
    assert outputs(tmp_path / "once") == outputs(tmp_path / "whole")
    assert sorted(filter(None, (one["facts"].get("smaller") for one in records("once")))) == ["alone"]
    assert "the pixels are the same" in ran.event("warning")["text"]
    assert apply("once", Short()).event("done")["counts"] == {"kept": 2}

    ran = apply("tiles", Short(16_000))
    assert ran.event("done")["counts"] == {"done": 2}
    assert "2 x 2 tiles" in ran.event("warning")["text"]
    assert [one["facts"]["smaller"] for one in records("tiles")] == ["2 x 2 tiles"] * 2
    assert outputs(tmp_path / "tiles").keys() == outputs(tmp_path / "whole").keys()
    assert outputs(tmp_path / "tiles") != outputs(tmp_path / "whole")
    assert apply("tiles", Short()).event("done")["counts"] == {"done": 2}, "not taken for the real thing"
    assert outputs(tmp_path / "tiles") == outputs(tmp_path / "whole")

    ran = apply("none", Short(100))
    assert ran.event("done")["counts"] == {"failed": 2}
    assert {one["error"]["type"] for one in records("none")} == {"DeviceMemoryError"}
    assert outputs(tmp_path / "none") == {}
    assert leftovers(tmp_path) == []
    assert apply("none", Short()).event("done")["counts"] == {"done": 2}
    assert outputs(tmp_path / "none") == outputs(tmp_path / "whole")
