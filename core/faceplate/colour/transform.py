"""One colour conversion, as OCIO computes it on the host and as torch computes it on any device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import PyOpenColorIO as ocio
import torch
from numpy.typing import NDArray

from .operators import IDENTITY, Curve, Matrix, NotAnalytic, build


class ColourTransform:
    """Converts RGB from one colour space to another. Made by `ColourConfig.transform`.

    A value that is NaN or infinite comes out as it went in, in its own channel; the other channels of that pixel are
    what arithmetic makes of it (NaN or infinite where a matrix mixes them in).

    Attributes:
        source: canonical name of the space converted from.
        target: canonical name of the space converted to.
        on_device: True where `torch` computes on the tensor's device from OCIO's own parameters; False where OCIO has
            tables or fixed functions there, and `torch` takes the way over the host. The report prints it.
        matrix: the conversion as one matrix, None where it is more than that.
    """

    def __init__(self, source: str, target: str, processor: Any) -> None:
        self.source = source
        self.target = target
        # LOSSLESS: the default optimisation takes fast powers and logarithms (1e-3 instead of 1e-6).
        self._host = processor.getOptimizedCPUProcessor(ocio.OPTIMIZATION_LOSSLESS)
        exact = processor.getOptimizedProcessor(ocio.OPTIMIZATION_LOSSLESS)
        self._curves: Sequence[Curve] = ()
        try:
            self._curves = build(exact.createGroupTransform())
            self.on_device = True
        except NotAnalytic:
            self.on_device = False
        self.matrix: Matrix | None = None
        if self.on_device and len(self._curves) <= 1:
            only = self._curves[0] if self._curves else IDENTITY
            self.matrix = only if isinstance(only, Matrix) else None

    def __repr__(self) -> str:
        return f"ColourTransform({self.source!r} to {self.target!r}, {'on device' if self.on_device else 'on host'})"

    def numpy(self, rgb: NDArray[Any]) -> NDArray[np.float32]:
        """OCIO's lossless CPU processor.

        Args:
            rgb: (..., 3) float32 or float16, any strides, may be read-only: OCIO gets a copy, because it writes
                even into read-only arrays.

        Returns:
            A new contiguous float32 array of the same shape.
        """
        given = np.ascontiguousarray(rgb, dtype=np.float32)
        if given.shape[-1:] != (3,):
            raise ValueError(f"expected (..., 3) RGB, found {given.shape}")
        out = given.copy()
        if out.size:
            self._host.applyRGB(out)
        finite = np.isfinite(given)
        if not finite.all():
            np.copyto(out, given, where=~finite)
        return out

    def torch(self, rgb: torch.Tensor) -> torch.Tensor:
        """The same conversion of planes.

        Args:
            rgb: (..., 3, h, w) float32 or float16 on any device; not written to.

        Returns:
            A new float32 tensor of the same shape on the same device.
        """
        if rgb.ndim < 3 or rgb.shape[-3] != 3:
            raise ValueError(f"expected (..., 3, h, w) RGB, found {tuple(rgb.shape)}")
        given = rgb.float()
        if not self.on_device:
            pixels = self.numpy(given.detach().cpu().movedim(-3, -1).numpy())
            return torch.from_numpy(pixels).movedim(-1, -3).contiguous().to(rgb.device)
        out = given
        for curve in self._curves:
            out = curve(out)
        if not self._curves:
            out = given.clone()
        # One sum tells whether the mask is needed; masks are slow on a CPU. A GPU must not wait for the answer.
        if given.is_cuda or not torch.isfinite(given.sum()):
            out = torch.where(torch.isfinite(given), out, given)
        return out
