"""Colour spaces of video: a transfer curve over primaries, by the names of the configuration or added to it.

A movie's tags name a curve and primaries, for which a configuration need not have a space: the built-in ones know
BT.709 cameras, sRGB, PQ and HLG, but neither SDR BT.2020 nor the primaries of standard definition. What is lacking is
made here from OCIO's own operators, so that everything else treats it like any other space.

Meaning of the numbers: BT.709's curve (also BT.601's and BT.2020's) is undone as a camera's, to scene light, as the
built-in "Camera Rec.709" does. PQ and HLG become light in which 1 is 100 nits (HLG through BT.2100's 1000 nit display),
so that highlights lie above 1; nothing is tone-mapped.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import PyOpenColorIO as ocio
from numpy.typing import NDArray

from ..errors import ColourSpaceError
from .spaces import ColourConfig

_NAMED: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("bt709", "bt709"): "camera_rec709",
        ("srgb", "bt709"): "srgb_rec709_scene",
        ("srgb", "p3d65"): "srgb_p3d65_scene",
        ("gamma22", "bt709"): "g22_rec709_scene",
        ("linear", "bt709"): "lin_rec709_scene",
        ("linear", "bt2020"): "lin_rec2020_scene",
        ("linear", "p3d65"): "lin_p3d65_scene",
        ("pq", "bt2020"): "rec2100_pq_display",
        ("hlg", "bt2020"): "rec2100_hlg_display",
        ("pq", "p3d65"): "st2084_p3d65_display",
    }
)
"""Aliases in the ACES configurations, by (transfer, primaries)."""

_LINEAR = MappingProxyType({"bt709": "lin_rec709_scene", "bt2020": "lin_rec2020_scene", "p3d65": "lin_p3d65_scene"})

_XY = MappingProxyType(
    {
        "bt709": (0.640, 0.330, 0.300, 0.600, 0.150, 0.060, 0.3127, 0.3290),
        "bt470bg": (0.640, 0.330, 0.290, 0.600, 0.150, 0.060, 0.3127, 0.3290),
        "smpte170m": (0.630, 0.340, 0.310, 0.595, 0.155, 0.070, 0.3127, 0.3290),
        "bt2020": (0.708, 0.292, 0.170, 0.797, 0.131, 0.046, 0.3127, 0.3290),
        "p3d65": (0.680, 0.320, 0.265, 0.690, 0.150, 0.060, 0.3127, 0.3290),
    }
)
"""CIE xy of red, green, blue and white (ITU-T H.273 table 2)."""

_CURVE_WORDS = MappingProxyType(
    {
        "bt709": "BT.709",
        "srgb": "sRGB",
        "gamma22": "gamma 2.2",
        "gamma28": "gamma 2.8",
        "smpte240m": "SMPTE 240M",
        "linear": "linear",
        "pq": "PQ",
        "hlg": "HLG",
    }
)
_PRIMARY_WORDS = MappingProxyType(
    {
        "bt709": "BT.709",
        "bt470bg": "BT.601 625",
        "smpte170m": "BT.601 525",
        "bt2020": "BT.2020",
        "p3d65": "P3-D65",
    }
)


def with_video_space(config: ColourConfig, transfer: str, primaries: str) -> tuple[ColourConfig, str]:
    """A configuration that has the space, and the space's name in it.

    Args:
        config: the active one; it is returned as it is where it knows the space.
        transfer: "bt709", "srgb", "gamma22", "gamma28", "smpte240m", "linear", "pq" or "hlg".
        primaries: "bt709", "bt470bg", "smpte170m", "bt2020" or "p3d65".

    Raises:
        ColourSpaceError: another curve or other primaries, or a configuration without linear Rec.709.
    """
    if transfer not in _CURVES or primaries not in _XY or (transfer == "hlg" and primaries != "bt2020"):
        raise ColourSpaceError(
            "the movie's colour has no name here",
            expected=f"a curve of {', '.join(_CURVES)}; primaries of {', '.join(_XY)}",
            found=f"curve {transfer or 'unknown'}, primaries {primaries or 'unknown'}",
        )
    known = _NAMED.get((transfer, primaries))
    if known is not None and knows(config, known):
        return config, config.resolve(known)
    name = f"{_CURVE_WORDS[transfer]} video, {_PRIMARY_WORDS[primaries]} primaries"
    return config.with_space(name, _to_linear(config, transfer, primaries)), name


def knows(config: ColourConfig, name: str) -> bool:
    """True when a configuration has a space of that name."""
    try:
        config.resolve(name)
    except ColourSpaceError:
        return False
    return True


def _to_linear(config: ColourConfig, transfer: str, primaries: str) -> tuple[list[Any], str]:
    """Operators from code values to a linear space, and that space."""
    own = _LINEAR.get(primaries)
    steps = [make() for make in _CURVES[transfer]]
    if own is not None and knows(config, own):
        return steps, config.resolve(own)
    return [*steps, _matrix(primaries, "bt709")], config.resolve(_LINEAR["bt709"])


def rgb_to_xyz(primaries: str) -> NDArray[np.float64]:
    """(3, 3) from linear RGB to CIE XYZ with white at Y = 1 (SMPTE RP 177)."""
    xy = np.array(_XY[primaries]).reshape(4, 2)
    xyz = np.column_stack([xy, 1 - xy.sum(axis=1)]) / xy[:, 1:]
    return np.asarray(xyz[:3].T * np.linalg.solve(xyz[:3].T, xyz[3]))


def _matrix(source: str, target: str) -> Any:
    rows = np.eye(4)
    rows[:3, :3] = np.linalg.solve(rgb_to_xyz(target), rgb_to_xyz(source))
    return ocio.MatrixTransform(rows.ravel().tolist())


def _knee(gamma: float, offset: float) -> Any:
    return ocio.ExponentWithLinearTransform([gamma] * 3 + [1.0], [offset] * 3 + [0.0], ocio.NEGATIVE_LINEAR)


def _power(gamma: float) -> Any:
    return ocio.ExponentTransform([gamma] * 3 + [1.0], ocio.NEGATIVE_MIRROR)


def _hlg() -> Any:
    return ocio.BuiltinTransform("DISPLAY - CIE-XYZ-D65_to_REC.2100-HLG-1000nit", ocio.TRANSFORM_DIR_INVERSE)


def _xyz_to_2020() -> Any:
    rows = np.eye(4)
    rows[:3, :3] = np.linalg.inv(rgb_to_xyz("bt2020"))
    return ocio.MatrixTransform(rows.ravel().tolist())


_CURVES: Mapping[str, tuple[Any, ...]] = MappingProxyType(
    {
        "bt709": (lambda: _knee(1 / 0.45, 0.099),),
        "srgb": (lambda: _knee(2.4, 0.055),),
        "gamma22": (lambda: _power(2.2),),
        "gamma28": (lambda: _power(2.8),),
        "smpte240m": (lambda: _knee(1 / 0.45, 0.1115),),
        "linear": (),
        "pq": (lambda: ocio.BuiltinTransform("CURVE - ST-2084_to_LINEAR"),),
        "hlg": (_hlg, _xyz_to_2020),
    }
)
"""Makers of the operators from code values to light."""
