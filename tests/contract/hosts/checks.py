"""What every host adapter must do, as plain functions that run wherever the host does: in pytest, or inside the host.

Standard library and `faceplate_client` only, so that a process of Blender's Python can import this file. Each
`check_NAME(bench)` gets a fresh `Bench` whose document is empty, and raises AssertionError where the adapter is at
fault. `CHECKS` has them by name; `skips` says why one does not apply to a host.
"""

from __future__ import annotations

from collections.abc import Callable

from faceplate_client.host import Feature
from tests.contract.hosts import check_documents, check_live, check_running
from tests.contract.hosts.bench import START, Bench, Stage

__all__ = ["CHECKS", "KILLS", "NEEDS", "START", "Bench", "Stage", "skips"]

CHECKS: dict[str, Callable[[Bench], None]] = {
    name[len("check_") :]: value
    for part in (check_documents, check_running, check_live)
    for name, value in vars(part).items()
    if name.startswith("check_")
}
NEEDS: dict[str, frozenset[Feature]] = {
    "one_undo_takes_it_all_back": frozenset({Feature.UNDO}),
    "a_retimed_clip_is_baked_first": frozenset({Feature.BAKE}),
    "a_live_frame_from_the_source": frozenset({Feature.PIXELS_OUT}),
    "a_live_frame_from_pixels_is_exact": frozenset({Feature.PIXELS_IN, Feature.PIXELS_OUT}),
    "a_live_frame_larger_than_the_host_says": frozenset({Feature.PIXELS_OUT}),
    "a_live_frame_that_fails_is_a_slate": frozenset({Feature.PIXELS_OUT}),
    "a_live_effect_outlives_the_server": frozenset({Feature.PIXELS_OUT}),
}
KILLS = ("a_server_that_dies_in_mid_job_is_no_loss", "a_live_effect_outlives_the_server")
"""Checks that need a server of their own, `Bench.restartable`."""


def skips(name: str, bench: Bench) -> str:
    """Why a check does not apply to this host, "" where it does."""
    lacking = NEEDS.get(name, frozenset()) - bench.features
    if lacking:
        return "the host has no " + ", ".join(sorted(feature.value for feature in lacking))
    return "needs a server of its own" if name in KILLS and not bench.restartable else ""
