"""The figures of the neural engine can be had: on narrow nets, one run."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from faceplate.bench import net_scene, nets
from faceplate.cli.options import open_workbench
from faceplate.models.sessions import SessionPool


def test_the_time_around_the_net_beside_insightfaces(tmp_path: Path) -> None:
    pytest.importorskip("insightface.model_zoo.inswapper")
    bench = open_workbench(device="cpu", threads=1)
    store, scene = net_scene.make_nets(tmp_path, 0.06), net_scene.make_scene(1920, 1080)
    with SessionPool(store, "cpu", threads=1) as pool:
        ours, peer = nets._ours(bench, pool, time.thread_time), nets._Peer(pool, time.thread_time)
        figures = nets.around(ours, peer, scene, time.thread_time, 1)
        assert figures["net ms"] > 0
        assert figures["around it ms"] > 0
        assert figures["theirs / ours around the net"] > 1
        whole = nets.whole_frame(ours, peer, scene, time.thread_time, 1)
        assert whole["InsightFace / ours"] > 0
