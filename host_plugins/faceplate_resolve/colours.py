"""Colour in Resolve: what the project does with a clip's colour, and the names of spaces on both sides.

    managed      DaVinci YRGB Color Managed, or ACES: each clip has an input space. The server reads the file in that
                 space and gives scene-linear EXR, whose input space is set on the imported clip and read back.
    unmanaged    DaVinci YRGB: code values go through as they are, and nothing says what they mean. The result has to
                 have the source's own encoding, so it has the source's own format: a movie for a movie, DPX for DPX.

Resolve tells nobody its list of names; a name is right when it can be set and reads back. Names that could mean two
things ("Linear" has no primaries) are not in the tables: a studio adds them to the settings file once it has seen the
picture.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from faceplate_client.errors import HostError

UNMANAGED = "davinciYRGB"
MANAGED = ("davinciYRGBColorManagedv2", "davinciYRGBColorManaged")
ACES = ("acescct", "acescc")

INPUT = "Input Color Space"
INPUT_GAMMA = "Input Gamma"
INPUT_ACES = "IDT"
"""Clip properties: of managed projects, of those that separate space and gamma, of ACES."""

BAKE_SPACE = "lin_ap1_scene"
"""In which Resolve renders clips that it has to, as the server calls it: wide enough for any source."""

TO_SERVER = {
    "ACES": "lin_ap0_scene",
    "ACES2065-1": "lin_ap0_scene",
    "ACEScc": "ACEScc",
    "ACEScct": "ACEScct",
    "ACEScg": "lin_ap1_scene",
    "ARRI LogC3": "ARRI LogC3 (EI800)",
    "ARRI LogC4": "ARRI LogC4",
    "ARRI Wide Gamut 3/LogC3": "ARRI LogC3 (EI800)",
    "ARRI Wide Gamut 4/LogC4": "ARRI LogC4",
    "ARRI Alexa": "ARRI LogC3 (EI800)",
    "Apple Log": "Apple Log",
    "Blackmagic Design Film Gen 5": "BMDFilm WideGamut Gen5",
    "Blackmagic Design Wide Gamut Gen 5/Film": "BMDFilm WideGamut Gen5",
    "Canon Cinema Gamut/Canon Log 2": "CanonLog2 CinemaGamut D55",
    "Canon Cinema Gamut/Canon Log 3": "CanonLog3 CinemaGamut D55",
    "DaVinci WG/Intermediate": "DaVinci Intermediate WideGamut",
    "DJI D-Gamut/D-Log": "D-Log D-Gamut",
    "Panasonic V-Gamut/V-Log": "V-Log V-Gamut",
    "RED Wide Gamut RGB/Log3G10": "Log3G10 REDWideGamutRGB",
    "RedWideGamutRGB/Log3G10": "Log3G10 REDWideGamutRGB",
    "REDWideGamutRGB/Log3G10": "Log3G10 REDWideGamutRGB",
    "Rec.709 (Scene)": "camera_rec709",
    "Rec.709 Gamma 2.2": "g22_rec709_scene",
    "Rec.709 Gamma 2.4": "g24_rec709",
    "Rec.709 Linear": "lin_rec709_scene",
    "Rec.2020 Linear": "lin_rec2020_scene",
    "Sony S-Gamut3/S-Log3": "S-Log3 S-Gamut3",
    "Sony S-Gamut3.Cine/S-Log3": "S-Log3 S-Gamut3.Cine",
    "S-Gamut3/S-Log3": "S-Log3 S-Gamut3",
    "S-Gamut3.Cine/S-Log3": "S-Log3 S-Gamut3.Cine",
    "sRGB": "srgb_rec709_scene",
}
"""Resolve's names, space and gamma with a slash between where a clip has both, and the server's."""

FROM_INTEROP: dict[str, tuple[str, ...]] = {
    "lin_ap0_scene": ("ACES2065-1", "ACES"),
    "lin_ap1_scene": ("ACEScg",),
    "lin_rec709_scene": ("Rec.709 Linear", "Linear Rec.709"),
    "lin_rec2020_scene": ("Rec.2020 Linear", "Linear Rec.2020"),
    "lin_p3d65_scene": ("P3-D65 Linear", "Linear P3-D65"),
}
"""Names that Resolve might have for a linear space, the likelier first."""
SEPARATE: dict[str, tuple[str, ...]] = {
    "lin_ap0_scene": ("ACES (AP0)", "ACES AP0"),
    "lin_ap1_scene": ("ACES (AP1)", "ACES AP1"),
    "lin_rec709_scene": ("Rec.709",),
    "lin_rec2020_scene": ("Rec.2020",),
    "lin_p3d65_scene": ("P3-D65",),
}
"""The same where the project separates space and gamma; the gamma is "Linear"."""
FROM_INTEROP_ACES: dict[str, tuple[str, ...]] = {
    "lin_ap0_scene": ("ACES2065-1", "No Input Transform"),
    "lin_ap1_scene": ("ACEScg", "ACEScg - CSC"),
    "lin_rec709_scene": ("Linear Rec.709", "Rec.709 Linear"),
}
"""Input transforms of ACES projects."""


@dataclass(frozen=True)
class Colour:
    """What a project does with colour.

    Attributes:
        mode: "managed", "aces" or "unmanaged".
        separate: whether space and gamma are set apart.
        default: input space of clips that have none of their own, "" for none.
        studio: names from the settings file, server's name to Resolve's, before those of the tables.
    """

    mode: str
    separate: bool = False
    default: str = ""
    studio: Mapping[str, str] = field(default_factory=dict)

    @property
    def managed(self) -> bool:
        """Whether a clip says what its code values mean."""
        return self.mode != "unmanaged"

    def clip_space(self, properties: Mapping[str, Any]) -> str:
        """The space that a clip is read in, in Resolve's words; "" where nothing says it."""
        if not self.managed:
            return ""
        if self.mode == "aces":
            return _word(properties.get(INPUT_ACES))
        space, gamma = _word(properties.get(INPUT)), _word(properties.get(INPUT_GAMMA))
        if self.separate and space and gamma and "/" not in space:
            return f"{space} Linear" if gamma == "Linear" else f"{space}/{gamma}"
        return space or self.default

    def to_server(self, name: str) -> str | None:
        """The server's name for a space of Resolve's, None where it has none."""
        own = {theirs: ours for ours, theirs in self.studio.items()}
        if name in own:
            return own[name]
        for table in (SEPARATE,) if self.separate else ():
            for ours, names in table.items():
                if name in {f"{one} Linear" for one in names}:
                    return ours
        return TO_SERVER.get(name)

    def writes(self, space: str, interop_id: str) -> list[dict[str, str]]:
        """Clip properties that say a linear space, the likelier first; each is to be read back. None: nothing to set.

        Args:
            space: of a result, as the server calls it.
            interop_id: its colorInteropID, or "".
        """
        names = [self.studio[key] for key in (interop_id, space) if key in self.studio]
        key = interop_id or space
        if self.mode == "aces":
            return [{INPUT_ACES: name} for name in (*names, *FROM_INTEROP_ACES.get(key, ()))]
        combined = [{INPUT: name} for name in (*names, *FROM_INTEROP.get(key, ()))]
        if not self.separate:
            return combined
        return [*({INPUT: name, INPUT_GAMMA: "Linear"} for name in SEPARATE.get(key, ())), *combined]

    def output_writes(self) -> list[dict[str, str]]:
        """Timeline settings that make a render scene-linear in `BAKE_SPACE`, without tone mapping."""
        own = self.studio.get(BAKE_SPACE)
        if self.mode == "aces":
            names = FROM_INTEROP_ACES[BAKE_SPACE]
            return [{"colorAcesODT": name} for name in ((own,) if own else ()) + names]
        plain = {"inputDRT": "None", "outputDRT": "None"}
        names = FROM_INTEROP[BAKE_SPACE]
        found = [{"colorSpaceOutput": name, **plain} for name in ((own,) if own else ()) + names]
        if self.separate:
            apart = (
                {"colorSpaceOutput": name, "colorSpaceOutputGamma": "Linear", **plain} for name in SEPARATE[BAKE_SPACE]
            )
            found = [*apart, *found]
        return found


def colour_of(setting: Any, project: str, studio: Mapping[str, str] | None = None) -> Colour:
    """What a project does with colour.

    Args:
        setting: `Project.GetSetting`.
        project: name, for the error.
        studio: see `Colour`.

    Raises:
        HostError: a colour science that is not known: what a result should be cannot be told.
    """
    science = _word(setting("colorScienceMode"))
    known = {UNMANAGED: "unmanaged", **dict.fromkeys(MANAGED, "managed"), **dict.fromkeys(ACES, "aces")}
    if science not in known:
        raise HostError(
            f"the colour science of project {project!r} is not known",
            expected=", ".join(known),
            found=science or "nothing",
            hint="Project Settings > Color Management: choose DaVinci YRGB, DaVinci YRGB Color Managed or ACES",
        )
    separate = _word(setting("separateColorSpaceAndGamma")) in ("1", "True", "true")
    default = _word(setting("colorSpaceInput"))
    gamma = _word(setting("colorSpaceInputGamma"))
    if separate and default and gamma:
        default = f"{default} Linear" if gamma == "Linear" else f"{default}/{gamma}"
    return Colour(known[science], separate, default, studio or {})


def _word(value: Any) -> str:
    return "" if value is None else str(value).strip()
