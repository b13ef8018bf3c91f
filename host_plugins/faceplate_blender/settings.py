# SPDX-License-Identifier: GPL-3.0-or-later
"""What the artist sets in the panels, kept in the scene; and the recipe that is made of it."""

import os
from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatProperty, IntProperty, StringProperty

from faceplate_client import wire
from faceplate_client.errors import BadClip
from faceplate_client.job_record import Recipe

NAMES = (
    "strength",
    "shape",
    "colour",
    "detail",
    "keep_eyes",
    "keep_mouth",
    "occluders",
    "matte_grow",
    "matte_soften",
    "yaw_fade_from",
    "yaw_fade_to",
)
"""Settings of the server, with the same names, ranges and defaults."""
LAYERS = ("rgba",)
"""Of results that become strips. The sequencer of Blender 4.2 cannot read EXR files with further layers and ends
Blender when it meets one; those of 4.5 to 5.2 read them without converting their colour space."""


class FaceplateSettings(bpy.types.PropertyGroup):
    """Settings of a scene."""

    identity: StringProperty(  # type: ignore[valid-type]
        name="Identity", description="The identity file (.fpid) whose face goes in", subtype="FILE_PATH"
    )
    track: EnumProperty(  # type: ignore[valid-type]
        name="Face",
        items=(
            ("MAIN", "Main", "The face that fills most of the shot"),
            ("ALL", "All", "Every face"),
            ("NUMBER", "Number", "The track with this number; Find Faces shows them"),
        ),
    )
    track_number: IntProperty(name="Track", min=0, default=1)  # type: ignore[valid-type]
    handles: IntProperty(  # type: ignore[valid-type]
        name="Handles", description="Frames more at either end, as far as the source has them", min=0, max=1000
    )
    missing: EnumProperty(  # type: ignore[valid-type]
        name="Missing Files",
        items=(
            ("error", "Refuse", "A strip with a missing file is not worked on"),
            ("hold", "Hold", "The frame before stands in for a missing file"),
        ),
    )
    project: StringProperty(  # type: ignore[valid-type]
        name="Project", description="Title that the consent record is checked against"
    )
    commercial: BoolProperty(  # type: ignore[valid-type]
        name="Paid Work", description="Refuse weights whose licence forbids paid work"
    )
    strength: FloatProperty(  # type: ignore[valid-type]
        name="Strength", description="How much of the change is applied", min=0, max=1, default=1, subtype="FACTOR"
    )
    shape: FloatProperty(  # type: ignore[valid-type]
        name="Shape", description="How far the face takes the identity's proportions", min=0, max=1, subtype="FACTOR"
    )
    colour: FloatProperty(  # type: ignore[valid-type]
        name="Colour",
        description="How far the identity's colour follows the plate's light",
        min=0,
        max=1,
        default=1,
        subtype="FACTOR",
    )
    detail: FloatProperty(  # type: ignore[valid-type]
        name="Detail",
        description="How far sharpness and grain follow the plate's",
        min=0,
        max=1,
        default=1,
        subtype="FACTOR",
    )
    keep_eyes: BoolProperty(  # type: ignore[valid-type]
        name="Keep Eyes", description="Keep the plate's eyes", default=True
    )
    keep_mouth: BoolProperty(  # type: ignore[valid-type]
        name="Keep Mouth",
        description="Keep the plate's inner mouth; always where the photos' lips are closed",
        default=True,
    )
    occluders: BoolProperty(  # type: ignore[valid-type]
        name="Occluders", description="Keep out what is in front of the face", default=True
    )
    matte_grow: FloatProperty(  # type: ignore[valid-type]
        name="Grow Matte", description="Move the matte's edge outwards, fraction of the face width", min=-0.2, max=0.1
    )
    matte_soften: FloatProperty(  # type: ignore[valid-type]
        name="Soften Matte",
        description="Width of the soft edge, fraction of the face width",
        min=0,
        max=0.3,
        default=0.05,
    )
    yaw_fade_from: FloatProperty(  # type: ignore[valid-type]
        name="Fade from Turn", description="Head turn in degrees at which the change begins to fade", max=90, default=50
    )
    yaw_fade_to: FloatProperty(  # type: ignore[valid-type]
        name="Fade to Turn", description="Head turn in degrees at which the change is gone", max=90, default=75
    )


def recipe_of(settings: Any, keyed: dict[str, tuple[tuple[int, float], ...]]) -> Recipe:
    """What actions make of strips.

    Args:
        settings: of the scene.
        keyed: values of the settings that are animated, by timeline frame.

    Raises:
        BadClip: no identity is chosen, or its path is relative to a file that was never saved.
    """
    if not settings.identity:
        raise BadClip("no identity is chosen", hint="choose an identity file (.fpid) in the Faceplate panel")
    identity = bpy.path.abspath(settings.identity)
    if not os.path.isabs(identity):
        raise BadClip(
            "the identity's path is relative to a file that was never saved",
            found=settings.identity,
            hint="save the .blend file, or choose the identity with its whole path",
        )
    track: int | str = {"MAIN": "main", "ALL": "all"}.get(settings.track, settings.track_number)
    values = {
        name: ((0, float(getattr(settings, name))),)
        for name in NAMES
        if name not in keyed and settings.is_property_set(name)
    }
    return Recipe(
        assignments=(wire.Assignment(identity, track),),
        settings={**values, **keyed},
        layers=LAYERS,
        handles=settings.handles,
        missing=settings.missing,
        project=settings.project or None,
        commercial=settings.commercial,
    )
