"""The faces of one frame put into the plate one over another, with the layers that come of it."""

from __future__ import annotations

import torch

from .swap.base import FaceResult
from .swap.comp import compose, element, over


class Composite:
    """Accumulates the faces of a frame over the window that holds them all.

    Args:
        plate: (3, h, w) float32, scene-linear, any value; not changed.

    Attributes:
        rgb: (3, h, w) the plate with the faces so far; bit for bit the plate where `matte` is 0.
        face: (3, h, w) premultiplied faces.
        matte: (h, w) 0..1 where and how far the plate is changed.
        core: (h, w) largest of the engines' own mattes.
        occluder: (h, w) largest of what was kept out.
        st: (2, h, w) UV of the face on top.
        shares: each identity's visible part of `matte`; they sum to at most 1.
    """

    def __init__(self, plate: torch.Tensor) -> None:
        self.rgb = plate
        self.shares: dict[str, torch.Tensor] = {}
        self._make_room(0, 0)

    def _make_room(self, height: int, width: int) -> None:
        rooms = (self.rgb.new_zeros((count, height, width)) for count in (4, 2, 1, 1))
        self._rgba, self.st, (self.core,), (self.occluder,) = rooms

    @property
    def face(self) -> torch.Tensor:
        return self._rgba[:3]

    @property
    def matte(self) -> torch.Tensor:
        return self._rgba[3]

    def add(
        self, name: str, at: tuple[slice, slice], edited: torch.Tensor, matte: torch.Tensor, result: FaceResult
    ) -> None:
        """Put one face over those before it.

        Args:
            name: of the identity.
            at: rows and columns of its crop in the window.
            edited: (3, h, w) its change carried back to the plate.
            matte: (h, w) final.
            result: of the engine, for the layers.
        """
        if not self.shares and edited.shape == self.rgb.shape:
            self._take(name, edited, matte, result)
            return
        rows, columns = at
        if not self.shares:
            self._make_room(*self.rgb.shape[1:])
        self.rgb = self.rgb.clone()
        self.rgb[:, rows, columns] = compose(self.rgb[:, rows, columns], edited, matte)
        own = element(edited, matte)
        self._rgba[:, rows, columns] = over(own, self._rgba[:, rows, columns]) if self.shares else own
        self.core[rows, columns] = torch.maximum(self.core[rows, columns], result.matte_core)
        self.occluder[rows, columns] = torch.maximum(self.occluder[rows, columns], result.matte_occluder)
        if result.st is not None:
            known = (result.st > 0).any(0)
            self.st[:, rows, columns] = torch.where(known, result.st, self.st[:, rows, columns])
        self.shares = {other: share.clone() for other, share in self.shares.items()}
        for share in self.shares.values():
            share[rows, columns] *= 1.0 - matte
        self.shares.setdefault(name, torch.zeros_like(self.core))[rows, columns] += matte

    def _take(self, name: str, edited: torch.Tensor, matte: torch.Tensor, result: FaceResult) -> None:
        """The first face, where it fills the window: nothing to merge."""
        self.rgb = compose(self.rgb, edited, matte)
        self._rgba = element(edited, matte)
        self.core, self.occluder = result.matte_core, result.matte_occluder
        self.st = self.rgb.new_zeros((2, *matte.shape)) if result.st is None else result.st
        self.shares[name] = matte
