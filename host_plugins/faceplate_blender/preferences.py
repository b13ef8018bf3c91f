# SPDX-License-Identifier: GPL-3.0-or-later
"""The add-on's preferences: which server, where results go."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bpy
from bpy.props import BoolProperty, StringProperty

from faceplate_client.connection import Place
from faceplate_client.task import Servers

from .shim import NEWEST
from .state import STATE
from .words import draw_words


class _Serving:
    """What any preferences of ours do with their values."""

    def servers(self: Any, *, start: bool = False) -> Servers:
        """Which server actions talk to.

        Args:
            start: start it when none is running, whatever the preferences say.

        Raises:
            ConnectionFailed: the name cannot be used.
        """
        folder = bpy.path.abspath(self.server_folder) if self.server_folder else ""
        command = [bpy.path.abspath(self.program), "serve", "--name", self.server_name]
        return Servers(
            place=Place(Path(folder) if folder else None, self.server_name),
            start=start or self.start_server,
            command=(*command, *(("--folder", folder) if folder else ())),
        )


@dataclass(frozen=True)
class Defaults(_Serving):
    """The values where nobody chose others; all there is for an add-on that Blender keeps no preferences for: one
    enabled by `blender --addons`, as farms do.
    """

    output_root: str = ""
    program: str = "faceplate"
    server_name: str = "default"
    server_folder: str = ""
    start_server: bool = False
    place_partial: bool = False


class FaceplatePreferences(_Serving, bpy.types.AddonPreferences):
    """Which server, where results go."""

    bl_idname = __package__

    output_root: StringProperty(  # type: ignore[valid-type]
        name="Output Folder",
        description="Where results go, a folder for each scene and strip. Empty: faceplate/ beside the .blend file, "
        "for a file that was never saved in your home folder",
        subtype="DIR_PATH",
        default=Defaults.output_root,
    )
    program: StringProperty(  # type: ignore[valid-type]
        name="Program",
        description="The faceplate program, which starts the server: its full path where it is not on PATH",
        subtype="FILE_PATH",
        default=Defaults.program,
    )
    server_name: StringProperty(  # type: ignore[valid-type]
        name="Server",
        description="Name of the server, where you run several: one a graphics card",
        default=Defaults.server_name,
    )
    server_folder: StringProperty(  # type: ignore[valid-type]
        name="Server's Address",
        description="Folder in which the server leaves its address. Empty: your own, which is right for most",
        subtype="DIR_PATH",
        default=Defaults.server_folder,
    )
    start_server: BoolProperty(  # type: ignore[valid-type]
        name="Start When Needed",
        description="Start the server without asking when an action needs it and none is running",
        default=Defaults.start_server,
    )
    place_partial: BoolProperty(  # type: ignore[valid-type]
        name="Place Stopped Results",
        description="Place a result that was stopped too; frames that are not done show a slate",
        default=Defaults.place_partial,
    )

    def draw(self, context: Any) -> None:
        """All of it, the Check button and what it said."""
        layout = self.layout
        layout.use_property_split = True
        for name in ("output_root", "place_partial", "program", "server_name", "server_folder", "start_server"):
            layout.prop(self, name)
        layout.operator("faceplate.check", icon="CHECKMARK")
        draw_words(layout, f"Server: {STATE.server}")
        if bpy.app.version[:2] > NEWEST:
            draw_words(layout, untested(bpy.app.version), "ERROR")


def untested(version: tuple[int, ...]) -> str:
    """What is said to users of a Blender that is newer than the tested ones."""
    newest, found = (".".join(map(str, numbers[:2])) for numbers in (NEWEST, version))
    return f"Faceplate was tested with Blender up to {newest}, this is {found}: check your results"


def of(context: Any) -> Any:
    """The add-on's preferences; `Defaults` where Blender keeps none."""
    addon = context.preferences.addons.get(__package__)
    return Defaults() if addon is None else addon.preferences
