"""A net's picture put into the view: colour, detail, grain, matte. All in linear light."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import torch

from ...colour.model_view import decode_display, encode_display
from ...faces.zones import zones
from ..base import FaceCrop, FaceResult
from ..mesh.fields import Enlarger, sample, shrink, smoothstep
from ..mesh.flow import OUTSIDE, Flow, covered, draw_flow, yaw_fade
from ..mesh.light import match_detail
from ..mesh.occlusion import along_lines, refine
from ..mesh.place import Place, find_place
from .mattes import face_shape, guarded, inside_crop
from .place import Crop
from .reference import reference_crop, reference_paste
from .shot import colour_look, gain_of

_LEAST = 1.0 / 512.0


@dataclass(frozen=True, slots=True, eq=False)
class Finish:
    """What the nets made of one face.

    Attributes:
        crop: as the engine got it.
        square: the net's place in the view.
        picture: (3, s, s) sRGB-encoded 0..1.
        matte: (m, m) the swapper's own, or None.
        keep: (k, k) where nets for mattes see the plate's face, or None.
        facts: so far.
    """

    crop: FaceCrop
    square: Crop
    picture: torch.Tensor
    matte: torch.Tensor | None
    keep: torch.Tensor | None
    facts: Mapping[str, float]


def finished(finish: Finish, plate: torch.Tensor) -> FaceResult:
    """The result over the whole view; equal to it where the matte is 0.

    Args:
        finish: what the nets made.
        plate: (3, s, s) linear light that the swapper was shown.
    """
    crop = finish.crop
    place = find_place(_without_shape(crop))
    if place is None:
        return _blank(crop, None, finish.facts)
    rows, columns = place.rows, place.columns
    view = crop.view[:, rows, columns]
    flow, enlarge = draw_flow(place, None, view.device), Enlarger(place.height, place.width)
    coarse_view = shrink(view, place.step)
    blocked = covered(crop, place, flow, coarse_view)
    if finish.keep is not None and crop.settings.occluders:
        seen = finish.square.put_back(finish.keep[None], rows, columns, place.step)[0]
        blocked = torch.maximum(blocked, (1.0 - seen) * flow.drawn)
    core, lost = _core(finish, flow, place)
    bare = core * (1.0 - blocked) * _skin(flow)
    made = decode_display(finish.picture)
    gain = _gain(finish, place, plate, made, bare)
    source = finish.square.put_back(made * gain[:, None, None], rows, columns)
    if crop.settings.detail > 0:
        wide = shrink(bare[None], 2)[0]
        match_detail(source, view, wide, crop.settings.detail, place.face_px / (2 * place.step), enlarge)
    lines = None
    if crop.settings.occluders and (blocked.device.type != "cpu" or float(blocked.max()) > 0.0):
        lines = refine(blocked, coarse_view, place.face_px / place.step)
    result = _blank(crop, place, finish.facts)
    _fill(result, place, flow, core, lines, view, source, enlarge)
    facts: dict[str, float | torch.Tensor] = {
        **finish.facts,
        "face_px": place.face_px,
        "occluded": (blocked * core).sum() / core.sum().clamp(min=1e-3),
        "matte_guarded": lost,
        **{f"gain_{name}": gain[index] for index, name in enumerate(("red", "green", "blue"))},
    }
    return FaceResult(result.edited, result.matte_core, result.matte_occluder, result.st, facts)


def skin_colour(crop: FaceCrop, square: Crop, plate: torch.Tensor, made: torch.Tensor) -> torch.Tensor:
    """(7,) of `shot.colour_look`, on bare skin that nothing covers.

    Args:
        crop: the face.
        square: the net's place in the view.
        plate, made: (3, s, s) linear light before and after the net.
    """
    place = find_place(_without_shape(crop))
    if place is None:
        return plate.new_zeros(7)
    flow = draw_flow(place, None, crop.view.device)
    coarse = shrink(crop.view[:, place.rows, place.columns], place.step)
    bare = face_shape(flow, crop.settings, place) * (1.0 - covered(crop, place, flow, coarse))
    return _colour(square, place, plate, made, bare * _skin(flow))


def _colour(square: Crop, place: Place, plate: torch.Tensor, made: torch.Tensor, bare: torch.Tensor) -> torch.Tensor:
    seen, drawn = (square.put_back(one, place.rows, place.columns, place.step) for one in (plate, made))
    return colour_look(seen, drawn, bare * (inside_crop(square, place, bare) >= 1.0))


def reference_result(crop: FaceCrop, square: Crop, net: Callable[[torch.Tensor], torch.Tensor]) -> FaceResult:
    """InsightFace's paste as a result: the mean of code values is in the picture, so that its matte is 1 or 0."""
    display = encode_display(crop.view)
    made = net(reference_crop(display, square))
    pasted, matte = reference_paste(display, made, square)
    core = (matte > 0).to(matte.dtype)
    edited = torch.where(core > 0, decode_display(pasted), crop.view)
    nothing = crop.view.new_zeros(3, *matte.shape)
    facts = {"model_px": float(square.size), "crop_px": square.covers_px, "boost": 1.0, "occluded": 0.0}
    return FaceResult(edited, core, nothing[0], nothing[1:], facts)


