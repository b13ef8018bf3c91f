"""What else works on a crop beside the swapper: restorers and editors change it, mattes say where the face is.

Faces of a batch may be of several frames and people. Settings that a net takes but once for a batch part it: faces that
agree on them go together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from ...face import Points
from ...job import SwapSettings
from ...nets.editors.age import FranAge, StyleAge
from ...nets.editors.expression import LivePortrait
from ...nets.editors.motion import Expression
from ...nets.mattes.face import FaceMatte, pulled_in
from ...nets.mattes.regions import RegionMatte
from ...nets.restorers.restorer import Restorer

_CONTROLS = tuple(spec.name for spec in dataclasses.fields(Expression))


@dataclass(frozen=True, slots=True, eq=False)
class Crops:
    """Faces of one size.

    Attributes:
        pictures: (N, 3, s, s) float32 RGB, sRGB-encoded 0..1, on the device: as they are by now.
        plate: the same crops of the plate.
        points: (N, 5, 2) float64 crop px on the CPU, in the order of `nets.templates`.
        landmarks: (478, 3) of each, any px.
        settings: of each face in its frame.
    """

    pictures: torch.Tensor
    plate: torch.Tensor
    points: torch.Tensor
    landmarks: Sequence[Points]
    settings: Sequence[SwapSettings]

    def some(self, which: Sequence[int]) -> Crops:
        """Those faces alone."""
        return Crops(
            self.pictures[list(which)],
            self.plate[list(which)],
            self.points[list(which)],
            [self.landmarks[index] for index in which],
            [self.settings[index] for index in which],
        )


class PictureStage(Protocol):
    """A restorer or an editor. `size` is the side of a crop that it can fill with detail, px."""

    @property
    def size(self) -> int: ...

    def __call__(self, crops: Crops) -> torch.Tensor:
        """(N, 3, s, s), the pictures with its change."""
        ...


class MatteStage(Protocol):
    """A net that says where the face is."""

    def __call__(self, crops: torch.Tensor) -> torch.Tensor:
        """(N, s, s) float32 0..1 of (N, 3, s, s) crops of the plate, 1 where its face is to be seen."""
        ...


def in_groups(
    crops: Crops, key: Callable[[SwapSettings], Hashable], work: Callable[[Crops], torch.Tensor]
) -> torch.Tensor:
    """The pictures after `work` on those that agree on `key`, in the crops' order."""
    groups: dict[Hashable, list[int]] = {}
    for index, settings in enumerate(crops.settings):
        groups.setdefault(key(settings), []).append(index)
    if len(groups) == 1:
        return work(crops)
    made = crops.pictures.clone()
    for which in groups.values():
        made[which] = work(crops.some(which))
    return made


class RestoreStage:
    """A restorer, by the settings `restore` and `fidelity`."""

    def __init__(self, restorer: Restorer) -> None:
        self._restorer = restorer

    @property
    def size(self) -> int:
        return self._restorer.size

    def __call__(self, crops: Crops) -> torch.Tensor:
        return in_groups(crops, lambda one: (one.restore, one.fidelity), self._work)

    def _work(self, crops: Crops) -> torch.Tensor:
        settings = crops.settings[0]
        return self._restorer.restore(crops.pictures, crops.points, settings.restore, settings.fidelity)


class AgeStage:
    """An age editor, by the settings `age_years` and `age_now`."""

    def __init__(self, editor: FranAge | StyleAge) -> None:
        self._editor = editor

    @property
    def size(self) -> int:
        return self._editor.net.card.size

    def __call__(self, crops: Crops) -> torch.Tensor:
        return in_groups(crops, lambda one: (one.age_years, one.age_now), self._work)

    def _work(self, crops: Crops) -> torch.Tensor:
        settings = crops.settings[0]
        return self._editor.edit(crops.pictures, crops.points, settings.age_years, settings.age_now)


class ExpressionStage:
    """LivePortrait, by the settings `expression` (the plate's comes back) and `edit_...` (what somebody asks for)."""

    def __init__(self, editor: LivePortrait) -> None:
        self._editor = editor

    @property
    def size(self) -> int:
        return self._editor.size

    def __call__(self, crops: Crops) -> torch.Tensor:
        return in_groups(crops, lambda one: (one.expression, controls_of(one)), self._work)

    def _work(self, crops: Crops) -> torch.Tensor:
        settings = crops.settings[0]
        pictures = self._editor.restore(crops.pictures, crops.plate, crops.points, settings.expression)
        return self._editor.edit(pictures, crops.points, controls_of(settings), list(crops.landmarks))


def controls_of(settings: SwapSettings) -> Expression:
    """The `edit_...` settings."""
    return Expression(**{name: getattr(settings, f"edit_{name}") for name in _CONTROLS})


class FaceMatteStage:
    """XSeg or an occluder, its soft edge inside the face."""

    def __init__(self, matte: FaceMatte) -> None:
        self._matte = matte

    def __call__(self, crops: torch.Tensor) -> torch.Tensor:
        return pulled_in(self._matte.matte(crops))


class RegionMatteStage:
    """The parts of a face, as a parser sees them."""

    def __init__(self, matte: RegionMatte) -> None:
        self._matte = matte

    def __call__(self, crops: torch.Tensor) -> torch.Tensor:
        return self._matte.matte(crops)
