"""A worker: one process on one device, which does frames and analyses for the server, until its stdin ends.

What a driver, a net's runtime or an image library does to its process (a fault of the device, a segmentation fault, the
kernel's out-of-memory killer) ends this process alone; the server starts another (`crew.py` has the other end).

| from the server | |
|---|---|
| start | settings, the first message |
| frame | a job for one frame, its slots taken |
| range | one frame of a range: what all of them have in common, its faces and its file |
| analyse | a plate and frames to look for faces in |
| cancel, go | stop a job within its frame; an analysis may go on with its next frame |
| let_go | rings that are no more |
| stop | finish what is at work and exit |

| to the server | |
|---|---|
| ready, failed | after start |
| event, note, turn | of a job; an analysis asks for its turn before each frame |
| end | of a job: its value, its failure, or that it was cancelled; and what is warm |
| log | a record for the server's log |
"""

from __future__ import annotations

import dataclasses
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Any

from faceplate.cli.options import open_workbench
from faceplate.errors import Cancelled, FaceplateError
from faceplate.faces.nets import FaceNets
from faceplate.jobs.analyse import analyse_plate
from faceplate.jobs.cancel import CancelToken
from faceplate.jobs.engines import make_engine, torch_device
from faceplate.jobs.frame_memory import FrameMemory
from faceplate.jobs.manifest import FrameRecord
from faceplate.jobs.plan import PlannedFace, looks
from faceplate.jobs.spec import MESH, Workbench
from faceplate.jobs.steady import LookMemory
from faceplate.models.sessions import SessionPool
from faceplate.pipeline import FacePipeline
from faceplate_client import wire
from faceplate_client.errors import ClientError

from ..errors import Refused, to_failure
from ..frames.bridge import SlotsInHand
from ..frames.job import NULL_ENGINE, FrameJobs
from ..frames.ranges import RangeFrames
from ..jobs import Job
from ..rings import RingTable
from ..roots import Roots
from .memory import process_mb
from .pipe import Pipe, PipeClosed
from .turns import StepGate
from .warm import WarmCache, WarmMapping, WarmNets

log = logging.getLogger(__name__)


