"""Connection files, locks, and starting a server on demand."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from faceplate_client.connection import (
    ConnectionInfo,
    Place,
    find,
    read_connection,
    remove_connection,
    write_connection,
)
from faceplate_client.errors import ConnectionFailed, LaunchFailed, ServerNotFound, UnsafeFile
from faceplate_client.launch import Found, find_or_start
from faceplate_client.private import FileLock, is_locked, write_private

ROOT = Path(__file__).parents[3]
INFO = ConnectionInfo("ipc:///run/s", "tok", 12, "abc", 1, 1, 1700000000.5)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "run")


def test_written_and_read(place: Place) -> None:
    with pytest.raises(ServerNotFound):
        read_connection(place)
    write_connection(place, INFO)
    assert place.file.stat().st_mode & 0o777 == 0o600
    assert place.folder.stat().st_mode & 0o777 == 0o700
    assert read_connection(place) == INFO
    assert os.listdir(place.folder) == ["server-default.json"]
    with pytest.raises(ServerNotFound, match="gone"):
        find(place)
    with place.server_lock() as lock:
        assert lock.acquire()
        assert place.is_alive()
        assert find(place) == INFO
    assert not place.is_alive()
    remove_connection(place)
    remove_connection(place)
    with pytest.raises(ServerNotFound, match="no server called 'default'"):
        read_connection(place)


@pytest.mark.parametrize("name", ["", "A", "a/b", "..", "x" * 33, "a\n"])
def test_names(name: str) -> None:
    with pytest.raises(ConnectionFailed):
        Place(name=name)


def test_names_tell_servers_apart(tmp_path: Path) -> None:
    one, two = Place(tmp_path, "cpu"), Place(tmp_path, "cuda0")
    write_connection(one, INFO)
    with one.server_lock() as lock:
        assert lock.acquire()
        assert not two.is_alive()
    with pytest.raises(ServerNotFound):
        read_connection(two)


def test_what_others_could_have_written_is_not_trusted(place: Place, tmp_path: Path) -> None:
    write_connection(place, INFO)
    os.chmod(place.file, 0o640)
    with pytest.raises(UnsafeFile, match="mode 0640"):
        read_connection(place)
    os.chmod(place.file, 0o600)
    os.chmod(place.folder, 0o750)
    with pytest.raises(UnsafeFile, match="mode 0750"):
        read_connection(place)
    os.chmod(place.folder, 0o700)
    os.rename(place.file, tmp_path / "elsewhere")
    place.file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafeFile, match="link"):
        read_connection(place)
    place.file.unlink()
    os.mkfifo(place.file, 0o600)
    with pytest.raises(UnsafeFile, match="regular"):
        read_connection(place)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's file")
def test_another_users_file(place: Place) -> None:
    write_connection(place, INFO)
    os.chown(place.file, 12345, 12345)
    with pytest.raises(UnsafeFile, match="another user"):
        read_connection(place)
    os.chown(place.folder, 12345, 12345)
    with pytest.raises(UnsafeFile, match="another user"):
        read_connection(place)


WHOLE = json.loads(json.dumps(INFO.__dict__))


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {**WHOLE, "pid": "12"},
        {**WHOLE, "pid": True},
        {**WHOLE, "more": 1},
        {name: value for name, value in WHOLE.items() if name != "token"},
        "x" * 70000,
    ],
    ids=range(8),
)
def test_damaged_files(place: Place, document: Any) -> None:
    write_connection(place, INFO)
    place.file.write_text(json.dumps(document))
    with pytest.raises(ConnectionFailed, match="damaged"):
        read_connection(place)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 60000])
def test_files_that_are_no_json(place: Place, data: bytes) -> None:
    write_connection(place, INFO)
    place.file.write_bytes(data)
    with pytest.raises(ConnectionFailed, match="damaged"):
        read_connection(place)


def test_a_failed_write_leaves_the_old_file(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    write_connection(place, INFO)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConnectionFailed, match="No space left"):
        write_connection(place, ConnectionInfo("tcp://x:1"))
    assert read_connection(place) == INFO
    assert os.listdir(place.folder) == ["server-default.json"]


def test_a_lock_is_held_by_one_and_ends_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "l"
    one, two = FileLock(path), FileLock(path)
    assert one.acquire()
    assert one.acquire()
    assert not two.acquire()
    assert not two.acquire(0.05)
    assert is_locked(path)
    one.release()
    one.release()
    assert not is_locked(path)
    code = f"""
