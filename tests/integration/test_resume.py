"""Jobs that are killed, cancelled, repeated and shared out: the same bytes in the end."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.integration.conftest import Cli, leftovers, outputs, start
from tests.support.plates import moving_plate


def words(plate: str, identity: Path, folder: Path) -> list[object]:
    return ["apply", plate, "--identity", identity, "-o", folder / "o.####.exr", "--json", "--device", "cpu"]


@pytest.fixture(scope="session")
def undisturbed(small_plate: str, identity: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("undisturbed")
    assert start(words(small_plate, identity, folder), stdout=subprocess.DEVNULL).wait() == 0
    return outputs(folder)


def test_a_second_run_does_nothing(cli: Cli, small_plate: str, identity: Path, tmp_path: Path) -> None:
    assert cli(*words(small_plate, identity, tmp_path)).event("done")["counts"] == {"done": 6}
    times = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.exr")}
    assert cli(*words(small_plate, identity, tmp_path)).event("done")["counts"] == {"kept": 6}
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.exr")} == times


def test_only_what_is_missing_or_stale_is_done_again(
    cli: Cli, small_plate: str, identity: Path, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    plate = Path(shutil.copytree(Path(small_plate).parent, tmp_path / "plate")) / Path(small_plate).name
    job = words(str(plate), identity, tmp_path)
    cli(*job)
    (tmp_path / "o.1002.exr").unlink()
    (tmp_path / "o.1004.exr").write_bytes(b"bitten")
    ran = cli(*job)
    assert ran.event("done")["counts"] == {"kept": 4, "done": 2}
    assert outputs(tmp_path) == undisturbed
    assert cli(*job, "--set", "strength=0.5").event("done")["counts"] == {"done": 6}
    assert cli(*job, "--frames", "1003").event("done")["counts"] == {"done": 1}
    assert cli(*job).event("done")["counts"] == {"kept": 1, "done": 5}
    assert outputs(tmp_path) == undisturbed


@pytest.mark.parametrize("threads", [1, 4])
def test_the_number_of_threads_changes_no_bit(
    threads: int, cli: Cli, small_plate: str, identity: Path, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    assert cli(*words(small_plate, identity, tmp_path), "--threads", threads).code == 0
    assert outputs(tmp_path) == undisturbed


def test_one_frame_alone_has_the_same_bytes(
    cli: Cli, small_plate: str, identity: Path, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    assert cli(*words(small_plate, identity, tmp_path), "--frames", "1004").code == 0
    assert outputs(tmp_path) == {"o.1004.exr": undisturbed["o.1004.exr"]}


def test_killed_at_any_moment_the_rest_is_the_same(
    small_plate: str, identity: Path, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    rng = random.Random(7)
    kills = 0
    for _ in range(40):
        process = start(words(small_plate, identity, tmp_path), stdout=subprocess.DEVNULL)
        try:
            code = process.wait(timeout=2.0 + 3.0 * rng.random())
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
            for name, data in outputs(tmp_path).items():
                assert data == undisturbed[name]  # whole or absent
            continue
        assert code == 0
        break
    else:
        assert start(words(small_plate, identity, tmp_path), stdout=subprocess.DEVNULL).wait() == 0
    assert kills > 0
    assert outputs(tmp_path) == undisturbed
    assert leftovers(tmp_path) == []


def test_ctrl_c_finishes_the_frame_and_can_go_on(identity: Path, tmp_path: Path) -> None:
    plate = moving_plate(640, 400, 40, face_width_px=160).write(tmp_path / "plate")
    job = [*words(plate, identity, tmp_path), "--threads", "1"]
    process = start(job, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    for line in process.stdout:
        if b'"event": "frame"' in line:
            process.send_signal(signal.SIGINT)
            break
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    done = len(outputs(tmp_path))
    assert 1 <= done < 40
    assert leftovers(tmp_path) == []
    again = start(job, stdout=subprocess.PIPE)
    out, _ = again.communicate(timeout=120)
    assert again.returncode == 0
    assert f'"kept": {done}' in out.decode()
    assert len(outputs(tmp_path)) == 40


def test_runs_that_overlap(identity: Path, tmp_path: Path, cli: Cli) -> None:
    plate = moving_plate(480, 300, 20, face_width_px=120).write(tmp_path / "plate")
    alone, together = words(plate, identity, tmp_path / "alone"), words(plate, identity, tmp_path / "together")
    ranges = ("1001-1014", "1007-1020")
    both = [start([*together, "--frames", part, "--threads", "1"], stdout=subprocess.PIPE) for part in ranges]
    for process in both:
        assert process.stdout is not None
        assert b'"event": "frame"' in next(
            line for line in process.stdout if b"frame" in line and b'"start"' not in line
        )
    other = cli(*together, "--set", "strength=0.5")
    busy = other.code == 2 and other.event("error")["type"] == "OutputBusyError"
    ended = [process.communicate(timeout=120)[0].decode() for process in both]
    assert busy, "another setting while they work"
    assert [process.returncode for process in both] == [0, 0]
    assert cli(*alone).code == 0
    assert outputs(tmp_path / "together") == outputs(tmp_path / "alone")
    assert len(outputs(tmp_path / "together")) == 20
    last = json.loads(ended[1].splitlines()[-1])
    assert sum(last["counts"].values()) == 14
    again = cli(*together)
    assert again.event("done")["counts"] == {"kept": 20}, "every frame is in the manifest, whoever made it"
    assert len(list((tmp_path / "together" / "o.faceplate" / "runs").glob("*.run"))) == 0
