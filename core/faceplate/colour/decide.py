"""In which colour space is this plate? Never guessed silently: every answer says where it comes from.

Order: what the job says; the file's own tag; the file rules of the studio's $OCIO; a stated default. A tag that says
something Faceplate cannot translate is not passed over: the studio's rules may answer, else the job must.

Defaults: half and float files hold scene-linear light (the scene_linear role), integer files sRGB. OpenImageIO calls
every PNG and JPEG sRGB, tagged or not, so that this is a default here and no tag. DPX has no default: its codes may
be any log, and none of them is near another. "Printing density" is taken as ADX10 or ADX16, whose densities have
that scale. A movie without tags is taken as `media.movies.tags` says: HD is BT.709.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..errors import ColourSpaceError
from ..frame import StoredImage
from .spaces import ColourConfig

Source = Literal["job", "file tag", "studio rules", "default"]

_D65 = (0.3127, 0.3290)
_ACES_WHITE = (0.32168, 0.33767)

PRIMARIES: Mapping[str, tuple[float, ...]] = {
    "lin_ap0_scene": (0.7347, 0.2653, 0.0, 1.0, 0.0001, -0.077, *_ACES_WHITE),
    "lin_ap1_scene": (0.713, 0.293, 0.165, 0.830, 0.128, 0.044, *_ACES_WHITE),
    "lin_rec709_scene": (0.640, 0.330, 0.300, 0.600, 0.150, 0.060, *_D65),
    "lin_rec2020_scene": (0.708, 0.292, 0.170, 0.797, 0.131, 0.046, *_D65),
    "lin_p3d65_scene": (0.680, 0.320, 0.265, 0.690, 0.150, 0.060, *_D65),
    "lin_adobergb_scene": (0.640, 0.330, 0.210, 0.710, 0.150, 0.060, *_D65),
    "lin_arri_wide_gamut_3": (0.6840, 0.3130, 0.2210, 0.8480, 0.0861, -0.1020, *_D65),
    "lin_arri_wide_gamut_4": (0.7347, 0.2653, 0.1424, 0.8576, 0.0991, -0.0308, *_D65),
    "lin_redwidegamutrgb": (0.780308, 0.304253, 0.121595, 1.493994, 0.095612, -0.084589, *_D65),
    "lin_vgamut": (0.730, 0.280, 0.165, 0.840, 0.100, -0.030, *_D65),
    "lin_sgamut3": (0.730, 0.280, 0.140, 0.855, 0.100, -0.050, *_D65),
    "lin_sgamut3cine": (0.766, 0.275, 0.225, 0.800, 0.089, -0.087, *_D65),
    "lin_davinci_widegamut": (0.8000, 0.3130, 0.1682, 0.9877, 0.0790, -0.1155, *_D65),
    "lin_bmd_widegamut_gen5": (0.7177215, 0.3171181, 0.2280410, 0.8615690, 0.1005841, -0.0820452, 0.3127170, 0.3290312),
    "lin_dgamut": (0.710, 0.310, 0.210, 0.880, 0.090, -0.080, *_D65),
}
"""CIE xy of red, green, blue and white as their makers publish them, by alias in the ACES configurations."""

_SAME_PRIMARIES = 1e-3
_SRGB = ("srgb_rec709_scene", "srgb_texture", "srgb_tx", "sRGB - Texture", "texture_paint")
_CALLED_SRGB = frozenset({"srgb", *(name.lower() for name in _SRGB)})

_ICC: Mapping[str, str] = {
    "srgb": "srgb_rec709_scene",
    "display p3": "srgb_p3d65_scene",
    "adobe rgb": "g22_adobergb_scene",
}

_DPX_TRANSFER: Mapping[str, str] = {
    "Linear": "scene_linear",
    "SMPTE 274M": "camera_rec709",
    "ITU-R 709-4": "camera_rec709",
}


@dataclass(frozen=True, slots=True)
class ColourDecision:
    """The space of a plate and where that was found.

    Attributes:
        space: canonical name in the active configuration; may be encoded (see `ColourConfig.linear_twin`).
        source: "job", "file tag", "studio rules" or "default".
        note: for the report; says which tag or rule, and what is assumed.
    """

    space: str
    source: Source
    note: str


class _Untranslatable(Exception):
    """The file says something about its colour that has no name in the configuration."""


_Tag = tuple[str, str]
"""A name to resolve, and a note."""


def decide_space(config: ColourConfig, image: StoredImage, requested: str | None) -> ColourDecision:
    """The space of `image`, in the order of this module.

    Args:
        config: the active configuration; its file rules count only when it came from $OCIO.
        image: as its file holds it.
        requested: what the job says (any name `ColourConfig.resolve` knows), or None.

    Raises:
        ColourSpaceError: the name is unknown or for data; the file's tag cannot be translated and nothing else
            answers; a DPX does not say its curve.
    """
    if requested is not None:
        return ColourDecision(config.resolve(requested), "job", f"the job says {requested}")
    problem = ""
    try:
        tag = _file_tag(config, image)
    except _Untranslatable as error:
        tag, problem = None, str(error)
    if tag is not None:
        return ColourDecision(config.resolve(tag[0]), "file tag", tag[1])
    ruled = config.rule_for(str(image.path)) if config.from_studio else None
    if ruled is not None:
        note = f"a file rule of {config.name}" + (f"; {problem}" if problem else "")
        return ColourDecision(config.resolve(ruled), "studio rules", note)
    if problem:
        raise ColourSpaceError(
            f"{image.path.name}: {problem}",
            expected=f"a tag that {config.name} knows",
            hint="name the plate's colour space in the job",
        )
    return _default(config, image)


def _file_tag(config: ColourConfig, image: StoredImage) -> _Tag | None:
    readers: dict[str, Callable[[ColourConfig, StoredImage], _Tag | None]] = {
        "exr": _exr_tag,
        "dpx": _dpx_tag,
        "movie": _movie_tag,
    }
    return readers.get(image.file_format, _picture_tag)(config, image)


def _known(config: ColourConfig, name: str) -> bool:
    try:
        config.resolve(name)
    except ColourSpaceError:
        return False
    return True


def _interop(config: ColourConfig, image: StoredImage) -> _Tag | None:
    tag = str(image.metadata.get("colorInteropID", "")).strip()
    if not tag or tag == "unknown":
        return None
    if not _known(config, tag):
        raise _Untranslatable(f"colorInteropID {tag!r} names no colour space of {config.name}")
    return tag, f"colorInteropID {tag}"


def _exr_tag(config: ColourConfig, image: StoredImage) -> _Tag | None:
    interop = _interop(config, image)
    if interop is not None:
        return interop
    if image.metadata.get("acesImageContainerFlag") == 1:
        return "lin_ap0_scene", "acesImageContainerFlag"
    found = image.metadata.get("chromaticities")
    return None if found is None else _from_primaries(config, found)


def _from_primaries(config: ColourConfig, found: Any) -> _Tag:
    given = np.asarray(found, dtype=np.float64).ravel()
    listed = " ".join(f"{value:.4g}" for value in given)
    for name, known in PRIMARIES.items():
        if given.shape == (8,) and np.max(np.abs(given - known)) <= _SAME_PRIMARIES and _known(config, name):
            return name, f"chromaticities {listed}"
    raise _Untranslatable(f"chromaticities {listed} are those of no linear space of {config.name}")


def _dpx_tag(config: ColourConfig, image: StoredImage) -> _Tag | None:
    transfer = str(image.metadata.get("dpx:Transfer", ""))
    adx = "ADX16" if image.bit_depth == "uint16" else "ADX10"
    if transfer == "ADX":
        return adx, "DPX transfer ADX"
    if transfer == "Printing density":
        return adx, (
            f"DPX transfer {transfer}, assumed to be a film scan ({adx}); "
            "camera logs often carry this tag by mistake: if so, name the camera's space in the job"
        )
    if transfer in _DPX_TRANSFER:
        return _DPX_TRANSFER[transfer], f"DPX transfer {transfer}"
    raise _Untranslatable(f"the DPX does not say which curve its codes have (transfer {transfer or 'absent'!r})")


def _movie_tag(config: ColourConfig, image: StoredImage) -> _Tag | None:
    space, note = image.metadata["movie:space"], image.metadata["movie:note"]
    if not space:
        raise _Untranslatable(f"the movie's tags name no colour space ({note})")
    return None if image.metadata["movie:assumed"] else (space, note)


def _picture_tag(config: ColourConfig, image: StoredImage) -> _Tag | None:
    interop = _interop(config, image)
    if interop is not None:
        return interop
    profile = str(image.metadata.get("ICCProfile:profile_description", ""))
    for beginning, name in _ICC.items():
        if profile.lower().startswith(beginning):
            return name, f"ICC profile {profile}"
    if profile:
        raise _Untranslatable(f"the ICC profile {profile!r} has no name in {config.name}")
    tag = str(image.metadata.get("oiio:ColorSpace", ""))
    if image.metadata.get("Exif:ColorSpace") == 1:
        return _srgb(config), "Exif colour space sRGB"
    if not tag or tag.lower() in _CALLED_SRGB:
        return None
    if not _known(config, tag):
        raise _Untranslatable(f"its colour tag {tag!r} names no colour space of {config.name}")
    return tag, f"colour tag {tag}"


def _srgb(config: ColourConfig) -> str:
    found = next((name for name in _SRGB if _known(config, name)), None)
    if found is None:
        raise ColourSpaceError(
            f"{config.name} has no sRGB texture space",
            expected=f"a space or alias among {', '.join(_SRGB)}",
            hint="name the plate's colour space in the job",
        )
    return found


def _default(config: ColourConfig, image: StoredImage) -> ColourDecision:
    if image.bit_depth in ("half", "float"):
        note = "untagged float file, assumed to be in the scene_linear role"
        return ColourDecision(config.scene_linear, "default", note)
    if image.file_format == "movie":
        return ColourDecision(image.metadata["movie:space"], "default", image.metadata["movie:note"])
    note = f"untagged {image.bit_depth} {image.file_format.upper()}, assumed to be sRGB"
    return ColourDecision(config.resolve(_srgb(config)), "default", note)
