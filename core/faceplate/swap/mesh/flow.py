"""A face's mesh drawn over its crop: coarse fields of where each pixel lies on the face, and what covers it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray

from ...faces import topology
from ...job import SwapSettings
from ..base import FaceCrop
from .facing import facing
from .fields import smoothstep, uv_grid
from .occlusion import cover_at, cover_in_crop
from .place import Place
from .raster import draw, ring_triangles, spill, with_ring

_JUMP = (9.0, 16.0)
"""UV per face width between neighbouring samples; the map itself stretches by up to 4 where skin is seen at a slant."""
OUTSIDE = -0.05
"""Distance from the outline beyond which nothing is drawn, face widths."""


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """Coarse fields of a drawn mesh, float32.

    Attributes:
        uv: (2, rows, columns) canonical, v down; runs on a little outside the face.
        at: the same as `fields.uv_grid`.
        edge: (rows, columns) distance to the outline in face widths, negative outside.
        seen: (rows, columns) cosine between skin and viewer.
        moved: (2, rows, columns) px by which the shape moved the mesh.
        inside: (rows, columns) 1 on the face.
    """

    uv: torch.Tensor
    at: torch.Tensor
    edge: torch.Tensor
    seen: torch.Tensor
    moved: torch.Tensor
    inside: torch.Tensor

    @property
    def drawn(self) -> torch.Tensor:
        """(rows, columns) 1 on the face and a ring around it."""
        return (self.edge > OUTSIDE).to(self.edge.dtype)


def draw_flow(place: Place, move: NDArray[np.float32] | None, device: torch.device) -> Flow:
    """The mesh of the face in a place.

    Args:
        place: where.
        move: (468, 2) px by which its points are moved, None for not at all.
        device: of the fields.
    """
    points = place.landmarks[: topology.FACE_POINTS].copy()
    if move is not None:
        points[:, :2] += move
    square = points * np.array([place.aspect, 1.0, 1.0], np.float32)
    edge = _edge_distance()
    values = np.concatenate([topology.uv(), facing(square)[:, None]], 1)
    ringed = with_ring(np.concatenate([points, values], 1))
    ring_edge = np.full(len(ringed) - len(points), OUTSIDE, np.float32)
    ring_move = np.zeros((len(ringed), 2), np.float32)
    if move is not None:
        ring_move[: len(move)] = move
        ring_move[len(move) :] = move[list(topology.FACE_OVAL)]
    table = np.concatenate([ringed[:, 3:], np.concatenate([edge, ring_edge])[:, None], ring_move], 1)
    fields, inside = draw(
        torch.from_numpy(np.ascontiguousarray(ringed[:, :3])).to(device),
        _triangles(device),
        torch.from_numpy(table).to(device),
        place.height,
        place.width,
        place.step,
    )
    fields = spill(fields, inside)
    face = inside & (fields[3] > 0)
    # uncovered samples lie outside whatever their neighbours say
    edge_field = torch.where(inside, fields[3], OUTSIDE)
    return Flow(fields[:2], uv_grid(fields[0], fields[1]), edge_field, fields[2], fields[4:6], face.to(fields.dtype))


@cache
def _triangles(device: torch.device) -> torch.Tensor:
    return torch.tensor(ring_triangles(), dtype=torch.int64, device=device)


@cache
def _edge_distance() -> NDArray[np.float32]:
    """(468,) distance of each point to the outline of the canonical face in space, face widths. Taken there and not in
    the picture, where the far side of a turned head folds behind its cheek.
    """
    points = topology.canonical()
    start = points[list(topology.FACE_OVAL)]
    side = np.roll(start, -1, 0) - start
    apart = points[:, None] - start[None]
    along = (apart * side).sum(-1) / np.maximum((side * side).sum(-1), 1e-9)
    nearest = apart - np.clip(along, 0.0, 1.0)[..., None] * side
    return np.asarray(np.sqrt((nearest * nearest).sum(-1)).min(1), np.float32)


def joined(uv: torch.Tensor, size: float) -> torch.Tensor:
    """1 where neighbouring samples lie on neighbouring skin, 0 where one part of the face hides another (the nose a
    cheek): between those, enlarging would invent a place in the texture.

    Args:
        uv: (2, rows, columns).
        size: of a sample, face widths.
    """
    jump = uv.new_zeros(uv.shape[1:])
    down, across = (uv[:, 1:] - uv[:, :-1]).abs().sum(0), (uv[..., 1:] - uv[..., :-1]).abs().sum(0)
    for side in (jump[1:], jump[:-1]):
        torch.maximum(side, down, out=side)
    for side in (jump[:, 1:], jump[:, :-1]):
        torch.maximum(side, across, out=side)
    return 1.0 - smoothstep(*_JUMP, jump / size)


def covered(crop: FaceCrop, place: Place, flow: Flow, coarse_view: torch.Tensor) -> torch.Tensor:
    """(rows, columns) 0..1, what lies in front of the face: the analysis' steadied word, else what this crop shows."""
    if not crop.settings.occluders:
        return torch.zeros_like(flow.edge)
    cover = crop.cover
    if cover is None:
        square = place.landmarks[: topology.FACE_POINTS] * np.array([place.aspect, 1.0, 1.0], np.float32)
        cover = cover_in_crop(coarse_view, place.landmarks, facing(square), crop.appearance, place.step)
    return cover_at(cover, flow.at).mul_(flow.drawn)


def yaw_fade(yaw_deg: float, settings: SwapSettings) -> float:
    """How much of the change is left at a head turn, 0..1."""
    share = (abs(yaw_deg) - settings.yaw_fade_from) / (settings.yaw_fade_to - settings.yaw_fade_from)
    share = min(max(share, 0.0), 1.0)
    return 1.0 - share * share * (3.0 - 2.0 * share)
