"""The order of the steps for one frame: cut, view, engine, carry back, mattes, comp. The only file that knows it.

Pixel work runs on one device in float32; the plate's pixels go up once, inside the faces' windows only, and the result
comes down once. Nothing here reads or writes a file, and nothing is kept between frames but the engine's prepared
identities, so that any frame can be done alone, in any order, with the same bytes.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
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
from .swap.base import Engine, FaceCrop, FaceResult, MatteEngine, ShotEngine, ShotSolve
from .swap.change import Change, check_finite, cut, extent, light_under, numbers
from .swap.comp import final_matte
from .swap.crossing import Crossing
from .swap.together import Together

Plane = NDArray[np.float32]
_Sent = Mapping[str, torch.Tensor] | None

_WIDEST = 8


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
        solve: what a `ShotEngine` has settled for the track, or None.
        mattes: what a `MatteEngine` has steadied over the frames around, by name, or None.
    """

    track: int
    observation: Observation
    identity: Identity
    settings: SwapSettings
    exposure: float
    appearance: Appearance | None = None
    solve: ShotSolve | None = None
    mattes: Mapping[str, Plane] | None = None


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
        copies: how often and how many bytes crossed to the device and back (`swap.crossing.Copies`).
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
    copies: Mapping[str, int] = field(default_factory=dict)


