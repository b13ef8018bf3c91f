# SPDX-License-Identifier: GPL-3.0-or-later
"""Faceplate in Blender: face replacement for strips and, through its modules, the compositor and the clip editor.

What imports what: `host.py` and `baking.py` alone read and change Blender's data (`bpy.data`, `bpy.ops`); `shim.py`,
`colours.py`, `strips.py` and `placing.py` import nothing of Blender and work on what they are given; the other modules
define what Blender asks for as classes (preferences, properties, operators, panels) and hand on to `faceplate_client`.
"""

from __future__ import annotations


def register() -> None:
    """Called by Blender when the add-on is enabled."""


def unregister() -> None:
    """Called by Blender when it is disabled."""
