# SPDX-License-Identifier: GPL-3.0-or-later
"""Faceplate in Blender: face replacement for strips and, through its modules, the compositor and the clip editor.

What imports what: `host.py`, `baking.py`, `compositor.py` and `batch.py` alone read and change Blender's data
(`bpy.data`, `bpy.ops`); `shim.py`, `colours.py`, `strips.py`, `elements.py`, `placing.py`, `nodes.py`,
`clip_tracks.py` and `render_state.py` import nothing of Blender and work on what they are given; `live.py` sits in
Blender's handlers; the other modules define what Blender asks for as classes (preferences, properties, operators,
panels) and hand on to `faceplate_client`.
"""

from __future__ import annotations

import logging

import bpy

from . import baking, clip_ui, compositor_ui, host, operators, panels, preferences, settings
from .shim import NEWEST
from .state import STATE

CLASSES = (
    preferences.FaceplatePreferences,
    settings.FaceplateSettings,
    *operators.CLASSES,
    *panels.CLASSES,
    *compositor_ui.CLASSES,
    *clip_ui.CLASSES,
)


def register() -> None:
    """Called by Blender when the add-on is enabled."""
    if bpy.app.version[:2] > NEWEST:
        logging.getLogger(__package__).warning(preferences.untested(bpy.app.version))
    for one in CLASSES:
        bpy.utils.register_class(one)
    bpy.types.Scene.faceplate = bpy.props.PointerProperty(type=settings.FaceplateSettings)
    bpy.types.SEQUENCER_MT_strip.append(panels.draw_menu)
    compositor_ui.register()
    for functions in (bpy.app.handlers.undo_post, bpy.app.handlers.redo_post):
        functions.append(baking.faceplate_sweep)
    bpy.app.timers.register(host.warm)  # no data may be touched yet


def unregister() -> None:
    """Called by Blender when it is disabled: everything is as it was."""
    STATE.close()
    if bpy.app.timers.is_registered(host.warm):
        bpy.app.timers.unregister(host.warm)
    for functions in (bpy.app.handlers.undo_post, bpy.app.handlers.redo_post):
        functions.remove(baking.faceplate_sweep)
    compositor_ui.unregister()
    bpy.types.SEQUENCER_MT_strip.remove(panels.draw_menu)
    del bpy.types.Scene.faceplate
    for one in reversed(CLASSES):
        bpy.utils.unregister_class(one)
