from __future__ import annotations

from collections.abc import Iterable

import cv2
import numpy as np

from faceplate.faces.cuts import CutFinder


def scene(seed: int) -> np.ndarray:
    """(180, 480, 3) blobs of colour."""
    noise = np.random.default_rng(seed).random((12, 30, 3)).astype(np.float32)
    return np.clip(cv2.resize(noise, (480, 180), interpolation=cv2.INTER_CUBIC), 0, 1)


def cuts(pictures: Iterable[np.ndarray], same_face: bool | None = None, spans: bool = False) -> tuple[int, ...]:
    finder = CutFinder()
    for frame, picture in enumerate(pictures, 1001):
        finder.add(frame, picture)
    return finder.cuts(lambda _: same_face, lambda _before, _after: spans)


def still(seed: int, count: int) -> list[np.ndarray]:
    random = np.random.default_rng(seed + 100)
    return [scene(seed)[:, :320] + random.normal(0, 0.02, (180, 320, 3)).astype(np.float32) for _ in range(count)]


def test_a_cut_is_the_first_frame_of_what_follows() -> None:
    assert cuts(still(1, 6) + still(2, 6)) == (1007,)
    assert cuts(still(1, 6) + still(2, 4) + still(3, 5)) == (1007, 1011)


def test_a_cut_at_the_second_and_at_the_last_frame() -> None:
    assert cuts(still(1, 1) + still(2, 6)) == (1002,)
    assert cuts(still(1, 6) + still(2, 1)) == (1007,)


def test_grain_a_pan_and_a_fade_are_no_cuts() -> None:
    assert cuts(still(1, 10)) == ()
    assert cuts(scene(1)[:, x : x + 320] for x in range(0, 160, 12)) == ()
    a, b = scene(1)[:, :320], scene(2)[:, :320]
    assert cuts(a * (1 - t) + b * t for t in np.linspace(0, 1, 12)) == ()


def test_a_flash_is_no_cut() -> None:
    pictures = still(1, 9)
    pictures[4] = np.full_like(pictures[4], 0.98)
    assert cuts(pictures) == ()


def test_a_few_black_frames_are_no_cut_unless_another_picture_follows() -> None:
    black = [np.zeros((180, 320, 3), np.float32)] * 4
    assert cuts(still(1, 5) + black + still(1, 5)) == ()
    assert cuts(still(1, 5) + black + still(2, 5))[-1] == 1010
    assert cuts(still(1, 5) + black + still(2, 5), spans=True) == ()


def test_a_face_that_goes_on_says_no_and_one_that_breaks_off_says_yes() -> None:
    assert cuts(still(1, 6) + still(2, 6), same_face=True) == ()
    pan = [scene(1)[:, x : x + 320] for x in range(0, 160, 20)]
    assert cuts(pan, same_face=None) == ()
    assert set(cuts(pan, same_face=False)) <= set(range(1002, 1009))


def test_a_possible_cut_is_told_at_once() -> None:
    finder = CutFinder()
    told = [finder.add(frame, picture) for frame, picture in enumerate(still(1, 3) + still(2, 3))]
    assert told == [False, False, False, True, False, False]


def test_a_pan_does_not_ask_for_a_search_in_every_frame() -> None:
    finder = CutFinder()
    told = [finder.add(frame, scene(1)[:, x : x + 320]) for frame, x in enumerate(range(0, 160, 20))]
    assert sum(told[2:]) == 0
