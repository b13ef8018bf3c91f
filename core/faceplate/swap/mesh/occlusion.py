"""What is in front of the face: hands, microphones, hair, glare. Smooth functions of the picture, so that the matte is
as stable in time as the plate and its landmarks.

Three kinds of evidence. *Memory*: the track's usual appearance in canonical UV against this frame. *Skin*: colours that
the cheeks of this frame do not explain, looked for only on the forehead and the outer band, where nothing folds.
*Glare*: white beyond what skin can be.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import cv2
import numpy as np
import torch
from scipy.sparse import csr_array
from torch.nn import functional

from ...face import Appearance, Points
from ...faces import rectify, topology
from .fields import blur, mean_around, sample, smoothstep, uv_grid

MEMORY_SIZE = 96
"""Texels a side of `Appearance`."""

_DARKEST = 2.0**-9
_WEAK, _STRONG = (1.1, 2.4), (3.0, 4.4)
"""Deviations between which memory evidence rises: to join a patch, and to start one."""
_EDGE_REACH = 8
_LEAST_SPREAD = 0.18
"""Stops; below it lies noise, compression and slow change of light."""
_GROW_ROUNDS = 16
_CLOSE_REACH = 8
"""Texels: gaps up to twice as wide inside a patch are closed; a hand has the colour of the face in places."""
_FIT_ROUNDS = 4
_SKIN_ROUNDS = 3
_SKIN_KNEE = (3.6, 5.2)
_BLOWN = (0.90, 0.99)
"""Value of the darkest channel that no skin reaches: a lamp, the sun or a flare in front of the face."""


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """The coarse fields that the skin evidence needs, on one grid, (h, w) float32 but for the first.

    Attributes:
        at: (1, h, w, 2) `fields.uv_grid`.
        inside: 0..1, the face, where it is seen squarely enough to judge its colour.
        drawn: 0..1, the face and a ring around it, so that an occluder runs on over the edge of the face.
        cheeks, exposed: zones.
    """

    at: torch.Tensor
    inside: torch.Tensor
    drawn: torch.Tensor
    cheeks: torch.Tensor
    exposed: torch.Tensor


def occluder(
    view: torch.Tensor,
    evidence: Evidence,
    appearance: Appearance | None,
    landmarks: Points,
    tolerance: torch.Tensor,
    face_px: float,
    step: int,
) -> torch.Tensor:
    """Coarse occluder matte.

    Args:
        view: (3, h, w) linear light 0..1, coarse grid.
        evidence: fields on the same grid.
        appearance: of the track, or None.
        landmarks: (468 or more, 3) px of the fine grid.
        tolerance: (Z, Z) canonical UV, 1 where expressions change the picture (eyes, mouth).
        face_px: face width in samples of the coarse grid.
        step: fine pixels a coarse sample.

    Returns:
        (h, w) float32 0..1, 0 away from the face.
    """
    found = torch.maximum(foreign_to_skin(view, evidence, face_px), smoothstep(*_BLOWN, view.amin(0)))
    if appearance is not None:
        unlike = unlike_memory(view, appearance, landmarks, tolerance, step)
        found = torch.maximum(found, sample(unlike[None], evidence.at)[0])
    return found * evidence.drawn


def foreign_to_skin(view: torch.Tensor, evidence: Evidence, face_px: float) -> torch.Tensor:
    """(h, w) 0..1, how surely a sample of the forehead or the outer band is not this frame's skin."""
    logs = torch.log(mean_around(view, 0.012 * face_px) + 0.003)
    features = torch.stack([logs.mean(0) * 0.6, (logs[0] - logs[1]) * 2.0, logs[2] - logs[1]])
    flat, weight = features.flatten(1), (evidence.cheeks * evidence.inside).flatten()
    at = weight.nonzero()[:, 0]
    skin, weight = flat[:, at], weight[at]
    ground = torch.diag(features.new_tensor([0.02, 0.006, 0.01]))
    centre, inverse, trust = features.new_zeros(3), ground, weight
    for _ in range(_SKIN_ROUNDS):
        total = trust.sum().clamp(min=1e-3)
        centre = (skin * trust).sum(1) / total
        apart = skin - centre[:, None]
        inverse = torch.linalg.inv((apart * trust) @ apart.T / total + ground)
        # samples that do not belong (a hand on the cheek, a highlight) lose their say without a hard decision
        far = (apart * (inverse @ apart)).sum(0)
        trust = weight / (1.0 + (far / 6.0).square())
    apart = flat - centre[:, None]
    distance = (apart * (inverse @ apart)).sum(0).clamp(min=0.0).sqrt().view_as(evidence.inside)
    enough = smoothstep(4.0, 16.0, weight.sum())
    return smoothstep(*_SKIN_KNEE, distance) * evidence.exposed * enough


