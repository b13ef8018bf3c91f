"""The live effect inside Blender: groups wired to plates, rendered to files."""

from __future__ import annotations

import array
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import bpy
import scenes


def recipe(**changes: Any) -> Any:
    words = {"assignments": (), "engine": "null", **changes}
    return scenes.client("job_record").Recipe(**words)


def servers(folder: str) -> Any:
    return scenes.client("task").Servers(scenes.client("connection").Place(Path(folder)))


def scene_with_compositor(width: int, height: int, frames: int, out: str) -> Any:
    scene = scenes.fresh(width, height)
    scene.sequence_editor_clear()
    scene.frame_start, scene.frame_end = 1, frames
    render = scene.render
    if scenes.api().media_type:
        render.image_settings.media_type = "IMAGE"
    image = render.image_settings
    image.file_format, image.color_depth, image.color_mode, image.exr_codec = "OPEN_EXR", "32", "RGBA", "ZIP"
    if hasattr(render, "compositor_device"):
        render.compositor_device = "CPU"
    render.filepath = os.path.join(out, "out.####.exr")
    return scene


def comp(scene: Any) -> Any:
    """The scene's compositor with an output; (tree, socket that takes the picture)."""
    tree = scenes.ours("compositor").compositor_tree(scene, scenes.api(), make=True)
    if scenes.api().compositor_groups:
        outputs = [node for node in tree.nodes if node.type == "GROUP_OUTPUT"]
        return tree, outputs[0].inputs[0]
    tree.nodes.clear()
    return tree, tree.nodes.new("CompositorNodeComposite").inputs[0]


def sequence(tree: Any, file: str, *, start: int = 1, length: int = 20, offset: int = 1000) -> Any:
    node = tree.nodes.new("CompositorNodeImage")
    node.image = bpy.data.images.load(file)
    node.image.source = "SEQUENCE"
    node.frame_start, node.frame_duration, node.frame_offset, node.use_auto_refresh = start, length, offset, True
    return node


def insert(scene: Any, tree: Any, plate: Any, out: Any) -> Any:
    """A Faceplate group between plate and output; its node."""
    identity = scenes.ours("compositor").CompositorHost(scene.name).add()
    node = next(n for n in tree.nodes if n.type == "GROUP" and n.node_tree.name == identity.partition(":")[2])
    if plate is not None:
        tree.links.new(plate.outputs[0], node.inputs[0])
    tree.links.new(node.outputs[0], out)
    return node


def effects(folder: str, recipes: Any) -> Any:
    made = scenes.ours("live").Effects(lambda: servers(folder), lambda _, tree: recipes(tree))
    scenes.ours("live").Handlers(made).install()
    return made


def go(scene: Any) -> None:
    assert bpy.ops.render.render(animation=True, scene=scene.name, **scenes.api().render) == {"FINISHED"}


def exact(plates: str, server: str, out: str) -> Any:
    """Sequence through a group in and out of its range, at another size than the render."""
    scene = scene_with_compositor(128, 64, 8, out)
    tree, output = comp(scene)
    plate = sequence(tree, scenes.files_in(plates)[0], start=3, length=4, offset=1004)
    node = insert(scene, tree, plate, output)
    scenes.ours("nodes").set_switch(node.node_tree, on=True)
    made = effects(server, lambda tree: recipe())
    go(scene)
    shown = made.groups[scene.name, node.node_tree.name]
    return {"failed": list(made.failed.values()), "ms": dict(shown.last.ms)}


def painted(server: str, out: str) -> Any:
    """A plate without a file: its pixels go to the server and come back."""
    scene = scene_with_compositor(32, 16, 2, out)
    tree, output = comp(scene)
    image = bpy.data.images.new("made", 32, 16, alpha=True, float_buffer=True)
    values = array.array("f", (((i * 37) % 1009) / 1.007 - 0.5 for i in range(32 * 16 * 4)))
    for i in range(3, len(values), 4):
        values[i] = 1.0
    image.pixels.foreach_set(values)
    plate = tree.nodes.new("CompositorNodeImage")
    plate.image = image
    node = insert(scene, tree, plate, output)
    scenes.ours("nodes").set_switch(node.node_tree, on=True)
    made = effects(server, lambda tree: recipe())
    go(scene)
    return {"failed": [f for f in made.failed.values()], "pixels": list(values)}


