"""What artists do to a timeline between Apply and Remove: rename, copy, put effects on results, lose files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import bpy
import scenes
from placing import copy_files, host, result_of


def altered(plates: str, folder: str) -> dict[str, Any]:
    """All of it, in one Blender."""
    told = {}
    for act in (graded, renamed, copied, orphaned, kinds, lost, linked):
        scene = scenes.fresh()
        out = os.path.join(folder, act.__name__)
        os.makedirs(out)
        told[act.__name__] = act(scene, scenes.files_in(plates), out)
    return told


def _apply(one: Any, name: str, folder: str) -> Any:
    clip = one.clip(f"strip:{name}")
    if clip.source:
        copy_files(clip, clip.used, folder)
        return one.place(clip, result_of(clip, folder))
    # of a strip that is baked: any files do
    first = scenes.files_in(folder)[0]
    result = scenes.dataclasses_replace(result_of(clip, folder), pattern=os.path.join(folder, "bake.####.exr"))
    for frame in clip.used:
        path = Path(result.pattern.replace("####", f"{frame:04d}"))
        path.write_bytes(Path(first).read_bytes())
    return one.place(clip, result)


def _state(scene: Any) -> dict[str, Any]:
    """By strip: channel, whether it is muted, what it takes, our properties."""
    return {
        strip.name: [
            strip.channel, strip.mute, getattr(getattr(strip, "input_1", None), "name", None),
            sorted(key for key in strip.keys() if key.startswith("faceplate")),  # noqa: SIM118 - a strip is no dict
        ]
        for strip, _ in scenes.api().walk(scene.sequence_editor)
    }  # fmt: skip


def graded(scene: Any, files: list[str], folder: str) -> Any:
    """A result that was graded and moved, placed again as Refresh does after a trim; then of a source that is baked."""
    source = scenes.add_sequence(scene.sequence_editor, files, 2, 5, "source")
    scenes.trim(source, 2, 2)
    source.strobe = 1.0
    before = scenes.dump(scene)
    one = host(scene)
    strip = one._strip(_apply(one, "source", folder).id)
    strip.name, strip.channel, strip.color_saturation, strip.select = "my face", 6, 0.5, True
    told = []
    for head, tail in ((5, 1), (0, 0), (2, 2)):
        scenes.trim(source, head, tail)
        placed = _apply(one, "source", folder)
        strip = one._strip(placed.id)
        shown = [strip.strip_elem_from_frame(frame).filename[-8:-4] for frame in scenes.api().visible(strip)]
        told.append([strip.name, strip.channel, strip.color_saturation, *scenes.api().visible(strip), *shown])
        assert len(one.results()) == 1
    source.strobe = 2.0
    baked = one._strip(_apply(one, "source", folder).id)
    told.append([baked.name == "my face", baked.color_saturation, len(one.results())])
    source.strobe = 1.0
    one.remove(one.results()[0])
    return [told, scenes.differences(before, scenes.dump(scene))]


def renamed(scene: Any, files: list[str], folder: str) -> Any:
    """Every strip gets another name after Apply, one an earlier name of another; and the result gets an effect."""
    editor = scene.sequence_editor
    source = scenes.add_sequence(editor, files, 2, 5, "source")
    title = scenes.add_colour(editor, 3, 6, 4, "title")
    blur = scenes.new_effect(editor, "GAUSSIAN_BLUR", 5, 5, 20, "blur", source)
    one = host(scene)
    placed = _apply(one, "source", folder)
    result = one._strip(placed.id)
    scenes.new_effect(editor, "GAUSSIAN_BLUR", 8, 5, 20, "late", result)
    source.name, blur.name, title.name, result.name = "new source", "new blur", "blur", "new face"
    scenes.add_sequence(editor, files, 20, 5, "source")
    (found,) = one.results()
    assert (found.id, found.clip_id) == ("strip:new face", "strip:new source")
    one.remove(found)
    return _state(scene)


def copied(scene: Any, files: list[str], folder: str) -> Any:
    """Source and result copied with their properties, as Blender's Duplicate does; each copy goes its own way."""
    editor = scene.sequence_editor
    source = scenes.add_sequence(editor, files, 2, 5, "source")
    one = host(scene)
    placed = _apply(one, "source", folder)
    result = one._strip(placed.id)
    for strip, name in ((source, "source copy"), (result, "face copy")):
        paths = [os.path.join(strip.directory, element.filename) for element in strip.elements]
        copy = scenes.add_sequence(editor, paths, strip.channel, 105, name)
        copy.mute = strip.mute
        for key in strip.keys():  # noqa: SIM118 - a strip is no dict
            copy[key] = strip[key]
    pairs = {found.id: found.clip_id for found in one.results()}
    one.remove(next(found for found in one.results() if found.id == "strip:face copy"))
    half = _state(scene)
    again = scenes.add_sequence(editor, [files[0]], 4, 5, "face again")
    for key in result.keys():  # noqa: SIM118 - a strip is no dict
        again[key] = result[key]
    one.remove(next(found for found in one.results() if found.id == "strip:face again"))
    twin = _state(scene)
    one.remove(one.results()[0])
    return {"pairs": pairs, "half": half, "twin": twin, "end": _state(scene)}


