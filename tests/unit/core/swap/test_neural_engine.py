"""The neural engine with nets whose answer is known, on NASA's astronaut."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from faceplate.colour.model_view import encode_display
from faceplate.colour.spaces import ColourConfig
from faceplate.errors import IdentityError, NumbersError
from faceplate.face import Observation, Origin
from faceplate.frame import Box, Frame
from faceplate.job import SwapSettings
from faceplate.pipeline import FacePipeline, FaceTask
from faceplate.swap.base import FaceCrop, FaceResult, ShotEngine, ShotSolve
from faceplate.swap.neural.engine import NeuralEngine
from tests.support.stand_in import StandIn, engine_of, posterised, somebody, warmer

Plate = tuple[np.ndarray, np.ndarray]


def crop_of(
    engine: NeuralEngine, plate: Plate, *, yaw: float = 0.0, solve: Any = None, mattes: Any = None, **settings: Any
) -> FaceCrop:
    picture, landmarks = plate
    chosen = SwapSettings(**settings)
    raster = Box(0, 0, picture.shape[1], picture.shape[0])
    window = engine.window(landmarks, chosen).intersect(raster)
    rows, columns = window.slices(raster)
    view = torch.from_numpy(np.ascontiguousarray(picture[rows, columns].transpose(2, 0, 1), np.float32))
    moved = (landmarks - np.array([window.x0, window.y0, 0], np.float32)).astype(np.float32)
    return FaceCrop(view, window, moved, 1.0, yaw, chosen, None, 1, solve=solve, mattes=mattes)


def swap(engine: NeuralEngine, crop: FaceCrop) -> FaceResult:
    return engine.swap([crop], engine.prepare(somebody()))[0]


def test_it_is_an_engine_of_shots() -> None:
    assert isinstance(engine_of(StandIn(warmer)), ShotEngine)


def test_a_net_that_changes_nothing_leaves_skin_as_it_was(plate: Plate) -> None:
    engine = engine_of(StandIn(lambda pictures: pictures))
    crop = crop_of(engine, plate)
    made = swap(engine, crop)
    inside = made.matte_core > 0.99
    assert inside.float().mean() > 0.1
    before, after = (encode_display(picture)[:, inside] for picture in (crop.view, made.edited))
    assert (before - after).abs().mean() < 0.02  # what the crop was too coarse for
    assert abs(float(after.mean() / before.mean()) - 1) < 0.01
    # grain comes over
    fine = [picture[:, 1:, :] - picture[:, :-1, :] for picture in (crop.view, made.edited)]
    assert 0.6 < float(fine[1][:, inside[1:]].std() / fine[0][:, inside[1:]].std()) < 1.2


def test_outside_the_matte_nothing_changes_and_the_matte_is_no_square(plate: Plate) -> None:
    engine = engine_of(StandIn(posterised))
    crop = crop_of(engine, plate)
    made = swap(engine, crop)
    assert torch.equal(made.edited[:, made.matte_core == 0], crop.view[:, made.matte_core == 0])
    rows, columns = (made.matte_core > 0.5).nonzero().T
    box = int(rows.max() - rows.min() + 1) * int(columns.max() - columns.min() + 1)
    assert 0.6 < len(rows) / box < 0.9  # an oval fills pi / 4 of its box
    assert made.matte_core[0].max() == made.matte_core[:, 0].max() == 0
    assert made.st is not None
    assert (made.st.sum(0)[made.matte_core > 0.5] > 0).all()


def test_a_cast_of_the_net_is_taken_out_unless_told_not_to(plate: Plate) -> None:
    engine = engine_of(StandIn(warmer))
    casts = []
    for colour in (1.0, 0.0):
        crop = crop_of(engine, plate, colour=colour)
        made = swap(engine, crop)
        inside = made.matte_core > 0.99
        means = [picture[:, inside].mean(1) for picture in (made.edited, crop.view)]
        ratio = means[0] / means[1]
        casts.append(float(ratio[0] / ratio[2]))
    assert casts[0] == pytest.approx(1.0, abs=0.02)
    assert casts[1] > 1.3


def test_what_was_settled_for_the_shot_holds_in_every_frame(plate: Plate) -> None:
    engine = engine_of(StandIn(warmer))
    settled = ShotSolve((1.0, 1.25, 1.0), 3, 5)
    made = swap(engine, crop_of(engine, plate, solve=settled))
    assert {
        name: float(made.facts[name]) for name in ("gain_red", "gain_green", "boost", "model_px", "solved_over")
    } == {
        "gain_red": 1.0,
        "gain_green": 1.25,
        "boost": 3.0,
        "model_px": 384.0,
        "solved_over": 5.0,
    }


def test_looks_are_settled_by_their_median_and_the_largest_boost(plate: Plate) -> None:
    engine = engine_of(StandIn(warmer))
    look = engine.look(crop_of(engine, plate), engine.prepare(somebody()))
    assert look.weight > 100
    odd = dataclasses.replace(look, made=(look.made[0] * 3, *look.made[1:]), boost=4)
    lost = dataclasses.replace(look, weight=0.0)
    solved = engine.solve([look, odd, look, lost])
    assert solved == dataclasses.replace(engine.solve([look]), boost=4, looks=3)
    assert solved.gain[0] < 1 < solved.gain[2]
    assert engine.solve([]) == ShotSolve((1.0, 1.0, 1.0), 1, 0)


def test_boost_follows_the_faces_size_and_is_one_batch(plate: Plate) -> None:
    net = StandIn(posterised)
    engine = engine_of(net)
    large = crop_of(engine, plate)  # its square covers 297 px
    small = crop_of(engine, (plate[0][::4, ::4], plate[1] / 4))
    results = engine.swap([large, small], engine.prepare(somebody()))
    assert [float(result.facts["boost"]) for result in results] == [2.0, 1.0]
    assert net.runs == [5]  # 2 x 2 and 1
    assert float(swap(engine, crop_of(engine, plate, boost=1)).facts["boost"]) == 1.0


def test_less_memory_means_smaller_batches_and_the_same_picture(plate: Plate) -> None:
    net = StandIn(posterised)
    engine = engine_of(net)
    crop = crop_of(engine, plate, boost=4)
    whole = swap(engine, crop)
    part = swap(engine.smaller(4), crop)
    assert net.runs == [16, 4, 4, 4, 4]
    assert torch.equal(whole.edited, part.edited)


def test_several_people_in_one_batch_are_what_each_is_alone(plate: Plate) -> None:
    engine = engine_of(StandIn(posterised))
    crops = [crop_of(engine, plate, boost=1), crop_of(engine, (plate[0][::2, ::2], plate[1] / 2), boost=1)]
    who = [engine.prepare(somebody()), engine.prepare(somebody("else"))]
    for together, crop in zip(engine.swap_together(crops, who), crops, strict=True):
        assert torch.equal(together.edited, swap(engine, crop).edited)


def test_a_nets_own_matte_decides_inside_the_face(plate: Plate) -> None:
    def lower_half(pictures: torch.Tensor) -> torch.Tensor:
        mask = torch.ones_like(pictures[:, :1])
        mask[:, :, : mask.shape[2] // 3] = 0.0
        return mask

    engine = engine_of(StandIn(posterised, lower_half, "hyperswap_1a_256"))
    made = swap(engine, crop_of(engine, plate))
    whole = swap(engine_of(StandIn(posterised)), crop_of(engine, plate))
    assert float(made.facts["matte_guarded"]) < 0.2
    assert made.matte_core.sum() < 0.95 * whole.matte_core.sum()
    assert bool((made.matte_core <= whole.matte_core.clamp(min=0.02) + 0.15).float().mean() > 0.98)


def test_a_matte_that_collapses_is_caught_by_the_faces_shape(plate: Plate) -> None:
    lost = engine_of(StandIn(posterised, lambda pictures: torch.full_like(pictures[:, :1], 0.05), "hyperswap_1a_256"))
    made = swap(lost, crop_of(lost, plate))
    plain = engine_of(StandIn(posterised, lambda pictures: torch.ones_like(pictures[:, :1]), "hyperswap_1a_256"))
    assert float(made.facts["matte_guarded"]) == 1.0
    assert torch.allclose(made.matte_core, swap(plain, crop_of(plain, plate)).matte_core, atol=0.02)


def test_a_turned_head_fades_and_then_costs_nothing(plate: Plate) -> None:
    net = StandIn(posterised)
    engine = engine_of(net)
    full, half, gone = (swap(engine, crop_of(engine, plate, yaw=yaw, boost=1)) for yaw in (0.0, 62.5, 80.0))
    assert float(half.matte_core.max()) == pytest.approx(0.5 * float(full.matte_core.max()), abs=0.02)
    assert float(gone.matte_core.max()) == 0
    assert net.runs == [1, 1]


def test_a_matte_net_keeps_what_lies_before_the_face(plate: Plate) -> None:
    swapper = engine_of(StandIn(posterised)).swapper  # the same net, with a matte beside it

    def left(crops: torch.Tensor) -> torch.Tensor:
        keep = torch.ones_like(crops[:, 0])
        keep[:, :, : keep.shape[2] // 2] = 0.0
        return keep

    engine = NeuralEngine("with matte", swapper, lambda identity, space: None, mattes=[left])
    made = swap(engine, crop_of(engine, plate))
    rows, columns = (made.matte_core > 0.9).nonzero().T
    middle = int(columns.float().mean())
    assert made.matte_occluder[rows, columns][columns < middle - 20].mean() > 0.9
    assert made.matte_occluder[rows, columns][columns > middle + 20].mean() < 0.2
    blind = swap(engine, crop_of(engine, plate, occluders=False))
    assert float(blind.matte_occluder.max()) == 0


def test_another_engines_identity_is_refused(plate: Plate) -> None:
    engine = engine_of(StandIn(posterised))
    with pytest.raises(IdentityError, match="prepared by another engine"):
        engine.swap([crop_of(engine, plate)], object())  # type: ignore[arg-type]


def test_an_identity_without_the_vector_is_told_which(plate: Plate) -> None:
    engine = engine_of(StandIn(posterised))
    nobody = dataclasses.replace(somebody(), embeddings={"other": np.ones(512, np.float32)})
    with pytest.raises(IdentityError, match="embedding of w600k_r50; found other"):
        engine.prepare(nobody)


@pytest.mark.parametrize("packed", [False, True])
def test_a_frame_crosses_once_each_way_and_is_the_plates_outside(plate: Plate, packed: bool) -> None:
    picture, landmarks = plate
    pixels = np.concatenate([picture, picture], 1).astype(np.float16)
    pixels[::7, ::5] = (np.nan, np.inf, -0.0)
    frame = Frame(
        pixels, "lin_rec709_scene", Box(0, 0, *pixels.shape[1::-1]), Box(0, 0, *pixels.shape[1::-1]), number=7
    )
    config = ColourConfig.open()
    net = StandIn(posterised)
    pipeline = FacePipeline(config, engine_of(net), torch.device("cpu"), packed=packed)
    right = landmarks + np.array([picture.shape[1], 0, 0], np.float32)
    tasks = [
        FaceTask(
            track,
            Observation(7, points.astype(np.float32), 1.0, Origin.DETECTED, 0.0),
            somebody(name),
            SwapSettings(boost=1),
            1.0,
        )
        for track, (points, name) in enumerate([(landmarks, "left"), (right, "right")], 1)
    ]
    holdout = np.zeros(pixels.shape[:2], np.float32)
    made = pipeline.process(frame, tasks, holdout)
    assert (made.copies["up"], made.copies["down"]) == (1, 1)
    assert made.copies["bytes_up"] < 1.05 * pixels.nbytes * 10 / 6
    assert net.runs == [2]
    assert set(made.identities) == {"left", "right"}
    matte = np.zeros(pixels.shape[:2], np.float32)
    matte[made.window.slices(frame.data_window)] = made.matte
    np.testing.assert_array_equal(made.pixels.view(np.uint16)[matte == 0], pixels.view(np.uint16)[matte == 0])
    assert (made.pixels.view(np.uint16)[matte > 0] != pixels.view(np.uint16)[matte > 0]).any(1).mean() > 0.9
    assert made.facts[1].keys() == made.facts[2].keys()
    assert all(isinstance(value, float) for value in made.facts[1].values())
    if packed:
        plain = FacePipeline(config, engine_of(StandIn(posterised)), torch.device("cpu")).process(frame, tasks, holdout)
        np.testing.assert_array_equal(plain.pixels.view(np.uint16), made.pixels.view(np.uint16))
        np.testing.assert_array_equal(plain.face, made.face)


@pytest.mark.parametrize("share", [0.0, 0.6])
def test_a_net_that_gives_nan_fails_the_frame_and_does_not_settle_the_shot(plate: Plate, share: float) -> None:
    def broken(pictures: torch.Tensor) -> torch.Tensor:
        made = pictures.clone()
        made[..., int(share * made.shape[-2]) :, :] = float("nan")
        return made

    engine = engine_of(StandIn(broken))
    look = engine.look(crop_of(engine, plate), engine.prepare(somebody()))
    assert engine.solve([look]) == ShotSolve((1.0, 1.0, 1.0), look.boost, 0)
    picture, landmarks = plate
    pixels = np.ascontiguousarray(picture, np.float16)
    raster = Box(0, 0, pixels.shape[1], pixels.shape[0])
    frame = Frame(pixels, "lin_rec709_scene", raster, raster, number=1)
    task = FaceTask(1, Observation(1, landmarks, 1.0, Origin.DETECTED, 0.0), somebody(), SwapSettings(boost=1), 1.0)
    pipeline = FacePipeline(ColourConfig.open(), engine, torch.device("cpu"))
    with pytest.raises(NumbersError, match="gave no picture for this frame"):
        pipeline.process(frame, [task], out=frame.pixels)
    assert np.array_equal(frame.pixels, np.asarray(picture, np.float16))  # not half written
