"""What the page shows, as JSON: everything that is drawn or printed is worked out here, the page only lays it out."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from .board import Board
from .counts import BUCKET_S, BUCKETS, KINDS, Bucket, Tally
from .nvml import HARMLESS, Gpu
from .system import Sample


def document(board: Board, tally: Tally, sample: Sample, name: str) -> dict[str, Any]:
    """The state of the server.

    Args:
        board: how things stand.
        tally: what happened.
        sample: of the machine.
        name: of the server.
    """
    return {
        "name": name,
        "state": board.state,
        "version": board.version,
        "instance": board.instance,
        "uptime_s": board.uptime_s,
        "summary": board.summary,
        "devices": [dataclasses.asdict(device) for device in board.devices],
        "nets": [dataclasses.asdict(net) for net in board.nets],
        "frames_done": board.frames_done,
        "clients": [{"name": client, "jobs": jobs} for client, jobs in board.clients],
        "jobs": [dataclasses.asdict(job) for job in board.jobs],
        "running": sum(count for (_, _, state), count in board.job_counts.items() if state == "running"),
        "queued": sum(count for (_, _, state), count in board.job_counts.items() if state == "queued"),
        "memory": {
            "process_mb": board.memory_mb,
            "warm_mb": board.warm_mb,
            "warm_budget_mb": board.warm_budget_mb,
            "rings": board.rings,
            "machine_free_mb": sample.free_mb,
            "machine_total_mb": sample.total_mb,
        },
        "cpu": {"cores": sample.cores, "used": sample.cores_used, "load": sample.load},
        "gpus": [_gpu(gpu) for gpu in sample.gpus],
        "gpus_silent": sample.silence,
        "gpus_age_s": tally.now - sample.at,
        "plots": plots(tally),
        "errors": [
            {
                **dataclasses.asdict(one.failure),
                "client": one.client,
                "where": one.where,
                "at": one.at,
                "times": one.times,
            }
            for one in tally.troubles
        ],
        "failed": sum(count for (_, state), count in tally.frames.items() if state == "failed"),
    }


def _gpu(gpu: Gpu) -> dict[str, Any]:
    slowed = None if gpu.slowed_by is None else [reason for reason in gpu.slowed_by if reason not in HARMLESS]
    return {**dataclasses.asdict(gpu), "throttled": slowed}


def plots(tally: Tally) -> dict[str, Any]:
    """Frame rate and times of the last minutes, one number a few seconds, the latest last; None is no frame."""
    latest = tally.now // BUCKET_S * BUCKET_S
    by_start = {bucket.start: bucket for bucket in tally.buckets}
    # the bucket that is being filled is left out: it would look like a drop
    buckets = [by_start.get(latest - BUCKET_S * back) for back in range(BUCKETS, 0, -1)]
    return {
        "step_s": BUCKET_S,
        "rate": {kind: [_rate(bucket, kind) for bucket in buckets] for kind in KINDS},
        "p50_ms": {kind: [_time(bucket, kind, 50) for bucket in buckets] for kind in KINDS},
        "p95_ms": {kind: [_time(bucket, kind, 95) for bucket in buckets] for kind in KINDS},
    }


def _rate(bucket: Bucket | None, kind: str) -> float:
    return 0.0 if bucket is None else bucket.frames[kind] / BUCKET_S


def _time(bucket: Bucket | None, kind: str, percent: float) -> float | None:
    return None if bucket is None else _percentile(bucket.seconds[kind], percent)


def _percentile(seconds: Sequence[float], percent: float) -> float | None:
    """Milliseconds that `percent` of the frames did not exceed."""
    if not seconds:
        return None
    ordered = sorted(seconds)
    return 1e3 * ordered[min(len(ordered) - 1, int(percent / 100 * len(ordered)))]
