"""The frame ring between processes: dead owners, replaced files, full disks."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

from faceplate_client.connection import ConnectionInfo, Place, write_connection
from faceplate_client.deadline import Deadline
from faceplate_client.errors import RingStale, UnsafeFile
from faceplate_client.slots import FrameHeader, Ring, State, owner_alive, sweep
from faceplate_client.zmtp import Dealer

PLUGINS = Path(__file__).parents[3] / "host_plugins"
HEADER = FrameHeader(64, 16)


def program(code: str, folder: Path) -> list[str]:
    start = f"""
        import os, signal, sys
        sys.path.insert(0, {str(PLUGINS)!r})
        from pathlib import Path
        from faceplate_client.errors import *
        from faceplate_client.slots import *
        folder = Path({str(folder)!r})
    """
    return [sys.executable, "-c", textwrap.dedent(start) + textwrap.dedent(code)]


def test_a_killed_writer_is_noticed_and_swept(tmp_path: Path) -> None:
    code = """
        ring = Ring.create(2, 4096, folder)
        slot = ring.acquire()
        ring.pixels(slot)[:100] = b"x" * 100
        print(ring.path, ring.file_id, ring.generation, flush=True)
        sys.stdin.readline()
        os.kill(os.getpid(), signal.SIGKILL)
    """
    child = subprocess.Popen(
        program(code, tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    name, file_id, generation = child.stdout.readline().split()
    path = Path(name)
    with Ring.attach(path, file_id, int(generation), folder=tmp_path) as server:
        assert owner_alive(path)
        assert sweep(tmp_path) == []
        child.communicate("go\n", timeout=20)
        assert child.returncode == -signal.SIGKILL
        assert not owner_alive(path)
        assert server.state(0) is State.WRITING
        assert bytes(server.pixels(0)[:100]) == b"x" * 100
        assert sweep(tmp_path) == [path]
        assert bytes(server.pixels(0)[:100]) == b"x" * 100, "the mapping outlives the file"
    with pytest.raises(RingStale):
        Ring.attach(path, file_id, int(generation), folder=tmp_path)
    assert not owner_alive(path)


def test_a_replaced_file_is_no_sigbus_and_not_attached(tmp_path: Path) -> None:
    code = """
        ring = Ring.create(2, 1 << 20, folder)
        reference = ring.put(FrameHeader(64, 16), bytes(64 * 16 * 16))
        print(ring.path, ring.file_id, ring.generation, flush=True)
        sys.stdin.readline()
        for slot in range(2):  # every page of the first file is still there
            ring.pixels(slot)[:] = bytes([slot + 1]) * ring.slot_bytes
        assert bytes(ring.pixels(1)) == bytes([2]) * ring.slot_bytes
        ring.close()
        print("alive", flush=True)
    """
    child = subprocess.Popen(
        program(code, tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    name, file_id, generation = child.stdout.readline().split()
    path = Path(name)
    server = Ring.attach(path, file_id, int(generation), folder=tmp_path)
    with Ring.create(1, 4096, tmp_path) as other:
        os.replace(other.path, path)
        for number in (int(generation), other.generation):
            with pytest.raises(RingStale):
                Ring.attach(path, file_id, number, folder=tmp_path)
        out, err = child.communicate("go\n", timeout=20)
        assert (child.returncode, out) == (0, "alive\n"), err
        assert bytes(server.pixels(1)) == bytes([2]) * server.slot_bytes
        assert path.exists(), "an owner removes its own file only"
    path.unlink()


def test_a_forked_child_does_not_remove_its_parents_ring(tmp_path: Path) -> None:
    code = """
        ring = Ring.create(1, 4096, folder)
        if os.fork() == 0:
            ring.close()
            os._exit(0)
        os.wait()
        assert ring.path.exists() and owner_alive(ring.path)
        print(ring.path)
    """
    done = subprocess.run(program(code, tmp_path), capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 0, done.stderr
    assert not Path(done.stdout.strip()).exists(), "removed at the end of the interpreter, without close"


def test_a_thousand_takes_by_another_process(tmp_path: Path) -> None:
    code = """
        words = sys.argv[1].split()
        ring = Ring.attach(words[0], words[1], int(words[2]), folder=folder)
        import faceplate_client.wire as wire
        for line in sys.stdin:
            slot, use = map(int, line.split())
            sent = wire.SlotRef(words[0], words[1], int(words[2]), slot, use)
            header, pixels = ring.take(sent)
            pixels[:] = bytes(pixels).translate(bytes(255 - n for n in range(256)))
            ring.finish(sent, header)
            print(flush=True)
    """
    with Ring.create(3, HEADER.nbytes, tmp_path) as ring:
        argument = f"{ring.path} {ring.file_id} {ring.generation}"
        child = subprocess.Popen(
            [*program(code, tmp_path), argument], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert child.stdin is not None
        assert child.stdout is not None
        for number in range(1000):
            sent = ring.put(HEADER, bytes([number % 251]) * HEADER.nbytes)
            child.stdin.write(f"{sent.slot} {sent.use}\n")
            child.stdin.flush()
            child.stdout.readline()
            header, pixels = ring.result(sent)
            assert header == HEADER
            assert bytes(pixels) == bytes([255 - number % 251]) * HEADER.nbytes
            ring.release(sent.slot)
        child.communicate(timeout=10)
        assert child.returncode == 0


FULL = """
    try:
        Ring.create(4, 1 << 20, folder)
    except RingNoSpace as error:
        print(type(error).__name__, "--shm-size" in error.hint, list(folder.iterdir()))
