"""Strangers, hostile messages, forbidden paths, limits, and deaths on either side."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import zmq

from faceplate.cli.main import main as faceplate
from faceplate_client import FrameHeader, Ring, wire
from faceplate_client.errors import ClientError, ServerError
from tests.contract.wire.samples import SAMPLES
from tests.integration.conftest import Cli, leftovers, outputs, start
from tests.integration.server.conftest import Running, running, start_server, wait_ready
from tests.support.plates import moving_plate

HEADER = FrameHeader(64, 48, colour_space="ACEScg")


def null_frame(ring: Ring, **options: object) -> dict[str, object]:
    plate = ring.put(HEADER, bytes(HEADER.nbytes))
    return {"frame": 1, "plate": plate, "assignments": (), "engine": "null", **options}


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="needs root to become another user")
def test_another_user_gets_nothing(server: Running) -> None:
    place = server.place
    with server.ring(1, 4096) as ring:
        script = (
            "import os, socket, sys\n"
            "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
            "for path in sys.argv[1:]:\n"
            "    for how in (lambda: open(path, 'rb'), lambda: os.listdir(path),\n"
            "                lambda: socket.socket(socket.AF_UNIX).connect(path)):\n"
            "        try: how()\n"
            "        except OSError as error: continue\n"
            "        print('open:', path)\n"
        )
        paths = [place.folder, place.file, place.socket, ring.path, place.folder / "log"]
        assert all(path.exists() for path in paths)
        shown = subprocess.run([sys.executable, "-c", script, *map(str, paths)], capture_output=True, text=True)
    assert (shown.returncode, shown.stdout) == (0, ""), shown.stderr
    assert place.folder.stat().st_mode & 0o777 == 0o700
    for path in (place.file, place.socket, place.folder / "log"):
        assert path.stat().st_mode & 0o777 == 0o600


@dataclass
class Strict:
    """A server that takes little, and where it may work."""

    server: Running
    plate: str
    out: Path

    @property
    def roots(self) -> list[str]:
        return [str(Path(self.plate).parent), str(self.out)]


@pytest.fixture(scope="module")
def strict(small_plate: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Strict]:
    out = tmp_path_factory.mktemp("strict") / "out"
    out.mkdir()
    limits = "max_clients = 2\nmax_slots = 2\nmax_frame_mb = 1\nmax_rings = 1\n"
    roots = f"roots = {[str(Path(small_plate).parent), str(out)]!r}\n"
    with running(config='transport = "tcp"\n' + limits + roots) as server:
        yield Strict(server, small_plate, out)


def test_tcp_needs_the_token(strict: Strict) -> None:
    with strict.server.client() as client:
        assert client.ping().ready
        assert client.status().clients == 1
    context = zmq.Context()
    stranger = context.socket(zmq.DEALER)
    stranger.linger = 0
    stranger.connect(strict.server.address)
    for message in (wire.Ping("1"), wire.Hello(1, 1, "thief", "1"), wire.Hello(1, 1, "thief", "1", "x" * 43)):
        stranger.send(wire.encode(message))
        assert stranger.poll(5000)
        answer = wire.decode(stranger.recv())
        assert isinstance(answer, wire.Error)
        assert answer.code == "unauthorised"
    stranger.close()
    context.term()


def mutants(count: int) -> list[bytes]:
    """Samples of every message with bytes flipped, cut, doubled, or words exchanged."""
    rng = random.Random(3)
    whole = [wire.encode(sample) for sample in SAMPLES.values()]
    made = []
    for _ in range(count):
        data = bytearray(rng.choice(whole))
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data) + 1)
            match rng.randrange(5):
                case 0 if data:
                    data[at % len(data)] = rng.randrange(256)
                case 1:
                    del data[at : at + rng.randint(1, 30)]
                case 2:
                    data[at:at] = rng.choice(
                        [b"{", b"[", b'"', b"null", b"1e999", b"-1", b"\xff", b"\\u0000", b"9" * 40]
                    )
                case 3:
                    data += data[: rng.randint(0, 200)]
                case _:
                    data = data.replace(
                        rng.choice([b'"id"', b":1", b"null", b"slot"]), rng.choice([b"0", b"{}", b'"t"'])
                    )
            data = data or bytearray(b"x")
        made.append(bytes(data))
    return made


def test_ten_thousand_mutated_messages_are_answered_and_the_server_lives(server: Running) -> None:
    context = zmq.Context()
    dealer = context.socket(zmq.DEALER)
    dealer.linger = 0
    dealer.connect(server.address)
    dealer.send(wire.encode(wire.Hello(1, 1, "mutant", "1")))
    assert isinstance(wire.decode(dealer.recv()), wire.Welcome)
    with server.client() as client:
        before = client.status().memory_mb
        answered = 0
        for data in mutants(10_000):
            try:
                message = wire.decode(data)
            except wire.WireError:
                message = None
            if isinstance(message, (wire.Stop, wire.Bye, wire.Cancel)):
                continue  # heard as they are meant
            dealer.send(data)
            assert dealer.poll(5000), data
            answer = wire.decode(dealer.recv())
            assert isinstance(
                answer, (wire.Error, wire.Welcome, wire.Pong, wire.StatusReply, wire.Accepted, wire.Released)
            )
            answered += 1
            if isinstance(answer, wire.Accepted):
                assert dealer.poll(10_000)
                dealer.recv()
        assert answered > 9000
        dealer.send_multipart([wire.encode(wire.Ping("1")), b"second part"])
        answer = wire.decode(dealer.recv())
        assert answer.code == "malformed"
        assert client.ping().ready
        assert client.status().memory_mb < before + 60
    dealer.close()
    context.term()


def test_noise_on_the_socket_disturbs_nobody(server: Running) -> None:
    rng = random.Random(5)
    with server.client() as client:
        for _ in range(50):
            with socket.socket(socket.AF_UNIX) as raw:
                raw.connect(str(server.place.socket))
                raw.sendall(rng.randbytes(rng.randint(0, 5000)))
            assert client.ping().ready


def test_an_oversized_message_is_refused(server: Running) -> None:
    context = zmq.Context()
    dealer = context.socket(zmq.DEALER)
    dealer.linger = 0
    dealer.connect(server.address)
    dealer.send(b" " * (wire.MAX_BYTES + 1))
    answer = wire.decode(dealer.recv())
    assert (answer.code, answer.id) == ("malformed", None)
    dealer.send(b" " * (8 * wire.MAX_BYTES))  # beyond what is answered: the connection is cut
    with server.client() as client:
        assert client.ping().ready
    dealer.close()
    context.term()


def test_paths_outside_the_roots_are_refused(strict: Strict, identity: Path, tmp_path: Path) -> None:
    plate, output, out, roots = strict.plate, str(tmp_path / "o.####.exr"), strict.out, strict.roots
    (out / "hole").symlink_to("/")
    inside = str(out / "o.####.exr")
    person = (wire.Assignment(str(identity)),)
    server = strict.server
    with server.client() as client:
        assert client.welcome.roots == tuple(os.path.realpath(root) for root in roots)
        ring = server.ring(1, HEADER.nbytes)
        jobs: list[Callable[[], str]] = [
            lambda: client.submit_range(plate=plate, output=output, frames=None, assignments=person),
            lambda: client.submit_range(plate=plate, output=inside, frames=None, assignments=person),
            lambda: client.submit_range(plate="/etc/x.####.exr", output=inside, frames=None, assignments=()),
            lambda: client.submit_range(
                plate=plate, output=str(out / "hole/tmp/o.####.exr"), frames=None, assignments=()
            ),
            lambda: client.analyse(plate=plate, sidecar="/tmp/x.faces.json"),
            lambda: client.analyse(plate=f"{roots[1]}/../../x.####.exr"),
            lambda: client.submit_frame(
                frame=1001,
                plate=wire.FileRef("/etc/passwd"),
                output=wire.FileRef(inside, 1),
                assignments=(),
                engine="null",
            ),
            lambda: client.submit_frame(
                frame=1001,
                plate=wire.FileRef(plate, 1001),
                output=wire.FileRef(output, 1),
                assignments=(),
                engine="null",
            ),
            lambda: client.submit(wire.SubmitFrame(id="s", output=None, source="/etc/x.####.exr", **null_frame(ring))),  # type: ignore[arg-type]
        ]
        for submit in jobs:
            with pytest.raises(ServerError) as caught:
                client.result(submit(), 30)
            assert caught.value.code == "forbidden_path"
        assert list(out.iterdir()) == [out / "hole"]
        assert list(tmp_path.glob("*.exr")) == []
        client.release(ring)
        ring.close()


def test_limits(strict: Strict) -> None:
    server = strict.server
    with server.client() as client, server.client():
        with pytest.raises(ServerError) as caught:
            server.client()
        assert caught.value.code == "limit"
        for slots, room in ((3, 1 << 16), (1, 2 << 20)):
            with server.ring(slots, room) as ring, pytest.raises(ServerError) as caught:
                client.result(client.submit_frame(**null_frame(ring)), 10)  # type: ignore[arg-type]
            assert caught.value.code in ("limit", "ring")
        with server.ring(1, HEADER.nbytes) as one, server.ring(1, HEADER.nbytes) as two:
            assert client.result(client.submit_frame(**null_frame(one)), 10)  # type: ignore[arg-type]
            with pytest.raises(ServerError) as caught:
                client.result(client.submit_frame(**null_frame(two)), 10)  # type: ignore[arg-type]
            assert caught.value.code == "limit"
            client.release(one)
            two.reclaim(0)
            assert client.result(client.submit_frame(**null_frame(two)), 10)  # type: ignore[arg-type]
    with server.client() as client:  # places of clients that said goodbye are free again
        assert client.ping()


def test_a_client_killed_with_its_slot_in_use(server: Running, identity: Path, until: Callable[..., None]) -> None:
    script = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from faceplate_client import *\n"
        "place = Place(Path(sys.argv[1]))\n"
        "client = Client(lambda: find(place), 'doomed')\n"
        "header = FrameHeader(1920, 1080, colour_space='ACEScg')\n"
        "ring = Ring.create(4, header.nbytes, place.folder)\n"
        "for n in range(4):\n"
        "    client.submit_frame(frame=n, plate=ring.put(header, bytes(header.nbytes)),\n"
        "                        assignments=(wire.Assignment(sys.argv[2]),))\n"
        "print(ring.path, flush=True)\n"
        "time.sleep(60)\n"
    )
    words = [sys.executable, "-c", script, str(server.place.folder), str(identity)]
    with server.client() as client:
        doomed = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert doomed.stdout is not None
        path = Path(doomed.stdout.readline().strip())
        assert path.exists()
        assert client.status().clients == 2
        doomed.kill()
        doomed.wait()
        until(lambda: client.status().clients == 1 and not client.status().jobs)
        until(lambda: not path.exists())


def test_a_silent_client_stalls_nobody(server: Running, small_plate: str) -> None:
    context = zmq.Context()
    silent = context.socket(zmq.DEALER)
    silent.linger = 0
    silent.rcvhwm = 1
    silent.connect(server.address)
    silent.send(wire.encode(wire.Hello(1, 1, "silent", "1")))
    for number in range(5000):
        silent.send(wire.encode(wire.Ping(str(number))))
    with server.client() as client:
        began = time.monotonic()
        for _ in range(20):
            assert client.ping().ready
        assert time.monotonic() - began < 5
    silent.close()
    context.term()


LONG = 24


@pytest.fixture(scope="module")
def long_plate(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Frames whose faces are known already, so that a job begins with its first frame."""
    plate = moving_plate(480, 300, LONG, face_width_px=120).write(tmp_path_factory.mktemp("long"))
    assert faceplate(["analyse", plate, "--device", "cpu"]) == 0
    return plate


