"""Tiles, and what happens when memory runs out in several frames at once."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from faceplate.errors import DeviceMemoryError, OutputError
from faceplate.face import Points
from faceplate.frame import Box
from faceplate.job import SwapSettings
from faceplate.jobs.frame_memory import FrameMemory, Smaller
from faceplate.swap.base import FaceCrop, FaceResult
from faceplate.swap.tiles import TiledEngine, tiles


class Local:
    """An engine whose every pixel depends on that pixel alone: tiles of it are the whole."""

    name = "local"
    version = "1"
    encoding: Literal["linear", "display"] = "linear"

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def prepare(self, identity: Any) -> Any:
        return identity

    def window(self, landmarks: Points, settings: SwapSettings) -> Box:
        return Box(0, 0, 8, 8)

    def swap(self, crops: Sequence[FaceCrop], prepared: Any) -> list[FaceResult]:
        return [self._one(crop) for crop in crops]

    def _one(self, crop: FaceCrop) -> FaceResult:
        self.seen.append((crop.view.shape[1], crop.view.shape[2]))
        rows, columns = torch.meshgrid(
            torch.arange(crop.window.y0, crop.window.y1), torch.arange(crop.window.x0, crop.window.x1), indexing="ij"
        )
        core = ((rows + columns) % 7 / 6.0).float()
        at = torch.from_numpy(crop.landmarks[0])
        assert (crop.window.x0 + at[0], crop.window.y0 + at[1]) == (130.0, 120.0), "landmarks move with the tile"
        edited = torch.where(core > 0, crop.view * 2, crop.view)
        return FaceResult(edited, core, core * 0.5, torch.stack([rows, columns]).float(), {"face_px": 7.0})


def crop(height: int, width: int) -> FaceCrop:
    view = torch.rand((3, height, width), generator=torch.Generator().manual_seed(1))
    landmarks = np.tile(np.array([30.0, 20.0, 0.0], np.float32), (478, 1))
    window = Box(100, 100, 100 + width, 100 + height)
    return FaceCrop(view, window, landmarks, 1.0, 0.0, SwapSettings(), None, 1)


@given(st.integers(1, 3000), st.integers(1, 6))
def test_tiles_cover_and_their_weights_sum_to_one(length: int, count: int) -> None:
    total = np.zeros(length)
    for part, weight in tiles(length, count):
        assert len(weight) == part.stop - part.start
        assert weight.min() >= 0
        total[part] += weight
    np.testing.assert_allclose(total, 1.0, atol=1e-6)


@pytest.mark.parametrize(("height", "width", "count"), [(200, 160, 2), (301, 333, 4), (20, 500, 4), (8, 8, 2)])
def test_tiles_of_a_local_engine_are_the_whole(height: int, width: int, count: int) -> None:
    whole_engine, engine = Local(), Local()
    one = crop(height, width)
    (whole,), (tiled,) = whole_engine.swap([one], None), TiledEngine(engine, count).swap([one], None)
    for spec in dataclasses.fields(FaceResult):
        if spec.name != "facts":
            torch.testing.assert_close(getattr(tiled, spec.name), getattr(whole, spec.name), rtol=0, atol=1e-5)
    assert tiled.st is not None
    assert whole.st is not None
    assert (tiled.st == whole.st).all()
    left = whole.matte_core == 0
    assert (tiled.edited[:, left] == one.view[:, left]).all(), "bit for bit where nothing is changed"
    assert tiled.facts == pytest.approx(whole.facts)
    if min(height, width) > 100:
        assert len(engine.seen) == count * count
        assert max(h * w for h, w in engine.seen) < 0.6 * height * width


class Pipe:
    """As far as `FrameMemory` looks at a pipeline."""

    config = device = None

    def __init__(self) -> None:
        self.engine = Local()


def memory() -> tuple[FrameMemory, list[str], Any]:
    warm = ["warm"]
    return FrameMemory(warm.clear), warm, Pipe()


def tiles_of(pipeline: Any) -> int:
    return pipeline.engine._count if isinstance(pipeline.engine, TiledEngine) else 0


def test_warm_values_go_only_when_memory_runs_out() -> None:
    frames, warm, pipeline = memory()
    assert frames.run(tiles_of, pipeline) == (0, None)
    assert warm == ["warm"]
    tried = []

    def attempt(given_: Any) -> int:
        tried.append((given_ is pipeline, tiles_of(given_), list(warm)))
        if len(tried) < 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return tiles_of(given_)

    assert frames.run(attempt, pipeline) == (2, Smaller(2))
    assert tried == [(True, 0, ["warm"]), (False, 0, []), (False, 2, [])]


def test_too_little_memory_is_typed_and_other_errors_are_left_alone() -> None:
    frames, _, pipeline = memory()

    def short(_: Any) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    def broken(_: Any) -> None:
        raise OutputError("disk full")

    with pytest.raises(DeviceMemoryError) as caught:
        frames.run(short, pipeline)
    assert caught.value.exit_code == 3
    assert "can't allocate" in (caught.value.found or "")
    with pytest.raises(OutputError):
        frames.run(broken, pipeline)
    assert frames.run(tiles_of, pipeline) == (0, None), "the next frame works"


def test_a_frame_that_is_done_again_is_alone() -> None:
    frames, _, pipeline = memory()
    at_work, most, lock = 0, [], threading.Lock()

    def attempt(given_: Any) -> bool:
        nonlocal at_work
        with lock:
            at_work += 1
            now = at_work
        threading.Event().wait(0.02)
        again = given_ is not pipeline
        with lock:
            most.append((again, max(now, at_work)))
            at_work -= 1
        if not again:
            raise MemoryError
        return True

    threads = [threading.Thread(target=frames.run, args=(attempt, pipeline)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert [count for again, count in most if again] == [1] * 4
