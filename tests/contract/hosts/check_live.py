"""Checks: the effect that is seen at once."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace

from faceplate_client import Client, find, find_or_start, slate
from faceplate_client.live import Live
from faceplate_client.result_folder import file_of
from tests.contract.hosts.bench import START, Bench


def check_a_live_frame_from_the_source(bench: Bench) -> None:
    clip = bench.clip()
    live = Live(bench.host, bench.servers, bench.recipe)
    layout = bench.host.result_layout(clip)
    for frame in (START, START + 2, START):
        ended = live.frame(clip, frame)
        assert ended.error is None, str(ended.error)
        assert ended.state == "done"
        shown = bench.stage.picture()
        assert shown is not None
        header, pixels = shown
        assert (header.width, header.height) == bench.size
        assert (header.channels, header.dtype, header.bottom_up) == (layout.channels, layout.dtype, layout.bottom_up)
        assert any(pixels)
        assert set(ended.ms) == {"host in", "server", "transport", "host out"}
    assert live.failed == {}
    assert any("no consent record" in note for note in ended.notes)
    live.close()


def check_a_live_frame_from_pixels_is_exact(bench: Bench) -> None:
    import array

    clip = bench.clip()
    width, height = bench.size
    values = array.array("f", [-0.5, 0.25, 1000.0, 1.0] * (width * height))
    if not bench.stage.give_pixels(clip.id, values.tobytes()):
        return
    live = Live(bench.host, bench.servers, replace(bench.recipe, engine="null"))
    ended = live.frame(bench.host.clip(clip.id), START)
    assert ended.error is None, str(ended.error)
    shown = bench.stage.picture()
    assert shown is not None
    assert shown[1] == values.tobytes()
    live.close()


def check_a_live_frame_larger_than_the_host_says(bench: Bench) -> None:
    clip = bench.clip()
    if clip.needs_bake:
        return
    live = Live(bench.host, bench.servers, bench.recipe)
    for size in ((0, 0), (4, 2), bench.size):
        ended = live.frame(replace(clip, size=size), START)
        assert ended.error is None, str(ended.error)
        shown = bench.stage.picture()
        assert shown is not None
        assert (shown[0].width, shown[0].height) == bench.size
    assert live.failed == {}
    live.close()


def check_a_live_frame_that_fails_is_a_slate(bench: Bench) -> None:
    clip = bench.clip()
    bad = file_of(bench.plate, bench.media.first + 1)
    whole = bad.read_bytes()
    bad.write_bytes(b"no picture")
    live = Live(bench.host, bench.servers, bench.recipe)
    ended = live.frame(clip, START + 1)
    assert ended.state == "failed"
    assert list(live.failed) == [START + 1]
    shown = bench.stage.picture()
    assert shown is not None
    header, pixels = shown
    expected = bytearray(header.nbytes)
    slate.fill(header, memoryview(expected))
    assert pixels == bytes(expected)
    bad.write_bytes(whole)
    assert live.frame(clip, START + 1).state == "done"
    assert live.failed == {}
    live.close()


def check_a_live_effect_outlives_the_server(bench: Bench) -> None:
    clip = bench.clip()
    live = Live(bench.host, bench.servers, bench.recipe)
    assert live.frame(clip, START).state == "done"
    with Client(find(bench.servers.place), "check") as client:
        pid = client.status().pid
    os.kill(pid, signal.SIGKILL)
    while bench.servers.place.is_alive():
        time.sleep(0.02)
    for frame in (START + 1, START + 2):
        assert live.frame(clip, frame).state == "failed"
    find_or_start(bench.servers.place, bench.servers.command)
    assert live.frame(clip, START + 3).state == "done"
    assert list(live.failed) == [START + 1, START + 2]
    live.close()