def _without_shape(crop: FaceCrop) -> FaceCrop:
    """The face alone: this engine moves nothing around it."""
    return replace(crop, settings=replace(crop.settings, shape=0.0)) if crop.settings.shape > 0 else crop


@cache
def _features(device: torch.device) -> torch.Tensor:
    return torch.from_numpy(np.array(zones().features))[None].to(device)


def _skin(flow: Flow) -> torch.Tensor:
    """(rows, columns) 0..1, 0 on brows, eyes, lips and nostrils."""
    return 1.0 - sample(_features(flow.at.device), flow.at)[0]


def _core(finish: Finish, flow: Flow, place: Place) -> tuple[torch.Tensor, torch.Tensor]:
    """The coarse matte before occluders, and how far the guard stepped in."""
    settings = finish.crop.settings
    core = face_shape(flow, settings, place)
    lost = core.new_zeros(())
    if finish.matte is not None:
        own = finish.square.put_back(finish.matte[None], place.rows, place.columns, place.step)[0]
        core, lost = guarded(own * core, core)
    fade = yaw_fade(finish.crop.yaw_deg, settings)
    return core * inside_crop(finish.square, place, core) * fade, lost


def _gain(finish: Finish, place: Place, plate: torch.Tensor, made: torch.Tensor, bare: torch.Tensor) -> torch.Tensor:
    """(3,) the track's gain; without one, that of this frame."""
    solve = finish.crop.solve
    own = gain_of(_colour(finish.square, place, plate, made, bare)) if solve is None else plate.new_tensor(solve.gain)
    return own.pow(finish.crop.settings.colour)


def _blank(crop: FaceCrop, place: Place | None, facts: Mapping[str, float | torch.Tensor]) -> FaceResult:
    """The result that changes nothing; inside the place its picture is left for the caller to fill."""
    edited = crop.view if place is None else crop.view.clone()
    nothing = crop.view.new_zeros(4, *crop.view.shape[1:])
    return FaceResult(edited, nothing[0], nothing[1], nothing[2:], facts)


def _fill(
    result: FaceResult,
    place: Place,
    flow: Flow,
    core: torch.Tensor,
    lines: torch.Tensor | None,
    view: torch.Tensor,
    source: torch.Tensor,
    enlarge: Enlarger,
) -> None:
    """Picture, mattes and UV at the plate's resolution, in strips that stay in a CPU's cache."""
    assert result.st is not None
    here = (place.rows, place.columns)
    st, edited = result.st[:, *here], result.edited[:, *here]
    core_fine, blocked = result.matte_core[here], result.matte_occluder[here]
    coarse = torch.cat([flow.uv, core[None], flow.edge[None]])
    for rows in enlarge.strips(view):
        u, v, own, edge = enlarge.strip(coarse, place.step, rows)
        torch.clamp(own.sub_(_LEAST).mul_(1.0 / (1.0 - 2.0 * _LEAST)), 0.0, 1.0, out=core_fine[rows])
        drawn = (edge > 0).to(edge.dtype)
        torch.mul(u.clamp_(0.0, 1.0), drawn, out=st[0, rows])
        torch.mul(v.neg_().add_(1.0).clamp_(0.0, 1.0), drawn, out=st[1, rows])
        if lines is not None:
            near = smoothstep(0.5 * OUTSIDE, 0.0, edge)
            blocked[rows] = along_lines(enlarge.strip(lines, place.step, rows), view[:, rows]).mul_(near)
        changed = (core_fine[rows] > 0).to(source.dtype)
        edited[:, rows].lerp_(source[:, rows], changed)  # exact at both ends
