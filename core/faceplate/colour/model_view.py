"""What a face model sees of a plate, and the way its change comes back to the plate.

A model believes in a photograph: Rec.709 primaries, 0..1, skin near 0.22 in linear light. The view is the plate in
linear Rec.709 times a power of two (exact in half and float), clipped to 0..1. The model's picture never replaces the
plate; the *change* between view and edited view does:

* in range, as a residual: `plate + (after - before)`, so that grain and everything the view could not hold stays;
* where the view saturates, or one channel lies at 0 while another does not (colours outside Rec.709), as a ratio
  `plate * after / before`, so that highlights keep their range and colours their saturation;
* gated: once the model makes a bright place much darker, it has removed a highlight, and its own value is taken, so
  that no ghost of the highlight comes through.

Two identical pixels give a change of exactly +0, and `x - (+0)` is x for every float, -0, NaN and infinities included:
so an identity edit gives the plate bit for bit without any mask. Masks and selections are slow on a CPU; the ratio is
computed only for the pixels that need it there, for all of them on a GPU.

All tensors are (3, h, w) or (N, 3, h, w) RGB.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from ..errors import ColourSpaceError
from .operators import Matrix, MonCurve
from .transform import ColourTransform

SKIN_LEVEL = 0.22
"""Linear light at which the median of a face lies in the view: where photographs have it."""

_HALF_MAX = 65504.0
_LARGEST = 1e30
"""Larger floats are no light; held to this, products of three stay finite."""

# Knees of the carry, in linear light of the view. In sRGB code values: 0.75 to 0.97 for the brightest channel, 0.04 to
# 0.005 for the darkest, while the brightest is above about 0.1 (a ramp, not a step, so that noise makes no flicker).
# Smoothsteps between the same ends in linear light instead of code values change errors by less than 0.1 %.
_BRIGHT = (0.5225, 0.9321)
_DARK = (0.04 / 12.92, 0.005 / 12.92)
_COLOURED = (0.006, 0.014)
_GATE = (0.35, 0.6)
_FLOOR = 1e-3
_RATIO_LIMIT = 4.0

# Pixels worked on at once on a CPU: the planes of one block stay in the caches.
_BLOCK = 1 << 16

_ENCODE = MonCurve(2.4, 0.055, decode=False)
_DECODE = MonCurve(2.4, 0.055, decode=True)


def encode_display(linear: torch.Tensor) -> torch.Tensor:
    """sRGB code values (IEC 61966-2-1, with OCIO's seamless toe) of linear light; any shape, float32, new tensor.

    Negatives follow the toe's line; values above 1 the power.
    """
    return _ENCODE(linear)


def decode_display(display: torch.Tensor) -> torch.Tensor:
    """The inverse of `encode_display`."""
    return _DECODE(display)


def _affine(transform: ColourTransform) -> Matrix:
    if transform.matrix is None:
        raise ColourSpaceError(
            f"{transform.source} to {transform.target} is no matrix",
            expected="a plate in a scene-linear space",
            hint="decode the plate to ColourConfig.linear_twin first",
        )
    return transform.matrix


def _blocks(pixels: torch.Tensor) -> Iterator[slice]:
    count = pixels.shape[-1]
    step = _BLOCK if pixels.device.type == "cpu" else max(count, 1)
    for first in range(0, count, step):
        yield slice(first, min(first + step, count))


def _images(planes: torch.Tensor) -> list[torch.Tensor]:
    """Each image of a batch as (3, n)."""
    if planes.ndim not in (3, 4) or planes.shape[-3] != 3:
        raise ValueError(f"expected (3, h, w) or (N, 3, h, w), found {tuple(planes.shape)}")
    batch = planes if planes.ndim == 4 else planes.unsqueeze(0)
    return [image.contiguous().view(3, -1) for image in batch.unbind(0)]


def _finite(rgb: torch.Tensor) -> torch.Tensor:
    """A float32 copy without NaN (0 instead) and infinities (the largest half), held to +-1e30."""
    out = torch.nan_to_num(rgb.float(), nan=0.0, posinf=_HALF_MAX, neginf=-_HALF_MAX)
    return out if rgb.dtype == torch.float16 else out.clamp_(-_LARGEST, _LARGEST)


def to_linear_view(plate: torch.Tensor, to_709: ColourTransform, exposure: float) -> torch.Tensor:
    """What the model sees, in linear light.

    Args:
        plate: float32 or float16, scene-linear; may hold negatives, values above 1, NaN, infinities.
        to_709: from the plate's space to linear Rec.709, a matrix.
        exposure: factor, a power of two.

    Returns:
        Float32, same shape, linear Rec.709, 0..1 (never NaN: a NaN counts as 0, an infinity as the largest half).

    Raises:
        ColourSpaceError: `to_709` is more than a matrix.
    """
    matrix = _affine(to_709).scaled(exposure)
    view = torch.empty(plate.shape, dtype=torch.float32, device=plate.device)
    for source, target in zip(_images(plate), _images(view), strict=True):
        for block in _blocks(source):
            matrix.into(_finite(source[:, block]), target[:, block]).clamp_(0.0, 1.0)
    return view


def _smooth(low: float, high: float, values: torch.Tensor) -> torch.Tensor:
    """Smoothstep: 0 at `low`, 1 at `high` (which may lie below `low`)."""
    t = values.sub(low).mul_(1 / (high - low)).clamp_(0.0, 1.0)
    return t * t * (3 - 2 * t)


def _needs_ratio(before: torch.Tensor, out: torch.Tensor) -> None:
    """Into `out` (n,): above 0 for the pixels of (3, n) whose view saturates at either end."""
    brightest, darkest = before.amax(0), before.amin(0)
    torch.minimum(darkest.neg_().add_(_DARK[0]), brightest - _COLOURED[0], out=out)
    torch.maximum(out, brightest.sub_(_BRIGHT[0]), out=out)


def _mixed(
    plate: torch.Tensor, before: torch.Tensor, after: torch.Tensor, matrix: Matrix, exposure: float
) -> torch.Tensor:
    """The plate with the change where the ratio has a say; all (3, n) float32, the plate as `before` where equal."""
    brightest, darkest = before.amax(0), before.amin(0)
    weight = torch.maximum(_smooth(*_BRIGHT, brightest), _smooth(*_DARK, darkest) * _smooth(*_COLOURED, brightest))
    residual = matrix(before - after).mul_(1 / exposure)
    old_light, new = matrix(before).clamp_min_(0.0), matrix(after)
    new_light = new.clamp_min(0.0)
    gate = _smooth(*_GATE, (new_light.sum(0) + _FLOOR) / (old_light.sum(0) + _FLOOR))
    ratio = new_light.add_(_FLOOR).div_(old_light.add_(_FLOOR)).clamp_(1 / _RATIO_LIMIT, _RATIO_LIMIT)
    scaled = _finite(plate).mul_(1 - gate * ratio).sub_(new.mul_((1 - gate) / exposure))
    change = residual.mul_(1 - weight).addcmul_(scaled, weight)
    return plate - change


def carry_back(
    plate: torch.Tensor, before: torch.Tensor, after: torch.Tensor, *, from_709: ColourTransform, exposure: float
) -> torch.Tensor:
    """The plate with the model's change.

    Args:
        plate: float32 or float16, scene-linear, as given to `to_linear_view`.
        before: float32, the view the model was given, linear Rec.709, 0..1. For a model that works on code values, the
            decoded code values it got, so that what it left alone is equal here.
        after: float32, finite, the view as the model changed it.
        from_709: from linear Rec.709 to the plate's space, a matrix.
        exposure: as in `to_linear_view`.

    Returns:
        Float32, same shape, scene-linear in the plate's space, unbounded. Bit for bit the plate where `before` equals
        `after` in all channels (of a half NaN torch keeps that it is one, not its payload). Elsewhere finite:
        an infinity counts as the largest half, a NaN as 0, so that the model's paint heals it.

    Raises:
        ColourSpaceError: `from_709` is more than a matrix.
    """
    matrix = _affine(from_709)
    result = torch.empty(plate.shape, dtype=torch.float32, device=plate.device)
    for image in zip(_images(plate), _images(before), _images(after), _images(result), strict=True):
        _carry_image(*image, matrix, exposure)
    return result


def _carry_dense(
    plate: torch.Tensor, before: torch.Tensor, after: torch.Tensor, matrix: Matrix, exposure: float
) -> torch.Tensor:
    """`carry_back` of pixels (3, n), each by the full formula."""
    broken = (before != after).any(0) & ~torch.isfinite(plate).all(0)
    return _mixed(torch.where(broken, _finite(plate), plate.float()), before, after, matrix, exposure)


def _carry_image(
    plate: torch.Tensor, before: torch.Tensor, after: torch.Tensor, out: torch.Tensor, matrix: Matrix, exposure: float
) -> None:
    """`carry_back` of one picture, all (3, n), into `out`."""
    if plate.device.type != "cpu":
        out.copy_(_carry_dense(plate, before, after, matrix, exposure))
        return
    in_plate = matrix.scaled(1 / exposure)
    score = torch.empty_like(out[0])
    spare = torch.empty((2, 3, min(_BLOCK, out.shape[1])))
    finite = True
    for block in _blocks(out):
        old, new, pixels = before[:, block], after[:, block], plate[:, block].float()
        difference, change = spare[:, :, : old.shape[1]]
        torch.sub(old, new, out=difference)
        torch.sub(pixels, in_plate.into(difference, change), out=out[:, block])
        _needs_ratio(old, score[block])
        finite = finite and math.isfinite(pixels.sum().item())
    few = np.flatnonzero(score.numpy() > 0)  # five times faster than torch.nonzero
    if not finite:
        broken = (before != after).any(0) & ~torch.isfinite(plate).all(0)
        few = np.union1d(few, np.flatnonzero(broken.numpy()))
    formula = _mixed if finite else _carry_dense
    for first in range(0, few.size, _BLOCK):
        chosen = torch.from_numpy(few[first : first + _BLOCK])
        pixels, old, new = (part.index_select(1, chosen) for part in (plate, before, after))
        out.index_copy_(1, chosen, formula(pixels.float(), old, new, matrix, exposure))


def face_median(linear709: torch.Tensor, weight: torch.Tensor | None = None) -> float:
    """Median luminance of a face.

    Args:
        linear709: (3, h, w) float32, linear Rec.709, not clipped.
        weight: (h, w) float32, 0 or more, or None for all alike.

    Returns:
        The weighted median of the positive, finite luminances; NaN when there is none. At most 2**16 pixels, evenly
        spread over the picture, are looked at.
    """
    rows = max(1, math.ceil(math.sqrt(linear709.shape[-2] * linear709.shape[-1] / 65536)))
    sampled = linear709[:, ::rows, ::rows].float()
    luminance = (0.2126 * sampled[0] + 0.7152 * sampled[1] + 0.0722 * sampled[2]).flatten()
    usable = torch.isfinite(luminance) & (luminance > 0)
    if weight is None:
        weights = torch.ones_like(luminance)
    else:
        weights = weight[::rows, ::rows].flatten().float()
        usable &= weights > 0
    if not bool(usable.any()):
        return math.nan
    values, order = torch.sort(luminance[usable])
    rising = torch.cumsum(weights[usable][order].double(), 0)
    return float(values[int(torch.searchsorted(rising, rising[-1] / 2))])


def exposure_from_medians(medians: Sequence[float]) -> float:
    """One power of two for a track, 2**-12..2**12, that brings the median of `medians` (of `face_median`, one a frame;
    NaN and values <= 0 do not count) nearest to `SKIN_LEVEL`; 1 when none counts.

    One factor for the whole track: a factor that followed the frames would make the model's view pump.
    """
    usable = sorted(value for value in medians if math.isfinite(value) and value > 0)
    if not usable:
        return 1.0
    middle = usable[len(usable) // 2]
    return 2.0 ** max(-12, min(12, round(math.log2(SKIN_LEVEL / middle))))


def auto_exposure(linear709: torch.Tensor, weight: torch.Tensor | None = None) -> float:
    """`exposure_from_medians` of one picture; arguments as in `face_median`."""
    return exposure_from_medians([face_median(linear709, weight)])
