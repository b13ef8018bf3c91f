# SPDX-License-Identifier: Apache-2.0
"""Names of colour spaces: Nuke's configurations and the server's. Imports nothing of Nuke.

A node's own picture is in Nuke's working space, whatever the file was: what Nuke renders goes to the server raw, and
the raw result comes back into the same space. A file that the server reads itself is named as the Read node has it.
With $OCIO set both sides have the same configuration and names go through as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

REC709 = "lin_rec709_scene"
_LINEAR: dict[str, tuple[str, ...]] = {
    "lin_ap1_scene": ("ACEScg", "ACES - ACEScg", "lin_ap1", "lin_ap1_scene"),
    "lin_ap0_scene": ("ACES2065-1", "ACES - ACES2065-1", "lin_ap0_scene"),
    REC709: (
        *("Linear Rec.709 (sRGB)", "Utility - Linear - sRGB", "Utility - Linear - Rec.709", "Linear Rec.709"),
        *("Linear sRGB", "lin_srgb", "lin_rec709", REC709),
    ),
    "lin_rec2020_scene": ("Linear Rec.2020", "Utility - Linear - Rec.2020", "lin_rec2020", "lin_rec2020_scene"),
    "lin_p3d65_scene": ("Linear P3-D65", "Utility - Linear - P3-D65", "lin_p3d65", "lin_p3d65_scene"),
    "Linear ARRI Wide Gamut 3": ("Linear ARRI Wide Gamut 3", "Input - ARRI - Linear - ALEXA Wide Gamut"),
    "Linear ARRI Wide Gamut 4": ("Linear ARRI Wide Gamut 4",),
    "Linear REDWideGamutRGB": ("Linear REDWideGamutRGB", "Input - RED - Linear - REDWideGamutRGB"),
    "Linear S-Gamut3.Cine": ("Linear S-Gamut3.Cine", "Input - Sony - Linear - S-Gamut3.Cine"),
    "Linear V-Gamut": ("Linear V-Gamut", "Input - Panasonic - Linear - V-Gamut"),
}
"""The server's name of a linear space, and what Nuke's configurations call it."""
_ENCODED: dict[str, tuple[str, tuple[str, ...]]] = {
    "srgb_rec709_scene": (REC709, ("sRGB - Texture", "Utility - sRGB - Texture", "sRGB Encoded Rec.709 (sRGB)")),
    "ACEScct": ("lin_ap1_scene", ("ACEScct", "ACES - ACEScct")),
    "ACEScc": ("lin_ap1_scene", ("ACEScc", "ACES - ACEScc")),
    "ARRI LogC3 (EI800)": (
        "Linear ARRI Wide Gamut 3",
        ("ARRI LogC3 (EI800)", "Input - ARRI - V3 LogC (EI800) - Wide Gamut"),
    ),
    "ARRI LogC4": ("Linear ARRI Wide Gamut 4", ("ARRI LogC4",)),
    "Log3G10 REDWideGamutRGB": (
        "Linear REDWideGamutRGB",
        ("Log3G10 REDWideGamutRGB", "Input - RED - REDLog3G10 - REDWideGamutRGB"),
    ),
    "S-Log3 S-Gamut3.Cine": (
        "Linear S-Gamut3.Cine",
        ("S-Log3 S-Gamut3.Cine", "Input - Sony - S-Log3 - S-Gamut3.Cine"),
    ),
    "V-Log V-Gamut": ("Linear V-Gamut", ("V-Log V-Gamut", "Input - Panasonic - V-Log - V-Gamut")),
}
"""The server's name of an encoded space: the linear space that its pixels come back in, and Nuke's names."""
_NUKES_OWN = {"linear": (REC709, REC709), "srgb": ("srgb_rec709_scene", REC709)}
"""Without OCIO a space of Nuke's is a curve. Linear is what the curves of video and sRGB lead to; the others have
primaries that nobody tells, so Nuke reads such files itself."""
_ROLES = frozenset(
    (
        *("scene_linear", "rendering", "compositing_linear", "compositing_log", "color_timing", "color_picking"),
        *("texture_paint", "matte_paint", "data", "default", "reference"),
        *("aces_interchange", "cie_xyz_d65_interchange"),
    )
)
_LINEAR_ROLES = ("scene_linear", "rendering", "compositing_linear")
_LINEAR_ROLE = {"aces": "ACEScg", "nuke-default": "linear"}
"""What those roles are in the configurations that come with Nuke."""
_ROLE = re.compile(r"([A-Za-z_]\w*) \((.+)\)")


@dataclass(frozen=True)
class Management:
    """How the script manages colour.

    Attributes:
        ocio: whether by OCIO; else by Nuke's own curves.
        config: of OCIO: its name or path, for the record.
        studio: whether $OCIO names the configuration, which then is the server's too.
        working: space of the pixels between nodes, as Nuke calls it.
    """

    ocio: bool
    config: str
    studio: bool
    working: str

    @property
    def family(self) -> str:
        """Of configurations that come with Nuke; "" for another one."""
        name = self.config.lower()
        if "nuke-default" in name:
            return "nuke-default"
        return "aces" if any(word in name for word in ("aces", "cg-config", "studio-config")) else ""

    @property
    def text(self) -> str:
        """For the job's notes."""
        by = f"OCIO {self.config}" if self.ocio else "Nuke's own curves"
        return f"colour: {by}, working space {self.working}"


def plain(name: str) -> str:
    """The space that a knob names: "default (sRGB)" and "scene_linear (ACEScg)" say it in brackets, behind a role."""
    last = name.split("\t")[0].split("/")[-1].strip()
    match = _ROLE.fullmatch(last)
    return match[2] if match and match[1].lower() in _ROLES else last


def working_space(management: Management) -> str | None:
    """The server's name for Nuke's working space, None where it has none."""
    if not management.ocio:
        return REC709
    found = file_space(management.working, management)
    return found.space if found is not None else None


@dataclass(frozen=True)
class FileSpace:
    """A space that files are in.

    Attributes:
        space: the server's name.
        result: the linear space that the server gives results in, "" where only the server knows.
    """

    space: str
    result: str


def file_space(name: str, management: Management) -> FileSpace | None:
    """What a Read node's space is to the server; None where it has no name for it.

    Args:
        name: as the knob says it.
        management: of the script.
    """
    said = plain(name)
    if said in _ROLES and not management.studio:
        said = _LINEAR_ROLE.get(management.family, "") if said in _LINEAR_ROLES else ""
    if not management.ocio or management.family == "nuke-default":
        own = _NUKES_OWN.get(said.lower())
        return None if own is None else FileSpace(*own)
    for space, names in _LINEAR.items():
        if said in names:
            return FileSpace(space, space)
    for space, (linear, names) in _ENCODED.items():
        if said in names:
            return FileSpace(space, linear)
    return FileSpace(said, "") if management.studio else None


def same(one: str, other: str) -> bool:
    """Whether two of the server's names mean one linear space."""
    return one == other or any(one in names and other in names for names in _all_names())


def _all_names() -> Iterable[tuple[str, ...]]:
    return ((space, *names) for space, names in _LINEAR.items())


def nuke_name(spaces: Sequence[str], values: Sequence[str]) -> str | None:
    """The entry of a Read node's pulldown for a linear space, None where it has none.

    Args:
        spaces: what the server calls it: name, interop id.
        values: the entries, as Nuke lists them; some have a group before and a description behind the name.
    """
    wanted = set(spaces)
    for names in _all_names():
        if wanted & set(names):
            wanted |= set(names)
    for value in values:
        if plain(value) in wanted:
            return value.split("\t")[0].strip()
    return None
