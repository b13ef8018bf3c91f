# SPDX-License-Identifier: GPL-3.0-or-later
"""The Faceplate tab in the sidebars of sequencer, compositor and clip editor. Drawing reads and never waits."""

from __future__ import annotations

import os
from typing import Any

import bpy

from faceplate_client.errors import ClientError
from faceplate_client.host import Clip

from .host import BlenderHost, scene_of
from .state import STATE
from .words import draw_words

CATEGORY = "Faceplate"
_LOOKS = ("strength", "shape", "colour", "detail")
_KEEPS = ("keep_eyes", "keep_mouth", "occluders")
_MATTE = ("matte_grow", "matte_soften", "yaw_fade_from", "yaw_fade_to")


class Tab:
    """Where a panel is."""

    bl_region_type = "UI"
    bl_category = CATEGORY


class FACEPLATE_PT_sequencer(Tab, bpy.types.Panel):
    """Apply, refresh and remove."""

    bl_label = "Faceplate"
    bl_space_type = "SEQUENCE_EDITOR"

    def draw(self, context: Any) -> None:
        """Identity, face, and what can be done."""
        layout = self.layout
        settings = scene_of(context).faceplate
        layout.prop(settings, "identity")
        draw_track(layout, settings)
        host = BlenderHost(scene_of(context).name)
        clip, note = _active(host)
        if clip is not None:
            draw_faces(layout, host.scene_name, clip.id, settings)
        invoking(layout).operator("faceplate.find_faces", icon="VIEWZOOM")
        column = invoking(layout)
        column.scale_y = 1.4
        column.operator("faceplate.apply", icon="PLAY")
        row = invoking(layout, row=True)
        row.operator("faceplate.refresh", icon="FILE_REFRESH", text="Refresh")
        row.operator("faceplate.remove", icon="X", text="Remove")
        if clip is not None and clip.needs_bake:
            note = f"{clip.name} is rendered first: {clip.processed or 'no file'}"
        draw_words(layout, note, "INFO")
        draw_work(layout)


class FACEPLATE_PT_settings(Tab, bpy.types.Panel):
    """How the face is put in."""

    bl_label = "Settings"
    bl_space_type = "SEQUENCE_EDITOR"
    bl_parent_id = "FACEPLATE_PT_sequencer"
    bl_options = {"DEFAULT_CLOSED"}  # noqa: RUF012

    def draw(self, context: Any) -> None:
        """All settings."""
        draw_settings(self.layout, scene_of(context).faceplate)


class FACEPLATE_PT_results(Tab, bpy.types.Panel):
    """What stands in the timeline."""

    bl_label = "Batch and Results"
    bl_space_type = "SEQUENCE_EDITOR"
    bl_parent_id = "FACEPLATE_PT_sequencer"
    bl_options = {"DEFAULT_CLOSED"}  # noqa: RUF012

    def draw(self, context: Any) -> None:
        """Marks, results and their folders."""
        layout = self.layout
        row = invoking(layout, row=True)
        row.operator("faceplate.mark", icon="BOOKMARKS")
        row.operator("faceplate.apply", text="Apply to Marked").marked = True
        for placed in BlenderHost(scene_of(context).name).results():
            row = layout.row()
            row.label(text=placed.id.partition(":")[2], icon="IMAGE_DATA")
            row.operator("wm.path_open", text="", icon="FILE_FOLDER").filepath = os.path.dirname(placed.pattern)


CLASSES = (FACEPLATE_PT_sequencer, FACEPLATE_PT_settings, FACEPLATE_PT_results)


def draw_settings(layout: Any, settings: Any) -> None:
    """All settings of a scene."""
    layout.use_property_split = True
    for names in (_LOOKS, _KEEPS, _MATTE, ("handles", "missing", "project", "commercial")):
        column = layout.column(align=True)
        for name in names:
            column.prop(settings, name)


def draw_track(layout: Any, settings: Any) -> None:
    """Which face the identity goes on."""
    row = layout.row(align=True)
    row.label(text="Face:")
    row.prop(settings, "track", expand=True)
    if settings.track == "NUMBER":
        layout.prop(settings, "track_number")


def draw_faces(layout: Any, scene: str, clip_id: str, settings: Any, group: str = "") -> None:
    """The faces of a clip, or of a compositor's group, as far as they were found: picture, number, frames."""
    found = STATE.faces.get((scene, clip_id))
    if found is None:
        return
    grid = layout.grid_flow(columns=3, even_columns=True)
    for track in found.tracks:
        column = grid.box().column()
        icon = STATE.icon(scene, clip_id, track.id)
        if icon:
            column.template_icon(icon_value=icon, scale=4.0)
        chosen = settings.track == "NUMBER" and settings.track_number == track.id
        button = column.operator("faceplate.choose_face", text=track.label or f"Face {track.id}", depress=chosen)
        button.track, button.group = track.id, group
        column.label(text=f"{track.first}-{track.last}" + (f", {track.weak} weak" if track.weak else ""))


def draw_work(layout: Any) -> None:
    """The action at work, or the server."""
    now = STATE.progress
    if now is None:
        row = invoking(layout, row=True)
        draw_words(row, f"Server: {STATE.server}")
        row.operator("faceplate.check", text="", icon="CHECKMARK")
        return
    if now.total:
        layout.progress(text=f"{now.step}, {now.done} of {now.total}", factor=now.done / now.total)
    else:
        draw_words(layout, now.step.capitalize(), "SORTTIME")
    draw_words(layout, "Stopping after this frame" if STATE.stopping else "Esc stops and keeps what is done", "INFO")


def invoking(layout: Any, *, row: bool = False) -> Any:
    """A row or column whose buttons start their action on a worker."""
    part = layout.row(align=True) if row else layout.column(align=True)
    part.operator_context = "INVOKE_DEFAULT"
    return part


def draw_menu(menu: Any, context: Any) -> None:
    """Entries in the sequencer's Strip menu."""
    menu.layout.separator()
    menu.layout.operator_context = "INVOKE_DEFAULT"
    for name in ("faceplate.apply", "faceplate.refresh", "faceplate.remove"):
        menu.layout.operator(name, text=f"Faceplate: {bpy_label(name)}")


def bpy_label(name: str) -> str:
    """The label of one of the add-on's operators."""
    return str(getattr(bpy.types, name.replace(".", "_OT_").replace("faceplate", "FACEPLATE")).bl_label)


def _active(host: BlenderHost) -> tuple[Clip | None, str]:
    try:
        return host.active_clip(), ""
    except ClientError as error:
        return None, str(error)
