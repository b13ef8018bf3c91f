"""The plate's light and sharpness on the identity's skin."""

from __future__ import annotations

import torch
from torch.nn import functional

from .fields import Enlarger, blur, shrink, smoothstep

_WIDE, _NARROW = 0.09, 0.035
"""Sigma of the light that is carried over, fraction of the face width: in the middle of the face, and at its edge."""
_EDGE_BAND = 0.16
_HIGHLIGHT = 0.05
"""Sigma that tells a highlight from a face that is blown out as a whole."""
_CLIPPED = (0.80, 0.98)
_LIPS = 0.012
"""Sigma over which lips and what is around them are held to the plate's light: the bare rim around them is narrow."""
_LIPS_DARKEST = 0.6
"""The least share of the gain that is left to lips."""
_DETAIL_REACH = 0.07
"""Sigma over which detail is measured, fraction of the face width."""
_LEAST_GRAIN = 0.5
"""Part of the plate's grain that comes over even where the source has detail enough."""
_MOST_DETAIL = 3.0
"""Detail of the source over this many times the plate's is held back, however sharp the plate."""
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
    weight = weight * _unclipped(view, weight, face_px, aspect)
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


def hold_lips(
    gain: torch.Tensor,
    view: torch.Tensor,
    source: torch.Tensor,
    lips: torch.Tensor,
    weight: torch.Tensor,
    face_px: float,
    aspect: float,
) -> torch.Tensor:
    """The gain without what a beard adds to it on the lips: stubble under a clean-shaven plate's light asks for more
    gain than there is light, and lips without stubble would shine in it. So they get no brighter than the plate's.

    Args:
        gain: (3, h, w) of `light_gain`.
        view, source: (3, h, w) linear light.
        lips: (h, w) 0..1, lips with their surroundings.
        weight: (h, w) 0..1, where both show lips and not what is between or before them.
        face_px: face width in rows of this grid.
        aspect: width / height of a sample.

    Returns:
        (3, h, w) > 0; the balance of the channels stays.
    """
    seen, lit = (view.mean(0) * weight, (source * gain).mean(0) * weight)
    floor = 0.02 * seen.sum() / weight.sum().clamp(min=1e-3) + 1e-9
    over, under = blur(torch.stack([seen, lit]), _LIPS * face_px, aspect) + floor
    share = (over / under).clamp(_LIPS_DARKEST, 1.0)
    return gain * torch.lerp(torch.ones_like(share), share, lips)


def _unclipped(view: torch.Tensor, weight: torch.Tensor, face_px: float, aspect: float) -> torch.Tensor:
    """(h, w) 0..1: a clipped value has no say over the light around it, nor has a sample next to it, which may be
    clipped in part; unless all around it is clipped.
    """
    clipped = smoothstep(*_CLIPPED, view.amax(0))
    around = blur(torch.stack([clipped * weight, weight]), _HIGHLIGHT * face_px, aspect)
    everywhere = smoothstep(0.3, 0.8, around[0] / around[1].clamp(min=1e-4))
    return 1.0 - functional.max_pool2d(clipped[None], 3, 1, 1)[0] * (1.0 - everywhere)


def match_detail(
    source: torch.Tensor, view: torch.Tensor, weight: torch.Tensor, amount: float, face_px: float, enlarge: Enlarger
) -> torch.Tensor:
    """Give the source the plate's sharpness and grain around each spot. Nothing is synthesised, so a still plate gives
    a still result.

    Sharpness is how much less an octave holds than the next coarser one: it tells focus from texture, so that stubble
    on a clean-shaven plate stays. An octave of the source is only ever softened. Then the plate's finest residual comes
    over, less where the source has detail of its own.

    Args:
        source: (3, h, w) linear light, already in the plate's light; changed in place.
        view: (3, h, w) linear light.
        weight: (rows, columns) 0..1, bare skin, the picture shrunk by 1, 2, 4 or 8.
        amount: 0..1.
        face_px: face width in samples of `weight`.
        enlarge: to the size of `view`.

    Returns:
        (3, h, w), `source` itself.
    """
    factor = round(view.shape[1] / weight.shape[0])
    seen, made = shrink(view, 2), shrink(source, 2)
    halves = Enlarger(*seen.shape[1:])
    in_view = _octaves(enlarge(seen[1:2], 2).neg_().add_(view[1:2]), seen[1:2], halves)
    in_source = _octaves(enlarge(made[1:2], 2).neg_().add_(source[1:2]), made[1:2], halves)
    energy = torch.cat([_to_raster(residual.abs(), weight) for residual in (*in_view, *in_source)])
    spread = blur(torch.cat([energy * weight, weight[None]]), _DETAIL_REACH * face_px)
    whole = (energy * weight).sum((1, 2)) / weight.sum().clamp(min=1e-3)
    # the face's own mean steps in where no bare skin is near
    local = ((spread[:6] + 0.05 * whole[:, None, None]) / (spread[6] + 0.05)).clamp(min=1e-9)
    view_energy, source_energy = local[:3], local[3:]
    keep_fine, keep_middle = _sharpness_to_keep(view_energy, source_energy)
    fine_view = view_energy[0]
    share = (1.0 - (keep_fine * source_energy[0] / fine_view).square()).clamp(min=_LEAST_GRAIN**2).sqrt()
    coarse = torch.stack([(1.0 - keep_fine) * amount, share * amount, _GRAIN_LIMIT * fine_view])
    # between a coarse grid's samples the mean of two pixels is the value between them
    lost_half = halves(coarse[:1], factor // 2) if factor > 2 else shrink(enlarge(coarse[:1], factor), 2)
    dulled = (1.0 - keep_middle)[None] * amount
    dulled = shrink(dulled, 2) if factor == 1 else halves(dulled, factor // 2)
    # the half picture's share of the softened source, the same as made x lost - middle x dulled
    smooth = halves(shrink(made, 2), 2).sub_(made).mul_(dulled).add_(made.mul_(lost_half))
    for rows in enlarge.strips(view):
        lost, carried, limit = enlarge.strip(coarse, factor, rows)
        grain = enlarge.strip(seen, 2, rows).neg_().add_(view[:, rows])
        torch.clamp(grain, -limit, limit, out=grain).mul_(carried)
        lit = source[:, rows].mul_(1.0 - lost).add_(enlarge.strip(smooth, 2, rows))
        lit.add_(grain).clamp_(min=0.0)
    return source


def _octaves(
    fine: torch.Tensor, half: torch.Tensor, halves: Enlarger
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(1, h, w) residual and its (1, h / 2, w / 2) parent to the three finest octaves."""
    quarter = shrink(half, 2)
    eighth = shrink(quarter, 2)
    return fine, half - halves(quarter, 2), quarter - Enlarger(*quarter.shape[1:])(eighth, 2)


def _sharpness_to_keep(view: torch.Tensor, source: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What to keep of the source's finest and second octave, from the energies (3, rows, columns) of three octaves."""
    sharper = (view[:2] / view[1:]) / (source[:2] / source[1:])
    keep = torch.minimum(sharper, _MOST_DETAIL * view[:2] / source[:2]).clamp(max=1.0)
    return keep[0], keep[1]


def _to_raster(residual: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """(1, h, w) averaged, or repeated, to the rows and columns of `like`."""
    while residual.shape[1] > like.shape[0]:
        residual = shrink(residual, 2)
    return residual if residual.shape[1] == like.shape[0] else Enlarger(*like.shape)(residual, 2)
