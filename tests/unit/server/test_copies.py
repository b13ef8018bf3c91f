"""Copies in bands give what one copy gives."""

from __future__ import annotations

import numpy as np
import pytest

from faceplate.frame import Box, Frame
from faceplate_server.frames import copies
from faceplate_server.frames.copies import Copier


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
@pytest.mark.parametrize("rows", [1, 2, 7, 64])
def test_bands_cover_every_row_once(monkeypatch: pytest.MonkeyPatch, threads: int, rows: int) -> None:
    monkeypatch.setattr(copies, "_WORTH_IT", 1)
    source = np.random.default_rng(rows).random((rows, 5, 4), np.float32)
    copier = Copier(threads)
    for out in (np.zeros_like(source), np.zeros_like(source)[::-1]):
        copier.copy(out, source)
        assert out.tobytes() == source.tobytes()
    copier.close()


def test_a_frame_moves_once_and_then_is_there() -> None:
    pixels = np.random.default_rng(1).random((8, 6, 4), np.float32)
    frame = Frame(pixels, "ACEScg", Box(2, 3, 8, 11), Box(0, 0, 20, 20), 1.5, 7)
    out = np.zeros_like(pixels)
    copier = Copier(2)
    moved = copier.moved(frame, out)
    assert np.array_equal(out, pixels)
    assert np.may_share_memory(moved.pixels, out)
    assert (moved.data_window, moved.display_window, moved.pixel_aspect, moved.number) == (
        frame.data_window,
        frame.display_window,
        1.5,
        7,
    )
    assert copier.moved(moved, out) is moved
    copier.close()


def test_a_fault_in_a_band_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "_WORTH_IT", 1)
    copier = Copier(3)
    with pytest.raises(ValueError, match="broadcast"):
        copier.copy(np.zeros((6, 4, 4), np.float32), np.zeros((6, 5, 4), np.float32))
    copier.close()
