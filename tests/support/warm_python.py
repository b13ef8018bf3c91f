"""`faceplate ...` in processes forked from one that has everything imported, which is most of a server's start.

The tests of a server's own life start it as artists do (`subprocess`); all others only need one.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

_LOOK_S = 0.01


class WarmProcess:
    """What tests use of `subprocess.Popen`."""

    def __init__(self, pid: int, ended: Path) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ended = ended

    def poll(self) -> int | None:
        """The exit code, as Popen has it; None while it lives."""
        if self.returncode is None and self._ended.exists():
            self.returncode = int(self._ended.read_text("ascii"))
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end.

        Raises:
            subprocess.TimeoutExpired: it still lives.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if end is not None and time.monotonic() > end:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            time.sleep(_LOOK_S)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


@cache
def _parent() -> tuple[subprocess.Popen[bytes], Path]:
    folder = Path(tempfile.mkdtemp(prefix="fp-warm-"))
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__)), str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    return process, folder


def warm_faceplate(words: list[str]) -> WarmProcess:
    """Start `faceplate WORDS` in this process's environment, its output thrown away."""
    process, folder = _parent()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps([words, dict(os.environ), os.getcwd()]).encode() + b"\n")
    process.stdin.flush()
    pid = int(process.stdout.readline())
    return WarmProcess(pid, folder / str(pid))


def _be_child(words: list[str], environment: dict[str, str], folder: str) -> int:
    from faceplate.cli.main import main

    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    return main(words)


def _serve(folder: Path) -> None:
    """Fork for each line of stdin; reap, and leave exit codes as files. All end with stdin."""
    import select

    import faceplate_server.bench.run
    import faceplate_server.commands
    import faceplate_server.lifecycle  # noqa: F401 - what a server imports

    children: set[int] = set()
    asked = open(0, "rb", buffering=0)  # noqa: SIM115 - `select` sees what is not read yet; closed with the process
    while True:
        if select.select([0], [], [], _LOOK_S)[0]:
            line = asked.readline()
            if not line:
                break
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    code = _be_child(*json.loads(line))
                finally:
                    os._exit(code)
            children.add(pid)
            os.write(1, b"%d\n" % pid)
        for pid in list(children):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                children.discard(pid)
                half = folder / f".{pid}"
                half.write_text(str(os.waitstatus_to_exitcode(status)), "ascii")
                half.rename(folder / str(pid))
    for pid in children:
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
