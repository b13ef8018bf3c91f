"""Makes .blend files for the batch renderer."""

from __future__ import annotations

import os
from typing import Any

import bpy
import live
import scenes

LINEAR = "Linear Rec.709"


def save(
    plates: str, identity: str, file: str, *, marked: bool = True, grouped: bool = False, without: str = ""
) -> Any:
    """A plate on the timeline from frame 1 on, marked; or in the compositor behind a live group.

    With the group comes a scene "Outer" that has the first on its timeline, from frame 11 on; `without` is another file
    in which no identity is chosen.
    """
    files = scenes.files_in(plates)
    image = bpy.data.images.load(files[0])
    width, height = image.size
    bpy.data.images.remove(image)
    scene = scenes.fresh(width, height)
    scene.sequencer_colorspace_settings.name = LINEAR
    scene.frame_start, scene.frame_end = 1, len(files)
    scene.faceplate.identity = identity
    _exr(scene)
    if grouped:
        scene.sequence_editor_clear()
        tree, output = live.comp(scene)
        plate = live.sequence(tree, files[0], length=len(files))
        plate.image.colorspace_settings.name = LINEAR
        node = live.insert(scene, tree, plate, output)
        node.node_tree.faceplate.identity = identity
        node.node_tree.faceplate_live = True
        outer = scenes.fresh(width, height, name="Outer")
        _exr(outer)
        outer.frame_start, outer.frame_end = 11, 10 + len(files)
        scenes.strips(outer).new_scene(name="inner", scene=scene, channel=1, frame_start=11)
    else:
        strip = scenes.add_sequence(scene.sequence_editor, files, 2, 1, "plate")
        strip.colorspace_settings.name = LINEAR
        strip[scenes.ours("strips").BATCH] = marked
    os.makedirs(os.path.dirname(file), exist_ok=True)
    bpy.ops.wm.save_as_mainfile(filepath=file)
    if without:
        scene.faceplate.identity = ""
        bpy.ops.wm.save_as_mainfile(filepath=without, copy=True)
    return [width, height]


def _exr(scene: Any) -> None:
    image = scene.render.image_settings
    if scenes.api().media_type:
        image.media_type = "IMAGE"
    image.file_format, image.color_depth = "OPEN_EXR", "32"
