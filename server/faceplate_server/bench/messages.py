"""Control messages: the round trip of the leaf client to the server, over that of pyzmq to pyzmq."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import zmq

from faceplate_client import Client, wire

from .statistics import Figures, median, percentile, seconds_of

_BLOCKS = 300
_BLOCK = 10
_WARM = 200
_PAUSES = 60
_PAUSE_S = 0.04
"""About a frame's time: by then the processors sleep, and what they have to wake for is in no cache any more."""
_ANSWER_MS = 5000


@contextmanager
def _echo(folder: Path) -> Iterator[Callable[[], Any]]:
    """A round trip of the same bytes between two processes that have nothing but pyzmq."""
    path = folder / f"echo-{os.getpid()}.sock"
    address = f"ipc://{path}"
    child = subprocess.Popen([sys.executable, "-m", f"{__package__}.echo", address])
    context = zmq.Context()
    dealer = context.socket(zmq.DEALER)
    dealer.linger = 0
    data = wire.encode(wire.Ping("00000000-1"))

    def trip() -> Any:
        dealer.send(data)
        if not dealer.poll(_ANSWER_MS):
            raise TimeoutError("the echo does not answer")
        return dealer.recv()

    try:
        dealer.connect(address)
        trip()
        yield trip
    finally:
        dealer.close()
        context.term()
        child.kill()
        child.wait()
        path.unlink(missing_ok=True)


def round_trip(client: Client, folder: Path) -> Figures:
    """Ping and pong over ipc, in blocks that alternate with the yardstick's.

    Args:
        client: of the server.
        folder: for the yardstick's socket; its path is short.
    """
    ours: list[float] = []
    theirs: list[float] = []
    with _echo(folder) as trip:
        for _ in range(_WARM):
            client.ping()
            trip()
        for _ in range(_BLOCKS):
            ours += [seconds_of(client.ping) for _ in range(_BLOCK)]
            theirs += [seconds_of(trip) for _ in range(_BLOCK)]
            time.sleep(0.005)  # as hosts do: a message now and then, not a flood
        rested = [(_after_pause(client.ping), _after_pause(trip)) for _ in range(_PAUSES)]
    ours_rested, theirs_rested = zip(*rested, strict=True)
    return {
        "leaf client to server, median us": round(1e6 * median(ours), 1),
        "leaf client to server, p99 us": round(1e6 * percentile(ours, 99), 1),
        "pyzmq to pyzmq, median us": round(1e6 * median(theirs), 1),
        "pyzmq to pyzmq, p99 us": round(1e6 * percentile(theirs, 99), 1),
        "ratio of the medians": round(median(ours) / median(theirs), 2),
        "leaf client to server after 40 ms of rest, median us": round(1e6 * median(ours_rested), 1),
        "pyzmq to pyzmq after 40 ms of rest, median us": round(1e6 * median(theirs_rested), 1),
    }


def _after_pause(work: Callable[[], object]) -> float:
    time.sleep(_PAUSE_S)
    return seconds_of(work)
