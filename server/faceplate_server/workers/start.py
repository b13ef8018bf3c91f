"""Starts worker processes; imports next to nothing: they load their libraries while the server loads its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

COMMAND = (sys.executable, "-m", "faceplate_server.workers.process")

Process = subprocess.Popen[bytes]


def start_worker(command: Sequence[str] = COMMAND) -> Process:
    """A worker that waits for its first message; it ends when nobody holds the other end of its pipe."""
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)


@contextmanager
def workers_ahead(count: int) -> Iterator[list[Process]]:
    """Workers for a server that is about to begin; those that it has not taken out of the list are sent away."""
    waiting = [start_worker() for _ in range(count)]
    try:
        yield waiting
    finally:
        for process in waiting:
            process.kill()
            process.wait()
