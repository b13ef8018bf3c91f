"""The neural engine: a swapper's picture in the plate's light, grain and shape of the face.

All faces that are given together go through each net in one batch, whatever frame they are of. Between nets everything
stays on the device; what the host needs to know beforehand (where a face is, how finely it is cut) follows from its
landmarks, which are on the host already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from ...colour.model_view import decode_display, encode_display
from ...errors import IdentityError
from ...face import Identity, Points
from ...frame import Box
from ...job import SwapSettings
from ...nets import templates
from ...nets.swappers.base import Swapped, Swapper, gives_matte, swapped
from ..base import FaceCrop, FaceResult, ShotSolve
from ..mesh.flow import yaw_fade
from ..mesh.place import window as face_window
from . import boost
from .finish import Finish, finished, reference_result, skin_colour
from .place import Crop, find_crop
from .shot import ShotLook, solve
from .stages import Crops, MatteStage, PictureStage
from .steady import REACH, SIDE, Kept, MatteLook, look_of, steadied
from .who import Convert, source_of

_MOST_RUNS = 16
"""Crops that a net gets at once."""


@dataclass(frozen=True, slots=True, eq=False)
class NeuralPrepared:
    """What `NeuralEngine.prepare` makes of an identity.

    Attributes:
        engine: whose it is.
        source: (1, ...) what the swapper takes.
    """

    engine: str
    source: torch.Tensor


@dataclass(frozen=True, slots=True, eq=False)
class _Face:
    """One face on its way.

    Attributes:
        crop: as the engine got it.
        place: of the net's square in the view.
        factor: crops a side.
        source: (1, ...) who it becomes.
    """

    crop: FaceCrop
    place: Crop
    factor: int
    source: torch.Tensor

    @property
    def fine(self) -> Crop:
        """The square at the resolution that it is worked on."""
        return self.place.finer(self.factor)


class NeuralEngine:
    """A swapper and what goes with it.

    Args:
        name: of the engine, as a job gives it.
        swapper: the net.
        convert: makes a vector that an identity lacks.
        pictures: restorers and editors, in the order in which they follow the swapper.
        mattes: nets that say where the plate's face is.
        most_runs: crops that the swapper gets at once.
        kept: what the swapper made lately; None for a new one.
    """

    version = "2"
    encoding: Literal["linear", "display"] = "linear"

    def __init__(
        self,
        name: str,
        swapper: Swapper,
        convert: Convert,
        pictures: Sequence[PictureStage] = (),
        mattes: Sequence[MatteStage] = (),
        most_runs: int = _MOST_RUNS,
        kept: Kept | None = None,
    ) -> None:
        self.name = name
        self._swapper = swapper
        self._convert = convert
        self._pictures = tuple(pictures)
        self._mattes = tuple(mattes)
        self._most_runs = most_runs
        self._own_matte = gives_matte(swapper)
        self._kept = kept or Kept()

    @property
    def swapper(self) -> Swapper:
        """The adapter of its first net."""
        return self._swapper

    def prepare(self, identity: Identity) -> NeuralPrepared:
        """The person in the swapper's terms, on the device.

        Raises:
            IdentityError: the identity lacks what this swapper takes.
        """
        return NeuralPrepared(self.name, source_of(identity, self._swapper, self._convert))

    def window(self, landmarks: Points, settings: SwapSettings, pixel_aspect: float = 1.0) -> Box:
        """The net's square and the face, plate px."""
        square = self._place(landmarks, pixel_aspect).window()
        return square.union(face_window(landmarks, False))

    def swap(self, crops: Sequence[FaceCrop], prepared: NeuralPrepared) -> list[FaceResult]:
        """Replace the face in each crop. See `Engine.swap`.

        Raises:
            IdentityError: `prepared` is not this engine's.
        """
        return self.swap_together(crops, [prepared] * len(crops))

    def swap_together(self, crops: Sequence[FaceCrop], prepared: Sequence[NeuralPrepared]) -> list[FaceResult]:
        """See `ShotEngine.swap_together`.

        Raises:
            IdentityError: one of `prepared` is not this engine's.
        """
        for one in prepared:
            self._check(one)
        with torch.no_grad():
            faces = [self._face(crop, who.source) for crop, who in zip(crops, prepared, strict=True)]
            live = [face for face in faces if yaw_fade(face.crop.yaw_deg, face.crop.settings) > 0.0]
            made = dict(zip(map(id, live), self._made(live), strict=True))
            return [made[id(face)] if id(face) in made else unchanged(face.crop) for face in faces]

    def smaller(self, parts: int) -> NeuralEngine:
        """See `ShotEngine.smaller`: fewer crops go through a net at once."""
        runs = max(1, self._most_runs // parts)
        return NeuralEngine(self.name, self._swapper, self._convert, self._pictures, self._mattes, runs, self._kept)

    def look(self, crop: FaceCrop, prepared: NeuralPrepared) -> ShotLook:
        """What one frame says about colour and size; the net runs once, without boost."""
        self._check(prepared)
        with torch.no_grad():
            face = self._face(crop, prepared.source)
            plate = face.place.cut(crop.view)
            (made,) = self._swapped([replace(face, factor=1)], [encode_display(plate)])[0]
            red, green, blue, *made_light, weight = skin_colour(crop, face.place, plate, decode_display(made)).tolist()
        return ShotLook((red, green, blue), (made_light[0], made_light[1], made_light[2]), weight, face.factor)

    def solve(self, looks: Sequence[ShotLook]) -> ShotSolve:
        """See `shot.solve`."""
        return solve(looks)

    @property
    def matte_reach(self) -> int:
        """See `MatteEngine.matte_reach`."""
        return REACH if self._own_matte or self._mattes else 0

    def matte_look(self, crop: FaceCrop, prepared: NeuralPrepared) -> MatteLook:
        """What the nets' mattes are in one frame; the swapper runs without boost, and only if it draws one."""
        self._check(prepared)
        with torch.no_grad():
            place = self._place(crop.landmarks, crop.pixel_aspect)
            shown = self._matte_crop(crop, place)
            mattes = {}
            if self._own_matte:
                face = _Face(crop, place, 1, prepared.source)
                (own,) = self._swapped([face], [encode_display(place.cut(crop.view))])[1]
                assert own is not None
                mattes["own"] = own
            if self._mattes:
                mattes["keep"] = self._seen(shown[None])[0]
            return look_of(shown, mattes)

    def steady(self, looks: Sequence[MatteLook | None], at: int) -> Mapping[str, NDArray[np.float32]]:
        """See `steady.steadied`."""
        return steadied(looks, at)

    def _check(self, prepared: NeuralPrepared) -> None:
        if not isinstance(prepared, NeuralPrepared) or prepared.engine != self.name:
            raise IdentityError(
                f"the engine {self.name} got an identity prepared by another engine",
                found=getattr(prepared, "engine", type(prepared).__name__),
            )

    def _place(self, landmarks: Points, pixel_aspect: float) -> Crop:
        return find_crop(landmarks, self._swapper.net.card.template, self._swapper.size, pixel_aspect)

    def _face(self, crop: FaceCrop, source: torch.Tensor) -> _Face:
        place = self._place(crop.landmarks, crop.pixel_aspect)
        asked = round(crop.settings.boost)
        if asked == 0:
            own = boost.factor_for(place.covers_px, place.size)
            asked = own if crop.solve is None else crop.solve.boost
        return _Face(crop, place, asked, source)

    def _made(self, faces: Sequence[_Face]) -> list[FaceResult]:
        results: dict[int, FaceResult] = {}
        plain = [face for face in faces if not face.crop.settings.reference_paste]
        for face, result in zip(plain, self._finished(plain), strict=True):
            results[id(face)] = result
        for face in faces:
            if face.crop.settings.reference_paste:
                results[id(face)] = reference_result(face.crop, face.place, partial(self._once, face.source))
        return [results[id(face)] for face in faces]

    def _once(self, source: torch.Tensor, picture: torch.Tensor) -> torch.Tensor:
        return swapped(self._swapper, picture[None], source).pictures[0]

    def _finished(self, faces: Sequence[_Face]) -> list[FaceResult]:
        if not faces:
            return []
        plates = [face.fine.cut(face.crop.view) for face in faces]
        shown = [encode_display(plate) for plate in plates]
        pictures, mattes = self._swapped(faces, shown)
        if self._own_matte:
            mattes = [
                matte if face.crop.mattes is None else face.crop.mattes["own"]
                for face, matte in zip(faces, mattes, strict=True)
            ]
        pictures = self._staged(faces, shown, pictures)
        keeps = self._keeps(faces)
        return [
            finished(
                Finish(
                    face.crop,
                    face.place,
                    picture,
                    matte,
                    keep,
                    facts={
                        "model_px": float(face.place.size * face.factor),
                        "crop_px": face.place.covers_px,
                        "boost": float(face.factor),
                        "solved_over": float(face.crop.solve.looks) if face.crop.solve is not None else 0.0,
                        "matte_over_time": float(self._over_time(face.crop)),
                    },
                ),
                plate,
            )
            for face, picture, matte, keep, plate in zip(faces, pictures, mattes, keeps, plates, strict=True)
        ]

    def _over_time(self, crop: FaceCrop) -> bool:
        return crop.cover is not None and (self.matte_reach == 0 or crop.mattes is not None)

    def _swapped(
        self, faces: Sequence[_Face], shown: Sequence[torch.Tensor]
    ) -> tuple[list[torch.Tensor], list[torch.Tensor | None]]:
        """The net's picture (3, s, s) and matte (s, s) of each face, all in one batch. On a CPU, faces of a net with a
        matte go one by one, and what `matte_look` has run already does not run again.
        """
        if not self._own_matte or shown[0].device.type != "cpu":
            return self._run(faces, shown)
        alone = [
            self._kept.make([one, face.source], partial(self._alone, face, one))
            for face, one in zip(faces, shown, strict=True)
        ]
        return [picture for picture, _ in alone], [matte for _, matte in alone]

    def _alone(self, face: _Face, shown: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        (picture,), (matte,) = self._run([face], [shown])
        assert matte is not None
        return picture, matte

    def _run(
        self, faces: Sequence[_Face], shown: Sequence[torch.Tensor]
    ) -> tuple[list[torch.Tensor], list[torch.Tensor | None]]:
        counts = [face.factor**2 for face in faces]
        parts = torch.cat([boost.split(one, face.factor) for face, one in zip(faces, shown, strict=True)])
        who = torch.cat([face.source.expand(n, *face.source.shape[1:]) for face, n in zip(faces, counts, strict=True)])
        most = self._most_runs
        runs = [
            swapped(self._swapper, some, of)
            for some, of in zip(torch.split(parts, most), torch.split(who, most), strict=True)
        ]
        made = runs[0] if len(runs) == 1 else _joined(runs)
        pictures = [
            boost.join(some, face.factor).clamp_(0.0, 1.0)
            for face, some in zip(faces, torch.split(made.pictures, counts), strict=True)
        ]
        if made.mattes is None:
            return pictures, [None] * len(faces)
        return pictures, [some.mean(0) for some in torch.split(made.mattes, counts)]

    def _staged(
        self, faces: Sequence[_Face], shown: Sequence[torch.Tensor], pictures: list[torch.Tensor]
    ) -> list[torch.Tensor]:
        """Pictures after restorers and editors; those of one size in one batch."""
        for stage in self._pictures:
            sides = [
                max(picture.shape[-1], min(stage.size, _useful(face)))
                for face, picture in zip(faces, pictures, strict=True)
            ]
            for side in sorted(set(sides)):
                which = [index for index, one in enumerate(sides) if one == side]
                crops = Crops(
                    torch.stack([_of_side(pictures[index], side) for index in which]),
                    torch.stack([_of_side(shown[index], side) for index in which]),
                    torch.stack([_points(faces[index], side) for index in which]),
                    [faces[index].crop.landmarks for index in which],
                    [faces[index].crop.settings for index in which],
                )
                for index, picture in zip(which, stage(crops), strict=True):
                    pictures[index] = picture
        return pictures

    def _keeps(self, faces: Sequence[_Face]) -> list[torch.Tensor | None]:
        """(s, s) of each face, where all nets for mattes see it; None without any. One that was steadied is taken as it
        is, the others run in one batch.
        """
        if not self._mattes:
            return [None] * len(faces)
        found = [None if face.crop.mattes is None else face.crop.mattes["keep"] for face in faces]
        lacking = [index for index, keep in enumerate(found) if keep is None]
        if lacking:
            crops = torch.stack([self._matte_crop(faces[index].crop, faces[index].place) for index in lacking])
            for index, keep in zip(lacking, self._seen(crops), strict=True):
                found[index] = keep
        return list(found)

    def _seen(self, crops: torch.Tensor) -> torch.Tensor:
        return torch.stack([stage(crops) for stage in self._mattes]).amin(0)

    def _matte_crop(self, crop: FaceCrop, place: Crop) -> torch.Tensor:
        return encode_display(place.of_size(SIDE).cut(crop.view))


def unchanged(crop: FaceCrop) -> FaceResult:
    """The result that changes nothing."""
    nothing = crop.view.new_zeros(4, *crop.view.shape[1:])
    return FaceResult(crop.view, nothing[0], nothing[1], nothing[2:], {"model_px": 0.0, "occluded": 0.0})


def _joined(runs: Sequence[Swapped]) -> Swapped:
    mattes = [run.mattes for run in runs if run.mattes is not None]
    return Swapped(torch.cat([run.pictures for run in runs]), torch.cat(mattes) if mattes else None)


def _useful(face: _Face) -> int:
    """What a face can show, px of its square: up to the next power of two of the net's."""
    side = face.place.size
    while side < face.place.covers_px:
        side *= 2
    return side


def _points(face: _Face, side: int) -> torch.Tensor:
    """(5, 2) the face's points in its square of `side` px."""
    to_crop = face.place.of_size(side).placement
    points = templates.five_points(face.crop.landmarks)
    return points @ to_crop[:, :2].T + to_crop[:, 2]


def _of_side(picture: torch.Tensor, side: int) -> torch.Tensor:
    """(3, side, side): averaged where it shrinks, smooth where it grows."""
    if picture.shape[-1] == side:
        return picture
    way = "bicubic" if picture.shape[-1] < side else "bilinear"
    made = functional.interpolate(picture[None], (side, side), mode=way, align_corners=False, antialias=True)
    return made[0].clamp_(0.0, 1.0)
