# SPDX-License-Identifier: GPL-3.0-or-later
"""Render one strip by itself into scene-linear EXR files, in a copy of its scene that is thrown away.

The artist's scene, its render settings and its strips are never touched: a crash in mid-bake leaves nothing to restore.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import bpy
from bpy.app.handlers import persistent

from faceplate_client.errors import BakeFailed
from faceplate_client.frame_maths import Span

from . import elements
from .placing import file_of
from .shim import Api
from .strips import OPACITY_BAKED

_MARK = "faceplate_bake"
_AT_WORK: set[str] = set()
"""Names of the copies of bakes at work."""

PLAIN_OVER = ("REPLACE", "ALPHA_OVER")
"""Ways to lie over other strips that an opacity baked into alpha gives the same picture with."""


def bake(
    api: Api, scene: str, strip: str, why: str, animated: frozenset[str], frames: Span, pattern: str
) -> Iterator[int]:
    """Render a strip; yields the number of each frame that is whole.

    Args:
        api: words of this version.
        scene: name of its scene.
        strip: its name.
        why: `Clip.processed`: an opacity that is animated is baked in, any other is left to the result.
        animated: names of strips whose values are keyed or driven.
        frames: timeline frames.
        pattern: absolute, "####" becomes the timeline frame.

    Raises:
        BakeFailed: a frame could not be rendered.
    """
    if frames.first < 0:
        raise BakeFailed(
            f"strip {strip!r} begins before frame 0, and Blender renders no frames there",
            found=f"frames {frames}",
            hint="move the strips to frame 0 or later, or trim this one",
        )
    copy = bpy.data.scenes[scene, None].copy()
    name = copy.name
    copy.is_runtime_data = True  # no file that is saved meanwhile has it
    copy[_MARK] = True
    _AT_WORK.add(name)
    try:
        _only(api, copy, strip, animated, keep_opacity=why == OPACITY_BAKED)
        _settings(api, copy)
        for frame in frames:
            path = file_of(pattern, frame)
            _check_media(api, name, strip, frame)
            _render(api, name, frame, path, strip)
            yield frame
    finally:
        _AT_WORK.discard(name)
        sweep()


def sweep() -> None:
    """Remove copies that no bake needs: of one that has ended, and what an undo brings back of it."""
    for scene in list(bpy.data.scenes):
        if scene.library is None and _MARK in scene and scene.name not in _AT_WORK:
            bpy.data.scenes.remove(scene)


@persistent
def faceplate_sweep(*_: Any) -> None:
    """For Blender's lists of what is called after undo and redo; in a window once those are through."""
    if bpy.app.background:
        sweep()
    else:
        bpy.app.timers.register(sweep, first_interval=0.0)


def _check_media(api: Api, scene: str, wanted: str, frame: int) -> None:
    """A file that is not there would be rendered as a plain picture, and that taken for the plate."""
    copy = bpy.data.scenes.get((scene, None))
    found = [] if copy is None else [one for one, _ in api.walk(copy.sequence_editor) if one.name == wanted]
    for strip in found:
        for why in elements.unfit(api, strip, frame, lambda path: bpy.path.abspath(path, library=copy.library)):
            raise BakeFailed(
                f"a file of strip {wanted!r} cannot be shown in frame {frame}",
                found=why,
                hint="put it there, or relink it",
            )


def _render(api: Api, scene: str, frame: int, path: str, strip: str) -> None:
    copy = bpy.data.scenes.get((scene, None))
    if copy is None:
        raise BakeFailed(f"strip {strip!r} could not be rendered", found="undone meanwhile", hint="apply again")
    # as an animation of one frame: a still of a scene that no window shows would take the frame of the shown one
    copy.frame_start = copy.frame_end = frame
    copy.render.filepath = os.path.join(os.path.dirname(path), ".faceplate-bake-####.exr")
    try:
        if bpy.ops.render.render(animation=True, scene=scene, **api.render) != {"FINISHED"}:
            raise BakeFailed(f"frame {frame} of strip {strip!r} could not be rendered", found="Blender was busy")
        os.replace(copy.render.frame_path(frame=frame), path)
    except (RuntimeError, OSError) as error:
        raise BakeFailed(f"frame {frame} of strip {strip!r} could not be rendered", found=str(error).strip()) from error


def _only(api: Api, scene: Any, wanted: str, animated: frozenset[str], *, keep_opacity: bool) -> None:
    """Mute all but one strip, and make what it lies in neutral: the result will lie in that too."""
    editor = scene.sequence_editor
    owners = {strip.name: (strip, owner) for strip, owner in api.walk(editor)}
    if wanted not in owners:
        raise BakeFailed(f"strip {wanted!r} is gone", hint="apply again")
    target, owner = owners[wanted]
    if not keep_opacity:
        target.blend_type, target.blend_alpha = "REPLACE", 1.0
    elif target.blend_type not in PLAIN_OVER:
        raise BakeFailed(
            f"the opacity of strip {wanted!r} is animated, and it lies over others as {target.blend_type}",
            hint="put the strip into a meta strip, animate that, and apply to the strip inside",
        )
    inner = target
    while True:
        for sibling in api.children(owner):
            sibling.mute = sibling != inner
        for channel in owner.channels:
            channel.mute = False
        if owner == editor:
            return
        if owner.name in animated:
            raise BakeFailed(
                f"strip {wanted!r} lies in the meta strip {owner.name!r}, which is animated",
                hint="apply to the meta strip, or move the strip out of it",
            )
        _neutral(api, owner)
        inner, owner = owner, owners[owner.name][1]


def _neutral(api: Api, meta: Any) -> None:
    for modifier in meta.modifiers:
        modifier.mute = True
    values: dict[str, Any] = {
        "blend_type": "REPLACE",
        "blend_alpha": 1.0,
        "use_flip_x": False,
        "use_flip_y": False,
        "use_reverse_frames": False,
        "use_deinterlace": False,
        "color_multiply": 1.0,
        "color_saturation": 1.0,
        "strobe": 1.0,
        api.left_off: 0,
        api.right_off: 0,
    }
    for name, value in values.items():
        setattr(meta, name, value)
    for name in ("offset_x", "offset_y", "rotation"):
        setattr(meta.transform, name, 0)
    meta.transform.scale_x = meta.transform.scale_y = 1.0
    for name in ("min_x", "max_x", "min_y", "max_y"):
        setattr(meta.crop, name, 0)


def _settings(api: Api, scene: Any) -> None:
    """The copy's render settings: the sequencer alone, whole frames, float, nothing drawn over them."""
    render = scene.render
    values: dict[str, Any] = {
        "use_sequencer": True,
        "use_compositing": False,
        "use_multiview": False,
        "use_border": False,
        "use_stamp": False,
        "use_file_extension": False,
        "use_overwrite": True,
        "use_placeholder": False,
        "resolution_percentage": 100,
        "dither_intensity": 0.0,
    }
    for name, value in values.items():
        setattr(render, name, value)
    image = render.image_settings
    if api.media_type:
        image.media_type = "IMAGE"
    image.file_format, image.color_mode, image.color_depth, image.exr_codec = "OPEN_EXR", "RGBA", "32", "ZIP"
    image.color_management = "FOLLOW_SCENE"
