"""The operators, as scripts call them and as the interface does, with events that are made up."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import bpy
import scenes

SPACE = "ACEScg"
SIZE = (320, 200)


def timeline(plate: str, name: str = "sh010 ä") -> Any:
    """One strip of the plate, selected and active."""
    scene = scenes.fresh(*SIZE)
    files = [plate.replace("####", str(frame)) for frame in range(1001, 1009)]
    strip = scenes.add_sequence(scene.sequence_editor, files, 2, 11, name)
    strip.colorspace_settings.name = SPACE
    scenes.select(strip)
    scene.sequence_editor.active_strip = strip
    return strip


def prepare(server: str, identity: str, out: str, program: str = "") -> Any:
    """Preferences and settings as an artist has them after the first minute; the preferences."""
    prefs = bpy.context.preferences.addons[scenes.MODULE].preferences
    prefs.server_folder, prefs.output_root = server, out
    if program:
        prefs.program = program
    bpy.context.scene.faceplate.identity = identity
    return prefs


def refused(operator: Any, **words: Any) -> str:
    """The text of the error that a script gets."""
    try:
        operator(**words)
    except RuntimeError as error:
        return str(error).strip()
    raise AssertionError("it was not refused")


def scripted(plate: str, server: str, identity: str, out: str) -> dict[str, Any]:
    """A whole session through `bpy.ops`."""
    ops = bpy.ops.faceplate
    strip = timeline(plate)
    scene = bpy.context.scene
    prefs = prepare(server, "", out)
    told: dict[str, Any] = {}
    told["no identity"] = refused(ops.apply)
    scene.faceplate.identity = "//jane.fpid"
    told["relative"] = refused(ops.apply)
    scene.faceplate.identity = identity
    before = scenes.dump(scene)
    told["nothing to refresh"] = refused(ops.refresh)
    prefs.server_folder = os.path.join(out, "nobody")
    told["no server"] = refused(ops.apply)
    assert scenes.differences(before, scenes.dump(scene)) == []
    prefs.server_folder = server
    assert ops.check() == {"FINISHED"}
    state = scenes.ours("state").STATE
    told["check"] = state.server
    assert ops.find_faces() == {"FINISHED"}
    (found,) = state.faces.values()
    # without a window there are no icons, but the pictures are loaded for them
    pictures = [min(state._pictures[key].image_size) > 0 for key in state._pictures]
    told["faces"] = [[one.first, one.last] for one in found.tracks] + pictures
    assert ops.choose_face(track=found.tracks[0].id) == {"FINISHED"}
    told["chosen"] = [scene.faceplate.track, scene.faceplate.track_number]
    for frame, strength in ((11, 1.0), (14, 0.5)):
        scene.faceplate.strength = strength
        scene.faceplate.keyframe_insert("strength", frame=frame)
    before = scenes.dump(scene)
    assert ops.apply() == {"FINISHED"}
    host = scenes.ours("host").BlenderHost(scene.name)
    (placed,) = host.results()
    record = scenes.client("job_record").load(placed.tag.record)
    told["recipe"] = [
        [list(one) for one in record.recipe.settings["strength"]][:4],
        sorted(record.recipe.settings),
        record.recipe.assignments[0].track,
    ]
    told["pattern"] = record.pattern
    told["muted"] = strip.mute
    times = [os.stat(path).st_mtime_ns for path in scenes.files_in(os.path.dirname(record.pattern))]
    strip.name = "renamed"
    assert ops.refresh() == {"FINISHED"}
    assert times == [os.stat(path).st_mtime_ns for path in scenes.files_in(os.path.dirname(record.pattern))]
    strip.name = "sh010 ä"
    scenes.select(host._strip(placed.id))
    scene.sequence_editor.active_strip = host._strip(placed.id)
    assert host.active_clip().name == "sh010 ä"
    assert ops.remove() == {"FINISHED"}
    scenes.select(strip)
    scene.sequence_editor.active_strip = strip
    told["differences"] = scenes.differences(before, scenes.dump(scene))
    return {**told, **_refusals(strip, plate, told["differences"])}


def _refusals(strip: Any, plate: str, differences: list[str]) -> dict[str, Any]:
    """What is refused of a strip that has no result."""
    ops, scene = bpy.ops.faceplate, bpy.context.scene
    told: dict[str, Any] = {"nothing to remove": refused(ops.remove)}
    for marked in (True, False):
        assert ops.mark() == {"FINISHED"}
        assert bool(strip[scenes.ours("strips").BATCH]) is marked
    scenes.select()
    told["nothing selected"] = refused(ops.apply)
    scenes.select(strip)
    os.unlink(plate.replace("####", "1005"))
    before = scenes.dump(scene)
    told["missing"] = refused(ops.apply)
    return {**told, "differences": differences + scenes.differences(before, scenes.dump(scene))}


def two_scenes(plate: str, server: str, identity: str, out: str) -> dict[str, Any]:
    """Work in one scene leaves the other alone, and one undo takes an apply back."""
    timeline(plate, "same name")
    first = bpy.context.scene
    other = scenes.fresh(*SIZE, name="Ändere Szene")
    files = [plate.replace("####", str(frame)) for frame in range(1001, 1009)]
    twin = scenes.add_sequence(other.sequence_editor, files, 2, 11, "same name")
    twin.colorspace_settings.name = SPACE
    prepare(server, identity, out)
    before = [scenes.dump(first), scenes.dump(other)]
    assert bpy.ops.faceplate.apply() == {"FINISHED"}
    first, other = bpy.data.scenes["Scene"], bpy.data.scenes["Ändere Szene"]
    host = scenes.ours("host").BlenderHost
    told = {
        "results": [len(host(scene.name).results()) for scene in (first, other)],
        "other": scenes.differences(before[1], scenes.dump(other)),
    }
    assert bpy.ops.ed.undo() == {"FINISHED"}
    first, other = bpy.data.scenes["Scene"], bpy.data.scenes["Ändere Szene"]
    told["undone"] = scenes.differences(before[0], scenes.dump(first))
    told["undone"] += scenes.differences(before[1], scenes.dump(other))
    return told


class Screen:
    """What an operator sees of the interface; remembers what it was told."""

    def __init__(self) -> None:
        self.status: list[str | None] = []
        self.progress: list[float] = []
        self.timers = self.handlers = self.redraws = 0
        self.popups: list[tuple[str, Any]] = []
        self.window_manager = SimpleNamespace(
            event_timer_add=lambda step, window: self._timer(1),
            event_timer_remove=lambda timer: self._timer(-1),
            modal_handler_add=lambda operator: None,
            progress_begin=lambda low, high: None,
            progress_update=self.progress.append,
            progress_end=lambda: None,
            popup_menu=lambda draw, title, icon: self.popups.append((title, draw)),
        )
        self.workspace = SimpleNamespace(status_text_set=self.status.append)
        self.screen = SimpleNamespace(areas=[self])
        self.window = None
        self.preferences = bpy.context.preferences

    @property
    def scene(self) -> Any:
        return bpy.context.scene

    def tag_redraw(self) -> None:
        self.redraws += 1

    def _timer(self, change: int) -> object:
        self.timers += change
        return object()


def operator(name: str) -> Any:
    """An operator outside Blender's hands: its code, and what it reports."""
    operators = scenes.ours("operators")
    real = getattr(operators, "_OT_".join(("FACEPLATE", name)))
    base = next(kind for kind in real.__mro__[1:] if kind.__module__ == operators.__name__)
    members = {key: value for key, value in vars(real).items() if callable(value) and not key.startswith("_")}
    members |= {"bl_idname": real.bl_idname, "marked": False, "start_server": False, "use_settings": False}
    one = type(name, (base,), members)()
    one.reports = []
    one.report = lambda kind, text: one.reports.append([*kind, text])
    return one