class _Clock:
    """Adds up wall time by step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, step: str) -> None:
        now = time.perf_counter()
        self.seconds[step] = self.seconds.get(step, 0.0) + now - self._last
        self._last = now


class FacePipeline:
    """Replaces the faces of one frame after another.

    Args:
        config: OCIO configuration.
        engine: what replaces a face; one for the whole job.
        device: where the pixel work runs.
        prepared: where identities that are on the device are kept, by content hash; None for all of them, for ever.
        together: put the faces of frames that several threads are at into one batch; None for on a GPU alone, whose
            work one frame does not fill.
        packed: see `Crossing`.
    """

    def __init__(
        self,
        config: ColourConfig,
        engine: Engine,
        device: torch.device,
        prepared: MutableMapping[str, Any] | None = None,
        *,
        together: bool | None = None,
        packed: bool = False,
    ) -> None:
        self.config = config
        self.engine = engine
        self.device = device
        self._prepared: MutableMapping[str, Any] = {} if prepared is None else prepared
        self._packed = packed
        self._own = threading.local()
        self._shots = engine if isinstance(engine, ShotEngine) else None
        self._together: Together | None = None
        if isinstance(engine, ShotEngine) and (device.type == "cuda" if together is None else together):
            self._together = Together(engine.swap_together, device)

    def prepare(self, identity: Identity) -> Any:
        """The identity on the device, made once."""
        found = self._prepared.get(identity.content_hash)
        if found is None:
            found = self._prepared[identity.content_hash] = self.engine.prepare(identity)
            if self.device.type == "cuda":
                torch.cuda.current_stream(self.device).synchronize()  # other threads' streams will read it
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
        with self._stream():
            return self._process(frame, tasks, holdout, out)

    def _process(
        self, frame: Frame, tasks: Sequence[FaceTask], holdout: Plane | None, out: Pixels | None
    ) -> SwappedFrame:
        clock, crossing = _Clock(), Crossing(self.device, packed=self._packed)
        to_709 = self.config.to_rec709(frame.colour_space)
        from_709 = self.config.from_rec709(frame.colour_space)
        placed = [(task, window) for task in tasks if not (window := self._window(frame, task)).is_empty]
        if not placed:
            return untouched(frame, out)
        whole = reduce(Box.union, (window for _, window in placed))
        plate, hold, mattes = self._upload(frame, whole, holdout, [task.mattes for task, _ in placed], crossing)
        clock.lap("upload")
        seen = []
        for task, window in placed:
            rows, columns = window.slices(whole)
            under = plate[:, rows, columns]
            before = to_linear_view(under, to_709, task.exposure)
            display = encode_display(before) if self.engine.encoding == "display" else None
            # what the engine leaves alone has to come back equal
            seen.append((under, before if display is None else decode_display(display), display))
        clock.lap("view")
        views = [before if display is None else display for _, before, display in seen]
        crops = [
            self._crop(frame, window, task, view, steady)
            for (task, window), view, steady in zip(placed, views, mattes, strict=True)
        ]
        results = self._swapped(crops, [self.prepare(task.identity) for task, _ in placed])
        clock.lap("engine")
        changes = []
        for (task, window), (under, before, _), result in zip(placed, seen, results, strict=True):
            held = None if hold is None else hold[window.slices(whole)]
            change = self._change(window, task, under, before, result, held, from_709, clock)
            if change is not None:
                changes.append(change)
        if not changes:
            return untouched(frame, out)
        union = reduce(Box.union, (change.window for change in changes))
        rows, columns = union.slices(whole)
        comp = Composite(changes[0].plate if len(changes) == 1 else plate[:, rows, columns].contiguous())
        for change in changes:
            at = change.window.slices(union)
            comp.add(change.name, at, change.edited, change.matte, change.result)
        clock.lap("comp")
        swapped, facts = self._download(frame, union, comp, changes, out, crossing)
        clock.lap("download")
        return SwappedFrame(**swapped, facts=facts, seconds=clock.seconds, copies=asdict(crossing.copies))

    def look(self, frame: Frame, task: FaceTask) -> Any:
        """What one frame says to a `ShotEngine` about a track; None where the face is not in it."""
        assert isinstance(self.engine, ShotEngine)
        return self._looked(self.engine.look, frame, task)

    def matte_look(self, frame: Frame, task: FaceTask) -> Any:
        """What one frame says to a `MatteEngine` about a face's mattes; None where the face is not in it."""
        assert isinstance(self.engine, MatteEngine)
        return self._looked(self.engine.matte_look, frame, task)

    def _looked(self, look: Callable[[FaceCrop, Any], Any], frame: Frame, task: FaceTask) -> Any:
        window = self._window(frame, task)
        if window.is_empty:
            return None
        with self._stream():
            plate, *_ = self._upload(frame, window, None, [None], Crossing(self.device))
            view = to_linear_view(plate, self.config.to_rec709(frame.colour_space), task.exposure)
            view = encode_display(view) if self.engine.encoding == "display" else view
            return look(self._crop(frame, window, task, view, None), self.prepare(task.identity))

    def _stream(self) -> AbstractContextManager[Any]:
        """A stream of this thread's own, so that copies of one frame run beside the work on another."""
        if self.device.type != "cuda":
            return nullcontext()
        if not hasattr(self._own, "stream"):
            self._own.stream = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
        return torch.cuda.stream(self._own.stream)

    def _swapped(self, crops: Sequence[FaceCrop], prepared: Sequence[Any]) -> list[FaceResult]:
        """All faces of the frame at once, with those of other frames, where the engine can."""
        if self._together is not None:
            return self._together(crops, prepared)
        if self._shots is not None:
            return self._shots.swap_together(crops, prepared)
        return [self.engine.swap([crop], who)[0] for crop, who in zip(crops, prepared, strict=True)]

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
        window = self.engine.window(task.observation.landmarks, task.settings, frame.pixel_aspect)
        return window.intersect(frame.data_window)

    def _upload(
        self,
        frame: Frame,
        window: Box,
        holdout: Plane | None,
        mattes: Sequence[Mapping[str, Plane] | None],
        crossing: Crossing,
    ) -> tuple[torch.Tensor, torch.Tensor | None, list[_Sent]]:
        """(3, h, w) float32 on the device, the hold-out (h, w) and each face's mattes; half travels as half."""
        arrays: list[Any] = [np.moveaxis(frame.crop(window), -1, 0)]
        if holdout is not None:
            rows, columns = window.slices(frame.data_window)
            arrays.append(holdout[rows, columns])
        given = [one for one in mattes if one is not None]
        plate, *rest = crossing.up(arrays + [plane for one in given for plane in one.values()])
        hold = None if holdout is None else rest.pop(0)
        there = iter(rest)
        sent: list[_Sent] = [None if one is None else {name: next(there) for name in one} for one in mattes]
        return plate.float(), hold, sent

    def _change(
        self,
        window: Box,
        task: FaceTask,
        under: torch.Tensor,
        before: torch.Tensor,
        whole: FaceResult,
        hold: torch.Tensor | None,
        from_709: ColourTransform,
        clock: _Clock,
    ) -> Change | None:
        """What one face changes, cut down to where it does; None where it changes nothing."""
        part = extent(whole)
        if part is None:
            return None
        rows, columns = part
        result = cut(whole, rows, columns)
        inner = Box(window.x0 + columns.start, window.y0 + rows.start, window.x0 + columns.stop, window.y0 + rows.stop)
        after = result.edited if self.engine.encoding == "linear" else decode_display(result.edited)
        under, before = under[:, rows, columns].contiguous(), before[:, rows, columns].contiguous()
        edited = carry_back(under, before, after, from_709=from_709, exposure=task.exposure)
        clock.lap("carry back")
        held = None if hold is None else hold[rows, columns]
        matte = final_matte(result.matte_core, result.matte_occluder, held, task.settings.strength)
        clock.lap("comp")
        light = torch.stack([light_under(before, matte), light_under(after, matte)])
        facts = {"matte_px": matte.sum(), "light_before": light[0], "light_after": light[1]}
        return Change(task.track, task.identity.name, inner, under, edited, matte, result, facts)

    def _crop(self, frame: Frame, window: Box, task: FaceTask, view: torch.Tensor, mattes: _Sent) -> FaceCrop:
        corner = np.array([window.x0, window.y0, 0], np.float32)
        return FaceCrop(
            view=view,
            window=window,
            landmarks=task.observation.landmarks - corner,
            pixel_aspect=frame.pixel_aspect,
            yaw_deg=task.observation.yaw_deg,
            settings=task.settings,
            appearance=task.appearance,
            frame=frame.number or 0,
            cover=task.observation.cover,
            solve=task.solve,
            mattes=mattes,
        )

    def _download(
        self,
        frame: Frame,
        union: Box,
        comp: Composite,
        changes: Sequence[Change],
        out: Pixels | None,
        crossing: Crossing,
    ) -> tuple[dict[str, Any], dict[int, dict[str, float]]]:
        """Planes, shares and numbers in one crossing."""
        limit, half = float(np.finfo(frame.pixels.dtype).max), frame.pixels.dtype == np.float16
        told = [{**change.result.facts, **change.facts} for change in changes]
        on_device = [value for facts in told for value in facts.values() if isinstance(value, torch.Tensor)]
        rgb = comp.rgb.clamp(-limit, limit).to(torch.float16 if half else torch.float32)
        flat = torch.stack([comp.rgb.sum(), *(number.reshape(()) for number in on_device)])
        planes = [rgb, comp.face, comp.matte, comp.core, comp.occluder, comp.st, flat, *comp.shares.values()]
        rgb_here, face, matte, core, occluder, st, flat_here, *shares = crossing.down(planes)
        rows, columns = union.slices(frame.data_window)
        if not (finite := math.isfinite(float(flat_here[0]))):
            check_finite(frame.pixels[rows, columns, :3], rgb_here, matte, self.engine.name)
        pixels = _copied(frame, out)
        _put(pixels[rows, columns, :3], rgb_here, matte, finite=finite)
        values = iter(flat_here[1:].tolist())
        facts = {change.track: numbers(one, values) for change, one in zip(changes, told, strict=True)}
        return {
            "pixels": pixels,
            "window": union,
            "face": np.moveaxis(face, 0, -1),
            "matte": matte,
            "matte_core": core,
            "matte_occluder": occluder,
            "st": np.moveaxis(st, 0, -1),
            "identities": dict(zip(comp.shares, shares, strict=True)),
        }, facts


def _put(target: Pixels, planes: NDArray[Any], matte: NDArray[Any], *, finite: bool) -> None:
    """Write (3, h, w) into (h, w, 3) pixels of the plate where the matte is not 0; `planes` is the plate's where it is.
    Where all is finite, there and back is the same number, and a mask would only cost time.
    """
    if finite:
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
