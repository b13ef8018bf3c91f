"""The order of the steps for one frame: cut, view, engine, carry back, mattes, comp. The only file that knows it.

Pixel work runs on one device in float32; the plate's pixels go up once, inside the faces' windows only, and the result
comes down once. Nothing here reads or writes a file, and nothing is kept between frames but the engine's prepared
identities, so that any frame can be done alone, in any order, with the same bytes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .colour.model_view import carry_back, decode_display, encode_display, to_linear_view
from .colour.spaces import ColourConfig
from .colour.transform import ColourTransform
from .composite import Composite
from .errors import SidecarError
from .face import Appearance, Identity, Observation
from .frame import Box, Frame, Pixels
from .job import SwapSettings
from .swap.base import Engine, FaceCrop, FaceResult
from .swap.comp import final_matte

Plane = NDArray[np.float32]

_WIDEST = 8
_WORTH_CUTTING = 0.8
"""Part of a window under which it is cut to what is in it: to cut means to copy."""
_THIN = 4


@dataclass(frozen=True, slots=True, eq=False)
class FaceTask:
    """One face of a frame and what it becomes.

    Attributes:
        track: track id.
        observation: where the face is.
        identity: who it becomes.
        settings: sampled for this frame.
        exposure: power of two that brings the track's skin to where a photograph has it; one for the whole track.
        appearance: what the track usually looks like, or None.
    """

    track: int
    observation: Observation
    identity: Identity
    settings: SwapSettings
    exposure: float
    appearance: Appearance | None = None


@dataclass(frozen=True, slots=True, eq=False)
class SwappedFrame:
    """A frame with its faces replaced, and the layers.

    Attributes:
        pixels: (H, W, C) of the frame's dtype, all of it; bit-identical to the frame where `matte` is 0.
        window: what the planes below cover, plate px; empty when no face was in the frame. Outside it they are 0.
        face: (h, w, 3) float32, the new face in the plate's space, premultiplied by `matte`.
        matte: (h, w) float32 0..1, where and how far the frame was changed.
        matte_core: the engine's own matte, before occluders, hold-out and strength.
        matte_occluder: what was kept out as lying in front of the face.
        st: (h, w, 2) float32, canonical face UV, v from the bottom; 0 off the faces.
        identities: each identity's share of `matte`, by name; they sum to at most 1.
        facts: numbers for the report, by track id.
        seconds: time by step.
    """

    pixels: Pixels
    window: Box
    face: Plane
    matte: Plane
    matte_core: Plane
    matte_occluder: Plane
    st: Plane
    identities: Mapping[str, Plane]
    facts: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)


class _Clock:
    """Adds up wall time by step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, step: str) -> None:
        now = time.perf_counter()
        self.seconds[step] = self.seconds.get(step, 0.0) + now - self._last
        self._last = now


@dataclass(frozen=True, slots=True, eq=False)
class _Change:
    """One face's change over `window`; the plate and the result's planes are cut to it."""

    task: FaceTask
    window: Box
    plate: torch.Tensor
    edited: torch.Tensor
    matte: torch.Tensor
    result: FaceResult
    facts: Mapping[str, float]


def _extent(result: FaceResult) -> tuple[slice, slice] | None:
    """Rows and columns outside which a result changes and knows nothing; all of them where little would be cut off."""
    known = result.matte_core if result.st is None else result.matte_core + result.st[0]
    rows, columns = known.amax(1).nonzero(), known.amax(0).nonzero()
    if len(rows) == 0:
        return None
    found = slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)
    area = (found[0].stop - found[0].start) * (found[1].stop - found[1].start)
    return found if area < _WORTH_CUTTING * known.numel() else (slice(0, known.shape[0]), slice(0, known.shape[1]))


def _cut(result: FaceResult, rows: slice, columns: slice) -> FaceResult:
    return FaceResult(
        edited=result.edited[:, rows, columns].contiguous(),
        matte_core=result.matte_core[rows, columns],
        matte_occluder=result.matte_occluder[rows, columns],
        st=None if result.st is None else result.st[:, rows, columns],
        facts=result.facts,
    )


def _light(view: torch.Tensor, matte: torch.Tensor) -> float:
    """Luminance of a linear view under a matte, summed over every fourth pixel of every fourth row."""
    thin = (slice(None, None, _THIN), slice(None, None, _THIN))
    lit = (view[:, *thin] * matte[thin]).sum((1, 2))
    return float(lit @ view.new_tensor([0.2126, 0.7152, 0.0722]))


