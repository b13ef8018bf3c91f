"""The mesh engine: the identity's texture on the plate's face, in the plate's light."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch

from ...errors import IdentityError
from ...face import Identity, Points
from ...frame import Box
from ...job import SwapSettings
from ..base import FaceCrop, FaceResult
from .fields import Enlarger, mean_around, sample, shrink, smoothstep, uv_grid
from .flow import OUTSIDE, Flow, covered, draw_flow, joined, yaw_fade
from .light import hold_lips, light_gain, match_detail
from .occlusion import along_lines, refine
from .place import Place, find_place, window
from .prepared import ZONE_ORDER, Prepared, prepare
from .shape import displacement
from .warp import warp

_INSET = 0.015
"""Where the matte begins, inside the oval."""
_SEEN = (0.0, 0.15)
"""Cosine of the angle between skin and viewer at which the matte begins and is full."""
_SILHOUETTE = 0.018
"""Softness where the face ends against what is behind it, fraction of the face width."""
_LEAST = 1.0 / 512.0


class MeshEngine:
    """Licence-clean default engine. Deterministic; all tensors stay on the crop's device.

    Args:
        device: where identities are prepared; the crops must be there too.
    """

    name = "mesh"
    version = "2"
    encoding: Literal["linear", "display"] = "linear"

    def __init__(self, device: torch.device | str = "cpu") -> None:
        self._device = torch.device(device)

    def prepare(self, identity: Identity) -> Prepared:
        """Texture levels and masks on the device.

        Raises:
            IdentityError: the identity has no usable texture.
        """
        return prepare(identity, self._device)

    def window(self, landmarks: Points, settings: SwapSettings, pixel_aspect: float = 1.0) -> Box:
        """The bounds of the face and a little more, plate px; a lot more where `shape` moves the plate. The matte ends
        inside.
        """
        return window(landmarks, settings.shape > 0)

    def swap(self, crops: Sequence[FaceCrop], prepared: Prepared) -> list[FaceResult]:
        """Replace the face in each crop. See `Engine.swap`.

        Raises:
            IdentityError: `prepared` is not this engine's.
        """
        if not isinstance(prepared, Prepared):
            raise IdentityError(
                "the mesh engine got an identity prepared by another engine", found=type(prepared).__name__
            )
        with torch.no_grad():
            return [_swap_one(crop, prepared) for crop in crops]


def _swap_one(crop: FaceCrop, prepared: Prepared) -> FaceResult:
    fade, place = yaw_fade(crop.yaw_deg, crop.settings), find_place(crop)
    if place is None or fade == 0.0:
        return _untouched(crop, prepared)
    made = _swap_at(crop, place, fade, prepared)
    if place.coarser == 0.0:
        return made
    return _between(made, _swap_at(crop, replace(place, step=2 * place.step), fade, prepared), place.coarser)


def _between(fine: FaceResult, coarse: FaceResult, share: float) -> FaceResult:
    """`fine` with a share of `coarse`; both leave the same pixels of the view alone, or the matte is small there."""
    return FaceResult(
        edited=fine.edited.lerp_(coarse.edited, share),
        matte_core=fine.matte_core.lerp_(coarse.matte_core, share),
        matte_occluder=fine.matte_occluder.lerp_(coarse.matte_occluder, share),
        st=fine.st,
        facts={name: value + share * (coarse.facts[name] - value) for name, value in fine.facts.items()},
    )


def _swap_at(crop: FaceCrop, place: Place, fade: float, prepared: Prepared) -> FaceResult:
    settings = crop.settings
    view = crop.view[:, place.rows, place.columns]
    move = None
    if settings.shape > 0:
        move = displacement(place.landmarks, prepared.shape, settings.shape * fade, place.aspect)
    enlarge = Enlarger(place.height, place.width)
    plate_flow = draw_flow(place, None, view.device)
    flow = plate_flow if move is None else draw_flow(place, move, view.device)
    coarse_view = shrink(view, place.step)
    masks = _masks(prepared, flow)
    blocked = covered(crop, place, plate_flow, coarse_view)
    mouth = 1.0 if settings.keep_mouth else 1.0 - prepared.mouth  # closed lips have no teeth to give
    core = _core(flow, masks, settings, place, mouth) * fade
    st, result = _blank(crop, place)
    lines = None
    if settings.occluders and float(blocked.max()) > 0.0:
        lines = refine(blocked, coarse_view, place.face_px / place.step)
    source = _mapped(place, flow, core, lines, view, prepared, enlarge, result, st)
    ground, warp_matte = (
        (view, None)
        if move is None
        else warp(view, flow.moved, flow.drawn, place.face_px / place.step, place.aspect, place.step, enlarge)
    )
    coarse_ground = coarse_view if move is None else shrink(ground, place.step)
    clear = core * (1.0 - blocked)
    lips = masks["lips"]
    skin = torch.stack([clear * (1.0 - masks["features"]), flow.edge, lips, clear * lips * (1.0 - masks["mouth"])])
    stops = _light(place, skin, source, ground, coarse_ground, settings, enlarge)
    if warp_matte is not None:
        core_fine = result.matte_core[place.rows, place.columns]
        torch.lerp(ground, source, core_fine, out=source)
        torch.maximum(core_fine, warp_matte * fade, out=core_fine)
    for rows in enlarge.strips(view):
        kept = result.matte_core[place.rows, place.columns][rows] == 0
        source[:, rows].lerp_(view[:, rows], kept.to(view.dtype))  # exact at both ends
    facts = {
        "source_px": float(prepared.detail_px),
        "face_px": place.face_px,
        "coverage": float((masks["coverage"] * flow.inside).sum() / flow.inside.sum().clamp(min=1.0)),
        "exposure_stops": stops,
        "occluded": float((blocked * core).sum() / core.sum().clamp(min=1e-3)),
        "matte_over_time": float(crop.cover is not None),
        "mouth_kept": mouth,
    }
    return replace(result, facts=facts)


def _masks(prepared: Prepared, flow: Flow) -> dict[str, torch.Tensor]:
    """The identity's masks where the coarse grid lies in them."""
    return dict(zip((*ZONE_ORDER, "coverage"), sample(prepared.masks, flow.at), strict=True))


