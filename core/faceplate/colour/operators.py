"""OCIO's analytic operators as torch functions.

`build` turns the operators of an optimised OCIO processor into torch functions of the same parameters. Formulas are
those of OpenColorIO's own operators (moncurve for `ExponentWithLinear`, camera logs with a linear toe), in float32.

Piecewise curves are written as `low(min(x, knee)) + high(max(x, knee)) - high(knee)`. The two pieces meet at the knee,
so this is the curve itself; it needs no mask (masks cost more than the powers on a CPU) and keeps NaN a NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import PyOpenColorIO as ocio
import torch
from numpy.typing import NDArray

Curve = Callable[[torch.Tensor], torch.Tensor]

_TINY = 1.1754943508222875e-38


class NotAnalytic(Exception):
    """The operator has no exact torch form here: a table, a fixed function, unequal channels."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """`out = rows @ rgb + offset`.

    Attributes:
        rows: three rows of three coefficients.
        offset: three numbers, added after the product.
    """

    rows: tuple[tuple[float, float, float], ...]
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __call__(self, rgb: torch.Tensor) -> torch.Tensor:
        """(..., 3, h, w) or (3, n) float32 to a new tensor of that shape."""
        return self.into(rgb, torch.empty_like(rgb, memory_format=torch.contiguous_format))

    def into(self, rgb: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        """The same, written to `out`, which must not overlap `rgb`; returns `out`.

        Written as sums of scaled planes, not as a matrix product: a process may allow its products TF32 or bfloat16,
        and colour must not follow.
        """
        axis = -3 if rgb.ndim > 2 else 0
        planes = rgb.unbind(axis)
        for target, row, offset in zip(out.unbind(axis), self.rows, self.offset, strict=True):
            torch.mul(planes[0], row[0], out=target)
            target.add_(planes[1], alpha=row[1]).add_(planes[2], alpha=row[2])
            if offset:
                target.add_(offset)
        return out

    def scaled(self, factor: float) -> Matrix:
        """The matrix that gives `factor` times the result."""
        rows = tuple((a * factor, b * factor, c * factor) for a, b, c in self.rows)
        red, green, blue = self.offset
        return Matrix(rows, (red * factor, green * factor, blue * factor))


IDENTITY = Matrix(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))


@dataclass(frozen=True, slots=True)
class MonCurve:
    """Linear toe, power above: sRGB (gamma 2.4, offset 0.055), Rec.709 camera (1 / 0.45, 0.099).

    Attributes:
        gamma: exponent of the decoding direction.
        offset: of the decoding direction.
        decode: True for code values to light, False for light to code values.
        mirror: negatives take the curve of their absolute value; otherwise they follow the toe's line.
    """

    gamma: float
    offset: float
    decode: bool
    mirror: bool = False

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        """Any shape, float32, to a new tensor."""
        if self.mirror:
            return torch.copysign(self._curve(values.abs()), values)
        return self._curve(values)

    def _curve(self, values: torch.Tensor) -> torch.Tensor:
        gamma, offset = self.gamma, self.offset
        knee = offset / (gamma - 1)
        slope = (gamma - 1) / offset * (offset * gamma / ((gamma - 1) * (1 + offset))) ** gamma
        if self.decode:
            bent = values.clamp_min(knee).add_(offset).mul_(1 / (1 + offset))
            bent.log2_().mul_(gamma).exp2_()
            return bent.add_(values.clamp_max(knee).sub_(knee), alpha=slope)
        knee = knee * slope
        bent = values.clamp_min(knee).log2_().mul_(1 / gamma).exp2_().mul_(1 + offset).sub_(offset)
        return bent.add_(values.clamp_max(knee).sub_(knee), alpha=1 / slope)


@dataclass(frozen=True, slots=True)
class Power:
    """`x ** exponent` for x >= 0. Negatives: "clamp" to 0, "mirror" or "pass" through unchanged."""

    exponent: float
    negatives: str

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        """Any shape, float32, to a new tensor."""
        if self.negatives == "mirror":
            return torch.copysign(values.abs().pow_(self.exponent), values)
        out = values.clamp_min(0.0).pow_(self.exponent)
        return out.add_(values.clamp_max(0.0)) if self.negatives == "pass" else out


@dataclass(frozen=True, slots=True)
class LogCurve:
    """Camera log: `log_slope * log(lin_slope * x + lin_offset, base) + log_offset`, with an optional linear toe.

    Attributes:
        knee: linear light below which the curve is a line; None for a pure log (values below the domain clamp).
        toe_slope: slope of that line; None for the slope that continues the log smoothly.
        decode: True for code values to light.
    """

    base: float
    log_slope: float
    log_offset: float
    lin_slope: float
    lin_offset: float
    decode: bool
    knee: float | None = None
    toe_slope: float | None = None

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        """Any shape, float32, to a new tensor."""
        if self.knee is None:
            return self._decode_log(values.clone()) if self.decode else self._encode_log(values.clone())
        inside = self.lin_slope * self.knee + self.lin_offset
        at_knee = self.log_slope * math.log(inside, self.base) + self.log_offset
        slope = self.toe_slope
        if slope is None:
            slope = self.log_slope * self.lin_slope / (inside * math.log(self.base))
        if self.decode:
            bent = self._decode_log(values.clamp_min(at_knee))
            return bent.add_(values.clamp_max(at_knee).sub_(at_knee), alpha=1 / slope)
        bent = self._encode_log(values.clamp_min(self.knee))
        return bent.add_(values.clamp_max(self.knee).sub_(self.knee), alpha=slope)

    def _encode_log(self, values: torch.Tensor) -> torch.Tensor:
        values.mul_(self.lin_slope).add_(self.lin_offset).clamp_min_(_TINY).log2_()
        return values.mul_(self.log_slope / math.log2(self.base)).add_(self.log_offset)

    def _decode_log(self, values: torch.Tensor) -> torch.Tensor:
        values.sub_(self.log_offset).mul_(math.log2(self.base) / self.log_slope).exp2_()
        return values.sub_(self.lin_offset).mul_(1 / self.lin_slope)


@dataclass(frozen=True, slots=True)
class Range:
    """`x * scale + offset`, clamped where a bound is given."""

    scale: float
    offset: float
    low: float | None
    high: float | None

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        """Any shape, float32, to a new tensor."""
        out = values * self.scale
        out.add_(self.offset)
        return out if self.low is None and self.high is None else out.clamp_(self.low, self.high)


def _same(values: Iterable[float]) -> float:
    first, *rest = values
    if any(value != first for value in rest):
        raise NotAnalytic("channels differ")
    return float(first)


def _matrix(operator: Any) -> Matrix:
    full: NDArray[np.float64] = np.array(operator.getMatrix(), dtype=np.float64).reshape(4, 4)
    offset: NDArray[np.float64] = np.array(operator.getOffset(), dtype=np.float64)
    if operator.getDirection() == ocio.TRANSFORM_DIR_INVERSE:
        full = np.asarray(np.linalg.inv(full), dtype=np.float64)
        offset = -full @ offset
    if np.any(full[:3, 3]):
        raise NotAnalytic("alpha feeds colour")
    red, green, blue = (float(value) for value in offset[:3])
    return Matrix(tuple((float(a), float(b), float(c)) for a, b, c in full[:3, :3]), (red, green, blue))


def _moncurve(operator: Any) -> Curve:
    gamma, offset = _same(operator.getGamma()[:3]), _same(operator.getOffset()[:3])
    if gamma <= 1 or offset <= 0:
        raise NotAnalytic("a degenerate moncurve")
    styles = {ocio.NEGATIVE_LINEAR: False, ocio.NEGATIVE_MIRROR: True}
    if operator.getNegativeStyle() not in styles:
        raise NotAnalytic("negative style")
    decode = operator.getDirection() == ocio.TRANSFORM_DIR_FORWARD
    return MonCurve(gamma, offset, decode, styles[operator.getNegativeStyle()])


def _power(operator: Any) -> Curve:
    exponent = _same(operator.getValue()[:3])
    if operator.getDirection() == ocio.TRANSFORM_DIR_INVERSE:
        exponent = 1 / exponent
    styles = {ocio.NEGATIVE_CLAMP: "clamp", ocio.NEGATIVE_MIRROR: "mirror", ocio.NEGATIVE_PASS_THRU: "pass"}
    if operator.getNegativeStyle() not in styles:
        raise NotAnalytic("negative style")
    return Power(exponent, styles[operator.getNegativeStyle()])


def _camera_log(operator: Any) -> Curve:
    toe = _same(operator.getLinearSlopeValue()) if operator.isLinearSlopeValueSet() else None
    return _affine_log(operator, knee=_same(operator.getLinSideBreakValue()), toe_slope=toe)


def _affine_log(operator: Any, knee: float | None = None, toe_slope: float | None = None) -> LogCurve:
    return LogCurve(
        base=operator.getBase(),
        log_slope=_same(operator.getLogSideSlopeValue()),
        log_offset=_same(operator.getLogSideOffsetValue()),
        lin_slope=_same(operator.getLinSideSlopeValue()),
        lin_offset=_same(operator.getLinSideOffsetValue()),
        decode=operator.getDirection() == ocio.TRANSFORM_DIR_INVERSE,
        knee=knee,
        toe_slope=toe_slope,
    )


def _plain_log(operator: Any) -> Curve:
    return LogCurve(operator.getBase(), 1.0, 0.0, 1.0, 0.0, operator.getDirection() == ocio.TRANSFORM_DIR_INVERSE)


def _range(operator: Any) -> Curve:
    if operator.getDirection() == ocio.TRANSFORM_DIR_INVERSE:
        raise NotAnalytic("inverse range")
    low_in = operator.getMinInValue() if operator.hasMinInValue() else None
    high_in = operator.getMaxInValue() if operator.hasMaxInValue() else None
    low = operator.getMinOutValue() if operator.hasMinOutValue() else None
    high = operator.getMaxOutValue() if operator.hasMaxOutValue() else None
    scale, offset = 1.0, 0.0
    if low_in is not None and high_in is not None and low is not None and high is not None:
        scale = (high - low) / (high_in - low_in)
        offset = low - scale * low_in
    elif low_in is not None and low is not None:
        offset = low - low_in
    elif high_in is not None and high is not None:
        offset = high - high_in
    clamps = operator.getStyle() == ocio.RANGE_CLAMP
    return Range(scale, offset, low if clamps else None, high if clamps else None)


_BUILDERS: dict[str, Callable[[Any], Curve]] = {
    "MatrixTransform": _matrix,
    "ExponentWithLinearTransform": _moncurve,
    "ExponentTransform": _power,
    "LogCameraTransform": _camera_log,
    "LogAffineTransform": _affine_log,
    "LogTransform": _plain_log,
    "RangeTransform": _range,
}


def build(operators: Iterable[Any]) -> Sequence[Curve]:
    """Torch functions for the operators of an OCIO group transform, in order.

    Raises:
        NotAnalytic: one of them has no exact torch form.
    """
    functions: list[Curve] = []
    for operator in operators:
        kind = type(operator).__name__
        if kind not in _BUILDERS:
            raise NotAnalytic(kind)
        functions.append(_BUILDERS[kind](operator))
    return functions
