"""Counts of the status page, what is drawn of them, and Prometheus' own parser on the metrics."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from faceplate_client import wire
from faceplate_server.jobs import Job
from faceplate_server.page.board import Board, JobLine, NetLine, net_line
from faceplate_server.page.counts import BOUNDS, BUCKET_S, BUCKETS, Counts
from faceplate_server.page.document import document, plots
from faceplate_server.page.nvml import Gpu, Nvml
from faceplate_server.page.prometheus import metrics
from faceplate_server.page.system import Sample, Sampler

FAILURE = wire.Failure("input", "MissingFrameError", "frame 7 has no file", "a file", "a hole", "render it again")


class Clock:
    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def frame_job(clock: Clock, name: str = "1", priority: str = "interactive") -> Job:
    message = wire.SubmitFrame(name, 1, wire.FileRef("/p.exr"), wire.FileRef("/o.exr"), (), priority=priority)
    job = Job(message, b"a", "nuke")
    job.arrived = clock.now
    return job


def range_job(name: str = "2") -> Job:
    return Job(wire.SubmitRange(name, "/p.####.exr", "/o.####.exr", None, ()), b"b", "apply")


def result(name: str = "1", state: str = "done", total_ms: float = 20.0) -> wire.FrameResult:
    return wire.FrameResult(name, 1, state, wire.FileRef("/o.exr"), (), {}, {"total": total_ms})


def partial(frame: int, state: str = "done", error: wire.Failure | None = None, ms: float = 40.0) -> wire.Partial:
    return wire.Partial("2", frame, state, None, error, {}, {"frame": ms})


def board(**changes: Any) -> Board:
    facts: dict[str, Any] = {
        "at": 0.0,
        "state": "ready",
        "instance": "ab",
        "version": "0.1.0",
        "uptime_s": 12.5,
        "devices": (wire.Device("cuda:0", "cuda", "CUDAExecutionProvider"),),
        "summary": "cuda:0 by CUDAExecutionProvider",
        "frames_done": 3,
        "nets": (NetLine("face_mesh", "cuda:0", "CUDAExecutionProvider", "float32"),),
        "clients": (("nuke", 1),),
        "jobs": (JobLine("1", "range", "running", "batch", "nuke", 1, 9, 4.0),),
        "job_counts": Counter({("range", "batch", "running"): 1}),
        "memory_mb": 512.0,
        "warm_mb": 64.0,
        "warm_budget_mb": 2048.0,
        "rings": 2,
    }
    return Board(**{**facts, **changes})


GPU = Gpu(0, 'H "200"', "GPU-1", 61.0, 402.5, 700.0, 1980, 1980, 2619, 87.0, 1000.0, 141312.0, ("idle", "power limit"))
SAMPLE = Sample(1.0, 8, 2.5, 1.5, 1000.0, 2000.0, (GPU,), "")


def read(text: str) -> dict[str, Any]:
    return {family.name: family for family in text_string_to_metric_families(text)}


def test_an_interactive_frame_is_timed_from_its_arrival_and_a_batch_frame_by_itself() -> None:
    clock = Clock()
    counts = Counts(clock, lambda: 5.0)
    job = frame_job(clock)
    clock.now += 0.3
    counts.told(job, result())
    counts.told(frame_job(clock, "9", "batch"), result("9", total_ms=80.0))
    counts.told(range_job(), partial(1))
    tally = counts.read()
    (bucket,) = tally.buckets
    assert bucket.seconds == {"interactive": [pytest.approx(0.3)], "batch": [0.08, 0.04]}
    assert dict(tally.frames) == {("interactive", "done"): 1, ("batch", "done"): 2}
    assert dict(tally.jobs) == {("frame", "done"): 2}


def test_failed_frames_and_ends_are_told_with_their_hint_and_the_same_again_is_counted() -> None:
    counts = Counts(Clock(), lambda: 77.0)
    for frame in (7, 8):
        counts.told(range_job(), partial(frame, "failed", FAILURE))
    counts.told(range_job(), wire.Error("2", "device", "DeviceError", "gone", hint="look at it"))
    counts.refused("blender", wire.Error(None, "malformed", "Malformed", "no JSON"))
    tally = counts.read()
    assert [(one.failure.message, one.client, one.where, one.times) for one in tally.troubles] == [
        ("no JSON", "blender", "", 1),
        ("gone", "apply", "job 2", 1),
        ("frame 7 has no file", "apply", "job 2, frame 8", 2),
    ]
    assert tally.troubles[2].failure.hint == "render it again"
    assert dict(tally.errors) == {"input": 2, "device": 1, "malformed": 1}
    assert dict(tally.jobs) == {("range", "error"): 1}


def test_a_flood_of_different_errors_keeps_the_latest() -> None:
    counts = Counts()
    for number in range(1000):
        counts.refused("x", wire.Error(None, "malformed", "Malformed", f"no {number}"))
    tally = counts.read()
    assert tally.errors["malformed"] == 1000
    assert [one.failure.message for one in tally.troubles] == [f"no {number}" for number in range(999, 959, -1)]


def test_samples_of_a_busy_bucket_are_few_and_fair() -> None:
    clock = Clock()
    counts = Counts(clock)
    for number in range(20_000):
        counts.told(range_job(), partial(number, ms=float(number)))
    (bucket,) = counts.read().buckets
    assert bucket.frames["batch"] == 20_000
    kept = bucket.seconds["batch"]
    assert len(kept) == 256
    assert 8.0 < sum(kept) / len(kept) < 12.0  # the mean of all is 10 s


def test_plots_have_gaps_where_nothing_was_done_and_leave_out_the_bucket_that_is_filled() -> None:
    clock = Clock(1000.0)
    counts = Counts(clock)
    for _ in range(10):
        counts.told(range_job(), partial(1, ms=100.0))
    clock.now += 2 * BUCKET_S
    counts.told(range_job(), partial(1, ms=300.0))
    drawn = plots(counts.read())
    assert drawn["rate"]["batch"] == [0.0] * (BUCKETS - 2) + [10 / BUCKET_S, 0.0]
    assert drawn["p50_ms"]["batch"][-2:] == [pytest.approx(100.0), None]
    assert drawn["p95_ms"]["interactive"] == [None] * BUCKETS
    clock.now += BUCKETS * BUCKET_S
    assert plots(counts.read())["rate"]["batch"][0] == 1 / BUCKET_S


def test_the_document_is_json_of_all_of_it() -> None:
    counts = Counts()
    counts.told(range_job(), partial(7, "failed", FAILURE))
    state = json.loads(json.dumps(document(board(), counts.read(), SAMPLE, "default"), allow_nan=False))
    assert state["gpus"][0]["throttled"] == ["power limit"]
    assert state["errors"][0]["hint"] == "render it again"
    assert (state["running"], state["queued"], state["failed"]) == (1, 0, 1)
    assert state["nets"] == [
        {"id": "face_mesh", "device": "cuda:0", "provider": "CUDAExecutionProvider", "precision": "float32"}
    ]


@pytest.mark.parametrize("precision", ["float32", "bfloat16 (rms error 0.4 %)"])
@pytest.mark.parametrize("memory", [", 61 MB", ""])
def test_a_nets_own_words_become_a_line(precision: str, memory: str) -> None:
    line = net_line(f"swap on 2 on tensorrt:1 by TensorrtExecutionProvider in {precision}{memory}")
    assert line == NetLine("swap on 2", "tensorrt:1", "TensorrtExecutionProvider", precision)
    (told,) = read(metrics(board(nets=(line,)), Counts().read(), SAMPLE, "a"))["faceplate_net_loaded"].samples
    assert told.labels["precision"] == precision.split(" ")[0]


def test_prometheus_reads_the_metrics() -> None:
    clock = Clock()
    counts = Counts(clock)
    for ms in (1.0, 30.0, 30.0, 99_000.0):
        counts.told(range_job(), partial(1, ms=ms))
    counts.told(range_job(), partial(7, "failed", FAILURE, ms=4.0))
    families = read(metrics(board(), counts.read(), SAMPLE, "default"))
    assert {name: family.type for name, family in families.items() if family.type != "gauge"} == {
        "faceplate_frames": "counter",
        "faceplate_errors": "counter",
        "faceplate_frame_seconds": "histogram",
        "faceplate_cpu_seconds": "counter",
    }
    assert all(family.documentation for family in families.values())
    frames = {one.labels["state"]: one.value for one in families["faceplate_frames"].samples}
    assert frames == {"done": 4.0, "failed": 1.0}
    batch = [one for one in families["faceplate_frame_seconds"].samples if one.labels["kind"] == "batch"]
    below = {one.labels["le"]: one.value for one in batch if one.name.endswith("_bucket")}
    assert [below[str(bound)] for bound in (0.001, 0.005, 0.025, 0.05, 60.0)] == [1, 2, 2, 4, 4]
    assert below["+Inf"] == 5
    assert len(below) == len(BOUNDS) + 1
    assert {one.name[-5:]: one.value for one in batch[-2:]} == {"s_sum": pytest.approx(99.065), "count": 5.0}
    (temperature,) = families["faceplate_gpu_temperature_celsius"].samples
    assert (temperature.value, temperature.labels["name"]) == (61.0, 'H "200"')
    slowed = {one.labels["reason"]: one.value for one in families["faceplate_gpu_slowed"].samples}
    assert (slowed["power limit"], slowed["too warm (hardware)"]) == (1.0, 0.0)
    assert families["faceplate_resident_memory_bytes"].samples[0].value == 512 * 2**20


def test_a_server_that_starts_has_metrics_too() -> None:
    empty = board(state="starting", devices=(), nets=(), clients=(), jobs=(), job_counts=Counter(), warm_mb=None)
    silent = Sample(0.0, 1, 0.0, None, None, None, (), "no driver")
    families = read(metrics(empty, Counts().read(), silent, "default"))
    states = {one.labels["state"]: one.value for one in families["faceplate_server_state"].samples}
    assert states == {"starting": 1.0, "ready": 0.0, "stopping": 0.0}
    assert "faceplate_warm_bytes" not in families
    assert not [name for name in families if "gpu" in name]


@given(st.text())
def test_any_name_survives_as_a_label(name: str) -> None:
    text = metrics(board(), Counts().read(), SAMPLE, name)
    if "\r" in name or any(letter in name for letter in "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"):
        return  # the parser of the test cuts lines there, Prometheus does not
    assert read(text)["faceplate_server_info"].samples[0].labels["name"] == name


class FakeNvml:
    """What nvidia-ml-py has, of one GPU that does not know its power."""

    NVML_TEMPERATURE_GPU = 0
    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2

    class NVMLError(Exception):
        pass

    def __init__(self, broken: str = "") -> None:
        self.broken = broken
        self.down = False

    def nvmlInit(self) -> None:
        if self.broken:
            raise self.NVMLError(self.broken)

    def nvmlShutdown(self) -> None:
        self.down = True

    def nvmlDeviceGetCount(self) -> int:
        if self.down:
            raise self.NVMLError("GPU is lost")
        return 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetName(self, _: int) -> bytes:
        return b"NVIDIA H200"

    def nvmlDeviceGetUUID(self, _: int) -> str:
        return "GPU-ab"

    def nvmlDeviceGetMemoryInfo(self, _: int) -> Any:
        return type("Memory", (), {"used": 3 << 30, "total": 141 << 30})

    def nvmlDeviceGetUtilizationRates(self, _: int) -> Any:
        return type("Rates", (), {"gpu": 97})

    def nvmlDeviceGetPowerUsage(self, _: int) -> int:
        raise self.NVMLError("Not Supported")

    def nvmlDeviceGetEnforcedPowerLimit(self, _: int) -> int:
        return 700_000

    def nvmlDeviceGetTemperature(self, _: int, kind: int) -> int:
        return 64 + kind

    def nvmlDeviceGetClockInfo(self, _: int, kind: int) -> int:
        return {1: 1500, 2: 3201}[kind]

    def nvmlDeviceGetMaxClockInfo(self, _: int, kind: int) -> int:
        return {1: 1980}[kind]

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, _: int) -> int:
        return 0x4 | 0x40


def test_nvml_tells_what_it_knows() -> None:
    (gpu,) = Nvml(FakeNvml()).read()
    assert gpu == Gpu(
        index=0,
        name="NVIDIA H200",
        uuid="GPU-ab",
        temperature_c=64,
        power_w=None,
        power_limit_w=700.0,
        clock_mhz=1500,
        clock_max_mhz=1980,
        memory_clock_mhz=3201,
        used_percent=97.0,
        memory_used_mb=3072.0,
        memory_total_mb=141 * 1024.0,
        slowed_by=("power limit", "too warm (hardware)"),
    )


def test_nvml_says_why_it_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Nvml(FakeNvml("Driver Not Loaded")).silence == "Driver Not Loaded"
    monkeypatch.setitem(__import__("sys").modules, "pynvml", None)
    assert "not installed" in Nvml().silence
    lost = Nvml(module := FakeNvml())
    module.down = True
    assert lost.read() == ()
    assert lost.silence == "GPU is lost"


def test_the_real_library_knows_the_names_that_are_asked_for() -> None:
    real = pytest.importorskip("pynvml")
    wanted = [name for name in dir(FakeNvml) if name.startswith(("nvml", "NVML"))]
    assert [name for name in wanted if not hasattr(real, name)] == []


def test_the_sampler_looks_by_itself_and_ends() -> None:
    module = FakeNvml()
    sampler = Sampler(Nvml(module))
    for _ in range(200):
        if sampler.last.gpus:
            break
        __import__("time").sleep(0.01)
    assert sampler.last.gpus[0].temperature_c == 64
    assert sampler.last.silence == ""
    assert sampler.last.cores >= 1
    sampler.close()
    assert module.down
