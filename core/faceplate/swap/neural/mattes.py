"""The matte of a neural engine: the face's own shape, never the crop's square.

The mesh gives the shape: its outline, what of it faces the camera, where one part of the face hides another. Where a
net brings a matte of its own, that decides inside the crop, unless it has collapsed: a net that is lost (a profile, a
hand before the lens) gives next to nothing, and a swap that comes and goes is worse than one with a plain edge. So the
less of the face's shape such a matte covers, the more the shape takes its place.
"""

from __future__ import annotations

import torch

from ...job import SwapSettings
from ..mesh.fields import mean_around, smoothstep
from ..mesh.flow import Flow, joined
from ..mesh.place import Place
from .place import Crop

_INSET = 0.0
"""Where the matte begins, inside the oval, face widths."""
_SEEN = (-0.05, 0.12)
"""Cosine between skin and viewer at which the matte begins and is full."""
_SILHOUETTE = 0.014
"""Softness where the face ends against what is behind it, face widths."""
_BORDER = (0.01, 0.06)
"""Distance from the crop's edge at which the matte begins and is full, part of its side: nets know nothing outside."""
_COLLAPSED, _SOUND = 0.35, 0.6
"""Part of the face's shape that a net's own matte covers: all lost, and all well."""


def face_shape(flow: Flow, settings: SwapSettings, place: Place) -> torch.Tensor:
    """(rows, columns) 0..1, the face in the crop as its mesh lies."""
    begin = max(_INSET - settings.matte_grow, -0.04)
    soft = max(settings.matte_soften, 1.5 * place.step / place.face_px)
    sigma = max(_SILHOUETTE * place.face_px / place.step, 0.7)
    silhouette = smoothstep(0.45, 0.9, mean_around(flow.inside[None], sigma, place.aspect)[0])
    shape = smoothstep(begin, begin + soft, flow.edge) * smoothstep(*_SEEN, flow.seen) * silhouette
    return shape * joined(flow.uv, place.step / place.face_px)


def inside_crop(crop: Crop, place: Place, like: torch.Tensor) -> torch.Tensor:
    """(rows, columns) 0..1, 1 well inside the crop, 0 at its edge and beyond."""
    rows, columns = (torch.arange(n, dtype=torch.float32, device=like.device) for n in like.shape)
    y = ((rows + 0.5) * place.step + place.rows.start)[:, None]
    x = ((columns + 0.5) * place.step + place.columns.start)[None]
    (a, b, c), (d, e, f) = (crop.placement / crop.size).tolist()
    u, v = x * a + y * b + c, x * d + y * e + f
    apart = torch.minimum(torch.minimum(u, 1.0 - u), torch.minimum(v, 1.0 - v))
    return smoothstep(*_BORDER, apart)


def guarded(own: torch.Tensor, shape: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A net's own matte, or the face's shape as far as it has collapsed.

    Args:
        own: (rows, columns) 0..1.
        shape: the same, as `face_shape` gives it.

    Returns:
        The matte, and a number 0..1: how far the guard had to step in.
    """
    covered = (own * shape).sum() / shape.sum().clamp(min=1e-3)
    lost = 1.0 - smoothstep(_COLLAPSED, _SOUND, covered)
    lost = torch.where(shape.sum() > 0, lost, torch.zeros_like(lost))
    return torch.lerp(own, shape, lost), lost