def event(kind: str) -> Any:
    return SimpleNamespace(type=kind, value="PRESS")


def until_end(one: Any, screen: Screen, each: Any = None) -> tuple[set[str], float]:
    """Timer events until the operator ends: its result, and the longest that one of them kept the interface waiting."""
    longest, end = 0.0, time.monotonic() + 100
    while True:
        began = time.monotonic()
        said = one.modal(screen, event("TIMER"))
        longest = max(longest, time.monotonic() - began)
        if said & {"FINISHED", "CANCELLED"}:
            return said, longest
        assert said == {"PASS_THROUGH"}
        assert one.modal(screen, event("MOUSEMOVE")) == {"PASS_THROUGH"}
        if each is not None:
            each()
        assert time.monotonic() < end, "it does not end"
        time.sleep(0.01)


def modal(plate: str, server: str, identity: str, out: str) -> dict[str, Any]:
    """The interface's way: watched, stopped with Esc, gone on with, interrupted by another file."""
    strip = timeline(plate)
    prefs = prepare(server, identity, out)
    state = scenes.ours("state").STATE
    host = scenes.ours("host").BlenderHost(bpy.context.scene.name)
    before = scenes.dump(bpy.context.scene)
    told: dict[str, Any] = {}
    # Esc after the first finished frame
    one, screen = operator("apply"), Screen()
    assert one.invoke(screen, event("LEFTMOUSE")) == {"RUNNING_MODAL"}
    second = operator("apply")
    assert second.invoke(screen, event("LEFTMOUSE")) == {"CANCELLED"}
    told["at once"] = second.reports

    def stop() -> None:
        if state.progress is not None and state.progress.step == "swap" and state.progress.done >= 1:
            assert one.modal(screen, event("ESC")) == {"RUNNING_MODAL"}

    said, longest = until_end(one, screen, stop)
    told["stopped"] = [sorted(said), one.reports, screen.timers, screen.status[-1], state.task is None]
    told["stopping"] = any("stopping after this frame" in (text or "") for text in screen.status)
    told["stopping to the end"] = "Esc stops" not in (screen.status[-2] or "")
    told["after Esc"] = scenes.differences(before, scenes.dump(bpy.context.scene))
    kept = scenes.files_in(next(str(path.parent) for path in Path(out).rglob("*.exr")))
    times = {path: os.stat(path).st_mtime_ns for path in kept}
    told["kept"] = len(kept)
    # again, to the end
    one, screen = operator("apply"), Screen()
    assert one.invoke(screen, event("LEFTMOUSE")) == {"RUNNING_MODAL"}
    said, again = until_end(one, screen)
    told["done"] = [sorted(said), one.reports[-1], screen.timers, screen.status[-1]]
    told["status"] = sorted({text.split(",")[0] for text in screen.status if text})
    told["progress"] = [min(screen.progress), max(screen.progress)]
    told["redraws"] = screen.redraws > 0
    told["kept files were not made again"] = all(os.stat(path).st_mtime_ns == when for path, when in times.items())
    told["results"] = [len(host.results()), strip.mute]
    told["longest"] = max(longest, again)
    # another file is opened meanwhile: Blender calls cancel
    one, screen = operator("refresh"), Screen()
    one.use_settings = True
    bpy.context.scene.faceplate.strength = 0.25
    assert one.invoke(screen, event("LEFTMOUSE")) == {"RUNNING_MODAL"}
    one.cancel(screen)
    told["closed"] = [state.task is None, screen.timers, screen.status[-1]]
    # nobody there
    prefs.server_folder = os.path.join(out, "nobody")
    one, screen = operator("find_faces"), Screen()
    assert one.invoke(screen, event("LEFTMOUSE")) == {"CANCELLED"}
    ((title, draw),) = screen.popups
    buttons: list[Any] = []
    layout = SimpleNamespace(label=lambda text: None, operator=lambda name, **words: _button(buttons, name))
    draw(SimpleNamespace(layout=layout), screen)
    told["offer"] = [title, layout.operator_context, buttons[0].name, buttons[0].start_server]
    return told


