"""What lies in front of a face over a whole shot: found where it is, when it is, and without flicker."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from faceplate.faces import occluders, rectify
from faceplate.faces.analyse import analyse_shot, analyse_single
from faceplate.faces.appearance import SIZE, AppearanceSampler, light_texture
from faceplate.faces.shot import AnalyseSettings
from tests.support.plates import SyntheticPlate, moving_plate
from tests.unit.core.faces.made import nets, view

FRAMES = 24
COVERED = rectify.coverage(SIZE)
Maps = np.ndarray


@functools.cache
def plate() -> SyntheticPlate:
    noisy = moving_plate(640, 400, FRAMES, face_width_px=220, motion="linear", travel_px=60, grain=0.08)
    return noisy.with_occluder("microphone")


@functools.cache
def maps() -> tuple[Maps, Maps, Maps]:
    """(frames, SIZE, SIZE) 0..1 each: steadied, each frame alone, truth."""
    seen = AppearanceSampler()
    for frame in plate().numbers:
        seen.add(frame, light_texture(view(plate(), frame), plate().truth_landmarks(frame)))
    usual = seen.result(frozenset(plate().numbers))
    steady = occluders.covers(seen, usual, list(plate().numbers))
    alone = [occluders.cover_alone(texture, usual) for f in plate().numbers if (texture := seen.texture(f)) is not None]
    truth = [
        rectify.rectify(plate().occluder_matte(f), plate().truth_landmarks(f), SIZE) * COVERED for f in plate().numbers
    ]
    return np.stack(list(steady.values())) / 255.0, np.stack(alone) / 255.0, np.stack(truth)


def flicker(shown: Maps, where: np.ndarray) -> float:
    """Rms second difference in time over sqrt(6)."""
    second = shown[2:] - 2 * shown[1:-1] + shown[:-2]
    return float(np.sqrt((second[:, where] ** 2).mean() / 6))


def test_what_is_steadied_flickers_less_where_nothing_passes() -> None:
    steady, alone, truth = maps()
    calm = COVERED & (truth.max(0) < 0.01)
    assert calm.sum() > 1000
    assert flicker(alone, calm) > 0.02
    assert flicker(steady, calm) < 0.6 * flicker(alone, calm)


def test_a_passing_microphone_is_found_where_it_is_without_lag() -> None:
    steady, _, truth = maps()
    quiet = np.median(steady, 0) < 0.1  # her own fringe lies in front of her forehead in every frame
    found = (steady > 0.5) & quiet & COVERED
    wanted = (truth > 0.5) & quiet & COVERED

    def overlap(shift: int) -> float:
        a = found[max(0, shift) : FRAMES + min(0, shift)]
        b = wanted[max(0, -shift) : FRAMES + min(0, -shift)]
        return float((a & b).sum() / (a | b).sum())

    overlaps = {shift: overlap(shift) for shift in (-2, -1, 0, 1, 2)}
    assert overlaps[0] > 0.75
    assert max(overlaps, key=lambda shift: overlaps[shift]) == 0
    # the same distance behind and ahead: no lag of a part of a frame either
    assert overlaps[-1] == pytest.approx(overlaps[1], abs=0.08)


def test_an_edge_that_passes_is_not_moved_and_not_blurred() -> None:
    scores = [np.zeros((2, SIZE, SIZE), np.float32) for _ in range(9)]
    for frame, each in enumerate(scores):
        each[:, :, : 10 * frame] = 6.0
    for frame in range(9):
        np.testing.assert_allclose(occluders.steadied(scores, frame), scores[frame], atol=1e-4)


def test_noise_is_averaged_over_frames_before_and_after_alike() -> None:
    random = np.random.default_rng(0)
    scores = [random.normal(2.0, 0.3, (2, SIZE, SIZE)).astype(np.float32) for _ in range(7)]
    steady = occluders.steadied(scores, 3)
    assert steady.std() < 0.6 * 0.3
    np.testing.assert_allclose(occluders.steadied(scores[::-1], 3), steady, atol=1e-6)
    ramp = [np.full((2, SIZE, SIZE), 0.2 * frame, np.float32) for frame in range(7)]
    for frame in range(7):  # at the ends too
        np.testing.assert_allclose(occluders.steadied(ramp, frame), ramp[frame], atol=1e-6)


def test_equal_frames_stay_equal_to_the_bit_and_a_lone_one_is_itself() -> None:
    one = np.random.default_rng(0).normal(2.0, 1.0, (2, SIZE, SIZE)).astype(np.float32)
    for frame in range(5):
        assert np.array_equal(occluders.steadied([one] * 5, frame), one)
    assert np.array_equal(occluders.steadied([None, one, one], 1), one)


def test_analysis_brings_covers_and_leaves_a_lone_frame_without() -> None:
    short = moving_plate(512, 288, 8, face_width_px=120, motion="linear", travel_px=30, grain=0.02)
    shot = analyse_shot(list(short.numbers), lambda frame: view(short, frame), nets(), AnalyseSettings())
    (track,) = shot.tracks
    for seen in track.observations.values():
        assert seen.cover is not None
        assert seen.cover.shape == (SIZE, SIZE)
        assert seen.cover.dtype == np.uint8
    single = analyse_single(view(short), nets(), frame=1001)
    assert single.tracks[0].observations[1001].cover is None