class FacePipeline:
    """Replaces the faces of one frame after another.

    Args:
        config: OCIO configuration.
        engine: what replaces a face; one for the whole job.
        device: where the pixel work runs.
        prepared: where identities that are on the device are kept, by content hash; None for all of them, for ever.
    """

    def __init__(
        self,
        config: ColourConfig,
        engine: Engine,
        device: torch.device,
        prepared: MutableMapping[str, Any] | None = None,
    ) -> None:
        self.config = config
        self.engine = engine
        self.device = device
        self._prepared: MutableMapping[str, Any] = {} if prepared is None else prepared

    def prepare(self, identity: Identity) -> Any:
        """The identity on the device, made once."""
        found = self._prepared.get(identity.content_hash)
        if found is None:
            found = self._prepared[identity.content_hash] = self.engine.prepare(identity)
        return found

    def process(
        self, frame: Frame, tasks: Sequence[FaceTask], holdout: Plane | None = None, out: Pixels | None = None
    ) -> SwappedFrame:
        """Replace the faces of one frame.

        Args:
            frame: scene-linear.
            tasks: the faces, those behind first: a later one lies over an earlier one where they meet.
            holdout: (H, W) float32 0..1 over the frame's data window; 1 keeps the plate.
            out: memory for the result, of the frame's shape and dtype; it may be the frame's own. None for new memory.

        Returns:
            The frame with its layers. Pixels where the matte is 0 are the plate's, bit for bit.
        """
        clock = _Clock()
        to_709 = self.config.to_rec709(frame.colour_space)
        from_709 = self.config.from_rec709(frame.colour_space)
        changes = []
        for task in tasks:
            window = self._window(frame, task)
            if not window.is_empty:
                change = self._change(frame, window, task, holdout, to_709, from_709, clock)
                if change is not None:
                    changes.append(change)
        if not changes:
            return untouched(frame, out)
        union = reduce(Box.union, (change.window for change in changes))
        comp = Composite(changes[0].plate if len(changes) == 1 else self._upload(frame, union))
        for change in changes:
            at = change.window.slices(union)
            comp.add(change.task.identity.name, at, change.edited, change.matte, change.result)
        clock.lap("comp")
        swapped = self._download(frame, union, comp, out)
        clock.lap("download")
        facts = {change.task.track: {**change.result.facts, **change.facts} for change in changes}
        return SwappedFrame(**swapped, facts=facts, seconds=clock.seconds)

    def _window(self, frame: Frame, task: FaceTask) -> Box:
        if task.settings.strength == 0:
            return Box(0, 0, 0, 0)
        longest = max(frame.display_window.width, frame.display_window.height)
        if task.observation.width_px > _WIDEST * longest:
            raise SidecarError(
                f"the face of track {task.track} in frame {task.observation.frame} cannot be in this picture",
                expected=f"a width up to {_WIDEST} times the picture's",
                found=f"{task.observation.width_px:.0f} px in {longest}",
                hint="correct the landmarks in the sidecar, or delete the frame's line",
            )
        return self.engine.window(task.observation.landmarks, task.settings).intersect(frame.data_window)

    def _upload(self, frame: Frame, window: Box) -> torch.Tensor:
        """(3, h, w) float32 on the device; half travels as half."""
        planes = np.ascontiguousarray(np.moveaxis(frame.crop(window), -1, 0))
        return torch.from_numpy(planes).to(self.device).float()

    def _change(
        self,
        frame: Frame,
        window: Box,
        task: FaceTask,
        holdout: Plane | None,
        to_709: ColourTransform,
        from_709: ColourTransform,
        clock: _Clock,
    ) -> _Change | None:
        """What one face changes, cut down to where it does; None where it changes nothing."""
        under = self._upload(frame, window)
        clock.lap("upload")
        before = to_linear_view(under, to_709, task.exposure)
        if self.engine.encoding == "display":
            display = encode_display(before)
            before = decode_display(display)  # what the engine leaves alone has to come back equal
        clock.lap("view")
        whole = self._run_engine(frame, window, task, before if self.engine.encoding == "linear" else display)
        clock.lap("engine")
        part = _extent(whole)
        if part is None:
            return None
        rows, columns = part
        result = _cut(whole, rows, columns)
        inner = Box(window.x0 + columns.start, window.y0 + rows.start, window.x0 + columns.stop, window.y0 + rows.stop)
        after = result.edited if self.engine.encoding == "linear" else decode_display(result.edited)
        under, before = under[:, rows, columns].contiguous(), before[:, rows, columns].contiguous()
        edited = carry_back(under, before, after, from_709=from_709, exposure=task.exposure)
        clock.lap("carry back")
        hold = self._holdout(holdout, frame, inner)
        matte = final_matte(result.matte_core, result.matte_occluder, hold, task.settings.strength)
        clock.lap("comp")
        light = _light(before, matte), _light(after, matte)
        stops = math.log2(light[1] / light[0]) if min(light) > 0 else 0.0
        facts = {"matte_px": float(matte.sum()), "exposure_stops": stops}
        return _Change(task, inner, under, edited, matte, result, facts)

    def _run_engine(self, frame: Frame, window: Box, task: FaceTask, view: torch.Tensor) -> FaceResult:
        corner = np.array([window.x0, window.y0, 0], np.float32)
        crop = FaceCrop(
            view=view,
            window=window,
            landmarks=task.observation.landmarks - corner,
            pixel_aspect=frame.pixel_aspect,
            yaw_deg=task.observation.yaw_deg,
            settings=task.settings,
            appearance=task.appearance,
            frame=frame.number or 0,
            cover=task.observation.cover,
        )
        (result,) = self.engine.swap([crop], self.prepare(task.identity))
        return result

    def _holdout(self, holdout: Plane | None, frame: Frame, window: Box) -> torch.Tensor | None:
        if holdout is None:
            return None
        rows, columns = window.slices(frame.data_window)
        return torch.from_numpy(np.ascontiguousarray(holdout[rows, columns])).to(self.device)

    def _download(self, frame: Frame, union: Box, comp: Composite, out: Pixels | None) -> dict[str, Any]:
        matte = comp.matte.cpu().numpy()
        rows, columns = union.slices(frame.data_window)
        pixels = _copied(frame, out)
        _put(pixels[rows, columns, :3], comp.rgb, matte)
        return {
            "pixels": pixels,
            "window": union,
            "face": np.moveaxis(comp.face.cpu().numpy(), 0, -1),
            "matte": matte,
            "matte_core": comp.core.cpu().numpy(),
            "matte_occluder": comp.occluder.cpu().numpy(),
            "st": np.moveaxis(comp.st.cpu().numpy(), 0, -1),
            "identities": {name: share.cpu().numpy() for name, share in comp.shares.items()},
        }