def _button(buttons: list[Any], name: str) -> Any:
    buttons.append(SimpleNamespace(name=name, start_server=False))
    return buttons[-1]


def starts_a_server(plate: str, server: str, identity: str, out: str, program: str) -> dict[str, Any]:
    """No server runs: one is started when the artist says so, and only then."""
    timeline(plate)
    prepare(server, identity, out, program)
    told = {"refused": refused(bpy.ops.faceplate.find_faces)}
    assert bpy.ops.faceplate.find_faces(start_server=True) == {"FINISHED"}
    with scenes.client("client").Client(
        scenes.client("connection").find(scenes.client("connection").Place(Path(server))), "end"
    ) as client:
        told["pid"] = client.status().pid
        client.stop()
    prefs = prepare(os.path.join(server, "other"), identity, out, os.path.join(out, "no program"))
    prefs.start_server = True
    told["no program"] = refused(bpy.ops.faceplate.find_faces)
    return told


def colours(plate: str, server: str, identity: str, out: str) -> dict[str, Any]:
    """Results rendered by Blender itself, in each working space: read directly, and baked first."""
    told: dict[str, Any] = {}
    spaces = ["Linear Rec.709", "ACEScg", "Linear Rec.2020"] if bpy.app.version >= (5, 0) else ["Linear Rec.709"]
    for space in spaces:
        if bpy.app.version >= (5, 0):
            bpy.ops.wm.set_working_color_space(working_space=space)
        for kind in ("read", "baked"):
            strip = timeline(plate, kind)
            scene = bpy.context.scene
            # the sequencer's default, sRGB, would cost 2e-5
            scene.sequencer_colorspace_settings.name = space
            if kind == "baked":
                strip.strobe = 2.0
            prepare(server, identity, os.path.join(out, f"{space} {kind}"))
            plain, face = (os.path.join(out, f"{space} {kind} {what}.exr") for what in ("plain", "face"))
            scenes.render(scene, 13, plain)
            assert bpy.ops.faceplate.apply() == {"FINISHED"}
            (placed,) = scenes.ours("host").BlenderHost(scene.name).results()
            record = scenes.client("job_record").load(placed.tag.record)
            scenes.render(scene, 13, face)
            shown = scenes.ours("host").BlenderHost(scene.name)._strip(placed.id)
            number = 13 if kind == "baked" else 1003
            told[f"{space} {kind}"] = {
                "plain": plain,
                "face": face,
                "file": record.pattern.replace("####", f"{number:04d}"),
                "source": record.source.replace("####", f"{number:04d}"),
                "spaces": [record.colour_in, record.interop_id, shown.colorspace_settings.name],
            }
    return told


