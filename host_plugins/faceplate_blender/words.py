# SPDX-License-Identifier: GPL-3.0-or-later
"""What artists are told."""

from __future__ import annotations

import textwrap
from typing import Any

import bpy

from faceplate_client.errors import ClientError, LaunchFailed

_WIDTH = 90
"""Letters a line in the box that shows an error; Blender cuts off what goes beyond the window's edge."""
_LETTERS, _LETTER_PX, _AROUND = 24, 6.5, 12
"""Of a label: letters at least, a letter's width on a screen of scale 1, letters that icon, margins and tabs take."""
_PROGRAM = "The program's path is set in Edit > Preferences > Add-ons > Faceplate > Program"


def said(error: ClientError) -> str:
    """An error: what is wrong, then in a line of its own what to do. Words that are longer than a line stay whole."""
    hint = f"{error.hint[:1].upper()}{error.hint[1:]}"
    sentences = [f"{error}.", f"{hint}.", _PROGRAM] if isinstance(error, LaunchFailed) else [f"{error}.", hint]
    lines = [
        part
        for sentence in sentences
        for line in sentence.splitlines()
        for part in textwrap.wrap(line, _WIDTH, break_long_words=False, break_on_hyphens=False)
    ]
    return " \n".join(lines)  # the status bar leaves the line breaks out


def draw_words(layout: Any, text: str, icon: str = "NONE") -> None:
    """Text in as many lines as the region's width asks for: Blender cuts the middle out of a label that is too long."""
    region, scale = bpy.context.region, bpy.context.preferences.system.ui_scale
    letters = max(_LETTERS, int(region.width / scale / _LETTER_PX) - _AROUND) if region is not None else _LETTERS
    column = layout.column(align=True)
    for line in textwrap.wrap(text, letters):
        column.label(text=line, icon=icon)
        icon = icon if icon == "NONE" else "BLANK1"
