"""The paste of InsightFace's INSwapper 2.1, bit depth and all, for comparison: the crop's square with its edge blurred.

Its steps: an 8-bit crop by plain bilinear lookup, black outside the picture; the net's output cut to 8 bits; both
warped back; a square that shrinks by a tenth of its size and is blurred by a twentieth; a mean of code values. Written
from what its public code does; a test holds the two within 2/255.
"""

from __future__ import annotations

import math

import torch
from torch.nn import functional

from ...nets import templates
from ...nets.filters import gaussian
from .place import Crop

_CODES = 255.0
_SURE = 20.0 / 255.0
_LEAST_ERODE, _LEAST_BLUR = 10, 5


def reference_crop(display: torch.Tensor, crop: Crop) -> torch.Tensor:
    """(3, size, size) code values 0..1 in steps of 1/255 of an sRGB-encoded view (3, h, w)."""
    return _eight_bits(_warped(_eight_bits(display), crop.placement, crop.size, crop.size))


def reference_paste(display: torch.Tensor, made: torch.Tensor, crop: Crop) -> tuple[torch.Tensor, torch.Tensor]:
    """The view with the new face.

    Args:
        display: (3, h, w) sRGB-encoded view.
        made: (3, size, size) what the net gave.
        crop: where.

    Returns:
        (3, h, w) the picture, and (h, w) 0..1 its matte.
    """
    height, width = display.shape[1:]
    face = torch.floor(made * _CODES) / _CODES
    back = templates.inverted(crop.placement)
    pasted = _eight_bits(_warped(face, back, height, width))
    white = _warped(face.new_ones(1, crop.size, crop.size), back, height, width)
    matte = _softened((white > _SURE).to(face.dtype))
    return torch.lerp(_eight_bits(display), pasted, matte), matte[0]


def _softened(mask: torch.Tensor) -> torch.Tensor:
    """(1, h, w) shrunk and blurred by parts of its own size."""
    rows, columns = mask[0].amax(1).nonzero(), mask[0].amax(0).nonzero()
    if len(rows) == 0:
        return mask
    size = int(math.sqrt(int(rows[-1] - rows[0]) * int(columns[-1] - columns[0])))
    erode, blur = max(size // 10, _LEAST_ERODE), max(size // 20, _LEAST_BLUR)
    before, after = erode // 2, erode - 1 - erode // 2  # outside the picture nothing wears the mask away
    around = functional.pad(mask[None], (before, after, before, after), value=1.0)
    shrunk = -functional.max_pool2d(-around, erode, 1)
    return gaussian(shrunk, 0.3 * (blur - 1) + 0.8, blur)[0]  # OpenCV's sigma for a kernel of 2 blur + 1


def _eight_bits(picture: torch.Tensor) -> torch.Tensor:
    return torch.round(picture * _CODES) / _CODES


def _warped(picture: torch.Tensor, to_target: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """cv2.warpAffine: (C, h, w) to (C, height, width), bilinear, black outside."""
    ringed = functional.pad(picture, (1, 1, 1, 1))
    shift = to_target.new_tensor([1.0, 1.0])
    moved = templates.moved(to_target, *(-shift).tolist())
    return templates.warp(ringed, moved, height, width)
