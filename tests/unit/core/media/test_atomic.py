"""A file is whole or not there, whatever happens in the middle of writing it."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from faceplate.errors import OutputError
from faceplate.media.atomic import atomic_write, is_temporary, output_error, remove_abandoned
from faceplate.media.exr import read_exr, write_exr
from faceplate.media.images import write_image


def test_the_file_appears_at_the_end_with_the_usual_rights(tmp_path: Path) -> None:
    target = tmp_path / "x.1001.exr"
    plain = tmp_path / "plain"
    plain.touch()
    with atomic_write(target) as temporary:
        assert (temporary.parent, temporary.suffix, temporary.name[0]) == (tmp_path, ".exr", ".")
        assert is_temporary(temporary)
        temporary.write_bytes(b"new")
        assert not target.exists()
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode == plain.stat().st_mode
    assert set(os.listdir(tmp_path)) == {"x.1001.exr", "plain"}


@pytest.mark.parametrize("error", [RuntimeError("boom"), KeyboardInterrupt(), OSError(errno.EIO, "bad disk")])
def test_a_failure_leaves_the_old_file_and_no_temporary(error: BaseException, tmp_path: Path) -> None:
    target = tmp_path / "x.exr"
    target.write_bytes(b"old")
    expected = OutputError if isinstance(error, OSError) else type(error)

    def write() -> None:
        with atomic_write(target) as temporary:
            temporary.write_bytes(b"half")
            raise error

    with pytest.raises(expected):
        write()
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x.exr"]


def test_a_symbolic_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.exr").symlink_to(tmp_path / "real" / "x.exr")
    with atomic_write(tmp_path / "link.exr") as temporary:
        temporary.write_bytes(b"new")
    assert (tmp_path / "link.exr").is_symlink()
    assert (tmp_path / "real" / "x.exr").read_bytes() == b"new"


def test_a_name_at_the_limit_of_the_file_system_works(tmp_path: Path) -> None:
    target = tmp_path / ("n" * 251 + ".exr")
    with atomic_write(target) as temporary:
        temporary.write_bytes(b"new")
    assert target.read_bytes() == b"new"


def test_reasons_are_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder.exr").mkdir()
    cases = {
        tmp_path / "no" / "x.exr": "folder does not exist",
        tmp_path / "file" / "x.exr": "is a file",
        tmp_path / "folder.exr": "is a folder",
        Path("/proc/x.exr"): r"does not exist|permission",
    }
    for target, reason in cases.items():
        with pytest.raises(OutputError, match=reason) as caught, atomic_write(target):
            raise AssertionError("the block must not run")
        assert caught.value.hint
        assert str(target) in caught.value.message
    for number in (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT, errno.EIO):
        assert output_error("x.exr", OSError(number, "?")).hint
    assert "strange" in str(output_error(tmp_path / "x.exr", RuntimeError("strange")))


@pytest.mark.parametrize(
    ("name", "temporary"),
    [
        (".faceplate-tmp-77-0123456789ab.exr", True),
        (".faceplate-tmp-77-0123456789ab", True),
        ("faceplate-tmp-77-0123456789ab.exr", False),
        (".faceplate-tmp-77-0123456789ab.exr.bak", False),
        (".faceplate-tmp-x.exr", False),
        ("x.1001.exr", False),
    ],
)
def test_only_our_temporaries_are_recognised(name: str, temporary: bool) -> None:
    assert is_temporary(name) is temporary
    assert is_temporary(Path("/some/where") / name) is temporary


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("no mount command: a full disk cannot be tested here")
    if done.returncode:
        pytest.skip(f"mounting a small tmpfs is not permitted here: {done.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("extension", [".exr", ".tif", ".dpx", ".png"])
def test_a_full_disk_is_an_output_error_and_leaves_nothing(small_disk: Path, extension: str) -> None:
    noise = np.random.default_rng(0).random((400, 400, 3), np.float32)
    old = small_disk / f"x.1001{extension}"
    write_image(old, noise[:8, :8])
    before = old.read_bytes()
    with pytest.raises(OutputError, match="disk is full") as caught:
        write_image(old, noise)
    assert "free some space" in str(caught.value.hint)
    assert os.listdir(small_disk) == [old.name]
    assert old.read_bytes() == before


KILLED = """
import sys, numpy as np
from faceplate.media.exr import write_exr
pixels = np.random.default_rng(1).random((700, 700, 4), np.float32)
print("ready", flush=True)
while True:
    write_exr(sys.argv[1], pixels)
"""


def test_kill_9_in_the_middle_of_writing_leaves_a_whole_file(tmp_path: Path) -> None:
    target = tmp_path / "x.exr"
    write_exr(target, np.zeros((4, 4, 4), np.float32))
    caught_writing = 0
    for delay in (0.005, 0.02, 0.035, 0.06):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(target)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert read_exr(target).pixels.shape in ((4, 4, 4), (700, 700, 4))
        left = [name for name in os.listdir(tmp_path) if name != target.name]
        assert all(is_temporary(name) for name in left)
        caught_writing += len(left)
        for name in left:
            (tmp_path / name).unlink()
    assert caught_writing, "no kill fell into a write"


@pytest.mark.skipif(os.name != "posix", reason="there an open file cannot be removed at all")
def test_a_file_that_is_being_written_is_not_swept(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "a.exr") as temporary:
        temporary.write_bytes(b"half")
        assert not remove_abandoned(temporary)
        temporary.write_bytes(b"whole")
    assert (tmp_path / "a.exr").read_bytes() == b"whole"
    left = tmp_path / ".faceplate-tmp-1-0123456789ab.exr"
    left.write_bytes(b"left by a kill")
    assert remove_abandoned(left)
    assert not left.exists()
    assert not remove_abandoned(tmp_path / "a.exr")
