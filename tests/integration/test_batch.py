"""Queues through the real command line: runners that share, die, are cancelled; the summary; the check."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import OpenEXR
import pytest

from tests.integration.conftest import Cli, leftovers, outputs, start
from tests.support.browser import browse, complaints
from tests.support.plates import moving_plate


def job(plate: object, identity: Path, output: object, **more: Any) -> dict[str, Any]:
    return {"plate": str(plate), "identity": str(identity), "output": str(output), **more}


def write_queue(path: Path, jobs: Sequence[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in jobs))
    return path


def states(home: Path) -> dict[str, dict[str, Any]]:
    found = [json.loads(path.read_text()) for path in sorted(home.glob("*.json"))]
    return {state["name"]: state for state in found}


def test_a_queue_from_the_first_run_to_the_last(cli: Cli, small_plate: str, identity: Path, tmp_path: Path) -> None:
    good = job(small_plate, identity, "out/good.####.exr", name="the good <one>", frames="1001-1002")
    nowhere = job("nowhere/p.####.exr", identity, "out/nowhere.####.exr")
    queue = write_queue(tmp_path / "q.jsonl", [good, nowhere, {**good, "outptu": "x"}])
    ran = cli("batch", queue, "--device", "cpu", "--json")
    assert ran.code == 1
    done = ran.event("done")
    assert done["counts"] == {"done": 1, "failed": 2}
    listed = {event["shot"]: event for event in ran.events if event["event"] == "listed"}
    assert sorted(listed) == ["nowhere", "q.jsonl:3"]
    assert listed["nowhere"]["error"]["type"] == "SequenceError"
    assert "outptu" in listed["q.jsonl:3"]["error"]["message"]
    assert len(outputs(tmp_path / "out")) == 2
    page = Path(done["summary"]).read_text("utf-8")
    assert "the good &lt;one&gt;" in page
    assert page.count("data:image/jpeg") == 3
    link = re.search(r'<a href="([^"#]+)">Report of this shot', page)
    assert link
    assert (Path(done["summary"]).parent / link[1]).samefile(tmp_path / "out" / "good.faceplate" / "report.html")
    shown = browse(Path(done["summary"]).as_uri(), tmp_path / "browser", "--dump-dom")
    assert "the good" in shown.stdout
    assert complaints(shown.stderr) == []

    shutil.copytree(Path(small_plate).parent, tmp_path / "nowhere")
    for path in (tmp_path / "nowhere").glob("plate.*"):
        path.rename(path.with_name(path.name.replace("plate", "p")))
    write_queue(queue, [good, {**nowhere, "frames": "1001", "set": {"strength": 0.5}}])
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("good*.exr")}
    ran = cli("batch", queue, "--device", "cpu", "--json")
    assert (ran.code, ran.event("done")["counts"]) == (0, {"done": 2})
    begun = [event["shot"] for event in ran.events if event["event"] == "shot" and event["state"] == "running"]
    assert begun == ["nowhere"], "what is done is left alone"
    assert {path: path.stat().st_mtime_ns for path in times} == times
    (tmp_path / "out" / "good.1001.exr").unlink()
    assert cli("batch", queue, "--again", "--device", "cpu", "--json").code == 0
    assert len(list((tmp_path / "out").glob("good*.exr"))) == 2
    assert cli("batch", tmp_path / "out").code == 2, "a folder without jobs"


@pytest.fixture(scope="module")
def long_plate(tmp_path_factory: pytest.TempPathFactory) -> str:
    return moving_plate(480, 300, 16, face_width_px=120).write(tmp_path_factory.mktemp("long"))


def stopped_at(process: subprocess.Popen[bytes], shot: str) -> None:
    """Let a runner come to a frame of a shot, and stand still there."""
    assert process.stdout is not None
    for line in process.stdout:
        if b'"event": "frame"' in line and f'"shot": "{shot}"'.encode() in line:
            process.send_signal(signal.SIGSTOP)
            return
    raise AssertionError("it ended before")


def test_two_runners_and_one_dies(identity: Path, long_plate: str, tmp_path: Path, cli: Cli) -> None:
    names = ("a", "b", "c")
    queue = write_queue(tmp_path / "q.jsonl", [job(long_plate, identity, f"{n}/{n}.####.exr") for n in names])
    words = ("batch", queue, "--device", "cpu", "--threads", "1", "--json")
    first = start(words, stdout=subprocess.PIPE)
    stopped_at(first, "a")
    second = start(words, stdout=subprocess.PIPE)
    stopped_at(second, "b")
    assert {name: state["state"] for name, state in states(tmp_path / "q.batch").items()} == dict(
        a="running", b="running"
    )
    first.send_signal(signal.SIGKILL)
    first.wait()
    second.send_signal(signal.SIGCONT)
    out, _ = second.communicate(timeout=120)
    assert second.returncode == 0
    ended = states(tmp_path / "q.batch")
    assert {name: (state["state"], state["attempts"]) for name, state in ended.items()} == {
        "a": ("done", 2),
        "b": ("done", 1),
        "c": ("done", 1),
    }
    assert [name for name, state in ended.items() if state["taken_over"]] == ["a"]
    kept = [json.loads(line)["counts"] for line in out.splitlines() if b'"shot": "a"' in line and b'"counts"' in line]
    assert kept[0]["kept"] >= 1, "it goes on where the dead one stopped"
    assert cli("apply", long_plate, "--identity", identity, "-o", tmp_path / "x" / "a.####.exr").code == 0
    alone = outputs(tmp_path / "x")
    assert outputs(tmp_path / "a") == alone
    for name in "bc":
        assert list(outputs(tmp_path / name).values()) == list(alone.values())
    assert leftovers(tmp_path / "q.batch") == []


def test_jobs_are_added_and_cancelled_while_it_runs(identity: Path, long_plate: str, tmp_path: Path, cli: Cli) -> None:
    queue = tmp_path / "queue"
    for name in ("a", "b", "d"):
        write_queue(queue / f"{name}.jsonl", [job(long_plate, identity, f"../out/{name}.####.exr")])
    words = ("batch", queue, "--device", "cpu", "--threads", "1", "--json")
    runner = start(words, stdout=subprocess.PIPE)
    stopped_at(runner, "a")
    write_queue(queue / "c.jsonl", [job(long_plate, identity, "../out/c.####.exr", frames="1001")])
    assert "is asked to stop" in cli("batch", queue, "--cancel", "a").out
    assert "cancelled" in cli("batch", queue, "--cancel", "b").out
    runner.send_signal(signal.SIGCONT)
    stopped_at(runner, "d")
    cli("batch", queue, "--cancel", "all")
    runner.send_signal(signal.SIGCONT)
    runner.communicate(timeout=60)
    assert runner.returncode == 130
    found = states(queue / "faceplate.batch")
    assert [found[name]["state"] for name in "abcd"] == ["cancelled", "cancelled", "done", "cancelled"]
    assert 1 <= found["a"]["counts"]["done"] < 16
    ran = cli("batch", queue, "--list", "--json")
    assert [event["state"] for event in ran.events if event["event"] == "listed"] == [found[n]["state"] for n in "abcd"]
    for name in "abd":
        write_queue(queue / f"{name}.jsonl", [job(long_plate, identity, f"../out/{name}.####.exr", frames="1001-1002")])
    ran = cli(*words)
    assert (ran.code, ran.event("done")["counts"]) == (0, {"done": 4})


def problems(cli: Cli, output: object, *words: object) -> list[str]:
    ran = cli("check", output, *words, "--json")
    found: list[str] = ran.event("checked")["problems"]
    assert ran.code == bool(found)
    return found


def test_what_the_check_finds(cli: Cli, tmp_path: Path) -> None:
    def write(number: int, second: int, size: int = 32) -> Path:
        header = {
            "compression": OpenEXR.ZIP_COMPRESSION,
            "type": OpenEXR.scanlineimage,
            "timeCode": OpenEXR.TimeCode(1, 0, second, number % 24, *[False] * 6, *[0] * 8),
        }
        path = tmp_path / f"x.{number}.exr"
        OpenEXR.File(header, {"RGB": np.random.default_rng(0).random((size, size, 3)).astype("f")}).write(str(path))
        return path

    for number in range(1000, 1016):
        write(number, number // 24)
    pattern = tmp_path / "x.####.exr"
    assert problems(cli, pattern) == []
    assert problems(cli, pattern, "--frames", "1000-1018") == ["no file: 1016-1018"]
    write(1004, 59)
    write(1007, 1007 // 24, 48)
    cut = tmp_path / "x.1010.exr"
    cut.write_bytes(cut.read_bytes()[:1500])
    (tmp_path / "x.1012.exr").unlink()
    found = " | ".join(problems(cli, pattern))
    assert "another raster than 32x32: 1007" in found
    assert re.search(r"cannot be read \(.+\): 1010", found)
    assert "no file: 1012" in found
    assert "the timecode does not count on: 1004-1005" in found
    plate = tmp_path / "plate"
    shutil.copytree(tmp_path, plate, ignore=shutil.ignore_patterns("plate"))
    write(1004, 1004 // 24)
    assert "another timecode than the plate: 1004" in problems(cli, pattern, "--plate", plate / "x.####.exr")
    assert cli("check", tmp_path / "none.####.exr").code == 2


def test_a_result_that_is_altered_is_found(cli: Cli, small_plate: str, identity: Path, tmp_path: Path) -> None:
    out = tmp_path / "o.####.exr"
    assert cli("apply", small_plate, "--identity", identity, "-o", out, "--frames", "1001-1003").code == 0
    assert problems(cli, out, "--plate", small_plate) == []
    shutil.copy(tmp_path / "o.1001.exr", tmp_path / "o.1002.exr")
    assert "not as the job wrote it: 1002" in problems(cli, out)


@pytest.mark.skipif(shutil.which("mount") is None, reason="no file system of a chosen size can be made")
def test_a_full_disk_fails_one_job_alone(cli: Cli, small_plate: str, identity: Path, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1800k", "none", small], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting needs rights")
    try:
        names = ("small", "large")
        jobs = [job(small_plate, identity, f"{name}/o.####.exr", frames="1001-1004", name=name) for name in names]
        queue = write_queue(tmp_path / "q.jsonl", jobs)
        assert cli("batch", queue, "--device", "cpu", "--json").code == 1
        found = states(tmp_path / "q.batch")
    finally:
        subprocess.run(["umount", small], check=True)
    assert found["large"]["state"] == "done"
    assert found["small"]["error"]["type"] == "OutputError"
    assert "full" in found["small"]["error"]["found"]