"""


def test_a_full_disk(tmp_path: Path) -> None:
    unshare = shutil.which("unshare")
    mount = "mount -t tmpfs -o size=1m,mode=0700 none"
    if unshare is None or subprocess.run([unshare, "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here: a small tmpfs cannot be made")
    script = f'{mount} "$0" && exec "$@"'
    done = subprocess.run(
        [unshare, "-rm", "sh", "-c", script, str(tmp_path), *program(FULL, tmp_path)],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "RingNoSpace True []\n"), done.stderr


def test_a_limit_on_file_sizes(tmp_path: Path) -> None:
    done = subprocess.run(
        program(FULL, tmp_path),
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
    )
    assert (done.returncode, done.stdout) == (0, "RingNoSpace True []\n"), done.stderr


def test_without_fallocate_the_blocks_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "posix_fallocate")
    with Ring.create(2, 700_000, tmp_path) as ring:
        found = ring.path.stat()
        assert found.st_blocks * 512 >= found.st_size == 8192 + 2 * 700_416
        assert ring.put(HEADER, bytes(HEADER.nbytes)).use == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_gets_nothing() -> None:
    code = """
        import socket
        from faceplate_client.connection import *
        from faceplate_client.deadline import Deadline
        from faceplate_client.zmtp import Dealer
        os.setuid(12345)
        path, file_id, generation = sys.argv[1].split()
        for attempt in (
            lambda: find(Place(folder)),
            lambda: Ring.attach(path, file_id, int(generation), folder=folder),
            lambda: Ring.create(1, 1, folder),
            lambda: Dealer(f"ipc://{folder}/s", Deadline(1, "")),
        ):
            try:
                attempt()
            except ClientError as error:
                print(type(error).__name__)
    """
    with tempfile.TemporaryDirectory() as parent, socket.socket(socket.AF_UNIX) as listener:
        os.chmod(parent, 0o755)
        folder = Path(parent) / "run"
        write_connection(Place(folder), ConnectionInfo("ipc:///x"))
        listener.bind(str(folder / "s"))
        listener.listen()
        with Ring.create(1, 1, folder) as ring:
            argument = f"{ring.path} {ring.file_id} {ring.generation}"
            done = subprocess.run(
                [*program(code, folder), argument], capture_output=True, text=True, timeout=20, check=False
            )
    assert done.stdout.split() == ["UnsafeFile", "RingError", "UnsafeFile", "ConnectionFailed"], done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="this system does not tell who listens")
def test_another_users_server_is_not_trusted(tmp_path: Path) -> None:
    code = """
        import socket
        os.setuid(12345)
        listener = socket.socket(fileno=int(sys.argv[1]))
        listener.listen()
        print(flush=True)
        listener.accept()[0].recv(1)
    """
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        child = subprocess.Popen(
            [*program(code, tmp_path), str(listener.fileno())], pass_fds=[listener.fileno()], stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        child.stdout.readline()
        with pytest.raises(UnsafeFile, match="runs as another user"):
            Dealer(f"ipc://{tmp_path}/s", Deadline(2, "connecting"))
        child.wait(5)


def test_making_rings_while_others_sweep(tmp_path: Path) -> None:
    code = """
        for _ in range(150):
            with Ring.create(1, 1, folder) as ring:
                assert ring.path.exists()
    """
    makers = [subprocess.Popen(program(code, tmp_path), stderr=subprocess.PIPE, text=True) for _ in range(2)]
    end = time.monotonic() + 30
    while any(maker.poll() is None for maker in makers) and time.monotonic() < end:
        sweep(tmp_path)
    for maker in makers:
        _, err = maker.communicate(timeout=5)
        assert maker.returncode == 0, err
    assert list(tmp_path.iterdir()) == []


def test_a_slot_in_the_other_hand_never_looks_free(tmp_path: Path) -> None:
    """A state is written in one store: `struct` clears the bytes first, and 0 is FREE."""
    code = """
        import time
        path, file_id, generation = sys.argv[1:]
        with Ring.attach(Path(path), file_id, int(generation), folder=folder) as ring:
            end = time.monotonic() + 2
            while time.monotonic() < end:
                for _ in range(1000):
                    ring._move(0, State.BUSY, State.READY)
                    ring._move(0, State.READY, State.BUSY)
    """
    with Ring.create(1, HEADER.nbytes, tmp_path) as ring:
        ring.publish(ring.acquire(), HEADER)
        words = [*program(code, tmp_path), str(ring.path), ring.file_id, str(ring.generation)]
        child = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        seen = set()
        while child.poll() is None:
            seen |= {ring.state(0) for _ in range(1000)}
        assert child.stderr is not None
        assert (child.returncode, child.stderr.read()) == (0, "")
    assert seen == {State.READY, State.BUSY}
