"""What an EXR says about its colour: the way back from `decide`."""

from __future__ import annotations

from typing import Any

from ..errors import ColourSpaceError
from .decide import PRIMARIES
from .spaces import ColourConfig


def exr_tags(config: ColourConfig, space: str) -> dict[str, Any]:
    """Attributes that name a linear space in an EXR, so that `decide_space` and other readers find it again.

    Args:
        config: the active configuration.
        space: linear; any name that `config.resolve` knows.

    Returns:
        `colorInteropID` where the configuration has an id for it, `chromaticities` (8 numbers, CIE xy of red, green,
        blue and white) where its primaries are known; empty where neither is.
    """
    space = config.resolve(space)
    tags: dict[str, Any] = {}
    interop = config.interop_id(space)
    if interop:
        tags["colorInteropID"] = interop
    for name, primaries in PRIMARIES.items():
        if _is_called(config, space, name):
            tags["chromaticities"] = primaries
    return tags


def _is_called(config: ColourConfig, space: str, name: str) -> bool:
    try:
        return config.resolve(name) == space
    except ColourSpaceError:
        return False
