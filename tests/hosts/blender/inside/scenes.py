"""Scenes for the tests, and a dump of everything in one that a result could change."""

from __future__ import annotations

import dataclasses
import importlib
import math
import os
import warnings
from pathlib import Path
from typing import Any

import bpy

MODULE = "bl_ext.user_default.faceplate"
SKIPPED = {"rna_type", "bl_rna"}


def ours(name: str) -> Any:
    """A module of the extension, or with its folder on the path, of the sources."""
    package = MODULE if MODULE in bpy.context.preferences.addons else "faceplate_blender"
    return importlib.import_module(f"{package}.{name}")


def client(name: str) -> Any:
    """A module of the leaf client, the one that `ours` uses."""
    if MODULE in bpy.context.preferences.addons:
        return importlib.import_module(f"{MODULE}.faceplate_client.{name}")
    return importlib.import_module(f"faceplate_client.{name}")


def api() -> Any:
    return ours("shim").api_of(bpy.app.version)


def fresh(width: int = 128, height: int = 64, fps: int = 24, name: str = "Scene") -> Any:
    """The scene, with an empty sequencer."""
    scene = bpy.data.scenes.get(name) or bpy.data.scenes.new(name)
    scene.sequence_editor_clear()
    scene.sequence_editor_create()
    render = scene.render
    render.resolution_x, render.resolution_y, render.resolution_percentage, render.fps = width, height, 100, fps
    scene.frame_start, scene.frame_end = 1, 100
    return scene


def strips(scene: Any) -> Any:
    return api().children(scene.sequence_editor)


def add_sequence(owner: Any, files: list[str], channel: int = 2, start: int = 5, name: str = "plate") -> Any:
    strip = api().children(owner).new_image(name=name, filepath=files[0], channel=channel, frame_start=start)
    for path in files[1:]:
        strip.elements.append(os.path.basename(path))
    return strip


def add_meta(scene: Any, files: list[str], channel: int, start: int, name: str) -> tuple[Any, Any]:
    """A meta strip over a sequence, and the sequence inside. The data API leaves its length to the caller."""
    meta = strips(scene).new_meta(name=name, channel=channel, frame_start=start)
    nested = add_sequence(meta, files, 1, start, f"in {name}")
    for first in (start + 1, start):  # a move makes Blender look at the inside
        setattr(nested, api().content_start, first)
    setattr(meta, api().right, start + len(files))
    assert api().visible(meta) == (start, start + len(files) - 1)
    return meta, nested


def trim(strip: Any, head: int, tail: int) -> None:
    """Hide frames at either end; a negative number holds the end."""
    setattr(strip, api().left_off, head)
    setattr(strip, api().right_off, tail)


def process(strip: Any) -> None:
    """Make a strip one that has to be baked. Adding a modifier without a window crashes Blender 5.0."""
    if bpy.app.version[:2] == (5, 0):
        strip.strobe = 2.0
    else:
        strip.modifiers.new("b", "BRIGHT_CONTRAST").bright = 0.25


def add_colour(owner: Any, channel: int, start: int, length: int, name: str = "colour", colour: Any = (0, 1, 0)) -> Any:
    strip = new_effect(owner, "COLOR", channel, start, length, name)
    strip.color = colour
    return strip


def new_effect(owner: Any, kind: str, channel: int, start: int, length: int, name: str, *inputs: Any) -> Any:
    version = bpy.app.version
    words = ("seq1", "seq2") if version < (4, 4) else ("input1", "input2")
    extent = {"length": length} if version >= (5, 0) else {"frame_end": start + length}
    return (
        api()
        .children(owner)
        .new_effect(
            name=name, type=kind, channel=channel, frame_start=start, **extent, **dict(zip(words, inputs, strict=False))
        )
    )


def select(*chosen: Any) -> None:
    for scene in bpy.data.scenes:
        if scene.sequence_editor:
            for strip, _ in api().walk(scene.sequence_editor):
                strip.select = False
    for strip in chosen:
        strip.select = True


def _value(value: Any, depth: int) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    if isinstance(value, bpy.types.ID):
        return value.name_full
    if isinstance(value, bpy.types.bpy_struct):
        if hasattr(value, "channel"):
            return value.name  # a strip: it has an entry of its own
        if hasattr(value, "orig_width"):
            return value.filename  # the rest is not initialised by Blender, but for the first
        return _struct(value, depth - 1) if depth else getattr(value, "name", None)
    if hasattr(value, "__len__"):
        return [_value(one, depth) for one in value]
    return str(value)


def _struct(thing: Any, depth: int) -> dict[str, Any]:
    found = {}
    for prop in thing.bl_rna.properties:
        if prop.identifier not in SKIPPED:
            found[prop.identifier] = _value(getattr(thing, prop.identifier), depth)
    return found


def dump(scene: Any) -> dict[str, Any]:
    """Everything in a scene's sequencer, render settings and data lists."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return _dump(scene)


def _dump(scene: Any) -> dict[str, Any]:
    editor = scene.sequence_editor
    found: dict[str, Any] = {"strips": {}}
    for strip, owner in api().walk(editor):
        found["strips"][strip.name] = {
            **_struct(strip, 2),
            "owner": getattr(owner, "name", "editor"),
            "custom": {key: strip[key] for key in strip.keys()},  # noqa: SIM118 - a strip is no dict
            "inputs": [getattr(getattr(strip, slot, None), "name", None) for slot in ("input_1", "input_2")],
        }
    found["channels"] = [(channel.name, channel.mute, channel.lock) for channel in editor.channels]
    found["active"] = getattr(editor.active_strip, "name", None)
    found["render"] = _struct(scene.render, 2)
    found["view"] = _struct(scene.view_settings, 1)
    found["space"] = scene.sequencer_colorspace_settings.name
    found["frames"] = (scene.frame_start, scene.frame_end, scene.frame_current)
    found["data"] = {
        name: sorted(one.name for one in getattr(bpy.data, name))
        for name in ("scenes", "images", "movieclips", "node_groups", "texts", "actions", "sounds")
    }
    return found


def differences(before: dict[str, Any], after: dict[str, Any], path: str = "") -> list[str]:
    """Where two dumps differ."""
    found = []
    for key in sorted({*before, *after}, key=str):
        one, other = before.get(key, "absent"), after.get(key, "absent")
        if isinstance(one, dict) and isinstance(other, dict):
            found += differences(one, other, f"{path}/{key}")
        elif one != other:
            found.append(f"{path}/{key}: {one!r} became {other!r}")
    return found


def render(scene: Any, frame: int, path: str) -> None:
    """One frame of the timeline to float EXR, as an artist would."""
    settings = scene.render
    if api().media_type:
        settings.image_settings.media_type = "IMAGE"
    image = settings.image_settings
    image.file_format, image.color_depth, image.color_mode, image.exr_codec = "OPEN_EXR", "32", "RGBA", "ZIP"
    settings.filepath = path
    scene.frame_current = frame
    assert bpy.ops.render.render(write_still=True, scene=scene.name, **api().render) == {"FINISHED"}


def dataclasses_replace(value: Any, **changes: Any) -> Any:
    return dataclasses.replace(value, **changes)


def files_in(folder: str, ending: str = ".exr") -> list[str]:
    return sorted(str(path) for path in Path(folder).iterdir() if path.suffix == ending)
