"""The implicit points of LivePortrait (Guo et al. 2024): 21 that a face's picture is warped by, and what moves them.

    points in the picture = scale * (points @ rotation^T + expression) + translation

Numbers of the controls are those that FaceFusion's face editor settled on.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

import torch

from ...errors import SettingError

POINTS = 21
UPPER_FACE = (1, 2, 6, 10, 11, 12, 13, 15, 16)
LOWER_FACE = (3, 7, 14, 17, 18, 19, 20)
_X, _Y, _Z = 0, 1, 2
_PITCH, _YAW, _ROLL = -20.0, -60.0, 15.0
"""Degrees for a control of 1."""
_LIMITS_DEG = (30.0, 60.0, 20.0)
"""How far pitch, yaw and roll may go, unless the face itself goes further."""

_Moves = Sequence[tuple[int, int, float]]


@dataclass(frozen=True, slots=True)
class Motion:
    """What LivePortrait sees in a face, (N, ...) float32: angles in degrees."""

    pitch: torch.Tensor
    yaw: torch.Tensor
    roll: torch.Tensor
    scale: torch.Tensor
    translation: torch.Tensor
    expression: torch.Tensor
    points: torch.Tensor


@dataclass(frozen=True, slots=True)
class Expression:
    """Controls of a face, each -1..1, 0 to leave it as it is; which way is which follows FaceFusion's face editor.

    Attributes:
        brows: direction of the eyebrows.
        eyes: close, open.
        gaze_x: to the picture's left, right.
        gaze_y: down, up.
        lips: close, open.
        grim: the mouth's middle up, down.
        pout: lips in, forward.
        purse: wide, narrow.
        smile: corners down, up.
        mouth_x: to the picture's left, right.
        mouth_y: down, up.
        pitch: head down, up.
        yaw: head to one side, to the other.
        roll: head tilted to one side, to the other.

    Raises:
        SettingError: a control outside its range.
    """

    brows: float = 0.0
    eyes: float = 0.0
    gaze_x: float = 0.0
    gaze_y: float = 0.0
    lips: float = 0.0
    grim: float = 0.0
    pout: float = 0.0
    purse: float = 0.0
    smile: float = 0.0
    mouth_x: float = 0.0
    mouth_y: float = 0.0
    pitch: float = 0.0
    yaw: float = 0.0
    roll: float = 0.0

    def __post_init__(self) -> None:
        for spec in dataclasses.fields(self):
            value = getattr(self, spec.name)
            if not -1.0 <= value <= 1.0:
                raise SettingError(f"control {spec.name} is out of range", expected="-1..1", found=str(value))

    @property
    def is_none(self) -> bool:
        """Whether nothing is asked for."""
        return self == Expression()


_CONTROLS: Mapping[str, tuple[_Moves, _Moves]] = MappingProxyType(
    {
        "brows": (
            [(1, _Y, 0.015), (2, _Y, -0.020)],
            [(1, _X, -0.015), (2, _X, 0.020), (1, _Y, 0.005), (2, _Y, -0.005)],
        ),
        "gaze_x": ([(11, _X, 0.015), (15, _X, 0.020)], [(11, _X, 0.020), (15, _X, 0.015)]),
        "gaze_y": (
            gaze := [
                (1, _Y, 0.0025),
                (2, _Y, -0.0025),
                (11, _Y, -0.010),
                (13, _Y, -0.005),
                (15, _Y, -0.010),
                (16, _Y, -0.005),
            ],
            gaze,
        ),
        "grim": (
            [(17, _Z, -0.005), (19, _Z, 0.01), (20, _Y, -0.06), (20, _Z, -0.03)],
            [(19, _Y, -0.05), (19, _Z, -0.02), (20, _Z, -0.03)],
        ),
        "pout": (
            [(19, _Y, -0.022), (19, _Z, 0.025), (20, _Z, -0.002)],
            [(19, _Y, 0.022), (19, _Z, 0.025), (20, _Z, -0.002)],
        ),
        "purse": (
            [(19, _Y, -0.04), (19, _Z, -0.02)],
            [(14, _Y, -0.02), (17, _Z, 0.01), (19, _Z, -0.015), (20, _Z, -0.002)],
        ),
        "smile": (
            [(20, _Y, -0.015), (14, _Y, -0.025), (17, _Y, 0.01), (17, _Z, 0.004), (3, _Y, -0.0045), (7, _Y, -0.0045)],
            [
                (14, _Y, -0.02),
                (17, _Y, 0.003),
                (19, _Y, 0.02),
                (19, _Z, -0.005),
                (20, _Z, 0.01),
                (3, _Y, 0.0045),
                (7, _Y, 0.0045),
            ],
        ),
        "mouth_x": (sideways := [(19, _X, 0.05), (20, _X, 0.04)], sideways),
        "mouth_y": ([(19, _Y, -0.04), (20, _Y, -0.02)], [(19, _Y, -0.05), (20, _Y, -0.04)]),
    }
)
"""By control: what moves for a value above 0 and for one below, as (point, axis, how far for 1)."""


def rotation(pitch: torch.Tensor, yaw: torch.Tensor, roll: torch.Tensor) -> torch.Tensor:
    """(N, 3, 3): about x, then y, then z, of (N, 1) degrees."""
    x, y, z = (angle.reshape(-1) * (math.pi / 180.0) for angle in (pitch, yaw, roll))
    sx, cx, sy, cy, sz, cz = x.sin(), x.cos(), y.sin(), y.cos(), z.sin(), z.cos()
    rows = [
        [cy * cz, sx * sy * cz - cx * sz, cx * sy * cz + sx * sz],
        [cy * sz, sx * sy * sz + cx * cz, cx * sy * sz - sx * cz],
        [-sy, sx * cy, cx * cy],
    ]
    return torch.stack([torch.stack(row, -1) for row in rows], -2)


def in_picture(motion: Motion) -> torch.Tensor:
    """(N, 21, 3), the points where a motion puts them."""
    turned = motion.points @ rotation(motion.pitch, motion.yaw, motion.roll).transpose(-1, -2)
    count = len(motion.points)
    scale, translation = motion.scale.view(count, 1, 1), motion.translation.view(count, 1, 3)
    return scale * (turned + motion.expression) + translation


def with_controls(motion: Motion, controls: Expression) -> Motion:
    """A motion with the controls that need no net of their own, kept to what faces do."""
    expression = motion.expression.clone()
    for name, (above, below) in _CONTROLS.items():
        value = getattr(controls, name)
        for point, axis, far in above if value > 0 else below:
            expression[:, point, axis] += value * far
    angles = [
        _limited(angle, value * degrees, limit)
        for angle, value, degrees, limit in zip(
            (motion.pitch, motion.yaw, motion.roll),
            (controls.pitch, controls.yaw, controls.roll),
            (_PITCH, _YAW, _ROLL),
            _LIMITS_DEG,
            strict=True,
        )
    ]
    pitch, yaw, roll = angles
    return dataclasses.replace(
        motion, expression=limited(expression, motion.expression), pitch=pitch, yaw=yaw, roll=roll
    )


def _limited(angle: torch.Tensor, by: float, limit: float) -> torch.Tensor:
    low, high = angle.clamp(max=0.0).clamp(max=-limit), angle.clamp(min=0.0).clamp(min=limit)
    return torch.minimum(torch.maximum(angle + by, low), high)


def with_expression(motion: Motion, other: Motion, amount: float, *, upper: bool = True, lower: bool = True) -> Motion:
    """A motion that takes another's expression.

    Args:
        motion: whose pose stays.
        other: whose expression comes.
        amount: 0..1.
        upper, lower: which parts of the face take part; the points of head and neck never do.
    """
    taken = [*(UPPER_FACE if upper else ()), *(LOWER_FACE if lower else ())]
    expression = motion.expression.clone()
    expression[:, taken] = torch.lerp(motion.expression[:, taken], other.expression[:, taken], amount)
    return dataclasses.replace(motion, expression=limited(expression, motion.expression))


@cache
def _limits() -> tuple[torch.Tensor, torch.Tensor]:
    document = json.loads(files(__package__).joinpath("data", "expression_limits.json").read_text("utf-8"))
    return torch.tensor(document["low"]), torch.tensor(document["high"])


def limited(expression: torch.Tensor, now: torch.Tensor) -> torch.Tensor:
    """(N, 21, 3) within what was seen in faces, so that nothing tears one; further where it is already."""
    low, high = (limit.to(expression) for limit in _limits())
    return torch.minimum(torch.maximum(expression, torch.minimum(low, now)), torch.maximum(high, now))
