"""LivePortrait: the face's own picture, warped from where its points are to where they should be."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from ...errors import ModelError, SettingError
from ..base import TensorNet, Tensors, need_kind, picture_in, picture_out
from ..through import between, changed, cut_all, resized
from .motion import POINTS, Expression, Motion, in_picture, with_controls, with_expression

FEATURES, MOTION, GENERATOR = "liveportrait_features", "liveportrait_motion", "liveportrait_generator"
EYES, LIPS, STITCHER = "liveportrait_eyes", "liveportrait_lips", "liveportrait_stitcher"
NEEDED = (FEATURES, MOTION, GENERATOR)
OPTIONAL = (EYES, LIPS, STITCHER)

_SPREAD = 1.5
"""Points are moved away from the nose, so that the square holds the whole head."""
_OPEN_EYES, _OPEN_LIPS, _CLOSED = 0.6, 1.0, 0.0
"""Ratios of opening over width that eyes and lips are brought to by a control of 1 or -1."""
_EYE_RIMS = ((160, 153, 133, 33), (385, 373, 263, 362))
_LIP_RIM = (13, 14, 291, 61)
"""Points of the 478 mesh: above, below, and the two sides; the eye on the picture's left first."""


class LivePortrait:
    """An editor of several nets.

    Args:
        nets: by kind: `NEEDED`, and of `OPTIONAL` those that are there.

    Raises:
        ModelError: one that is needed is not there, or a net is of another kind.
    """

    def __init__(self, nets: Mapping[str, TensorNet]) -> None:
        if missing := [kind for kind in NEEDED if kind not in nets]:
            raise ModelError(
                "LivePortrait needs more nets",
                expected=", ".join(NEEDED),
                found=", ".join(nets) or "none",
                hint=f"add the files of {', '.join(missing)}: faceplate models add FILE",
            )
        for kind, net in nets.items():
            need_kind(net, kind)
        self.nets = dict(nets)

    @property
    def size(self) -> int:
        """Side of the square that comes out, px; half of it goes in."""
        return self.nets[GENERATOR].card.size

    def pre(self, squares: torch.Tensor) -> Tensors:
        """`input` of the nets that look at (N, 3, size, size) squares: at their own size."""
        card = self.nets[MOTION].card
        return {"input": picture_in(resized(squares, card.size), card)}

    def run(self, kind: str, inputs: Mapping[str, torch.Tensor]) -> Tensors:
        """One of the nets."""
        return self.nets[kind].run_tensors(inputs)

    def post(self, outputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """(N, 3, size, size) 0..1 of the generator's output."""
        return picture_out(outputs["output"], self.nets[GENERATOR].card)

    def motion(self, squares: torch.Tensor) -> Motion:
        """What the motion extractor sees in (N, 3, size, size) squares."""
        seen = self.run(MOTION, self.pre(squares))
        count = len(squares)
        one = {name: seen[name].reshape(count, 1) for name in ("pitch", "yaw", "roll", "scale")}
        points = {name: seen[name].reshape(count, POINTS, 3) for name in ("expression", "motion_points")}
        return Motion(
            **one,
            translation=seen["translation"].reshape(count, 3),
            expression=points["expression"],
            points=points["motion_points"],
        )

    def warp(self, squares: torch.Tensor, before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
        """(N, 3, size, size) squares whose points move from `before` to `after`, (N, 21, 3) each."""
        volume = self.run(FEATURES, self.pre(squares))["feature_volume"]
        # the generator calls what is wanted its source, and what is in the picture its target
        return self.post(self.run(GENERATOR, {"feature_volume": volume, "source": after, "target": before}))

    def restore(
        self,
        crops: torch.Tensor,
        plate: torch.Tensor,
        points: torch.Tensor,
        amount: float = 1.0,
        *,
        upper: bool = True,
        lower: bool = True,
    ) -> torch.Tensor:
        """Crops whose faces take the plate's expression again, which a swap has dulled.

        Args:
            crops: (N, 3, h, w) sRGB-encoded 0..1.
            plate: (N, 3, h, w), the same crops of the plate.
            points: (N, 5, 2) crop px, on the CPU.
            amount: 0..1; 0 gives the crops.
            upper, lower: the parts of the face.

        Returns:
            (N, 3, h, w) 0..1.
        """
        if amount == 0.0 or not (upper or lower):
            return crops
        places = self._places(points)
        squares = cut_all(crops, places, self.size)
        now = self.motion(squares)
        wanted = with_expression(now, self.motion(cut_all(plate, places, self.size)), amount, upper=upper, lower=lower)
        return changed(crops, places, squares, self.warp(squares, in_picture(now), in_picture(wanted)))

    def edit(
        self, crops: torch.Tensor, points: torch.Tensor, controls: Expression, landmarks: list[NDArray[np.float32]]
    ) -> torch.Tensor:
        """Crops with an expression that somebody asked for.

        Args:
            crops: (N, 3, h, w) sRGB-encoded 0..1.
            points: (N, 5, 2) crop px, on the CPU.
            controls: what to change.
            landmarks: (478, 2 or more) px of each face: how far eyes and lips are open now.

        Returns:
            (N, 3, h, w) 0..1.

        Raises:
            ModelError: eyes or lips are to be opened or closed, and the net for it is not there.
        """
        if controls.is_none:
            return crops
        places = self._places(points)
        squares = cut_all(crops, places, self.size)
        now = self.motion(squares)
        before = in_picture(now)
        after = in_picture(with_controls(now, controls))
        if controls.eyes:
            ratios = [[opening(one, rim) for rim in _EYE_RIMS] for one in landmarks]
            after = after + self._retargeted(EYES, before, ratios, controls.eyes, _OPEN_EYES)
        if controls.lips:
            ratios = [[opening(one, _LIP_RIM)] for one in landmarks]
            after = after + self._retargeted(LIPS, before, ratios, controls.lips, _OPEN_LIPS)
        if STITCHER in self.nets:
            after = self.run(STITCHER, {"source": after, "target": before})["output"].reshape(after.shape)
        return changed(crops, places, squares, self.warp(squares, before, after))

    def _places(self, points: torch.Tensor) -> torch.Tensor:
        card = self.nets[GENERATOR].card
        return between(points, card.template, card.size, _SPREAD)

    def _retargeted(
        self, kind: str, before: torch.Tensor, ratios: list[list[float]], value: float, opened: float
    ) -> torch.Tensor:
        """(N, 21, 3), how points move when eyes or lips go from `ratios` to open or closed."""
        if kind not in self.nets:
            raise ModelError(
                f"eyes and lips are opened and closed by nets of their own; {kind} is not there",
                hint="faceplate models add FILE, or leave eyes and lips at 0",
            )
        wanted = opened if value > 0 else _CLOSED
        told = before.new_tensor([[*one, wanted] for one in ratios])
        moved = self.run(kind, {"input": torch.cat([before.flatten(1), told], 1)})["output"]
        return moved.reshape(before.shape) * abs(value)


def opening(landmarks: NDArray[np.float32], rim: tuple[int, int, int, int]) -> float:
    """Distance of the first two points of a rim over that of the other two.

    Args:
        landmarks: (478, 2 or more) px.
        rim: above, below, side, other side.

    Raises:
        SettingError: not the 478 mesh.
    """
    if landmarks.shape[0] <= max(rim):
        raise SettingError("a face has too few landmarks", expected="478", found=str(landmarks.shape[0]))
    above, below, side, other = (landmarks[index, :2].astype(np.float64) for index in rim)
    return float(np.linalg.norm(above - below) / (np.linalg.norm(side - other) + 1e-6))
