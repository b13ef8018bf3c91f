"""A frame copied into the memory of its result, by several threads: one alone does not use what the memory can do."""

from __future__ import annotations

import dataclasses
import os
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise
from typing import Any

import numpy as np

from faceplate.frame import Frame

_THREADS = 4
_WORTH_IT = 4 << 20
"""Bytes of a band below which a thread costs more than it saves."""


class Copier:
    """Copies frames, with threads of its own besides the caller's. May be used from several threads.

    Args:
        threads: in all; 0 chooses by the machine.
    """

    def __init__(self, threads: int = 0) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._threads = threads or min(_THREADS, cores)
        self._pool = ThreadPoolExecutor(max(1, self._threads - 1), thread_name_prefix="copy")

    def copy(self, out: Any, source: Any) -> None:
        """`out[:] = source`, both (H, W, C) of one type, in bands of rows."""
        rows = out.shape[0]
        bands = max(1, min(self._threads, rows, source.nbytes // _WORTH_IT))
        edges = [rows * band // bands for band in range(bands + 1)]
        helped = [self._pool.submit(np.copyto, out[start:end], source[start:end]) for start, end in pairwise(edges[1:])]
        try:
            np.copyto(out[: edges[1]], source[: edges[1]])
        finally:
            wait(helped)  # whatever happens, nobody writes into the slot after it was handed back
        for one in helped:
            one.result()

    def moved(self, frame: Frame, out: Any) -> Frame:
        """The frame in other memory, where its pixels then are; itself where it is there already."""
        if np.may_share_memory(out, frame.pixels):
            return frame
        self.copy(out, frame.pixels)
        return dataclasses.replace(frame, pixels=out)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()
