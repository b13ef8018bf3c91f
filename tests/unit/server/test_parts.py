"""Roots, warm values, errors, parent watch, log."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from faceplate import errors
from faceplate.errors import FaceplateError, SettingError
from faceplate.models.sessions import SessionPool
from faceplate_client import wire
from faceplate_client.errors import RingStale, RingWrongSize
from faceplate_server.ask import rebuilt
from faceplate_server.errors import Refused, Told, to_failure, to_message
from faceplate_server.log import logging_to
from faceplate_server.parent import ParentWatch
from faceplate_server.roots import Roots
from faceplate_server.workers.crew import WorkerDied
from faceplate_server.workers.warm import WarmCache, WarmMapping, WarmNets, size_of


def test_roots(tmp_path: Path) -> None:
    show, other = tmp_path / "show", tmp_path / "other"
    show.mkdir()
    other.mkdir()
    (show / "out").symlink_to(other)
    (tmp_path / "alias").symlink_to(show)
    roots = Roots([show])
    for good in ("a.exr", "new/folder/a.####.exr", "x/../a.exr", "."):
        assert roots.check(show / good) == show / good
    assert roots.check(tmp_path / "alias" / "a.exr")
    bad = [show / ".." / "other" / "a", show / "out" / "a.exr", other, "/etc/passwd", "a.exr", f"{show}x/a.exr"]
    for path in bad:
        with pytest.raises(Refused) as caught:
            roots.check(path)
        assert caught.value.code == "forbidden_path"


def test_the_least_recently_used_goes_first() -> None:
    cache = WarmCache(100)
    for name in "abc":
        cache.put(name, b"x" * 40)
        cache.get("a")
    assert cache.keys() == ["c", "a"]
    assert cache.total == 80
    cache.put("huge", b"x" * 1000)
    assert cache.keys() == ["huge"]
    cache.put("huge", b"x" * 10)
    assert cache.total == 10
    assert cache.make("new", lambda: b"y" * 5) == b"yyyyy"
    assert cache.make("new", lambda: b"z") == b"yyyyy"
    cache.drop("new")
    cache.drop("new")
    assert (cache.keys(), cache.total) == (["huge"], 10)


def test_what_is_in_use_stays_whatever_the_budget() -> None:
    cache = WarmCache(100)
    asked: list[str] = []

    def keep(name: str, free: bool) -> bool:
        asked.append(name)
        return free

    cache.put("busy", object(), 60, lambda: keep("busy", False))
    cache.put("idle", object(), 30, lambda: keep("idle", True))
    cache.put("new", b"x" * 40)
    assert (cache.keys(), cache.total, asked) == (["busy", "new"], 100, ["busy", "idle"])
    cache.shrink(0)
    assert (cache.keys(), cache.total) == (["busy"], 60)


def test_nets_count_among_what_is_warm_and_the_oldest_goes(pool: SessionPool) -> None:
    cache = WarmCache(1 << 40)
    nets = SessionPool(device=pool.device, threads=1, used=WarmNets(cache))
    detector, iris = nets.get("face_detector"), nets.get("iris")
    assert cache.total == detector.size + iris.size
    detector.warm_up()
    cache.put("identity", b"x" * 1000)
    cache.shrink(detector.size + 1000)
    assert (detector.is_loaded, iris.is_loaded) == (True, False)
    iris.warm_up()
    assert iris.is_loaded
    cache.shrink(0)
    assert nets.loaded == ()
    assert cache.total == 0


def test_a_mapping_over_the_cache() -> None:
    cache = WarmCache(1000)
    one, two = WarmMapping(cache, "one"), WarmMapping(cache, "two")
    one["a"], two["a"] = b"1", b"2"
    assert (one["a"], two["a"], list(one), len(two)) == (b"1", b"2", ["a"], 1)
    del one["a"]
    assert one.get("a") is None
    assert two.get("a") == b"2"


@pytest.fixture
def pool() -> SessionPool:
    return SessionPool(device="cpu", threads=1)


def test_size_of_what_holds_pixels() -> None:
    value = {"x": [np.zeros((2, 3), np.float32), torch.zeros(4, dtype=torch.float16)], "y": (b"abc",)}
    assert size_of(value) == 24 + 8 + 3
    assert size_of(torch.nn.Linear(3, 2)) == 4 * (3 * 2 + 2)


def test_an_error_is_told_by_a_type_that_clients_know() -> None:
    failure = to_failure(WorkerDied("a", hint="b"))
    assert (failure.code, failure.type) == ("device", "DeviceError")
    assert to_failure(Told(failure)) is failure


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SettingError("a", hint="b"), "input"),
        (errors.DeviceError("a"), "device"),
        (errors.ModelError("a"), "resource"),
        (errors.OutputBusyError("a"), "busy"),
        (RingStale("a"), "stale_slot"),
        (RingWrongSize("a"), "ring"),
        (MemoryError(), "resource"),
        (Refused("limit", "a"), "limit"),
        (wire.UnknownMessage("a"), "unknown_message"),
        (ZeroDivisionError("a"), "internal"),
    ],
)
def test_every_error_has_a_code_and_can_be_sent(error: BaseException, code: str) -> None:
    message = to_message("1", error)
    assert message.code == code
    assert wire.decode(wire.encode(message)) == message


def test_an_error_with_any_text_can_be_sent() -> None:
    message = to_message(None, SettingError("bad \udcff path " + "x" * 10_000, found="\udcfe"))
    assert wire.decode(wire.encode(message)).message.startswith("bad \\udcff path")


KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, FaceplateError)]


@pytest.mark.parametrize("kind", KINDS)
def test_errors_come_back_as_they_were(kind: type[FaceplateError]) -> None:
    error = kind("message", expected="e", found="f", hint="h")
    back = rebuilt(to_failure(error))
    assert type(back) is kind
    assert (back.to_dict(), back.exit_code) == (error.to_dict(), error.exit_code)


def test_parent_watch() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    watch = ParentWatch(child.pid)
    assert watch.is_alive()
    child.kill()
    child.wait()
    assert not watch.is_alive()
    watch.close()
    with pytest.raises(SettingError, match="no such process"):
        ParentWatch(child.pid)


def test_the_log_is_private_and_rotates(tmp_path: Path) -> None:
    path = tmp_path / "log" / "server.log"
    with logging_to(path, megabytes=1, files=2):
        for number in range(30):
            logging.getLogger("faceplate_server.test").info("%d %s", number, "x" * 100_000)
    files = sorted(path.parent.iterdir())
    assert [file.name for file in files] == ["server.log", "server.log.1", "server.log.2"]
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in files)
    assert all(file.stat().st_size <= 1 << 20 for file in files)
    assert "29 xxx" in path.read_text("utf-8")
