"""Host checks that need no server: clips, placing, removing, baking."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import bpy
import scenes

LINEAR = "Linear Rec.709"


def host(scene: Any) -> Any:
    return scenes.ours("host").BlenderHost(scene.name)


def values() -> Any:
    return scenes.client("host")


def span(first: int, last: int) -> Any:
    return scenes.client("frame_maths").Span(first, last)


def result_of(clip: Any, folder: str, *, files: Any = None, job: str = "j1") -> Any:
    words = values()
    used = clip.used
    files = files or used
    name = Path(clip.source).name.split(".")[0] if clip.source else "bake"
    return words.Result(
        pattern=os.path.join(folder, f"{name}.####.exr"),
        files=files,
        used=used,
        start=clip.times.to_timeline(used.first),
        mode=words.PlaceMode.ABOVE,
        colour_space="Linear Rec.709 (sRGB)",
        interop_id="lin_rec709_scene",
        pixel_aspect=1.0,
        fps=24.0,
        covers_clip=True,
        name=f"{clip.name} face",
        tag=words.Tag(job, os.path.join(folder, "record.json")),
    )


def copy_files(clip: Any, files: Any, folder: str) -> None:
    """Files as a result would have them: the plate's own."""
    os.makedirs(folder, exist_ok=True)
    pattern = Path(clip.source).name
    for frame in files:
        name = pattern.replace("####", f"{frame:04d}")
        shutil.copyfile(Path(clip.source).parent / name, Path(folder) / name)


def clips(plates: str) -> Any:
    """What the strips of a busy timeline are read as."""
    scene = scenes.fresh()
    words = values()
    editor = scene.sequence_editor
    files = scenes.files_in(plates)
    plain = scenes.add_sequence(editor, files, 2, 5, "plain")
    cut = scenes.add_sequence(editor, files, 2, 40, "cut")
    scenes.trim(cut, 3, 4)
    hard = scenes.add_sequence(editor, files, 3, 5, "hard")
    setattr(hard, scenes.api().trim_start, 2)
    long = scenes.add_sequence(editor, files, 4, 5, "long")
    scenes.trim(long, 0, -5)
    still = scenes.add_sequence(editor, files[3:4], 5, 10, "still")
    scenes.trim(still, 0, -29)
    back = scenes.add_sequence(editor, files, 6, 5, "back")
    back.use_reverse_frames = True
    tinted = scenes.add_sequence(editor, files, 7, 5, "tinted")
    scenes.process(tinted)
    keyed = scenes.add_sequence(editor, files, 8, 5, 'keyed "x"')
    keyed.transform.keyframe_insert("offset_x", frame=5)
    faded = scenes.add_sequence(editor, files, 9, 5, "faded")
    faded.keyframe_insert("blend_alpha", frame=5)
    gap = scenes.add_sequence(editor, [files[0], files[2], files[3]], 10, 5, "gap")
    log = scenes.add_sequence(editor, files, 11, 5, "log")
    log.colorspace_settings.name = "Filmic Log"
    acescg = scenes.add_sequence(editor, files, 12, 5, "acescg")
    acescg.colorspace_settings.name = "ACEScg"
    meta, nested = scenes.add_meta(scene, files, 13, 5, "meta")
    scenes.add_colour(editor, 14, 1, 10)
    muted = scenes.add_sequence(editor, files, 15, 5, "muted")
    muted.mute = True
    one = host(scene)
    told = {}
    for clip in one.clips(words.Scope.ALL):
        assert one.clip(clip.id) == clip
        told[clip.name] = [
            clip.start, str(clip.used), str(clip.media), clip.processed, clip.colour_space, list(clip.size),
            clip.head_handles, clip.tail_handles,
        ]  # fmt: skip
        assert clip.processed or Path(clip.source).parent == Path(plates), clip.source
    assert "muted" not in told
    scenes.select(plain, meta, nested)
    selected = [clip.name for clip in one.clips(words.Scope.SELECTED)]
    gap[scenes.ours("strips").BATCH] = True
    marked = [clip.name for clip in one.clips(words.Scope.MARKED)]
    return {"clips": told, "selected": selected, "marked": marked, "meta": one.clip("strip:meta").processed}


