"""Where a net expects a face in its crop, and the warp there and back.

A template is five points (eye on the left of the picture, eye on its right, nose tip, corners of the mouth from left to
right) in a square of side 1. Nets were trained on crops made with cv2.warpAffine, whose coordinates are pixel indices;
ours have the centre of the first pixel at (0.5, 0.5), so that a template's point p lies at `p * size + 0.5` crop px.

A placement is a (2, 3) similarity that brings plate px to crop px. It is fitted in float64 where the points are;
pictures are float32 on their own device, and nothing here makes a device wait.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from ..errors import ModelError

TEMPLATES: Mapping[str, tuple[tuple[float, float], ...]] = MappingProxyType(
    {
        "arcface_112_v1": (
            (0.35473214, 0.45658929),
            (0.64526786, 0.45658929),
            (0.50000000, 0.61154464),
            (0.37913393, 0.77687500),
            (0.62086607, 0.77687500),
        ),
        "arcface_112_v2": (
            (0.34191607, 0.46157411),
            (0.65653393, 0.45983393),
            (0.50022500, 0.64050536),
            (0.37097589, 0.82469196),
            (0.63151696, 0.82325089),
        ),
        "arcface_128": (
            (0.36167656, 0.40387734),
            (0.63696719, 0.40235469),
            (0.50019687, 0.56044219),
            (0.38710391, 0.72160547),
            (0.61507734, 0.72034453),
        ),
        "ffhq_512": (
            (0.37691676, 0.46864664),
            (0.62285697, 0.46912813),
            (0.50123859, 0.61331904),
            (0.39308822, 0.72541100),
            (0.61150205, 0.72490465),
        ),
        "mtcnn_512": (
            (0.36562865, 0.46733799),
            (0.63305391, 0.46585885),
            (0.50019127, 0.61942959),
            (0.39032951, 0.77598822),
            (0.61178945, 0.77476328),
        ),
        "dfl_whole_face": (
            (0.35342266, 0.39285716),
            (0.62797622, 0.39285716),
            (0.48660713, 0.54017860),
            (0.38839287, 0.68750011),
            (0.59821427, 0.68750011),
        ),
        "styleganex_384": (
            (0.42353745, 0.52289879),
            (0.57725008, 0.52319972),
            (0.50123859, 0.61331904),
            (0.43364461, 0.68337652),
            (0.57015325, 0.68306005),
        ),
    }
)
"""Unit points by name."""

# Points of the 478 mesh that stand for those of the 68 points which training tools average (36 to 41, 42 to 47, 30, 48
# and 54): six points of each eye's rim, the tip of the nose, the outer corners of the mouth.
_EYE_LEFT_IN_PICTURE = (33, 160, 158, 133, 153, 144)
_EYE_RIGHT_IN_PICTURE = (362, 385, 387, 263, 373, 380)
_NOSE_TIP = 1
_MOUTH_CORNERS = (61, 291)

_ONE = 1.0 + 1e-6


def template_points(name: str, size: int, device: torch.device | str = "cpu") -> torch.Tensor:
    """(5, 2) float64 crop px of a template in a crop of `size` px.

    Raises:
        ModelError: no template has this name.
    """
    if name not in TEMPLATES:
        raise ModelError(
            f"there is no warp template {name!r}",
            expected=f"one of {', '.join(TEMPLATES)}",
            hint="correct the entry template on the model's card",
        )
    return torch.tensor(TEMPLATES[name], dtype=torch.float64, device=device) * size + 0.5


def five_points(landmarks: NDArray[np.float32]) -> torch.Tensor:
    """(5, 2) float64, the points of a template on a face of the 478 mesh.

    The same means as training tools take of their 68 points, so that no net for landmarks is needed beside ours: an eye
    is the mean of six points of its rim (not the iris, which follows the gaze).

    Args:
        landmarks: (478, 3) or (478, 2), any px.
    """
    points = np.asarray(landmarks, np.float64)[:, :2]
    eyes = [points[list(rim)].mean(0) for rim in (_EYE_LEFT_IN_PICTURE, _EYE_RIGHT_IN_PICTURE)]
    return torch.from_numpy(np.stack([*eyes, points[_NOSE_TIP], *points[list(_MOUTH_CORNERS)]]))


def fit_similarity(points: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The similarity that brings points nearest to others, least squares.

    In two dimensions the solution of Umeyama (1991) without reflection is a regression over complex numbers, which
    needs no singular values.

    Args:
        points: (..., K, 2), K >= 2, not all equal.
        target: (..., K, 2).

    Returns:
        (..., 2, 3) float64: scale, rotation, shift.
    """
    source, goal = points.double(), target.double()
    mean, goal_mean = source.mean(-2, keepdim=True), goal.mean(-2, keepdim=True)
    x, y = (source - mean).unbind(-1)
    u, v = (goal - goal_mean).unbind(-1)
    size = (x * x + y * y).sum(-1)
    a, b = (x * u + y * v).sum(-1) / size, (x * v - y * u).sum(-1) / size
    linear = torch.stack([torch.stack([a, -b], -1), torch.stack([b, a], -1)], -2)
    shift = goal_mean.squeeze(-2) - (linear @ mean.squeeze(-2).unsqueeze(-1)).squeeze(-1)
    return torch.cat([linear, shift.unsqueeze(-1)], -1)


def place(points: torch.Tensor, template: str, size: int) -> torch.Tensor:
    """(..., 2, 3) float64, the placement of faces with these (..., 5, 2) points in crops of a template.

    Raises:
        ModelError: no template has this name.
    """
    return fit_similarity(points, template_points(template, size, points.device))


