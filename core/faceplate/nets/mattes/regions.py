"""Nets that name the parts of a face: BiSeNet, trained on the 19 classes of CelebAMask-HQ."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import torch
from torch.nn import functional

from ...errors import SettingError
from ..base import TensorNet, Tensors, need_kind, picture_in
from ..through import resized

REGIONS: Mapping[str, int] = MappingProxyType(
    {
        "background": 0,
        "skin": 1,
        "left_brow": 2,
        "right_brow": 3,
        "left_eye": 4,
        "right_eye": 5,
        "glasses": 6,
        "left_ear": 7,
        "right_ear": 8,
        "earring": 9,
        "nose": 10,
        "mouth": 11,
        "upper_lip": 12,
        "lower_lip": 13,
        "neck": 14,
        "necklace": 15,
        "cloth": 16,
        "hair": 17,
        "hat": 18,
    }
)
"""Class of each region."""

FACE = ("skin", "left_brow", "right_brow", "left_eye", "right_eye", "nose", "mouth", "upper_lip", "lower_lip")
"""What a face is made of, glasses and all that grows or hangs beside it left out."""


class RegionMatte:
    """A matte of the kind "regions".

    Args:
        net: input `input`, output `output` with a plane of logits a class.

    Raises:
        ModelError: the net is of another kind.
    """

    def __init__(self, net: TensorNet) -> None:
        need_kind(net, "regions")
        self.net = net

    def pre(self, crops: torch.Tensor) -> Tensors:
        """`input`: (N, 3, h, w) crops brought to the net's size, as the card's mean and std say."""
        return {"input": picture_in(resized(crops, self.net.card.size), self.net.card)}

    def run(self, inputs: Mapping[str, torch.Tensor]) -> Tensors:
        """The net."""
        return self.net.run_tensors(inputs)

    def post(self, outputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """(N, 19, size, size) 0..1: the share of each class, which sum to 1 in each pixel."""
        return outputs["output"].softmax(1)

    def matte(self, crops: torch.Tensor, regions: Mapping[str, float] | None = None) -> torch.Tensor:
        """(N, h, w) 0..1 of (N, 3, h, w) square crops: where the chosen regions are.

        Args:
            crops: sRGB-encoded 0..1.
            regions: each with how far it grows, as a fraction of the crop's side, below 0 to shrink; None for `FACE` as
                it is.

        Raises:
            SettingError: no such region.
        """
        chosen = dict.fromkeys(FACE, 0.0) if regions is None else dict(regions)
        if unknown := set(chosen) - set(REGIONS):
            raise SettingError(
                f"no region of the face is called {', '.join(sorted(unknown))}", expected=", ".join(REGIONS)
            )
        shares = self.post(self.run(self.pre(crops)))
        total = grown(shares, {REGIONS[name]: by for name, by in chosen.items()})
        return resized(total[:, None], crops.shape[-1])[:, 0].clamp(0.0, 1.0)


def grown(shares: torch.Tensor, classes: Mapping[int, float]) -> torch.Tensor:
    """(N, h, w) 0..1: regions that were grown each by its own measure, together.

    Regions that grow alike are added before: no gap opens between neighbours that are both unsure of the border.

    Args:
        shares: (N, C, h, w) that sum to 1.
        classes: fraction of the height by class.
    """
    by_measure: dict[float, list[int]] = {}
    for index, measure in classes.items():
        by_measure.setdefault(measure, []).append(index)
    parts = [
        _moved(shares[:, indices].sum(1), round(measure * shares.shape[-2])) for measure, indices in by_measure.items()
    ]
    if not parts:
        return shares.new_zeros(shares[:, 0].shape)
    return torch.stack(parts).amax(0).clamp_(0.0, 1.0)


def _moved(plane: torch.Tensor, by: int) -> torch.Tensor:
    """The largest value within `by` px (a disc), or for a negative one the smallest."""
    if by == 0:
        return plane
    sign = 1.0 if by > 0 else -1.0
    reach = abs(by)
    around = functional.pad(plane[:, None] * sign, (reach,) * 4, mode="replicate")[:, 0]
    height, width = plane.shape[-2:]
    result = plane * sign
    for dy in range(-reach, reach + 1):
        half = int((reach * reach - dy * dy) ** 0.5)
        rows = around[:, reach + dy : reach + dy + height]
        if half == 0:
            line = rows[..., reach : reach + width]
        else:
            part = rows[..., reach - half : reach + half + width]
            line = functional.max_pool1d(part, 2 * half + 1, 1)
        result = torch.maximum(result, line)
    return result * sign
