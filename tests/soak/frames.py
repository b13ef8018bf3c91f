"""Null-engine frames through slots, many of them: none lost, doubled or altered, no file left, memory flat."""

from __future__ import annotations

import itertools
import statistics
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from faceplate_client import Client, FrameHeader, Ring, find, wire
from faceplate_client.slots import as_array
from tests.integration.server.conftest import Running, running
from tests.soak.look import Memory, growth_percent, memory_of, strange_files

HEADER = FrameHeader(640, 360, colour_space="ACEScg")
_CLIENTS = 2
_IN_FLIGHT = 2
_WHOLE_EVERY = 50
_FRAME_S = 30.0


class CountingClient(Client):
    """Knows how many ends each job had, those that nobody waited for too."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.ends: Counter[str] = Counter()
        super().__init__(*args, **options)

    def _receive(self, deadline: Any) -> Any:
        message = super()._receive(deadline)
        if isinstance(message, wire.ENDS):
            self.ends[str(message.id)] += 1
        return message


class _Feeder(threading.Thread):
    """One client with a ring of its own; every other frame comes back in its own slot."""

    def __init__(self, server: Running, numbers: Iterator[int], seed: int) -> None:
        super().__init__(name=f"feeder {seed}")
        self.done = self.wrong = self.lost = self.doubled = 0
        self.fault: BaseException | None = None
        self._server = server
        self._numbers = numbers
        noise = np.random.default_rng(seed).random((HEADER.height, HEADER.width, 4), np.float32)
        self._pixels = noise

    def run(self) -> None:
        try:
            client = CountingClient(lambda: find(self._server.place), self.name)
            with client, Ring.create(2 * _IN_FLIGHT, HEADER.nbytes, self._server.place.folder) as ring:
                self._feed(client, ring)
                client.ping()  # whatever was sent too often has come by now
            self.doubled = sum(count - 1 for count in client.ends.values())
        except BaseException as error:
            self.fault = error

    def _feed(self, client: CountingClient, ring: Ring) -> None:
        waiting: list[tuple[str, wire.SlotRef, wire.SlotRef | None, int]] = []
        for number in self._numbers:
            self._pixels[0, 0] = self._pixels[-1, -1] = np.frombuffer(struct.pack("<2d", number, -number), np.float32)
            plate = ring.put(HEADER, self._pixels)
            room = ring.offer(ring.acquire()) if number % 2 else None
            job = client.submit_frame(frame=number, plate=plate, output=room, assignments=(), engine="null")
            waiting.append((job, plate, room, number))
            if len(waiting) == _IN_FLIGHT:
                self._take(client, ring, *waiting.pop(0))
        while waiting:
            self._take(client, ring, *waiting.pop(0))

    def _take(self, client: CountingClient, ring: Ring, job: str, plate: wire.SlotRef, room: Any, number: int) -> None:
        end = client.result(job, _FRAME_S)
        header, pixels = ring.result(plate if room is None else room)
        if header is None:
            self.lost += 1
        else:
            got = as_array(header, pixels)
            stamp = np.frombuffer(struct.pack("<2d", number, -number), np.float32)
            same = all(got[at].tobytes() == stamp.tobytes() for at in ((0, 0), (-1, -1)))
            if same and number % _WHOLE_EVERY == 0:
                middle = slice(1, -1)
                same = np.array_equal(got[middle].view(np.uint32), self._pixels[middle].view(np.uint32))
            self.wrong += not (same and end.frame == number)
        for slot in (plate, room):
            if slot is not None:
                ring.release(slot.slot)
        self.done += 1


def soak_frames(count: int) -> dict[str, Any]:
    """Send `count` frames from two clients and look at the server before, meanwhile and after.

    Returns:
        Numbers by name. `memory_growth_percent` compares the medians of the last tenth and of the second tenth, of the
        server's resident memory; `anonymous_growth_percent` that of memory which is no file's.
    """
    counter = itertools.count(1)
    with running(config="max_jobs = 16\n") as server:
        numbers = itertools.islice(iter(lambda: next(counter), None), count)
        shared = _Shared(numbers)
        feeders = [_Feeder(server, iter(shared), seed) for seed in range(_CLIENTS)]
        with server.client("watch") as watch:
            before = watch.status().frames_done
            start = time.monotonic()
            for feeder in feeders:
                feeder.start()
            samples = _watched(server, feeders, count)
            seconds = time.monotonic() - start
            done = watch.status().frames_done - before
        for feeder in feeders:
            if feeder.fault is not None:
                raise feeder.fault
        left = strange_files(server.place.folder)
        server.process.terminate()
        code = server.process.wait(60)
        left += [name for name in strange_files(server.place.folder) if name not in left]
        still = [name for name in (server.place.file, server.place.socket) if name.exists()]
    return {
        "frames": count,
        "seconds": round(seconds, 1),
        "frames_per_s": round(count / seconds, 1),
        "came_back": sum(feeder.done for feeder in feeders),
        "done_by_server": done,
        "lost": sum(feeder.lost for feeder in feeders) + count - sum(feeder.done for feeder in feeders),
        "doubled": sum(feeder.doubled for feeder in feeders) + max(0, done - count),
        "wrong": sum(feeder.wrong for feeder in feeders),
        "stale_files": left + [path.name for path in still],
        "exit_code": code,
        **_memory(samples),
    }


class _Shared:
    """One iterator for several threads."""

    def __init__(self, numbers: Iterator[Any]) -> None:
        self._numbers = numbers
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[int]:
        while True:
            with self._lock:
                number = next(self._numbers, None)
            if number is None:
                return
            yield number


def _watched(server: Running, feeders: list[_Feeder], count: int) -> list[Memory]:
    samples: list[Memory] = []
    due = 0.0
    while any(feeder.is_alive() for feeder in feeders):
        done = sum(feeder.done for feeder in feeders)
        if done >= due:
            samples.append(memory_of(server.process.pid))
            due = done + count / 200
        time.sleep(0.02)
    return samples


def _memory(samples: list[Memory]) -> dict[str, Any]:
    tenth = max(1, len(samples) // 10)
    early, late = samples[tenth : 2 * tenth] or samples, samples[-tenth:]

    def middle(name: str, part: list[Memory]) -> float:
        return statistics.median(getattr(one, name) for one in part)

    return {
        "memory_mb_after_warm_up": round(middle("resident_mb", early), 2),
        "memory_mb_at_the_end": round(middle("resident_mb", late), 2),
        "memory_growth_percent": growth_percent(middle("resident_mb", early), middle("resident_mb", late)),
        "anonymous_growth_percent": growth_percent(middle("anonymous_mb", early), middle("anonymous_mb", late)),
        "threads": [early[0].threads, late[-1].threads],
        "descriptors": [early[0].descriptors, late[-1].descriptors],
    }