def off(plates: str, server: str, out: str) -> Any:
    """A group that is not live gives the plate."""
    scene = scene_with_compositor(128, 64, 2, out)
    tree, output = comp(scene)
    insert(scene, tree, sequence(tree, scenes.files_in(plates)[0]), output)
    effects(server, lambda tree: None)
    go(scene)
    return None


def restart(plates: str, server: str, out: str, pid: int, ready: str) -> Any:
    """The server is killed before frame 3; frames from 5 on find the one that the test starts then."""
    scene = scene_with_compositor(128, 64, 6, out)
    tree, output = comp(scene)
    node = insert(scene, tree, sequence(tree, scenes.files_in(plates)[0]), output)
    scenes.ours("nodes").set_switch(node.node_tree, on=True)

    def meddle(scene: Any, *_: Any) -> None:
        if scene.frame_current == 3:
            os.kill(int(pid), signal.SIGKILL)
        if scene.frame_current == 5:
            Path(ready).with_suffix(".asked").touch()
            while not Path(ready).exists():
                time.sleep(0.05)

    bpy.app.handlers.render_pre.append(meddle)  # before ours
    made = effects(server, lambda tree: recipe())
    go(scene)
    (failed,) = made.failed.values()
    return {"failed": {str(frame): text for frame, text in failed.items()}}


def refused(plates: str, server: str, out: str) -> Any:
    """Groups that cannot be: nothing wired in, a filter before it, a file that is missing."""
    scene = scene_with_compositor(128, 64, 1, out)
    tree, output = comp(scene)
    plate = sequence(tree, scenes.files_in(plates)[0])
    node = insert(scene, tree, None, output)
    scenes.ours("nodes").set_switch(node.node_tree, on=True)
    made = effects(server, lambda tree: recipe())
    told = []

    def look() -> None:
        go(scene)
        (failed,) = made.failed.values() or ({},)
        told.append(failed.get(1, ""))

    look()
    blur = tree.nodes.new("CompositorNodeBlur")
    tree.links.new(plate.outputs[0], blur.inputs[0])
    tree.links.new(blur.outputs[0], node.inputs[0])
    look()
    tree.links.new(plate.outputs[0], node.inputs[0])
    plate.frame_offset = 5000
    look()
    plate.frame_offset = 1000
    go(scene)
    told.append(str(made.failed))
    tree.links.new(plate.outputs["Alpha"], node.inputs[0])
    look()
    tree.links.new(plate.outputs[0], node.inputs[0]).is_muted = True
    look()
    tree.links.new(plate.outputs[0], node.inputs[0])
    plate.image.use_multiview = True
    look()
    plate.image.use_multiview = False
    node.node_tree.nodes["Faceplate Result"].name = "mine"
    look()
    return told


def copies(plates: str, server: str, out: str) -> Any:
    """A group's node duplicated onto another plate: refused; with a group of its own: each its own picture; renamed."""
    scene = scene_with_compositor(128, 64, 2, out)
    tree, output = comp(scene)
    files = scenes.files_in(plates)
    node = insert(scene, tree, sequence(tree, files[0]), output)
    scenes.ours("nodes").set_switch(node.node_tree, on=True)
    made = effects(server, lambda tree: recipe())
    other = tree.nodes.new("CompositorNodeGroup")
    other.node_tree = node.node_tree
    tree.links.new(sequence(tree, files[0], offset=1004).outputs[0], other.inputs[0])
    told: dict[str, Any] = {}

    def look(name: str, shown: Any) -> None:
        tree.links.new(shown.outputs[0], output)
        scene.render.filepath = os.path.join(out, name, "out.####.exr")
        go(scene)
        told[name] = [frames[1] for frames in made.failed.values()]

    look("shared", other)
    other.node_tree = node.node_tree.copy()
    look("first", node)
    look("copy", other)
    other.node_tree.name = "Anders ö"
    look("renamed", other)
    told["groups"] = sorted(group for _, group in made.groups)
    told["clip"] = _clip_with_offset(scene, tree, files[0], other)
    return told


