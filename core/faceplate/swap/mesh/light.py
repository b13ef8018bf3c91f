"""The plate's light and sharpness on the identity's skin."""

from __future__ import annotations

import torch

from .fields import Enlarger, blur, shrink, smoothstep

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


def match_detail(
    source: torch.Tensor, view: torch.Tensor, weight: torch.Tensor, amount: float, enlarge: Enlarger
) -> torch.Tensor:
    """Give the source the fine-scale energy of the plate: soften it where it is sharper, and carry the plate's own
    grain over. Nothing is synthesised, so a still plate gives a still result.

    The finest octave of the source is kept by the factor that leaves room for the plate's residual, so that both
    together have the plate's energy; the second octave is only ever softened.

    Args:
        source: (3, h, w) linear light, already in the plate's light; changed in place.
        view: (3, h, w) linear light.
        weight: (rows, columns) 0..1, bare skin, any coarse grid of the same picture.
        amount: 0..1.
        enlarge: to the size of `view`.

    Returns:
        (3, h, w), `source` itself.
    """
    seen, made = shrink(view, 2), shrink(source, 2)
    halves = Enlarger(*seen.shape[1:])
    seen_green, made_green = seen[1:2], made[1:2]
    grain = enlarge(seen, 2).neg_().add_(view)
    fine_view = _energy(grain[1:2], weight)
    fine_source = _energy(source[1:2] - enlarge(made_green, 2), weight).clamp(min=1e-9)
    middle = made - halves(shrink(made, 2), 2)
    middle_view = _energy(seen_green - halves(shrink(seen_green, 2), 2), weight)
    keep_middle = (1.1 * middle_view / _energy(middle[1:2], weight).clamp(min=1e-9)).clamp(max=1.0)
    keep_fine = (0.8 * fine_view / fine_source).clamp(max=1.0)
    share = (1.0 - (keep_fine * fine_source / fine_view.clamp(min=1e-9)).square()).clamp(min=0.0).sqrt()
    lost = (1.0 - keep_fine) * amount
    limit = _GRAIN_LIMIT * fine_view
    smooth = made.mul_(lost).sub_(middle.mul_((1.0 - keep_middle) * amount))
    source.mul_(1.0 - lost).add_(enlarge(smooth, 2))
    return source.add_(grain.clamp_(-limit, limit).mul_(share * amount)).clamp_(min=0.0)


def _energy(residual: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Mean absolute value of (1, h, w) over the weight, scalar tensor."""
    size = residual.abs()
    while size.shape[1] > weight.shape[0]:
        size = shrink(size, 2)
    return (size[0] * weight).sum() / weight.sum().clamp(min=1e-3)