def unlike_memory(
    view: torch.Tensor, appearance: Appearance, landmarks: Points, tolerance: torch.Tensor, step: int
) -> torch.Tensor:
    """(96, 96) 0..1 in canonical UV, how surely a texel shows something else than this track usually does."""
    height, width = view.shape[1:]
    at = _spread() @ (landmarks[: topology.FACE_POINTS, :2] / np.float32(step))
    x, y = torch.from_numpy(at.T.reshape(2, MEMORY_SIZE, MEMORY_SIZE)).to(view.device)
    seen = torch.log2(sample(view, uv_grid(x / width, y / height)).clamp(min=_DARKEST))
    median = torch.from_numpy(np.nan_to_num(appearance.median)).to(view.device).permute(2, 0, 1)
    spread = torch.from_numpy(np.nan_to_num(appearance.spread, nan=1.0)).to(view.device)
    known = torch.from_numpy(np.isfinite(appearance.median).all(-1) & rectify.coverage(MEMORY_SIZE)).to(view)
    known = known * ((x > 0) & (x < width) & (y > 0) & (y < height))
    change = _without_light(seen - median, known)
    allowed = (spread * 2.0).clamp(min=_LEAST_SPREAD) + 0.6 * _at_memory_size(tolerance)
    score = change.square().mean(0).sqrt() / allowed
    score = blur(torch.stack([score * known, known]), 1.2)
    score = score[0] / score[1].clamp(min=1e-3) * (score[1] > 1e-3)
    weak = smoothstep(*_WEAK, score)
    grown = smoothstep(*_STRONG, score)
    for _ in range(_GROW_ROUNDS):
        grown = torch.minimum(weak, widened(grown, 1))
    closed = 1.0 - widened(1.0 - widened(grown, _CLOSE_REACH), _CLOSE_REACH)
    # beyond the edge of the face the map goes on as at the edge
    return torch.where(known > 0, closed, widened(closed * known, _EDGE_REACH))


@cache
def _spread() -> csr_array:
    """`rectify.interpolate` at MEMORY_SIZE as a matrix on (468, K) values."""
    each = rectify.interpolate(np.eye(topology.FACE_POINTS, dtype=np.float32), MEMORY_SIZE)
    return csr_array(each.reshape(-1, topology.FACE_POINTS))


def widened(field: torch.Tensor, reach: int) -> torch.Tensor:
    """Maximum over a square."""
    if field.device.type == "cpu":
        square = np.ones((2 * reach + 1, 2 * reach + 1), np.uint8)
        return torch.from_numpy(np.asarray(cv2.dilate(field.contiguous().numpy(), square), np.float32))
    return widened_on_any_device(field, reach)


def widened_on_any_device(field: torch.Tensor, reach: int) -> torch.Tensor:
    """The reference for `widened`: rows, then columns."""
    rows = functional.max_pool2d(field[None, None], (2 * reach + 1, 1), 1, (reach, 0))
    return functional.max_pool2d(rows, (1, 2 * reach + 1), 1, (0, reach))[0, 0]


def _at_memory_size(zone: torch.Tensor) -> torch.Tensor:
    return functional.interpolate(zone[None, None], size=(MEMORY_SIZE, MEMORY_SIZE), mode="area")[0, 0]


def _without_light(change: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    """Take a change of exposure, colour and slope of the light out of (3, 96, 96) stops: a robust plane a channel."""
    axis = torch.linspace(-1.0, 1.0, MEMORY_SIZE, dtype=change.dtype, device=change.device)
    v, u = torch.meshgrid(axis, axis, indexing="ij")
    basis = torch.stack([torch.ones_like(u), u, v]).flatten(1)
    flat, known = change.flatten(1), known.flatten()
    usable = flat[:, known > 0]
    if usable.shape[1] < 64:
        return torch.zeros_like(change)
    plane = torch.cat([usable.median(1).values[:, None], flat.new_zeros(3, 2)], 1)
    ridge = torch.diag(flat.new_tensor([1.0, 40.0, 40.0]))
    for _ in range(_FIT_ROUNDS):
        rest = flat - plane @ basis
        trust = known / (1.0 + (rest.square().mean(0) / 0.35**2)).square()
        plane = torch.linalg.solve((basis * trust) @ basis.T + ridge, (basis * trust) @ flat.T).T
    return (flat - plane @ basis).view_as(change)


def refine(matte: torch.Tensor, guide: torch.Tensor, face_px: float) -> torch.Tensor:
    """What brings a coarse matte to the plate's edges (fast guided filter, He and Sun 2015).

    Args:
        matte: (h, w) coarse, 0..1.
        guide: (3, h, w) coarse picture.
        face_px: face width in samples of the coarse grid.

    Returns:
        (2, h, w), slope and offset of the matte over the picture's mean; enlarge it for `along_lines`.
    """
    light = guide.mean(0)
    sigma = max(1.0, 0.025 * face_px)
    mean_i, mean_m, square, product = mean_around(torch.stack([light, matte, light * light, light * matte]), sigma)
    floor = (0.06 * light.mean()).square() + 1e-10
    slope = (product - mean_i * mean_m) / ((square - mean_i.square()).clamp(min=0.0) + floor)
    return mean_around(torch.stack([slope, mean_m - slope * mean_i]), sigma)


def along_lines(lines: torch.Tensor, view: torch.Tensor) -> torch.Tensor:
    """(H, W) 0..1, the refined matte of a picture (3, H, W), from the (2, H, W) of `refine`."""
    fine = view.mean(0).mul_(lines[0]).add_(lines[1])
    return fine.sub_(0.08).mul_(1.0 / 0.80).clamp_(0.0, 1.0)
