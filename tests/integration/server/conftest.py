"""A real server of its own for the tests that need one, and the leaf client to talk to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from faceplate_client import Client, Place, Ring, find
from faceplate_client.errors import ClientError
from tests.integration.conftest import cli, identity, small, small_plate  # noqa: F401 - fixtures
from tests.support.warm_python import WarmProcess, warm_faceplate

READY_S = 60.0


@dataclass
class Running:
    """A server in a process of its own."""

    process: subprocess.Popen[bytes] | WarmProcess
    place: Place

    def client(self, name: str = "test") -> Client:
        return Client(lambda: find(self.place), name)

    def ring(self, slots: int, slot_bytes: int) -> Ring:
        return Ring.create(slots, slot_bytes, self.place.folder)

    @property
    def address(self) -> str:
        return find(self.place).address

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def log(self) -> str:
        return (self.place.folder / "log").read_text("utf-8")


def start_server(folder: Path, *words: str, config: str = "", warm: bool = False) -> Running:
    """Start `faceplate serve` without waiting for it; `warm` from a process that has it imported."""
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / "server.toml"
    file.write_text(f'log_file = "{folder / "log"}"\ndevice = "cpu"\nnice = 0\n' + config, "utf-8")
    serve = ["serve", "--folder", str(folder), "--config", str(file), *words]
    if warm and sys.platform == "linux":
        return Running(warm_faceplate(serve), Place(folder))
    command = [sys.executable, "-m", "faceplate", *serve]
    return Running(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), Place(folder))


def wait_ready(server: Running) -> Running:
    end = time.monotonic() + READY_S
    while time.monotonic() < end:
        assert server.process.poll() is None, server.log()
        try:
            with server.client() as client:
                if client.ping().ready:
                    return server
        except ClientError:
            pass
        time.sleep(0.05)
    raise AssertionError("the server is not ready")


@contextmanager
def running(*words: str, config: str = "") -> Iterator[Running]:
    """A ready server, in a short folder since socket paths are short; killed at the end if it still lives."""
    with tempfile.TemporaryDirectory(prefix="fp-") as folder:
        server = start_server(Path(folder) / "s", *words, config=config, warm=True)
        try:
            yield wait_ready(server)
        finally:
            if server.process.poll() is None:
                os.kill(server.process.pid, signal.SIGKILL)
            server.process.wait()


@pytest.fixture(scope="session")
def server() -> Iterator[Running]:
    """One server for all tests that leave it whole."""
    with running() as one:
        yield one


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    def wait(condition: Callable[[], bool], seconds: float = 15.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "it did not happen in time"
            time.sleep(0.02)

    return wait
