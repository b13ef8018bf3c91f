"""A stand-in for the server: libzmq's ROUTER, the real messages, and an engine that inverts bytes.

Also a program, for tests that start a server: `python -m tests.unit.client.double FOLDER [how]`.
"""

from __future__ import annotations

import dataclasses
import os
import secrets
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import zmq

from faceplate_client import wire
from faceplate_client.connection import ConnectionInfo, Place, remove_connection, write_connection
from faceplate_client.slots import Ring

INVERT = bytes(255 - code for code in range(256))
DEVICE = wire.Device("cpu", "cpu", "null")
LIMITS = wire.Limits(wire.MAX_BYTES, 1 << 30, 64, 8, 100)


class Double(threading.Thread):
    """Serves until `stop`.

    Attributes to set: `silent` (answers nothing), `refuse` (the Error that answers hello), `ready`, `slow_s` (pause
    before a job's end), `swallow` (tags that get no answer), `hold` (jobs wait for cancel).
    """

    def __init__(self, address: str, folder: Path, instance: str | None = None, token: str = "") -> None:
        super().__init__(daemon=True)
        self.context = zmq.Context()
        self.router = self.context.socket(zmq.ROUTER)
        self.router.linger = 0
        self.router.bind(address)
        self.folder = folder
        self.info = ConnectionInfo(
            bytes(self.router.getsockopt(zmq.LAST_ENDPOINT)).rstrip(b"\0").decode(),
            token,
            os.getpid(),
            instance or secrets.token_hex(4),
            started=time.time(),
        )
        self.silent = self.hold = False
        self.ready = True
        self.slow_s = 0.0
        self.refuse: wire.Error | None = None
        self.swallow: set[str] = set()
        self.heard: list[Any] = []
        self._held: dict[str, bytes] = {}
        self._rings: dict[str, Ring] = {}
        self._over = threading.Event()

    def __enter__(self) -> Double:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End and give the address free."""
        self._over.set()
        self.join(5)

    def run(self) -> None:
        try:
            while not self._over.is_set():
                if self.router.poll(20):
                    who, *parts = self.router.recv_multipart()
                    message = wire.decode(parts[0])
                    self.heard.append(message)
                    kind = type(message).__name__.lower()
                    if not self.silent and kind not in self.swallow:
                        self.answer(who, message)
        finally:
            for ring in self._rings.values():
                ring.close()
            self.router.close()
            self.context.term()

    def say(self, who: bytes, message: Any) -> None:
        self.router.send_multipart([who, wire.encode(message)])

    def answer(self, who: bytes, message: Any) -> None:
        if isinstance(message, wire.Hello):
            if message.token != self.info.token:
                self.say(who, wire.Error(None, "unauthorised", "TokenError", "the token is wrong"))
            else:
                self.say(who, self.refuse or self.welcome())
        elif isinstance(message, wire.Ping):
            self.say(who, wire.Pong(message.id, self.info.instance, self.ready))
        elif isinstance(message, wire.Status):
            reply = wire.StatusReply(message.id, self.info.instance, os.getpid(), 1.0, 1.0, 1, 0, (DEVICE,), (), ())
            self.say(who, reply)
        elif isinstance(message, wire.Stop):
            self.say(who, wire.Stopping(message.id))
            self._over.set()
        elif isinstance(message, wire.Release):
            self.say(who, wire.Released(message.id))
        elif isinstance(message, wire.Cancel):
            self.say(self._held.pop(message.id), wire.Cancelled(message.id, 1))
        elif isinstance(message, (wire.SubmitFrame, wire.SubmitRange, wire.SubmitAnalyse)):
            self.job(who, message)

    def welcome(self) -> wire.Welcome:
        return wire.Welcome(1, 1, 1, "0.0", self.info.instance, ("null",), (DEVICE,), LIMITS)

    def job(self, who: bytes, job: Any) -> None:
        if job.engine == "none" if not isinstance(job, wire.SubmitAnalyse) else False:
            error = wire.Error(job.id, "input", "SettingError", "no engine is called none", hint="use mesh")
            self.say(who, error)
            return
        self.say(who, wire.Accepted(job.id, 0))
        self.say(who, wire.Progress(job.id, "swap", 0, 1))
        if self.hold:
            self._held[job.id] = who
            return
        time.sleep(self.slow_s)
        if isinstance(job, wire.SubmitFrame):
            self.frame(who, job)
            return
        if isinstance(job, wire.SubmitRange):
            for frame in range(3):
                self.say(who, wire.Partial(job.id, frame, "done", wire.FileRef(job.output, frame)))
        self.say(who, wire.Done(job.id, {"done": 3}))

    def frame(self, who: bytes, job: wire.SubmitFrame) -> None:
        output = job.output or job.plate
        if isinstance(job.plate, wire.SlotRef) and isinstance(output, wire.SlotRef):
            ring = self.ring(job.plate)
            header, pixels = ring.take(job.plate)
            assert header is not None
            target = pixels if output is job.plate else ring.take(output)[1]
            target[: header.nbytes] = bytes(pixels).translate(INVERT)
            if output is not job.plate:
                ring.give_back(job.plate)
            ring.finish(output, dataclasses.replace(header, colour_space="out"))
        self.say(who, wire.FrameResult(job.id, job.frame, "done", output, timings_ms={"total": 1.0}))

    def ring(self, reference: wire.SlotRef) -> Ring:
        key = f"{reference.path} {reference.file_id} {reference.generation}"
        if key not in self._rings:
            self._rings[key] = Ring.attach(reference.path, reference.file_id, reference.generation, folder=self.folder)
        return self._rings[key]


def main(folder: str, how: str = "") -> int:
    """Serve until a SIGTERM or a stop message; `how` names the mishap to play."""
    print(f"double starts, how={how}", flush=True)
    if how == "fail":
        print("no net could be loaded: the disk is full", flush=True)
        return 3
    place = Place(Path(folder))
    lock = place.server_lock()
    if not lock.acquire(1.0):
        return 4
    with open(place.folder / "starts", "a") as file:
        file.write("x")
    if how == "stuck":
        time.sleep(60)
    place.socket.unlink(missing_ok=True)
    double = Double(f"ipc://{place.socket}", place.folder)
    signal.signal(signal.SIGTERM, lambda *_: double._over.set())
    double.ready = False
    write_connection(place, double.info)
    double.start()
    time.sleep(0.3)  # as if nets were loaded
    double.ready = True
    while double.is_alive():
        double.join(0.05)
    remove_connection(place)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