def _core(
    flow: Flow, masks: dict[str, torch.Tensor], settings: SwapSettings, place: Place, mouth: float
) -> torch.Tensor:
    """Coarse matte: soft edge inside the oval, what the texture knows, what faces the viewer, what is kept (`mouth`
    of the inner mouth).
    """
    begin = max(_INSET - settings.matte_grow, 0.0)
    soft = max(settings.matte_soften, 1.5 * place.step / place.face_px)
    sigma = max(_SILHOUETTE * place.face_px / place.step, 0.7)
    silhouette = smoothstep(0.5, 0.95, mean_around(flow.inside[None], sigma, place.aspect)[0])
    core = smoothstep(begin, begin + soft, flow.edge) * smoothstep(*_SEEN, flow.seen) * silhouette * masks["coverage"]
    core = core * joined(flow.uv, place.step / place.face_px)
    if settings.keep_eyes:
        core = core * (1.0 - masks["eyes"])
    if mouth > 0.0:
        core = core * (1.0 - mouth * masks["mouth"])
    return core


def _mapped(
    place: Place,
    flow: Flow,
    core: torch.Tensor,
    lines: torch.Tensor | None,
    view: torch.Tensor,
    prepared: Prepared,
    enlarge: Enlarger,
    result: FaceResult,
    st: torch.Tensor,
) -> torch.Tensor:
    """Write the identity's texture, core, occluder and UV into `result`; returns the place's part of its picture."""
    core_fine, blocked = (m[place.rows, place.columns] for m in (result.matte_core, result.matte_occluder))
    st = st[:, place.rows, place.columns]
    source = result.edited[:, place.rows, place.columns]
    coarse = torch.cat([flow.uv, core[None], flow.edge[None]])
    for rows in enlarge.strips(view):
        u, v, own, edge = enlarge.strip(coarse, place.step, rows)
        prepared.skin(uv_grid(u, v), place.face_px, source[:, rows])
        torch.clamp(own.sub_(_LEAST).mul_(1.0 / (1.0 - 2.0 * _LEAST)), 0.0, 1.0, out=core_fine[rows])
        drawn = (edge > 0).to(edge.dtype)
        torch.mul(u.clamp_(0.0, 1.0), drawn, out=st[0, rows])
        torch.mul(v.neg_().add_(1.0).clamp_(0.0, 1.0), drawn, out=st[1, rows])
        if lines is not None:
            near = smoothstep(0.5 * OUTSIDE, 0.0, edge)
            blocked[rows] = along_lines(enlarge.strip(lines, place.step, rows), view[:, rows]).mul_(near)
    return source


def _light(
    place: Place,
    skin: torch.Tensor,
    source: torch.Tensor,
    ground: torch.Tensor,
    coarse_ground: torch.Tensor,
    settings: SwapSettings,
    enlarge: Enlarger,
) -> float:
    """Put `source` into the plate's light, in place; returns the mean gain in stops.

    `skin` is bare skin, distance from the edge, lips, and what shows of the lips on both.
    """
    step, face_px = 2 * place.step, place.face_px / (2 * place.step)  # light is smooth: half the coarse grid will do
    bare, edge, lips, shown = shrink(skin, 2)
    seen, made = shrink(coarse_ground, 2), shrink(source, step)
    gain = light_gain(seen, made, bare, edge, face_px, place.aspect)
    gain = hold_lips(gain, seen, made, lips, shown, face_px, place.aspect)
    if settings.colour < 1:
        gain = gain.pow(settings.colour)
    for rows in enlarge.strips(source):
        source[:, rows].mul_(enlarge.strip(gain, step, rows))
    if settings.detail > 0:
        match_detail(source, ground, bare, settings.detail, face_px, enlarge)
    return float((torch.log2(gain[1].clamp(min=1e-6)) * bare).sum() / bare.sum().clamp(min=1e-3))


def _blank(crop: FaceCrop, place: Place | None = None) -> tuple[torch.Tensor, FaceResult]:
    """The result that changes nothing, and its `st`; the picture inside the place is left for the caller to fill."""
    edited = torch.empty_like(crop.view)
    if place is None:
        edited.copy_(crop.view)
    else:
        over, under = slice(0, place.rows.start), slice(place.rows.stop, None)
        before, after = slice(0, place.columns.start), slice(place.columns.stop, None)
        every = slice(None)
        for rows, columns in ((over, every), (under, every), (place.rows, before), (place.rows, after)):
            edited[:, rows, columns] = crop.view[:, rows, columns]
    nothing = crop.view.new_zeros(4, *crop.view.shape[1:])
    return nothing[2:], FaceResult(edited, nothing[0], nothing[1], nothing[2:], {})


def _untouched(crop: FaceCrop, prepared: Prepared) -> FaceResult:
    facts = {"source_px": float(prepared.detail_px), "face_px": 0.0, "coverage": 0.0, "exposure_stops": 0.0}
    facts |= {"occluded": 0.0, "matte_over_time": float(crop.cover is not None), "mouth_kept": 1.0}
    return replace(_blank(crop)[1], facts=facts)
