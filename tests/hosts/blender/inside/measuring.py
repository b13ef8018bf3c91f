"""Times inside Blender: live frames, bakes, strips on the timeline. Called by `figures.py` beside this folder."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import bpy
import live
import scenes

LINEAR = "ACEScg"


def _median(values: list[float]) -> list[float]:
    """Median and best: what else the machine does cannot make it faster."""
    return [round(statistics.median(values), 1), round(min(values), 1)]


def _size(plate: str) -> tuple[int, int]:
    image = bpy.data.images.load(plate)
    width, height = image.size
    bpy.data.images.remove(image)
    return int(width), int(height)


def live_frames(folder: str, server: str, identity: str, out: str, engine: str, frames: int) -> dict[str, Any]:
    """Median and best of a live frame's steps, ms; the first frame, which opens connection and ring, left out."""
    plates = scenes.files_in(folder)
    scene = live.scene_with_compositor(*_size(plates[0]), frames + 1, out)
    tree, output = live.comp(scene)
    plate = live.sequence(tree, plates[0], length=len(plates))
    plate.use_cyclic = True
    plate.image.colorspace_settings.name = LINEAR
    node = live.insert(scene, tree, plate, output)
    scenes.ours("nodes").set_switch(node.node_tree, on=True)
    assignments = () if engine == "null" else (scenes.client("wire").Assignment(identity),)
    made = live.effects(server, lambda _: live.recipe(engine=engine, assignments=assignments))
    times: list[dict[str, float]] = []
    handlers = bpy.app.handlers.render_post
    handlers.append(lambda *_: times.append(dict(made.groups[scene.name, node.node_tree.name].last.ms)))
    for number in range(1, frames + 2):
        scene.frame_start = scene.frame_end = number
        live.go(scene)
        for name in os.listdir(out):
            os.unlink(os.path.join(out, name))
    assert not made.failed, made.failed
    steps = [{"host": ms["host in"] + ms["host out"], **ms} for ms in times[1:]]
    return {name: _median([ms[name] for ms in steps]) for name in ("host", "transport", "server")}


def _each(times: int, act: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> list[float]:
    found = []
    for _ in range(times):
        began = clock()
        act()
        found.append((clock() - began) * 1e3)
    return found


def _shown(scene: Any, frames: list[int]) -> list[float]:
    """CPU ms for the sequencer to show a frame: read, convert, put together; nothing is written."""

    def show() -> None:
        scene.frame_current = frames[0]
        frames.append(frames.pop(0))
        for strip in scenes.strips(scene):
            strip.invalidate_cache("RAW")  # else the second round would show what the first one read
        assert bpy.ops.render.render(scene=scene.name, **scenes.api().render) == {"FINISHED"}

    return _median(_each(len(frames) * 2, show, time.process_time)[1:])


def strips(folder: str, server: str, identity: str, out: str) -> dict[str, Any]:
    """Bakes, and a result on the timeline: shown beside the plate, refreshed without and with work to do."""
    plates = scenes.files_in(folder)
    scene = scenes.fresh(*_size(plates[0]))
    scene.sequencer_colorspace_settings.name = LINEAR
    strip = scenes.add_sequence(scene.sequence_editor, plates, 2, 1, "plate")
    strip.colorspace_settings.name = LINEAR
    preferences = bpy.context.preferences.addons[scenes.MODULE].preferences
    preferences.server_folder, preferences.output_root = server, os.path.join(out, "results")
    scene.faceplate.identity = identity
    scenes.select(strip)
    frames = list(range(1, len(plates) + 1))
    told: dict[str, Any] = {"plate_shown_cpu_ms": _shown(scene, frames)}
    host = scenes.ours("host").BlenderHost(scene.name)
    span = scenes.client("frame_maths").Span(1, len(plates))
    began, busy = time.perf_counter(), time.process_time()
    made = list(host.bake(host.clip("strip:plate"), span, os.path.join(out, "bake.####.exr")))
    told["bake_fps"] = round(len(made) / (time.perf_counter() - began), 2)
    told["bake_cpu_ms"] = round((time.process_time() - busy) / len(made) * 1e3, 1)
    (apply,) = _each(1, lambda: _done(bpy.ops.faceplate.apply()))
    told["apply_ms_a_frame"] = round(apply / len(plates), 1)
    told["result_shown_cpu_ms"] = _shown(scene, frames)
    (placed,) = host.results()
    told["reload_ms"] = _median(_each(10, lambda: host.reload(placed)))
    told["refresh_nothing_ms"] = _median(_each(3, lambda: _done(bpy.ops.faceplate.refresh())))
    os.unlink(placed.pattern.replace("####", "1002"))
    (one,) = _each(1, lambda: _done(bpy.ops.faceplate.refresh()))
    told["refresh_one_frame_ms"] = round(one, 1)
    (gone,) = _each(1, lambda: _done(bpy.ops.faceplate.remove()))
    return {**told, "remove_ms": round(gone, 1)}


def _done(said: set[str]) -> None:
    assert said == {"FINISHED"}, said
