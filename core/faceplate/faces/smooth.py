"""Zero-phase smoothing of landmarks: net for where they are, optical flow for how they move.

The net's answers are right on the whole and tremble from frame to frame; optical flow is precise from frame to frame
and drifts over a shot. `fuse` finds the path x that stays near both, per point and axis:

    minimise  sum_t a_t (x_t - net_t)^2  +  sum_t b_t (x_{t+1} - x_t - flow_t)^2

Past and future count alike, so nothing lags; a motion that the flow sees is kept however fast it is. It is solved for
the difference y = x - net, so that an input at rest comes back bit for bit. Where the flow says nothing (occlusion,
blink, a gap), a local quadratic through the net's own path stands in for it, with little weight.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

Array = NDArray[np.float64]

MEMORY_FRAMES = 16.0
"""About how many frames to each side a point of full reliability is averaged over: sqrt(b / a)."""

_KERNEL_SIGMA = 2.0
_KERNEL_REACH = 6
_STAND_IN = 0.02
_DISAGREE = 0.012
_DRIFT = 0.0015
_DRIFT_FRAMES = 7
_JUMP = 4.0


def local_quadratic(times: NDArray[np.integer[Any]], values: Array, weights: Array) -> Array:
    """Weighted local regression of order two in a Gaussian window of sigma 2 frames, at each time.

    One-sided at the ends, where the fit falls to lower order if too few samples are near; a constant comes back bit
    for bit, a quadratic to rounding.

    Args:
        times: (N,) rising frame numbers, gaps allowed.
        values: (N, ...) samples.
        weights: (N,) above 0.
    """
    out = np.empty_like(values)
    for index, time in enumerate(times):
        near = np.abs(times - time) <= _KERNEL_REACH
        offset = (times[near] - time).astype(np.float64)
        weight = weights[near] * np.exp(-0.5 * (offset / _KERNEL_SIGMA) ** 2)
        basis = np.vander(offset, min(3, len(offset)), increasing=True)
        kernel = np.linalg.solve(basis.T @ (basis * weight[:, None]), (basis * weight[:, None]).T)[0]
        out[index] = values[index] + np.tensordot(kernel, values[near] - values[index], 1)
    return out


def fuse(
    times: NDArray[np.integer[Any]],
    net: Array,
    confidence: Array,
    flow: Array,
    reliability: Array,
    unit: float,
    *,
    memory: float = MEMORY_FRAMES,
) -> Array:
    """The smoothed path of every point.

    Args:
        times: (N,) rising frame numbers, gaps allowed.
        net: (N, P, D) where the net saw the points.
        confidence: (N,) above 0, weight of each frame.
        flow: (N - 1, P, D) motion from each sample to the next; what `reliability` calls 0 is not looked at.
        reliability: (N - 1, P) 0..1.
        unit: the face's width in the same px. Motion in which net and flow differ by much more than a hundredth of it
            is the net's to tell (a blink, a hand), and so is a small difference that lasts (the edge of a turning
            cheek, along which flow slides).
        memory: frames to each side, see `MEMORY_FRAMES`; 0 gives `net` back.

    Returns:
        (N, P, D).
    """
    if len(times) < 2 or memory <= 0:
        return net.copy()
    step = np.diff(net, axis=0)
    smooth_step = np.diff(local_quadratic(times, net, confidence), axis=0)
    trust = reliability[..., None]
    residual = np.where(trust > 0, flow - step, 0.0)
    # A jump (a blink) counts little once clipped; the net's tremble cancels in a mean of its steps, but for the ends.
    clipped = np.clip(residual, -_JUMP * _DRIFT * unit, _JUMP * _DRIFT * unit)
    lasting = np.asarray(uniform_filter1d(clipped, _DRIFT_FRAMES, axis=0, mode="nearest"))
    agreement = _agreement(residual, _DISAGREE * unit) * _agreement(lasting, _DRIFT * unit)
    trust = trust * agreement[..., None]
    # Flow where there is some, else the stand-in; both where flow is doubtful, by their weights.
    bend = smooth_step - step
    stand_in = _STAND_IN * _agreement(bend, _DISAGREE * unit)[..., None]
    weight = trust + stand_in
    pull = (trust * residual + stand_in * bend) / weight
    link = np.broadcast_to(memory**2 * weight, pull.shape)
    return net + _solve(np.broadcast_to(confidence[:, None, None], net.shape), link, pull)


def _agreement(residual: Array, tolerance: float) -> Array:
    """(N - 1, P): 1 where the residual is much smaller than the tolerance, soon nothing where it is larger."""
    return np.asarray(np.exp(-(residual**2).sum(-1) / tolerance**2))


def _solve(anchor: Array, link: Array, pull: Array) -> Array:
    """Minimise sum anchor y^2 + sum link (y_{t+1} - y_t - pull_t)^2: a tridiagonal system along the first axis."""
    diagonal = anchor.copy()
    diagonal[:-1] += link
    diagonal[1:] += link
    right = np.zeros_like(diagonal)
    right[:-1] -= link * pull
    right[1:] += link * pull
    for index in range(1, len(diagonal)):
        factor = link[index - 1] / diagonal[index - 1]
        diagonal[index] -= factor * link[index - 1]
        right[index] += factor * right[index - 1]
    out = right / diagonal
    for index in range(len(out) - 2, -1, -1):
        out[index] = (right[index] + link[index] * out[index + 1]) / diagonal[index]
    return out