def _put(target: Pixels, rgb: torch.Tensor, matte: Plane) -> None:
    """Write (3, h, w) into (h, w, 3) pixels of the plate where the matte is not 0; `rgb` is the plate's where it is."""
    limit = float(np.finfo(target.dtype).max)
    kind = torch.float16 if target.dtype == np.float16 else torch.float32
    planes = rgb.clamp(-limit, limit).to(kind).cpu().numpy()
    if math.isfinite(rgb.sum().item()):  # then there and back is the same number, and a mask would only cost time
        for channel, plane in enumerate(planes):
            target[..., channel] = plane
    else:
        np.copyto(target, np.moveaxis(planes, 0, -1), where=(matte > 0)[..., None])


def _copied(frame: Frame, out: Pixels | None) -> Pixels:
    """The frame's pixels in new memory, or in `out`; nothing is moved where that is the frame's own."""
    if out is None:
        return frame.pixels.copy()
    if not np.may_share_memory(out, frame.pixels):
        np.copyto(out, frame.pixels)
    return out


def untouched(frame: Frame, out: Pixels | None = None) -> SwappedFrame:
    """A frame in which nothing is replaced: the plate's own pixels (in `out` if given) and empty layers."""
    empty = np.zeros((0, 0), np.float32)
    return SwappedFrame(
        pixels=frame.pixels if out is None else _copied(frame, out),
        window=Box(0, 0, 0, 0),
        face=np.zeros((0, 0, 3), np.float32),
        matte=empty,
        matte_core=empty,
        matte_occluder=empty,
        st=np.zeros((0, 0, 2), np.float32),
        identities={},
    )