class WorkerProcess:
    """The worker's state.

    Args:
        pipe: to the server.
        start: the message of that name.

    Raises:
        ResourceError: the device or a net is not available.
        ColourSpaceError: the OCIO configuration cannot be loaded.
    """

    def __init__(self, pipe: Pipe, start: Mapping[str, Any]) -> None:
        self._pipe = pipe
        self.cache = WarmCache(start["warm_bytes"])
        bench = open_workbench(device=start["device"], threads=start["threads"])
        self._warm_nets = WarmNets(self.cache)
        self._pools: dict[bool, SessionPool] = {}
        self._pipelines: dict[tuple[str, bool], FacePipeline] = {}
        self._lock = threading.Lock()
        self.bench = bench
        roots = Roots(Path(root) for root in start["roots"])
        self._rings = RingTable(start["folder"], start["limits"])
        looks = LookMemory()
        self._frames = FrameJobs(roots, self.cache, looks)
        self._range = RangeFrames(self.cache, bench.config, looks)
        self._memory = FrameMemory(lambda: self.cache.shrink(0))
        self._gate = StepGate()
        self._tokens: dict[int, CancelToken] = {}
        self._turns: dict[int, threading.Event] = {}
        self._table: Mapping[str, Callable[[int, Mapping[str, Any]], Any]] = {
            "frame": self._do_frame,
            "range": self._do_range,
            "analyse": self._do_analyse,
            "look": self._do_look,
        }
        fast = ThreadPoolExecutor(bench.threads, "interactive frame")
        back = partial(_step_back, start["nice"])
        slow = ThreadPoolExecutor(bench.threads, "batch frame", initializer=back)
        shots = ThreadPoolExecutor(start["shots"], "analysis", initializer=back)
        self._lanes = {"fast": fast, "slow": slow, "shots": shots}

    def warm_up(self) -> None:
        """Load what every job needs."""
        pool = self._pool(commercial=False)
        FaceNets.load(pool)
        for net in pool.loaded:
            net.warm_up()
        self._pipeline(MESH, commercial=False)

    def serve(self) -> None:
        """Work until told to stop.

        Raises:
            PipeClosed: the server is gone.
        """
        device = self.bench.nets.device
        self._pipe.send({"say": "ready", "device": device, "threads": self.bench.threads, "state": self._state()})
        while True:
            message = self._pipe.receive()
            match message["do"]:
                case "stop":
                    for lane in self._lanes.values():
                        lane.shutdown()
                    return
                case "cancel":
                    self._cancel(message["n"])
                case "go":
                    self._turns[message["n"]].set()
                case "let_go":
                    self._rings.let_go(message["rings"])
                case _:
                    self._tokens[message["n"]] = CancelToken()
                    self._turns[message["n"]] = threading.Event()
                    self._lanes[message["lane"]].submit(self._work, message)

    def _cancel(self, number: int) -> None:
        token, turn = self._tokens.get(number), self._turns.get(number)
        if token is not None and turn is not None:
            token.cancel()
            turn.set()

    def _work(self, message: Mapping[str, Any]) -> None:
        number = message["n"]
        end: dict[str, Any] = {"say": "end", "n": number}
        try:
            end["value"] = self._table[message["do"]](number, message)
        except Cancelled:
            end["cancelled"] = True
        except (Refused, FaceplateError, ClientError) as error:
            end["failure"] = to_failure(error)
        except Exception as error:
            log.exception("a worker met a fault")
            end["failure"] = to_failure(error)
        del self._tokens[number], self._turns[number]
        try:
            self._pipe.send({**end, "state": self._state()})
        except PipeClosed:
            os._exit(1)  # the server is gone, and with it whoever asked

    def _state(self) -> dict[str, Any]:
        with self._lock:
            nets = [net for pool in self._pools.values() for net in pool.loaded]
        return {
            "nets": [(net.card.id, str(net.device), net.provider, net.precision, net.size) for net in nets],
            "warm_bytes": self.cache.total,
            "memory_mb": process_mb(children=False),
        }

    # The jobs

    def _do_frame(self, number: int, message: Mapping[str, Any]) -> dict[str, Any]:
        job = Job(message["job"], b"", message["client"], self._tokens[number])
        commercial = job.message.commercial
        bench = self._bench(commercial=commercial)
        told: set[tuple[str, str]] = set()

        def note(level: str, text: str) -> None:
            if (level, text) not in told:
                told.add((level, text))
                self._pipe.send({"say": "note", "n": number, "level": level, "text": text})

        def attempt(pipeline: FacePipeline) -> tuple[wire.FrameResult, SlotsInHand]:
            slots = SlotsInHand(self._rings)
            return self._frames.run(job, bench, pipeline, slots, note), slots

        engine = MESH if job.message.engine == NULL_ENGINE else job.message.engine
        with self._gate.interactive() if message["lane"] == "fast" else nullcontext():
            (result, slots), smaller = self._memory.run(attempt, self._pipeline(engine, commercial=commercial))
        if smaller is not None:
            note("warning" if smaller.tiles else "note", f"frame {result.frame}: {smaller.text}")
            result = dataclasses.replace(result, facts={**result.facts, **smaller.facts})
        return {"result": result, "slots": slots.results}

    def _do_range(self, _: int, message: Mapping[str, Any]) -> Any:
        work = self._range.work(message)
        if isinstance(work, tuple):
            return {"wanted": work}
        pipeline = self._pipeline(message["engine"], commercial=message["commercial"])
        source = message["source"]

        def attempt(given: FacePipeline) -> FrameRecord:
            self._gate.step()
            one = work(given)

            def write(*what: Any) -> None:
                self._gate.step()  # the longest step of most frames
                one.write(*what)

            return dataclasses.replace(one, write=write).run(source)

        record, smaller = self._memory.run(attempt, pipeline)
        if smaller is None:
            return {"record": record, "note": None}
        return {"record": smaller.marked(record), "note": smaller.text}

    def _do_look(self, _: int, message: Mapping[str, Any]) -> Any:
        plate = self._range.plate(message["job"], message["pattern"], message["space"])
        pipeline = self._pipeline(message["engine"], commercial=message["commercial"])
        planned = PlannedFace(message["track"], message["identity"], message["exposure"])
        return {"looks": looks(plate, planned, pipeline, message["frames"])}

    def _do_analyse(self, number: int, message: Mapping[str, Any]) -> Any:
        plate = self._range.plate(message["job"], message["pattern"], message["space"])
        token, turn = self._tokens[number], self._turns[number]

        @contextmanager
        def in_turn() -> Any:
            turn.clear()
            self._pipe.send({"say": "turn", "n": number})
            while not turn.wait(1.0) and not token.is_cancelled:
                continue
            yield

        bench = dataclasses.replace(self._bench(commercial=message["commercial"]), turn=in_turn)
        emit = partial(self._event, number)
        return analyse_plate(plate, message["frames"], bench, message["settings"], emit, token)

    def _event(self, number: int, event: Mapping[str, Any]) -> None:
        self._pipe.send({"say": "event", "n": number, "event": dict(event)})

    # What they share

    def _pool(self, *, commercial: bool) -> SessionPool:
        with self._lock:
            if commercial not in self._pools:
                device = self.bench.nets.device
                self._pools[commercial] = SessionPool(
                    device=device, threads=1, commercial=commercial, used=self._warm_nets
                )
            return self._pools[commercial]

    def _bench(self, *, commercial: bool) -> Workbench:
        return dataclasses.replace(self.bench, nets=self._pool(commercial=commercial))

    def _pipeline(self, name: str, *, commercial: bool) -> FacePipeline:
        bench = self._bench(commercial=commercial)
        with self._lock:
            found = self._pipelines.get((name, commercial))
            if found is None:
                prepared = WarmMapping(self.cache, f"prepared {name}")
                found = FacePipeline(bench.config, make_engine(name, bench), torch_device(bench), prepared)
                self._pipelines[name, commercial] = found
            return found