def movie(movie: str, server: str, identity: str, out: str) -> dict[str, Any]:
    """A trimmed movie strip: what it is told as, and what stands at each frame before and after."""
    scene = scenes.fresh(*SIZE)
    strip = scenes.strips(scene).new_movie(name="clip ä", filepath=movie, channel=1, frame_start=21)
    scenes.trim(strip, 2, 1)
    strip.strobe = 1.0  # Blender 4.2 would set it when it renders
    scenes.select(strip)
    prepare(server, identity, out)
    scene.faceplate.handles = 1
    scene.sequencer_colorspace_settings.name = "Linear Rec.709"
    host = scenes.ours("host").BlenderHost(scene.name)
    clip = host.clip("strip:clip ä")
    told: dict[str, Any] = {"clip": [clip.start, str(clip.used), str(clip.media), clip.processed, clip.colour_space]}
    before = scenes.dump(scene)
    plain = [os.path.join(out, f"plain {frame}.exr") for frame in clip.timeline]
    face = [os.path.join(out, f"face {frame}.exr") for frame in clip.timeline]
    for frame, path in zip(clip.timeline, plain, strict=True):
        scenes.render(scene, frame, path)
    assert bpy.ops.faceplate.apply() == {"FINISHED"}
    (placed,) = host.results()
    for frame, path in zip(clip.timeline, face, strict=True):
        scenes.render(scene, frame, path)
    result = host._strip(placed.id)
    told |= {"plain": plain, "face": face, "shown": []}
    for frame in clip.timeline:
        told["shown"].append(result.strip_elem_from_frame(frame).filename)
    told["files"] = len(result.elements)
    # at twice the frame rate each picture would stand for two frames: Blender renders it first
    scene.render.fps = 48
    told["other rate"] = host.clip("strip:clip ä").processed
    scene.render.fps = 24
    assert bpy.ops.faceplate.remove() == {"FINISHED"}
    differences = scenes.differences(before, scenes.dump(scene))
    told["differences"] = [text for text in differences if not text.startswith(("/render/", "/frames"))]  # our renders'
    return told