def inverted(placement: torch.Tensor) -> torch.Tensor:
    """(..., 2, 3), the way back."""
    (a, b, c), (d, e, f) = (row.unbind(-1) for row in placement.unbind(-2))
    size = a * e - b * d
    rows = [[e, -b, b * f - c * e], [-d, a, c * d - a * f]]
    return torch.stack([torch.stack(row, -1) for row in rows], -2) / size[..., None, None]


def resized(placement: torch.Tensor, factor: float) -> torch.Tensor:
    """(..., 2, 3), the placement in a crop `factor` times the size. Crops cover the same part of the plate."""
    return placement * factor


def moved(placement: torch.Tensor, x: float, y: float) -> torch.Tensor:
    """(..., 2, 3), the placement of a plate whose origin is moved to (x, y): crop px of `p - (x, y)`."""
    shift = placement[..., :2] @ placement.new_tensor([x, y])
    return torch.cat([placement[..., :2], placement[..., 2:] + shift.unsqueeze(-1)], -1)


def corners(placement: torch.Tensor, size: int) -> torch.Tensor:
    """(..., 4, 2) plate px, the corners of a crop of `size` px, clockwise from its first."""
    square = placement.new_tensor([[0, 0, 1], [size, 0, 1], [size, size, 1], [0, size, 1]])
    return square @ inverted(placement).transpose(-1, -2)


def scale_of(placement: torch.Tensor) -> float:
    """Crop px a plate px, of one (2, 3) placement that is not on a GPU; of pixels that are not square the mean."""
    (a, b, _), (c, d, _) = placement.tolist()
    return math.sqrt(abs(a * d - b * c))


def cut(picture: torch.Tensor, placement: torch.Tensor, size: int, *, antialias: bool = True) -> torch.Tensor:
    """The crop of one face, the picture's edge repeated outside.

    Args:
        picture: (C, h, w) float32.
        placement: (2, 3), picture px to crop px, on the CPU.
        size: of the crop.
        antialias: average over what a crop pixel covers where the crop is smaller than the face: halved pictures, then
            four samples a pixel. False gives plain bilinear samples, as cv2.warpAffine.

    Returns:
        (C, size, size) float32.
    """
    back = inverted(placement)
    picture, back, shrunk = _halved(picture, back, scale_of(placement)) if antialias else (picture, back, 1.0)
    fine = 2 if antialias and scale_of(placement) * shrunk < 1.0 else 1
    grid = _grid(back / torch.tensor([fine, fine, 1.0], dtype=back.dtype), size * fine, size * fine, picture)
    crop = functional.grid_sample(picture[None], grid, "bilinear", "border", False)
    return (functional.avg_pool2d(crop, fine) if fine > 1 else crop)[0]


def put_back(crop: torch.Tensor, placement: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """A crop where it came from, bilinear, averaged first where the crop is finer than the picture.

    Args:
        crop: (C, size, size) float32.
        placement: (2, 3), picture px to crop px, on the CPU.
        height, width: of the picture, or of the part of it that `placement` is `moved` to.

    Returns:
        (C, height, width) float32; the crop's edge repeated outside.
    """
    crop, forth, _ = _halved(crop, placement, 1.0 / scale_of(placement))
    return functional.grid_sample(crop[None], _grid(forth, height, width, crop), "bilinear", "border", False)[0]


def warp(picture: torch.Tensor, placement: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Plain bilinear samples, the edge repeated outside: (C, h, w) to (C, height, width) by a (2, 3) placement."""
    grid = _grid(inverted(placement), height, width, picture)
    return functional.grid_sample(picture[None], grid, "bilinear", "border", False)[0]


def _halved(picture: torch.Tensor, to_picture: torch.Tensor, scale: float) -> tuple[torch.Tensor, torch.Tensor, float]:
    """A picture as often halved as `scale` (target px a picture px) allows, the way to it, and by how much."""
    shrunk = 1.0
    while scale * shrunk * 2.0 <= _ONE and min(picture.shape[-2:]) >= 2:
        picture = _half(picture) if picture.device.type == "cpu" else half_on_any_device(picture)
        shrunk *= 2.0
    return picture, to_picture / shrunk, shrunk


def half_on_any_device(picture: torch.Tensor) -> torch.Tensor:
    """(C, h, w) at half the size; at an odd edge the mean is over what is there."""
    return functional.avg_pool2d(picture[None], 2, ceil_mode=True, count_include_pad=False)[0]


def _half(picture: torch.Tensor) -> torch.Tensor:
    """The twin for a CPU: OpenCV's, some times as fast. A test holds the two together."""
    channels, height, width = picture.shape
    down, right = height % 2, width % 2
    small = torch.empty(channels, (height + down) // 2, (width + right) // 2)
    for plane, out in zip(picture.detach().numpy(), small.numpy(), strict=True):
        whole = cv2.copyMakeBorder(plane, 0, down, 0, right, cv2.BORDER_REPLICATE) if down or right else plane
        cv2.resize(whole, out.shape[::-1], dst=out, interpolation=cv2.INTER_AREA)
    return small


def _grid(to_picture: torch.Tensor, height: int, width: int, picture: torch.Tensor) -> torch.Tensor:
    """(1, height, width, 2), what grid_sample takes to look up `to_picture` (2, 3) of every pixel's centre."""
    x = torch.arange(width, dtype=torch.float32, device=picture.device) + 0.5
    y = torch.arange(height, dtype=torch.float32, device=picture.device) + 0.5
    grid = picture.new_empty((1, height, width, 2))
    for axis, (row, extent) in enumerate(zip(to_picture.tolist(), (picture.shape[-1], picture.shape[-2]), strict=True)):
        across, down, shift = (2.0 / extent * value for value in row)
        torch.add((x * across)[None], (y * down + (shift - 1.0))[:, None], out=grid[0, ..., axis])
    return grid