import sys; sys.path.insert(0, {str(ROOT / "host_plugins")!r})
from pathlib import Path
from faceplate_client.private import FileLock
lock = FileLock(Path({str(path)!r})); assert lock.acquire(); print(flush=True); sys.stdin.read()"""
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    assert not two.acquire()
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=5)
    assert two.acquire(1.0)
    two.release()


def test_those_who_look_do_not_keep_a_server_out(tmp_path: Path) -> None:
    path = tmp_path / "l"
    write_private(path, b"")
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            is_locked(path)

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for looker in lookers:
        looker.start()
    for _ in range(50):
        with FileLock(path) as lock:
            assert lock.acquire(1.0)
    over.set()
    for looker in lookers:
        looker.join()


def command(place: Place, how: str = "") -> list[str]:
    return [sys.executable, "-m", "tests.unit.client.double", str(place.folder), how]


ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "host_plugins")])}


@pytest.fixture
def started() -> Iterator[list[Found]]:
    found: list[Found] = []
    yield found
    for one in found:
        if one.child is not None:
            one.child.terminate()
            one.child.wait(10)


def test_started_once_by_many(place: Place, started: list[Found]) -> None:
    def start() -> None:
        started.append(find_or_start(place, command(place), start_s=30, environment=ENVIRONMENT))

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40)
    assert len(started) == 4
    assert len({found.info for found in started}) == 1
    assert sum(found.child is not None for found in started) == 1
    assert (place.folder / "starts").read_text() == "x"
    assert place.log.read_text() == "double starts, how=\n"
    assert place.log.stat().st_mode & 0o777 == 0o600
    again = find_or_start(place, ["/does/not/exist"], start_s=5)
    assert again == Found(started[0].info)


def test_started_again_after_a_kill(place: Place, started: list[Found]) -> None:
    first = find_or_start(place, command(place), start_s=30, environment=ENVIRONMENT)
    assert first.child is not None
    os.kill(first.info.pid, signal.SIGKILL)
    first.child.wait(5)
    second = find_or_start(place, command(place), start_s=30, environment=ENVIRONMENT)
    started.append(second)
    assert second.info.instance != first.info.instance
    assert second.child is not None


def test_a_server_that_fails_shows_its_last_words(place: Place) -> None:
    with pytest.raises(LaunchFailed, match="exit code 3") as caught:
        find_or_start(place, command(place, "fail"), start_s=30, environment=ENVIRONMENT)
    assert "the disk is full" in caught.value.log
    assert "the disk is full" in str(caught.value)
    assert caught.value.hint == "run `faceplate serve` in a terminal to see what is wrong"


def test_a_server_that_gets_stuck_is_ended(place: Place) -> None:
    begun = time.monotonic()
    with pytest.raises(LaunchFailed, match=r"not ready within 2 s") as caught:
        find_or_start(place, command(place, "stuck"), start_s=2, environment=ENVIRONMENT)
    assert time.monotonic() - begun < 6
    assert "how=stuck" in caught.value.log
    assert not place.is_alive()


def test_no_such_program(place: Place) -> None:
    with pytest.raises(LaunchFailed, match="cannot start /does/not/exist") as caught:
        find_or_start(place, ["/does/not/exist", "serve"], start_s=5)
    assert "full path" in (caught.value.hint or "")


def test_hosts_python_settings_do_not_reach_the_server(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHOME", "/host/python")
    show = [sys.executable, "-c", "import os; print(sorted(n for n in os.environ if n.startswith('PYTHONH'))); exit(9)"]
    with pytest.raises(LaunchFailed) as caught:
        find_or_start(place, show, start_s=10)
    assert caught.value.log == "[]"
