"""What the figures are measured on: the demo plate, its true landmarks, and the fictional person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..demo.plate import DemoPlateSpec, warp_points, write_plate
from ..demo.portrait import portrait_landmarks
from ..faces.analyse import analyse_shot
from ..faces.nets import FaceNets
from ..faces.shot import AnalyseSettings, ShotFaces
from ..faces.view import LinearPlateView
from ..frame import Frame
from ..jobs.analyse import plate_view
from ..jobs.spec import Workbench
from ..plate import FrameSource, Plate, open_plate


@dataclass(frozen=True, slots=True, eq=False)
class BenchShot:
    """A demo plate on disk and in memory.

    Attributes:
        spec: what it is like.
        plate: opened.
        frames: by number.
    """

    spec: DemoPlateSpec
    plate: Plate
    frames: Mapping[int, Frame]

    def source(self, number: int) -> FrameSource:
        """Where a frame lies."""
        return FrameSource(number, self.plate.sequence.path(number), "present", number)

    def view(self, number: int) -> LinearPlateView:
        """A fresh view of a frame, nothing of it computed yet."""
        return plate_view(self.plate.config, self.frames[number])

    def analyse(self, nets: FaceNets, settings: AnalyseSettings | None = None) -> ShotFaces:
        """The faces, every frame's view made anew."""
        return analyse_shot(self.plate.sequence.frames, self.view, nets, settings)

    def truth(self) -> NDArray[np.float64]:
        """(N, 478, 2) plate px."""
        return np.stack([warp_points(self.spec, number, portrait_landmarks()) for number in self.spec.numbers])


def make_shot(spec: DemoPlateSpec, folder: Path, bench: Workbench) -> BenchShot:
    """Write a demo plate and open it."""
    plate = open_plate(write_plate(spec, folder), bench.config)
    frames = {
        number: plate.read(FrameSource(number, plate.sequence.path(number), "present", number))
        for number in plate.sequence.frames
    }
    return BenchShot(spec, plate, frames)
