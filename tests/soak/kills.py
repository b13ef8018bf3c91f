"""SIGKILL at random moments, of clients and of the server: no hang, nothing leaked, every batch resumed."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faceplate_client import Client, FrameHeader, Ring, wire
from faceplate_client.errors import ClientError, ServerError
from tests.integration.conftest import leftovers, outputs
from tests.integration.server.conftest import Running, running, start_server, wait_ready
from tests.soak.look import Memory, mapped_rings, memory_of, strange_files

SWEEP_S = 5.0
_AT_ONCE = 4
_BATCH_S = 300.0
"""Others may work on the machine too, and batches step back for them."""
_EARLY = 0.15
"""Share of the servers that are killed while they start, or at rest."""
_HEADER = FrameHeader(640, 360, colour_space="ACEScg")


@dataclass
class Shot:
    """What the batches work on, and what comes out when nobody dies.

    Attributes:
        plate: pattern; its sidecar lies beside it.
        identity: file.
        whole: the undisturbed result, by file name.
        folder: for results.
    """

    plate: str
    identity: Path
    whole: dict[str, bytes]
    folder: Path

    def output(self, name: str) -> str:
        return str(self.folder / name / "o.####.exr")

    def resume(self, client: Client, name: str) -> bool:
        """Send the batch again until it is through; whether its bytes are those of the undisturbed one."""
        end = time.monotonic() + _BATCH_S
        person = (wire.Assignment(str(self.identity)),)
        while True:
            job = client.submit_range(plate=self.plate, output=self.output(name), frames=None, assignments=person)
            try:
                client.result(job, _BATCH_S)
                break
            except ServerError as error:  # the dead one's last frame is still being finished
                if error.code != "busy" or time.monotonic() > end:
                    raise
                time.sleep(0.05)
        made = self.folder / name
        return outputs(made) == self.whole and leftovers(made) == []


@dataclass
class Tally:
    """What happened."""

    kills: int = 0
    slowest_answer_s: float = 0.0
    not_resumed: list[str] = field(default_factory=list)
    leaked: list[str] = field(default_factory=list)

    def answered(self, since: float) -> None:
        self.slowest_answer_s = max(self.slowest_answer_s, time.monotonic() - since)


def kill_clients(kills: int, shot: Shot, seed: int) -> dict[str, Any]:
    """Kill clients of one server at random moments of their first second.

    Returns:
        Numbers by name; `leaked` names what the server still held two sweeps after the last of a group had died.
    """
    rng, tally = random.Random(seed), Tally()
    with running() as server, server.client("watch") as client:
        shot.resume(client, "warm")
        samples: list[Memory] = []
        while tally.kills < kills:
            names = [f"c{tally.kills + number}" for number in range(min(_AT_ONCE, kills - tally.kills))]
            _kill_some(server, client, shot, names, rng, tally)
            tally.leaked += _leaks(server, client, tally)
            tally.not_resumed += [name for name in names if not shot.resume(client, name)]
            samples.append(memory_of(server.process.pid))
    return {
        "client_kills": tally.kills,
        "slowest_answer_s": round(tally.slowest_answer_s, 3),
        "leaked": tally.leaked,
        "batches_not_resumed": tally.not_resumed,
        "descriptors": [samples[0].descriptors, samples[-1].descriptors],
        "threads": [samples[0].threads, samples[-1].threads],
        "memory_mb": [round(sample.resident_mb) for sample in samples[:: max(1, len(samples) // 10)]],
    }


def _kill_some(server: Running, client: Client, shot: Shot, names: list[str], rng: random.Random, tally: Tally) -> None:
    words = [sys.executable, "-m", "tests.soak.victim", str(server.place.folder), shot.plate, str(shot.identity)]
    victims = [subprocess.Popen([*words, shot.output(name)], stderr=subprocess.PIPE) for name in names]
    start = time.monotonic()
    for delay, victim in zip(sorted(rng.uniform(0.0, 1.5) for _ in victims), victims, strict=True):
        time.sleep(max(0.0, start + delay - time.monotonic()))
        if victim.poll() is not None:
            raise AssertionError(f"a client died by itself: {victim.stderr.read().decode()}")  # type: ignore[union-attr]
        victim.kill()
        victim.communicate()
        tally.kills += 1
        since = time.monotonic()
        client.ping()
        tally.answered(since)


def _leaks(server: Running, client: Client, tally: Tally) -> list[str]:
    """What is still there of dead clients after two sweeps."""
    end = time.monotonic() + 2 * SWEEP_S + 1
    while True:
        since = time.monotonic()
        status = client.status()
        tally.answered(since)
        left = strange_files(server.place.folder) + sorted(mapped_rings(server.process.pid))
        left += [f"{status.clients - 1} clients"] * (status.clients != 1) + [job.id for job in status.jobs]
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.1)


def kill_servers(kills: int, shot: Shot, seed: int, folder: Path) -> dict[str, Any]:
    """Kill a server at random moments, while it starts too, and start another in its place.

    Args:
        kills: how many.
        shot: for the batches.
        seed: of the moments.
        folder: short; the servers' own.
    """
    rng, tally = random.Random(seed), Tally()
    frames = 0
    with Ring.create(2, _HEADER.nbytes, folder) as ring:
        server = start_server(folder)
        try:
            for number in range(kills):
                name = f"s{number}"
                if rng.random() < _EARLY:
                    time.sleep(rng.uniform(0.0, 3.0))
                    server.kill()
                else:
                    frames += _kill_at_work(wait_ready(server), ring, shot, name, rng, tally)
                tally.kills += 1
                server = wait_ready(start_server(folder))  # over what the dead one left
                with server.client() as client:
                    tally.not_resumed += [] if shot.resume(client, name) else [name]
                    frames += _use_every_slot(client, ring)
                tally.leaked += [file for file in strange_files(folder) if file != ring.path.name]
        finally:
            server.kill()
    return {
        "server_kills": tally.kills,
        "slowest_answer_s": round(tally.slowest_answer_s, 3),
        "leaked": tally.leaked,
        "batches_not_resumed": tally.not_resumed,
        "frames_between": frames,
    }


def _kill_at_work(server: Running, ring: Ring, shot: Shot, name: str, rng: random.Random, tally: Tally) -> int:
    """Kill a server that has a batch and frames to do; frames that came back before."""
    person = (wire.Assignment(str(shot.identity)),)
    done, killed = 0, 0.0
    with server.client() as client:
        try:
            job = client.submit_range(plate=shot.plate, output=shot.output(name), frames=None, assignments=person)
            moment = time.monotonic() + rng.uniform(0.0, 1.0)
            while time.monotonic() < moment:
                done += _use_every_slot(client, ring)
            waiting = [ring.put(_HEADER, bytes(_HEADER.nbytes)) for _ in range(ring.slots)]
            for plate in waiting:
                client.submit_frame(frame=1, plate=plate, assignments=(), engine="null")
            killed = _kill(server)
            client.result(job, _BATCH_S)
        except ClientError:
            if not killed:
                raise
            tally.answered(killed)
    for slot in range(ring.slots):
        ring.reclaim(slot)
    return done


def _kill(server: Running) -> float:
    server.kill()
    return time.monotonic()


def _use_every_slot(client: Client, ring: Ring) -> int:
    """A null frame through each slot of the ring: none is stuck."""
    pixels = bytes(_HEADER.nbytes)
    plates = [ring.put(_HEADER, pixels) for _ in range(ring.slots)]
    jobs = [client.submit_frame(frame=1, plate=plate, assignments=(), engine="null") for plate in plates]
    for job, plate in zip(jobs, plates, strict=True):
        client.result(job, 30)
        header, _ = ring.result(plate)
        assert header == FrameHeader(640, 360, colour_space="ACEScg", frame=1), header
        ring.release(plate.slot)
    return len(plates)
