"""Mattes that nets draw, steadied over time.

A net that draws a matte sees one frame and knows nothing of the last: its edges flicker where the face stands still.
So its mattes are laid over each other in the swapper's own square, whose place follows the face, and each takes the
mean of those around it, before and after alike (zero phase). How much another frame counts at a place is decided by the
plate there, not by the matte: a bilateral filter along time (Tomasi and Manduchi 1998) guided by the picture (a cross
bilateral filter, Eisemann and Durand 2004). Where the plate shows the same, a matte that differs is noise and is
averaged, however much it jumps; where something moves past, the picture differs, and the matte stays where and as sharp
as it is.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from ...errors import NumbersError

REACH = 3
"""Frames before and after that are looked at."""
SIDE = 256
"""Of the crop that nets for mattes see, px."""
_GUIDE_SIDE = 128
_SIGMA = 1.5
"""Of the weights over time, frames."""
_SIMILAR = 0.05
"""Difference of sRGB-encoded values (root of the mean square over the channels) at which another frame counts 0.6 of
what an equal one does; a grainy plate differs by a third of that from itself."""
_KEPT_BYTES = 64 << 20
_WHOSE = {"own": "the swapper", "keep": "a net for mattes"}

Bytes = NDArray[np.uint8]
Plane = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class MatteLook:
    """What one frame says about a face.

    Attributes:
        guide: (128, 128, 3) uint8, the plate in the square, sRGB-encoded.
        mattes: (s, s) uint8 by name: "own", the swapper's; "keep", where all nets for mattes see the face.
    """

    guide: Bytes
    mattes: Mapping[str, Bytes]


def look_of(shown: torch.Tensor, mattes: Mapping[str, torch.Tensor]) -> MatteLook:
    """A look, on the host.

    Args:
        shown: (3, s, s) the plate in the square, sRGB-encoded 0..1.
        mattes: (s, s) 0..1 by name.

    Raises:
        NumbersError: a net gave NaN.
    """
    side = (_GUIDE_SIDE, _GUIDE_SIDE)
    guide = functional.interpolate(shown[None], side, mode="bilinear", align_corners=False, antialias=True)[0]
    planes = [guide.permute(1, 2, 0), *mattes.values()]
    flat = torch.cat([plane.reshape(-1) for plane in planes])
    broken = torch.isnan(flat).any()[None].to(torch.uint8)
    flat = torch.cat([flat.clamp(0.0, 1.0).mul_(255.0).round_().to(torch.uint8), broken]).cpu()  # one copy
    if flat[-1]:
        whose = " or ".join(_WHOSE[name] for name in mattes)
        raise NumbersError("a matte is NaN in this frame", expected="finite numbers", found=f"NaN from {whose}")
    parts = torch.split(flat[:-1], [plane.numel() for plane in planes])
    first, *others = (part.numpy().reshape(plane.shape) for part, plane in zip(parts, planes, strict=True))
    return MatteLook(first, dict(zip(mattes, others, strict=True)))


def steadied(looks: Sequence[MatteLook | None], at: int) -> Mapping[str, Plane]:
    """The mattes at one place of a run of consecutive frames, steadied by those around it.

    Args:
        looks: frame by frame, None where the face is not seen.
        at: index, of one that is there.

    Returns:
        float32 0..1 by name. Where all frames are equal, exactly the frame's own. A frame counts only where the one as
        far on the other side is there too, so that the mean has no lag at the ends either.
    """
    own = looks[at]
    assert own is not None
    around = list(_around(looks, at, own))
    return {name: _mean(name, matte, around) for name, matte in own.mattes.items()}


def _around(looks: Sequence[MatteLook | None], at: int, own: MatteLook) -> list[tuple[MatteLook, Plane]]:
    """The frames that count, with their weights, (128, 128)."""
    found: list[tuple[MatteLook, Plane]] = []
    for away in range(1, REACH + 1):
        if at < away or at + away >= len(looks):
            break
        before, after = looks[at - away], looks[at + away]
        if before is not None and after is not None:
            share = np.float32(np.exp(-0.5 * (away / _SIGMA) ** 2))
            found += [(other, share * _alike(own.guide, other.guide)) for other in (before, after)]
    return found


def _alike(one: Bytes, other: Bytes) -> Plane:
    """(128, 128) 0..1, 1 where two frames show the same: grain averaged, a moving edge with a margin around it."""
    apart = np.square(cv2.absdiff(one, other), dtype=np.float32).sum(2)
    apart = np.asarray(cv2.dilate(cv2.blur(apart, (3, 3)), np.ones((3, 3), np.uint8)), np.float32)
    return np.asarray(np.exp(apart * np.float32(-0.5 / (3.0 * (255.0 * _SIMILAR) ** 2))), np.float32)


def _mean(name: str, matte: Bytes, around: Sequence[tuple[MatteLook, Plane]]) -> Plane:
    own = matte.astype(np.float32)
    total, weights = np.zeros_like(own), np.ones_like(own)
    for other, weight in around:
        here = (
            weight if matte.shape == weight.shape else cv2.resize(weight, matte.shape, interpolation=cv2.INTER_LINEAR)
        )
        total += here * (other.mattes[name].astype(np.float32) - own)
        weights += here
    return np.asarray((own + total / weights) * np.float32(1.0 / 255.0), np.float32)


class Kept:
    """What a net made lately, by what it was shown, so that a frame that was looked at for its neighbours' sake does
    not go through it again. May be used from several threads.

    Args:
        budget: bytes.
    """

    def __init__(self, budget: int = _KEPT_BYTES) -> None:
        self._budget = budget
        self._total = 0
        self._values: OrderedDict[bytes, tuple[torch.Tensor, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def make(
        self, shown: Sequence[torch.Tensor], make: Callable[[], tuple[torch.Tensor, ...]]
    ) -> tuple[torch.Tensor, ...]:
        """The tensors for these tensors on the CPU, made if they are not there. Nobody may write into them."""
        digest = hashlib.blake2b(digest_size=16)
        for one in shown:
            digest.update(one.contiguous().numpy().data)
        key = digest.digest()
        with self._lock:
            found = self._values.get(key)
        if found is None:
            found = make()
            with self._lock:
                if key not in self._values:
                    self._values[key] = found
                    self._total += _size(found)
                while self._total > self._budget and len(self._values) > 1:
                    self._total -= _size(self._values.popitem(last=False)[1])
        return found


def _size(tensors: Sequence[torch.Tensor]) -> int:
    return sum(one.numel() * one.element_size() for one in tensors)