def finished(folder: Path) -> int:
    """Frames that are whole while others are being written."""
    return sum(1 for path in folder.glob("*.exr") if not path.name.startswith("."))


def test_the_server_killed_in_mid_job_and_the_job_resumed(
    cli: Cli, long_plate: str, identity: Path, tmp_path: Path, until: Callable[..., None]
) -> None:
    plate = long_plate
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert cli("apply", plate, "--identity", identity, "-o", whole / "o.####.exr", "--device", "cpu").code == 0
    words = ["apply", plate, "--identity", identity, "-o", parts / "o.####.exr", "--device", "cpu", "--json"]
    with running() as server:
        job = start([*words, "--server", server.address], stdout=subprocess.PIPE)
        with server.client() as client:
            until(lambda: finished(parts) > 3, 60)
            direct = client.submit_range(
                plate=plate,
                output=str(tmp_path / "other" / "o.####.exr"),
                frames=None,
                assignments=(wire.Assignment(str(identity)),),
            )
            server.kill()
            began = time.monotonic()
            with pytest.raises(ClientError):
                client.result(direct, 60)
            assert time.monotonic() - began < 10
        out, _ = job.communicate(timeout=20)
        assert job.returncode == 3
        assert b"is gone" in out
        assert 3 < finished(parts) < LONG
        again = wait_ready(start_server(server.place.folder))  # over the dead one's socket and connection file
        try:
            assert cli(*words, "--server", again.address).code == 0
        finally:
            again.kill()
    assert outputs(parts) == outputs(whole)
    assert leftovers(parts) == []


def test_sigterm_finishes_the_current_frames(
    long_plate: str, identity: Path, tmp_path: Path, until: Callable[..., None]
) -> None:
    with running() as server:
        job = start(
            [
                "apply",
                long_plate,
                "--identity",
                identity,
                "-o",
                tmp_path / "o.####.exr",
                "--server",
                server.address,
                "--json",
            ],
            stdout=subprocess.PIPE,
        )
        until(lambda: finished(tmp_path) > 2, 60)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 0
        out, _ = job.communicate(timeout=20)
        assert b"the server was stopped" in out
        assert job.returncode == 3
        assert not server.place.file.exists()
        assert not server.place.socket.exists()
        assert leftovers(tmp_path) == []
        assert 2 < len(outputs(tmp_path)) < LONG
        assert "stopped" in server.log().splitlines()[-1]