def _clip_with_offset(scene: Any, tree: Any, file: str, node: Any) -> Any:
    clip = bpy.data.movieclips.load(file)
    clip.colorspace_settings.name = "Linear Rec.709"
    clip.frame_offset = 2
    shown = tree.nodes.new("CompositorNodeMovieClip")
    shown.clip = clip
    tree.links.new(shown.outputs[0], node.inputs[0])
    host = scenes.ours("compositor").CompositorHost(scene.name)
    place = scenes.ours("nodes").clip_id(node.node_tree)
    scene.frame_start, scene.frame_end = 0, 100
    host.add("without plate")
    assert sorted(one.name for one in host.readable()) == ["Anders ö", "Faceplate"]
    found = host.clip(place)
    last = found.start + len(found.used) - 1
    return [str(found.used), str(host.at(place, last).used), host.at(place, last + 1) is None]


def files(plates: str, results: str, server: str, out: str) -> Any:
    """A processed range: the group reads its files, at the plate's frames, until it is removed."""
    scene = scene_with_compositor(128, 64, 6, out)
    tree, output = comp(scene)
    plate = sequence(tree, scenes.files_in(plates)[0], start=2, length=4, offset=1002)
    node = insert(scene, tree, plate, output)
    host = scenes.ours("compositor").CompositorHost(scene.name)
    words, span = scenes.client("host"), scenes.client("frame_maths").Span
    clip = host.clips(words.Scope.ALL)[0]
    told: dict[str, Any] = {"clip": [clip.start, str(clip.used), clip.source, clip.colour_space]}
    first, last = clip.used.first, clip.used.last
    placed = host.place(
        clip,
        words.Result(
            pattern=os.path.join(results, "r.####.exr"),
            files=span(first, last),
            used=span(first, last),
            start=clip.start,
            mode=words.PlaceMode.NODE,
            colour_space="ACEScg",
            interop_id="lin_ap1_scene",
            pixel_aspect=1.0,
            fps=24.0,
            covers_clip=True,
            name="face",
            tag=words.Tag("j1", os.path.join(results, "r.json")),
        ),
    )
    told["placed"] = [placed.clip_id == clip.id, str(placed.timeline), placed.pattern]
    go(scene)
    told["results"] = len(host.results("j1"))
    host.remove(placed)
    told["after"] = [len(host.results()), scenes.ours("nodes").switch_is_on(node.node_tree)]
    return told


def exit_code(plates: str, out: str) -> Any:
    """Leaves the process as `blender -b` would, by Python's own end."""
    scene = scene_with_compositor(128, 64, 2, out)
    tree, output = comp(scene)
    node = insert(scene, tree, sequence(tree, scenes.files_in(plates)[0]), output)
    scenes.ours("nodes").set_switch(node.node_tree, on=True)
    made = scenes.ours("live").Effects(lambda: servers(out), lambda _, tree: recipe())
    scenes.ours("live").Handlers(made).install()
    go(scene)
    sys.exit(0)


