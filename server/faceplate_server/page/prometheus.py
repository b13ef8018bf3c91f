"""The same facts in Prometheus' text format, version 0.0.4."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping

from .board import Board
from .counts import BOUNDS, Tally
from .nvml import REASONS, Gpu
from .system import Sample

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str]
Line = tuple[str, Labels, float]
"""What follows the metric's name ("", "_bucket"), its labels, its value."""
_MB = float(1 << 20)
_STATES = ("starting", "ready", "stopping")


def _family(name: str, kind: str, text: str, lines: Iterable[Line]) -> Iterator[str]:
    """One metric; nothing at all where it has no lines."""
    lines = list(lines)
    if not lines:
        return
    yield f"# HELP faceplate_{name} {text}"
    yield f"# TYPE faceplate_{name} {kind}"
    for end, labels, value in lines:
        inside = ",".join(f'{label}="{_escaped(words)}"' for label, words in labels.items())
        yield f"faceplate_{name}{end}{{{inside}}} {value:.17g}" if inside else f"faceplate_{name}{end} {value:.17g}"


def _escaped(words: str) -> str:
    return words.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _one(value: float | None) -> list[Line]:
    return [] if value is None else [("", {}, value)]


def metrics(board: Board, tally: Tally, sample: Sample, name: str) -> str:
    """All metrics as text.

    Args:
        board: how things stand.
        tally: what happened.
        sample: of the machine.
        name: of the server.
    """
    families = (_server(board, name), _work(board, tally), _memory(board, sample), _gpus(sample.gpus))
    return "\n".join(itertools.chain(*families)) + "\n"


def _server(board: Board, name: str) -> Iterator[str]:
    about = {"name": name, "version": board.version, "instance": board.instance}
    yield from _family("server_info", "gauge", "Which server this is; always 1.", [("", about, 1.0)])
    states: list[Line] = [("", {"state": state}, float(state == board.state)) for state in _STATES]
    yield from _family("server_state", "gauge", "1 for the state that the server is in.", states)
    yield from _family("uptime_seconds", "gauge", "Since the server's start.", _one(board.uptime_s))
    devices: list[Line] = [("", {"device": one.name, "provider": one.provider}, 1.0) for one in board.devices]
    yield from _family("device_info", "gauge", "What work is done on; always 1.", devices)
    nets: list[Line] = [
        ("", {"net": one.id, "device": one.device, "provider": one.provider, "precision": one.numbers}, 1.0)
        for one in board.nets
    ]
    yield from _family("net_loaded", "gauge", "1 for each net in memory.", nets)
    yield from _family("clients", "gauge", "Connections that have said hello.", _one(len(board.clients)))


def _work(board: Board, tally: Tally) -> Iterator[str]:
    jobs: list[Line] = [
        ("", {"kind": kind, "priority": priority, "state": state}, count)
        for (kind, priority, state), count in sorted(board.job_counts.items())
    ]
    yield from _family("jobs", "gauge", "Jobs that wait or are at work.", jobs)
    frames: list[Line] = [
        ("", {"kind": kind, "state": state}, count) for (kind, state), count in sorted(tally.frames.items())
    ]
    yield from _family("frames_total", "counter", "Frames by how they ended.", frames)
    ends: list[Line] = [("", {"kind": kind, "end": end}, count) for (kind, end), count in sorted(tally.jobs.items())]
    yield from _family("jobs_ended_total", "counter", "Jobs by how they ended.", ends)
    errors: list[Line] = [("", {"code": code}, count) for code, count in sorted(tally.errors.items())]
    yield from _family("errors_total", "counter", "Errors that were told to clients.", errors)
    text = "Seconds a frame took: interactive ones from arrival to end, others by themselves."
    yield from _family("frame_seconds", "histogram", text, _histogram(tally))


def _histogram(tally: Tally) -> Iterator[Line]:
    for kind, histogram in tally.histograms.items():
        sums = list(itertools.accumulate(histogram.counts))
        for bound, below in zip((*map(str, BOUNDS), "+Inf"), sums, strict=True):
            yield "_bucket", {"kind": kind, "le": bound}, below
        yield "_sum", {"kind": kind}, histogram.total
        yield "_count", {"kind": kind}, sums[-1]


def _memory(board: Board, sample: Sample) -> Iterator[str]:
    yield from _family("resident_memory_bytes", "gauge", "Of the process.", _one(board.memory_mb * _MB))
    warm = [None if one is None else one * _MB for one in (board.warm_mb, board.warm_budget_mb)]
    yield from _family("warm_bytes", "gauge", "Identities, sidecars and plates that are kept warm.", _one(warm[0]))
    yield from _family("warm_budget_bytes", "gauge", "What these may take.", _one(warm[1]))
    yield from _family("frame_rings", "gauge", "Frame rings that are mapped.", _one(board.rings))
    yield from _family("cpu_seconds_total", "counter", "Processor time of the process.", _one(time.process_time()))
    load = sample.load
    yield from _family("machine_load", "gauge", "Of the machine, over the last minute.", _one(load))


def _gpus(gpus: tuple[Gpu, ...]) -> Iterator[str]:
    def each(name: str, text: str, value: Mapping[int, float | None]) -> Iterator[str]:
        lines: list[Line] = [
            ("", {"gpu": str(gpu.index), "uuid": gpu.uuid, "name": gpu.name}, number)
            for gpu in gpus
            if (number := value[gpu.index]) is not None
        ]
        yield from _family(f"gpu_{name}", "gauge", text, lines)

    def scaled(field: str, factor: float = 1.0) -> dict[int, float | None]:
        values = {gpu.index: getattr(gpu, field) for gpu in gpus}
        return {index: None if value is None else value * factor for index, value in values.items()}

    yield from each("temperature_celsius", "Of the chip.", scaled("temperature_c"))
    yield from each("power_watts", "Drawn now.", scaled("power_w"))
    yield from each("power_limit_watts", "What it may draw.", scaled("power_limit_w"))
    yield from each("clock_hertz", "Of the multiprocessors.", scaled("clock_mhz", 1e6))
    yield from each("memory_clock_hertz", "Of its memory.", scaled("memory_clock_mhz", 1e6))
    yield from each("used_ratio", "Share of the time that a kernel ran.", scaled("used_percent", 0.01))
    yield from each("memory_used_bytes", "Of all processes.", scaled("memory_used_mb", _MB))
    yield from each("memory_bytes", "That it has.", scaled("memory_total_mb", _MB))
    slowed: list[Line] = [
        ("", {"gpu": str(gpu.index), "reason": reason}, float(reason in gpu.slowed_by))
        for gpu in gpus
        if gpu.slowed_by is not None
        for reason in REASONS.values()
    ]
    yield from _family("gpu_slowed", "gauge", "1 for each reason why its clocks are not higher.", slowed)
