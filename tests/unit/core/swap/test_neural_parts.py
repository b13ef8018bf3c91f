"""Parts of the neural engine: boost, guard, crossings, batches of several threads."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from faceplate.frame import Box
from faceplate.job import SwapSettings
from faceplate.swap.base import FaceCrop, FaceResult
from faceplate.swap.crossing import Crossing
from faceplate.swap.neural import boost
from faceplate.swap.neural.mattes import guarded
from faceplate.swap.together import Together

CPU = torch.device("cpu")


def smooth(size: int) -> torch.Tensor:
    y, x = torch.meshgrid(torch.arange(size) / size, torch.arange(size) / size, indexing="ij")
    return torch.stack([x, y, 0.5 + 0.4 * torch.sin(9 * x + 5 * y)])


@pytest.mark.parametrize(
    ("crop_px", "expected"), [(50, 1), (128, 1), (150, 1), (160, 2), (301, 2), (302, 3), (4000, 4)]
)
def test_the_factor_gives_the_face_the_plates_resolution(crop_px: float, expected: int) -> None:
    assert boost.factor_for(crop_px, 128) == expected


def test_pixels_go_to_the_pictures_by_their_place_in_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boost, "gaussian", lambda planes, sigma: planes)
    fine = torch.arange(36.0).view(1, 6, 6).expand(3, 6, 6)
    parts = boost.split(fine, 3)
    assert parts.shape == (9, 3, 2, 2)
    for i in range(3):
        for j in range(3):
            assert torch.equal(parts[i * 3 + j], fine[:, i::3, j::3])


@pytest.mark.parametrize("factor", [1, 2, 3, 4])
def test_what_was_split_is_joined_again(factor: int) -> None:
    fine = smooth(24 * factor)
    inner = (slice(None), slice(3 * factor, -3 * factor), slice(3 * factor, -3 * factor))  # edges are mirrored
    assert torch.allclose(boost.join(boost.split(fine, factor), factor)[inner], fine[inner], atol=0.01)


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_pictures_that_disagree_leave_no_grid(factor: int) -> None:
    fine = smooth(32 * factor)
    parts = boost.split(fine, factor)
    bias = torch.linspace(-0.1, 0.1, factor**2).view(-1, 1, 1, 1)  # each picture has a cast of its own
    plain = boost.join(parts, factor)
    inner = (slice(None), slice(8, -8), slice(8, -8))

    def grid(picture: torch.Tensor) -> float:
        return float((picture - plain)[inner].std())

    worst = float(
        torch.nn.functional.pixel_shuffle((parts + bias).transpose(0, 1).flatten(0, 1)[None], factor)[0][inner]
        .sub(plain[inner])
        .std()
    )
    assert grid(boost.join(parts + bias, factor)) < 0.05 * worst


def test_detail_finer_than_the_nets_pixel_stays() -> None:
    line = smooth(64).clone()
    line[:, :, 31] += 0.3  # one fine column, two of them to a pixel of the net
    made = boost.join(torch.nn.functional.pixel_unshuffle(line[None], 2)[0].view(3, 4, 32, 32).transpose(0, 1), 2)
    contrast = made[:, 8:-8, 31] - 0.5 * (made[:, 8:-8, 30] + made[:, 8:-8, 32])
    assert float(contrast.mean()) > 0.2


@given(st.floats(0, 1))
@settings(max_examples=20, deadline=None)
def test_the_guard_never_makes_a_matte_smaller(share: float) -> None:
    shape = torch.ones(8, 8)
    own = torch.full((8, 8), share)
    matte, lost = guarded(own, shape)
    assert (matte >= own - 1e-6).all()
    assert 0 <= float(lost) <= 1
    assert float(lost) == (1.0 if share <= 0.35 else 0.0 if share >= 0.6 else pytest.approx(float(lost)))


def test_the_guard_leaves_a_face_outside_the_picture_alone() -> None:
    matte, lost = guarded(torch.zeros(4, 4), torch.zeros(4, 4))
    assert float(matte.max()) == float(lost) == 0


@pytest.mark.parametrize("packed", [False, True])
def test_arrays_of_both_kinds_cross_in_one_copy(packed: bool) -> None:
    crossing = Crossing(CPU, packed=packed)
    half = np.random.default_rng(1).random((3, 5, 7)).astype(np.float16)
    half[0, 0, 0] = np.nan
    plane = np.random.default_rng(2).random((4, 3)).astype(np.float32)[:, ::2]
    up = crossing.up([half, plane])
    assert [tensor.dtype for tensor in up] == [torch.float16, torch.float32]
    np.testing.assert_array_equal(up[0].numpy().view(np.uint16), half.view(np.uint16))
    np.testing.assert_array_equal(up[1].numpy(), plane)
    down = crossing.down([up[1].T, up[0], torch.tensor([1.5])])
    np.testing.assert_array_equal(down[0], plane.T)
    np.testing.assert_array_equal(down[1].view(np.uint16), half.view(np.uint16))
    assert down[2] == [1.5]
    copies = crossing.copies
    assert (copies.up, copies.down) == (1, 1)
    assert copies.bytes_up == half.nbytes + plane.nbytes
    assert copies.bytes_down == half.nbytes + plane.nbytes + 4


def crop(value: float) -> FaceCrop:
    view = torch.full((3, 2, 2), value)
    return FaceCrop(view, Box(0, 0, 2, 2), np.zeros((478, 3), np.float32), 1.0, 0.0, SwapSettings(), None, 1)


def result(view: torch.Tensor) -> FaceResult:
    return FaceResult(view, view[0], view[0], None, {})


class Slow:
    """An engine that can be held, and notes its batches."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.free = threading.Event()
        self.begun = threading.Event()

    def __call__(self, crops: Any, prepared: Any) -> list[FaceResult]:
        self.batches.append(len(crops))
        self.begun.set()
        assert self.free.wait(10)
        if any(who == "bad" for who in prepared):
            raise ValueError("bad")
        return [result(one.view * 2 + who) for one, who in zip(crops, prepared, strict=True)]


def together(engine: Slow, asked: list[tuple[float, Any]], most: int = 32) -> dict[float, Any]:
    gathered, found = Together(engine, CPU, most), {}

    def one(value: float, who: Any) -> None:
        try:
            found[value] = float(gathered([crop(value)], [who])[0].edited[0, 0, 0])
        except ValueError as error:
            found[value] = str(error)

    threads = [threading.Thread(target=one, args=request) for request in asked]
    threads[0].start()
    assert engine.begun.wait(10)
    for thread in threads[1:]:
        thread.start()
    deadline = time.monotonic() + 10
    while len(gathered._waiting) < len(asked) - 1 and time.monotonic() < deadline:
        time.sleep(0.001)
    engine.free.set()
    for thread in threads:
        thread.join(10)
    return found


def test_what_waits_while_a_batch_runs_is_the_next_batch() -> None:
    engine = Slow()
    assert together(engine, [(1, 10), (2, 20), (3, 30), (4, 40)]) == {1: 12, 2: 24, 3: 36, 4: 48}
    assert engine.batches == [1, 3]


def test_a_batch_has_a_largest_size() -> None:
    engine = Slow()
    assert together(engine, [(1, 0), (2, 0), (3, 0), (4, 0)], most=2) == {1: 2, 2: 4, 3: 6, 4: 8}
    assert engine.batches == [1, 2, 1]


def test_the_fault_of_one_frame_is_that_frames_alone() -> None:
    engine = Slow()
    assert together(engine, [(1, 0), (2, "bad"), (3, 0)]) == {1: 2, 2: "bad", 3: 6}
    assert engine.batches[:2] == [1, 2]
