"""A movie encoded while its frames are made: order, how far frames run ahead, and every way that it can end."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faceplate.errors import OutputError
from faceplate.job import FrameState
from faceplate.jobs.alongside import _AHEAD, MovieAlongside, Ready
from faceplate.jobs.cancel import CancelToken
from faceplate.jobs.events import Emit, progress
from faceplate.jobs.manifest import FrameRecord
from faceplate.plate import FrameSource


def source(number: int) -> FrameSource:
    return FrameSource(number, None, "present", number)


def record(number: int, state: FrameState = FrameState.DONE) -> FrameRecord:
    return FrameRecord(number, state, key="")


class Encoder:
    """Takes frames in the order shown, and notes how many were begun when."""

    def __init__(self, shown: Sequence[int]) -> None:
        self.shown = shown
        self.encoded: list[int] = []

    def __call__(self, ready: Ready, heard: Emit) -> None:
        for done, number in enumerate(self.shown, start=1):
            ready(number)
            self.encoded.append(number)
            heard(progress("encode", done, len(self.shown)))


def make(alongside: MovieAlongside, todo: Sequence[int], made: Callable[[int], FrameState], threads: int = 2) -> int:
    """As the frame loop does it; how far it ran ahead of what had ended."""
    alongside.begin([source(number) for number in todo])
    with ThreadPoolExecutor(threads) as pool:
        for number in todo:
            alongside.room()
            pool.submit(lambda n=number: alongside.seen(record(n, made(n))))
    return len(todo)


@settings(max_examples=40, deadline=None)
@given(
    count=st.integers(1, 30),
    kept=st.sets(st.integers(0, 29)),
    step=st.integers(1, 12),
    repeats=st.integers(1, 3),
    threads=st.integers(1, 4),
    seed=st.integers(0, 9),
)
def test_every_shown_frame_is_encoded_in_order(count, kept, step, repeats, threads, seed):
    """Also where the movie leaves frames out or repeats them, and where some are there already."""
    shown = [number for number in range(0, count, step) for _ in range(repeats)]
    encoder, chance = Encoder(shown), random.Random(seed)

    def made(number: int) -> FrameState:
        time.sleep(chance.random() * 0.002)
        return FrameState.DONE

    with MovieAlongside(encoder, shown, CancelToken()) as alongside:
        todo = [number for number in range(count) if number not in kept]
        make(alongside, todo, made, threads)
        assert alongside.finish(lambda event: None) == bool(todo)
    assert encoder.encoded == (shown if todo else [])


def test_frames_are_not_made_further_than_the_decoder_remembers():
    begun, encoded, furthest = [], [], []

    def encode(ready: Ready, heard: Emit) -> None:
        for number in range(40):
            ready(number)
            time.sleep(0.003)  # the encoder is the slow one
            encoded.append(number)
            furthest.append(len(begun) - len(encoded))
            heard(progress("encode", number + 1, 40))

    with MovieAlongside(encode, range(40), CancelToken()) as alongside:
        alongside.begin([source(number) for number in range(40)])
        for number in range(40):
            alongside.room()
            begun.append(number)
            alongside.seen(record(number))
        assert alongside.finish(lambda event: None)
    assert max(furthest) <= _AHEAD
    assert max(furthest) >= _AHEAD - 2


def test_a_frame_that_fails_ends_it_and_the_frames_go_on():
    encoder = Encoder(range(30))
    with MovieAlongside(encoder, range(30), CancelToken()) as alongside:
        states = {7: FrameState.FAILED}
        assert make(alongside, range(30), lambda number: states.get(number, FrameState.DONE)) == 30
        assert alongside.finish(lambda event: None) is False
    assert 7 not in encoder.encoded


@pytest.mark.parametrize("how", ["cancelled", "raised"])
def test_nothing_is_left_running(how):
    token, encoder = CancelToken(), Encoder(range(9))
    before = threading.active_count()

    def whole() -> None:
        with MovieAlongside(encoder, range(9), token) as alongside:
            alongside.begin([source(number) for number in range(9)])
            alongside.room()
            if how == "cancelled":
                token.cancel()
                for _ in range(3 * _AHEAD):
                    alongside.room()  # never waits any more
                return
            raise KeyError("the loop's own")

    if how == "raised":
        with pytest.raises(KeyError):
            whole()
    else:
        whole()
    assert encoder.encoded == []
    assert threading.active_count() == before


def test_what_the_encoder_meets_is_raised_where_the_job_waits():
    def full(ready: Ready, heard: Emit) -> None:
        ready(0)
        raise OutputError("the disk is full")

    with MovieAlongside(full, range(20), CancelToken()) as alongside:
        make(alongside, range(20), lambda number: FrameState.DONE)
        with pytest.raises(OutputError, match="full"):
            alongside.finish(lambda event: None)


def test_another_run_that_makes_the_movie_is_left_to_it():
    def held(ready: Ready, heard: Emit) -> None:
        raise BlockingIOError

    with MovieAlongside(held, range(20), CancelToken()) as alongside:
        make(alongside, range(20), lambda number: FrameState.DONE)
        assert alongside.finish(lambda event: None) is False