def _step_back(nice: int) -> None:
    """Let interactive frames, and the artist's other programs, have the cores first. On Linux a thread has a priority
    of its own, and the threads that it starts inherit it; elsewhere that would be the whole process's.
    """
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), nice)


class _ToServer(logging.Handler):
    """Sends records to the server, whose log has one writer."""

    def __init__(self, pipe: Pipe) -> None:
        super().__init__(logging.INFO)
        self._pipe = pipe

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._pipe.send({"say": "log", "level": record.levelno, "name": record.name, "text": self.format(record)})
        except PipeClosed:
            self.handleError(record)


def _own_streams() -> tuple[IO[bytes], IO[bytes]]:
    """Stdin and stdout for the pipe alone: what a library prints goes to stderr."""
    reading, writing = os.fdopen(os.dup(0), "rb", 0), os.fdopen(os.dup(1), "wb", 1 << 16)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return reading, writing


def main() -> int:
    """Run a worker; the server alone calls it."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the server gets them too and says what to do
    pipe = Pipe(*_own_streams())
    logging.basicConfig(level=logging.INFO, handlers=[_ToServer(pipe)], force=True)
    try:
        start = pipe.receive()
        try:
            worker = WorkerProcess(pipe, start)
            worker.warm_up()
        except Exception as error:
            if not isinstance(error, FaceplateError):
                log.exception("a worker met a fault while it started")
            pipe.send({"say": "failed", "failure": to_failure(error)})
            return 1
        worker.serve()
    except PipeClosed:
        os._exit(1)  # no frame is wanted any more; what is half written lies under a temporary name
    return 0


if __name__ == "__main__":
    sys.exit(main())
