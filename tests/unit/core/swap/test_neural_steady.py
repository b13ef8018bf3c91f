"""Mattes of nets, steadied over time."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from faceplate.colour.spaces import ColourConfig
from faceplate.errors import NumbersError
from faceplate.face import Observation, Origin, Track
from faceplate.frame import Box, Frame
from faceplate.job import SwapSettings
from faceplate.jobs.plan import PlannedFace
from faceplate.jobs.steady import LookMemory, Steady, reach_of
from faceplate.pipeline import FacePipeline
from faceplate.swap.base import MatteEngine
from faceplate.swap.neural.engine import NeuralEngine
from faceplate.swap.neural.steady import REACH, Kept, MatteLook, look_of, steadied
from tests.support.stand_in import StandIn, engine_of, posterised, somebody
from tests.unit.core.swap.test_neural_engine import crop_of

Plate = tuple[np.ndarray, np.ndarray]
SIDE = 64


def looked(matte: np.ndarray, picture: np.ndarray) -> MatteLook:
    """Of a matte (SIDE, SIDE) and a grey picture (128, 128), both 0..1."""
    shown = torch.from_numpy(np.broadcast_to(picture, (3, 128, 128)).astype(np.float32))
    return look_of(shown, {"keep": torch.from_numpy(matte.astype(np.float32))})


def over_time(looks: list[Any]) -> np.ndarray:
    """(frames, SIDE, SIDE) of all frames that have all those around them."""
    whole = range(REACH, len(looks) - REACH)
    return np.stack([steadied(looks[at - REACH : at + REACH + 1], REACH)["keep"] for at in whole])


def test_a_matte_that_flickers_before_a_still_plate_is_five_times_steadier() -> None:
    random = np.random.default_rng(1)
    still = random.uniform(0.2, 0.8, (128, 128))
    for draw in (lambda: random.random((SIDE, SIDE)), lambda: random.integers(0, 2, (SIDE, SIDE))):
        mattes = [np.asarray(draw(), np.float32) for _ in range(26)]
        grained = [np.clip(still + random.normal(0, 0.008, still.shape), 0, 1) for _ in mattes]
        before, after = np.stack(mattes), over_time([looked(*one) for one in zip(mattes, grained, strict=True)])
        assert after.var(0).mean() < before.var(0).mean() / 4.5
        assert abs(after.mean() - before.mean()) < 0.01


def test_what_moves_past_keeps_its_place_and_its_edge() -> None:
    """A bar that covers the face and crosses it: no lag, no ghost, no softer edge."""
    bars = [np.where(np.abs(np.arange(128) - 20 - 8 * at) < 10, 0.9, 0.3) for at in range(12)]
    looks = [looked(np.broadcast_to(bar[::2] < 0.5, (SIDE, SIDE)), np.broadcast_to(bar, (128, 128))) for bar in bars]
    made = over_time(looks)
    for at, matte in enumerate(made, start=REACH):
        own = (bars[at][::2] < 0.5).astype(np.float32)
        assert np.abs(matte - own).max() < 0.02


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=6, deadline=None)
def test_it_has_no_phase_and_stays_between_what_it_saw(seed: int) -> None:
    random = np.random.default_rng(seed)
    looks = [looked(random.random((SIDE, SIDE)), random.uniform(0.4, 0.5, (128, 128))) for _ in range(2 * REACH + 1)]
    forward, backward = steadied(looks, REACH)["keep"], steadied(looks[::-1], REACH)["keep"]
    np.testing.assert_allclose(forward, backward, atol=1e-6)
    every = np.stack([look.mattes["keep"] for look in looks]) / 255.0
    assert (forward >= every.min(0) - 1e-6).all()
    assert (forward <= every.max(0) + 1e-6).all()


def test_equal_frames_give_the_frame_itself_and_a_ramp_itself_to_its_ends() -> None:
    picture = np.full((128, 128), 0.5)
    same = looked(np.random.default_rng(0).random((SIDE, SIDE)), picture)
    np.testing.assert_array_equal(
        steadied([same] * 7, REACH)["keep"], same.mattes["keep"].astype(np.float32) * np.float32(1 / 255)
    )
    ramp = [looked(np.full((SIDE, SIDE), at * 20 / 255), picture) for at in range(9)]
    for at in range(9):  # a neighbour without its fellow on the other side would pull it there
        assert steadied(ramp, at)["keep"] == pytest.approx(at * 20 / 255, abs=1e-6)
    holed: list[MatteLook | None] = list(ramp)
    holed[3] = None
    assert steadied(holed, 4)["keep"] == pytest.approx(4 * 20 / 255, abs=1e-6)


def test_a_matte_beyond_its_range_is_cut_and_one_that_is_nan_refused() -> None:
    wild = torch.tensor([[0.5, float("inf")], [-5.0, 5.0]])
    assert look_of(torch.full((3, 8, 8), 0.5), {"own": wild}).mattes["own"].tolist() == [[128, 255], [0, 255]]
    wild[0, 0] = float("nan")
    with pytest.raises(NumbersError, match="NaN"):
        look_of(torch.full((3, 8, 8), 0.5), {"own": wild})


def test_an_engine_steadies_only_where_a_net_draws_a_matte(plate: Plate) -> None:
    plain = engine_of(StandIn(posterised))
    assert reach_of(plain) == 0
    assert isinstance(plain, MatteEngine)
    assert reach_of(engine_of(StandIn(posterised, lambda p: p[:, :1], "hyperswap_1a_256"))) == REACH
    assert reach_of(NeuralEngine("m", plain.swapper, lambda a, b: None, mattes=[lambda crops: crops[:, 0]])) == REACH


def test_steadied_mattes_are_taken_and_their_nets_do_not_run_again(plate: Plate) -> None:
    seen: list[int] = []

    def stage(crops: torch.Tensor) -> torch.Tensor:
        seen.append(len(crops))
        return torch.ones_like(crops[:, 0])

    engine = NeuralEngine("with matte", engine_of(StandIn(posterised)).swapper, lambda a, b: None, mattes=[stage])
    who = engine.prepare(somebody())
    crop = crop_of(engine, plate)
    look = engine.matte_look(crop, who)
    assert seen == [1]
    steady = {name: torch.from_numpy(matte) for name, matte in engine.steady([look], 0).items()}
    with_it, lone = crop_of(engine, plate, mattes=steady), crop
    made = engine.swap([with_it, lone], who)
    assert seen == [1, 1]  # the lone one's
    assert torch.equal(made[0].edited, made[1].edited)
    assert [float(one.facts["matte_over_time"]) for one in made] == [0.0, 0.0]  # no cover either
    steady["keep"] *= 0.0
    assert float(engine.swap([with_it], who)[0].matte_occluder.max()) > 0.9


def test_a_swapper_with_a_matte_runs_once_a_frame(plate: Plate) -> None:
    net = StandIn(posterised, lambda pictures: torch.ones_like(pictures[:, :1]), "hyperswap_1a_256")
    engine = engine_of(net)
    who = engine.prepare(somebody())
    crop = crop_of(engine, plate, boost=1)
    look = engine.matte_look(crop, who)
    steady = {name: torch.from_numpy(matte) for name, matte in engine.steady([look], 0).items()}
    first = engine.swap([crop_of(engine, plate, boost=1, mattes=steady)], who)[0]
    assert net.runs == [1]
    fresh = engine_of(StandIn(posterised, lambda pictures: torch.ones_like(pictures[:, :1]), "hyperswap_1a_256"))
    again = fresh.swap([crop_of(fresh, plate, boost=1, mattes=steady)], fresh.prepare(somebody()))[0]
    assert torch.equal(first.edited, again.edited)
    engine.swap([crop_of(engine, plate, boost=1)], engine.prepare(somebody("else")))
    assert net.runs == [1]  # the same vector, whatever its name


def test_what_is_kept_stays_within_its_budget() -> None:
    kept, made = Kept(3 * 400), []

    def make(value: int) -> None:
        kept.make([torch.tensor([value])], lambda: (made.append(value) or torch.full((100,), float(value)),))  # type: ignore[func-returns-value]

    for value in (1, 2, 3, 1, 4, 2, 1):
        make(value)
    assert made == [1, 2, 3, 4, 1]


def test_two_threads_that_ask_for_one_look_make_it_once() -> None:
    memory, gate, made = LookMemory(), threading.Event(), []

    def slow() -> int:
        gate.wait(5)
        made.append(1)
        return 7

    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(memory.make("a", slow))) for _ in range(4)]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join(5)
    assert (found, made) == ([7] * 4, [1])
    with pytest.raises(ZeroDivisionError):
        memory.make("b", lambda: 1 // 0)
    assert memory.make("b", lambda: 3) == 3


def noise_of(crops: torch.Tensor) -> torch.Tensor:
    """A net that says something else of every picture: blocks of 0 and 1."""
    made = []
    for crop in crops:
        random = np.random.default_rng(int.from_bytes(hashlib.sha256(crop.numpy().tobytes()).digest()[:8], "little"))
        made.append(torch.from_numpy(random.integers(0, 2, (16, 16)).repeat(16, 0).repeat(16, 1).astype(np.float32)))
    return torch.stack(made)


def _grained(picture: np.ndarray, seed: int) -> np.ndarray:
    return np.asarray(picture * np.random.default_rng(seed).normal(1, 0.02, picture.shape), np.float16)


class Shot:
    """As much of a `Plate` as `Steady` asks for: the portrait, standing still, with other grain in each frame."""

    def __init__(self, plate: Plate, numbers: range) -> None:
        picture, self.landmarks = plate[0][::2, ::2], plate[1] / 2
        raster = Box(0, 0, picture.shape[1], picture.shape[0])
        self.read_frames: list[int] = []
        self.decision = SimpleNamespace(space="lin_rec709_scene")
        self.codes, self.first = None, SimpleNamespace(pixel_aspect=1.0, data_window=raster)
        self.sequence = SimpleNamespace(files={n: Path(f"{n}.exr") for n in numbers}, path=lambda n: Path(f"{n}.exr"))
        self._made = {n: Frame(_grained(picture, n), "lin_rec709_scene", raster, raster, number=n) for n in numbers}

    def read(self, source: Any, window: Box | None = None) -> Frame:
        self.read_frames.append(source.number)
        return self._made[source.number]

    def face(self) -> PlannedFace:
        seen = {n: Observation(n, self.landmarks, 1.0, Origin.DETECTED, 0.0) for n in self.sequence.files}
        return PlannedFace(Track(1, seen), somebody(), 1.0)


def test_a_jobs_mattes_are_steady_and_the_same_whatever_it_covers(plate: Plate) -> None:
    shot = Shot(plate, range(1, 13))
    engine = NeuralEngine(
        "with matte", engine_of(StandIn(posterised)).swapper, lambda identity, space: None, mattes=[noise_of]
    )
    pipeline = FacePipeline(ColourConfig.open(), engine, torch.device("cpu"))
    face, hashes = shot.face(), SimpleNamespace(get=str)
    whole = Steady(shot, hashes)  # type: ignore[arg-type]

    def keep(steady: Steady, number: int) -> np.ndarray:
        (task,) = steady.tasks([(face, face.task(face.seen(number), SwapSettings()))], pipeline)
        assert task.mattes is not None
        return np.asarray(task.mattes["keep"])

    made = {n: keep(whole, n) for n in shot.sequence.files}
    assert sorted(shot.read_frames) == list(range(1, 13))  # each once, for seven frames each
    for n in (1, 6, 12):  # another run, another process, a part
        assert np.array_equal(keep(Steady(shot, hashes), n), made[n])  # type: ignore[arg-type]
    steady = np.stack([made[n] for n in range(4, 10)])
    assert steady.var(0).mean() < 0.25 / 4  # what is 0 or 1 by chance has 0.25
    assert whole.key(face, 6, engine) != whole.key(face, 7, engine)
    assert len(whole.key(face, 6, engine)) == 7
    assert len(whole.key(face, 2, engine)) == 3  # one on both sides
    off = face.task(face.seen(5), SwapSettings(strength=0.0))
    assert whole.tasks([(face, off)], pipeline)[0].mattes is None