def without_preferences(plates: str, out: str) -> Any:
    """As `blender -b FILE --addons ...`, for which Blender keeps no preferences; in frame 2 nothing works at all."""
    import faceplate_blender
    from faceplate_blender import compositor_ui

    scene = scene_with_compositor(128, 64, 2, out)
    tree, output = comp(scene)
    faceplate_blender.register()
    assert bpy.context.preferences.addons.get("faceplate_blender") is None

    def broken() -> Any:
        raise RuntimeError("broken")

    def meddle(scene: Any, *_: Any) -> None:
        if scene.frame_current == 2:
            compositor_ui.EFFECTS.close()
            compositor_ui.EFFECTS._servers = broken

    bpy.app.handlers.render_pre.insert(0, meddle)
    node = insert(scene, tree, sequence(tree, scenes.files_in(plates)[0]), output)
    node.node_tree.faceplate_live = True
    go(scene)
    bpy.app.handlers.render_pre.remove(meddle)
    faceplate_blender.unregister()  # as Blender's program does with all add-ons before Python ends
    sys.exit(0)


def artist(plates: str, server: str, identity: str, out: str) -> Any:
    """As from the menus: add behind the selected plate, set, render live, process, render, remove, render."""
    scene = scene_with_compositor(128, 64, 3, out)
    preferences = bpy.context.preferences.addons[scenes.MODULE].preferences
    preferences.server_folder = server
    preferences.output_root = os.path.join(out, "results")
    tree, output = comp(scene)
    plate = sequence(tree, scenes.files_in(plates)[0], length=3)
    tree.links.new(plate.outputs[0], output)
    for node in tree.nodes:
        node.select = node == plate
    assert bpy.ops.faceplate.add_group() == {"FINISHED"}
    group = next(node for node in tree.nodes if node.type == "GROUP")
    told: dict[str, Any] = {
        "wired": [group.inputs[0].links[0].from_node.name == plate.name, output.links[0].from_node.name == group.name],
        "live": group.node_tree.faceplate_live,
    }
    group.node_tree.faceplate.identity = identity
    group.node_tree.faceplate_live = True
    group.node_tree.faceplate.strength = 0.0
    group.node_tree.faceplate.keyframe_insert("strength", frame=2)
    made = scenes.ours("compositor_ui").EFFECTS
    host = scenes.ours("host")
    host.scene_linear.cache_clear()
    host.warm()
    known = host.scene_linear.cache_info().misses
    for name, act in (
        ("live", lambda: None),
        ("files", bpy.ops.faceplate.process_range),
        ("again", bpy.ops.faceplate.live_again),
    ):
        act()
        scene.render.filepath = os.path.join(out, name, "out.####.exr")
        go(scene)
        told[f"outputs {name}"] = [socket.name for socket in group.outputs]
        told[name] = [group.node_tree.get("faceplate_record") is not None, [str(f) for f in made.failed.values()]]
    shown = made.groups[scene.name, group.node_tree.name]
    told["images made while rendering"] = host.scene_linear.cache_info().misses - known
    told["settings"] = {name: [list(key) for key in keys] for name, keys in shown.recipe.settings.items()}
    return told


def swapped(plates: str, server: str, identity: str, out: str) -> Any:
    """A face: found in the group's plate, then swapped live."""
    files = scenes.files_in(plates)
    plate_image = bpy.data.images.load(files[0])
    width, height = plate_image.size
    scene = scene_with_compositor(width, height, len(files), out)
    preferences = bpy.context.preferences.addons[scenes.MODULE].preferences
    preferences.server_folder, preferences.output_root = server, os.path.join(out, "results")
    tree, output = comp(scene)
    plate = sequence(tree, files[0], length=len(files))
    plate.image.colorspace_settings.name = "Linear Rec.709"  # 5.0 and later take the file's tag
    node = insert(scene, tree, plate, output)
    node.select = True
    node.node_tree.faceplate.identity = identity
    assert bpy.ops.faceplate.find_group_faces() == {"FINISHED"}
    node.node_tree.faceplate_live = True
    made = scenes.ours("compositor_ui").EFFECTS
    go(scene)
    shown = made.groups[scene.name, node.node_tree.name]
    state = scenes.ours("state").STATE
    return {
        "failed": list(made.failed.values()),
        "faces": [track.id for found in state.faces.values() for track in found.tracks],
        "from": shown.last.facts["faces_from"],
        "ms": dict(shown.last.ms),
    }
