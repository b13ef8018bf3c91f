"""Real frames: what the server adds to the pipeline, and how long a person waits while a batch runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from faceplate_client import Client, FrameHeader, Ring, wire

from .statistics import QUIET, Figures, median, percentile, seconds_of

_RUNS = 40
_WARM = 6
_LOADED = 60
_FRAME_S = 60.0


@dataclass(frozen=True)
class Shot:
    """What the frames are of.

    Attributes:
        plate: pattern, with its sidecar beside it.
        number: of the frame that is asked for again and again.
        pixels: (H, W, 4) float32, that frame.
        space: its colour space.
        identity: file.
    """

    plate: str
    number: int
    pixels: np.ndarray[tuple[int, ...], np.dtype[np.float32]]
    space: str
    identity: Path

    @property
    def people(self) -> tuple[wire.Assignment, ...]:
        return (wire.Assignment(str(self.identity)),)


class Viewer:
    """A host's viewer: one frame after the other, in its own slot.

    Args:
        client: of the server.
        ring: with a slot that holds the frame.
        shot: what is looked at.
    """

    def __init__(self, client: Client, ring: Ring, shot: Shot) -> None:
        self._client, self._ring, self._shot = client, ring, shot
        height, width, _ = shot.pixels.shape
        self._header = FrameHeader(width, height, colour_space=shot.space, frame=shot.number)

    def look(self) -> tuple[float, float, float]:
        """(seconds from the submission to the result, of the worker in it, of the pipeline in that)."""
        plate = self._ring.put(self._header, self._shot.pixels)
        ends: list[wire.FrameResult] = []

        def ask() -> None:
            job = self._client.submit_frame(
                frame=self._shot.number,
                plate=plate,
                source=self._shot.plate,
                assignments=self._shot.people,
                priority="interactive",
            )
            end = self._client.result(job, _FRAME_S)
            assert isinstance(end, wire.FrameResult)
            ends.append(end)

        whole = seconds_of(ask)
        self._ring.release(plate.slot)
        if ends[0].state != "done" or ends[0].facts["faces_from"] != "sidecar":
            raise AssertionError(f"the bench's frame has no face, or none from its sidecar: {dict(ends[0].facts)}")
        return whole, ends[0].timings_ms["total"] / 1e3, ends[0].timings_ms["swap"] / 1e3


def share(client: Client, folder: Path, shot: Shot) -> Figures:
    """The server's share of a frame: all of it, as its client sees it, that is not the pipeline. Part of it is the
    worker's, who takes slots, checks consent, finds the faces in the sidecar; the rest is messages and threads.
    """
    with Ring.create(1, shot.pixels.nbytes, folder) as ring:
        viewer = Viewer(client, ring, shot)
        rows = [viewer.look() for _ in range(_WARM + _RUNS)][_WARM:]
        client.release(ring)
    rest = [whole - swap for whole, _, swap in rows]
    return {
        "frame, ms": round(1e3 * median([whole for whole, _, _ in rows]), 2),
        "pipeline, ms": round(1e3 * median([swap for _, _, swap in rows]), 2),
        "messages and threads, median ms": round(1e3 * median([whole - total for whole, total, _ in rows]), 2),
        "the server's share, median ms": round(1e3 * median(rest), 2),
        "the server's share, p90 ms": round(1e3 * percentile(rest, 90), 2),
        "the server's share, least disturbed tenth, ms": round(1e3 * percentile(rest, QUIET), 2),
    }


def under_load(client: Client, batch: Client, folder: Path, shot: Shot, output: str) -> Figures:
    """A viewer's frames with nothing else to do, and while a batch has every thread.

    Args:
        client: the viewer's.
        batch: of the batch; its plate is long enough to last.
        folder: for the frame ring.
        shot: what both work on.
        output: pattern for the batch's results.
    """
    with Ring.create(1, shot.pixels.nbytes, folder) as ring:
        viewer = Viewer(client, ring, shot)
        alone = [viewer.look()[0] for _ in range(_WARM + _RUNS)][_WARM:]
        job = batch.submit_range(plate=shot.plate, output=output, frames=None, assignments=shot.people)
        events = batch.events(job, 600)
        next(event for event in events if isinstance(event, wire.Partial))
        loaded: list[float] = []
        while client.status().jobs and len(loaded) < _LOADED:
            loaded.append(viewer.look()[0])
        ended = not client.status().jobs
        if not ended:
            batch.cancel(job)
        times = [event.timings_ms["frame"] for event in events if isinstance(event, wire.Partial)]
        client.release(ring)
    return {
        "alone, median ms": round(1e3 * median(alone), 1),
        "under load, median ms": round(1e3 * median(loaded), 1),
        "under load, p95 ms": round(1e3 * percentile(loaded, 95), 1),
        "p95 / alone": round(percentile(loaded, 95) / median(alone), 2),
        "frames under load": len(loaded),
        "the batch lasted": not ended,
        "a batch frame meanwhile, median ms": round(median(times), 1) if times else None,
    }