def place_and_remove(plates: str, folder: str) -> Any:
    """Results of many strips, placed and removed in both orders: the scene is as it was."""
    scene = scenes.fresh()
    editor = scene.sequence_editor
    files = scenes.files_in(plates)
    source = scenes.add_sequence(editor, files, 2, 5, "sh010 ä")
    scenes.trim(source, 4, 3)
    source.transform.scale_x, source.transform.offset_y, source.crop.min_x = 0.5, 7, 3
    source.blend_alpha, source.blend_type, source.use_flip_x = 0.75, "ADD", True
    scenes.add_colour(editor, 3, 1, 12, "title")
    scenes.add_colour(editor, 4, 10, 30, "above title")
    blur = scenes.new_effect(editor, "GAUSSIAN_BLUR", 5, 9, 10, "blur", source)
    _, nested = scenes.add_meta(scene, files, 8, 30, "meta")
    still = scenes.add_sequence(editor, files[3:4], 9, 60, "still")
    scenes.trim(still, 0, -24)
    scenes.select(source)
    editor.active_strip = source
    before = scenes.dump(scene)
    one = host(scene)
    placed = [_placed(one, strip, folder) for strip in (source, nested, still)]
    assert len(one.results()) == len(one.results("j1")) == 3
    new = one._strip(placed[0].id)
    look = [new.blend_type, new.blend_alpha, new.use_flip_x, new.transform.scale_x, new.crop.min_x]
    told = {
        "places": {
            strip.name: [strip.channel, *scenes.api().visible(strip), strip.mute]
            for strip, _ in scenes.api().walk(editor)
        },
        "look": [*look, new.alpha_mode, new.colorspace_settings.name],
        "blur": blur.input_1.name,
        "clips": sorted(clip.name for clip in one.clips(values().Scope.ALL)),
    }
    # a second version over the first
    clip = one.clip("strip:sh010 ä")
    copy_files(clip, clip.used, folder)
    second = one.place(clip, result_of(clip, folder, job="j2"))
    told["second"] = [one._strip(second.id).channel, blur.input_1.name, source[scenes.ours("strips").JOB]]
    one.remove(placed[0])  # the older one first
    told["heir"] = [blur.input_1.name, source.mute, source[scenes.ours("strips").JOB]]
    for left in (second, *placed[1:]):
        one.remove(left)
    told["differences"] = scenes.differences(before, scenes.dump(scene))
    return {**told, "after loading": _after_loading(one, folder, before)}


def _placed(one: Any, strip: Any, folder: str) -> Any:
    clip = one.clip(f"strip:{strip.name}")
    if strip.name == "still":
        shutil.copyfile(clip.source, Path(folder) / "still.1004.exr")
        pattern = str(Path(folder) / "still.####.exr")
        result = scenes.dataclasses_replace(result_of(clip, folder), pattern=pattern)
    else:
        handles = clip.used.widened(2, clip.media)
        copy_files(clip, handles, folder)
        result = result_of(clip, folder, files=handles)
    placed = one.place(clip, result)
    assert placed.clip_id == clip.id
    assert placed.pattern == result.pattern or strip.name == "still"
    return placed


def _after_loading(one: Any, folder: str, before: Any) -> list[str]:
    """Placed, saved, loaded and removed: what differs from `before`."""
    again = one.place(one.clip("strip:in meta"), result_of(one.clip("strip:in meta"), folder))
    blend = os.path.join(folder, "saved ä.blend")
    bpy.ops.wm.save_as_mainfile(filepath=blend)
    bpy.ops.wm.open_mainfile(filepath=blend)
    assert [placed.id for placed in one.results()] == [again.id]
    one.remove(one.results("j1")[0])
    return [
        text
        for text in scenes.differences(before, scenes.dump(bpy.context.scene))
        if "/directory" not in text and "/data/images" not in text  # saving makes paths relative
    ]


def refuse(plates: str, folder: str) -> Any:
    """What cannot be placed leaves the scene alone and says why."""
    scene = scenes.fresh()
    files = scenes.files_in(plates)
    scenes.add_sequence(scene.sequence_editor, files, 2, 5, "a")
    errors = scenes.client("errors")
    before = scenes.dump(scene)
    one = host(scene)
    clip = one.clip("strip:a")
    copy_files(clip, clip.used, folder)
    good = result_of(clip, folder)
    os.unlink(scenes.ours("placing").file_of(good.pattern, clip.used.first + 1))
    told = []
    replace = scenes.dataclasses_replace
    tries = [good, replace(good, files=span(clip.used.first, clip.used.first), colour_space="x", interop_id="")]
    for result in tries:
        try:
            one.place(clip, result)
        except errors.ClientError as error:
            told.append([type(error).__name__, str(error), error.hint])
    top = scenes.add_colour(scene.sequence_editor, 128, 1, 20, "top")
    one._strip("strip:a").channel = 127
    copy_files(clip, clip.used, folder)
    try:
        one.place(one.clip("strip:a"), good)
    except errors.PlaceFailed as error:
        told.append([type(error).__name__, str(error), error.hint])
    one._strip("strip:a").channel = 2
    scenes.strips(scene).remove(top)
    for wrong in ("strip:gone", "nonsense"):
        try:
            one.clip(wrong)
        except errors.ClipGone as error:
            told.append([type(error).__name__, str(error), error.hint])
    return {"told": told, "differences": scenes.differences(before, scenes.dump(scene))}


