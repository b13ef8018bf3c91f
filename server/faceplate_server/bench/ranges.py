"""A range of files on the server and without it: the processor time that a frame costs more by way of the server."""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from faceplate.deliver import parse_layers
from faceplate.job import Assignment
from faceplate.jobs.apply import run_apply
from faceplate.jobs.cancel import CancelToken
from faceplate.jobs.spec import ApplyJob, Workbench
from faceplate.plate import open_plate
from faceplate_client import Client, wire

from ..workers.memory import children_of
from .statistics import Figures, median
from .work import Shot

_RUNS = 8
_SHORT = 4
_JOB_S = 600.0


class RangeRuns:
    """The same range either way; what it costs once, at the start and the end of a job, falls out of the difference
    between a long and a short one.

    Args:
        client: of the server.
        bench: for the job without it.
        shot: what is worked on.
        folder: for results.
    """

    def __init__(self, client: Client, bench: Workbench, shot: Shot, folder: Path) -> None:
        self._client, self._bench, self._shot, self._folder = client, bench, shot, folder
        server = client.status().pid
        self._processes = [str(server), *children_of(server)]
        self._numbers = open_plate(shot.plate, bench.config).sequence.frames
        self._count = itertools.count()

    def on_server(self) -> float:
        """Processor milliseconds of a further frame in server, workers and client."""
        return self._further(self._by_server, lambda: _seconds_of(self._processes) + time.process_time())

    def alone(self) -> float:
        """Processor milliseconds of a further frame of the same job in one process."""
        return self._further(self._by_itself, time.process_time)

    def _further(self, work: Callable[[str, Path], None], clock: Callable[[], float]) -> float:
        first, last = self._numbers[0], self._numbers[-1]
        spent = []
        for end in (last, first + _SHORT - 1):
            out = self._folder / f"range{next(self._count)}"
            start = clock()
            work(f"{first}-{end}", out)
            spent.append(clock() - start)
            shutil.rmtree(out)
        return 1e3 * (spent[0] - spent[1]) / (len(self._numbers) - _SHORT)

    def _by_server(self, frames: str, out: Path) -> None:
        job = self._client.submit_range(
            plate=self._shot.plate, output=str(out / "out.####.exr"), frames=frames, assignments=self._shot.people
        )
        end = self._client.result(job, _JOB_S)
        if not isinstance(end, wire.Done) or end.counts.get("failed"):
            raise AssertionError(f"the bench's range failed: {end}")

    def _by_itself(self, frames: str, out: Path) -> None:
        people = (Assignment(self._shot.identity),)
        job = ApplyJob(self._shot.plate, str(out / "out.####.exr"), people, frames=frames, layers=parse_layers(None))
        run_apply(job, self._bench, lambda _: None, CancelToken())


def apply_share(client: Client, bench: Workbench, shot: Shot, folder: Path) -> Figures:
    """The server's share of a frame of `apply`: processor time, since frames run beside each other. Interleaved; the
    first pair warms up.
    """
    if not Path("/proc/self/stat").exists():
        return {"not measured": "this system does not tell the processor time of other processes"}
    runs = RangeRuns(client, bench, shot, folder)
    pairs = [(runs.on_server(), runs.alone()) for _ in range(_RUNS + 1)][1:]
    return {
        "on the server, ms of processor a frame": round(median([one for one, _ in pairs]), 1),
        "without it, ms of processor a frame": round(median([one for _, one in pairs]), 1),
        "the server's share, median ms": round(median([one - other for one, other in pairs]), 1),
    }


def _seconds_of(processes: list[str]) -> float:
    """Processor time of processes so far."""
    ticks = 0
    for pid in processes:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])  # proc(5): utime and stime
    return ticks / os.sysconf("SC_CLK_TCK")
