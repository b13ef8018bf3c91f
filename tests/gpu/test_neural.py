"""The neural engine on a GPU: what the CPU gives, one copy each way, several threads in shared batches."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from faceplate.bench.net_scene import SWAPPER, make_nets, make_scene, somebody
from faceplate.cli.options import open_workbench
from faceplate.jobs.engines import make_engine, torch_device
from faceplate.jobs.spec import Workbench
from faceplate.models.sessions import SessionPool
from faceplate.pipeline import FacePipeline, SwappedFrame


@pytest.mark.gpu
def test_cuda_gives_what_the_cpu_gives_in_one_copy_each_way(tmp_path: Path) -> None:
    store, scene = make_nets(tmp_path, 0.1), make_scene(1920, 1080)
    task, config = scene.task(somebody(), boost=2), open_workbench(device="cpu", threads=1).config

    def run(device: str, threads: int) -> list[SwappedFrame]:
        with SessionPool(store, device, threads=1) as nets, ThreadPoolExecutor(threads) as pool:
            bench = Workbench(config, nets, threads)
            pipeline = FacePipeline(config, make_engine(SWAPPER, bench), torch_device(bench))
            return list(pool.map(lambda _: pipeline.process(scene.frame, [task]), range(2 * threads)))

    (here, _), (*there,) = run("cpu", 1), run("cuda", 4)
    for made in there:
        assert (made.copies["up"], made.copies["down"]) == (1, 1)
        full = [np.zeros(scene.frame.pixels.shape[:2], np.float32) for _ in range(2)]
        for plane, one in zip(full, (here, made), strict=True):
            plane[one.window.slices(scene.frame.data_window)] = one.matte
        assert np.abs(full[0] - full[1]).max() < 0.02
        difference = np.abs(here.pixels.astype(np.float32) - made.pixels.astype(np.float32))
        assert np.percentile(difference, 99.9) < 5e-3
        np.testing.assert_array_equal(made.pixels[full[1] == 0], scene.frame.pixels[full[1] == 0])
