"""A job on a farm, run by the real `openjd` command: done, a frame that fails, cancelled, a runner that is killed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import Cli, outputs
from tests.support.plates import moving_plate

OPENJD = Path(sys.executable).with_name("openjd")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the runner's processes are looked up in /proc")


class Farm:
    """Bundles and sessions in one folder; every process that a session starts is known by its environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "faceplate"
        self.program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m faceplate "$@"\n')
        self.program.chmod(0o755)

    def export(self, cli: Cli, job: dict[str, Any], chunk: int) -> Path:
        (self.folder / "job.json").write_text(json.dumps(job))
        words = ("--chunk", chunk, "--program", self.program)
        assert cli("farm", "export", self.folder / "job.json", "-o", self.folder / "bundle", *words).code == 0
        return self.folder / "bundle"

    def session(self, bundle: Path, *words: str) -> subprocess.Popen[str]:
        parameters = ("-p", f"file://{bundle / 'parameters.json'}", "-p", "Device=cpu", "-p", "Threads=1")
        return subprocess.Popen(
            [OPENJD, "run", bundle / "template.json", *parameters, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "FARM_TEST_FOLDER": str(self.folder)},
        )

    def processes(self) -> list[str]:
        """What still runs of any session."""
        mark = f"FARM_TEST_FOLDER={self.folder}".encode()
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (place / "environ").read_bytes().split(b"\0"):
                    found.append((place / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue  # it has just ended, or is another user's
        return found

    def wait_for_none(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self.processes() and time.monotonic() < until:
            time.sleep(0.1)
        assert self.processes() == []


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Farm]:
    farm = Farm(tmp_path)
    yield farm
    for place in Path("/proc").glob("[0-9]*"):  # of a test that failed
        try:
            if f"FARM_TEST_FOLDER={tmp_path}".encode() in (place / "environ").read_bytes().split(b"\0"):
                os.kill(int(place.name), signal.SIGKILL)
        except OSError:
            continue


def chunks(log: str) -> list[str]:
    return re.findall(r"Frame\(CHUNK\[INT\]\) = (\S+)", log)


def test_a_movie_through_all_steps_where_other_folders_lie_elsewhere(
    farm: Farm, cli: Cli, small_plate: str, identity: Path, tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    shutil.copytree(Path(small_plate).parent, here / "plate")
    job = {"plate": "here/plate/plate.####.exr", "identity": str(identity), "output": "here/out/o.mov", "fps": 24}
    bundle = farm.export(cli, {**job, "codec": "ffv1", "output": "here/out/o.mkv"}, chunk=3)
    here.rename(there)
    rule = {"source_path_format": "POSIX", "source_path": str(here), "destination_path": str(there)}
    rules = json.dumps({"version": "pathmapping-1.0", "path_mapping_rules": [rule]})
    log, _ = (session := farm.session(bundle, "--path-mapping-rules", rules)).communicate(timeout=300)
    assert session.returncode == 0, log
    assert chunks(log) == ["1001-1003", "1004-1006"]
    assert log.count("ends with") == 1, "one warm server"
    assert "1 kept, 2 done" in log
    assert "6 kept" in log, "the movie's step renders no frame"
    assert "6 frames, all well" in log
    assert re.search(r"openjd_progress: 100\.0", log)
    assert farm.processes() == []
    assert not here.exists()
    plain = ("apply", there / "plate" / "plate.####.exr", "--identity", identity, "--fps", "24", "--codec", "ffv1")
    assert cli(*plain, "-o", tmp_path / "plain" / "o.mkv", "--device", "cpu").code == 0
    assert (there / "out" / "o.mkv").read_bytes() == (tmp_path / "plain" / "o.mkv").read_bytes()


def test_a_frame_that_fails_ends_the_session_and_leaves_nothing(
    farm: Farm, cli: Cli, small_plate: str, identity: Path, tmp_path: Path
) -> None:
    plate = Path(shutil.copytree(Path(small_plate).parent, tmp_path / "plate"))
    (plate / "plate.1003.exr").write_bytes((plate / "plate.1003.exr").read_bytes()[:3000])
    job = {"plate": "plate/plate.####.exr", "identity": str(identity), "output": "out/o.####.exr"}
    bundle = farm.export(cli, job, chunk=2)
    session = farm.session(bundle, "--step", "Frames", "--no-run-dependencies")
    log, _ = session.communicate(timeout=300)
    assert session.returncode == 1
    assert chunks(log) == ["1001,1002", "1003,1004"] or chunks(log) == ["1001-1002", "1003-1004"]
    assert "frame 1003 failed" in log
    assert "is stopped" in log, "the server was stopped all the same"
    assert farm.processes() == []
    assert [name[2:6] for name in outputs(tmp_path / "out")] == ["1001", "1002", "1004"]


def test_cancelled_no_process_is_left_and_frames_are_kept(farm: Farm, cli: Cli, identity: Path, tmp_path: Path) -> None:
    moving_plate(480, 300, 40, face_width_px=120).write(tmp_path / "plate")
    job = {"plate": "plate/plate.####.exr", "identity": str(identity), "output": "out/o.####.exr"}
    session = farm.session(farm.export(cli, job, chunk=40), "--step", "Frames", "--no-run-dependencies")
    assert session.stdout is not None
    for line in session.stdout:
        if re.search(r"openjd_progress: (3[1-9]|[4-8]\d)\.", line):  # analysed, and a frame is done
            session.send_signal(signal.SIGINT)
            break
    assert len(farm.processes()) >= 3, "session, server, worker, task"
    log, _ = session.communicate(timeout=120)
    assert session.returncode != 0
    assert "is stopped" in log
    assert farm.processes() == []
    assert 1 <= len(outputs(tmp_path / "out")) < 40


def test_the_runner_of_a_session_is_found(tmp_path: Path) -> None:
    """Two starters between an action and its runner, as where actions run under another user."""
    code = (
        "import os, sys; sys.path[:0] = %r; from faceplate_server.farm import session_runner; print(session_runner())"
    )
    command = ["setsid", "--wait", "sh", "-c", '"$@"; true', "sh", sys.executable, "-c", code % sys.path]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(found.stdout) == os.getpid()
