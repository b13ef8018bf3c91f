"""The plate's light and sharpness on the identity's skin."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .fields import blur, enlarge, shrink, smoothstep

_WIDE, _NARROW = 0.09, 0.035
"""Sigma of the light that is carried over, fraction of the face width: in the middle of the face, and at its edge."""
_EDGE_BAND = 0.16
_CLIPPED = (0.80, 0.98)
_GRAIN_LIMIT = 3.0
"""Residuals over this many mean deviations are lashes and wrinkles, not grain; they are limited to it."""


def light_gain(
    view: torch.Tensor, source: torch.Tensor, weight: torch.Tensor, edge: torch.Tensor, face_px: float, aspect: float
) -> torch.Tensor:
    """Gain a channel that brings the source's low frequencies to the plate's, in linear light.

    Args:
        view: (3, h, w) linear light, coarse grid.
        source: (3, h, w), the identity's skin on the same grid.
        weight: (h, w) 0..1, where both are bare skin.
        edge: (h, w), distance from the edge of the face, face widths; near it the light is followed more closely.
        face_px: face width in rows of this grid.
        aspect: width / height of a sample.

    Returns:
        (3, h, w) > 0; scales with the exposure of `view`.
    """
    weight = weight * (1.0 - smoothstep(*_CLIPPED, view.amax(0)))
    total = weight.sum().clamp(min=1e-3)
    mean_view, mean_source = ((image * weight).sum((1, 2)) / total for image in (view, source))
    ratio = (mean_view + 1e-6) / (mean_source + 1e-4)
    # a little of the plain means everywhere, so that far from known skin the gain runs out into the overall ratio
    floor = 0.02
    stack = torch.cat([view * weight, source * weight, weight[None]])

    def gain(sigma: float) -> torch.Tensor:
        low = blur(stack, sigma * face_px, aspect)
        over = low[:3] + floor * (mean_view + 1e-6)[:, None, None]
        under = low[3:6] + floor * (mean_source + 1e-4)[:, None, None]
        local = over / under.clamp(min=1e-6)
        return local.maximum(ratio[:, None, None] * 0.1).minimum(ratio[:, None, None] * 10.0)

    inner = smoothstep(0.0, _EDGE_BAND, edge)
    return torch.lerp(gain(_NARROW), gain(_WIDE), inner)


@dataclass(frozen=True, slots=True, eq=False)
class _Bands:
    """A picture and its two finest octaves' parents."""

    half: torch.Tensor
    base: torch.Tensor


def match_detail(source: torch.Tensor, view: torch.Tensor, weight: torch.Tensor, amount: float) -> torch.Tensor:
    """Give the source the fine-scale energy of the plate: soften it where it is sharper, and carry the plate's own
    grain over. Nothing is synthesised, so a still plate gives a still result.

    Args:
        source: (3, h, w) linear light, already in the plate's light; changed in place.
        view: (3, h, w) linear light.
        weight: (rows, columns) 0..1, bare skin, any coarse grid of the same picture.
        amount: 0..1.

    Returns:
        (3, h, w).
    """
    height, width = view.shape[1:]
    seen, made = _halves(view), _halves(source)
    grain = view - enlarge(seen.half, 2, height, width)
    own = source.sub_(enlarge(made.half, 2, height, width))
    middle_view = seen.half - enlarge(seen.base, 2, *seen.half.shape[1:])
    middle = made.half - enlarge(made.base, 2, *made.half.shape[1:])
    fine_view, fine_source = _energy(grain, weight), _energy(own, weight)
    keep_fine = (0.8 * fine_view / fine_source.clamp(min=1e-9)).clamp(max=1.0)
    share = (1.0 - (keep_fine * fine_source / fine_view.clamp(min=1e-9)).square()).clamp(min=0.0).sqrt()
    keep_middle = (1.1 * _energy(middle_view, weight) / _energy(middle, weight).clamp(min=1e-9)).clamp(max=1.0)
    half = made.half - middle.mul_((1.0 - keep_middle) * amount)
    limit = float(_GRAIN_LIMIT * fine_view)
    result = enlarge(half, 2, height, width)
    result.add_(own.mul_(1.0 - (1.0 - keep_fine) * amount))
    return result.add_(grain.clamp_(-limit, limit).mul_(share * amount)).clamp_(min=0.0)


def _halves(image: torch.Tensor) -> _Bands:
    half = shrink(image, 2)
    return _Bands(half, shrink(half, 2))


def _energy(residual: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Mean absolute value of the green channel over the weight, scalar tensor."""
    size = residual[1:2].abs()
    factor = 1
    while size.shape[1] > weight.shape[0]:
        size, factor = shrink(size, 2), factor * 2
    rows, columns = size.shape[1:]
    weight = weight[:rows, :columns] if weight.shape[0] == rows else shrink(weight[None], weight.shape[0] // rows)[0]
    return (size[0] * weight).sum() / weight.sum().clamp(min=1e-3)