def bake(plates: str, folder: str) -> Any:
    """Bakes of strips of every kind, and renders of the same timeline with nothing else on it to compare with."""
    scene = scenes.fresh()
    editor = scene.sequence_editor
    files = scenes.files_in(plates)
    plain = scenes.add_sequence(editor, files, 2, 5, "plain")
    tinted = scenes.add_sequence(editor, files, 3, 5, "tinted")
    scenes.process(tinted)
    tinted.blend_type, tinted.blend_alpha = "ADD", 0.5
    meta, nested = scenes.add_meta(scene, files, 4, 5, "meta")
    nested.use_flip_y = True
    meta.transform.scale_x, meta.blend_alpha = 0.5, 0.5
    scenes.add_colour(editor, 9, 1, 40, "over all")
    scenes.new_effect(editor, "GAUSSIAN_BLUR", 8, 5, 20, "blur", plain)
    before = scenes.dump(scene)
    one = host(scene)
    made = {}
    for strip in (plain, tinted, nested, meta):
        clip = one.clip(f"strip:{strip.name}")
        pattern = os.path.join(folder, f"{strip.name}.####.exr")
        made[strip.name] = list(one.bake(clip, span(8, 9), pattern))
        assert sorted(os.listdir(folder)) == sorted(f"{n}.{f:04d}.exr" for n in made for f in (8, 9)), os.listdir(
            folder
        )
    left = one.bake(one.clip("strip:plain"), span(8, 30), os.path.join(folder, "left.####.exr"))
    next(left)
    during = sorted(scene.name for scene in bpy.data.scenes)
    left.close()
    errors = scenes.client("errors")
    try:
        next(one.bake(one.clip("strip:plain"), span(8, 8), "/proc/none/x.####.exr"))
    except errors.BakeFailed as error:
        made["failed"] = [str(error), error.hint]
    made["during"] = during
    made["refused"] = _refused_bakes(one, files, folder)
    made["differences"] = scenes.differences(before, scenes.dump(scene))
    made["saved"] = _saved_in_mid_bake(one, folder)
    return made


def _refused_bakes(one: Any, files: list[str], folder: str) -> list[str]:
    """A strip that lacks a file, also one inside a meta strip, and one before frame 0."""
    editor = bpy.context.scene.sequence_editor
    _, inner = scenes.add_meta(bpy.context.scene, files, 20, 5, "lacks")
    inner.elements[3].filename = "gone.exr"
    whole = Path(files[4]).read_bytes()
    (Path(files[4]).parent / "half.exr").write_bytes(whole[: len(whole) // 2])
    inner.elements[4].filename = "half.exr"
    early = scenes.add_sequence(editor, files, 30, -4, "early")
    told = []
    for name, frame in (("in lacks", 8), ("lacks", 8), ("lacks", 9), ("early", -4)):
        try:
            list(one.bake(one.clip(f"strip:{name}"), span(frame, frame), os.path.join(folder, "no.####.exr")))
        except scenes.client("errors").BakeFailed as error:
            told.append(str(error))
    (Path(files[4]).parent / "half.exr").unlink()
    for strip in (early, one._strip("strip:lacks")):
        scenes.strips(bpy.context.scene).remove(strip)
    return told


def _saved_in_mid_bake(one: Any, folder: str) -> list[list[str]]:
    """The scenes of a file that is saved in mid-bake, and those that undos bring back."""
    file = os.path.join(folder, "mid.blend")
    bpy.ops.ed.undo_push(message="before")
    baking = one.bake(one.clip("strip:plain"), span(8, 9), os.path.join(folder, "mid.####.exr"))
    next(baking)
    bpy.ops.wm.save_as_mainfile(filepath=file, copy=True)
    with bpy.data.libraries.load(file) as (there, _):
        told = [list(there.scenes)]
    for number in (1, 2):
        bpy.context.scene["step"] = number
        bpy.ops.ed.undo_push(message=f"meanwhile {number}")
    baking.close()
    for _ in range(2):
        bpy.ops.ed.undo()
        told.append([scene.name for scene in bpy.data.scenes])
    bpy.context.scene.pop("step", None)
    for path in [*scenes.files_in(folder), file]:
        if os.path.basename(path).startswith("mid."):
            os.unlink(path)
    return told


def colours() -> Any:
    """The working space, and the spaces of strips."""
    told = {"start": host(bpy.context.scene).project().working_space}
    if bpy.app.version >= (5, 0):
        for name in ("Linear Rec.2020", "ACEScg"):
            bpy.ops.wm.set_working_color_space(working_space=name)
            told[name] = host(bpy.context.scene).project().working_space
    told["images"] = len(bpy.data.images)
    return told