def orphaned(scene: Any, files: list[str], folder: str) -> Any:
    """The source is deleted, and an effect lies on the result."""
    editor = scene.sequence_editor
    source = scenes.add_sequence(editor, files, 2, 5, "source")
    one = host(scene)
    placed = _apply(one, "source", folder)
    scenes.new_effect(editor, "GAUSSIAN_BLUR", 8, 5, 20, "late", one._strip(placed.id))
    scenes.strips(scene).remove(source)
    before = scenes.dump(scene)
    try:
        one.remove(one.results()[0])
    except scenes.client("errors").PlaceFailed as error:
        return [str(error), error.hint, scenes.differences(before, scenes.dump(scene))]
    raise AssertionError("it was removed")


def kinds(scene: Any, files: list[str], folder: str) -> Any:
    """Results of strips that have no file: placed and removed."""
    copy_files(host(scene).clip(f"strip:{scenes.add_sequence(scene.sequence_editor, files, 9, 300, 'x').name}"),
               range(1001, 1002), folder)  # fmt: skip
    scenes.add_meta(scene, files, 2, 5, "meta")
    other = bpy.data.scenes.new("other")
    nested = scenes.strips(scene).new_scene(name="scene", scene=other, channel=4, frame_start=5)
    scenes.trim(nested, 0, getattr(nested, scenes.api().length) - 9)
    clip = bpy.data.movieclips.load(files[0])
    scenes.strips(scene).new_clip(name="clip", clip=clip, channel=6, frame_start=5)
    before = scenes.dump(scene)
    one = host(scene)
    for name in ("meta", "scene", "clip"):
        placed = _apply(one, name, folder)
        assert one._strip(f"strip:{name}").mute, name
        one.remove(placed)
    found = scenes.differences(before, scenes.dump(scene))
    found = [text for text in found if "/view_layer/" not in text]  # of the new scene, when it is first looked at
    bpy.data.scenes.remove(other)
    bpy.data.movieclips.remove(clip)
    return found


def lost(scene: Any, files: list[str], folder: str) -> Any:
    """Files of a result are gone when it is rendered: Blender says so in its way, and goes on."""
    scenes.add_sequence(scene.sequence_editor, files, 2, 5, "source")
    one = host(scene)
    strip = one._strip(_apply(one, "source", folder).id)
    for path in scenes.files_in(folder):
        os.unlink(path)
    for frame in (5, 12, 24):
        scenes.render(scene, frame, os.path.join(folder, "out.exr"))
    return sorted({(element.orig_width, element.orig_height) for element in strip.elements})


def linked(scene: Any, files: list[str], folder: str) -> Any:
    """A scene of another file, with the name of one of this file: never mistaken for it, never changed."""
    scenes.add_sequence(scene.sequence_editor, files, 2, 5, "theirs")
    library = os.path.join(folder, "library é.blend")
    bpy.ops.wm.save_as_mainfile(filepath=library, copy=True)
    scenes.fresh()
    scenes.add_sequence(scene.sequence_editor, files, 2, 5, "ours")
    with bpy.data.libraries.load(library, link=True) as (_, wanted):
        wanted.scenes = [scene.name]
    theirs = next(one for one in bpy.data.scenes if one.library is not None)
    own = [clip.name for clip in host(theirs).clips(scenes.client("host").Scope.ALL)]
    scene.name = "Renamed"
    try:
        host(theirs).clips(scenes.client("host").Scope.ALL)
    except scenes.client("errors").HostError as error:
        said = [str(error), error.hint]
    scene.name = "Scene"
    bpy.data.libraries.remove(bpy.data.libraries[0])
    return [own, *said]
