# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of colour spaces: Blender's own configuration and the server's.

Blender reads a strip in the space that the strip says, and the server is told the same one, so that both see the same
picture whatever the file's tag. A space that the server has no name for is read by Blender: the strip is baked.
With a studio's configuration in $OCIO both have the same one, and names go through as they are.
"""

from __future__ import annotations

TO_SERVER = {
    "Linear Rec.709": "lin_rec709_scene",
    "Linear Rec.2020": "lin_rec2020_scene",
    "ACEScg": "lin_ap1_scene",
    "ACES2065-1": "lin_ap0_scene",
    "Linear DCI-P3 D65": "lin_p3d65_scene",
    "Linear Adobe RGB": "lin_adobergb_scene",
    "sRGB": "srgb_rec709_scene",
    "Rec.1886": "g24_rec709",
    "Display P3": "srgb_p3d65_scene",
    "sRGB Encoded AP1": "srgb_ap1_scene",
    "sRGB Encoded P3-D65": "srgb_p3d65_scene",
    "Gamma 1.8 Encoded Rec.709": "g18_rec709_scene",
    "Gamma 2.2 Encoded Rec.709": "g22_rec709_scene",
    "Gamma 2.4 Encoded Rec.709": "g24_rec709",
    "Gamma 2.2 Encoded AP1": "g22_ap1_scene",
    "Gamma 2.2 Encoded AdobeRGB": "g22_adobergb_scene",
    **{
        name: name
        for name in (
            "ACEScc",
            "ACEScct",
            "ADX10",
            "ADX16",
            "ARRI LogC3 (EI800)",
            "ARRI LogC4",
            "Apple Log",
            "BMDFilm WideGamut Gen5",
            "CanonLog2 CinemaGamut D55",
            "CanonLog3 CinemaGamut D55",
            "D-Log D-Gamut",
            "DaVinci Intermediate WideGamut",
            "Linear ARRI Wide Gamut 3",
            "Linear ARRI Wide Gamut 4",
            "Linear BMD WideGamut Gen5",
            "Linear CinemaGamut D55",
            "Linear D-Gamut",
            "Linear DaVinci WideGamut",
            "Linear REDWideGamutRGB",
            "Linear S-Gamut3",
            "Linear S-Gamut3.Cine",
            "Linear V-Gamut",
            "Linear Venice S-Gamut3",
            "Linear Venice S-Gamut3.Cine",
            "Log3G10 REDWideGamutRGB",
            "S-Log3 S-Gamut3",
            "S-Log3 S-Gamut3.Cine",
            "S-Log3 Venice S-Gamut3",
            "S-Log3 Venice S-Gamut3.Cine",
            "V-Log V-Gamut",
        )
    },
}
"""Blender's names (4.2 to 5.2), and names or interop ids that the server's built-in configuration has."""

_FROM_INTEROP = {
    "lin_rec709_scene": "Linear Rec.709",
    "lin_rec2020_scene": "Linear Rec.2020",
    "lin_ap1_scene": "ACEScg",
    "lin_ap0_scene": "ACES2065-1",
    "lin_p3d65_scene": "Linear DCI-P3 D65",
    "lin_adobergb_scene": "Linear Adobe RGB",
}


def to_server(name: str, *, studio: bool) -> str | None:
    """The server's name for a space of Blender's, None where it has none.

    Args:
        name: Blender's.
        studio: whether $OCIO names a configuration, which then is the server's too.
    """
    return name if studio else TO_SERVER.get(name)


def from_server(space: str, interop_id: str, known: frozenset[str]) -> str | None:
    """Blender's name for the space of a result, None where it has none.

    Args:
        space: as the server calls it.
        interop_id: its colorInteropID, or "".
        known: names that this Blender has.
    """
    for name in (_FROM_INTEROP.get(interop_id), _FROM_INTEROP.get(space), space):
        if name is not None and name in known:
            return name
    return None
