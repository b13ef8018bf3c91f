"""What an engine is: crops and an identity in, crops and mattes of the same geometry out.

An engine never sees the plate: the pipeline cuts the crop, brings it to the engine's encoding, and carries the change
back (`colour.model_view`, `swap.comp`). So an engine cannot break the range or the pixels outside the matte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray

from ..face import Appearance, Cover, Points
from ..frame import Box
from ..job import SwapSettings


@dataclass(frozen=True, slots=True)
class ShotSolve:
    """What an engine settles once for a track, so that no frame goes its own way.

    Attributes:
        gain: of each channel in linear light, that brings the engine's colour to the plate's.
        boost: crops a side that a face is cut into, 1 or more.
        looks: frames that it was taken from.
    """

    gain: tuple[float, float, float]
    boost: int
    looks: int


@dataclass(frozen=True, slots=True, eq=False)
class FaceCrop:
    """One face of one frame, as an engine gets it.

    Attributes:
        view: (3, h, w) float32 RGB on the engine's device, 0..1. `encoding` "linear": linear light, Rec.709 primaries,
            exposed so that skin lies where a photograph has it; "display": the same, sRGB-encoded.
        window: what the crop covers, plate px (crop px = plate px - corner of the window).
        landmarks: (478, 3) float32, crop px.
        pixel_aspect: width / height of a plate pixel; for angles, normals and distances multiply x by this.
        yaw_deg: head turn, as in `Observation`.
        settings: of this face in this frame.
        appearance: what this track usually looks like, or None.
        frame: frame number.
        cover: what lies in front of the face, as in `Observation`; None where the crop is all there is to go by.
        solve: what was settled for the track; None where the crop is all there is to go by.
        mattes: on the engine's device, by name, as `MatteEngine.steady` gives them; None where the crop is all there is
            to go by.
    """

    view: torch.Tensor
    window: Box
    landmarks: Points
    pixel_aspect: float
    yaw_deg: float
    settings: SwapSettings
    appearance: Appearance | None
    frame: int
    cover: Cover | None = None
    solve: ShotSolve | None = None
    mattes: Mapping[str, torch.Tensor] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FaceResult:
    """What an engine returns for one crop; every tensor has the crop's height and width.

    Attributes:
        edited: (3, h, w) float32, same encoding as the crop's view; equal to it where nothing is changed.
        matte_core: (h, w) float32 0..1, where the engine wants its change, before occluders.
        matte_occluder: (h, w) float32 0..1, 1 where something is in front of the face.
        st: (2, h, w) float32, where each pixel lies in the canonical face UV (0..1, v from the bottom as Nuke counts),
            0 outside the face; None when the engine has no mesh.
        facts: numbers for the report (e.g. "source_px": effective resolution of the source at this size); a tensor with
            one value where it is still on the device.
    """

    edited: torch.Tensor
    matte_core: torch.Tensor
    matte_occluder: torch.Tensor
    st: torch.Tensor | None
    facts: Mapping[str, float | torch.Tensor]


class Engine(Protocol):
    """A way to replace a face.

    `prepare` is called once per identity; `swap` with all the faces of a frame that get that identity.
    """

    name: str
    version: str
    encoding: Literal["linear", "display"]

    def prepare(self, identity: Any) -> Any:
        """Bring an identity (`face.Identity`) to the device; what is returned is handed to `swap`."""
        ...

    def window(self, landmarks: Points, settings: SwapSettings, pixel_aspect: float = 1.0) -> Box:
        """The plate window that the engine needs for a face with these landmarks (plate px), not yet clipped."""
        ...

    def swap(self, crops: Sequence[FaceCrop], prepared: Any) -> list[FaceResult]:
        """Replace the face in each crop. Same crops and identity give the same bytes on the same device."""
        ...


@runtime_checkable
class ShotEngine(Engine, Protocol):
    """An engine that settles something once for a track before its first frame is made, and takes the faces of several
    people and frames in one batch.
    """

    def swap_together(self, crops: Sequence[FaceCrop], prepared: Sequence[Any]) -> list[FaceResult]:
        """As `swap`, with who each becomes."""
        ...

    def smaller(self, parts: int) -> Engine:
        """The same engine that needs about 1 / `parts` of the memory; its results are the same."""
        ...

    def look(self, crop: FaceCrop, prepared: Any) -> Any:
        """What one frame of the track says; `solve` takes it."""
        ...

    def solve(self, looks: Sequence[Any]) -> ShotSolve:
        """What holds for the track, whatever the order of `looks`."""
        ...


@runtime_checkable
class MatteEngine(ShotEngine, Protocol):
    """An engine whose nets draw mattes, which it steadies over the frames around each."""

    @property
    def matte_reach(self) -> int:
        """Frames before and after that `steady` looks at; 0 where its nets draw no matte."""
        ...

    def matte_look(self, crop: FaceCrop, prepared: Any) -> Any:
        """What one frame says, kept on the host. Settings, cover and solve do not count."""
        ...

    def steady(self, looks: Sequence[Any], at: int) -> Mapping[str, NDArray[np.float32]]:
        """The mattes of the frame at an index of `looks`: consecutive frames, None where the face is not seen."""
        ...
